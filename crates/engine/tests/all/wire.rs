//! What receivers do, and what each is called: one request, one answer, within one deadline.

use crate::sink::{Sink, outgoing, read_request, wire};
use engine::wire::{BODY_KEPT_BYTES, Fault, Sent, Wire as _};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// Far longer than anything here takes: where a timeout is not meant, none comes.
const AMPLE: u64 = 10_000;
const SHORT: u64 = 150;

async fn answer_to(bytes: impl Into<Vec<u8>>) -> Sent {
    let sink = Sink::answering(bytes).await;
    let sent = wire().send(outgoing(&sink.url(), AMPLE)).await;
    assert_eq!(sink.requests(), 1);
    sent
}

fn word(sent: &Sent) -> String {
    match &sent.fault {
        None => "whole".to_owned(),
        Some(Fault::Refused(text) | Fault::TimedOut(text) | Fault::Failed(text)) => {
            text.split(':').next().unwrap().to_owned()
        }
    }
}

#[tokio::test]
async fn every_kind_of_answer_has_its_word() {
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    let long_header = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    for (name, bytes, status, expected) in [
        (
            "whole",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            Some(200),
            "whole",
        ),
        ("to the end", "HTTP/1.1 200 OK\r\n\r\nok", Some(200), "whole"),
        ("no body", "HTTP/1.1 204 No Content\r\n\r\n", Some(204), "whole"),
        (
            "error",
            "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n",
            Some(503),
            "whole",
        ),
        (
            "odd status",
            "HTTP/1.1 599 X\r\ncontent-length: 0\r\n\r\n",
            Some(599),
            "whole",
        ),
        (
            "chunked",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            Some(200),
            "whole",
        ),
        (
            "after 1xx",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            Some(200),
            "whole",
        ),
        (
            "101",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            Some(101),
            "whole",
        ),
        ("nothing", "", None, "closed_early"),
        ("status line only", "HTTP/1.1 200 OK\r\n", None, "closed_early"),
        (
            "half a body",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
            None,
            "body_cut",
        ),
        (
            "half a chunk",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nok",
            None,
            "body_cut",
        ),
        (
            "bad chunk",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n",
            None,
            "body_cut",
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
            None,
            "bad_answer",
        ),
        ("HTTP/0.9", "hello", None, "bad_answer"),
        ("bad version", "HTTP/3.0 200 OK\r\n\r\n", None, "bad_answer"),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None, "bad_answer"),
        ("NUL", "HTTP/1.1 200 OK\r\nx: \0\r\n\r\n", None, "bad_answer"),
        ("many headers", many_headers.as_str(), None, "too_large_headers"),
        ("long header", long_header.as_str(), None, "too_large_headers"),
    ] {
        let sent = answer_to(bytes).await;
        assert_eq!(
            (sent.status, word(&sent).as_str()),
            (status, expected),
            "{name}: {sent:?}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_is_a_failure() {
    let sink = Sink::new(|mut stream, requests| async move {
        read_request(&mut stream).await;
        requests.fetch_add(1, Ordering::SeqCst);
        stream.set_zero_linger().unwrap();
    })
    .await;
    let sent = wire().send(outgoing(&sink.url(), AMPLE)).await;
    assert_eq!((word(&sent).as_str(), sink.requests()), ("reset", 1));
}

#[tokio::test]
async fn nobody_listening_is_connect_refused() {
    let sink = Sink::answering("").await;
    let url = sink.url();
    drop(sink);
    tokio::task::yield_now().await;
    let sent = wire().send(outgoing(&url, AMPLE)).await;
    assert_eq!(word(&sent), "connect_refused");
    assert!(matches!(sent.fault, Some(Fault::Failed(_))));
}

#[tokio::test]
async fn one_deadline_covers_headers_and_body() {
    for (name, head, status, expected) in [
        ("silence", "", None, "timeout_before_headers"),
        (
            "headers drip",
            "HTTP/1.1 200 OK\r\nx: ",
            None,
            "timeout_before_headers",
        ),
        (
            "1xx for ever",
            "HTTP/1.1 100 Continue\r\n\r\n",
            None,
            "timeout_before_headers",
        ),
        (
            "body drips",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n",
            Some(200),
            "timeout_in_body",
        ),
    ] {
        let drip = match name {
            "silence" => "",
            "1xx for ever" => "HTTP/1.1 100 Continue\r\n\r\n",
            _ => "x",
        };
        let sink = Sink::new(move |mut stream, _| async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(head.as_bytes()).await;
            // Ends when the other side hangs up; and each byte comes well before the deadline.
            while stream.write_all(drip.as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        let started = tokio::time::Instant::now();
        let sent = wire().send(outgoing(&sink.url(), SHORT)).await;
        let took = started.elapsed();
        assert_eq!((sent.status, word(&sent).as_str()), (status, expected), "{name}");
        assert!(matches!(sent.fault, Some(Fault::TimedOut(_))), "{name}");
        assert!(took >= Duration::from_millis(SHORT), "{name}: {took:?}");
        assert!(took < Duration::from_millis(SHORT + 1000), "{name}: {took:?}");
    }
}

#[tokio::test]
async fn an_endless_body_counts_by_its_status_once_64_kib_are_read() {
    let sink = Sink::new(|mut stream, _| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 16384]).await.is_ok() {}
    })
    .await;
    let sent = wire().send(outgoing(&sink.url(), AMPLE)).await;
    assert_eq!((sent.status, &sent.fault), (Some(200), &None));
    assert_eq!(sent.body.len(), BODY_KEPT_BYTES);
    assert_eq!(BODY_KEPT_BYTES, 8192);
}

