//! Verifies Standard Webhooks signatures, `v1` (HMAC-SHA256, key `whsec_…`) and `v1a` (Ed25519, public key `whpk_…`),
//! from `webhook-*` or `svix-*` headers. Written from the specification, on its own: it judges what the engine signs.

use super::log::Verdict;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::HeaderMap;
use sha2::Sha256;
use std::str::FromStr;

/// Five minutes to either side, as the reference libraries have it.
const TOLERANCE_SECS: i64 = 300;
/// A secret shorter than this is a slip, a longer one is not a secret but a file.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 1..=128;

/// A key that verifies.
#[derive(Clone)]
pub(crate) enum Key {
    /// Shared with the sender.
    Hmac(Vec<u8>),
    /// The sender's public key.
    Ed25519(Box<VerifyingKey>),
}

impl std::fmt::Debug for Key {
    // A secret is never printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hmac(_) => "Key::Hmac",
            Self::Ed25519(_) => "Key::Ed25519",
        })
    }
}

/// Why a text is no key. It never repeats the text, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key is not usable: write `whsec_` and base64 of the shared secret, or `whpk_` and base64 of the public key"
)]
pub(crate) struct KeyError;

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if let Some(public) = text.strip_prefix("whpk_") {
            let bytes: [u8; 32] = STANDARD
                .decode(public)
                .map_err(|_| KeyError)?
                .try_into()
                .map_err(|_| KeyError)?;
            return VerifyingKey::from_bytes(&bytes)
                .map(Box::new)
                .map(Self::Ed25519)
                .map_err(|_| KeyError);
        }
        let secret = STANDARD
            .decode(text.strip_prefix("whsec_").unwrap_or(text))
            .map_err(|_| KeyError)?;
        if SECRET_BYTES.contains(&secret.len()) {
            Ok(Self::Hmac(secret))
        } else {
            Err(KeyError)
        }
    }
}

/// What the headers say of this body. `now` is in Unix seconds.
pub(super) fn verify(keys: &[Key], headers: &HeaderMap, body: &[u8], now: i64) -> Verdict {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let triple = |prefix: &str| {
        let part = |name: &str| header(&format!("{prefix}-{name}"));
        part("id").zip(part("timestamp")).zip(part("signature"))
    };
    let Some(((id, timestamp), signatures)) = triple("webhook").or_else(|| triple("svix")) else {
        return Verdict::Absent;
    };
    let Ok(sent) = timestamp.parse::<i64>() else {
        return Verdict::Invalid;
    };
    let mut signed = format!("{id}.{timestamp}.").into_bytes();
    signed.extend_from_slice(body);
    let matches = |key: &Key| {
        signatures
            .split(' ')
            .any(|signature| key.matches(signature, &signed))
    };
    if !keys.iter().any(matches) {
        return Verdict::Invalid;
    }
    if sent.abs_diff(now) > TOLERANCE_SECS.unsigned_abs() {
        Verdict::Stale
    } else {
        Verdict::Valid
    }
}

impl Key {
    fn matches(&self, signature: &str, signed: &[u8]) -> bool {
        let Some((version, text)) = signature.split_once(',') else {
            return false;
        };
        let Ok(bytes) = STANDARD.decode(text) else {
            return false;
        };
        match (self, version) {
            (Self::Hmac(secret), "v1") => {
                let mac = Hmac::<Sha256>::new_from_slice(secret);
                // Compares in constant time.
                mac.is_ok_and(|mac| mac.chain_update(signed).verify_slice(&bytes).is_ok())
            }
            (Self::Ed25519(public), "v1a") => Signature::from_slice(&bytes)
                .is_ok_and(|signature| public.verify_strict(signed, &signature).is_ok()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &[u8] = b"{\"test\": 2432232314}";
    const SENT: i64 = 1_614_265_330;

    fn headers(prefix: &str, signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("timestamp", "1614265330"),
            ("signature", signature),
        ] {
            let name: hyper::header::HeaderName = format!("{prefix}-{name}").parse().expect("a name");
            headers.insert(name, value.parse().expect("a value"));
        }
        headers
    }

    /// The known answer of the specification.
    const KNOWN: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn the_known_answer_is_valid_under_either_prefix_and_beside_others() {
        let keys = [format!("whsec_{SECRET}").parse::<Key>().expect("a key")];
        for prefix in ["webhook", "svix"] {
            assert_eq!(verify(&keys, &headers(prefix, KNOWN), BODY, SENT), Verdict::Valid);
        }
        let several = format!("v1a,AAAA v1,AAAA {KNOWN} junk");
        assert_eq!(
            verify(&keys, &headers("webhook", &several), BODY, SENT),
            Verdict::Valid
        );
        assert_eq!(
            verify(&keys, &headers("webhook", KNOWN), BODY, SENT + 301),
            Verdict::Stale
        );
    }

    #[test]
    fn what_was_changed_is_invalid_and_what_is_missing_absent() {
        let keys = [SECRET.parse::<Key>().expect("a key")];
        assert_eq!(
            verify(&keys, &headers("webhook", KNOWN), b"{}", SENT),
            Verdict::Invalid
        );
        let other = [STANDARD.encode("another secret").parse::<Key>().expect("a key")];
        assert_eq!(
            verify(&other, &headers("webhook", KNOWN), BODY, SENT),
            Verdict::Invalid
        );
        assert_eq!(verify(&keys, &HeaderMap::new(), BODY, SENT), Verdict::Absent);
    }

    #[test]
    fn an_ed25519_signature_is_verified_by_its_public_key() {
        use ed25519_dalek::{Signer, SigningKey};
        let signing = SigningKey::from_bytes(&[7; 32]);
        let public = format!("whpk_{}", STANDARD.encode(signing.verifying_key().to_bytes()));
        let keys = [public.parse::<Key>().expect("a key")];
        let mut signed = b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.".to_vec();
        signed.extend_from_slice(BODY);
        let signature = format!("v1a,{}", STANDARD.encode(signing.sign(&signed).to_bytes()));
        assert_eq!(
            verify(&keys, &headers("webhook", &signature), BODY, SENT),
            Verdict::Valid
        );
        assert_eq!(
            verify(&keys, &headers("webhook", &signature), b"{}", SENT),
            Verdict::Invalid
        );
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_repeated() {
        for text in ["", "whsec_", "whsec_???", "whpk_AAAA"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }
}
