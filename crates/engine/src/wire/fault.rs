//! What an error of the HTTP client is called in the ledger: stable words, from the chain of its causes.

use super::Fault;
use crate::connector::ConnectError;
use std::error::Error;
use std::io;

/// The fault that an error of the client is.
pub(super) fn fault_of(error: &hyper_util::client::legacy::Error) -> Fault {
    if let Some(connect) = cause::<ConnectError>(error) {
        let word = connect.word();
        return if connect.is_refusal() {
            Fault::Refused(format!("{word}: {connect}"))
        } else {
            Fault::Failed(with_detail(word, connect))
        };
    }
    Fault::Failed(word_of(error).to_owned())
}

fn with_detail(word: &str, error: &ConnectError) -> String {
    match error {
        ConnectError::Dns(detail) => format!("{word}: {detail}"),
        ConnectError::Io(source) | ConnectError::Tls(source) => format!("{word}: {source}"),
        _ => word.to_owned(),
    }
}

fn word_of(error: &(dyn Error + 'static)) -> &'static str {
    if let Some(hyper) = cause::<hyper::Error>(error) {
        if hyper.is_parse_too_large() {
            return "too_large_headers";
        }
        if hyper.is_parse() {
            return "bad_answer";
        }
        // Whether the receiver got the request is not known: an ordinary failure.
        if hyper.is_incomplete_message() {
            return "closed_early";
        }
        // The connection was found closed before the request was written to it.
        if hyper.is_canceled() || hyper.is_closed() {
            return "closed_before_request";
        }
    }
    match cause::<io::Error>(error).map(io::Error::kind) {
        Some(
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe,
        ) => "reset",
        Some(io::ErrorKind::UnexpectedEof) => "closed_early",
        Some(io::ErrorKind::TimedOut) => "connection_timed_out",
        _ => "request_failed",
    }
}

/// The first cause of that type in the chain.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
