//! Bad certificates and handshakes: each has a word of its own, and none gets a request.

use crate::sink::{Sink, outgoing, wire_with};
use async_trait::async_trait;
use engine::connector::Resolver;
use engine::wire::{Fault, HttpWire, Wire as _};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

const NAME: &str = "receiver.example";

struct Loopback;

#[async_trait]
impl Resolver for Loopback {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec!["127.0.0.1".parse().unwrap()])
    }
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    wire: HttpWire,
    // The file goes with it.
    _file: tempfile::NamedTempFile,
}

/// A certificate authority, and a wire that trusts it by `--ca-file`.
fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate.pem()).unwrap();
    let wire = wire_with(&["127.0.0.1/32"], Arc::new(Loopback), &[file.path().to_owned()]);
    Authority {
        issuer: Issuer::new(params, key),
        wire,
        _file: file,
    }
}

fn server(
    certificate: &rcgen::Certificate,
    key: &KeyPair,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn tls_sink(acceptor: TlsAcceptor) -> Sink {
    Sink::new(move |stream, requests| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let mut buffer = [0; 4096];
            if stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {
                requests.fetch_add(1, Ordering::SeqCst);
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .await;
                let _ = stream.shutdown().await;
            }
        }
    })
    .await
}

fn url(sink: &Sink) -> String {
    format!("https://{NAME}:{}/", sink.address.port())
}

fn params() -> CertificateParams {
    CertificateParams::new(vec![NAME.to_owned()]).unwrap()
}

fn failure(fault: Option<Fault>) -> String {
    match fault {
        Some(Fault::Failed(text)) => text.split(':').next().unwrap().to_owned(),
        other => panic!("expected a failure, found {other:?}"),
    }
}

#[tokio::test]
async fn a_good_certificate_of_a_ca_file_is_trusted_in_both_versions() {
    let trusted = authority("trusted");
    for versions in [&[&rustls::version::TLS12][..], &[&rustls::version::TLS13]] {
        let key = KeyPair::generate().unwrap();
        let certificate = params().signed_by(&key, &trusted.issuer).unwrap();
        let sink = tls_sink(server(&certificate, &key, versions)).await;
        let sent = trusted.wire.send(outgoing(&url(&sink), 10_000)).await;
        assert_eq!((sent.status, sent.fault), (Some(200), None));
    }
}

#[tokio::test]
async fn bad_certificates_have_distinct_words_and_get_no_request() {
    let trusted = authority("trusted");
    let stranger = authority("stranger");
    let mut expired = params();
    expired.not_before = date_time_ymd(2001, 1, 1);
    expired.not_after = date_time_ymd(2002, 1, 1);
    let mut future = params();
    future.not_before = date_time_ymd(2900, 1, 1);
    future.not_after = date_time_ymd(2901, 1, 1);
    let other = CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
    for (params, issuer, word) in [
        (expired, &trusted.issuer, "tls_expired"),
        (future, &trusted.issuer, "tls_not_yet_valid"),
        (other, &trusted.issuer, "tls_wrong_name"),
        (params(), &stranger.issuer, "tls_unknown_issuer"),
    ] {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, issuer).unwrap();
        let sink = tls_sink(server(&certificate, &key, rustls::ALL_VERSIONS)).await;
        let sent = trusted.wire.send(outgoing(&url(&sink), 10_000)).await;
        assert_eq!(failure(sent.fault), word);
        assert_eq!((sent.status, sink.requests()), (None, 0), "{word}");
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_an_unknown_issuer() {
    let trusted = authority("trusted");
    let key = KeyPair::generate().unwrap();
    let certificate = params().self_signed(&key).unwrap();
    let sink = tls_sink(server(&certificate, &key, rustls::ALL_VERSIONS)).await;
    let sent = trusted.wire.send(outgoing(&url(&sink), 10_000)).await;
    assert_eq!(
        (failure(sent.fault).as_str(), sink.requests()),
        ("tls_unknown_issuer", 0)
    );
}

#[tokio::test]
async fn a_receiver_that_does_not_speak_tls_is_told_apart() {
    let trusted = authority("trusted");
    for (answer, word) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "tls_not_tls"),
        ("", "tls_closed"),
    ] {
        let sink = Sink::new(move |mut stream, _| async move {
            let mut hello = [0; 4096];
            let _ = stream.read(&mut hello).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        })
        .await;
        let sent = trusted.wire.send(outgoing(&url(&sink), 10_000)).await;
        assert_eq!(failure(sent.fault), word);
    }
}

#[tokio::test]
async fn a_handshake_that_hangs_is_within_the_deadline() {
    let trusted = authority("trusted");
    let sink = Sink::new(|stream, _| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let sent = trusted.wire.send(outgoing(&url(&sink), 150)).await;
    assert!(matches!(sent.fault, Some(Fault::TimedOut(_))), "{sent:?}");
}

#[test]
fn a_ca_file_that_holds_no_certificate_is_refused() {
    for text in [
        "",
        "hello",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let error = engine::tls::client_config(&[file.path().to_owned()]).unwrap_err();
        assert!(error.to_string().contains("expected PEM certificates"), "{error}");
    }
    let missing = engine::tls::client_config(&["/nonexistent/ca.pem".into()]);
    assert!(
        missing
            .unwrap_err()
            .to_string()
            .starts_with("/nonexistent/ca.pem: ")
    );
}
