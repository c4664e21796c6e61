//! The commands' side of the HTTP API: one server, one token, JSON in and out. Each failure says what happened and
//! what to type next.

use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// The whole of a call: accepting waits for a disk at most.
const CALL_TIME: Duration = Duration::from_secs(30);
/// Longest answer that is read: a page of 250 messages of a mebibyte each would not be a terminal's matter.
const ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// Which server, and as whom.
#[derive(clap::Args, Clone)]
pub(crate) struct ServerArgs {
    /// The running server
    #[arg(
        long,
        value_name = "URL",
        env = "DUEHOOK_SERVER",
        default_value = "http://127.0.0.1:8071"
    )]
    pub(crate) server: String,
    /// The API token (better in the environment than on the command line)
    #[arg(long, value_name = "TOKEN", env = "DUEHOOK_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

/// Why a call was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody listens, or not in time.
    #[error(
        "no answer from {server}: {reason}\n  is `duehook serve` running? start it, or name the right address with \
         `--server URL` or DUEHOOK_SERVER"
    )]
    Unreachable { server: String, reason: String },
    /// The address is none.
    #[error("`{server}` is no server's address; write it like http://127.0.0.1:8071")]
    Address { server: String },
    /// No token was given.
    #[error("no token; set DUEHOOK_TOKEN or give `--token`; `duehook token create --name ME` makes one")]
    NoToken,
    /// The server does not take the token.
    #[error("the server refuses the token: {detail}")]
    Refused { detail: String },
    /// The server answered that it will not do it.
    #[error("the server answered {status}: {detail}")]
    Answer { status: u16, detail: String },
    /// What answers is no Duehook server.
    #[error(
        "{server} answered {status} and no JSON; is it a Duehook server? name the right one with `--server URL`"
    )]
    Stranger { server: String, status: u16 },
}

impl ClientError {
    /// The status the server answered with, if it did.
    pub(crate) const fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(*status),
            _ => None,
        }
    }
}

type Result<T> = std::result::Result<T, ClientError>;

/// A server's API.
pub(crate) struct Client {
    agent: ureq::Agent,
    server: String,
    token: String,
}

impl Client {
    /// Gets ready to call. Nothing is sent yet.
    pub(crate) fn new(args: &ServerArgs) -> Result<Self> {
        let server = args.server.trim_end_matches('/').to_owned();
        let server = server.strip_suffix("/api/v1").unwrap_or(&server).to_owned();
        if !(server.starts_with("http://") || server.starts_with("https://")) {
            return Err(ClientError::Address { server });
        }
        let token = args.token.clone().filter(|token| !token.is_empty());
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(CALL_TIME))
            .user_agent(concat!("duehook/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.into(),
            server,
            token: token.ok_or(ClientError::NoToken)?,
        })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let request = self
            .agent
            .get(self.url(path))
            .header("authorization", self.bearer());
        self.read(request.call())
    }

    pub(crate) fn post(&self, path: &str, body: &impl Serialize) -> Result<Value> {
        self.post_with(path, body, None)
    }

    /// With an idempotency key.
    pub(crate) fn post_with(&self, path: &str, body: &impl Serialize, key: Option<&str>) -> Result<Value> {
        let mut request = self
            .agent
            .post(self.url(path))
            .header("authorization", self.bearer());
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.read(request.send_json(body))
    }

    pub(crate) fn patch(&self, path: &str, body: &impl Serialize) -> Result<Value> {
        let request = self
            .agent
            .patch(self.url(path))
            .header("authorization", self.bearer());
        self.read(request.send_json(body))
    }

    /// Every row of a list, page by page.
    pub(crate) fn all(&self, path: &str) -> Result<Vec<Value>> {
        let mut rows = Vec::new();
        let mut from = String::new();
        loop {
            let page = self.get(&format!("{path}?limit=250{from}"))?;
            if let Some(data) = page["data"].as_array() {
                rows.extend(data.iter().cloned());
            }
            match page["iterator"].as_str() {
                Some(next) if page["done"] == Value::Bool(false) => {
                    from = format!("&iterator={}", escape(next));
                }
                _ => return Ok(rows),
            }
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.server)
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn read(
        &self,
        answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value> {
        let unreachable = |error: ureq::Error| ClientError::Unreachable {
            server: self.server.clone(),
            reason: error.to_string(),
        };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status().as_u16();
        let text = answer
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES)
            .read_to_string()
            .map_err(unreachable)?;
        if text.is_empty() && answer.status().is_success() {
            return Ok(Value::Null);
        }
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            let server = self.server.clone();
            return Err(ClientError::Stranger { server, status });
        };
        match status {
            200..=299 => Ok(value),
            401 => Err(ClientError::Refused {
                detail: detail(&value),
            }),
            _ => Err(ClientError::Answer {
                status,
                detail: detail(&value),
            }),
        }
    }
}

/// What an error body says: one sentence, or one line a problem.
fn detail(body: &Value) -> String {
    match &body["detail"] {
        Value::String(text) => text.clone(),
        Value::Array(issues) => {
            let line = |issue: &Value| {
                let place = issue["loc"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                let place: Vec<&str> = place.collect();
                format!(
                    "\n  {}: {}",
                    place.join("."),
                    issue["msg"].as_str().unwrap_or_default()
                )
            };
            issues.iter().map(line).collect()
        }
        other => other.to_string(),
    }
}

/// An id or uid as a part of a path.
pub(crate) fn escape(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_detail_is_one_sentence_or_one_line_a_problem() {
        assert_eq!(detail(&json!({"code": "x", "detail": "why"})), "why");
        let list = json!({"detail": [{"loc": ["body", "url"], "msg": "no", "type": "value_error"}]});
        assert_eq!(detail(&list), "\n  body.url: no");
    }

    #[test]
    fn an_id_cannot_leave_its_place_in_the_path() {
        assert_eq!(escape("a/../b?c"), "a%2F..%2Fb%3Fc");
    }

    #[test]
    fn without_a_token_or_an_address_it_says_what_to_type() {
        let args = |server: &str, token: Option<&str>| ServerArgs {
            server: server.into(),
            token: token.map(Into::into),
        };
        assert!(matches!(
            Client::new(&args("http://x", None)),
            Err(ClientError::NoToken)
        ));
        assert!(matches!(
            Client::new(&args("localhost:1", Some("t"))),
            Err(ClientError::Address { .. })
        ));
        let client = Client::new(&args("http://x/api/v1/", Some("t"))).unwrap();
        assert_eq!(client.url("/app"), "http://x/api/v1/app");
    }
}
