//! The signals to a service.

use std::io;

/// A request made by a signal.
pub(super) enum SignalRequest {
    /// Ends the service.
    End,
    /// Opens the index again if it was replaced.
    #[cfg_attr(windows, expect(dead_code, reason = "there is no SIGHUP"))]
    Reload,
}

/// The signals SIGINT and SIGTERM, which end a service, and SIGHUP, which reloads the index.
#[cfg(unix)]
pub(super) struct ServiceSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ServiceSignals {
    pub(super) fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.interrupt.recv() => SignalRequest::End,
            _ = self.terminate.recv() => SignalRequest::End,
            _ = self.hangup.recv() => SignalRequest::Reload,
        }
    }
}

/// Ctrl-C, which ends a service.
#[cfg(windows)]
pub(super) struct ServiceSignals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl ServiceSignals {
    pub(super) fn catch() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> SignalRequest {
        self.0.recv().await;
        SignalRequest::End
    }
}
