//! The settings of `serve`: from the command line, else the environment, else a TOML file, else the defaults, which
//! all stand here. An unknown key, a wrong type or a value out of range makes the file unusable.

use contract::Duration;
use ipnet::IpNet;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the API listens when nothing is said.
const LISTEN: &str = "127.0.0.1:8071";
/// Where the store lies when nothing is said.
pub(crate) const STORE: &str = "sqlite:duehook.db";
/// Largest body when nothing is said.
const MAX_BODY: usize = 1024 * 1024;
/// How long a shutdown may take when nothing is said: less than the 30 s that container engines wait.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);

/// How often the ledger is judged when nothing is said.
const AUDIT_EVERY: Duration = Duration::from_secs(60);
/// More often would only be load.
const LEAST_AUDIT_EVERY: Duration = Duration::from_secs(1);
/// Shorter would take away what a person still looks at.
const LEAST_RETAIN: Duration = Duration::from_secs(3600);

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read; check `--config`", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The file says something wrong.
    #[error("the configuration file {} cannot be used: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
    /// A value is wrong.
    #[error("{name}: {reason}")]
    Value { name: &'static str, reason: String },
}

/// Where a store is: `sqlite:FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreRef(pub(crate) PathBuf);

impl FromStr for StoreRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("sqlite:") {
            Some("") => Err("it names no file; write `sqlite:duehook.db`".to_owned()),
            Some(path) => Ok(Self(path.into())),
            None => Err(format!("`{text}` is no store; write `sqlite:FILE`")),
        }
    }
}

impl std::fmt::Display for StoreRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sqlite:{}", self.0.display())
    }
}

/// Which signature headers a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Signatures {
    /// `webhook-…` alone
    Standard,
    /// `svix-…` alone
    Svix,
    /// Both, for receivers that migrate
    Both,
}

/// What is set in one place; the first place that sets a thing wins.
#[derive(Clone, Debug, Default, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    /// The store [default: sqlite:duehook.db]
    #[arg(long, value_name = "STORE", env = "DUEHOOK_STORE")]
    store: Option<String>,
    /// Where the API listens [default: 127.0.0.1:8071]
    #[arg(long, value_name = "ADDRESS", env = "DUEHOOK_LISTEN")]
    listen: Option<String>,
    /// The organisation's contract; without it the stored one, or the embedded default
    #[arg(long, value_name = "FILE", env = "DUEHOOK_CONTRACT")]
    contract: Option<PathBuf>,
    /// A private or loopback range that endpoints may lie in (may be given several times)
    #[arg(long, value_name = "CIDR", env = "DUEHOOK_ALLOW_NET", value_delimiter = ',')]
    allow_net: Option<Vec<String>>,
    /// Which signature headers requests carry [default: both]
    #[arg(long, value_name = "WHICH", env = "DUEHOOK_SIGNATURE_HEADERS")]
    signature_headers: Option<Signatures>,
    /// Largest request body, as 512KiB or 1MiB [default: 1MiB]
    #[arg(long, value_name = "SIZE", env = "DUEHOOK_MAX_BODY")]
    max_body: Option<String>,
    /// How long a shutdown may take [default: 25s]
    #[arg(long, value_name = "DURATION", env = "DUEHOOK_SHUTDOWN_TIMEOUT")]
    shutdown_timeout: Option<String>,
    /// Certificates that endpoints may be signed by, besides the system's (PEM)
    #[arg(long, value_name = "FILE", env = "DUEHOOK_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// Judge the whole ledger beside the engine, with this much time between; `off` for never [default: 1m]
    #[arg(long, value_name = "DURATION", env = "DUEHOOK_AUDIT_EVERY")]
    audit_every: Option<String>,
    /// Take away messages and their ledger rows this long after they are final, as 90d [default: never]
    #[arg(long, value_name = "DURATION", env = "DUEHOOK_RETAIN")]
    retain: Option<String>,
    /// Take away payloads and answers' bodies this long after their message is final [default: never]
    #[arg(long, value_name = "DURATION", env = "DUEHOOK_RETAIN_PAYLOADS")]
    retain_payloads: Option<String>,
    /// What to log: error, warn, info, debug, trace; or per module, as `info,engine=debug` [default: info]
    #[arg(long, value_name = "FILTER", env = "DUEHOOK_LOG")]
    log: Option<String>,
    /// Log JSON, one object a line
    #[arg(long, value_name = "BOOL", env = "DUEHOOK_LOG_JSON", num_args = 0..=1, default_missing_value = "true")]
    log_json: Option<bool>,
}

