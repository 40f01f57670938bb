//! Delta-coded columns, in which each value is stored as its difference from the previous value.

use crate::error::{FormatError, FormatResult};
use crate::pbf::wire::{Packed, Varints};

/// The error for a delta-coded column with a value that does not fit 64 bits.
pub(in crate::pbf) const OVERFLOW: FormatError =
    FormatError::new("DenseNodes: a delta-coded column overflows");

/// The number of values of a column that are decoded at a time.
pub(in crate::pbf) const STRIDE: usize = 256;

/// A reader of the values of a delta-coded column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delta<'a> {
    deltas: Varints<'a>,
    last: i64,
}

impl<'a> Delta<'a> {
    /// The reader of an absent column, which has no values.
    pub(super) const NONE: Self = Self {
        deltas: Varints::new(&[]),
        last: 0,
    };

    pub(crate) fn new(column: &'a Packed<'_>) -> Self {
        Self::of_bytes(column.as_bytes())
    }

    /// Creates a reader of an encoded column.
    pub(super) fn of_bytes(column: &'a [u8]) -> Self {
        Self {
            deltas: Varints::new(column),
            last: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn read(&mut self) -> FormatResult<i64> {
        // The sum wraps around, because the delta between ids at opposite ends of their range does not fit 64 bits.
        self.last = self.last.wrapping_add(self.deltas.read_sint()?);
        Ok(self.last)
    }

    /// Reads the next value as a coordinate. Fails if the sum overflows.
    #[inline(always)]
    pub(super) fn read_coordinate(&mut self) -> FormatResult<i64> {
        let sum = self.last.checked_add(self.deltas.read_sint()?);
        self.last = sum.ok_or(OVERFLOW)?;
        Ok(self.last)
    }

    /// Checks a column of coordinates. Fails if a varint is malformed, or if a sum overflows.
    pub(super) fn check_coordinates(mut self) -> FormatResult<()> {
        while !self.is_done() {
            self.read_coordinate()?;
        }
        Ok(())
    }

    /// Fills `values` with the next values. Sums wrap around. Fails if fewer than `values.len()` values are left.
    #[inline]
    pub(crate) fn fill(&mut self, values: &mut [i64]) -> FormatResult<()> {
        self.last = self.deltas.fill_sums(values, self.last)?;
        Ok(())
    }

    /// Appends all remaining values to `values`.
    #[inline]
    pub(crate) fn append_all_to(mut self, values: &mut Vec<i64>) -> FormatResult<()> {
        self.append_some_to(usize::MAX, values)
    }

    /// Appends the next values to `values`, at most `most`.
    #[inline]
    pub(crate) fn append_some_to(
        &mut self,
        most: usize,
        values: &mut Vec<i64>,
    ) -> FormatResult<()> {
        self.last = self.deltas.push_sums(most, values, self.last)?;
        Ok(())
    }

    /// Reads the next values into `values`, until `values` is full, the column ends, or the next value is malformed.
    /// Returns the values that were read. Fails if the first value is malformed.
    #[inline]
    pub(crate) fn read_some<'v>(&mut self, values: &'v mut [i64]) -> FormatResult<&'v [i64]> {
        self.deltas.read_sums(values, &mut self.last)
    }

    /// Skips `count` values. Does nothing for an absent column.
    pub(super) fn skip(&mut self, count: usize) -> FormatResult<()> {
        if !self.is_done() {
            self.last = self.last.wrapping_add(self.deltas.sum_sints(count)?);
        }
        Ok(())
    }

    /// Whether every value was read.
    pub(crate) const fn is_done(&self) -> bool {
        self.deltas.is_done()
    }

    /// Reads the next value. Returns 0 if no value is left, as in an absent column.
    #[inline(always)]
    pub(crate) fn read_or_zero(&mut self) -> FormatResult<i64> {
        if self.is_done() { Ok(0) } else { self.read() }
    }
}
