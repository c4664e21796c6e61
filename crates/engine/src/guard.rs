//! Which addresses may be dialled: global unicast alone, and what `--allow-net` names. Every address of a name is
//! judged at each new connection, so a name that changes its mind, or an odd spelling, gets nowhere.
//!
//! Leaves names, URLs and sockets to [`crate::target`] and [`crate::connector`].

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused: the word in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The address.
    pub address: IpAddr,
    /// What it is: `loopback`, `private`, `link_local`, …
    pub kind: &'static str,
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}", self.address, self.kind)
    }
}

/// The guard: what is global, and what the operator allowed on top.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allowed: Vec<IpNet>,
}

impl Guard {
    /// A guard that also lets these ranges through.
    #[must_use]
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// May this address be dialled?
    ///
    /// # Errors
    /// What kind of address it is, when it is not global and no range allows it.
    pub fn check(&self, address: IpAddr) -> Result<(), Denied> {
        let plain = address.to_canonical();
        let allowed = |net: &IpNet| net.contains(&address) || net.contains(&plain);
        if self.allowed.iter().any(allowed) {
            return Ok(());
        }
        let kind = match address {
            IpAddr::V4(v4) => kind_of_v4(v4),
            IpAddr::V6(v6) => kind_of_v6(v6),
        };
        kind.map_or(Ok(()), |kind| Err(Denied { address, kind }))
    }
}

/// IPv4 ranges that are not global unicast (IANA's special-purpose registry).
const V4: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0], 8, "this_network"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([169, 254, 0, 0], 16, "link_local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmarking"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    // 255.255.255.255 lies in it.
    ([240, 0, 0, 0], 4, "reserved"),
];

fn kind_of_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let within =
        |(net, len, _): &&([u8; 4], u32, &str)| (bits ^ u32::from_be_bytes(*net)).leading_zeros() >= *len;
    V4.iter().find(within).map(|(_, _, kind)| *kind)
}

/// IPv6 ranges within 2000::/3 that are not global unicast, or that carry an IPv4 address we cannot vouch for.
const V6: &[([u16; 3], u32, &str)] = &[
    // Teredo, ORCHID, benchmarking.
    ([0x2001, 0, 0], 23, "reserved"),
    ([0x2001, 0x0db8, 0], 32, "documentation"),
    ([0x2002, 0, 0], 16, "relay"),
    ([0x3fff, 0, 0], 20, "documentation"),
];

fn kind_of_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(v4) = address.to_ipv4_mapped() {
        return kind_of_v4(v4);
    }
    let s = address.segments();
    // The simplest safe rule: global unicast is 2000::/3 and nothing else.
    if s[0] & 0xe000 != 0x2000 {
        return Some(kind_outside(address));
    }
    // ISATAP: the interface id holds an IPv4 address.
    if s[4] & 0xfdff == 0 && s[5] == 0x5efe {
        return Some("relay");
    }
    let head = u64::from_be_bytes(bytes_of([s[0], s[1], s[2], 0]));
    let within = |(net, len, _): &&([u16; 3], u32, &str)| {
        let net = u64::from_be_bytes(bytes_of([net[0], net[1], net[2], 0]));
        (head ^ net).leading_zeros() >= *len
    };
    V6.iter().find(within).map(|(_, _, kind)| *kind)
}

fn kind_outside(address: Ipv6Addr) -> &'static str {
    let first = address.segments()[0];
    match first {
        _ if address.is_loopback() => "loopback",
        _ if address.is_unspecified() => "unspecified",
        _ if first & 0xfe00 == 0xfc00 => "private",
        _ if first & 0xffc0 == 0xfe80 => "link_local",
        _ if first & 0xff00 == 0xff00 => "multicast",
        _ => "reserved",
    }
}

fn bytes_of(segments: [u16; 4]) -> [u8; 8] {
    let mut bytes = [0; 8];
    for (pair, segment) in bytes.chunks_exact_mut(2).zip(segments) {
        pair.copy_from_slice(&segment.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<&'static str> {
        Guard::default()
            .check(text.parse().unwrap())
            .err()
            .map(|denied| denied.kind)
    }

    #[test]
    fn only_global_unicast_passes() {
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2a00:1450::1",
            "3ffe:ffff::1",
            "::ffff:8.8.8.8",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
    }

    #[test]
    fn every_other_range_is_refused_with_its_kind() {
        for (text, word) in [
            ("0.0.0.0", "this_network"),
            ("0.255.255.255", "this_network"),
            ("10.0.0.0", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.0", "shared"),
            ("100.127.255.255", "shared"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.255", "loopback"),
            ("169.254.169.254", "link_local"),
            ("172.16.0.0", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.8", "reserved"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "relay"),
            ("192.168.0.1", "private"),
            ("198.18.0.0", "benchmarking"),
            ("198.19.255.255", "benchmarking"),
            ("198.51.100.9", "documentation"),
            ("203.0.113.9", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.0", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "reserved"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:169.254.169.254", "link_local"),
            ("::ffff:0:127.0.0.1", "reserved"),
            ("64:ff9b::7f00:1", "reserved"),
            ("64:ff9b:1::1", "reserved"),
            ("100::1", "reserved"),
            ("2001::1", "reserved"),
            ("2001:10::1", "reserved"),
            ("2001:1ff:ffff::1", "reserved"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "relay"),
            ("3fff::1", "documentation"),
            ("3fff:fff::1", "documentation"),
            ("5f00::1", "reserved"),
            ("fc00::1", "private"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link_local"),
            ("fec0::1", "reserved"),
            ("ff02::1", "multicast"),
            ("2606:4700::5efe:7f00:1", "relay"),
            ("2606:4700::200:5efe:7f00:1", "relay"),
        ] {
            assert_eq!(kind(text), Some(word), "{text}");
        }
    }

    #[test]
    fn an_allowed_range_lets_its_own_addresses_through_and_no_other() {
        let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
        assert_eq!(guard.check("127.0.0.9".parse().unwrap()), Ok(()));
        assert_eq!(guard.check("::ffff:127.0.0.9".parse().unwrap()), Ok(()));
        assert!(guard.check("::1".parse().unwrap()).is_err());
        assert!(guard.check("10.0.0.1".parse().unwrap()).is_err());
    }
}
