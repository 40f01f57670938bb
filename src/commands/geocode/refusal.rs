//! Errors as statuses of HTTP.

use crate::error::Error;
use hyper::StatusCode;

/// An error of a client: its status, and a sentence.
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
