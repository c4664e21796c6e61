//! The listening side: connections within a limit, heads within a time, bodies within a size, and an orderly end.
//! A client that is slow, silent or greedy costs one place among the connections and nothing else.

use crate::front::Front;
use crate::shared::Shared;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// A head must be here within this time; a connection that is idle so long is closed.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// A connection on which no call began for so long, and which is not idle, belongs to a client that does not read
/// its answer: it is closed.
const CALL_TIME: Duration = Duration::from_secs(120);
/// A head is refused beyond this size (hyper answers 431).
const HEAD_BYTES: usize = 64 * 1024;
/// After a failed accept (no file handle left) the next one waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown` is done, then lets calls in flight end within `grace`. True when all of them did.
pub(crate) async fn serve(
    listener: TcpListener,
    front: Arc<Front>,
    shared: Arc<Shared>,
    max_connections: usize,
    grace: Duration,
    shutdown: impl Future<Output = ()>,
) -> bool {
    let places = Arc::new(Semaphore::new(max_connections));
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        while connections.try_join_next().is_some() {}
        let stream = tokio::select! {
            () = &mut shutdown => break,
            next = accept(&listener, &places) => next,
        };
        let Some((stream, place)) = stream else { continue };
        let (front, shared, stopped) = (Arc::clone(&front), Arc::clone(&shared), stopped.clone());
        connections.spawn(async move {
            shared.stats.connections.fetch_add(1, Ordering::Relaxed);
            connection(stream, front, stopped).await;
            shared.stats.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
    drop(listener);
    let _ = stop.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(grace, all).await.is_ok()
}

/// The next connection, once there is a place for it: beyond the limit the kernel's queue holds them.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Answers are small and written whole: waiting to fill a segment only adds delay.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn connection(stream: TcpStream, front: Arc<Front>, mut stopped: watch::Receiver<bool>) {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let front = Arc::clone(&front);
        calls.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(front.answer(request.map(Body::new)).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let mut ending = false;
    let mut seen = 0;
    let mut tick = std::pin::pin!(tokio::time::sleep(CALL_TIME));
    loop {
        tokio::select! {
            // A broken connection is its client's affair.
            _ = serving.as_mut() => return,
            _ = stopped.changed(), if !ending => {
                ending = true;
                serving.as_mut().graceful_shutdown();
            }
            () = tick.as_mut() => {
                let now = counted.load(Ordering::Relaxed);
                // Idle connections are closed sooner, by HEAD_TIME: this one does not read its answer.
                if now == seen {
                    return;
                }
                seen = now;
                tick.as_mut().reset(tokio::time::Instant::now() + CALL_TIME);
            }
        }
    }
}
