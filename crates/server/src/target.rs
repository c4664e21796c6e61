//! What the engine will and will not do with a URL, a secret, a header: asked of the engine's own parsers, so that
//! nothing is accepted here that cannot be sent later.

use engine::header::check_custom_header;
use engine::sign::SignKey;
use engine::target::Target;

/// The canonical form of a URL that can be sent to, or what is wrong with it.
pub(crate) fn canonical(url: &str) -> Result<String, String> {
    let target = Target::parse(url).map_err(|error| error.to_string())?;
    Ok(target.canonical().to_owned())
}

/// Whether a text can sign, or why not; the reason never holds the text.
pub(crate) fn check_secret(text: &str) -> Result<(), String> {
    SignKey::parse(text).map(drop).map_err(|error| error.to_string())
}

/// A new secret from the system's randomness.
pub(crate) fn new_secret() -> std::io::Result<String> {
    engine::sign::new_secret()
}

/// Whether a custom header can be set, or why not.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    check_custom_header(name, value)
        .map(drop)
        .map_err(|error| error.to_string())
}
