//! A ledger of attempts cut into pieces that threads read side by side and that come back in the order of the file.
//!
//! This is the way for ledgers without fault: whatever looks odd here ends it with `None`, and the plain reader in
//! `table` reads the file from its beginning and says what is wrong and where. So each rule of a row has one message,
//! and no row is let through here that would be refused there.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

/// What one thread takes at once. With a few of them on their way memory stays at some MiB whatever the ledger.
const PIECE: u64 = 512 * 1024;
/// How far behind a piece the end of its last line is looked for.
const TAIL: u64 = 64 * 1024;
/// Pieces that are read and not yet folded, at most, beside one in each thread's hands.
const AHEAD: usize = 4;

/// Reads all lines but the header: `read` makes something of a piece's text (its whole lines), `fold` takes what was
/// made in the order of the file. False where anything was odd: then nothing that was folded counts.
pub(super) fn scan<T: Send>(
    path: &Path,
    read: impl Fn(&str) -> Option<T> + Sync,
    mut fold: impl FnMut(T) -> Option<()>,
) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let Ok(size) = file.metadata().map(|found| found.len()) else {
        return false;
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let (next, odd) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(AHEAD);
        for _ in 0..jobs {
            let (send, file, next, odd, read) = (send.clone(), &file, &next, &odd, &read);
            scope.spawn(move || {
                let mut buffer = Vec::new();
                while !odd.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number * PIECE >= size {
                        break;
                    }
                    let made = piece(file, size, number, &mut buffer).and_then(read);
                    odd.fetch_or(made.is_none(), Ordering::Relaxed);
                    if send.send((number, made)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let (mut waiting, mut due) = (BTreeMap::new(), 0);
        for (number, made) in receive {
            let Some(made) = made else {
                odd.store(true, Ordering::Relaxed);
                continue;
            };
            waiting.insert(number, made);
            while let Some(made) = waiting.remove(&due) {
                due += 1;
                if fold(made).is_none() {
                    odd.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    !odd.load(Ordering::Relaxed)
}

/// The lines that begin within a piece, the header left out; `None` where that cannot be told, or they are no text.
fn piece<'a>(file: &File, size: u64, number: u64, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    // One byte before the piece tells whether a line begins with it; the header is passed over the same way.
    let from = (number * PIECE).saturating_sub(u64::from(number > 0));
    let until = ((number + 1) * PIECE).min(size);
    let tail = (size - until).min(TAIL);
    let own = usize::try_from(until - from).ok()?;
    buffer.resize(own + usize::try_from(tail).ok()?, 0);
    file.read_exact_at(buffer, from).ok()?;
    let to_the_end = until + tail == size;
    let begin = match memchr::memchr(b'\n', buffer) {
        Some(at) => at + 1,
        None if to_the_end => return Some(""),
        None => return None,
    };
    if begin >= own {
        return Some("");
    }
    let last = own - 1;
    let end = match memchr::memchr(b'\n', buffer.get(last..)?) {
        Some(at) => last + at + 1,
        None if to_the_end => buffer.len(),
        None => return None,
    };
    let text = std::str::from_utf8(buffer.get(begin..end)?).ok()?;
    memchr::memchr(0, text.as_bytes()).is_none().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Option<Vec<String>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut all = Vec::new();
        let whole = scan(
            file.path(),
            |text| Some(text.lines().map(str::to_owned).collect::<Vec<_>>()),
            |some: Vec<String>| {
                all.extend(some);
                Some(())
            },
        );
        whole.then_some(all)
    }

    #[test]
    fn every_line_but_the_header_comes_once_and_in_order_wherever_a_piece_ends() {
        let piece = usize::try_from(PIECE).unwrap();
        for length in [1, 7, 60, 61, 62, 1023, 4096] {
            for end in ["", "\n"] {
                let rows: Vec<String> = (0..2 * piece / length + 3)
                    .map(|n| format!("{n:0length$}"))
                    .collect();
                let text = format!("header\n{}{end}", rows.join("\n"));
                assert_eq!(lines(text.as_bytes()).as_deref(), Some(&rows[..]), "{length}");
            }
        }
    }

    #[test]
    fn a_line_that_ends_exactly_with_a_piece_is_read_once() {
        let piece = usize::try_from(PIECE).unwrap();
        for off in [0, 1, 2] {
            let first = "x".repeat(piece - "header\n".len() - 1 - off);
            let text = format!("header\n{first}\nsecond\nthird\n");
            assert_eq!(
                lines(text.as_bytes()),
                Some(vec![first, "second".into(), "third".into()])
            );
        }
    }

    #[test]
    fn what_is_no_text_and_a_line_beyond_measure_are_odd() {
        assert_eq!(lines(b"header\na\0b\n"), None);
        assert_eq!(lines(b"header\na\xff\n"), None);
        let long = format!("header\n{}\n", "x".repeat(3 * usize::try_from(PIECE).unwrap()));
        assert_eq!(lines(long.as_bytes()), None);
        assert_eq!(lines(b"header"), Some(vec![]));
        assert_eq!(lines(b"header\n"), Some(vec![]));
    }
}
