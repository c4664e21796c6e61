//! What happens in the drilled ledger, whatever the scheduler: contracts, endpoints, messages, answers, one drain of
//! each kind and one crash. Chosen so that every fault class leaves its mark somewhere.

/// The moment at which the scenario begins: Sun, 06 Nov 1994 08:00:00 GMT, in Unix milliseconds.
pub(super) const BEGIN: i64 = 784_108_800_000;
/// One second and one hour, in milliseconds.
pub(super) const SECOND: i64 = 1_000;
pub(super) const HOUR: i64 = 3_600 * SECOND;

/// The crash: the node is down in between.
pub(super) const CRASH: (i64, i64) = (BEGIN + 700 * SECOND, BEGIN + 760 * SECOND);

/// The contracts: the reference one, a jittered one, one with half a second, and the paced endpoint's.
pub(super) fn contract_text(which: Which) -> String {
    let (base, jitter) = match which {
        Which::Reference | Which::Paced => ("30s", "kind = \"none\""),
        Which::Jittered => (
            "30s",
            "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"both\"",
        ),
        Which::Half => ("500ms", "kind = \"none\""),
    };
    let (min_gap, rate, in_flight) = match which {
        Which::Paced => ("2s", "\"3/20s\"", 1),
        _ => ("0s", "\"none\"", 8),
    };
    format!(
        "contract = 1\nname = \"drill-{which:?}\"\n\n[retry]\nmax_attempts = 10\nmax_age = \"5h\"\nanchor = \"end\"\n\
         slack = \"0s\"\nlate_after = \"30s\"\n\n[retry.backoff]\nlaw = \"exponential\"\nbase = \"{base}\"\nfactor = \"2\"\n\
         cap = \"1h\"\nfloor = \"0s\"\n\n[retry.jitter]\n{jitter}\n\n[retry.retry_after]\nrule = \"floor\"\nmax = \"24h\"\n\n\
         [outcome]\nsuccess = [\"200-299\"]\nterminal = [\"410\"]\n\n[endpoint]\nmin_gap = \"{min_gap}\"\nrate = {rate}\n\
         in_flight = {in_flight}\ntimeout = \"60s\"\ndisable_after = \"never\"\ndisable_on = []\n"
    )
}

/// Which contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Reference,
    Jittered,
    Half,
    Paced,
}

impl Which {
    pub(super) const ALL: [Self; 4] = [Self::Reference, Self::Jittered, Self::Half, Self::Paced];
}

/// An answer of a receiver: a status, or none for a time-out; how long it took; its Retry-After.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: Option<u16>,
    pub(super) took: i64,
    pub(super) retry_after: Option<&'static str>,
}

const fn answer(status: u16, took: i64) -> Answer {
    Answer {
        status: Some(status),
        took,
        retry_after: None,
    }
}

const fn later(retry_after: &'static str) -> Answer {
    Answer {
        status: Some(503),
        took: 400,
        retry_after: Some(retry_after),
    }
}

const HANG: Answer = Answer {
    status: None,
    took: 60 * SECOND,
    retry_after: None,
};

/// One delivery of the scenario.
pub(super) struct Plot {
    pub(super) message: &'static str,
    pub(super) endpoint: &'static str,
    /// After [`BEGIN`], in milliseconds.
    pub(super) opened: i64,
    pub(super) contract: Which,
    /// In turn; the last one repeats.
    pub(super) answers: &'static [Answer],
}

/// Endpoints and their changes of state: (endpoint, after [`BEGIN`], state).
pub(super) const STATES: &[(&str, i64, &str)] = &[
    ("ep-alpha", 0, "active"),
    ("ep-bravo", 0, "active"),
    ("ep-charlie", 0, "active"),
    ("ep-delta", 0, "active"),
    ("ep-paced", 0, "active"),
    ("ep-charlie", 100 * SECOND, "draining"),
    ("ep-charlie", HOUR, "active"),
    ("ep-delta", 50 * SECOND, "draining"),
    ("ep-delta", 6 * HOUR, "active"),
];

const LONG: &[Answer] = &[
    answer(500, 200),
    answer(502, 15_000),
    answer(500, 1_000),
    answer(503, 20_000),
    answer(500, 500),
];
const THIRD_TIME: &[Answer] = &[
    answer(500, 2_000),
    answer(429, 3_000),
    answer(500, 1_000),
    answer(200, 100),
];
const SECOND_TIME: &[Answer] = &[answer(500, 5_000), answer(200, 100)];

/// The deliveries. A message with two of them has both opened at once.
pub(super) const PLOTS: &[Plot] = &[
    plot("msg-long", "ep-alpha", 0, Which::Reference, LONG),
    plot("msg-both", "ep-alpha", SECOND, Which::Reference, THIRD_TIME),
    plot("msg-both", "ep-bravo", SECOND, Which::Reference, THIRD_TIME),
    plot(
        "msg-later",
        "ep-bravo",
        2 * SECOND,
        Which::Reference,
        &[
            later("120"),
            later("Sun, 06 Nov 1994 08:20:00 GMT"),
            later("1"),
            answer(200, 100),
        ],
    ),
    plot(
        "msg-after",
        "ep-alpha",
        800 * SECOND,
        Which::Reference,
        SECOND_TIME,
    ),
    plot(
        "msg-gone",
        "ep-bravo",
        3 * SECOND,
        Which::Reference,
        &[answer(500, 100), answer(410, 100)],
    ),
    plot(
        "msg-slow",
        "ep-bravo",
        4 * SECOND,
        Which::Reference,
        &[HANG, answer(429, 100), answer(204, 100)],
    ),
    plot(
        "msg-held",
        "ep-charlie",
        60 * SECOND,
        Which::Reference,
        THIRD_TIME,
    ),
    plot(
        "msg-old",
        "ep-delta",
        10 * SECOND,
        Which::Reference,
        &[answer(500, 20_000), answer(200, 100)],
    ),
    // In flight when the node goes down.
    plot(
        "msg-crash",
        "ep-bravo",
        695 * SECOND,
        Which::Reference,
        &[HANG, answer(200, 100)],
    ),
    plot("msg-jitter", "ep-alpha", 5 * SECOND, Which::Jittered, LONG),
    plot("msg-jitter-2", "ep-bravo", 5 * SECOND, Which::Jittered, LONG),
    plot("msg-half", "ep-alpha", 6 * SECOND, Which::Half, THIRD_TIME),
    plot(
        "msg-paced-1",
        "ep-paced",
        0,
        Which::Reference,
        &[answer(200, 3_000)],
    ),
    plot(
        "msg-paced-2",
        "ep-paced",
        100,
        Which::Reference,
        &[answer(200, 1_000)],
    ),
    plot(
        "msg-paced-3",
        "ep-paced",
        200,
        Which::Reference,
        &[answer(200, 1_000)],
    ),
    plot(
        "msg-paced-4",
        "ep-paced",
        300,
        Which::Reference,
        &[answer(200, 1_000)],
    ),
    plot(
        "msg-paced-5",
        "ep-paced",
        400,
        Which::Reference,
        &[answer(200, 1_000)],
    ),
];

const fn plot(
    message: &'static str,
    endpoint: &'static str,
    opened: i64,
    contract: Which,
    answers: &'static [Answer],
) -> Plot {
    Plot {
        message,
        endpoint,
        opened,
        contract,
        answers,
    }
}