/// The settings, whole and valid.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) store: StoreRef,
    pub(crate) listen: SocketAddr,
    pub(crate) contract: Option<PathBuf>,
    pub(crate) allow_net: Vec<IpNet>,
    pub(crate) signatures: Signatures,
    pub(crate) max_body: usize,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) ca_file: Option<PathBuf>,
    /// `None`: never.
    pub(crate) audit_every: Option<Duration>,
    /// `None`: for ever.
    pub(crate) retain: Option<Duration>,
    /// `None`: as long as their messages.
    pub(crate) retain_payloads: Option<Duration>,
    pub(crate) log: String,
    pub(crate) log_json: bool,
}

impl Options {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Unreadable, no TOML, an unknown key, a wrong type.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        toml::from_str(&text).map_err(|error| ConfigError::Wrong {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    }

    /// These options, and behind them those of a file.
    pub(crate) fn over(self, file: Self) -> Self {
        Self {
            store: self.store.or(file.store),
            listen: self.listen.or(file.listen),
            contract: self.contract.or(file.contract),
            allow_net: self.allow_net.or(file.allow_net),
            signature_headers: self.signature_headers.or(file.signature_headers),
            max_body: self.max_body.or(file.max_body),
            shutdown_timeout: self.shutdown_timeout.or(file.shutdown_timeout),
            ca_file: self.ca_file.or(file.ca_file),
            audit_every: self.audit_every.or(file.audit_every),
            retain: self.retain.or(file.retain),
            retain_payloads: self.retain_payloads.or(file.retain_payloads),
            log: self.log.or(file.log),
            log_json: self.log_json.or(file.log_json),
        }
    }

    /// Parses everything, with the defaults for what nobody set.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub(crate) fn settle(self) -> Result<Settings, ConfigError> {
        let store = self.store.as_deref().unwrap_or(STORE);
        let listen = self.listen.as_deref().unwrap_or(LISTEN);
        let nets = self.allow_net.unwrap_or_default();
        Ok(Settings {
            store: parse("store", store)?,
            listen: listen.parse().map_err(|_| ConfigError::Value {
                name: "listen",
                reason: format!(
                    "`{listen}` is no address; write an IP address and a port, as 127.0.0.1:8071"
                ),
            })?,
            contract: self.contract,
            allow_net: nets.iter().map(|net| parse_net(net)).collect::<Result<_, _>>()?,
            signatures: self.signature_headers.unwrap_or(Signatures::Both),
            max_body: match self.max_body {
                Some(text) => parse_size(&text).map_err(|reason| ConfigError::Value {
                    name: "max-body",
                    reason,
                })?,
                None => MAX_BODY,
            },
            shutdown_timeout: duration("shutdown-timeout", self.shutdown_timeout)?
                .unwrap_or(SHUTDOWN_TIMEOUT),
            ca_file: self.ca_file,
            audit_every: match self.audit_every.as_deref() {
                Some("off") => None,
                _ => at_least(
                    "audit-every",
                    LEAST_AUDIT_EVERY,
                    duration("audit-every", self.audit_every)?.or(Some(AUDIT_EVERY)),
                )?,
            },
            retain: at_least("retain", LEAST_RETAIN, duration("retain", self.retain)?)?,
            retain_payloads: at_least(
                "retain-payloads",
                LEAST_RETAIN,
                duration("retain-payloads", self.retain_payloads)?,
            )?,
            log: self.log.unwrap_or_else(|| "info".to_owned()),
            log_json: self.log_json.unwrap_or(false),
        })
    }
}

