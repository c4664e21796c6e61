//! `attempts.tsv`: every row is read as a plain reader reads it, whatever the chunks, the jobs and the size.

use ledger::FactsError;
use ledger::attempts::{Options, Row, Scanned, read, scan};
use ledger::endpoints::{EndpointIndex, Endpoints};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroUsize;

const HEADER: &str = "attempt_id\tendpoint_id\tattempt_no\tstart_ts\tfinish_ts\tstatus\terror\n";

/// Line, id, endpoint, number, start, finish, status.
type Read = (u64, String, Option<u32>, i64, i64, i64, Option<i64>);

fn index() -> EndpointIndex {
    let file = "endpoint_id\tstate\tmax_attempts\tbackoff_base_s\tdispatch_gap_s\nep-a\tactive\t1\t1\t1\nendpoint-b\tactive\t1\t1\t1\n";
    Endpoints::parse(file.as_bytes(), "endpoints.tsv")
        .unwrap()
        .index()
}

fn owned(row: &Row<'_>) -> Read {
    (
        row.line,
        row.attempt_id().to_owned(),
        row.endpoint,
        row.attempt_no,
        row.start_ts,
        row.finish_ts,
        row.status,
    )
}

fn read_all(text: &str) -> Result<Vec<Read>, FactsError> {
    let mut rows = Vec::new();
    read(text.as_bytes(), "attempts.tsv", &index(), |row| {
        rows.push(owned(row));
        Ok::<(), FactsError>(())
    })?;
    Ok(rows)
}

/// The same by splitting and parsing, in a few lines.
fn plain(text: &str) -> Vec<Read> {
    let rows = text.lines().zip(1..).skip(1);
    rows.map(|(line, n)| {
        let cells: Vec<&str> = line.trim_end_matches('\r').split('\t').collect();
        let endpoint = ["ep-a", "endpoint-b"]
            .iter()
            .zip(0..)
            .find(|(id, _)| **id == cells[1])
            .map(|(_, place)| place);
        let number = |n: usize| cells[n].parse().unwrap();
        (
            n,
            cells[0].to_owned(),
            endpoint,
            number(2),
            number(3),
            number(4),
            cells[5].parse().ok(),
        )
    })
    .collect()
}

fn in_file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn scan_file(text: &str, jobs: usize, check_ids: bool) -> Result<(Vec<Read>, Scanned), FactsError> {
    let file = in_file(text);
    let options = Options {
        jobs: NonZeroUsize::new(jobs).unwrap(),
        check_ids,
    };
    let mut rows = Vec::new();
    let scanned = scan(file.path(), "attempts.tsv", &index(), options, &|_| (), |row| {
        rows.push(owned(row));
        Ok::<(), FactsError>(())
    })?;
    Ok((rows, scanned))
}

/// A ledger of several chunks with numbered ids.
fn long(rows: u32) -> String {
    (0..rows).fold(HEADER.to_owned(), |mut text, n| {
        let endpoint = ["ep-a", "endpoint-b", "ep-unknown"][n as usize % 3];
        writeln!(
            text,
            "a-{n}\t{endpoint}\t{}\t{}\t{}\t503\t-",
            n % 5 + 1,
            n * 7,
            n * 7 + n % 9
        )
        .unwrap();
        text
    })
}

prop_compose! {
    fn a_row()(
        id in "[a-z0-9-]{1,20}", endpoint in "ep-a|endpoint-b|e|ep-[a-z]{1,30}", no in prop_oneof![1_i64..10, 1..=i64::MAX],
        start in prop_oneof![-5_i64..5, 1_700_000_000_i64..1_800_000_000, i64::MIN..=i64::MAX],
        took in prop_oneof![0_i64..100, 0..=i64::MAX], status in "-|[1-5][0-9]{2}|-?[0-9]{1,17}",
        error in "-||[ -~]{0,40}|ümlaut", end in "\n|\r\n"
    ) -> String {
        format!("{id}\t{endpoint}\t{no}\t{start}\t{}\t{status}\t{error}{end}", start.saturating_add(took))
    }
}

