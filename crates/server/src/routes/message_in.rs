//! The body of a message. Read once, without copying or rewriting the payload: the bytes accepted are the bytes
//! signed and sent. Only a body that is refused is read a second time, to say everything that is wrong in it.

use crate::error::{ApiError, shorten};
use crate::fields::{Fields, Given, NAME_CHARS, is_channel, is_name, object};
use bytes::Bytes;
use contract::MessageId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Most channels of a message.
const CHANNELS: usize = 10;

/// `MessageIn`, valid.
#[derive(Debug)]
pub(super) struct MessageIn {
    pub(super) event_id: Option<String>,
    pub(super) event_type: String,
    pub(super) channels: Option<Vec<String>>,
    /// The exact text of the object, out of the request's body.
    pub(super) payload: Bytes,
    /// `application`, as it was given.
    pub(super) application: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    event_id: Option<String>,
    event_type: String,
    #[serde(borrow, alias = "data")]
    payload: &'a RawValue,
    channels: Option<Vec<String>>,
    application: Option<Map<String, Value>>,
    deliver_at: Option<IgnoredAny>,
}

impl MessageIn {
    /// Reads a body.
    ///
    /// # Errors
    /// 400 where it is no JSON, else 422 with everything that is wrong.
    pub(super) fn parse(body: &Bytes) -> Result<Self, ApiError> {
        match serde_json::from_slice::<Wire<'_>>(body) {
            Ok(wire) if is_valid(&wire) => Ok(Self {
                event_id: wire.event_id,
                event_type: wire.event_type,
                channels: wire.channels,
                payload: body.slice_ref(wire.payload.get().as_bytes()),
                application: wire.application,
            }),
            Ok(_) => Err(complain(body, "the message is not valid")),
            Err(error) => Err(complain(body, &error.to_string())),
        }
    }
}

fn is_valid(wire: &Wire<'_>) -> bool {
    is_name(&wire.event_type, NAME_CHARS)
        && wire.payload.get().starts_with('{')
        && wire
            .event_id
            .as_deref()
            .is_none_or(|id| is_name(id, NAME_CHARS) && !id.starts_with(MessageId::PREFIX))
        && wire.channels.as_deref().is_none_or(are_channels)
        && wire.deliver_at.is_none()
}

fn are_channels(channels: &[String]) -> bool {
    let different: BTreeSet<&String> = channels.iter().collect();
    (1..=CHANNELS).contains(&channels.len())
        && different.len() == channels.len()
        && channels.iter().all(|channel| is_channel(channel))
}

/// Says what is wrong, field by field; `otherwise` is said where the fields show nothing.
fn complain(body: &[u8], otherwise: &str) -> ApiError {
    let map = match object(body) {
        Ok(map) => map,
        Err(error) => return error,
    };
    let mut fields = Fields::new(&map);
    let event_type = fields.name("eventType");
    fields.require("eventType", event_type);
    fields.uid("eventId", MessageId::PREFIX);
    fields.channels(false);
    let payload = fields.either("payload", "data");
    match fields.raw(payload) {
        Given::Value(Value::Object(_)) => {}
        Given::Absent => {
            fields.wrong::<()>("payload", "field required: a JSON object");
        }
        given => {
            let found = given.value().map_or_else(|| "null".to_owned(), Value::to_string);
            fields.wrong::<()>(
                "payload",
                format!("found {}; the payload must be a JSON object", shorten(&found)),
            );
        }
    }
    if !matches!(
        fields.raw("application"),
        Given::Absent | Given::Null | Given::Value(Value::Object(_))
    ) {
        fields.wrong::<()>("application", "expected an object with `name` and `uid`");
    }
    if !matches!(fields.raw("deliverAt"), Given::Absent | Given::Null) {
        let msg =
            "messages are sent as soon as they are accepted; leave `deliverAt` out and send it at that time";
        fields.wrong::<()>("deliverAt", msg);
    }
    match fields.finish() {
        Err(error) => error,
        Ok(()) => ApiError::in_body("", otherwise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<MessageIn, ApiError> {
        MessageIn::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_payload_keeps_its_exact_text() {
        for payload in [
            "{}",
            r#"{ "b":1.0,"a" : 1e2, "é":"\u00e9" }"#,
            r#"{"a":{"b":[1,2 ,3]}}"#,
        ] {
            let text = format!(r#" {{"eventType":"a.b","payload":  {payload} , "later":1}}"#);
            assert_eq!(parse(&text).unwrap().payload, payload.as_bytes());
            let older = text.replace("payload", "data");
            assert_eq!(parse(&older).unwrap().payload, payload.as_bytes());
        }
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let refused =
            parse(r#"{"eventType":"a b","payload":[],"eventId":"msg_1","channels":[],"deliverAt":"x"}"#);
        let ApiError::Invalid(issues) = refused.unwrap_err() else {
            panic!("not 422")
        };
        let places: Vec<String> = issues.iter().map(|issue| issue.loc.join("/")).collect();
        assert_eq!(
            places,
            [
                "body/eventType",
                "body/eventId",
                "body/channels",
                "body/payload",
                "body/deliverAt"
            ]
        );
        assert_eq!(issues[1].kind, "invalid_uid_prefix");
    }

    #[test]
    fn what_is_no_json_object_is_refused() {
        for (text, status) in [
            ("", 422),
            ("[]", 422),
            ("null", 422),
            ("{", 400),
            ("{}", 422),
            (r#"{"eventType":"a"}"#, 422),
            (r#"{"payload":{}}"#, 422),
            (r#"{"eventType":"a","payload":null}"#, 422),
            (r#"{"eventType":"a","payload":"{}"}"#, 422),
            (r#"{"eventType":"a","payload":{},"payload":{}}"#, 422),
            (r#"{"eventType":"a","payload":{}} x"#, 400),
            (r#"{"eventType":7,"payload":{}}"#, 422),
            ("{\"eventType\":\"a\",\"payload\":{\"a\":\"\u{1}\"}}", 400),
        ] {
            assert_eq!(parse(text).unwrap_err().status().as_u16(), status, "{text}");
        }
        let bytes = Bytes::from_static(b"{\"eventType\":\"a\",\"payload\":{\"a\":\"\xff\"}}");
        assert_eq!(MessageIn::parse(&bytes).unwrap_err().status().as_u16(), 400);
    }

    #[test]
    fn a_deep_payload_neither_fails_nor_overflows() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
        let text = format!(r#"{{"eventType":"a","payload":{deep}}}"#);
        assert_eq!(parse(&text).unwrap().payload.len(), deep.len());
    }
}
