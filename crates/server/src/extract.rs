//! What handlers take from a request: ids from the path, the body within its limit, the caller. Each refuses in the
//! API's own error shape.

use crate::error::ApiError;
use crate::shared::Shared;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// A body must be here whole within this time, however slowly it drips.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The ids in a path.
pub(crate) struct Ids<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Ids<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(ids)) => Ok(Self(ids)),
            Err(error) => Err(ApiError::unreadable(format!(
                "the path cannot be read: {}",
                error.body_text()
            ))),
        }
    }
}

/// The body, whole.
pub(crate) struct Raw(pub(crate) Bytes);

impl FromRequest<Arc<Shared>> for Raw {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let most = shared.max_body;
        let declared = request.headers().get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > most)) {
            return Err(too_large(most));
        }
        let body = Limited::new(request.into_body(), most).collect();
        match tokio::time::timeout(BODY_TIME, body).await {
            Ok(Ok(body)) => Ok(Self(body.to_bytes())),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(most)),
            Ok(Err(error)) => Err(ApiError::unreadable(format!(
                "the body could not be read: {error}"
            ))),
            Err(_) => Err(ApiError::coded(
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                "the body was not here within 30 seconds; send it again",
            )),
        }
    }
}

fn too_large(most: usize) -> ApiError {
    ApiError::coded(
        StatusCode::PAYLOAD_TOO_LARGE,
        "payload_too_large",
        format!(
            "the body is larger than {most} bytes; send less, or start the server with a larger `--max-body`"
        ),
    )
}