#[tokio::test]
async fn a_compressed_body_is_kept_as_it_came() {
    let sent = answer_to(
        &b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00"[..],
    )
    .await;
    assert_eq!(&sent.body[..], b"\x1f\x8b\x08\x00");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Sink::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    for status in [301, 302, 303, 307, 308] {
        let sent = answer_to(format!(
            "HTTP/1.1 {status} Moved\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            elsewhere.url()
        ))
        .await;
        assert_eq!(sent.status, Some(status));
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn retry_after_is_kept_raw_and_bounded() {
    let with = |value: &str| format!("HTTP/1.1 503 No\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n");
    for value in ["120", "-1", "1e12", "Sun, 06 Nov 1994 08:49:37 GMT", "junk"] {
        let sent = answer_to(with(value)).await;
        assert_eq!(sent.retry_after.as_deref(), Some(value));
    }
    let sent = answer_to(with(&"9".repeat(1000))).await;
    assert_eq!(sent.retry_after, Some("9".repeat(128)));
}

/// A client library that repeats a request by itself turns one ledger row into two deliveries (field report 24).
#[tokio::test]
async fn a_request_on_a_connection_that_closes_is_never_sent_again() {
    let sink = Sink::new(|mut stream, requests| async move {
        // Answers once, keeps the connection, and hangs up on the second request without a word.
        for answer in [&b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..], b""] {
            if read_request(&mut stream).await.is_none() {
                return;
            }
            requests.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(answer).await;
        }
    })
    .await;
    let wire = wire();
    let first = wire.send(outgoing(&sink.url(), AMPLE)).await;
    assert_eq!(first.status, Some(200));
    let second = wire.send(outgoing(&sink.url(), AMPLE)).await;
    assert_eq!(
        (sink.connections(), sink.requests()),
        (1, 2),
        "kept alive, and one request a call"
    );
    assert_eq!(word(&second), "closed_early");
}

#[tokio::test]
async fn the_exact_bytes_go_out_with_a_length_and_nothing_that_asks_for_compression() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let sink = Sink::new(move |mut stream, _| {
        let told = told.clone();
        async move {
            let _ = told.send(read_request(&mut stream).await.unwrap());
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    })
    .await;
    let mut outgoing = outgoing(&sink.url(), AMPLE);
    outgoing.body = bytes::Bytes::from_static(b"{\"a\":  1.0 }\n");
    wire().send(outgoing).await;
    let (head, body) = heard.recv().await.unwrap();
    assert_eq!(body, b"{\"a\":  1.0 }\n");
    let head = head.to_lowercase();
    assert!(head.starts_with("post /hook http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-length: 13\r\n") && head.contains("host: 127.0.0.1:"),
        "{head}"
    );
    assert!(
        !head.contains("accept-encoding") && !head.contains("transfer-encoding"),
        "{head}"
    );
}
