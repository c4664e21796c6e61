//! Tokens: `dhk_` and 32 random bytes. Stored and compared as SHA-256 hashes, in constant time; held in memory, so
//! that no call reads the store to know its caller.

use crate::error::ApiError;
use contract::{Instant, TokenId};
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};
use std::sync::{Arc, PoisonError, RwLock};
use store::{Store, Token};
use subtle::ConstantTimeEq;

/// What every token begins with. No `.`: Svix clients would read a region from what follows it.
pub const TOKEN_PREFIX: &str = "dhk_";
const SECRET_BYTES: usize = 32;
/// Shorter texts are refused as tokens given at start: they could be guessed.
const LEAST_TOKEN_CHARS: usize = 16;
const MOST_TOKEN_CHARS: usize = 512;

/// A token just made. Its text exists here and at its owner; the store gets [`NewToken::row`].
pub struct NewToken {
    /// The whole token, to be shown once.
    pub text: String,
    /// What is stored of it.
    pub row: Token,
}

/// Makes a token.
///
/// # Errors
/// The system's random source failed.
pub fn new_token(name: &str, now: Instant) -> std::io::Result<NewToken> {
    let mut secret = [0u8; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, secret);
    let text = format!("{TOKEN_PREFIX}{encoded}");
    let row = Token {
        id: TokenId::at_unix_ms(u64::try_from(now.as_unix_ms()).unwrap_or(0)),
        name: name.to_owned(),
        hash: hash(&text),
        created_at: now,
        revoked_at: None,
    };
    Ok(NewToken { text, row })
}

/// Why a text given at start (`DUEHOOK_TOKEN`) is no token.
#[must_use]
pub fn fault_of_given(text: &str) -> Option<&'static str> {
    if text.len() < LEAST_TOKEN_CHARS {
        Some("it is shorter than 16 characters and could be guessed")
    } else if text.len() > MOST_TOKEN_CHARS {
        Some("it is longer than 512 characters")
    } else if !text.bytes().all(|b| b.is_ascii_graphic()) {
        Some("it holds a space or a character outside ASCII, which a header cannot carry")
    } else {
        None
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Who calls. Stands as `by` in the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The token's name.
    pub(crate) name: Arc<str>,
}

struct Known {
    hash: [u8; 32],
    caller: Caller,
}

/// The tokens that are good now.
pub(crate) struct Tokens {
    /// Given at start, not in the store.
    given: Option<Known>,
    stored: RwLock<Vec<Known>>,
}

impl Tokens {
    /// None but the one given at start, until [`Tokens::reload`].
    pub(crate) fn new(given: Option<&str>) -> Self {
        Self {
            given: given.map(|text| Known {
                hash: hash(text),
                caller: Caller {
                    name: "DUEHOOK_TOKEN".into(),
                },
            }),
            stored: RwLock::new(Vec::new()),
        }
    }

    /// Reads the stored tokens again: at start, and after each change.
    pub(crate) async fn reload(&self, store: &dyn Store) -> store::Result<()> {
        let good = store
            .tokens()
            .await?
            .into_iter()
            .filter(|token| token.revoked_at.is_none());
        let known = good.map(|token| Known {
            hash: token.hash,
            caller: Caller {
                name: token.name.into(),
            },
        });
        *self.stored.write().unwrap_or_else(PoisonError::into_inner) = known.collect();
        Ok(())
    }

    /// True when no token is good: every call would be refused.
    pub(crate) fn is_empty(&self) -> bool {
        let stored = self.stored.read().unwrap_or_else(PoisonError::into_inner);
        self.given.is_none() && stored.is_empty()
    }

    /// Who calls, by the `Authorization` header.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Err(refused(
                "the call has no token; send `Authorization: Bearer dhk_…`",
            ));
        };
        let token = value.to_str().ok().and_then(|text| {
            let (scheme, token) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let Some(token) = token.filter(|token| token.len() <= MOST_TOKEN_CHARS) else {
            return Err(refused(
                "the `Authorization` header is not of the form `Bearer dhk_…`",
            ));
        };
        self.find(&hash(token))
            .ok_or_else(|| refused("the token is unknown or revoked; make one with `duehook token create`"))
    }

    /// Every token is looked at, whichever fits.
    fn find(&self, hash: &[u8; 32]) -> Option<Caller> {
        let stored = self.stored.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for known in self.given.iter().chain(stored.iter()) {
            if bool::from(known.hash.ct_eq(hash)) {
                found = Some(known.caller.clone());
            }
        }
        found
    }
}

fn refused(detail: &str) -> ApiError {
    ApiError::coded(StatusCode::UNAUTHORIZED, "authentication_failed", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_random_and_without_a_dot() {
        let one = new_token("a", Instant::from_unix_ms(1)).unwrap();
        let other = new_token("a", Instant::from_unix_ms(1)).unwrap();
        assert_ne!(one.text, other.text);
        assert_eq!(one.text.len(), TOKEN_PREFIX.len() + 43);
        assert!(!one.text.contains('.'));
        assert_eq!(one.row.hash, hash(&one.text));
    }

    #[test]
    fn a_given_token_is_known_and_anything_else_refused() {
        let tokens = Tokens::new(Some("a-token-of-sixteen-or-more"));
        let mut headers = HeaderMap::new();
        assert_eq!(tokens.caller(&headers).unwrap_err().status().as_u16(), 401);
        for (value, good) in [
            ("Bearer a-token-of-sixteen-or-more", true),
            ("bearer a-token-of-sixteen-or-more", true),
            ("Bearer a-token-of-sixteen-or-mor", false),
            ("Basic a-token-of-sixteen-or-more", false),
            ("a-token-of-sixteen-or-more", false),
            ("Bearer ", false),
        ] {
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            assert_eq!(tokens.caller(&headers).is_ok(), good, "{value}");
        }
    }

    #[test]
    fn a_token_that_could_be_guessed_is_refused_at_start() {
        for text in [
            "",
            "short",
            "with a space in it, long enough",
            "sechzehn-zeichen-ü",
        ] {
            assert!(fault_of_given(text).is_some(), "{text}");
        }
        assert_eq!(fault_of_given("dhk_0123456789abcdef"), None);
    }
}
