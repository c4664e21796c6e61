//! The inputs of the drill: the worked case of the spec, and one generated case that exercises what the worked one
//! leaves alone (an endpoint over its dead-letter mark, a limit of 1, unknown endpoints, attempt numbers that fall).

use super::planner::RetryTexts;
use std::fmt::Write;

/// The worked case (spec/retry-round.md, Worked numbers).
pub(crate) fn worked() -> RetryTexts {
    RetryTexts {
        contract: WORKED[0].1.to_owned(),
        endpoints: WORKED[1].1.to_owned(),
        attempts: WORKED[2].1.to_owned(),
    }
}

/// The generated case: the same on every machine and at every time.
pub(crate) fn generated() -> RetryTexts {
    let contract = "WEBHOOK_BACKOFF_FACTOR=3\nWEBHOOK_ADMIT_SLACK_S=2\nWEBHOOK_DEAD_LETTER_AFTER=1\n\
                    WEBHOOK_SUCCESS_MIN=200\nWEBHOOK_SUCCESS_MAX=204\n";
    let endpoints = "endpoint_id\tstate\tmax_attempts\tbackoff_base_s\tdispatch_gap_s\n\
                     ep-east\tactive\t4\t5\t60\nep-north\tactive\t1\t7\t30\nep-quiet\tactive\t3\t10\t60\n\
                     ep-rush\tactive\t9\t50\t400\nep-south\tdraining\t3\t10\t60\nep-west\tdisabled\t3\t10\t60\n";
    let mut attempts = "attempt_id\tendpoint_id\tattempt_no\tstart_ts\tfinish_ts\tstatus\terror\n".to_owned();
    let ids = [
        "ep-east",
        "ep-rush",
        "ep-north",
        "ep-nowhere",
        "ep-south",
        "ep-east",
        "ep-west",
        "ep-rush",
    ];
    let statuses = ["500", "-", "429", "200", "503", "-", "204", "302"];
    let mut clock = 10_000;
    for n in 0..64_usize {
        // Strides that have no common divisor with the lists, so that every pair comes up.
        let (id, status) = (ids[n % ids.len()], statuses[(n * 3 + n / 8) % statuses.len()]);
        let attempt_no = 1 + (n * 5 + n / 7) % 6;
        clock += [3, 40, 11, 150, 7][n % 5];
        let error = if status == "-" { "connect_timeout" } else { "-" };
        let finish = clock + n % 4;
        let _ = writeln!(
            attempts,
            "g-{n:02}\t{id}\t{attempt_no}\t{clock}\t{finish}\t{status}\t{error}"
        );
    }
    RetryTexts {
        contract: contract.to_owned(),
        endpoints: endpoints.to_owned(),
        attempts,
    }
}

/// The worked case as files.
pub(crate) const WORKED: [(&str, &str); 3] = [
    (
        "retry.env",
        include_str!("../../../../cases/retry-round/retry.env"),
    ),
    (
        "endpoints.tsv",
        include_str!("../../../../cases/retry-round/endpoints.tsv"),
    ),
    (
        "attempts.tsv",
        include_str!("../../../../cases/retry-round/attempts.tsv"),
    ),
];
