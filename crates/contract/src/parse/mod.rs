//! Reading a contract file (spec/contract.md): parsed once, whole, and failing closed (I7). There are no defaults;
//! the one key that may be left out without a variant saying so is `retry.jitter.cap_after_jitter`.
//!
//! Leaves the meaning of clauses to `schedule`, `audit` and `probe/`; contradictions between clauses stand in
//! [`crate::check`].

mod table;

use crate::check::contradictions;
use crate::error::{ContractError, Problem, ValueError, quoted};
use crate::model::{
    Anchor, Backoff, Contract, Direction, EndpointClauses, Jitter, Law, OutcomeSets, Retry, RetryAfter,
    Segment, SimpleLaw, StatusSet, Then,
};
use crate::text::{
    MAX_COUNT, parse_duration, parse_factor, parse_name, parse_rate, parse_ratio, parse_statuses,
};
use crate::units::Duration;
use table::{Source, Table};
use toml::de::DeTable;

/// The version of the language that this build reads.
pub const LANGUAGE: u32 = 1;
/// Attempts of one delivery: more is a loop, not a retry policy.
pub const MAX_ATTEMPTS: u32 = 10_000;
/// A full schedule of ten thousand waits fits well within; a longer text is no contract.
pub const MAX_FILE_BYTES: usize = 256 * 1024;

/// Keys of laws that another law may not have, and where they belong.
const LAW_KEYS: &[(&str, &str)] = &[
    ("base", "the laws fixed, linear, exponential and polynomial"),
    ("step", "law = \"linear\""),
    ("factor", "law = \"exponential\""),
    ("power", "law = \"polynomial\""),
    ("waits", "law = \"schedule\""),
    ("then", "law = \"schedule\", where nothing follows it"),
    ("segment", "law = \"segments\""),
    ("count", "a segment that another one follows"),
    ("cap", "[retry.backoff]"),
    ("floor", "[retry.backoff]"),
];

/// Reads a contract from the bytes of a file: UTF-8, a byte-order mark and CRLF are accepted.
///
/// # Errors
/// See [`parse`]; and bytes that are not UTF-8.
pub fn parse_bytes(bytes: &[u8], file_name: &str) -> Result<Contract, ContractError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(too_long(bytes.len(), file_name));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, file_name),
        Err(error) => Err(not_utf8(bytes, error.valid_up_to(), file_name)),
    }
}

/// Reads a contract. `file_name` is what errors call it.
///
/// # Errors
/// Everything that is wrong in the text, each with its clause, its line, what was found and what would be right.
pub fn parse(text: &str, file_name: &str) -> Result<Contract, ContractError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(too_long(text.len(), file_name));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source::new(text);
    let (document, faults) = DeTable::parse_recoverable(text);
    for fault in &faults {
        let found = format!("text that is not TOML: {}", fault.message().trim_end());
        source.complain(
            "",
            fault.span(),
            ValueError::new(found, "write `key = value` lines under `[table]` headers"),
        );
    }
    // A text that is not TOML has no clauses to judge: its other complaints would be echoes.
    let contract = if faults.is_empty() {
        read(&Table::root(&source, document.get_ref()))
    } else {
        None
    };
    for clash in contract.iter().flat_map(contradictions) {
        source.complain(&clash.clause, source.place_of(&clash.clause), clash.error);
    }
    let problems = source.problems();
    match contract.filter(|_| problems.is_empty()) {
        Some(contract) => Ok(contract),
        None => Err(ContractError::new(file_name, text, problems)),
    }
}

fn too_long(len: usize, file_name: &str) -> ContractError {
    whole_file(
        file_name,
        "",
        None,
        format!("{len} bytes"),
        format!("a contract has at most {MAX_FILE_BYTES} bytes"),
    )
}

pub(crate) fn not_utf8(bytes: &[u8], valid_up_to: usize, file_name: &str) -> ContractError {
    let text = String::from_utf8_lossy(bytes);
    let line = crate::error::line_at(&text, valid_up_to);
    let found = format!("bytes that are not UTF-8, at byte {valid_up_to}");
    whole_file(
        file_name,
        &text,
        Some(line),
        found,
        "save the file as UTF-8".to_owned(),
    )
}

fn whole_file(file: &str, text: &str, line: Option<usize>, found: String, right: String) -> ContractError {
    ContractError::new(
        file,
        text,
        vec![Problem {
            clause: String::new(),
            line,
            found,
            right,
            span: None,
        }],
    )
}

fn read(root: &Table<'_>) -> Option<Contract> {
    let version = root.number("contract", LANGUAGE, LANGUAGE, "1");
    let name = root.text("name", "\"acme-webhooks\"", parse_name);
    let retry = root.table("retry").and_then(|table| read_retry(&table));
    let outcome = root.table("outcome").and_then(|table| read_outcome(&table));
    let endpoint = root.table("endpoint").and_then(|table| read_endpoint(&table));
    root.finish(&[]);
    version?;
    Some(Contract {
        name: name?,
        retry: retry?,
        outcome: outcome?,
        endpoint: endpoint?,
    })
}

