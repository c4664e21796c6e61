//! The body of an endpoint: `EndpointIn`, `EndpointUpsertIn`, `EndpointPatch`, with our `state` beside `disabled`.

use crate::error::ApiError;
use crate::fields::{Fields, Given};
use contract::EndpointId;
use contract::ledger::EndpointState;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::{Endpoint, EndpointFields};

/// What a body asks for.
pub(super) struct Asked {
    pub(super) fields: EndpointFields,
    /// The state it should be in; `None` leaves it.
    pub(super) state: Option<EndpointState>,
    /// A signing secret, where one may be given.
    pub(super) secret: Option<String>,
}

/// A new endpoint (`old` is `None`) or a replacement. On a replacement an absent uid keeps the old one, custom
/// headers stay (they have a route of their own), and `secret` is not looked at.
pub(super) fn whole(body: &Map<String, Value>, old: Option<&Endpoint>) -> Result<Asked, ApiError> {
    let mut fields = Fields::new(body);
    let url = url(&mut fields);
    let url = fields.require("url", url);
    let description = fields.text("description", 0, 65_536);
    let uid = fields.uid("uid", EndpointId::PREFIX);
    let rate = fields.throttle_rate(false);
    let event_types = fields.event_types(false);
    let channels = fields.channels(false);
    let metadata = fields.metadata();
    let headers = custom_headers(&mut fields);
    let secret = if old.is_none() {
        secret(&mut fields, "secret")
    } else {
        Given::Absent
    };
    let state = state(&mut fields, old.map(|old| old.state), true);
    fields.finish()?;
    Ok(Asked {
        fields: EndpointFields {
            uid: uid.over(old.and_then(|old| old.uid.clone())),
            url: url.unwrap_or_default(),
            description: description.value().unwrap_or_default(),
            event_types: event_types.value(),
            channels: channels.value(),
            throttle_rate: rate.value(),
            metadata: metadata.value().unwrap_or_default(),
            headers: headers
                .value()
                .or_else(|| old.map(|old| old.headers.clone()))
                .unwrap_or_default(),
        },
        state,
        secret: secret.value(),
    })
}

/// A partial change: absent keeps, `null` or an empty list clears.
pub(super) fn partial(body: &Map<String, Value>, old: &Endpoint) -> Result<Asked, ApiError> {
    let mut fields = Fields::new(body);
    let url = url(&mut fields);
    if url == Given::Null {
        fields.wrong::<()>("url", "found null; an endpoint needs a URL");
    }
    let description = fields.text("description", 0, 65_536);
    let uid = fields.uid("uid", EndpointId::PREFIX);
    let rate = fields.throttle_rate(true);
    let event_types = fields.event_types(true);
    let channels = fields.channels(true);
    let metadata = fields.metadata();
    let state = state(&mut fields, Some(old.state), false);
    fields.finish()?;
    Ok(Asked {
        fields: EndpointFields {
            uid: uid.over(old.uid.clone()),
            url: url.over(Some(old.url.clone())).unwrap_or_default(),
            description: description
                .over(Some(old.description.clone()))
                .unwrap_or_default(),
            event_types: event_types.over(old.event_types.clone()),
            channels: channels.over(old.channels.clone()),
            throttle_rate: rate.over(old.throttle_rate),
            metadata: metadata.over(Some(old.metadata.clone())).unwrap_or_default(),
            headers: old.headers.clone(),
        },
        state,
        secret: None,
    })
}

/// `state` and `disabled`. `disabled: true` disables; `disabled: false` enables what is disabled and leaves
/// `draining` alone: a client that knows only `disabled` must not undrain by accident (I4). In a whole body an absent
/// `disabled` means false, as in Svix.
fn state(fields: &mut Fields<'_>, old: Option<EndpointState>, whole: bool) -> Option<EndpointState> {
    let disabled = fields.flag("disabled").value();
    let named = match fields.raw("state") {
        Given::Absent | Given::Null => None,
        Given::Value(value) => {
            let state = value.as_str().and_then(EndpointState::from_word);
            let settable = state.filter(|state| *state != EndpointState::Deleted);
            if settable.is_none() {
                let found = crate::error::shorten(&value.to_string());
                fields.wrong::<()>(
                    "state",
                    format!("found {found}; expected active, draining or disabled"),
                );
            }
            settable
        }
    };
    match (named, disabled) {
        (Some(state), Some(disabled)) if disabled != (state == EndpointState::Disabled) => {
            fields.wrong::<()>(
                "state",
                format!("`state` {state} contradicts `disabled` {disabled}; send one"),
            );
            None
        }
        (Some(state), _) => Some(state),
        (None, Some(true)) => Some(EndpointState::Disabled),
        (None, disabled) => {
            let enable = whole || disabled.is_some();
            match old {
                None => Some(EndpointState::Active),
                Some(EndpointState::Disabled) if enable => Some(EndpointState::Active),
                Some(_) => None,
            }
        }
    }
}

/// A target, checked by the same parser that will send to it, in its canonical form.
fn url(fields: &mut Fields<'_>) -> Given<String> {
    match fields.text("url", 1, 65_536) {
        Given::Value(text) => match crate::target::canonical(&text) {
            Ok(url) => Given::Value(url),
            Err(why) => fields.wrong("url", why),
        },
        given => given,
    }
}

/// A signing secret, checked by the same parser that will sign with it.
pub(super) fn secret(fields: &mut Fields<'_>, field: &str) -> Given<String> {
    match fields.text(field, 1, 512) {
        Given::Value(text) => match crate::target::check_secret(&text) {
            Ok(()) => Given::Value(text),
            // The text itself is never repeated.
            Err(why) => fields.wrong(field, why),
        },
        given => given,
    }
}

/// Custom request headers, each allowed.
pub(super) fn custom_headers(fields: &mut Fields<'_>) -> Given<BTreeMap<String, String>> {
    let given = fields.texts("headers");
    if let Given::Value(headers) = &given {
        for (name, value) in headers {
            if let Err(why) = crate::target::check_header(name, value) {
                fields.wrong::<()>(&format!("headers/{name}"), why);
            }
        }
    }
    given
}
