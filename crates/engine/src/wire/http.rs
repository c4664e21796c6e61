//! HTTP/1.1 by hyper-util's pooled client: one absolute deadline, bounded headers and body, no redirects, no
//! decompression, and the client's hidden second try switched off (field report 24).

use super::fault::fault_of;
use super::{BODY_KEPT_BYTES, BODY_READ_BYTES, Fault, Outgoing, RETRY_AFTER_BYTES, Sent, Wire};
use crate::connector::Connector;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::RETRY_AFTER;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::time::Duration;
use tokio::time::Instant;

/// Less than the 5 s after which common servers close an idle connection, so that none is reused in the moment it
/// closes; such a moment would cost an attempt, since nothing is ever sent twice.
const IDLE: Duration = Duration::from_secs(4);
/// Idle connections kept for one host; each is a file descriptor.
const IDLE_PER_HOST: usize = 256;
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Sends over real sockets.
#[derive(Clone)]
pub struct HttpWire {
    client: Client<Connector, Full<Bytes>>,
}

impl HttpWire {
    /// A client over this connector.
    #[must_use]
    pub fn new(connector: Connector) -> Self {
        let mut builder: Builder = Client::builder(TokioExecutor::new());
        builder
            .retry_canceled_requests(false)
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http1_max_headers(MAX_HEADERS)
            .http1_max_buf_size(MAX_HEADER_BYTES);
        Self {
            client: builder.build(connector),
        }
    }

    async fn answer(&self, outgoing: Outgoing, deadline: Instant) -> Sent {
        let mut request = Request::new(Full::new(outgoing.body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = outgoing.target.uri().clone();
        *request.headers_mut() = outgoing.headers;
        match tokio::time::timeout_at(deadline, self.client.request(request)).await {
            Ok(Ok(response)) => read(response, deadline).await,
            Ok(Err(error)) => Sent {
                fault: Some(fault_of(&error)),
                ..Sent::default()
            },
            Err(_) => Sent {
                fault: Some(Fault::TimedOut("timeout_before_headers".to_owned())),
                ..Sent::default()
            },
        }
    }
}

#[async_trait]
impl Wire for HttpWire {
    async fn send(&self, outgoing: Outgoing) -> Sent {
        let deadline = Instant::now() + outgoing.timeout.to_std();
        self.answer(outgoing, deadline).await
    }
}

async fn read(response: Response<Incoming>, deadline: Instant) -> Sent {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER).map(|value| {
        let bytes = value.as_bytes();
        String::from_utf8_lossy(&bytes[..bytes.len().min(RETRY_AFTER_BYTES)]).into_owned()
    });
    let mut kept = Kept::default();
    let read = tokio::time::timeout_at(deadline, kept.fill(response.into_body())).await;
    let mut sent = Sent {
        status: Some(status),
        fault: None,
        retry_after,
        body: kept.bytes(),
    };
    match read {
        Ok(Ok(())) => {}
        Ok(Err(_)) => {
            // The answer never became whole, so its status does not count.
            sent.status = None;
            sent.fault = Some(Fault::Failed(format!("body_cut: after status {status}")));
        }
        Err(_) => sent.fault = Some(Fault::TimedOut("timeout_in_body".to_owned())),
    }
    sent
}

/// The start of a body. Most fit in their first frame, which is kept as it came.
#[derive(Default)]
struct Kept {
    first: Bytes,
    more: BytesMut,
    read: usize,
}

impl Kept {
    /// Reads to the end of the body, or to the bound: what is left then is dropped with its connection.
    async fn fill(&mut self, mut body: Incoming) -> Result<(), hyper::Error> {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            self.keep(&data);
            if self.read >= BODY_READ_BYTES {
                break;
            }
        }
        Ok(())
    }

    fn keep(&mut self, data: &Bytes) {
        let room = BODY_KEPT_BYTES.saturating_sub(self.read);
        let part = &data[..data.len().min(room)];
        if self.read == 0 {
            // Copied, so that 8 KiB do not pin a whole read buffer for as long as the settle waits.
            self.first = Bytes::copy_from_slice(part);
        } else if !part.is_empty() {
            self.more.extend_from_slice(part);
        }
        self.read = self.read.saturating_add(data.len());
    }

    fn bytes(&mut self) -> Bytes {
        if self.more.is_empty() {
            return std::mem::take(&mut self.first);
        }
        let mut whole = BytesMut::with_capacity(self.first.len() + self.more.len());
        whole.extend_from_slice(&self.first);
        whole.extend_from_slice(&self.more);
        whole.freeze()
    }
}