fn read_retry(table: &Table<'_>) -> Option<Retry> {
    let max_attempts = table.number("max_attempts", 1, MAX_ATTEMPTS, "8");
    let max_age = table.text("max_age", "\"3d\"", |text| duration_or("none", text));
    let anchor = table.word(
        "anchor",
        &[
            ("end", Anchor::End),
            ("start", Anchor::Start),
            ("first", Anchor::First),
        ],
    );
    let slack = table.text("slack", "\"0s\"", parse_duration);
    let late_after = table.text("late_after", "\"30s\"", parse_duration);
    let backoff = table.table("backoff").and_then(|table| read_backoff(&table));
    let jitter = table.table("jitter").and_then(|table| read_jitter(&table));
    let retry_after = table
        .table("retry_after")
        .and_then(|table| read_retry_after(&table));
    table.finish(&[]);
    let (jitter, cap_after_jitter) = jitter?;
    Some(Retry {
        max_attempts: max_attempts?,
        max_age: max_age?,
        anchor: anchor?,
        slack: slack?,
        late_after: late_after?,
        backoff: backoff?,
        jitter,
        cap_after_jitter,
        retry_after: retry_after?,
    })
}

/// A duration, or the word that stands for its absence.
fn duration_or(word: &str, text: &str) -> Result<Option<Duration>, ValueError> {
    if text == word {
        return Ok(None);
    }
    parse_duration(text)
        .map(Some)
        .map_err(|error| ValueError::new(error.found, format!("{}; or \"{word}\"", error.right)))
}

#[derive(Clone, Copy)]
enum LawWord {
    Fixed,
    Linear,
    Exponential,
    Polynomial,
    Schedule,
    Segments,
}

const SIMPLE_LAWS: [(&str, LawWord); 5] = [
    ("exponential", LawWord::Exponential),
    ("fixed", LawWord::Fixed),
    ("linear", LawWord::Linear),
    ("polynomial", LawWord::Polynomial),
    ("schedule", LawWord::Schedule),
];

fn read_backoff(table: &Table<'_>) -> Option<Backoff> {
    let mut words = SIMPLE_LAWS.to_vec();
    words.push(("segments", LawWord::Segments));
    let cap = table.text("cap", "\"10h\"", |text| duration_or("none", text));
    let floor = table.text("floor", "\"0s\"", parse_duration);
    // With the law unknown, which keys belong here is unknown too.
    let word = table.word("law", &words)?;
    let law = match word {
        LawWord::Segments => read_segments(table).map(Law::Segments),
        simple => read_law(table, simple, true).map(Law::Simple),
    };
    table.finish(LAW_KEYS);
    Some(Backoff {
        law: law?,
        cap: cap?,
        floor: floor?,
    })
}

/// A law that stands alone or in a segment; `last` where nothing follows it.
fn read_law(table: &Table<'_>, word: LawWord, last: bool) -> Option<SimpleLaw> {
    let base = || table.text("base", "\"30s\"", parse_duration);
    match word {
        LawWord::Fixed => Some(SimpleLaw::Fixed { base: base()? }),
        LawWord::Linear => {
            let (base, step) = (base(), table.text("step", "\"30s\"", parse_duration));
            Some(SimpleLaw::Linear {
                base: base?,
                step: step?,
            })
        }
        LawWord::Exponential => {
            let (base, factor) = (base(), table.text("factor", "\"2\"", parse_factor));
            Some(SimpleLaw::Exponential {
                base: base?,
                factor: factor?,
            })
        }
        LawWord::Polynomial => {
            let (base, power) = (base(), table.number("power", 1, 8, "4"));
            Some(SimpleLaw::Polynomial {
                base: base?,
                power: u8::try_from(power?).ok()?,
            })
        }
        LawWord::Schedule => {
            let waits = table.texts("waits", "[\"5s\", \"5m\"]", parse_duration);
            // In the middle of a law the next segment follows, so that there is nothing to choose.
            let words = [("repeat", Then::Repeat), ("stop", Then::Stop)];
            let then = if last {
                table.word("then", &words)
            } else {
                Some(Then::Repeat)
            };
            Some(SimpleLaw::Schedule {
                waits: waits?,
                then: then?,
            })
        }
        LawWord::Segments => None,
    }
}

fn read_segments(table: &Table<'_>) -> Option<Vec<Segment>> {
    let tables = table.tables("segment")?;
    let last = tables.len().saturating_sub(1);
    let read: Vec<_> = tables
        .iter()
        .enumerate()
        .map(|(n, table)| read_segment(table, n == last))
        .collect();
    read.into_iter().collect()
}

