//! The columns for statistics of objects in a table of contents.

use super::column;
use super::columns::{ColumnReader, Columns, deltas, put_column};
use crate::error::{FormatError, FormatResult};
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::BlobEntry;
use crate::pbf::ObjectStatistics;

/// A column that stores one number for each entry that has statistics.
struct StatisticsColumn {
    number: u64,
    /// Whether each value is stored as the difference from the previous value.
    is_delta: bool,
    /// Whether only entries of ways or relations have a value.
    is_of_references: bool,
    /// Returns the value to store. The arguments are the number of objects, and their statistics.
    get: fn(u32, &ObjectStatistics) -> i64,
    /// Stores a value. The values of the earlier columns must be stored already. Returns `None` if the value is out of
    /// range.
    set: fn(u32, &mut ObjectStatistics, i64) -> Option<()>,
}

/// Describes the column of a field.
macro_rules! column {
    ($number:ident, $field:ident) => {
        StatisticsColumn {
            number: column::$number,
            is_delta: false,
            is_of_references: false,
            get: |_, found| found.$field.into(),
            set: |_, found, value| {
                found.$field = value.try_into().ok()?;
                Some(())
            },
        }
    };
    // The share of the objects that have an attribute, or its difference from the share of another attribute.
    ($number:ident, share $field:ident $(- $other:ident)?) => {
        StatisticsColumn {
            get: |count, found| encode_missing_count(count, found.$field) $(- encode_missing_count(count, found.$other))?,
            set: |count, found, value| {
                $(let value = value.checked_add(encode_missing_count(count, found.$other))?;)?
                found.$field = decode_missing_count(count, value)?;
                Some(())
            },
            ..column!($number, $field)
        }
    };
}

/// The columns, in the order in which they are written.
static COLUMNS: &[StatisticsColumn] = &[
    column!(WITH_VERSION, share with_version),
    column!(WITH_TIMESTAMP, share with_timestamp),
    column!(WITH_CHANGESET, share with_changeset),
    column!(WITH_UID, share with_uid - with_changeset),
    column!(WITH_USER, share with_user - with_uid),
    column!(DELETED, deleted),
    column!(FURTHER_VERSIONS, further_versions),
    column!(TAGGED, tagged),
    StatisticsColumn {
        get: |_, found| i64::from(found.tags) - i64::from(found.tagged),
        set: |_, found, value| {
            let more = u32::try_from(value).ok()?;
            found.tags = more.checked_add(found.tagged)?;
            Some(())
        },
        ..column!(TAGS, tags)
    },
    StatisticsColumn {
        is_delta: true,
        ..column!(FIRST_TIMESTAMP, first_timestamp)
    },
    StatisticsColumn {
        is_delta: true,
        ..column!(LAST_TIMESTAMP, last_timestamp)
    },
    StatisticsColumn {
        is_of_references: true,
        ..column!(REFERENCES, references)
    },
    StatisticsColumn {
        is_of_references: true,
        ..column!(MOST_REFERENCES, most_references)
    },
];

/// Appends the columns of statistics, if any entry has statistics.
pub(super) fn put_columns(out: &mut Vec<u8>, entries: &[BlobEntry]) {
    if entries.iter().all(|entry| entry.statistics.is_none()) {
        return;
    }
    let are_known = entries.iter().map(|entry| entry.statistics.is_some());
    put_column(out, column::STATISTICS, are_known.map(i64::from));
    for column in COLUMNS {
        let values = entries.iter().filter_map(|entry| {
            let has_value = !column.is_of_references || has_references(entry.kinds);
            let statistics = entry.statistics.filter(|_| has_value)?;
            Some((column.get)(entry.count, &statistics))
        });
        if column.is_delta {
            put_column(out, column.number, deltas(values));
        } else {
            put_column(out, column.number, values);
        }
    }
}

/// Whether `kinds` is a single kind whose objects have nodes or members.
fn has_references(kinds: KindSet) -> bool {
    kinds.single().is_some_and(|kind| kind != ObjectKind::Node)
}

/// Encodes `with`, the number of objects that have an attribute, out of `count` objects. Returns 0 if all objects have
/// the attribute, 1 if no object has it, and `count - with + 1` otherwise.
fn encode_missing_count(count: u32, with: u32) -> i64 {
    match with {
        _ if with == count => 0,
        0 => 1,
        _ => i64::from(count) - i64::from(with) + 1,
    }
}

/// Decodes the result of [`encode_missing_count`]. Returns the number of objects that have the attribute, out of
/// `count` objects.
fn decode_missing_count(count: u32, share: i64) -> Option<u32> {
    match share {
        0 => Some(count),
        1 => Some(0),
        _ => count.checked_sub(u32::try_from(share.checked_sub(1)?).ok()?),
    }
}

/// Reads the columns of statistics, in the order of the entries.
pub(super) struct StatisticsColumns<'a> {
    are_known: ColumnReader<'a>,
    /// The readers of [`COLUMNS`].
    readers: Vec<ColumnReader<'a>>,
}

impl<'a> StatisticsColumns<'a> {
    pub(super) fn new(columns: &Columns<'a>) -> Self {
        let reader = |column: &StatisticsColumn| columns.get(column.number, column.is_delta);
        Self {
            are_known: columns.get(column::STATISTICS, false),
            readers: COLUMNS.iter().map(reader).collect(),
        }
    }

    /// Returns the statistics of the next entry, which has `count` objects of `kinds`.
    pub(super) fn next(
        &mut self,
        count: u32,
        kinds: KindSet,
    ) -> FormatResult<Option<ObjectStatistics>> {
        let range = || FormatError::new("a statistic is out of range");
        match self.are_known.next()? {
            Some(1) => kinds.single().ok_or_else(range)?,
            _ => return Ok(None),
        };
        let mut found = ObjectStatistics::default();
        for (column, reader) in COLUMNS.iter().zip(&mut self.readers) {
            if !column.is_of_references || has_references(kinds) {
                (column.set)(count, &mut found, reader.next_number()?).ok_or_else(range)?;
            }
        }
        Ok(Some(found))
    }
}
