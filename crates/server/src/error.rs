//! What a caller is told when a call is not done: the two error bodies of the Svix API, with details that say what
//! was found and what to do. Knows statuses and words; leaves logging to the front.

use axum::body::Body;
use axum::response::IntoResponse;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use store::StoreError;

/// One thing that is wrong in a request's path, query or body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Issue {
    /// Where: `["body", "url"]`.
    pub(crate) loc: Vec<String>,
    /// What is wrong, and what would be right.
    pub(crate) msg: String,
    /// A stable word: `value_error` where no closer one exists.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

impl Issue {
    /// A wrong value at a place of the body or the query.
    pub(crate) fn new(source: &str, field: &str, msg: impl Into<String>) -> Self {
        Self::of_kind("value_error", source, field, msg)
    }

    /// The same with a closer word.
    pub(crate) fn of_kind(kind: &'static str, source: &str, field: &str, msg: impl Into<String>) -> Self {
        let mut loc = vec![source.to_owned()];
        loc.extend(
            field
                .split('/')
                .filter(|part| !part.is_empty())
                .map(str::to_owned),
        );
        Self {
            loc,
            msg: msg.into(),
            kind,
        }
    }
}

/// Why a call was not done. Says who acts: the caller (4xx), nobody yet (429, 503: the same call again later), the
/// operator (500).
#[derive(Debug)]
pub(crate) enum ApiError {
    /// 422: everything that is wrong in the request, at once.
    Invalid(Vec<Issue>),
    /// Any other status.
    Coded {
        /// The status.
        status: StatusCode,
        /// The stable word.
        code: &'static str,
        /// What happened and what to do.
        detail: String,
        /// Seconds after which the same call may be tried again.
        retry_after: Option<u32>,
    },
}

impl ApiError {
    /// Any status with its word and a detail.
    pub(crate) fn coded(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self::Coded {
            status,
            code,
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// 404: a thing of this kind with this id or uid does not exist, as far as this caller can see.
    pub(crate) fn not_found(what: &str, found: &str) -> Self {
        let found = shorten(found);
        Self::coded(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("there is no {what} `{found}`; list what exists, or check the id and the application"),
        )
    }

    /// 409.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::coded(StatusCode::CONFLICT, "conflict", detail)
    }

    /// 400 for a request that cannot be read at all.
    pub(crate) fn unreadable(detail: impl Into<String>) -> Self {
        Self::coded(StatusCode::BAD_REQUEST, "generic_error", detail)
    }

    /// 422 with one problem in the body.
    pub(crate) fn in_body(field: &str, msg: impl Into<String>) -> Self {
        Self::Invalid(vec![Issue::new("body", field, msg)])
    }

    /// The status that will be answered.
    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Coded { status, .. } => *status,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { what, found } => {
                let found = shorten(&found);
                Self::conflict(format!("the {what} `{found}` is taken; choose another or read the one that has it"))
            }
            StoreError::NotFound { what, found } => Self::not_found(what, &found),
            StoreError::Full => Self::Coded {
                status: StatusCode::TOO_MANY_REQUESTS,
                code: "too_many_requests",
                detail: "the queue before the store is full and nothing was accepted; send it again after `Retry-After`"
                    .to_owned(),
                retry_after: Some(1),
            },
            StoreError::Unavailable { reason, .. } => {
                tracing::warn!(reason, "the store is unavailable");
                Self::Coded {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    code: "service_unavailable",
                    detail: "the store is unavailable and nothing was acknowledged; send it again after `Retry-After`"
                        .to_owned(),
                    retry_after: Some(1),
                }
            }
            StoreError::Corrupt { reason, .. } => {
                tracing::error!(reason, "the store is damaged");
                Self::coded(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "server_error",
                    "the store reports damage; the operator finds the reason in the server's log",
                )
            }
        }
    }
}

/// A caller's text in a message: long ones are cut, control characters made visible.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN_CHARS: usize = 80;
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[derive(Serialize)]
struct InvalidBody<'a> {
    detail: &'a [Issue],
}

#[derive(Serialize)]
struct CodedBody<'a> {
    code: &'a str,
    detail: &'a str,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        match self {
            Self::Invalid(issues) => json(StatusCode::UNPROCESSABLE_ENTITY, &InvalidBody { detail: &issues }),
            Self::Coded {
                status,
                code,
                detail,
                retry_after,
            } => {
                let mut response = json(
                    status,
                    &CodedBody {
                        code,
                        detail: &detail,
                    },
                );
                if let Some(secs) = retry_after {
                    response
                        .headers_mut()
                        .insert(header::RETRY_AFTER, HeaderValue::from(secs));
                }
                if status == StatusCode::UNAUTHORIZED {
                    let scheme = HeaderValue::from_static("Bearer");
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
                }
                response
            }
        }
    }
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(body) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            let kind = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        // Only a map with keys that are no strings can fail, and none of ours has such keys.
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
