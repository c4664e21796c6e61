//! Signatures by Standard Webhooks: `v1` (HMAC-SHA256) for `whsec_` secrets, `v1a` (Ed25519) for `whsk_` keys, over
//! the exact bytes that are sent.
//!
//! Leaves the choice of which secrets are valid now to `config`. Secrets are never printed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contract::Instant;
use ed25519_dalek::{Signer, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

/// 192 bits, the least that Standard Webhooks allows, and what a new secret has.
const NEW_SECRET_BYTES: usize = 24;
/// What Svix accepts on import; Standard Webhooks says 24 to 64.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=75;
const SYMMETRIC: &str = "whsec_";
const ASYMMETRIC: &str = "whsk_";

/// Which names the signature headers go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureHeaders {
    /// `webhook-*`.
    Standard,
    /// `svix-*`, for receivers that have not migrated.
    Svix,
    /// Both.
    #[default]
    Both,
}

impl std::str::FromStr for SignatureHeaders {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "standard" => Ok(Self::Standard),
            "svix" => Ok(Self::Svix),
            "both" => Ok(Self::Both),
            other => Err(format!(
                "`{other}` is no set of signature headers: standard, svix or both"
            )),
        }
    }
}

/// Why a text is no signing secret. Never holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Not base64.
    #[error("the secret is not base64 after its prefix (`whsec_` or `whsk_`)")]
    NotBase64,
    /// Too short or too long.
    #[error("the secret has {0} bytes; `whsec_` takes 24 to 75, `whsk_` 32 or 64")]
    Length(usize),
    /// The two halves of a key pair do not belong together.
    #[error("the `whsk_` secret's public half does not belong to its private half")]
    KeyPair,
}

/// A key, ready to sign.
#[derive(Clone)]
pub struct SignKey(Kind);

#[derive(Clone)]
enum Kind {
    /// The keyed state, so that a signature costs no key schedule.
    Symmetric(Box<Hmac<Sha256>>),
    Asymmetric(Box<SigningKey>),
}

impl std::fmt::Debug for SignKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignKey([hidden])")
    }
}

impl SignKey {
    /// Reads `whsec_…`, `whsk_…`, or bare base64 (a symmetric one).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| SecretError::NotBase64);
        if let Some(text) = text.strip_prefix(ASYMMETRIC) {
            return asymmetric(&decode(text)?);
        }
        let key = decode(text.strip_prefix(SYMMETRIC).unwrap_or(text))?;
        if !SECRET_BYTES.contains(&key.len()) {
            return Err(SecretError::Length(key.len()));
        }
        let mac = Hmac::new_from_slice(&key).map_err(|_| SecretError::Length(key.len()))?;
        Ok(Self(Kind::Symmetric(Box::new(mac))))
    }

    /// Appends `v1,…` or `v1a,…` over `id.timestamp.body`.
    pub fn sign_into(&self, id: &str, timestamp: &str, body: &[u8], out: &mut String) {
        match &self.0 {
            Kind::Symmetric(keyed) => {
                let mut mac = Hmac::clone(keyed);
                for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
                    mac.update(part);
                }
                out.push_str("v1,");
                STANDARD.encode_string(mac.finalize().into_bytes(), out);
            }
            Kind::Asymmetric(key) => {
                let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
                out.push_str("v1a,");
                STANDARD.encode_string(key.sign(&signed).to_bytes(), out);
            }
        }
    }
}

fn asymmetric(bytes: &[u8]) -> Result<SignKey, SecretError> {
    let key = if let Ok(seed) = <[u8; 32]>::try_from(bytes) {
        SigningKey::from_bytes(&seed)
    } else if let Ok(pair) = <[u8; 64]>::try_from(bytes) {
        SigningKey::from_keypair_bytes(&pair).map_err(|_| SecretError::KeyPair)?
    } else {
        return Err(SecretError::Length(bytes.len()));
    };
    Ok(SignKey(Kind::Asymmetric(Box::new(key))))
}

/// A new symmetric secret, `whsec_…`, from the system's randomness.
///
/// # Errors
/// The system has no randomness to give.
pub fn new_secret() -> std::io::Result<String> {
    let mut bytes = [0u8; NEW_SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut text = SYMMETRIC.to_owned();
    STANDARD.encode_string(bytes, &mut text);
    Ok(text)
}

static FAMILIES: [[HeaderName; 3]; 2] = [
    [
        HeaderName::from_static("webhook-id"),
        HeaderName::from_static("webhook-timestamp"),
        HeaderName::from_static("webhook-signature"),
    ],
    [
        HeaderName::from_static("svix-id"),
        HeaderName::from_static("svix-timestamp"),
        HeaderName::from_static("svix-signature"),
    ],
];

impl SignatureHeaders {
    fn families(self) -> &'static [[HeaderName; 3]] {
        match self {
            Self::Standard => &FAMILIES[..1],
            Self::Svix => &FAMILIES[1..],
            Self::Both => &FAMILIES,
        }
    }
}

