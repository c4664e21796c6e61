//! From a URI to a connection: resolve once, judge every answer, dial exactly what was judged, look at the peer, TLS.
//!
//! There is no second look-up between the judgement and the dialling (field report 22), no proxy from the
//! environment, and literals take the same way as names.

use crate::guard::{Denied, Guard};
use crate::names::Names;
use crate::tls;
use async_trait::async_trait;
use http::Uri;
use hyper::rt::ReadBufCursor;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long one address may take while there are others to try. The attempt's own deadline covers the whole.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_secs(3);

/// Turns a name into addresses.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of a name.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Our own guard.
    #[error("refused: {0}")]
    Denied(Denied),
    /// The socket is connected to another address than the one that was judged.
    #[error("refused: the peer is {0}, which was not dialled")]
    Peer(SocketAddr),
    /// The name has no address, or nobody to ask.
    #[error("dns: {0}")]
    Dns(String),
    /// No address answered.
    #[error("connect")]
    Io(#[source] io::Error),
    /// The handshake failed.
    #[error("tls")]
    Tls(#[source] io::Error),
    /// The URI holds no host that TLS knows how to name.
    #[error("the URI has no usable host")]
    Host,
}

impl ConnectError {
    /// The stable word for the ledger.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Denied(denied) => denied.kind,
            Self::Peer(_) => "peer_address",
            Self::Dns(_) => "dns",
            Self::Host => "bad_host",
            Self::Io(error) => connect_word(error),
            Self::Tls(error) => error
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<rustls::Error>())
                .map_or("tls_closed", tls::word),
        }
    }

    /// True when it was our own guard that refused.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Denied(_) | Self::Peer(_))
    }
}

fn connect_word(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect_refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => "connect_reset",
        io::ErrorKind::TimedOut => "connect_timeout",
        io::ErrorKind::HostUnreachable => "host_unreachable",
        io::ErrorKind::NetworkUnreachable => "network_unreachable",
        io::ErrorKind::AddrNotAvailable => "no_local_port",
        // EMFILE and ENFILE have no kind of their own: 24 and 23 on every Linux.
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => "too_many_open_files",
        _ => "connect_failed",
    }
}

/// Makes connections. Cheap to clone.
#[derive(Clone)]
pub struct Connector(Arc<Inner>);

struct Inner {
    guard: Guard,
    names: Names,
    tls: TlsConnector,
}

impl Connector {
    /// A connector behind this guard.
    #[must_use]
    pub fn new(guard: Guard, resolver: Arc<dyn Resolver>, tls: Arc<rustls::ClientConfig>) -> Self {
        Self(Arc::new(Inner {
            guard,
            names: Names::new(resolver),
            tls: TlsConnector::from(tls),
        }))
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = Link;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Link, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.connect(&uri).await })
    }
}

impl Inner {
    async fn connect(&self, uri: &Uri) -> Result<Link, ConnectError> {
        let secure = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let host = uri.host().ok_or(ConnectError::Host)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let addresses = self.judged(host).await?;
        let tcp = dial(&addresses, port).await?;
        if !secure {
            return Ok(Link::Plain(TokioIo::new(tcp)));
        }
        // A root dot is for the resolver; certificates never carry it.
        let name =
            ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| ConnectError::Host)?;
        let stream = self.tls.connect(name, tcp).await.map_err(ConnectError::Tls)?;
        Ok(Link::Tls(Box::new(TokioIo::new(stream))))
    }

    /// All addresses of the host, each of them judged: one bad answer refuses the name, since whoever mixes a
    /// private address in among public ones means it.
    async fn judged(&self, host: &str) -> Result<Arc<[IpAddr]>, ConnectError> {
        let addresses: Arc<[IpAddr]> = match host.parse::<IpAddr>() {
            Ok(literal) => Arc::new([literal]),
            Err(_) => self.names.resolve(host).await.map_err(ConnectError::Dns)?,
        };
        if addresses.is_empty() {
            return Err(ConnectError::Dns(format!("{host} has no address")));
        }
        for address in &*addresses {
            self.guard.check(*address).map_err(ConnectError::Denied)?;
        }
        Ok(addresses)
    }
}

async fn dial(addresses: &[IpAddr], port: u16) -> Result<TcpStream, ConnectError> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (place, address) in addresses.iter().enumerate() {
        let address = SocketAddr::new(*address, port);
        let connecting = TcpStream::connect(address);
        let connected = if place + 1 == addresses.len() {
            connecting.await
        } else {
            let timed = tokio::time::timeout(NEXT_ADDRESS_AFTER, connecting).await;
            timed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        };
        match connected {
            Ok(stream) => return checked(stream, address),
            Err(error) => last = error,
        }
    }
    Err(ConnectError::Io(last))
}

fn checked(stream: TcpStream, dialled: SocketAddr) -> Result<TcpStream, ConnectError> {
    let peer = stream.peer_addr().map_err(ConnectError::Io)?;
    if peer.ip().to_canonical() != dialled.ip().to_canonical() || peer.port() != dialled.port() {
        return Err(ConnectError::Peer(peer));
    }
    // A request is written in one piece; waiting to fill a packet would only add delay.
    stream.set_nodelay(true).map_err(ConnectError::Io)?;
    Ok(stream)
}

/// A connection, plain or within TLS.
pub enum Link {
    /// `http://`.
    Plain(TokioIo<TcpStream>),
    /// `https://`.
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

macro_rules! either {
    ($self:ident, $io:ident => $call:expr) => {
        match $self.get_mut() {
            Link::Plain(io) => {
                let $io = Pin::new(io);
                $call
            }
            Link::Tls(io) => {
                let $io = Pin::new(&mut **io);
                $call
            }
        }
    };
}

impl hyper::rt::Read for Link {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_read(cx, buf))
    }
}

impl hyper::rt::Write for Link {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write_vectored(cx, bufs))
    }
}
