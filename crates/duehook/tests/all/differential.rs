//! The three implementations of the two rounds agree on every field (scheduler, auditor, SQL), over thousands of
//! generated ledgers and queues with every unusual shape.
//!
//! Each endpoint of a case is a ledger of its own, and each item a queue of its own: a case of 300 endpoints is 300
//! ledgers. `plan` writes what the scheduler derives; `health` and `probe` are green only when what they derive is the
//! same, field by field.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// A small generator of its own, so that a case is the same on every machine: SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }
    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }
}

const HUGE: [i64; 4] = [i64::MAX, i64::MAX - 1, i64::MAX / 2, 1 << 62];

fn duehook(dir: &Path, line: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_duehook"))
        .args(line.split(' '))
        .current_dir(dir)
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code().unwrap(), said)
}

/// All three over the retry round that lies in `dir`.
fn agree_on_plan(dir: &Path, what: &str) {
    let files = "--contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv";
    let (code, said) = duehook(dir, &format!("plan {files} --report plan.json"));
    assert_eq!(code, 0, "{what}: plan: {said}");
    for gate in ["health", "probe"] {
        let (code, said) = duehook(dir, &format!("{gate} plan {files} --report plan.json"));
        assert_eq!(
            code,
            0,
            "{what}: {gate}: {}",
            said.chars().take(3000).collect::<String>()
        );
    }
}

struct Shape {
    factor: i64,
    slack: i64,
    extreme: bool,
}

fn retry_round(dice: &mut Dice, shape: &Shape, dir: &Path) {
    let mark = dice.one_of(&[0, 1, 3, 1000]);
    let (min, max) = dice.one_of(&[(200, 299), (200, 200), (100, 599), (204, 404)]);
    let contract = format!(
        "WEBHOOK_BACKOFF_FACTOR={}\nWEBHOOK_ADMIT_SLACK_S={}\nWEBHOOK_DEAD_LETTER_AFTER={mark}\nWEBHOOK_SUCCESS_MIN={min}\nWEBHOOK_SUCCESS_MAX={max}\n",
        shape.factor, shape.slack
    );
    let ids: Vec<String> = (0..300)
        .map(|n| format!("ep-{:03}{}", (n * 7) % 300, ["", "-é", "-\"q\"", "-\\b"][n % 4]))
        .collect();
    let mut endpoints = "endpoint_id\tstate\tmax_attempts\tbackoff_base_s\tdispatch_gap_s\n".to_owned();
    for id in &ids {
        let state = dice.one_of(&["active", "active", "active", "draining", "disabled"]);
        let limit = dice.one_of(&[1, 1, 2, 3, 5, i64::MAX]);
        let mut base = dice.one_of(&[0, 1, 10, 30]);
        let mut gap = dice.one_of(&[0, 5, 70, 100_000, i64::MAX]);
        if shape.extreme && dice.below(2) == 0 {
            base = dice.one_of(&HUGE);
            gap = dice.one_of(&HUGE);
        }
        writeln!(endpoints, "{id}\t{state}\t{limit}\t{base}\t{gap}").unwrap();
    }
    let mut attempts = "attempt_id\tendpoint_id\tattempt_no\tstart_ts\tfinish_ts\tstatus\terror\n".to_owned();
    let mut clock = 1_000;
    for n in 0..2_000 {
        // The last ten endpoints get no row; one row in fifty names an endpoint that nobody knows.
        let known = &ids[usize::try_from(dice.below(290)).unwrap()];
        let id = if dice.below(50) == 0 { "ep-nowhere" } else { known };
        // Numbers restart, repeat, skip, fall, and are huge.
        let mut attempt_no = dice.one_of(&[1, 1, 2, 2, 3, 4, 7, 40, 63, 64, 65]);
        clock += i64::try_from(dice.below(40)).unwrap() - 3;
        let (mut start, mut took) = (clock, i64::try_from(dice.below(9)).unwrap());
        if shape.extreme {
            attempt_no = dice.one_of(&[attempt_no, attempt_no, i64::MAX]);
            start = dice.one_of(&[start, start, i64::MIN, -5, i64::MAX - 3, 1 << 62]);
            took = took.min(i64::MAX - start.max(0));
        }
        let status = dice.one_of(&[
            "200", "200", "204", "299", "300", "199", "500", "404", "-", "-", "0", "-7", "99999",
        ]);
        let error = dice.one_of(&["-", "connect_timeout", "said \"no\"", "back\\slash", ""]);
        writeln!(
            attempts,
            "at-{n}\t{id}\t{attempt_no}\t{start}\t{}\t{status}\t{error}",
            start + took
        )
        .unwrap();
    }
    write(
        dir,
        &[
            ("retry.env", &contract),
            ("endpoints.tsv", &endpoints),
            ("attempts.tsv", &attempts),
        ],
    );
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        std::fs::write(dir.join(name), text).unwrap();
    }
}

