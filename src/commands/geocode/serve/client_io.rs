//! Reads from and writes to a client. Writes fail if the client accepts nothing for some time.

use crate::runtime::lock;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// The state of a connection: whether its answers have been sent, and whether a part of a request has arrived. Only the
/// task of the connection uses this state.
#[derive(Default)]
pub(super) struct SendState {
    is_unsent: AtomicBool,
    /// Whether a part of a request has arrived.
    has_partial_request: AtomicBool,
    waiting: Mutex<Option<Waker>>,
}

impl SendState {
    /// Waits until all bytes of answers have been sent.
    pub(super) fn poll_sent(&self, context: &Context<'_>) -> Poll<()> {
        if !self.is_unsent.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        let mut waiting = lock(&self.waiting);
        *waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// Records that bytes wait to be sent.
    pub(super) fn set_unsent(&self) {
        self.is_unsent.store(true, Ordering::Relaxed);
    }

    /// Records that a request is complete and will be answered.
    pub(super) fn set_request_complete(&self) {
        self.has_partial_request.store(false, Ordering::Relaxed);
    }

    /// Whether a part of a request has arrived, but not the whole request.
    pub(super) fn has_partial_request(&self) -> bool {
        self.has_partial_request.load(Ordering::Relaxed)
    }

    fn set_sent(&self) {
        if self.is_unsent.swap(false, Ordering::Relaxed) {
            let mut waiting = lock(&self.waiting);
            if let Some(waker) = waiting.take() {
                waker.wake();
            }
        }
    }
}

/// The connection to a client. A write fails if the client accepts no bytes within `limit`.
pub(super) struct ClientIo {
    stream: TokioIo<TcpStream>,
    sent: Arc<SendState>,
    limit: Duration,
    /// The timer that runs while the client accepts no bytes.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl ClientIo {
    pub(super) fn new(stream: TcpStream, sent: Arc<SendState>, limit: Duration) -> Self {
        Self {
            stream: TokioIo::new(stream),
            sent,
            limit,
            stalled: None,
        }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// Returns the outcome of a write, or an error if the client has accepted no bytes for too long.
    fn fail_if_write_stalled(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        stalled
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.sent.has_partial_request.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl Write for ClientIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.fail_if_write_stalled(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.fail_if_write_stalled(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper calls this function when it has written all bytes to the socket.
        self.sent.set_sent();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Does nothing, because `close_gracefully` shuts down the connection later.
        Poll::Ready(Ok(()))
    }
}
