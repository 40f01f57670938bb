//! Estimates of the size of an output, made before its first byte is written.

/// The maximum number by which the size of a buffer is divided if several outputs are written at the same time.
const MAX_SHARES: u64 = 8;

/// The estimated size of an output, and the number of its bytes that are copied from inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeHint {
    /// The estimated size of the output in bytes; 0 if unknown.
    pub bytes: u64,
    /// The number of bytes that are copied from inputs unchanged. It is a lower bound of the size of the output.
    pub copied: u64,
    /// If the output begins with a copied blob, the offset of that blob in the input.
    pub first_copy: Option<u64>,
    /// The number of other outputs that are written at the same time. The more outputs there are, the smaller is the
    /// buffer of each output.
    pub others: usize,
}

impl SizeHint {
    /// Returns a hint for an output of about `bytes` bytes without copies.
    pub const fn new_bytes(bytes: u64) -> Self {
        Self {
            bytes,
            copied: 0,
            first_copy: None,
            others: 0,
        }
    }

    /// Returns a hint for a copy of `bytes` bytes of an input from `offset` on.
    pub const fn copy_of(offset: u64, bytes: u64) -> Self {
        Self {
            bytes,
            copied: bytes,
            first_copy: Some(offset),
            others: 0,
        }
    }

    /// Returns the buffer size of this output in bytes, if `bytes` bytes are divided among the outputs. The result is
    /// at least an eighth of `bytes`.
    pub(super) fn buffer_share(&self, bytes: u64) -> u64 {
        bytes / (self.others as u64 + 1).min(MAX_SHARES)
    }

    /// Returns the hint for an output that consists of the bytes of `self` followed by the bytes of `more`.
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