fn parse<T: FromStr<Err = String>>(name: &'static str, text: &str) -> Result<T, ConfigError> {
    text.parse().map_err(|reason| ConfigError::Value { name, reason })
}

/// A duration with its unit.
fn duration(name: &'static str, text: Option<String>) -> Result<Option<Duration>, ConfigError> {
    let parsed = text.map(|text| contract::parse_duration(&text)).transpose();
    parsed.map_err(|error| ConfigError::Value {
        name,
        reason: error.to_string(),
    })
}

fn at_least(
    name: &'static str,
    least: Duration,
    given: Option<Duration>,
) -> Result<Option<Duration>, ConfigError> {
    match given {
        Some(given) if given < least => Err(ConfigError::Value {
            name,
            reason: format!("{given} is less than {least}; write {least} or more"),
        }),
        given => Ok(given),
    }
}

/// A range, or one address.
fn parse_net(text: &str) -> Result<IpNet, ConfigError> {
    let net = text.parse::<IpNet>().ok();
    let net = net.or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from));
    net.ok_or_else(|| ConfigError::Value {
        name: "allow-net",
        reason: format!("`{text}` is no range; write it like 10.0.0.0/8 or 127.0.0.1/32"),
    })
}

/// `1MiB`, `512KiB`, `65536`: at least 1 KiB, at most 64 MiB.
fn parse_size(text: &str) -> Result<usize, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let unit: usize = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        _ => {
            return Err(format!(
                "`{text}` has no unit that is known; write 512KiB or 1MiB"
            ));
        }
    };
    let size = number
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(unit));
    size.filter(|size| (1024..=64 * 1024 * 1024).contains(size))
        .ok_or_else(|| format!("`{text}` is no size from 1KiB to 64MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_bounds() {
        for (text, size) in [
            ("1MiB", Some(1_048_576)),
            ("512KiB", Some(524_288)),
            ("65536", Some(65_536)),
        ] {
            assert_eq!(parse_size(text).ok(), size, "{text}");
        }
        for text in ["", "1MB", "0", "-1", "65MiB", "99999999999999999999", "1 GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_the_defaults() {
        let file: Options = toml::from_str("listen = '0.0.0.0:1'\nmax_body = '2MiB'").unwrap();
        let line = Options {
            listen: Some("127.0.0.1:2".into()),
            ..Options::default()
        };
        let settings = line.over(file).settle().unwrap();
        assert_eq!(settings.listen.port(), 2);
        assert_eq!(settings.max_body, 2 * 1024 * 1024);
        assert_eq!(settings.store.to_string(), STORE);
        assert_eq!(settings.audit_every, Some(AUDIT_EVERY));
        assert_eq!((settings.retain, settings.retain_payloads), (None, None));
        let off: Options = toml::from_str("audit_every = 'off'\nretain = '90d'").unwrap();
        let settings = off.settle().unwrap();
        assert_eq!(settings.audit_every, None);
        assert_eq!(settings.retain, Some(Duration::from_secs(90 * 86_400)));
    }

    #[test]
    fn an_unknown_key_or_a_wrong_value_is_refused() {
        assert!(toml::from_str::<Options>("lissten = 'x'").is_err());
        assert!(toml::from_str::<Options>("max_body = 7").is_err());
        let wrong = |text: &str| {
            toml::from_str::<Options>(text)
                .unwrap()
                .settle()
                .unwrap_err()
                .to_string()
        };
        assert!(wrong("listen = 'localhost'").contains("127.0.0.1:8071"));
        assert!(wrong("store = 'duehook.db'").contains("sqlite:FILE"));
        assert!(wrong("allow_net = ['10.0.0.0/99']").contains("10.0.0.0/8"));
        assert!(wrong("shutdown_timeout = '25'").contains("shutdown-timeout"));
        assert!(wrong("audit_every = '10ms'").contains("1s or more"));
        assert!(wrong("retain = '5m'").contains("1h or more"));
    }
}
