//! The columns of a table of contents. Writes columns in the shortest coding, and reads their values one by one.

use super::column;
use crate::error::{FormatError, FormatResult};
use crate::pbf::wire::{Varints, put_sint, put_varint};

/// Column coding: one zigzag varint for each value.
const PLAIN: u8 = 0;
/// Column coding: for each run of equal values, the value as a zigzag varint and the length of the run as a varint.
const RUNS: u8 = 1;
/// Column coding: eight little-endian bytes for each value.
pub(super) const FIXED64: u8 = 2;

/// Returns the difference between each value and the previous one. The first value is compared with 0.
pub(super) fn deltas(
    values: impl Iterator<Item = i64> + Clone,
) -> impl Iterator<Item = i64> + Clone {
    let mut last = 0;
    values.map(move |value| {
        let delta = value - last;
        last = value;
        delta
    })
}

/// Appends a column as its number, its length in bytes, its coding and its values. Uses runs if they are shorter.
pub(super) fn put_column(
    out: &mut Vec<u8>,
    number: u64,
    values: impl Iterator<Item = i64> + Clone,
) {
    let (mut plain, mut runs) = (vec![PLAIN], vec![RUNS]);
    let mut run: Option<(i64, u64)> = None;
    let put_run = |runs: &mut Vec<u8>, (value, len): (i64, u64)| {
        put_sint(runs, value);
        put_varint(runs, len);
    };
    for value in values {
        put_sint(&mut plain, value);
        run = match run {
            Some((last, len)) if last == value => Some((last, len + 1)),
            Some(ended) => {
                put_run(&mut runs, ended);
                Some((value, 1))
            }
            None => Some((value, 1)),
        };
    }
    if let Some(ended) = run {
        put_run(&mut runs, ended);
    }
    let shorter = if runs.len() < plain.len() {
        runs
    } else {
        plain
    };
    put_varint(out, number);
    put_varint(out, shorter.len() as u64);
    out.extend_from_slice(&shorter);
}

/// The error for a column with fewer values than there are entries.
pub(super) const TOO_SHORT: FormatError = FormatError::new("a column is too short");

/// The columns of a table, by their numbers.
#[derive(Default)]
pub(super) struct Columns<'a>(Vec<(u64, ColumnReader<'a>)>);

impl<'a> Columns<'a> {
    pub(super) fn parse(mut fields: Varints<'a>) -> FormatResult<Self> {
        let mut columns = Self::default();
        let mut rest = fields.rest();
        while !rest.is_empty() {
            fields = Varints::new(rest);
            let number = fields.read()?;
            let len = usize::try_from(fields.read()?).unwrap_or(usize::MAX);
            let (column, behind) = fields
                .rest()
                .split_at_checked(len)
                .ok_or(FormatError::new("a column is cut off"))?;
            if columns.0.iter().any(|(found, _)| *found == number) {
                return Err(FormatError::new("a column occurs twice"));
            }
            if (column::BLOBS..=column::LAST).contains(&number) {
                columns.0.push((number, ColumnReader::parse(column)?));
            }
            rest = behind;
        }
        Ok(columns)
    }

    /// Returns the column with the given number. If the column is `delta_coded`, reading it returns the running sums of
    /// its values. A missing column has no values.
    pub(super) fn get(&self, number: u64, delta_coded: bool) -> ColumnReader<'a> {
        let column = self.0.iter().find(|(found, _)| *found == number);
        ColumnReader {
            delta_coded,
            ..column.map_or(ColumnReader::default(), |(_, column)| *column)
        }
    }
}

/// Reads the values of a column in order, without storing them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnReader<'a> {
    coding: u8,
    bytes: Varints<'a>,
    /// The number of times that `value` is still to be repeated.
    repeats: u64,
    value: i64,
    delta_coded: bool,
    sum: i64,
}

impl Default for ColumnReader<'_> {
    /// Returns a column without values.
    fn default() -> Self {
        Self {
            coding: PLAIN,
            bytes: Varints::new(&[]),
            repeats: 0,
            value: 0,
            delta_coded: false,
            sum: 0,
        }
    }
}

impl<'a> ColumnReader<'a> {
    pub(super) fn parse(column: &'a [u8]) -> FormatResult<Self> {
        let (coding, bytes) = column
            .split_first()
            .ok_or(FormatError::new("a column is empty"))?;
        match *coding {
            PLAIN | RUNS | FIXED64 => Ok(Self {
                coding: *coding,
                bytes: Varints::new(bytes),
                ..Self::default()
            }),
            other => Err(FormatError::with(format!(
                "column coding {other} is not known"
            ))),
        }
    }

    /// Returns the number of bytes of the values that have not been read.
    pub(super) fn bytes_left(&self) -> usize {
        self.bytes.rest().len()
    }

    /// Returns the next value, or `None` at the end of the column.
    pub(super) fn next(&mut self) -> FormatResult<Option<i64>> {
        if self.repeats > 0 {
            self.repeats -= 1;
        } else if self.bytes.is_done() {
            return Ok(None);
        } else if self.coding == FIXED64 {
            self.value = self.bytes.read_fixed64()?;
        } else {
            self.value = self.bytes.read_sint()?;
            if self.coding == RUNS {
                let len = self.bytes.read()?;
                self.repeats = len
                    .checked_sub(1)
                    .ok_or(FormatError::new("a run is empty"))?;
            }
        }
        if !self.delta_coded {
            return Ok(Some(self.value));
        }
        self.sum = self.sum.wrapping_add(self.value);
        Ok(Some(self.sum))
    }

    /// Returns the next value, as a number of type `T`. Fails at the end of the column, or if the value does not fit
    /// into `T`.
    pub(super) fn next_number<T: TryFrom<i64>>(&mut self) -> FormatResult<T> {
        let value = self.next()?.ok_or(TOO_SHORT)?;
        T::try_from(value).map_err(|_| FormatError::new("a value is out of range"))
    }

    /// Fails unless all values have been read.
    pub(super) fn check_end(&self) -> FormatResult<()> {
        if self.repeats == 0 && self.bytes.is_done() {
            Ok(())
        } else {
            Err(FormatError::new("a column is too long"))
        }
    }
}