#[test]
fn three_implementations_agree_on_thousands_of_ledgers() {
    let mut dice = Dice(1);
    let shapes = [
        (1, 0, false),
        (2, 5, false),
        (3, 0, false),
        (10, 1, false),
        (1, 7, true),
        (2, 5, true),
        (7, i64::MAX, true),
        (i64::MAX, 0, true),
        (i64::MAX, i64::MAX - 1, true),
        (2, 1 << 62, true),
    ];
    for (factor, slack, extreme) in shapes {
        let dir = tempfile::tempdir().unwrap();
        let shape = Shape {
            factor,
            slack,
            extreme,
        };
        retry_round(&mut dice, &shape, dir.path());
        agree_on_plan(
            dir.path(),
            &format!("factor {factor}, slack {slack}, extreme {extreme}"),
        );
    }
}

#[test]
fn three_implementations_agree_on_forms_of_a_file() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/retry-round");
    let read = |name: &str| std::fs::read_to_string(cases.join(name)).unwrap();
    type Form = (&'static str, fn(&str) -> String);
    let forms: [Form; 5] = [
        ("CRLF", |text| text.replace('\n', "\r\n")),
        ("a byte-order mark", |text| format!("\u{feff}{text}")),
        ("no newline at the end", |text| text.trim_end().to_owned()),
        ("CRLF, a mark, no newline", |text| {
            format!("\u{feff}{}", text.trim_end().replace('\n', "\r\n"))
        }),
        ("leading zeros", |text| {
            text.replace("\t1000\t", "\t001000\t").replace("=5\n", "=005\n")
        }),
    ];
    for (what, form) in forms {
        let dir = tempfile::tempdir().unwrap();
        for name in ["retry.env", "endpoints.tsv", "attempts.tsv"] {
            std::fs::write(dir.path().join(name), form(&read(name))).unwrap();
        }
        agree_on_plan(dir.path(), what);
    }
}

#[test]
fn three_implementations_agree_on_ledgers_without_rows_or_endpoints() {
    let contract = "WEBHOOK_BACKOFF_FACTOR=2\nWEBHOOK_ADMIT_SLACK_S=5\nWEBHOOK_DEAD_LETTER_AFTER=0\nWEBHOOK_SUCCESS_MIN=200\nWEBHOOK_SUCCESS_MAX=299\n";
    let endpoints = "endpoint_id\tstate\tmax_attempts\tbackoff_base_s\tdispatch_gap_s\n";
    let attempts = "attempt_id\tendpoint_id\tattempt_no\tstart_ts\tfinish_ts\tstatus\terror\n";
    let one = format!("{endpoints}ep\tactive\t1\t0\t0\n");
    let row = format!("{attempts}a\tep\t1\t0\t0\t-\t-\n");
    for (what, endpoints, attempts) in [
        ("nothing at all", endpoints, attempts),
        ("an endpoint without rows", one.as_str(), attempts),
        ("a row without endpoints", endpoints, row.as_str()),
        ("one of each", one.as_str(), row.as_str()),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            &[
                ("retry.env", contract),
                ("endpoints.tsv", endpoints),
                ("attempts.tsv", attempts),
            ],
        );
        agree_on_plan(dir.path(), what);
    }
}

