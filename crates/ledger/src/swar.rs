//! Reading eight bytes at a time: where a cell ends, and what an integer says. A fast way for the common row; whatever
//! it does not recognise is left to the plain reader, which also words the errors.

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW_SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}

/// The high bit of each byte that is zero, and no other bit.
#[inline]
const fn zero_bytes(word: u64) -> u64 {
    !(((word & LOW_SEVEN) + LOW_SEVEN) | word | LOW_SEVEN)
}

/// How many whole bytes lie before the lowest bit set.
#[inline]
fn bytes_before(mask: u64) -> usize {
    usize::try_from(mask.trailing_zeros() / 8).unwrap_or(0)
}

/// The first tab or newline from `at` on; none near the end of the bytes, where fewer than eight are left.
#[inline]
pub(crate) fn separator(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let word = word(bytes, at)?;
        let found = zero_bytes(word ^ (ONES * 0x09)) | zero_bytes(word ^ (ONES * 0x0a));
        if found != 0 {
            return Some(at + bytes_before(found));
        }
        at += 8;
    }
}

/// Up to 16 digits from `at` on, and where they end; none for anything else.
#[inline]
pub(crate) fn digits(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let (high, count) = up_to_eight(word(bytes, at)?);
    match count {
        0 => None,
        1..8 => Some((high, at + count)),
        _ => {
            let (low, more) = up_to_eight(word(bytes, at + 8)?);
            let scale = *[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000].get(more)?;
            Some((high * scale + low, at + 8 + more))
        }
    }
}

/// The digits that a word begins with: their value and their number.
#[inline]
fn up_to_eight(word: u64) -> (i64, usize) {
    let values = word ^ (ONES * 0x30);
    // A byte is a digit exactly when it and it + 6 stay below 16.
    let other = (values | ((values & LOW_SEVEN) + ONES * 0x06)) & (ONES * 0xf0);
    let count = if other == 0 { 8 } else { bytes_before(other) };
    if count == 0 {
        return (0, 0);
    }
    // The digits move to the top, behind leading zeros; then pairs, fours and eights are put together.
    let values = values << (64 - 8 * count);
    let pairs = (values & (ONES * 0x0f)).wrapping_mul(10 << 8 | 1) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(100 << 16 | 1) >> 16;
    let eight = (fours & 0x0000_ffff_0000_ffff).wrapping_mul(10_000 << 32 | 1) >> 32;
    (i64::try_from(eight).unwrap_or(0), count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_end_where_something_else_begins() {
        let text = b"0\t7\t12345678\t1234567890123456-99999999x:/1\t        ";
        for (at, want) in [
            (0, Some((0, 1))),
            (1, None),
            (2, Some((7, 3))),
            (4, Some((12_345_678, 12))),
            (30, Some((99_999_999, 38))),
            (38, None),
            (39, None),
            (40, None),
            (41, Some((1, 42))),
        ] {
            assert_eq!(digits(text, at), want, "{at}");
        }
        // Sixteen digits are left to the plain reader, as is the end of the bytes.
        assert_eq!(digits(text, 13), None);
        assert_eq!(digits(b"1234567", 0), None);
    }

    proptest! {
        #[test]
        fn a_separator_is_the_first_tab_or_newline(mut padded in proptest::collection::vec(any::<u8>(), 0..64)) {
            padded.extend_from_slice(b"\t       ");
            let want = padded.iter().position(|byte| matches!(byte, b'\t' | b'\n'));
            prop_assert_eq!(separator(&padded, 0), want);
        }

        #[test]
        fn digits_read_what_the_plain_reader_reads(n in 0_i64..1_000_000_000_000_000, tail in any::<[u8; 16]>()) {
            let mut bytes = n.to_string().into_bytes();
            let end = bytes.len();
            bytes.push(b'\t');
            bytes.extend(tail);
            prop_assert_eq!(digits(&bytes, 0), Some((n, end)));
        }

        #[test]
        fn any_eight_bytes_are_told_apart(bytes in any::<[u8; 8]>()) {
            let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = bytes[..count].iter().fold(0, |n, byte| n * 10 + i64::from(byte - b'0'));
            prop_assert_eq!(up_to_eight(u64::from_le_bytes(bytes)), (value, count));
        }
    }
}
