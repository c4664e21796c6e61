//! What the engine will and will not do with a URL, a secret, a header: asked of the engine's own parsers, so that
//! nothing is accepted here that cannot be sent later.

/// Stand-ins until the engine is here.
pub(crate) fn canonical(url: &str) -> Result<String, String> {
    url::Url::parse(url)
        .map(|u| u.to_string())
        .map_err(|e| e.to_string())
}
pub(crate) fn check_secret(_text: &str) -> Result<(), String> {
    Ok(())
}
pub(crate) fn new_secret() -> std::io::Result<String> {
    Ok(String::new())
}
pub(crate) fn check_header(_name: &str, _value: &str) -> Result<(), String> {
    Ok(())
}