/// All three over the queue round that lies in `dir`; `code` is what `appraise` must end with.
fn agree_on_appraisal(dir: &Path, now: i64, code: i32, what: &str) {
    let files = "--contract queue.env --channels channels.json --queue queue.jsonl";
    let (found, said) = duehook(
        dir,
        &format!("appraise {files} --now {now} --report appraisal.json"),
    );
    assert_eq!(found, code, "{what}: appraise: {said}");
    for gate in ["health", "probe"] {
        let (code, said) = duehook(
            dir,
            &format!("{gate} appraise {files} --now {now} --report appraisal.json"),
        );
        assert_eq!(
            code,
            0,
            "{what}: {gate}: {}",
            said.chars().take(3000).collect::<String>()
        );
    }
}

fn queue(dice: &mut Dice, now: i64) -> String {
    let mut lines = String::new();
    for n in 0..500 {
        let channel = dice.one_of(&["email", "email", "push", "sms", "pager", "é", "q\\\"q"]);
        let attempts = dice.one_of(&[0, 0, 1, 2, 3, 5, 40, 62, 63, 64, 1_000, i64::MAX]);
        let near = now.saturating_sub(i64::try_from(dice.below(400_000)).unwrap() - 50_000);
        let received = dice.one_of(&[near, near, near, i64::MIN, i64::MAX, 0, -1]);
        writeln!(lines, "{{\"id\": \"i-{n}\", \"channel\": \"{channel}\", \"attempts\": {attempts}, \"received_at_value\": {received}}}").unwrap();
    }
    lines
}

const CHANNELS: &str = r#"{"email": {"enabled": true}, "push": {"enabled": true}, "sms": {"enabled": false}, "é": {"enabled": true}, "q\"q": {"enabled": true}}"#;

#[test]
fn three_implementations_agree_on_thousands_of_items() {
    let mut dice = Dice(2);
    for unit in ["milliseconds", "seconds"] {
        for (base, limit) in [
            (1, 1),
            (30_000, 3),
            (1_500, i64::MAX),
            (i64::MAX, 2),
            (1 << 40, 4),
        ] {
            for now in [1_800_000, i64::MAX, -1] {
                let dir = tempfile::tempdir().unwrap();
                let contract = format!(
                    "QUEUE_DELAY_UNIT={unit}\nQUEUE_BACKOFF_POLICY=exponential\nQUEUE_BACKOFF_BASE_MS={base}\nQUEUE_MAX_ATTEMPTS={limit}\n"
                );
                write(
                    dir.path(),
                    &[
                        ("queue.env", &contract),
                        ("channels.json", CHANNELS),
                        ("queue.jsonl", &queue(&mut dice, now)),
                    ],
                );
                agree_on_appraisal(
                    dir.path(),
                    now,
                    0,
                    &format!("{unit}, base {base}, limit {limit}, now {now}"),
                );
            }
        }
    }
}

