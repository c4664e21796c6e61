//! Rows of a tab-separated file: a header of exactly the columns, then as many cells a row; UTF-8, no NUL, integers of
//! 64 bits, nothing guessed.

use super::lines::Lines;
use crate::facts::{FactsError, quoted_bytes};
use std::path::Path;

/// A table of `N` columns.
pub(super) struct Table<const N: usize> {
    lines: Lines,
    columns: &'static [&'static str; N],
}

/// A row, cut at its tabs.
pub(super) struct Row<'a, const N: usize> {
    name: &'a str,
    columns: &'static [&'static str; N],
    pub(super) line: u64,
    cells: [&'a str; N],
}

impl<const N: usize> Table<N> {
    pub(super) fn open(path: &Path, columns: &'static [&'static str; N]) -> Result<Self, FactsError> {
        let mut lines = Lines::open(path)?;
        let right = || format!("a header with the columns {}, tab-separated", columns.join(" "));
        let header = lines.next()?.map(|(_, header)| header.to_vec());
        let name = lines.name().to_owned();
        match header {
            None => Err(FactsError::new(&name, None, "an empty file", right())),
            Some(header)
                if header
                    .split(|byte| *byte == b'\t')
                    .eq(columns.iter().map(|name| name.as_bytes())) =>
            {
                Ok(Self { lines, columns })
            }
            Some(header) => Err(FactsError::new(&name, Some(1), quoted_bytes(&header), right())),
        }
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<Row<'_, N>>, FactsError> {
        let columns = self.columns;
        match self.lines.next_named()? {
            None => Ok(None),
            Some((name, line, bytes)) => Row::cut(name, columns, line, bytes).map(Some),
        }
    }
}

impl<'a, const N: usize> Row<'a, N> {
    fn cut(
        name: &'a str,
        columns: &'static [&'static str; N],
        line: u64,
        bytes: &'a [u8],
    ) -> Result<Self, FactsError> {
        let wrong = |found: String, right: &str| Err(FactsError::new(name, Some(line), found, right));
        let Ok(text) = std::str::from_utf8(bytes) else {
            return wrong(format!("{}, which is no UTF-8", quoted_bytes(bytes)), "UTF-8");
        };
        if memchr::memchr(0, bytes).is_some() {
            return wrong("a NUL".to_owned(), "text");
        }
        let (mut cells, mut found, mut begin) = ([""; N], 0, 0);
        for end in memchr::memchr_iter(b'\t', bytes).chain([bytes.len()]) {
            if let Some(cell) = cells.get_mut(found) {
                *cell = text.get(begin..end).unwrap_or_default();
            }
            found += 1;
            begin = end + 1;
        }
        if found != N {
            return wrong(format!("{found} columns"), &format!("{N}: {}", columns.join(" ")));
        }
        Ok(Self {
            name,
            columns,
            line,
            cells,
        })
    }

    pub(super) const fn text(&self, column: usize) -> &'a str {
        self.cells[column]
    }

    /// An id: any text but none.
    pub(super) fn id(&self, column: usize) -> Result<&'a str, FactsError> {
        match self.text(column) {
            "" => Err(self.wrong(column, "a text that is not empty")),
            id => Ok(id),
        }
    }

    /// An integer of 64 bits, not below `least`.
    pub(super) fn integer(&self, column: usize, least: i64) -> Result<i64, FactsError> {
        integer(self.text(column))
            .filter(|n| *n >= least)
            .ok_or_else(|| self.wrong(column, &format!("a whole number from {least} to {}", i64::MAX)))
    }

    pub(super) fn wrong(&self, column: usize, right: &str) -> FactsError {
        let found = format!(
            "{} in `{}`",
            quoted_bytes(self.text(column).as_bytes()),
            self.columns[column]
        );
        FactsError::new(self.name, Some(self.line), found, right)
    }
}

/// 10^18 is less than 2^63.
const SAFE_DIGITS: usize = 18;

/// Decimal digits, with a minus sign where it is negative; `None` for anything else and for what 64 bits do not hold.
pub(super) fn integer(text: &str) -> Option<i64> {
    let (digits, negative) = match text.as_bytes() {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if digits.is_empty() {
        return None;
    }
    if digits.len() <= SAFE_DIGITS {
        // No sum of so few digits leaves 64 bits, so nothing is checked on the way.
        let (first, rest) = match digits.split_first_chunk::<8>() {
            Some((eight, rest)) => (eight_digits(*eight)?, rest),
            None => (0, digits),
        };
        let sum = rest.iter().try_fold(first, |sum, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| sum * 10 + i64::from(digit))
        })?;
        return Some(if negative { -sum } else { sum });
    }
    let mut magnitude: i64 = 0;
    for byte in digits {
        let digit = i64::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
        // Downwards: the least number has no positive twin.
        magnitude = magnitude.checked_mul(10)?.checked_sub(digit)?;
    }
    if negative {
        Some(magnitude)
    } else {
        magnitude.checked_neg()
    }
}

/// Eight digits at once: instants have ten, and a ledger has twenty million of them. Each step adds up neighbours: digits to
/// pairs, pairs to fours, fours to all.
fn eight_digits(text: [u8; 8]) -> Option<i64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let bytes = u64::from_le_bytes(text);
    // `0` to `9` have a 3 in their upper half, with six added too; `:` to `?` do not then.
    let is_digits = bytes & HIGH == ZEROS && bytes.wrapping_add(0x0606_0606_0606_0606) & HIGH == ZEROS;
    let ones = bytes & 0x0F0F_0F0F_0F0F_0F0F;
    let pairs = ones.wrapping_mul(10 << 8 | 1) >> 8 & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_FFFF_0000_FFFF;
    let eight = fours.wrapping_mul(10_000 << 32 | 1) >> 32;
    is_digits.then(|| eight.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn integers_are_what_64_bits_hold_and_nothing_is_guessed() {
        for (text, due) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("007", Some(7)),
            ("-12", Some(-12)),
            ("12345678", Some(12_345_678)),
            ("-1796088673", Some(-1_796_088_673)),
            ("1234567:", None),
            ("1234/678", None),
            ("1234\u{e9}78", None),
            ("999999999999999999", Some(999_999_999_999_999_999)),
            ("1000000000000000000", Some(1_000_000_000_000_000_000)),
            ("12345678901234567x", None),
            ("1234567890123456789x", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("", None),
            ("-", None),
            ("+1", None),
            (" 1", None),
            ("1.0", None),
            ("1e3", None),
        ] {
            assert_eq!(integer(text), due, "{text:?}");
        }
    }
}
