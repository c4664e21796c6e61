//! Ids: a prefix that says what it names and 27 base62 characters that sort by time.
//!
//! The 128 bits are UUIDv7, made by the caller, so that a write whose fate is unknown can be repeated. The text
//! form has the length that Svix clients check (`^app_[A-Za-z0-9]{27}$`) and never holds a `.` (Standard Webhooks).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^22 > 2^128, and the other five characters are leading zeros: the length is the clients', not ours.
const LEN: usize = 27;

/// Why a text is no id of the kind wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not an id of this kind: expected `{prefix}` and 27 letters or digits")]
pub struct IdError {
    /// The text found.
    pub found: String,
    /// The prefix that was due.
    pub prefix: &'static str,
}

fn write_base62(mut n: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut out = [b'0'; LEN];
    for slot in out.iter_mut().rev() {
        *slot = DIGITS[usize::try_from(n % 62).unwrap_or(0)];
        n /= 62;
    }
    f.write_str(std::str::from_utf8(&out).map_err(|_| fmt::Error)?)
}

fn read_base62(text: &str) -> Option<u128> {
    if text.len() != LEN {
        return None;
    }
    text.bytes().try_fold(0u128, |n, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'A'..=b'Z' => byte - b'A' + 10,
            b'a'..=b'z' => byte - b'a' + 36,
            _ => return None,
        };
        n.checked_mul(62)?.checked_add(u128::from(digit))
    })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// What every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;
            /// The id of these 128 bits.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self { Self(bits) }
            /// The 128 bits.
            #[must_use]
            pub const fn bits(self) -> u128 { self.0 }
            /// A new id for something made at this Unix millisecond; ids sort by it.
            #[must_use]
            pub fn at_unix_ms(ms: u64) -> Self {
                let random = uuid::Uuid::new_v4().into_bytes();
                let mut tail = [0u8; 10];
                tail.copy_from_slice(&random[6..]);
                Self(uuid::Builder::from_unix_timestamp_millis(ms, &tail).into_uuid().as_u128())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                write_base62(self.0, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, f) }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    .and_then(read_base62)
                    .map(Self)
                    .ok_or_else(|| IdError { found: text.chars().take(64).collect(), prefix: $prefix })
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.collect_str(self) }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// An application: one customer of the sender.
    AppId,
    "app_"
);
id!(
    /// An endpoint: one URL of an application.
    EndpointId,
    "ep_"
);
id!(
    /// A message: what a caller sent.
    MessageId,
    "msg_"
);
id!(
    /// An attempt: one request.
    AttemptId,
    "atmpt_"
);
id!(
    /// An API token's public half.
    TokenId,
    "tok_"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_length_that_svix_clients_check() {
        assert_eq!(AppId::at_unix_ms(1_700_000_000_000).to_string().len(), 31);
        assert_eq!(EndpointId::from_bits(u128::MAX).to_string().len(), 30);
        assert_eq!(
            AttemptId::from_bits(0).to_string(),
            "atmpt_000000000000000000000000000"
        );
    }

    #[test]
    fn text_and_bits_agree_and_nonsense_is_refused() {
        for bits in [0, 1, 61, 62, u128::MAX, u128::MAX - 1] {
            let id = MessageId::from_bits(bits);
            assert_eq!(id.to_string().parse::<MessageId>(), Ok(id));
        }
        for text in [
            "",
            "msg_",
            "msg_zzzzzzzzzzzzzzzzzzzzzzzzzzz",
            "app_000000000000000000000000000",
            "msg_00000000000000000000000000é",
        ] {
            assert!(text.parse::<MessageId>().is_err(), "{text}");
        }
    }

    #[test]
    fn ids_sort_by_time() {
        assert!(MessageId::at_unix_ms(1_000) < MessageId::at_unix_ms(1_001));
        assert!(MessageId::at_unix_ms(1_000).to_string() < MessageId::at_unix_ms(1_001).to_string());
    }
}