#[test]
fn three_implementations_agree_on_which_lines_are_malformed() {
    let contract = "QUEUE_DELAY_UNIT=seconds\nQUEUE_BACKOFF_POLICY=exponential\nQUEUE_BACKOFF_BASE_MS=1000\nQUEUE_MAX_ATTEMPTS=3\n";
    let good = r#"{"id": "good", "channel": "email", "attempts": 0, "received_at_value": 1}"#;
    let lines = [
        good,
        "",
        "   \t",
        "no json",
        "[]",
        "{}",
        "null",
        r#"{"id": "x"}"#,
        r#"{"id": 7, "channel": "email", "attempts": 0, "received_at_value": 1}"#,
        r#"{"id": "neg", "channel": "email", "attempts": -1, "received_at_value": 1}"#,
        r#"{"id": "float", "channel": "email", "attempts": 1.0, "received_at_value": 1}"#,
        r#"{"id": "text", "channel": "email", "attempts": "1", "received_at_value": 1}"#,
        r#"{"id": "huge", "channel": "email", "attempts": 9223372036854775808, "received_at_value": 1}"#,
        r#"{"id": "old", "channel": "email", "attempts": 1, "received_at_value": -9223372036854775809}"#,
        r#"{"id": "extra", "channel": "email", "attempts": 1, "received_at_value": 1, "mood": 1}"#,
        r#"{"id": "twice", "id": "twice", "channel": "email", "attempts": 1, "received_at_value": 1}"#,
        r#"{"id": "good", "channel": "push", "attempts": 0, "received_at_value": 1}"#,
        r#"{"id": "trailing", "channel": "email", "attempts": 0, "received_at_value": 1} x"#,
        r#"{"id": "null", "channel": null, "attempts": 0, "received_at_value": 1}"#,
        r#"{"id": "fine", "channel": "sms", "attempts": 9, "received_at_value": 1}"#,
        "{\"id\": \"cut",
    ];
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            ("queue.env", contract),
            ("channels.json", CHANNELS),
            ("queue.jsonl", &lines.join("\n")),
        ],
    );
    agree_on_appraisal(dir.path(), 100, 2, "malformed lines");
    let mut bytes =
        b"{\"id\": \"\xff\", \"channel\": \"email\", \"attempts\": 0, \"received_at_value\": 1}\n".to_vec();
    bytes.extend_from_slice(
        b"{\"id\": \"nul\0\", \"channel\": \"email\", \"attempts\": 0, \"received_at_value\": 1}\n",
    );
    bytes.extend_from_slice(good.as_bytes());
    std::fs::write(dir.path().join("queue.jsonl"), bytes).unwrap();
    agree_on_appraisal(dir.path(), 100, 2, "bytes that are no text");
    write(dir.path(), &[("queue.jsonl", "")]);
    agree_on_appraisal(dir.path(), 100, 0, "an empty queue");
}

