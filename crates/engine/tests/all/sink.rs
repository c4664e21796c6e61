//! Receivers by script, over raw TCP, that count what reaches them.

use bytes::Bytes;
use contract::Duration;
use engine::connector::{Connector, Resolver, SystemResolver};
use engine::guard::Guard;
use engine::target::Target;
use engine::wire::{HttpWire, Outgoing};
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A receiver on loopback.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    pub(crate) requests: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sink {
    /// Hands each connection to `serve`, with the counter of requests.
    pub(crate) async fn new<F, Fut>(serve: F) -> Self
    where
        F: Fn(TcpStream, Arc<AtomicUsize>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let requests = Arc::new(AtomicUsize::new(0));
        let (counted, counter) = (Arc::clone(&connections), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&counter)));
            }
        });
        Self {
            address,
            connections,
            requests,
            task,
        }
    }

    /// Reads one request, writes these bytes, and closes.
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<Vec<u8>> = Arc::new(bytes.into());
        Self::new(move |mut stream, requests| {
            let bytes = Arc::clone(&bytes);
            async move {
                if read_request(&mut stream).await.is_some() {
                    requests.fetch_add(1, Ordering::SeqCst);
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.shutdown().await;
                }
            }
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }
}

/// Reads one request with its body: the head as text, the body as bytes. `None` at the end of the connection.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0u8; 4096];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())
        .unwrap_or(0usize);
    while bytes.len() < end + length {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
    Some((head, bytes[end..end + length].to_vec()))
}

/// A wire that may reach loopback.
pub(crate) fn wire() -> HttpWire {
    wire_with(&["127.0.0.0/8"], Arc::new(SystemResolver), &[])
}

pub(crate) fn wire_with(allow: &[&str], resolver: Arc<dyn Resolver>, ca_files: &[PathBuf]) -> HttpWire {
    let allowed = allow.iter().map(|net| net.parse().unwrap()).collect();
    let tls = engine::tls::client_config(ca_files).unwrap();
    HttpWire::new(Connector::new(Guard::new(allowed), resolver, tls))
}

pub(crate) fn outgoing(url: &str, timeout_ms: u64) -> Outgoing {
    Outgoing {
        target: Arc::new(Target::parse(url).unwrap()),
        headers: http::HeaderMap::new(),
        body: Bytes::from_static(b"{}"),
        timeout: Duration::from_ms(timeout_ms),
    }
}
