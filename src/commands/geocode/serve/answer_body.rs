//! The bodies of HTTP responses.

use super::client_io::SendState;
use super::map_text::MapText;
use crate::error::{Error, Result};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of an HTTP response.
pub(super) struct AnswerBody {
    /// The bytes to send next.
    next: Option<Bytes>,
    /// The part that has not been generated yet.
    rest: Option<Box<AnswerRest>>,
}

/// The rest of an answer. Each piece of it is generated only after all bytes before the piece have been sent.
struct AnswerRest {
    text: MapText,
    sent: Arc<SendState>,
}

impl AnswerBody {
    pub(super) const fn empty() -> Self {
        Self {
            next: None,
            rest: None,
        }
    }

    pub(super) const fn from_bytes(bytes: Bytes) -> Self {
        Self {
            next: Some(bytes),
            rest: None,
        }
    }

    /// Creates the body of a map. Its first piece is generated immediately.
    pub(super) fn from_map_text(mut text: MapText, sent: Arc<SendState>) -> Result<Self> {
        Ok(Self {
            next: text.next_piece()?.map(Bytes::from),
            rest: Some(Box::new(AnswerRest { text, sent })),
        })
    }

    /// Returns the bytes to send next.
    pub(super) fn next_bytes(&self) -> &[u8] {
        self.next.as_deref().unwrap_or_default()
    }
}

impl From<String> for AnswerBody {
    fn from(text: String) -> Self {
        Self::from_bytes(Bytes::from(text))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        if let Some(bytes) = self.next.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        ready!(rest.sent.poll_sent(context));
        let piece = rest.text.next_piece().transpose();
        let piece = piece.map(|piece| piece.map(|text| Frame::data(Bytes::from(text))));
        match piece {
            Some(_) => rest.sent.set_unsent(),
            None => self.rest = None,
        }
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.next_bytes().len() as u64),
        }
    }
}
