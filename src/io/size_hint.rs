//! What is known about the size of an output before its first byte.

/// Into how many parts such a buffer is cut where many outputs are written at the same time.
const MOST_SHARES: u64 = 8;

/// What is known of an output before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeHint {
    /// About how many bytes; 0 where that is not known.
    pub bytes: u64,
    /// Of them, those that are copied from inputs as they are, so that the output is no shorter.
    pub copied: u64,
    /// Where in its input the first blob stands that is copied.
    pub first_copy: Option<u64>,
    /// How many more outputs are written at the same time: each takes less memory then.
    pub others: usize,
}

impl SizeHint {
    /// About so many bytes, all of them new.
    pub const fn new_bytes(bytes: u64) -> Self {
        Self {
            bytes,
            copied: 0,
            first_copy: None,
            others: 0,
        }
    }

    /// A range of an input that starts at `offset`.
    pub const fn copy_of(offset: u64, bytes: u64) -> Self {
        Self {
            bytes,
            copied: bytes,
            first_copy: Some(offset),
            others: 0,
        }
    }

    /// What this output may take of a buffer of so many bytes.
    pub(super) fn share_of(&self, bytes: u64) -> u64 {
        bytes / (self.others as u64 + 1).min(MOST_SHARES)
    }

    /// This, and then `more`.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(more.bytes),
            copied: self.copied.saturating_add(more.copied),
            first_copy: if self.bytes == 0 {
                more.first_copy
            } else {
                self.first_copy
            },
            others: self.others.max(more.others),
        }
    }
}
