//! Endpoints, channels and queue: total readers, whatever the bytes.

use ledger::FactsError;
use ledger::channels::Channels;
use ledger::endpoints::Endpoints;
use ledger::queue::{Line, read};
use proptest::prelude::*;

/// Id and attempts, or what is wrong.
type Told = Result<(String, i64), String>;

fn queue(bytes: &[u8]) -> Vec<(u64, Told)> {
    let mut lines = Vec::new();
    read(bytes, "queue.jsonl", &|_| (), |number, line| {
        lines.push((
            number,
            match line {
                Line::Item(item) => Ok((item.id.into_owned(), item.attempts)),
                Line::Malformed(error) => Err(error.what()),
            },
        ));
        Ok::<(), FactsError>(())
    })
    .unwrap();
    lines
}

#[test]
fn the_first_line_that_bears_an_id_keeps_it_even_when_a_later_one_is_good_too() {
    let line = |id: &str, attempts: &str| {
        format!("{{\"id\":\"{id}\",\"channel\":\"c\",\"attempts\":{attempts},\"received_at_value\":0}}\n")
    };
    let text = [
        line("a", "x"),
        line("a", "1"),
        line("a", "2"),
        line("\\u0061", "3"),
    ]
    .concat();
    let lines = queue(text.as_bytes());
    assert!(lines[0].1.is_err() && lines[2].1.is_err() && lines[3].1.is_err());
    assert_eq!(lines[1], (2, Ok(("a".to_owned(), 1))));
}

#[test]
fn minus_zero_is_zero_and_numbers_of_64_bits_are_kept() {
    let text = "{\"id\":\"a\",\"channel\":\"c\",\"attempts\":-0,\"received_at_value\":-9223372036854775808}";
    assert_eq!(queue(text.as_bytes()), [(1, Ok(("a".to_owned(), 0)))]);
}

#[test]
fn an_overlong_line_is_one_malformed_row_and_the_next_is_read() {
    let good = "{\"id\":\"b\",\"channel\":\"c\",\"attempts\":0,\"received_at_value\":0}\n";
    let text = format!("{}\n{good}", "x".repeat(3_000_000));
    let lines = queue(text.as_bytes());
    assert_eq!(
        lines[0],
        (
            1,
            Err("found a line of more than 1048576 bytes; write one item a line".to_owned())
        )
    );
    assert_eq!(lines[1], (2, Ok(("b".to_owned(), 0))));
}

proptest! {
    #[test]
    fn the_readers_are_total(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "[\\[\\]{}\":,a-z0-9\n\t -]{0,200}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let _ = Endpoints::parse(bytes, "endpoints.tsv");
            let _ = Channels::parse(bytes, "channels.json");
            let _ = queue(bytes);
        }
    }
}
