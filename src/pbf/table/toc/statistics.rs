//! The columns for statistics of objects in a table of contents.

use super::column;
use super::columns::{ColumnReader, Columns, deltas, put_column};
use crate::error::FormatError;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::BlobEntry;
use crate::pbf::ObjectStatistics;

/// Appends the columns of statistics, if any entry has statistics.
pub(super) fn put_columns(out: &mut Vec<u8>, entries: &[BlobEntry]) {
    if entries.iter().all(|entry| entry.statistics.is_none()) {
        return;
    }
    let are_known = entries.iter().map(|entry| entry.statistics.is_some());
    put_column(out, column::STATISTICS, are_known.map(i64::from));
    let known = || {
        let pairs = entries.iter().map(|entry| (entry, entry.statistics));
        pairs.filter_map(|(entry, statistics)| Some((entry, statistics?)))
    };
    type Value = fn(&BlobEntry, &ObjectStatistics) -> i64;
    let columns: [(u64, Value); 9] = [
        (column::WITH_VERSION, |entry, found| {
            share(entry.count, found.with_version)
        }),
        (column::WITH_TIMESTAMP, |entry, found| {
            share(entry.count, found.with_timestamp)
        }),
        (column::WITH_CHANGESET, |entry, found| {
            share(entry.count, found.with_changeset)
        }),
        (column::WITH_UID, |entry, found| {
            share(entry.count, found.with_uid) - share(entry.count, found.with_changeset)
        }),
        (column::WITH_USER, |entry, found| {
            share(entry.count, found.with_user) - share(entry.count, found.with_uid)
        }),
        (column::DELETED, |_, found| found.deleted.into()),
        (column::FURTHER_VERSIONS, |_, found| {
            found.further_versions.into()
        }),
        (column::TAGGED, |_, found| found.tagged.into()),
        (column::TAGS, |_, found| {
            i64::from(found.tags) - i64::from(found.tagged)
        }),
    ];
    for (number, value) in columns {
        let values = known().map(|(entry, found)| value(entry, &found));
        put_column(out, number, values);
    }
    let firsts = known().map(|(_, found)| i64::from(found.first_timestamp));
    put_column(out, column::FIRST_TIMESTAMP, deltas(firsts));
    let lasts = known().map(|(_, found)| i64::from(found.last_timestamp));
    put_column(out, column::LAST_TIMESTAMP, deltas(lasts));
    let with_references = || known().filter(|(entry, _)| has_references(entry.kinds));
    let references = with_references().map(|(_, found)| i64::from(found.references));
    put_column(out, column::REFERENCES, references);
    let most = with_references().map(|(_, found)| i64::from(found.most_references));
    put_column(out, column::MOST_REFERENCES, most);
}

/// Whether `kinds` is a single kind whose objects have nodes or members.
fn has_references(kinds: KindSet) -> bool {
    kinds.single().is_some_and(|kind| kind != ObjectKind::Node)
}

/// Encodes `with`, the number of objects that have an attribute, out of `count` objects. The result is 0 if all objects
/// have the attribute, and 1 if no object has it. Otherwise it is one more than the number of objects without the
/// attribute.
fn share(count: u32, with: u32) -> i64 {
    match with {
        _ if with == count => 0,
        0 => 1,
        _ => i64::from(count) - i64::from(with) + 1,
    }
}

/// Decodes the result of [`share`]. Returns the number of objects that have the attribute, out of `count` objects.
fn from_share(count: u32, share: i64) -> Option<u32> {
    match share {
        0 => Some(count),
        1 => Some(0),
        _ => count.checked_sub(u32::try_from(share.checked_sub(1)?).ok()?),
    }
}

/// Reads the columns of statistics, in the order of the entries.
pub(super) struct StatisticsColumns<'a> {
    are_known: ColumnReader<'a>,
    /// The columns that have a value for each entry with statistics, by ascending number.
    columns: [ColumnReader<'a>; 11],
    references: [ColumnReader<'a>; 2],
}

impl<'a> StatisticsColumns<'a> {
    pub(super) fn new(columns: &Columns<'a>) -> Self {
        let numbers = [column::REFERENCES, column::MOST_REFERENCES];
        Self {
            are_known: columns.get(column::STATISTICS, false),
            columns: std::array::from_fn(|index| {
                let number = column::FIRST_TIMESTAMP + index as u64;
                columns.get(number, number <= column::LAST_TIMESTAMP)
            }),
            references: numbers.map(|number| columns.get(number, false)),
        }
    }

    /// Returns the statistics of the next entry, which has `count` objects of `kinds`.
    pub(super) fn next(
        &mut self,
        count: u32,
        kinds: KindSet,
    ) -> Result<Option<ObjectStatistics>, FormatError> {
        let range = || FormatError::new("a statistic is out of range");
        match self.are_known.next()? {
            Some(1) => kinds.single().ok_or_else(range)?,
            _ => return Ok(None),
        };
        let [
            first,
            last,
            version,
            timestamp,
            changeset,
            uid,
            user,
            more @ ..,
        ] = &mut self.columns;
        let [deleted, further_versions, tagged, more_tags] = more;
        let changeset = changeset.number::<i64>()?;
        let uid = changeset.checked_add(uid.number()?).ok_or_else(range)?;
        let user = uid.checked_add(user.number()?).ok_or_else(range)?;
        let with = |share| from_share(count, share).ok_or_else(range);
        let tagged = tagged.number()?;
        let [references, most_references] = &mut self.references;
        let [references, most_references] = if has_references(kinds) {
            [references.number()?, most_references.number()?]
        } else {
            [0, 0]
        };
        Ok(Some(ObjectStatistics {
            first_timestamp: first.number()?,
            last_timestamp: last.number()?,
            with_version: with(version.number()?)?,
            with_timestamp: with(timestamp.number()?)?,
            with_changeset: with(changeset)?,
            with_uid: with(uid)?,
            with_user: with(user)?,
            deleted: deleted.number()?,
            further_versions: further_versions.number()?,
            tagged,
            tags: more_tags
                .number::<u32>()?
                .checked_add(tagged)
                .ok_or_else(range)?,
            references,
            most_references,
        }))
    }
}
