//! What the demo asks of its server: the Svix routes that a client library would use, and the endpoint's `state`.

use super::server::DemoError;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A client of one server and application.
pub(super) struct Api {
    agent: ureq::Agent,
    base: String,
    token: String,
}

impl Api {
    pub(super) fn new(address: SocketAddr, token: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(std::time::Duration::from_secs(5)))
            .build();
        Self {
            agent: config.into(),
            base: format!("http://{address}/api/v1"),
            token: token.to_owned(),
        }
    }

    /// Sends a request and reads the answer, which must be a success.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, DemoError> {
        let url = format!("{}{path}", self.base);
        let request = match method {
            "PATCH" => self.agent.patch(&url),
            _ => self.agent.post(&url),
        };
        let wrong = |what: String| DemoError::Api(format!("{method} {path}: {what}"));
        let mut answer = request
            .header("authorization", &format!("Bearer {}", self.token))
            .send_json(body)
            .map_err(|error| wrong(error.to_string()))?;
        let text = answer
            .body_mut()
            .read_to_string()
            .map_err(|error| wrong(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(wrong(format!("the server answered {}: {text}", answer.status())));
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    fn id(answer: &Value) -> Result<String, DemoError> {
        let id = answer["id"]
            .as_str()
            .ok_or_else(|| DemoError::Api(format!("an answer without an id: {answer}")))?;
        Ok(id.to_owned())
    }

    /// Creates an application; its id.
    pub(super) fn application(&self, name: &str) -> Result<String, DemoError> {
        Self::id(&self.call("POST", "/app", &json!({ "name": name }))?)
    }

    /// Creates an endpoint; its id.
    pub(super) fn endpoint(
        &self,
        app: &str,
        name: &str,
        url: &str,
        secret: &str,
    ) -> Result<String, DemoError> {
        let body = json!({ "url": url, "description": name, "uid": name, "secret": secret });
        Self::id(&self.call("POST", &format!("/app/{app}/endpoint"), &body)?)
    }

    /// Sends a message; its id. On return it is durable.
    pub(super) fn message(&self, app: &str, number: usize) -> Result<String, DemoError> {
        let body =
            json!({ "eventType": "order.paid", "payload": { "order": number, "amount": 4200 + number } });
        Self::id(&self.call("POST", &format!("/app/{app}/msg"), &body)?)
    }

    /// Sets the state of an endpoint.
    pub(super) fn state(&self, app: &str, endpoint: &str, state: &str) -> Result<(), DemoError> {
        self.call(
            "PATCH",
            &format!("/app/{app}/endpoint/{endpoint}"),
            &json!({ "state": state }),
        )
        .map(|_| ())
    }
}
