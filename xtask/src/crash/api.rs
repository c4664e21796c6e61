//! One HTTP/1.1 request over one connection, in the plainest way: the harness must not share a client with the product.

use crate::{Error, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Long enough for a commit, short enough to notice a kill.
const DEADLINE: Duration = Duration::from_secs(5);

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: String,
}

impl Answer {
    /// A text field of the JSON body.
    pub(crate) fn text(&self, field: &str) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        Some(body[field].as_str()?.to_owned())
    }

    /// The same, or an error that shows the whole answer.
    pub(crate) fn require(&self, field: &str) -> Result<String> {
        let shown = || {
            Error::Found(format!(
                "no `{field}` in an answer {}: {}",
                self.status, self.body
            ))
        };
        self.text(field).ok_or_else(shown)
    }
}

/// Asks once. Any fault of the connection is an error, and so is an answer that ends too soon.
pub(crate) fn call(address: SocketAddr, token: &str, method: &str, path: &str, body: &str) -> Result<Answer> {
    ask(address, token, method, path, body).map_err(|error| Error::Program {
        command: format!("{method} {path}"),
        reason: error.to_string(),
    })
}

fn ask(address: SocketAddr, token: &str, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: \
         application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    parse(&answer)
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the answer is incomplete"))
}

/// Status and body; none when the body is shorter than announced.
fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let announced = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let whole = announced.is_none_or(|length| body.len() >= length);
    whole.then(|| Answer {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_none() {
        let answer =
            parse("HTTP/1.1 202 Accepted\r\nContent-Length: 12\r\n\r\n{\"id\":\"m-1\"}").expect("whole");
        assert_eq!((answer.status, answer.text("id").as_deref()), (202, Some("m-1")));
        assert!(parse("HTTP/1.1 202 Accepted\r\nContent-Length: 12\r\n\r\n{\"id\":").is_none());
        assert!(parse("HTTP/1.1 202 Acc").is_none());
    }
}
