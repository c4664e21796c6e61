//! Custom request headers: which may be set, so that none can replace a signature or steer the connection (field
//! report 21).

use http::{HeaderName, HeaderValue};

/// More are refused.
pub const MAX_CUSTOM_HEADERS: usize = 20;
/// Names and values together.
pub const MAX_CUSTOM_HEADER_BYTES: usize = 4096;

/// Names that the sender or HTTP itself owns.
const RESERVED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "duehook-attempt",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];
/// Families of them.
const RESERVED_PREFIXES: &[&str] = &["webhook-", "svix-", "proxy-"];

/// Why a header cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not a header name.
    #[error("`{0}` is no header name: letters, digits and !#$%&'*+-.^_`|~ alone")]
    Name(String),
    /// Not a header value.
    #[error("the value of `{0}` holds a control character or line end")]
    Value(String),
    /// A name that is not free.
    #[error("`{0}` is reserved: it is set by the sender or by HTTP itself")]
    Reserved(String),
    /// Too many.
    #[error("{0} custom headers; at most 20 are allowed")]
    TooMany(usize),
    /// Too long.
    #[error("the custom headers have {0} bytes together; at most 4096 are allowed")]
    TooLong(usize),
}

/// Reads one custom header.
///
/// # Errors
/// Why it cannot be set.
pub fn check_custom_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HeaderError> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderError::Name(name.to_owned()))?;
    let lower = parsed.as_str();
    if RESERVED.contains(&lower) || RESERVED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) {
        return Err(HeaderError::Reserved(lower.to_owned()));
    }
    let value =
        HeaderValue::from_bytes(value.as_bytes()).map_err(|_| HeaderError::Value(lower.to_owned()))?;
    Ok((parsed, value))
}

/// Reads all custom headers of an endpoint.
///
/// # Errors
/// Why one, or all together, cannot be set.
pub fn check_custom_headers<'a>(
    headers: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<Vec<(HeaderName, HeaderValue)>, HeaderError> {
    let mut bytes = 0usize;
    let mut checked = Vec::new();
    for (name, value) in headers {
        bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
        checked.push(check_custom_header(name, value)?);
    }
    if checked.len() > MAX_CUSTOM_HEADERS {
        return Err(HeaderError::TooMany(checked.len()));
    }
    if bytes > MAX_CUSTOM_HEADER_BYTES {
        return Err(HeaderError::TooLong(bytes));
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_header_of_ones_own_passes() {
        for name in ["X-Api-Key", "authorization", "x-webhook", "accept"] {
            assert!(check_custom_header(name, "value é").is_ok(), "{name}");
        }
    }

    #[test]
    fn signature_and_connection_headers_are_reserved() {
        for name in [
            "Host",
            "Content-Length",
            "content-type",
            "Transfer-Encoding",
            "connection",
            "te",
            "trailer",
            "upgrade",
            "expect",
            "proxy-authorization",
            "Webhook-Signature",
            "webhook-id",
            "SVIX-signature",
            "duehook-attempt",
            "accept-encoding",
        ] {
            let found = check_custom_header(name, "x");
            assert_eq!(found, Err(HeaderError::Reserved(name.to_lowercase())), "{name}");
        }
    }

    #[test]
    fn nothing_breaks_out_of_its_line() {
        for (name, value) in [
            ("x-a", "b\r\nx-c: d"),
            ("x-a", "b\n"),
            ("x-a", "\0"),
            ("x a", "b"),
            ("x-a:", "b"),
            ("", "b"),
            ("x-é", "b"),
        ] {
            assert!(check_custom_header(name, value).is_err(), "{name:?} {value:?}");
        }
    }

    #[test]
    fn at_most_20_headers_and_4096_bytes() {
        let many = |n: usize| -> BTreeMap<String, String> {
            (0..n).map(|i| (format!("x-{i}"), String::new())).collect()
        };
        assert!(check_custom_headers(many(20).iter()).is_ok());
        assert_eq!(
            check_custom_headers(many(21).iter()),
            Err(HeaderError::TooMany(21))
        );
        let long = |n: usize| BTreeMap::from([("x".to_owned(), "v".repeat(n))]);
        assert!(check_custom_headers(long(4095).iter()).is_ok());
        assert_eq!(
            check_custom_headers(long(4096).iter()),
            Err(HeaderError::TooLong(4097))
        );
    }
}
