//! The form that both tables share: tab-separated lines under a header, integers without sign or space to spare.

use crate::error::{FactsError, quoted};

/// Names of a file's columns, in order.
pub(crate) type Columns = &'static [&'static str];

/// A byte-order mark may open a file.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line without the CR of a CRLF.
pub(crate) fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Checks the header.
pub(crate) fn header(file: &str, line: &[u8], columns: Columns) -> Result<(), FactsError> {
    if line
        .split(|byte| *byte == b'\t')
        .eq(columns.iter().map(|column| column.as_bytes()))
    {
        return Ok(());
    }
    let found: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let missing = columns.iter().find(|column| !found.contains(&column.as_bytes()));
    let extra = found
        .iter()
        .find(|name| !columns.iter().any(|column| column.as_bytes() == **name));
    let what = match (missing, extra) {
        (Some(missing), _) => format!("a header without the column `{missing}`"),
        (None, Some(extra)) => format!("a header with the unknown column {}", quoted(extra)),
        (None, None) => "a header with its columns in another order or twice".to_owned(),
    };
    let right = format!("the header is {}, separated by tabs", columns.join(" "));
    Err(FactsError::new(file, what, right).at(1, line))
}

/// The empty file, which lacks even a header.
pub(crate) fn empty(file: &str, columns: Columns) -> FactsError {
    let right = format!(
        "write the header {}, separated by tabs, even when no row follows",
        columns.join(" ")
    );
    FactsError::new(file, "an empty file", right)
}

/// A line with too few or too many columns.
pub(crate) fn wrong_width(file: &str, line: &[u8], columns: Columns) -> FactsError {
    let found = match line.iter().filter(|byte| **byte == b'\t').count() {
        0 if line.is_empty() => "an empty line".to_owned(),
        0 => "1 column".to_owned(),
        tabs => format!("{} columns", tabs + 1),
    };
    let right = format!(
        "write {} columns, separated by tabs: {}",
        columns.len(),
        columns.join(" ")
    );
    FactsError::new(file, found, right)
}

/// Why a text is no integer of the kind due.
pub(crate) fn wrong_integer(
    file: &str,
    column: &'static str,
    text: &[u8],
    least: Option<i64>,
    or: &str,
) -> FactsError {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let why = if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        ", which is not a whole number"
    } else {
        match (integer(text), least) {
            (None, _) => ", which does not fit 64 bits",
            (Some(n), Some(_)) if n < 0 => ", which is negative",
            _ => ", which is too small",
        }
    };
    let largest = if why.ends_with("64 bits") {
        format!("; the largest is {}", i64::MAX)
    } else {
        String::new()
    };
    let right = match least {
        Some(least) => format!("write a whole number of at least {least}{or}{largest}"),
        None => format!("write a whole number{or}{largest}"),
    };
    FactsError::new(file, format!("{}{why}", quoted(text)), right).in_column(column)
}

/// A 64-bit integer: digits, with a minus before them where it is negative; no plus, no space.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    match text {
        // Up to 18 digits cannot overflow.
        [first, ..] if first.is_ascii_digit() && text.len() <= 18 => {
            let mut n: i64 = 0;
            for byte in text {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return None;
                }
                n = n * 10 + i64::from(digit);
            }
            Some(n)
        }
        _ => integer_slow(text),
    }
}

fn integer_slow(text: &[u8]) -> Option<i64> {
    let (negative, digits) = text
        .strip_prefix(b"-")
        .map_or((false, text), |digits| (true, digits));
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |n, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        let n = n.checked_mul(10)?;
        if negative {
            n.checked_sub(digit)
        } else {
            n.checked_add(digit)
        }
    })
}

/// A NUL byte or one that is not UTF-8, with its line.
pub(crate) fn not_text(file: &str, bytes: &[u8]) -> Option<FactsError> {
    // Mostly it is plain ASCII without NUL, which many bytes at a time can tell.
    let plain = bytes.chunks(4096).all(|part| {
        part.iter()
            .fold(true, |plain, byte| plain & (1..128).contains(byte))
    });
    if plain {
        return None;
    }
    let (at, found) = match (memchr::memchr(0, bytes), std::str::from_utf8(bytes)) {
        (Some(nul), Err(error)) if nul < error.valid_up_to() => (nul, "a NUL byte"),
        (_, Err(error)) => (error.valid_up_to(), "bytes that are not UTF-8"),
        (Some(nul), Ok(_)) => (nul, "a NUL byte"),
        (None, Ok(_)) => return None,
    };
    let before = bytes.get(..at).unwrap_or_default();
    let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', bytes.get(at..).unwrap_or_default())
        .map_or(bytes.len(), |newline| at + newline);
    let line = u64::try_from(memchr::memchr_iter(b'\n', before).count())
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let shown = without_cr(bytes.get(start..end).unwrap_or_default());
    Some(FactsError::new(file, found, "write plain UTF-8 text").at(line, shown))
}
