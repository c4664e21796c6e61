//! Where an endpoint is: a URL parsed once, at the edge, into a form that can be sent to (field report 22).
//!
//! Leaves the judgement of addresses to [`crate::guard`], at each new connection.

use std::net::IpAddr;
use url::{Host, Url};

/// Longer URLs are refused.
pub const MAX_URL_BYTES: usize = 2048;

/// Why a text is no URL that can be sent to. The message says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Longer than [`MAX_URL_BYTES`].
    #[error("the URL has {0} bytes; at most 2048 are allowed")]
    TooLong(usize),
    /// White space, a control character or a backslash, which a URL parser would silently drop or turn round.
    #[error("the URL holds {found:?} at byte {at}; write it percent-encoded")]
    OddCharacter {
        /// The character.
        found: char,
        /// Where.
        at: usize,
    },
    /// Anything but `http://` or `https://` and a host.
    #[error("the URL must begin with http:// or https:// and a host, such as https://example.com/hook")]
    Scheme,
    /// The parser's own objection.
    #[error("the URL cannot be read: {0}")]
    Unreadable(String),
    /// `user:password@`.
    #[error("the URL holds a user name or password; use a custom header instead")]
    Userinfo,
    /// `#…`.
    #[error("the URL holds a fragment (`#…`), which is never sent; leave it out")]
    Fragment,
    /// A label of the host name is empty.
    #[error("the host name `{0}` has an empty label")]
    EmptyLabel(String),
    /// Port 0, or a port below 1024 that belongs to another protocol.
    #[error("port {0} is not for HTTP; use 80, 443, or 1024 and above")]
    Port(u16),
}

/// A URL that can be sent to, in its canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    canonical: String,
    uri: http::Uri,
    literal: Option<IpAddr>,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it and what would be right.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        check_raw(text)?;
        let url = Url::parse(text).map_err(|error| TargetError::Unreadable(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Userinfo);
        }
        if url.fragment().is_some() {
            return Err(TargetError::Fragment);
        }
        let literal = match url.host().ok_or(TargetError::Scheme)? {
            Host::Ipv4(v4) => Some(IpAddr::V4(v4)),
            Host::Ipv6(v6) => Some(IpAddr::V6(v6)),
            Host::Domain(name) => {
                check_name(name)?;
                None
            }
        };
        match url.port_or_known_default() {
            Some(80 | 443 | 1024..) => {}
            other => return Err(TargetError::Port(other.unwrap_or(0))),
        }
        let canonical = String::from(url);
        if canonical.len() > MAX_URL_BYTES {
            return Err(TargetError::TooLong(canonical.len()));
        }
        // Two parsers must agree on what they see, or the guard could judge one host and the client dial another.
        let uri: http::Uri = canonical
            .parse()
            .map_err(|error: http::uri::InvalidUri| TargetError::Unreadable(error.to_string()))?;
        Ok(Self {
            canonical,
            uri,
            literal,
        })
    }

    /// The form that is stored.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The same for the HTTP client.
    #[must_use]
    pub fn uri(&self) -> &http::Uri {
        &self.uri
    }

    /// The address, when the host is one.
    #[must_use]
    pub fn literal(&self) -> Option<IpAddr> {
        self.literal
    }
}

/// What must be seen before a parser makes it look harmless: the URL standard drops tabs and line ends, turns
/// backslashes round and forgives missing slashes.
fn check_raw(text: &str) -> Result<(), TargetError> {
    if text.len() > MAX_URL_BYTES {
        return Err(TargetError::TooLong(text.len()));
    }
    let odd = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    if let Some((at, found)) = text.char_indices().find(|(_, c)| odd(*c)) {
        return Err(TargetError::OddCharacter { found, at });
    }
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| {
            text.get(..scheme.len())
                .filter(|head| head.eq_ignore_ascii_case(scheme))
                .and_then(|_| text.get(scheme.len()..))
        })
        .ok_or(TargetError::Scheme)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    if authority.is_empty() || authority.starts_with(':') {
        return Err(TargetError::Scheme);
    }
    if authority.contains('@') {
        return Err(TargetError::Userinfo);
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), TargetError> {
    let labels = name.strip_suffix('.').unwrap_or(name);
    if labels.is_empty() || labels.split('.').any(str::is_empty) {
        return Err(TargetError::EmptyLabel(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Guard;

    #[test]
    fn good_urls_are_stored_in_their_canonical_form() {
        for (text, canonical) in [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://Example.COM:443/a?b=c", "https://example.com/a?b=c"),
            ("http://example.com:8080/h", "http://example.com:8080/h"),
            ("http://ex%61mple.com/", "http://example.com/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://example.com/a/../b", "https://example.com/b"),
            ("http://[2606:4700:4700::1111]/", "http://[2606:4700:4700::1111]/"),
        ] {
            assert_eq!(Target::parse(text).unwrap().canonical(), canonical, "{text}");
        }
    }

    #[test]
    fn a_canonical_form_reads_back_as_itself() {
        let once = Target::parse("HTTP://Example.com:80/x y".replace(' ', "%20").as_str()).unwrap();
        assert_eq!(Target::parse(once.canonical()), Ok(once.clone()));
    }

    #[test]
    fn bad_urls_are_refused() {
        let long = format!("https://example.com/{}", "a".repeat(2029));
        for text in [
            "",
            "example.com",
            "ftp://example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "http:127.0.0.1/x",
            "http:/127.0.0.1/x",
            "http:///127.0.0.1/x",
            "http:\\\\127.0.0.1\\x",
            "http://exa\tmple.com/",
            "http://example.com/\r\nX-A: b",
            "http://example.com/ x",
            " http://example.com/",
            "http://example.com/\u{0}",
            "http://user@example.com/",
            "http://user:pw@example.com/",
            "http://@example.com/",
            "http://example.com/#x",
            "http://example.com/#",
            "http://a..b/",
            "http://./",
            "http://.example.com/",
            "http://example.com:0/",
            "http://example.com:25/",
            "http://example.com:65536/",
            "http://[fe80::1%25eth0]/",
            "http://256.1.1.1/",
            "http://1.2.3.4.5/",
            long.as_str(),
        ] {
            assert!(Target::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_longest_url_is_2048_bytes() {
        let text = format!("https://example.com/{}", "a".repeat(2028));
        assert_eq!(text.len(), 2048);
        assert!(Target::parse(&text).is_ok());
    }

    #[test]
    fn odd_spellings_of_loopback_are_seen_as_what_they_are() {
        for host in [
            "2130706433",
            "0177.0.0.1",
            "0x7f.1",
            "127.1",
            "0",
            "127.0.0.1.",
            "①②⑦.⓪.⓪.①",
            "127。0。0。1",
            "0x7f000001",
            "[::ffff:7f00:1]",
            "[::1]",
        ] {
            let target = Target::parse(&format!("http://{host}/")).unwrap();
            let address = target.literal().unwrap();
            assert!(Guard::default().check(address).is_err(), "{host}: {address}");
        }
    }
}
