//! Statistics of the objects in a block: their metadata, and their numbers of tags and references. The
//! [`BlobEntry`](crate::pbf::BlobEntry) of a blob with objects of one kind contains the statistics. Dense nodes are
//! counted column by column.

use crate::error::FormatResult;
use crate::pbf::block::dense::{DenseNodes, TagFacts};
use crate::pbf::block::element::Info;
use crate::pbf::block::messages::RawInfo;
use crate::pbf::rewrite::InfoFields;
use crate::pbf::wire::{Packed, Varints};

/// Declares `ObjectCounts`, and `ObjectStatistics`, which has the same counts in 32 bits. The counts are in the order
/// in which the summary of a table of contents stores them.
macro_rules! object_counts {
    ($($(#[$doc:meta])* $count:ident,)*) => {
        /// Counts of the objects of one kind in a block.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub(crate) struct ObjectCounts {
            pub objects: u64,
            $($(#[$doc])* pub $count: u64,)*
            /// The largest number of references of one object.
            pub most_references: u64,
            /// The earliest and the latest timestamp; `None` if no object has a timestamp. The timestamps are in the
            /// units of the block until all its objects have been added, and then in seconds since 1970.
            pub times: Option<(i64, i64)>,
        }

        impl ObjectCounts {
            /// Returns the number of objects, and the counts that are sums over objects.
            pub(super) fn sums(&mut self) -> impl Iterator<Item = &mut u64> {
                [&mut self.objects, $(&mut self.$count,)*].into_iter()
            }
        }

        /// Statistics of objects of one kind: their metadata, and their numbers of tags and references. Each count is
        /// less than 2^32.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct ObjectStatistics {
            /// The earliest timestamp, in seconds since 1970; 0 if no object has a timestamp.
            pub first_timestamp: u32,
            /// The latest timestamp, in seconds since 1970; 0 if no object has a timestamp.
            pub last_timestamp: u32,
            $($(#[$doc])* pub $count: u32,)*
            /// The number of objects that directly follow another version of the same object.
            pub further_versions: u32,
            /// The largest number of references of one object (nodes of a way, or members of a relation).
            pub most_references: u32,
        }

        impl ObjectStatistics {
            /// Creates statistics from counts. Returns `None` if a count or a time in seconds since 1970 does not fit
            /// into 32 bits.
            pub(in crate::pbf) fn new(counts: &ObjectCounts, further_versions: u64) -> Option<Self> {
                let (first, last) = counts.times.unwrap_or((0, 0));
                Some(Self {
                    first_timestamp: first.try_into().ok()?,
                    last_timestamp: last.try_into().ok()?,
                    $($count: counts.$count.try_into().ok()?,)*
                    further_versions: further_versions.try_into().ok()?,
                    most_references: counts.most_references.try_into().ok()?,
                })
            }

            /// Returns the statistics as counts. `objects` is the number of objects.
            pub(crate) fn counts(&self, objects: u32) -> ObjectCounts {
                let times = (self.first_timestamp.into(), self.last_timestamp.into());
                ObjectCounts {
                    objects: objects.into(),
                    $($count: self.$count.into(),)*
                    most_references: self.most_references.into(),
                    times: (self.with_timestamp > 0).then_some(times),
                }
            }
        }
    };
}

object_counts! {
    /// The number of objects with a version.
    with_version,
    /// The number of objects with a timestamp.
    with_timestamp,
    /// The number of objects with a changeset.
    with_changeset,
    /// The number of objects with a user id.
    with_uid,
    /// The number of objects with a user name.
    with_user,
    /// The number of deleted versions.
    deleted,
    /// The number of objects with tags.
    tagged,
    /// The number of tags.
    tags,
    /// The total number of references (nodes of ways, or members of relations).
    references,
}

impl ObjectCounts {
    /// Adds an object with the given metadata and the given numbers of tags and references.
    #[inline]
    pub(crate) fn add_object(&mut self, info: &Info<'_>, [tags, references]: [usize; 2]) {
        self.objects += 1;
        self.with_version += u64::from(info.version.is_some());
        self.with_changeset += u64::from(info.changeset.is_some());
        self.with_uid += u64::from(info.uid.is_some());
        self.with_user += u64::from(info.user.is_some());
        self.deleted += u64::from(!info.visible);
        if let Some(time) = info.timestamp {
            self.with_timestamp += 1;
            self.add_time(time);
        }
        let [tags, references] = [tags as u64, references as u64];
        self.tagged += u64::from(tags > 0);
        self.tags += tags;
        self.references += references;
        self.most_references = self.most_references.max(references);
    }

    /// Adds an object as [`add_object`](Self::add_object) does, with metadata as stored in its message. `has_name`
    /// states whether the object has a user name.
    pub(super) fn add_raw(&mut self, info: &RawInfo, has_name: bool, sizes: [usize; 2]) {
        let info = Info {
            version: (info.version > 0).then_some(1),
            timestamp: (info.timestamp != 0).then_some(info.timestamp),
            changeset: (info.changeset > 0).then_some(info.changeset),
            uid: (info.uid > 0).then_some(1),
            user: has_name.then_some(""),
            visible: info.visible != Some(false),
        };
        self.add_object(&info, sizes);
    }

    /// Adds the nodes of a DenseNodes message. `tags` are the facts about their tags. Does not count user names.
    pub(in crate::pbf) fn add_dense(
        &mut self,
        dense: &DenseNodes<'_>,
        tags: &TagFacts,
    ) -> FormatResult<()> {
        let info = &dense.info;
        self.objects += dense.len() as u64;
        self.with_version += count_versions(&info.versions)?;
        self.with_changeset += count_positive(info.changesets.values())?;
        self.with_uid += count_positive(info.uids.values())?;
        if info.visible.as_bytes().contains(&0) {
            let mut visible = info.visible.values();
            while !visible.is_done() {
                self.deleted += u64::from(visible.read()? == 0);
            }
        }
        let (mut first, mut last, mut count) = (i64::MAX, i64::MIN, 0);
        info.timestamps.values().for_each_sum(|time, times| {
            if time != 0 {
                (first, last) = (first.min(time), last.max(time));
                count += times as u64;
            }
        })?;
        if count > 0 {
            self.with_timestamp += count;
            self.add_time(first);
            self.add_time(last);
        }
        self.tagged += tags.tagged;
        self.tags += tags.tags;
        Ok(())
    }

    /// Adds the counts of other objects.
    pub(crate) fn add(&mut self, other: &Self) {
        let mut other_sums = *other;
        self.sums()
            .zip(other_sums.sums())
            .for_each(|(sum, more)| *sum += *more);
        self.most_references = self.most_references.max(other.most_references);
        if let Some((first, last)) = other.times {
            self.add_time(first);
            self.add_time(last);
        }
    }

    fn add_time(&mut self, time: i64) {
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }
}

/// Returns the number of positive versions.
fn count_versions(column: &Packed<'_>) -> FormatResult<u64> {
    let bytes = column.as_bytes();
    // If all varints have one byte, no version is negative, and only zeros are not counted.
    if bytes.is_ascii() {
        return Ok((bytes.len() - memchr::memchr_iter(0, bytes).count()) as u64);
    }
    let (mut versions, mut count) = (column.values(), 0);
    while !versions.is_done() {
        count += u64::from(versions.read()? as i32 > 0);
    }
    Ok(count)
}

/// Returns the number of positive values in a delta-coded column.
fn count_positive(deltas: Varints<'_>) -> FormatResult<u64> {
    let mut count = 0;
    deltas.for_each_sum(|value, times| count += u64::from(value > 0) * times as u64)?;
    Ok(count)
}

impl ObjectStatistics {
    /// Returns the statistics of the same objects after the attributes in `removed` are removed.
    pub(crate) fn without_attributes(mut self, removed: InfoFields) -> Self {
        if removed.contains(InfoFields::TIMESTAMP) {
            (self.first_timestamp, self.last_timestamp) = (0, 0);
        }
        for (field, count) in [
            (InfoFields::VERSION, &mut self.with_version),
            (InfoFields::TIMESTAMP, &mut self.with_timestamp),
            (InfoFields::CHANGESET, &mut self.with_changeset),
            (InfoFields::UID, &mut self.with_uid),
            (InfoFields::USER, &mut self.with_user),
            (InfoFields::VISIBLE, &mut self.deleted),
        ] {
            if removed.contains(field) {
                *count = 0;
            }
        }
        self
    }
}
