//! Fail closed: what is no contract is refused, with the clause, the line, what was found and what would be right.

use super::language::with_backoff;
use contract::preset;

fn default_text() -> &'static str {
    preset("default").expect("it ships").text
}

fn refusal(text: &str) -> String {
    match contract::parse(text, "c.toml") {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// The example with one text replaced, and what the refusal must say.
#[test]
fn a_wrong_clause_is_named_with_its_line() {
    for (from, to, says) in [
        (
            "contract = 1 ",
            "contract = 2 ",
            "c.toml:2: contract: found `2`, an integer; write a whole number from 1 to 1",
        ),
        (
            "max_attempts = 8",
            "max_attempts = 0",
            "c.toml:6: retry.max_attempts: found `0`, an integer; write a whole number from 1 to 10000",
        ),
        (
            "max_attempts = 8",
            "max_attempts = 10001",
            "retry.max_attempts: found `10001`",
        ),
        (
            "max_attempts = 8",
            "max_attempts = 99999999999999999999",
            "retry.max_attempts: found `99999999999999999999`",
        ),
        (
            "max_attempts = 8",
            "max_attempts = \"8\"",
            "retry.max_attempts: found `\"8\"`, a string",
        ),
        (
            "max_attempts = 8",
            "max_attempts = 8.0",
            "retry.max_attempts: found `8.0`, a float",
        ),
        (
            "max_attempts = 8",
            "max_atempts = 8",
            "the unknown key `max_atempts`; did you mean `max_attempts`?",
        ),
        (
            "base = \"30s\"",
            "base = 30",
            "c.toml:14: retry.backoff.base: found `30`, an integer; write it as text, as in `base = \"30s\"`",
        ),
        (
            "base = \"30s\"",
            "base = \"30\"",
            "retry.backoff.base: found `30`, a number without a unit; write the unit: \"30s\" or \"30ms\"",
        ),
        (
            "base = \"30s\"",
            "base = \"11h\"",
            "retry.backoff.base: found 11h, which is longer than the cap of 10h",
        ),
        (
            "base = \"30s\"",
            "base = \"0s\"",
            "retry.backoff.base: found a base of 0s",
        ),
        (
            "base = \"30s\"",
            "",
            "retry.backoff.base: found nothing: the key is missing",
        ),
        (
            "factor = \"4\"",
            "factor = \"0.5\"",
            "retry.backoff.factor: found `0.5`, a factor out of range",
        ),
        (
            "factor = \"4\"",
            "factor = 4",
            "retry.backoff.factor: found `4`, an integer; write it as text",
        ),
        (
            "factor = \"4\"",
            "factor = \"4\"\nstep = \"1s\"",
            "the unknown key `step`; `step` belongs to law = \"linear\"",
        ),
        (
            "floor = \"0s\"",
            "floor = \"11h\"",
            "retry.backoff.floor: found a floor of 11h above the cap of 10h",
        ),
        (
            "law = \"exponential\"",
            "law = \"cubic\"",
            "retry.backoff.law: found `cubic`, an unknown word; write one of \"exponential\"",
        ),
        (
            "anchor = \"end\"",
            "anchor = \"middle\"",
            "retry.anchor: found `middle`",
        ),
        (
            "max_age = \"3d\"",
            "max_age = \"0s\"",
            "retry.max_age: found an age of 0s",
        ),
        (
            "max_age = \"3d\"",
            "max_age = \"never\"",
            "retry.max_age: found `never`, which is no duration",
        ),
        (
            "kind = \"none\"",
            "kind = \"proportional\"",
            "retry.jitter.ratio: found nothing",
        ),
        (
            "kind = \"none\"",
            "kind = \"full\"\nratio = \"20%\"",
            "`ratio` belongs to kind = \"proportional\"",
        ),
        (
            "rule = \"floor\"",
            "rule = \"ignore\"",
            "`max` belongs to the rules floor, replace and bounded",
        ),
        (
            "rule = \"floor\"",
            "rule = \"bounded\"",
            "retry.retry_after.times: found nothing",
        ),
        (
            "max = \"24h\"",
            "max = \"0s\"",
            "retry.retry_after.max: found a maximum of 0s",
        ),
        (
            "success = [\"200-299\"]",
            "success = []",
            "outcome.success: found an empty list",
        ),
        (
            "success = [\"200-299\"]",
            "success = [200]",
            "outcome.success: found `200`, an integer",
        ),
        (
            "success = [\"200-299\"]",
            "success = [\"200-299\", \"204\"]",
            "outcome.success: found `204`, which overlaps `200-299`",
        ),
        (
            "success = [\"200-299\"]",
            "success = \"200-299\"",
            "outcome.success: found `\"200-299\"`, a string; write a list of texts",
        ),
        (
            "terminal = [\"410\"]",
            "terminal = [\"204\", \"410\"]",
            "outcome.terminal: found `204`, which is a success too",
        ),
        (
            "disable_on = [\"410\"]",
            "disable_on = [\"299-410\"]",
            "endpoint.disable_on: found `299`, which is a success",
        ),
        (
            "timeout = \"15s\"",
            "timeout = \"0s\"",
            "endpoint.timeout: found a timeout of 0s",
        ),
        ("in_flight = 8", "in_flight = 0", "endpoint.in_flight: found `0`"),
        (
            "rate = \"none\"",
            "rate = \"0/1s\"",
            "endpoint.rate: found `0/1s`",
        ),
        (
            "disable_after = \"5d\"",
            "disable_after = \"0s\"",
            "endpoint.disable_after: found 0s",
        ),
        (
            "disable_after = \"5d\"",
            "disable_after = \"none\"",
            "or \"never\"",
        ),
        (
            "name = \"acme-webhooks\"",
            "name = \"\"",
            "name: found ``, which is no name",
        ),
        (
            "[outcome]",
            "[outcomes]",
            "outcome: found nothing: the table is missing",
        ),
        ("[retry.jitter]", "[retry.jiter]", "did you mean `jitter`?"),
        (
            "name = \"acme-webhooks\"",
            "name = \"a\"\nname = \"b\"",
            "found text that is not TOML: duplicate key",
        ),
        ("[retry]", "[retry", "found text that is not TOML"),
    ] {
        assert!(default_text().contains(from), "{from}");
        let text = default_text().replacen(from, to, 1);
        assert!(
            refusal(&text).contains(says),
            "{to}\n--- {}\n--- must say {says}",
            refusal(&text)
        );
    }
}

#[test]
fn a_law_that_contradicts_itself_is_refused() {
    let rest = "cap = \"1h\"\nfloor = \"0s\"\n";
    let segment = "[[retry.backoff.segment]]\n";
    for (backoff, says) in [
        (
            "law = \"schedule\"\nwaits = []\nthen = \"stop\"\n".to_owned() + rest,
            "retry.backoff.waits: found 0 waits",
        ),
        (
            "law = \"schedule\"\nwaits = [\"2h\"]\nthen = \"stop\"\n".to_owned() + rest,
            "found 2h, which is longer than the cap of 1h",
        ),
        (
            "law = \"schedule\"\nwaits = [\"2s\", 5]\nthen = \"stop\"\n".to_owned() + rest,
            "retry.backoff.waits: found `5`, an integer",
        ),
        (
            "law = \"schedule\"\nwaits = [\"2s\"]\n".to_owned() + rest,
            "retry.backoff.then: found nothing",
        ),
        (
            "law = \"polynomial\"\nbase = \"1s\"\npower = 9\n".to_owned() + rest,
            "from 1 to 8",
        ),
        (
            "law = \"segments\"\nsegment = []\n".to_owned() + rest,
            "found 0 segments",
        ),
        (
            format!("law = \"segments\"\n{rest}{segment}law = \"fixed\"\nbase = \"1s\"\ncount = 3\n"),
            "retry.backoff.segment.1.count: found a count on the last segment",
        ),
        (
            format!(
                "law = \"segments\"\n{rest}{segment}law = \"fixed\"\nbase = \"1s\"\n{segment}law = \"fixed\"\nbase = \"2s\"\n"
            ),
            "retry.backoff.segment.1.count: found nothing",
        ),
        (
            format!(
                "law = \"segments\"\n{rest}{segment}law = \"schedule\"\nwaits = [\"1s\"]\ncount = 2\n{segment}law = \"fixed\"\nbase = \"2s\"\n"
            ),
            "found a count of 2 beside 1 waits",
        ),
        (
            format!("law = \"segments\"\n{rest}{segment}law = \"segments\"\n"),
            "retry.backoff.segment.1.law: found `segments`, an unknown word",
        ),
        (
            format!("law = \"segments\"\n{rest}"),
            "retry.backoff.segment: found nothing",
        ),
    ] {
        let text = with_backoff(&backoff);
        assert!(
            refusal(&text).contains(says),
            "{backoff}\n--- {}\n--- must say {says}",
            refusal(&text)
        );
    }
}

#[test]
fn decorrelated_jitter_needs_a_base_to_grow_from() {
    let decorrelated = |text: &str| text.replacen("kind = \"none\"", "kind = \"decorrelated\"", 1);
    let schedule =
        with_backoff("law = \"schedule\"\nwaits = [\"2s\"]\nthen = \"stop\"\ncap = \"1h\"\nfloor = \"0s\"\n");
    assert!(refusal(&decorrelated(&schedule)).contains("decorrelated jitter over a list of waits"));
    let first = default_text().replacen("anchor = \"end\"", "anchor = \"first\"", 1);
    assert!(refusal(&decorrelated(&first)).contains("decorrelated jitter with anchor = \"first\""));
    let zero = with_backoff("law = \"fixed\"\nbase = \"0s\"\ncap = \"1h\"\nfloor = \"0s\"\n");
    assert!(refusal(&decorrelated(&zero)).contains("from which decorrelated jitter never grows"));
}

#[test]
fn cap_after_jitter_needs_a_cap() {
    let text = default_text().replacen("cap = \"10h\"", "cap = \"none\"", 1);
    let text = text.replacen("kind = \"none\"", "kind = \"full\"\ncap_after_jitter = true", 1);
    assert!(
        refusal(&text)
            .contains("retry.jitter.cap_after_jitter: found a cap after jitter where there is no cap")
    );
}

#[test]
fn every_problem_of_a_file_is_reported_in_its_order() {
    let text = default_text()
        .replacen("base = \"30s\"", "base = 30", 1)
        .replacen("in_flight = 8", "in_flight = 0", 1);
    let error = contract::parse(&text, "c.toml").expect_err("two problems");
    let clauses: Vec<_> = error
        .problems()
        .iter()
        .map(|p| (p.clause.as_str(), p.line))
        .collect();
    assert_eq!(
        clauses,
        [("retry.backoff.base", Some(14)), ("endpoint.in_flight", Some(35))]
    );
    let shown = error.render(100, false);
    assert!(
        shown.contains("base = 30") && shown.contains("in_flight = 0") && shown.contains("c.toml:14:"),
        "{shown}"
    );
}

#[test]
fn bytes_that_are_no_text_and_texts_without_end_are_refused() {
    let error = contract::parse_bytes(b"contract = 1\nname = \"\xff\"\n", "c.toml")
        .expect_err("not UTF-8")
        .to_string();
    assert!(
        error.contains("c.toml:2:") && error.contains("not UTF-8"),
        "{error}"
    );
    let long = "#".repeat(contract::MAX_FILE_BYTES + 1);
    assert!(refusal(&long).contains("at most 262144 bytes"));
    assert!(contract::parse_bytes(long.as_bytes(), "c.toml").is_err());
    let deep = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(refusal(&deep).contains("not TOML"));
    assert!(refusal("").contains("contract: found nothing"));
}
