//! Files of servers, for an update that can be cancelled.

use crate::net::{BodyRange, Fault, Transport};
use crate::runtime::{Cancellation, Context};
use std::io::{self, Read};
use std::time::Duration;

/// The maximum time between two checks for a cancellation during a pause.
const STEP: Duration = Duration::from_millis(50);

/// A transport that opens no more files after the update is cancelled. From then on, reading an open file fails.
pub(super) struct CancellableFiles<'t> {
    files: &'t dyn Transport,
    cancellation: Cancellation,
}

impl<'t> CancellableFiles<'t> {
    pub(super) fn new(files: &'t dyn Transport, ctx: &Context) -> Self {
        Self {
            files,
            cancellation: ctx.cancellation.clone(),
        }
    }

    /// Waits before another attempt. Fails if the update is cancelled.
    pub(super) fn pause(&self, time: Duration) -> Result<(), Fault> {
        let mut left = time;
        loop {
            self.fail_if_cancelled()?;
            if left.is_zero() {
                return Ok(());
            }
            let step = left.min(STEP);
            std::thread::sleep(step);
            left -= step;
        }
    }

    /// Fails if the update is cancelled.
    fn fail_if_cancelled(&self) -> Result<(), Fault> {
        let checked = self.cancellation.check();
        checked.map_err(|error| Fault::Permanent(error.to_string()))
    }
}

impl Transport for CancellableFiles<'_> {
    fn open(&self, url: &str, start: u64) -> Result<BodyRange, Fault> {
        self.fail_if_cancelled()?;
        let range = self.files.open(url, start)?;
        let cancellation = self.cancellation.clone();
        Ok(BodyRange {
            bytes: Box::new(CancellableRead {
                bytes: range.bytes,
                cancellation,
            }),
            ..range
        })
    }
}

/// A reader that fails as soon as the update is cancelled.
struct CancellableRead {
    bytes: Box<dyn Read + Send>,
    cancellation: Cancellation,
}

impl Read for CancellableRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.cancellation.check().map_err(io::Error::other)?;
        self.bytes.read(buffer)
    }
}
