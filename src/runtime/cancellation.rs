//! Cancellation of commands.

use crate::error::{Error, Result};
use std::sync::Arc;
#[cfg(feature = "unstable")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flag that cancels the commands of a context. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation(Arc<CancelFlag>);

#[derive(Debug, Default)]
struct CancelFlag {
    is_set: AtomicBool,
    /// The cancellation that also cancels this one; `None` if there is none.
    parent: Option<Cancellation>,
    /// The number of checks so far.
    #[cfg(feature = "unstable")]
    checks: AtomicU64,
    /// The number of the check that sets the flag, plus 1; 0 if no check does.
    #[cfg(feature = "unstable")]
    last_check: AtomicU64,
}

impl Cancellation {
    /// Fails if the work has been cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        #[cfg(feature = "unstable")]
        self.count_check();
        if self.is_set() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Cancels the work.
    pub(super) fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed) || self.0.parent.as_ref().is_some_and(Self::is_set)
    }

    /// Returns a new cancellation. Setting this one also sets the new one, but not the reverse.
    pub(super) fn child(&self) -> Self {
        Self(Arc::new(CancelFlag {
            parent: Some(self.clone()),
            ..CancelFlag::default()
        }))
    }

    #[cfg(feature = "unstable")]
    fn count_check(&self) {
        if let Some(parent) = &self.0.parent {
            parent.count_check();
        }
        let checks = self.0.checks.fetch_add(1, Ordering::Relaxed) + 1;
        let last = self.0.last_check.load(Ordering::Relaxed);
        if last > 0 && checks >= last {
            self.set();
        }
    }

    #[cfg(feature = "unstable")]
    pub(super) fn set_at_check(&self, number: u64) {
        self.0.last_check.store(number + 1, Ordering::Relaxed);
    }

    #[cfg(feature = "unstable")]
    pub(super) fn checks_made(&self) -> u64 {
        self.0.checks.load(Ordering::Relaxed)
    }
}
