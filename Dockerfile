# syntax=docker/dockerfile:1

# The build stage holds the compiler; nothing of it but the binary reaches the image.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo ./.cargo
COPY crates ./crates
COPY xtask ./xtask
COPY probe ./probe
COPY cases ./cases
COPY spec ./spec
COPY docs ./docs
# Names this build in every report: docker build --build-arg DUEHOOK_BUILD=$(git rev-parse --short HEAD) .
ARG DUEHOOK_BUILD=image
ENV DUEHOOK_BUILD=$DUEHOOK_BUILD
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package duehook \
 && cp target/release/duehook /duehook \
 && mkdir /data /reports

# glibc, libgcc and CA certificates; no shell. Everything runs as a user without rights.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /duehook /usr/local/bin/duehook
COPY --from=build --chown=65532:65532 /data /data
COPY --from=build --chown=65532:65532 /reports /reports
COPY cases /cases
COPY probe /probe
COPY LICENSE-MIT /licenses/LICENSE-MIT
COPY LICENSE-APACHE /licenses/LICENSE-APACHE
USER 65532:65532
WORKDIR /data
ENV DUEHOOK_STORE=sqlite:/data/duehook.db \
    DUEHOOK_LISTEN=0.0.0.0:8071
EXPOSE 8071
VOLUME ["/data", "/reports"]
ENTRYPOINT ["/usr/local/bin/duehook"]
CMD ["serve"]
