//! Errors as HTTP statuses.

use crate::error::Error;
use hyper::StatusCode;

/// An error response, with its HTTP status and a message.
pub(super) struct Refusal(pub StatusCode, pub String);

impl From<String> for Refusal {
    fn from(cause: String) -> Self {
        Self(StatusCode::BAD_REQUEST, cause)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}
