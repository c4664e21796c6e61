//! Contracts that between them have every law, jitter kind, anchor, Retry-After rule and endpoint clause.

use contract::Contract;

const LAWS: [&str; 6] = [
    "law = \"fixed\"\nbase = \"4s\"\ncap = \"none\"\nfloor = \"0s\"",
    "law = \"linear\"\nbase = \"2s\"\nstep = \"1500ms\"\ncap = \"8s\"\nfloor = \"2500ms\"",
    "law = \"exponential\"\nbase = \"1s\"\nfactor = \"2.5\"\ncap = \"20s\"\nfloor = \"0s\"",
    "law = \"polynomial\"\nbase = \"700ms\"\npower = 2\ncap = \"15s\"\nfloor = \"1s\"",
    "law = \"schedule\"\nwaits = [\"1s\", \"3s\", \"9s\"]\nthen = \"stop\"\ncap = \"none\"\nfloor = \"0s\"",
    "law = \"segments\"\ncap = \"30s\"\nfloor = \"0s\"\n[[retry.backoff.segment]]\nlaw = \"fixed\"\nbase = \"500ms\"\ncount = 2\n\
     [[retry.backoff.segment]]\nlaw = \"exponential\"\nbase = \"3s\"\nfactor = \"2\"\n",
];
const JITTERS: [&str; 8] = [
    "kind = \"none\"",
    "kind = \"full\"",
    "kind = \"equal\"",
    "kind = \"proportional\"\nratio = \"20%\"\ndirection = \"both\"",
    "kind = \"proportional\"\nratio = \"35%\"\ndirection = \"up\"",
    "kind = \"proportional\"\nratio = \"50%\"\ndirection = \"down\"",
    "kind = \"decorrelated\"",
    "kind = \"decorrelated\"",
];
const ANCHORS: [&str; 3] = ["end", "start", "first"];
const RETRY_AFTER: [&str; 4] = [
    "rule = \"floor\"\nmax = \"40s\"",
    "rule = \"ignore\"",
    "rule = \"replace\"\nmax = \"25s\"",
    "rule = \"bounded\"\nmax = \"60s\"\ntimes = 3",
];
const ENDPOINTS: [&str; 5] = [
    "min_gap = \"0s\"\nrate = \"none\"\nin_flight = 8\ntimeout = \"5s\"",
    "min_gap = \"300ms\"\nrate = \"none\"\nin_flight = 4\ntimeout = \"5s\"",
    "min_gap = \"0s\"\nrate = \"3/4s\"\nin_flight = 8\ntimeout = \"5s\"",
    "min_gap = \"0s\"\nrate = \"none\"\nin_flight = 1\ntimeout = \"5s\"",
    "min_gap = \"100ms\"\nrate = \"2/1s\"\nin_flight = 2\ntimeout = \"5s\"",
];
/// So many that each clause stands beside many others: the lengths above have no factor in common with it.
const COUNT: usize = 24;

pub(super) fn all() -> Vec<Contract> {
    (0..COUNT)
        .filter_map(|n| contract::parse(&text(n), "testing").ok())
        .collect()
}

fn text(n: usize) -> String {
    let jitter = JITTERS[n % JITTERS.len()];
    // Decorrelated jitter wants a base, and builds on the wait before.
    let decorrelated = jitter.contains("decorrelated");
    let law = if decorrelated {
        LAWS[2]
    } else {
        LAWS[n % LAWS.len()]
    };
    let anchor = if decorrelated {
        "end"
    } else {
        ANCHORS[n / 2 % ANCHORS.len()]
    };
    let capped = law.contains("cap = \"none\"");
    let again = if n.is_multiple_of(5) && !capped {
        "\ncap_after_jitter = true"
    } else {
        ""
    };
    let (retry_after, endpoint) = (
        RETRY_AFTER[n / 3 % RETRY_AFTER.len()],
        ENDPOINTS[n % ENDPOINTS.len()],
    );
    let (max_attempts, slack) = (3 + n % 4, ["0s", "250ms"][n / 7 % 2]);
    let max_age = ["none", "2m", "45s"][n / 4 % 3];
    format!(
        "contract = 1\nname = \"testing-{n}\"\n[retry]\nmax_attempts = {max_attempts}\nmax_age = \"{max_age}\"\n\
         anchor = \"{anchor}\"\nslack = \"{slack}\"\nlate_after = \"1s\"\n[retry.backoff]\n{law}\n[retry.jitter]\n{jitter}{again}\n\
         [retry.retry_after]\n{retry_after}\n[outcome]\nsuccess = [\"200-299\"]\nterminal = [\"404\", \"410\"]\n[endpoint]\n{endpoint}\n\
         disable_after = \"never\"\ndisable_on = []\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contract_parses_and_every_clause_is_used() {
        let all = all();
        assert_eq!(all.len(), COUNT);
        let texts: Vec<String> = (0..COUNT).map(text).collect();
        for clause in LAWS
            .iter()
            .chain(&JITTERS)
            .chain(&ANCHORS)
            .chain(&RETRY_AFTER)
            .chain(&ENDPOINTS)
        {
            assert!(texts.iter().any(|text| text.contains(clause)), "{clause}");
        }
    }
}
