//! The replacement of `wide` for processors other than x86-64, which do not have its registers.

use super::packed::PartialSums;

/// A type without values, because the processor does not have the registers.
#[derive(Debug, Clone, Copy)]
pub(super) enum NoRegisters {}

impl NoRegisters {
    pub(super) const fn detect() -> Option<Self> {
        None
    }

    pub(super) const fn fill(self, _run: &[u8], _sums: &mut [i64], _sum: i64) -> PartialSums {
        match self {}
    }

    pub(super) const fn push(
        self,
        _run: &[u8],
        _most: usize,
        _sums: &mut Vec<i64>,
        _sum: i64,
    ) -> PartialSums {
        match self {}
    }
}
