//! The guard at work: what is judged is what is dialled, and nothing else is.

use crate::sink::{Sink, outgoing, wire_with};
use async_trait::async_trait;
use engine::connector::{Resolver, SystemResolver};
use engine::wire::{Fault, Wire as _};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Answers in turn; the last answer repeats.
struct Names {
    answers: Vec<Vec<&'static str>>,
    asked: Mutex<usize>,
}

impl Names {
    fn new(answers: &[&[&'static str]]) -> Arc<Self> {
        Arc::new(Self {
            answers: answers.iter().map(|answer| answer.to_vec()).collect(),
            asked: Mutex::new(0),
        })
    }

    fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let place = (*asked).min(self.answers.len() - 1);
        *asked += 1;
        Ok(self.answers[place]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect())
    }
}

fn refusal(fault: Option<Fault>) -> String {
    match fault {
        Some(Fault::Refused(word)) => word,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[tokio::test]
async fn loopback_is_refused_unless_it_is_allowed() {
    let sink = Sink::answering(OK).await;
    let closed = wire_with(&[], Arc::new(SystemResolver), &[]);
    let sent = closed.send(outgoing(&sink.url(), 10_000)).await;
    assert!(refusal(sent.fault).starts_with("loopback: "));
    assert_eq!(sink.connections(), 0, "not even a connection");
    let open = wire_with(&["127.0.0.1/32"], Arc::new(SystemResolver), &[]);
    assert_eq!(open.send(outgoing(&sink.url(), 10_000)).await.status, Some(200));
}

#[tokio::test]
async fn localhost_by_name_is_refused_too() {
    let sink = Sink::answering(OK).await;
    let wire = wire_with(&[], Arc::new(SystemResolver), &[]);
    for host in ["localhost", "localhost."] {
        let url = format!("http://{host}:{}/", sink.address.port());
        let sent = wire.send(outgoing(&url, 10_000)).await;
        assert!(
            matches!(sent.fault, Some(Fault::Refused(_) | Fault::Failed(_))),
            "{host}"
        );
    }
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn one_bad_address_among_good_ones_refuses_the_name() {
    let sink = Sink::answering(OK).await;
    for answers in [
        ["127.0.0.1", "10.0.0.1"],
        ["10.0.0.1", "127.0.0.1"],
        ["127.0.0.1", "::ffff:10.0.0.1"],
    ] {
        let names = Names::new(&[&answers]);
        let wire = wire_with(&["127.0.0.1/32"], names, &[]);
        let url = format!("http://mixed.example:{}/", sink.address.port());
        let sent = wire.send(outgoing(&url, 10_000)).await;
        assert!(refusal(sent.fault).starts_with("private: "));
    }
    assert_eq!(sink.connections(), 0);
}

/// A name that answers well when it is checked and badly when it is dialled (field report 22).
#[tokio::test]
async fn a_name_is_resolved_once_and_the_judged_address_is_dialled() {
    let sink = Sink::answering(OK).await;
    let names = Names::new(&[&["127.0.0.1"], &["127.0.0.66"]]);
    let wire = wire_with(&["127.0.0.1/32"], names.clone(), &[]);
    let url = format!("http://rebinding.example:{}/", sink.address.port());
    assert_eq!(wire.send(outgoing(&url, 10_000)).await.status, Some(200));
    assert_eq!((names.asked(), sink.connections()), (1, 1));
    // The next connection is judged anew.
    let sent = wire.send(outgoing(&url, 10_000)).await;
    assert!(refusal(sent.fault).starts_with("loopback: "));
    assert_eq!((names.asked(), sink.connections()), (2, 1));
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let sink = Sink::answering(OK).await;
    // Nothing listens on the second loopback address.
    let names = Names::new(&[&["127.0.0.2", "127.0.0.1"]]);
    let wire = wire_with(&["127.0.0.0/8"], names, &[]);
    let url = format!("http://two.example:{}/", sink.address.port());
    assert_eq!(wire.send(outgoing(&url, 10_000)).await.status, Some(200));
}

#[tokio::test]
async fn a_name_without_an_address_is_a_failure_called_dns() {
    let wire = wire_with(&[], Names::new(&[&[]]), &[]);
    let sent = wire.send(outgoing("http://nowhere.example/", 10_000)).await;
    assert!(matches!(sent.fault, Some(Fault::Failed(word)) if word.starts_with("dns: ")));
}

/// A slow name must not take a thread for each attempt that wants it.
#[tokio::test]
async fn a_name_is_looked_up_once_at_a_time() {
    struct Slow {
        asked: AtomicUsize,
        go: tokio::sync::Semaphore,
    }
    #[async_trait]
    impl Resolver for Slow {
        async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let _go = self.go.acquire().await.unwrap();
            Ok(vec!["127.0.0.1".parse().unwrap()])
        }
    }
    let sink = Sink::answering(OK).await;
    let slow = Arc::new(Slow {
        asked: AtomicUsize::new(0),
        go: tokio::sync::Semaphore::new(0),
    });
    let wire = wire_with(&["127.0.0.1/32"], slow.clone(), &[]);
    let url = format!("http://slow.example:{}/", sink.address.port());
    // The first gives up; its look-up goes on, and the others wait for that one.
    let sent = wire.send(outgoing(&url, 50)).await;
    assert!(matches!(sent.fault, Some(Fault::TimedOut(_))));
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (wire, outgoing) = (wire.clone(), outgoing(&url, 10_000));
            tokio::spawn(async move { wire.send(outgoing).await })
        })
        .collect();
    tokio::task::yield_now().await;
    slow.go.add_permits(1);
    for sent in waiting {
        assert_eq!(sent.await.unwrap().status, Some(200));
    }
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_resolver_that_hangs_is_within_the_deadline() {
    struct Hangs;
    #[async_trait]
    impl Resolver for Hangs {
        async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            std::future::pending().await
        }
    }
    let sent = wire_with(&[], Arc::new(Hangs), &[])
        .send(outgoing("http://slow.example/", 100))
        .await;
    assert_eq!(
        sent.fault,
        Some(Fault::TimedOut("timeout_before_headers".to_owned()))
    );
}
