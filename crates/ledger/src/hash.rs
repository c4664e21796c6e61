//! Two hashes: SHA-256, by which a report names its inputs, and a fast one for tables and the id check.

use sha2::{Digest, Sha256};
use std::hash::{BuildHasherDefault, Hasher};

/// A SHA-256 in lower-case hex.
pub type Sha256Hex = String;

/// The SHA-256 of bytes that are at hand as a whole.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> Sha256Hex {
    let mut hash = Sha256::new();
    hash.update(bytes);
    hex(hash)
}

pub(crate) fn hex(hash: Sha256) -> Sha256Hex {
    use std::fmt::Write as _;
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Odd, and with its bits well mixed: the fraction of the golden ratio, and of the square root of three.
const K: u64 = 0x9e37_79b9_7f4a_7c15;
const K2: u64 = 0xbb67_ae85_84ca_a73b;

/// 64 bits of a text. Not secret: where equality counts, the texts behind equal hashes are compared.
#[inline]
pub(crate) fn fast(bytes: &[u8]) -> u64 {
    let mut h = K ^ u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        h = mix(h ^ u64::from_le_bytes(eight), K);
    }
    let rest = words
        .remainder()
        .iter()
        .fold(0, |tail, byte| tail << 8 | u64::from(*byte));
    mix(mix(h ^ rest, K2), K)
}

/// Multiplies to 128 bits and folds both halves.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(product >> 64).unwrap_or(0);
    low ^ high
}

/// [`fast`] for the standard tables, keyed by byte strings.
#[derive(Default)]
pub(crate) struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0, K2) ^ fast(bytes);
    }
    // The length of a slice comes as a number and adds nothing to `fast`, which counts it already.
    fn write_usize(&mut self, _length: usize) {}
}

pub(crate) type FastBuild = BuildHasherDefault<FastHasher>;

/// For tables keyed by a [`fast`] hash: it is hashed already.
#[derive(Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = fast(bytes);
    }
}