proptest! {
    #[test]
    fn any_good_ledger_is_read_as_a_plain_reader_reads_it(rows in proptest::collection::vec(a_row(), 0..40), cut in any::<bool>()) {
        let mut text = format!("{HEADER}{}", rows.concat());
        if cut {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        prop_assert_eq!(read_all(&text).unwrap(), plain(&text));
    }

    /// A byte changed anywhere: an error with a line within the file, or rows; never a panic.
    #[test]
    fn any_damage_is_an_error_in_a_line_or_another_good_ledger(rows in proptest::collection::vec(a_row(), 1..10), at in any::<usize>(), byte in any::<u8>()) {
        let mut bytes = format!("{HEADER}{}", rows.concat()).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let lines = u64::try_from(bytes.split(|byte| *byte == b'\n').count()).unwrap();
        let outcome = read(bytes.as_slice(), "attempts.tsv", &index(), |_| Ok::<(), FactsError>(()));
        if let Err(error) = outcome {
            prop_assert!(error.line().is_some_and(|line| (1..=lines).contains(&line)), "{error}");
        }
    }
}

#[test]
fn chunks_and_jobs_change_nothing() {
    let text = long(20_000);
    assert!(text.len() > 2 * 256 * 1024);
    let want = plain(&text);
    let (one, scanned) = scan_file(&text, 1, true).unwrap();
    assert!(one == want);
    assert_eq!(
        scanned,
        Scanned {
            rows: 20_000,
            sha256: ledger::sha256_hex(text.as_bytes())
        }
    );
    for jobs in [2, 3, 8] {
        let (rows, again) = scan_file(&text, jobs, true).unwrap();
        assert!(rows == want && again == scanned, "{jobs} jobs");
    }
}

#[test]
fn the_first_error_of_the_file_is_reported_whichever_thread_finds_one_first() {
    let mut text = long(20_000);
    for line in ["a-9000\t", "a-19999\t"] {
        text = text.replacen(line, "\t", 1);
    }
    for jobs in [1, 2, 4] {
        let error = scan_file(&text, jobs, true).unwrap_err();
        assert_eq!(
            (error.line(), error.what().as_str()),
            (Some(9002), "attempt_id: found an empty id; write the id")
        );
    }
}

#[test]
fn a_repeated_id_is_found_across_chunks_and_its_first_line_is_named() {
    let text = long(20_000).replace("a-15000\t", "a-3\t");
    let error = scan_file(&text, 2, true).unwrap_err();
    assert_eq!(
        error.to_string().lines().next(),
        Some(
            "attempts.tsv:15002: attempt_id: found `a-3` a second time; it is in line 5 already; give each attempt its own id"
        )
    );
    assert!(scan_file(&text, 2, false).is_ok());
}

#[test]
fn what_the_fold_fails_with_ends_the_reading() {
    let text = long(20_000);
    let mut taken = 0;
    let file = in_file(&text);
    let options = Options {
        jobs: NonZeroUsize::new(2).unwrap(),
        check_ids: false,
    };
    let outcome = scan(file.path(), "attempts.tsv", &index(), options, &|_| (), |row| {
        taken += 1;
        if row.line == 7000 {
            Err(Stopped::Here)
        } else {
            Ok(())
        }
    });
    assert!(matches!(outcome, Err(Stopped::Here)));
    assert_eq!(taken, 6999);
}

#[derive(Debug)]
enum Stopped {
    Here,
    Facts,
}

impl From<FactsError> for Stopped {
    fn from(_: FactsError) -> Self {
        Self::Facts
    }
}

#[test]
fn a_line_without_an_end_is_refused_and_does_not_fill_the_memory() {
    let text = format!("{HEADER}a\tep-a\t1\t0\t0\t-\t{}", "x".repeat(1_000_000));
    let error = read_all(&text).unwrap_err();
    assert_eq!(
        (error.line(), error.what().as_str()),
        (
            Some(2),
            "found a line of more than 65536 bytes; end each line; is this the right file?"
        )
    );
}

#[test]
fn a_header_alone_is_a_ledger_without_rows_and_an_empty_file_is_none() {
    assert_eq!(read_all(HEADER).unwrap(), []);
    assert_eq!(read_all(HEADER.trim_end()).unwrap(), []);
    assert!(read_all("").unwrap_err().to_string().contains("an empty file"));
    assert!(
        read_all("\n")
            .unwrap_err()
            .to_string()
            .contains("attempts.tsv:1: found a header without")
    );
}
