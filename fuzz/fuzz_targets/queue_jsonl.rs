//! queue.jsonl: whatever the bytes, every line that is not blank is an item or malformed, and lines come in order.
#![no_main]

use ledger::FactsError;
use ledger::queue::{Line, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut last = 0;
    let done = read(bytes, "queue.jsonl", &|_| {}, |number, line| {
        assert!(number > last);
        last = number;
        match line {
            Line::Item(item) => assert!(item.attempts >= 0),
            Line::Malformed(error) => assert!(error.to_string().contains("queue.jsonl")),
        }
        Ok::<(), FactsError>(())
    });
    assert!(done.is_ok());
});
