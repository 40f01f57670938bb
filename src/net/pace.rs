//! A time limit for transfers. Without it, a server that sends a byte now and then could hold up a run for ever.

use std::time::{Duration, Instant};

/// The time allowed per byte. The minimum rate is thus 1,000 bytes a second for files of any size.
const BYTE_TIME: Duration = Duration::from_millis(1);

/// The time limit of a transfer with a minimum rate.
pub(crate) struct Pace {
    started: Instant,
    patience: Duration,
}

impl Pace {
    /// Creates the time limit of a transfer that begins now. `patience` is the time allowed in addition to
    /// [`BYTE_TIME`] per byte.
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            started: Instant::now(),
            patience,
        }
    }

    /// Allows the transfer more time.
    pub(crate) fn allow(&mut self, more: Duration) {
        self.patience = self.patience.saturating_add(more);
    }

    /// Whether the transfer is too slow, given that `bytes` bytes have arrived by now.
    pub(crate) fn is_too_slow(&self, bytes: u64) -> bool {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.started.elapsed()
            > self
                .patience
                .saturating_add(BYTE_TIME.saturating_mul(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_gets_time_for_each_byte() {
        let mut pace = Pace::new(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
        assert!(pace.is_too_slow(0) && !pace.is_too_slow(60_000));
        pace.allow(Duration::from_secs(60));
        assert!(!pace.is_too_slow(0));
    }
}