/// Puts the three signature headers of an attempt that starts at `now` into `headers`: one signature a key.
pub fn sign_headers<'a>(
    names: SignatureHeaders,
    keys: impl Iterator<Item = &'a SignKey>,
    id: &str,
    now: Instant,
    body: &[u8],
    headers: &mut HeaderMap,
) {
    // Seconds, as the specification says; milliseconds here would fail every receiver.
    let timestamp = now.as_unix_secs().to_string();
    let mut signature = String::with_capacity(96);
    for key in keys {
        if !signature.is_empty() {
            signature.push(' ');
        }
        key.sign_into(id, &timestamp, body, &mut signature);
    }
    let texts = [id, &timestamp, &signature];
    // Base62, digits and base64 are always header values.
    let values = texts.map(|text| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("")));
    for family in names.families() {
        for (name, value) in family.iter().zip(&values) {
            headers.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(secret: &str, id: &str, timestamp: &str, body: &str) -> String {
        let mut out = String::new();
        SignKey::parse(secret)
            .unwrap()
            .sign_into(id, timestamp, body.as_bytes(), &mut out);
        out
    }

    #[test]
    fn known_answers() {
        let body = r#"{"test": 2432232314}"#;
        for secret in [
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert_eq!(
                sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body),
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
            );
        }
        assert_eq!(
            sign(
                "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
                "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
                "1649367553",
                r#"{"email":"test@example.com","username":"test_user"}"#
            ),
            "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="
        );
    }

    #[test]
    fn the_public_verifier_accepts_what_is_sent() {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let now = Instant::from_unix_ms(i64::try_from(now).unwrap());
        let (old, new) = (new_secret().unwrap(), new_secret().unwrap());
        let keys = [&new, &old].map(|secret| SignKey::parse(secret).unwrap());
        let body = br#"{"a": 1.0e2,  "b":"\u00e9"}"#;
        let mut headers = HeaderMap::new();
        sign_headers(
            SignatureHeaders::Both,
            keys.iter(),
            "msg_1",
            now,
            body,
            &mut headers,
        );
        for secret in [&old, &new] {
            let verifier = standardwebhooks::Webhook::new(secret).unwrap();
            verifier.verify(body, &headers).unwrap();
            assert!(verifier.verify(b"{}", &headers).is_err());
        }
        let other = standardwebhooks::Webhook::new(&new_secret().unwrap()).unwrap();
        assert!(other.verify(body, &headers).is_err());
        assert_eq!(headers["svix-signature"], headers["webhook-signature"]);
    }

    #[test]
    fn an_ed25519_signature_verifies_with_the_public_half() {
        let seed = [7u8; 32];
        let pair = SigningKey::from_bytes(&seed);
        for secret in [
            format!("whsk_{}", STANDARD.encode(seed)),
            format!("whsk_{}", STANDARD.encode(pair.to_keypair_bytes())),
        ] {
            let signature = sign(&secret, "msg_1", "5", "{}");
            let bytes = STANDARD.decode(signature.strip_prefix("v1a,").unwrap()).unwrap();
            let signature = ed25519_dalek::Signature::from_slice(&bytes).unwrap();
            pair.verifying_key()
                .verify_strict(b"msg_1.5.{}", &signature)
                .unwrap();
        }
    }

    #[test]
    fn bad_secrets_are_refused_and_never_printed() {
        let bytes = |n: usize| format!("whsec_{}", STANDARD.encode(vec![1; n]));
        for n in [0, 23, 76] {
            assert_eq!(
                SignKey::parse(&bytes(n)).err(),
                Some(SecretError::Length(n)),
                "{n}"
            );
        }
        for n in [24, 64, 75] {
            assert!(SignKey::parse(&bytes(n)).is_ok(), "{n}");
        }
        assert_eq!(SignKey::parse("whsec_%").err(), Some(SecretError::NotBase64));
        let mut pair = SigningKey::from_bytes(&[7; 32]).to_keypair_bytes();
        pair[40] ^= 1;
        let text = format!("whsk_{}", STANDARD.encode(pair));
        assert_eq!(SignKey::parse(&text).err(), Some(SecretError::KeyPair));
        let key = SignKey::parse(&bytes(24)).unwrap();
        assert_eq!(format!("{key:?}"), "SignKey([hidden])");
    }

    #[test]
    fn new_secrets_differ_and_have_192_bits() {
        let (a, b) = (new_secret().unwrap(), new_secret().unwrap());
        assert_ne!(a, b);
        assert_eq!(STANDARD.decode(&a["whsec_".len()..]).unwrap().len(), 24);
    }

    #[test]
    fn the_headers_go_by_the_names_asked_for() {
        let key = SignKey::parse(&new_secret().unwrap()).unwrap();
        for (names, standard, svix) in [
            (SignatureHeaders::Standard, true, false),
            (SignatureHeaders::Svix, false, true),
            (SignatureHeaders::Both, true, true),
        ] {
            let mut headers = HeaderMap::new();
            let now = Instant::from_unix_ms(1_614_265_330_999);
            sign_headers(names, [&key].into_iter(), "msg_1", now, b"{}", &mut headers);
            for part in ["id", "timestamp", "signature"] {
                assert_eq!(headers.contains_key(format!("webhook-{part}")), standard);
                assert_eq!(headers.contains_key(format!("svix-{part}")), svix);
            }
            let timestamp = headers.get("webhook-timestamp").or(headers.get("svix-timestamp"));
            assert_eq!(timestamp.unwrap(), "1614265330", "seconds");
        }
    }
}