fn read_segment(table: &Table<'_>, last: bool) -> Option<Segment> {
    let word = table.word("law", &SIMPLE_LAWS)?;
    let law = read_law(table, word, last);
    let count = match &law {
        _ if last => Some(None),
        // Its length is its count; it may be said again.
        Some(SimpleLaw::Schedule { waits, .. }) if !table.has("count") => {
            u32::try_from(waits.len()).ok().map(Some)
        }
        _ => table.number("count", 1, MAX_ATTEMPTS, "3").map(Some),
    };
    if last && table.has("count") {
        let error = ValueError::new(
            "a count on the last segment",
            "leave it out: the last segment is open",
        );
        let _ = table.number("count", 1, MAX_ATTEMPTS, "3");
        table.complain("count", error);
    }
    table.finish(LAW_KEYS);
    Some(Segment {
        law: law?,
        count: count?,
    })
}

#[derive(Clone, Copy)]
enum JitterWord {
    None,
    Full,
    Equal,
    Proportional,
    Decorrelated,
}

fn read_jitter(table: &Table<'_>) -> Option<(Jitter, bool)> {
    let cap_after_jitter = table.flag("cap_after_jitter");
    let jitter = match table.word(
        "kind",
        &[
            ("none", JitterWord::None),
            ("full", JitterWord::Full),
            ("equal", JitterWord::Equal),
            ("proportional", JitterWord::Proportional),
            ("decorrelated", JitterWord::Decorrelated),
        ],
    )? {
        JitterWord::None => Some(Jitter::None),
        JitterWord::Full => Some(Jitter::Full),
        JitterWord::Equal => Some(Jitter::Equal),
        JitterWord::Decorrelated => Some(Jitter::Decorrelated),
        JitterWord::Proportional => {
            let ratio = table.text("ratio", "\"20%\"", parse_ratio);
            let words = [
                ("up", Direction::Up),
                ("down", Direction::Down),
                ("both", Direction::Both),
            ];
            let direction = table.word("direction", &words);
            ratio
                .zip(direction)
                .map(|(ratio_ppm, direction)| Jitter::Proportional { ratio_ppm, direction })
        }
    };
    table.finish(&[
        ("ratio", "kind = \"proportional\""),
        ("direction", "kind = \"proportional\""),
    ]);
    Some((jitter?, cap_after_jitter?))
}

#[derive(Clone, Copy)]
enum RuleWord {
    Ignore,
    Floor,
    Replace,
    Bounded,
}

fn read_retry_after(table: &Table<'_>) -> Option<RetryAfter> {
    let max = || table.text("max", "\"24h\"", parse_duration);
    let rule = match table.word(
        "rule",
        &[
            ("floor", RuleWord::Floor),
            ("ignore", RuleWord::Ignore),
            ("replace", RuleWord::Replace),
            ("bounded", RuleWord::Bounded),
        ],
    )? {
        RuleWord::Ignore => Some(RetryAfter::Ignore),
        RuleWord::Floor => max().map(|max| RetryAfter::Floor { max }),
        RuleWord::Replace => max().map(|max| RetryAfter::Replace { max }),
        RuleWord::Bounded => {
            let (max, times) = (max(), table.number("times", 1, MAX_COUNT, "2"));
            max.zip(times)
                .map(|(max, times)| RetryAfter::Bounded { max, times })
        }
    };
    table.finish(&[
        ("max", "the rules floor, replace and bounded"),
        ("times", "rule = \"bounded\""),
    ]);
    rule
}

fn read_statuses(table: &Table<'_>, key: &'static str, example: &str) -> Option<StatusSet> {
    let ranges = table.texts(key, example, parse_statuses)?;
    StatusSet::from_ranges(ranges)
        .map_err(|error| table.complain(key, error))
        .ok()
}

fn read_outcome(table: &Table<'_>) -> Option<OutcomeSets> {
    let success = read_statuses(table, "success", "[\"200-299\"]");
    let terminal = read_statuses(table, "terminal", "[\"410\"]");
    table.finish(&[]);
    Some(OutcomeSets {
        success: success?,
        terminal: terminal?,
    })
}

fn read_endpoint(table: &Table<'_>) -> Option<EndpointClauses> {
    let min_gap = table.text("min_gap", "\"0s\"", parse_duration);
    let rate = table.text("rate", "\"none\"", parse_rate);
    let in_flight = table.number("in_flight", 1, MAX_COUNT, "8");
    let timeout = table.text("timeout", "\"15s\"", parse_duration);
    let disable_after = table.text("disable_after", "\"5d\"", |text| duration_or("never", text));
    let disable_on = read_statuses(table, "disable_on", "[\"410\"]");
    table.finish(&[]);
    Some(EndpointClauses {
        min_gap: min_gap?,
        rate: rate?,
        in_flight: in_flight?,
        timeout: timeout?,
        disable_after: disable_after?,
        disable_on: disable_on?,
    })
}

/// The words a person may write where a preset is wanted, for messages.
pub(crate) fn unknown_preset(name: &str, known: &[&str]) -> ValueError {
    ValueError::new(
        format!("{}, an unknown preset", quoted(name)),
        format!("write one of {}", known.join(", ")),
    )
}
