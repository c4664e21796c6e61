//! `/metrics` in Prometheus text: what is waiting and what became of it, how late attempts start, how long commits
//! take, what the API answered, what the audit found. Every figure is somebody else's counter; none is made here.

use crate::error::ApiError;
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::State;
use engine::{LATENESS_BUCKETS_MS, Stats};
use http::{HeaderValue, Response, header};
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{COMMIT_BOUNDS_US, CommitStats, Counts};

/// The page.
pub(super) async fn text(State(shared): State<Arc<Shared>>) -> Result<Response<Body>, ApiError> {
    let mut page = Page::default();
    deliveries(&mut page, &shared.store.counts().await?);
    attempts(&mut page, &shared.engine.stats());
    commits(&mut page, &shared.store.commit_stats());
    api(&mut page, &shared);
    audit(&mut page, &shared);
    let mut response = Response::new(Body::from(page.0));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn deliveries(page: &mut Page, counts: &Counts) {
    page.head(
        "duehook_deliveries",
        "gauge",
        "Deliveries in the store by state; held is pending at an endpoint that is not active.",
    );
    for (state, n) in [
        ("pending", counts.pending),
        ("held", counts.held),
        ("sending", counts.sending),
        ("succeeded", counts.succeeded),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
    ] {
        page.line("duehook_deliveries", Some(("state", state)), n);
    }
}

fn attempts(page: &mut Page, stats: &Stats) {
    for (name, help, n) in [
        (
            "duehook_messages_accepted_total",
            "Messages accepted.",
            stats.accepted,
        ),
        (
            "duehook_deliveries_opened_total",
            "Deliveries opened for accepted messages.",
            stats.deliveries,
        ),
        ("duehook_attempts_started_total", "Requests sent.", stats.started),
        (
            "duehook_claims_released_total",
            "Attempts claimed, not sent and taken back.",
            stats.released,
        ),
        (
            "duehook_attempts_orphaned_total",
            "Attempts found started and owned by nobody, settled as interrupted.",
            stats.orphans,
        ),
        (
            "duehook_store_faults_total",
            "Calls that the store refused or failed.",
            stats.store_faults,
        ),
        (
            "duehook_endpoints_disabled_total",
            "Endpoints that the engine disabled.",
            stats.disabled_endpoints,
        ),
    ] {
        page.head(name, "counter", help);
        page.line(name, None, n);
    }
    page.head(
        "duehook_attempts_total",
        "counter",
        "Attempts settled, by outcome.",
    );
    for (outcome, n) in &stats.outcomes {
        page.line("duehook_attempts_total", Some(("outcome", outcome.word())), n);
    }
    page.head(
        "duehook_deliveries_died_total",
        "counter",
        "Deliveries that an attempt's end made dead, by reason.",
    );
    for (reason, n) in &stats.dead {
        page.line(
            "duehook_deliveries_died_total",
            Some(("reason", reason.word())),
            n,
        );
    }
    page.head(
        "duehook_attempts_in_flight",
        "gauge",
        "Attempts claimed and not ended.",
    );
    page.line("duehook_attempts_in_flight", None, stats.in_flight);
    let ends = LATENESS_BUCKETS_MS.map(|ms| (ms, 1000));
    page.histogram(
        "duehook_attempt_lateness_seconds",
        "How much later than due attempts started.",
        &ends,
        &stats.lateness,
        seconds(stats.lateness_sum_ms, 1000),
    );
}

fn commits(page: &mut Page, stats: &CommitStats) {
    let ends = COMMIT_BOUNDS_US.map(|us| (us, 1_000_000));
    page.histogram(
        "duehook_store_commit_seconds",
        "How long commits took, the sync to the disk included.",
        &ends,
        &stats.by_time,
        seconds(stats.total_us, 1_000_000),
    );
    page.head(
        "duehook_store_commands_total",
        "counter",
        "Commands committed; by the count of commits, the size of a batch.",
    );
    page.line("duehook_store_commands_total", None, stats.commands);
}

fn api(page: &mut Page, shared: &Shared) {
    page.head(
        "duehook_http_messages_total",
        "counter",
        "Messages answered with 202.",
    );
    page.line(
        "duehook_http_messages_total",
        None,
        shared.stats.accepted.load(Relaxed),
    );
    page.head(
        "duehook_http_answers_total",
        "counter",
        "Calls answered, by class of status.",
    );
    for (class, n) in shared.stats.by_class() {
        page.line("duehook_http_answers_total", Some(("class", class)), n);
    }
    page.head("duehook_http_connections", "gauge", "Connections open now.");
    page.line(
        "duehook_http_connections",
        None,
        shared.stats.connections.load(Relaxed),
    );
}

fn audit(page: &mut Page, shared: &Shared) {
    let Some(verdict) = shared.verdict.borrow().clone() else {
        return;
    };
    page.head("duehook_audit_judged", "gauge", "1 when the audit could judge.");
    page.line("duehook_audit_judged", None, u8::from(verdict.unjudged.is_none()));
    page.head(
        "duehook_audit_timestamp_seconds",
        "gauge",
        "When the audit last ended.",
    );
    page.line("duehook_audit_timestamp_seconds", None, verdict.at.as_unix_secs());
    page.head(
        "duehook_audit_findings",
        "gauge",
        "Breaches of the contract that the last audit found, by kind.",
    );
    let total: u64 = verdict.findings.values().sum();
    page.line("duehook_audit_findings", Some(("kind", "all")), total);
    for (kind, n) in &verdict.findings {
        page.line("duehook_audit_findings", Some(("kind", kind)), n);
    }
}

/// A count of parts of a second as decimal seconds, exactly.
fn seconds(count: u64, parts: u64) -> String {
    let digits = if parts == 1000 { 3 } else { 6 };
    let text = format!("{}.{:0digits$}", count / parts, count % parts);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[derive(Default)]
struct Page(String);

impl Page {
    // Writing into a String cannot fail.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Label values are words of ours: nothing to escape.
    fn line(&mut self, name: &str, label: Option<(&str, &str)>, value: impl Display) {
        let _ = match label {
            Some((key, word)) => writeln!(self.0, "{name}{{{key}=\"{word}\"}} {value}"),
            None => writeln!(self.0, "{name} {value}"),
        };
    }

    /// `counts` are those of each class alone, the last one beyond every end; Prometheus wants them added up.
    fn histogram(&mut self, name: &str, help: &str, ends: &[(u64, u64)], counts: &[u64], sum: impl Display) {
        self.head(name, "histogram", help);
        let mut total: u64 = 0;
        let bucket = format!("{name}_bucket");
        for (class, count) in counts.iter().enumerate() {
            total = total.saturating_add(*count);
            let end = ends
                .get(class)
                .map_or_else(|| "+Inf".to_owned(), |(end, parts)| seconds(*end, *parts));
            self.line(&bucket, Some(("le", &end)), total);
        }
        self.line(&format!("{name}_sum"), None, sum);
        self.line(&format!("{name}_count"), None, total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_adds_its_classes_up_and_ends_at_infinity() {
        let mut page = Page::default();
        page.histogram("h", "help", &[(5, 1000), (1500, 1000)], &[1, 2, 4], "0.25");
        assert_eq!(
            page.0,
            "# HELP h help\n# TYPE h histogram\nh_bucket{le=\"0.005\"} 1\nh_bucket{le=\"1.5\"} 3\n\
             h_bucket{le=\"+Inf\"} 7\nh_sum 0.25\nh_count 7\n"
        );
    }

    #[test]
    fn seconds_are_exact() {
        for (count, parts, text) in [
            (0, 1000, "0"),
            (1000, 1000, "1"),
            (30_001, 1000, "30.001"),
            (250, 1_000_000, "0.00025"),
        ] {
            assert_eq!(seconds(count, parts), text);
        }
    }
}
