//! `/metrics` in Prometheus text: what is waiting, what became of it, what the API answered, what the audit found.

use crate::error::ApiError;
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::State;
use http::{HeaderValue, Response, header};
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The page.
pub(super) async fn text(State(shared): State<Arc<Shared>>) -> Result<Response<Body>, ApiError> {
    let counts = shared.store.counts().await?;
    let mut page = Page::default();
    page.head(
        "duehook_deliveries",
        "gauge",
        "Deliveries by state; held is pending at an endpoint that is not active.",
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
    page.head(
        "duehook_messages_accepted_total",
        "counter",
        "Messages acknowledged since this process started.",
    );
    page.line(
        "duehook_messages_accepted_total",
        None,
        shared.stats.accepted.load(Ordering::Relaxed),
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
        shared.stats.connections.load(Ordering::Relaxed),
    );
    audit(&mut page, &shared);
    let mut response = Response::new(Body::from(page.0));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
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
        "Breaches of the contract that the audit found, by kind.",
    );
    let total: u64 = verdict.findings.values().sum();
    page.line("duehook_audit_findings", Some(("kind", "all")), total);
    for (kind, n) in &verdict.findings {
        page.line("duehook_audit_findings", Some(("kind", kind)), n);
    }
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
}
