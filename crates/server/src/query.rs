//! The query string: parsed once into pairs, read by name. Unknown names are ignored; a list may come in the four
//! forms that clients use (`a=x,y`, repeated, `a[]=`, `a[1]=`).

use crate::error::{ApiError, Issue, shorten};
use crate::fields::parse_time;
use axum::extract::FromRequestParts;
use contract::Instant;
use http::request::Parts;

/// The query of a request.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl Query {
    /// Reads a query string. A `%` that is no escape, or bytes that are not UTF-8, make it unreadable (400).
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        if !escapes_are_whole(text) {
            return Err(ApiError::unreadable(
                "the query string cannot be read: each `%` must be followed by two hex digits that give UTF-8",
            ));
        }
        Ok(Self(
            url::form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        ))
    }

    /// The last value of a name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// A switch: `true` or `false`.
    pub(crate) fn flag(&self, name: &str, otherwise: bool) -> Result<bool, ApiError> {
        match self.text(name) {
            None | Some("") => Ok(otherwise),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(found) => Err(wrong(name, found, "true or false")),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn number(
        &self,
        name: &str,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        let Some(found) = self.text(name) else {
            return Ok(None);
        };
        let number = found.parse().ok().filter(|n| bounds.contains(n));
        let (least, most) = (bounds.start(), bounds.end());
        number
            .map(Some)
            .ok_or_else(|| wrong(name, found, &format!("a whole number from {least} to {most}")))
    }

    /// A moment.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Instant>, ApiError> {
        self.text(name)
            .map(|found| {
                parse_time(found).ok_or_else(|| wrong(name, found, "a time such as 2026-01-31T12:00:00Z"))
            })
            .transpose()
    }

    /// A list, in whichever form it came; `None` when it is not there.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<&str>> {
        let named = |key: &str| {
            let rest = key.strip_prefix(name)?;
            let index = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            (rest.is_empty() || index.is_some_and(|i| i.bytes().all(|b| b.is_ascii_digit()))).then_some(())
        };
        let values: Vec<&str> = self
            .0
            .iter()
            .filter(|(key, _)| named(key).is_some())
            .flat_map(|(_, value)| value.split(','))
            .filter(|value| !value.is_empty())
            .collect();
        (!values.is_empty()).then_some(values)
    }
}

/// 422 for one value of the query.
pub(crate) fn wrong(name: &str, found: &str, due: &str) -> ApiError {
    let msg = format!("found `{}`; expected {due}", shorten(found));
    ApiError::Invalid(vec![Issue::new("query", name, msg)])
}

fn escapes_are_whole(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_hexdigit());
            if !(hex(bytes.next()) && hex(bytes.next())) {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_all_four_forms() {
        for text in ["t=a,b", "t=a&t=b", "t[]=a&t[]=b", "t[0]=a&t[1]=b", "t=a%2Cb&u=c"] {
            let query = Query::parse(text).unwrap();
            assert_eq!(query.list("t"), Some(vec!["a", "b"]), "{text}");
        }
        assert_eq!(Query::parse("t=").unwrap().list("t"), None);
    }

    #[test]
    fn a_broken_escape_is_400_and_a_wrong_value_422() {
        for text in ["a=%", "a=%4", "a=%zz"] {
            assert_eq!(Query::parse(text).unwrap_err().status().as_u16(), 400, "{text}");
        }
        for text in ["limit=0", "limit=251", "limit=x", "limit=-1", "limit="] {
            let query = Query::parse(text).unwrap();
            assert_eq!(
                query.number("limit", 1..=250).unwrap_err().status().as_u16(),
                422,
                "{text}"
            );
        }
    }
}
