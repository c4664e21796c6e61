//! Attempts, as the ledger has them, in the shape of Svix.

use super::message::{Wants, find};
use crate::error::{ApiError, json};
use crate::extract::Ids;
use crate::out::{AttemptOut, Shown};
use crate::page::{ListOut, Listing};
use crate::query::{Query, wrong};
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::State;
use contract::ledger::Outcome;
use contract::{AttemptId, MessageId};
use http::{Response, StatusCode};
use std::collections::HashMap;
use std::sync::Arc;
use store::{Attempt, Message};

type Answer = Result<Response<Body>, ApiError>;

/// An attempt with what it is filtered by and shown with.
struct Row {
    id: AttemptId,
    attempt: Attempt,
    message: Option<Message>,
}

impl Row {
    fn new(attempt: Attempt, message: Option<Message>) -> Self {
        // An id that is none of ours cannot come out of our own store; it sorts first.
        let id = attempt
            .record
            .attempt_id
            .parse()
            .unwrap_or(AttemptId::from_bits(0));
        Self { id, attempt, message }
    }
}

/// The filters of both lists.
struct Filter {
    status: Option<u32>,
    class: Option<u32>,
    wants: Wants,
    with_content: bool,
    with_msg: bool,
}

impl Filter {
    fn read(query: &Query) -> Result<Self, ApiError> {
        let class = query.number("status_code_class", 0..=500)?;
        if let Some(class) = class.filter(|class| class % 100 != 0) {
            return Err(wrong(
                "status_code_class",
                &class.to_string(),
                "0, 100, 200, 300, 400 or 500",
            ));
        }
        Ok(Self {
            status: query.number("status", 0..=4)?,
            class,
            wants: Wants::read(query),
            with_content: query.flag("with_content", true)?,
            with_msg: query.flag("with_msg", false)?,
        })
    }

    fn takes(&self, row: &Row) -> bool {
        let record = &row.attempt.record;
        let status = match record.outcome {
            Some(Outcome::Succeeded) => 0,
            Some(_) => 2,
            None => 3,
        };
        let class = u32::from(record.status.unwrap_or(0)) / 100 * 100;
        self.status.is_none_or(|wanted| wanted == status)
            && self.class.is_none_or(|wanted| wanted == class)
            && row
                .message
                .as_ref()
                .is_none_or(|message| self.wants.takes(message))
    }
}

pub(super) async fn of_message(
    State(shared): State<Arc<Shared>>,
    Ids((app, msg)): Ids<(String, String)>,
    query: Query,
) -> Answer {
    let listing = Listing::<AttemptId>::by_time(&query, shared.now())?;
    let filter = Filter::read(&query)?;
    let message = find(&shared, &app, &msg).await?;
    let endpoint = match query.text("endpoint_id").filter(|id| !id.is_empty()) {
        Some(id) => Some(shared.endpoint(message.app, id).await?.key),
        None => None,
    };
    let urls = urls_of(&shared, message.id).await?;
    let attempts = shared.store.attempts(message.id, endpoint).await?.into_iter();
    let rows = attempts.map(|attempt| Row::new(attempt, Some(message.clone())));
    let page = listing.cut(rows.filter(|row| filter.takes(row)).collect(), |row: &Row| row.id);
    Ok(answer(&page, &filter, |row| {
        urls.get(&row.attempt.record.endpoint_id)
            .map_or("", String::as_str)
    }))
}

pub(super) async fn of_endpoint(
    State(shared): State<Arc<Shared>>,
    Ids((app, id)): Ids<(String, String)>,
    query: Query,
) -> Answer {
    let listing = Listing::<AttemptId>::by_time(&query, shared.now())?;
    let filter = Filter::read(&query)?;
    let app = shared.app(&app).await?;
    let endpoint = shared.endpoint(app.key, &id).await?;
    let with_messages = filter.with_msg || !filter.wants.everything();
    let fetch = |page| {
        let shared = Arc::clone(&shared);
        async move {
            let attempts = shared.store.attempts_of_endpoint(endpoint.key, page).await?;
            let mut rows = Vec::with_capacity(attempts.len());
            for attempt in attempts {
                let message = match attempt.record.message_id.parse::<MessageId>() {
                    Ok(id) if with_messages => shared.store.message_by_id(id).await?,
                    _ => None,
                };
                rows.push(Row::new(attempt, message));
            }
            Ok(rows)
        }
    };
    let page = listing
        .collect(fetch, |row: &Row| row.id, |row| filter.takes(row))
        .await?;
    Ok(answer(&page, &filter, |_| &endpoint.url))
}

pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Ids((app, msg, id)): Ids<(String, String, String)>,
    query: Query,
) -> Answer {
    let with_content = query.flag("with_content", true)?;
    let message = find(&shared, &app, &msg).await?;
    let attempt = match id.parse::<AttemptId>() {
        Ok(id) => shared.store.attempt(id).await?,
        Err(_) => None,
    };
    let attempt = attempt
        .filter(|attempt| attempt.record.message_id == message.id.to_string())
        .ok_or_else(|| ApiError::not_found("attempt", &id))?;
    let urls = urls_of(&shared, message.id).await?;
    let url = urls.get(&attempt.record.endpoint_id).map_or("", String::as_str);
    Ok(json(
        StatusCode::OK,
        &AttemptOut::new(
            &attempt,
            Shown {
                url,
                with_content,
                msg: None,
            },
        ),
    ))
}

/// The URLs of a message's endpoints, deleted ones too, by endpoint id.
async fn urls_of(shared: &Shared, message: MessageId) -> Result<HashMap<String, String>, ApiError> {
    let mut urls = HashMap::new();
    for delivery in shared.store.deliveries(message).await? {
        let id = delivery.endpoint_id.to_string();
        if urls.contains_key(&id) {
            continue;
        }
        if let Some(endpoint) = shared.store.endpoint_by_key(delivery.endpoint).await? {
            urls.insert(id, endpoint.url);
        }
    }
    Ok(urls)
}

fn answer<'a>(page: &'a ListOut<Row>, filter: &Filter, url: impl Fn(&'a Row) -> &'a str) -> Response<Body> {
    let rows = page.data.iter().map(|row| {
        let msg = row.message.as_ref().filter(|_| filter.with_msg);
        let shown = Shown {
            url: url(row),
            with_content: filter.with_content,
            msg,
        };
        AttemptOut::new(&row.attempt, shown)
    });
    let out = ListOut {
        data: rows.collect(),
        iterator: page.iterator.clone(),
        prev_iterator: page.prev_iterator.clone(),
        done: page.done,
    };
    json(StatusCode::OK, &out)
}