/// A file, what is replaced in it, and by what.
type Damage = (&'static str, &'static str, &'static str);

const RETRY_DAMAGE: &[Damage] = &[
    ("retry.env", "WEBHOOK_ADMIT_SLACK_S=5\n", ""),
    ("retry.env", "=2\n", "=2\nWEBHOOK_BACKOFF_FACTOR=2\n"),
    ("retry.env", "=2\n", "=2\nWEBHOOK_MODE=x\n"),
    ("retry.env", "=2\n", "=two\n"),
    ("retry.env", "=2\n", "= 2\n"),
    ("retry.env", "=2\n", "=0\n"),
    ("retry.env", "=2\n", "=\n"),
    ("retry.env", "=2\n", "=2.0\n"),
    ("retry.env", "_SLACK_S=5", "_SLACK_S=-5"),
    ("retry.env", "_SLACK_S=5", "_SLACK_S=9223372036854775808"),
    ("retry.env", "_MIN=200", "_MIN=300"),
    ("retry.env", "_MIN=200", "_MIN=99"),
    ("retry.env", "_MAX=299", "_MAX=600"),
    ("retry.env", "WEBHOOK_BACKOFF_FACTOR=2", "no equals sign"),
    ("retry.env", "WEBHOOK_BACKOFF_FACTOR", "webhook_backoff_factor"),
    ("endpoints.tsv", "\tdispatch_gap_s", ""),
    ("endpoints.tsv", "dispatch_gap_s", "dispatch_gap_s\tmood"),
    ("endpoints.tsv", "\t70\n", "\n"),
    ("endpoints.tsv", "\t70\n", "\t70\t1\n"),
    ("endpoints.tsv", "\t70\n", "\tx\n"),
    ("endpoints.tsv", "\t70\n", "\t-1\n"),
    ("endpoints.tsv", "\t70\n", "\t\n"),
    ("endpoints.tsv", "\t70\n", "\t9223372036854775808\n"),
    ("endpoints.tsv", "ep-bravo", "ep-alpha"),
    ("endpoints.tsv", "ep-bravo", ""),
    ("endpoints.tsv", "draining", "drained"),
    ("endpoints.tsv", "draining", "Draining"),
    ("endpoints.tsv", "active\t3", "active\t0"),
    ("endpoints.tsv", "ep-bravo", "\nep-bravo"),
    ("attempts.tsv", "\terror", ""),
    ("attempts.tsv", "error", "error\tmood"),
    ("attempts.tsv", "\t502\t-", "\t502"),
    ("attempts.tsv", "\t502\t-", "\t502\t-\t-"),
    ("attempts.tsv", "\t502\t", "\tbad\t"),
    ("attempts.tsv", "\t502\t", "\t\t"),
    ("attempts.tsv", "\t502\t", "\t--\t"),
    ("attempts.tsv", "\t502\t", "\t5e2\t"),
    ("attempts.tsv", "\t1000\t", "\tx\t"),
    ("attempts.tsv", "\t1000\t", "\t+1000\t"),
    ("attempts.tsv", "\t1000\t", "\t 1000\t"),
    ("attempts.tsv", "\t1000\t1002", "\t1002\t1000"),
    ("attempts.tsv", "\t1000\t", "\t-9223372036854775809\t"),
    ("attempts.tsv", "\t1000\t1002", "\t1000\t9223372036854775808"),
    ("attempts.tsv", "a-02", "a-01"),
    ("attempts.tsv", "a-02", ""),
    ("attempts.tsv", "ep-alpha\t1", "ep-alpha\t0"),
    ("attempts.tsv", "ep-alpha\t1", "ep-alpha\t-1"),
    ("attempts.tsv", "ep-alpha\t1", "ep-alpha\t1.0"),
    ("attempts.tsv", "ep-alpha\t1", "\t1"),
    ("attempts.tsv", "a-02", "\na-02"),
    ("attempts.tsv", "attempt_no", "attempt_nr"),
];

#[test]
fn three_implementations_refuse_the_same_inputs_with_the_same_code() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/retry-round");
    let dir = tempfile::tempdir().unwrap();
    let names = ["retry.env", "endpoints.tsv", "attempts.tsv"];
    let restore = || {
        for name in names {
            std::fs::copy(cases.join(name), dir.path().join(name)).unwrap();
        }
    };
    restore();
    agree_on_plan(dir.path(), "the worked case");
    let files = "--contract retry.env --endpoints endpoints.tsv --attempts attempts.tsv";
    let same = |what: &str, code: i32| {
        assert_eq!(
            duehook(dir.path(), &format!("plan {files} --report other.json")).0,
            code,
            "{what}: plan"
        );
        for gate in ["health", "probe"] {
            let (found, said) = duehook(dir.path(), &format!("{gate} plan {files} --report plan.json"));
            assert_eq!(found, code, "{what}: {gate}: {said}");
        }
        assert!(
            !dir.path().join("other.json").exists(),
            "{what}: a report was written"
        );
    };
    for (name, from, to) in RETRY_DAMAGE {
        let path = dir.path().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no {from:?}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        same(
            &format!("{name}: {from:?} → {to:?}"),
            if *name == "retry.env" { 3 } else { 2 },
        );
        restore();
    }
    for name in names {
        let code = if name == "retry.env" { 3 } else { 2 };
        let path = dir.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        for (what, damage) in [("a NUL", 0_u8), ("no UTF-8", 0xff)] {
            let mut bad = bytes.clone();
            bad.insert(bytes.len() / 2, damage);
            std::fs::write(&path, bad).unwrap();
            same(&format!("{name}: {what}"), code);
        }
        std::fs::write(&path, "").unwrap();
        same(&format!("{name}: empty"), code);
        std::fs::remove_file(&path).unwrap();
        same(&format!("{name}: missing"), code);
        std::fs::create_dir(&path).unwrap();
        same(&format!("{name}: a directory"), code);
        std::fs::remove_dir(&path).unwrap();
        restore();
    }
    // A contract's fault beats one of the facts.
    std::fs::write(dir.path().join("attempts.tsv"), "").unwrap();
    std::fs::write(dir.path().join("retry.env"), "").unwrap();
    same("both", 3);
}
