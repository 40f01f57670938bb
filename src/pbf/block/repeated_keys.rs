//! Looks for tags that readers misunderstand: several tags of an object with the same key, and tags without a key.

use super::dense::{DenseNodes, next_tag_run, skip_untagged};
use super::element::Tags;
use super::outline::StringTable;
use crate::error::FormatResult;
use crate::osm::UniqueTags;

/// The numbers of tags that readers misunderstand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FaultyTags {
    /// The number of tags with the same key as an earlier tag of the object.
    pub repeated: u64,
    /// The number of objects that have tags without a key.
    pub without_key: u64,
}

impl FaultyTags {
    /// Counts the tags of an object.
    pub(super) fn of(tags: Tags<'_>) -> Self {
        let (mut unique, mut without_key) = (UniqueTags::new(tags), 0);
        for (key, _) in unique.by_ref() {
            without_key += u64::from(key.is_empty());
        }
        Self {
            repeated: unique.repeated(),
            without_key,
        }
    }

    /// Whether there are such tags.
    pub(super) const fn any(self) -> bool {
        self.repeated > 0 || self.without_key > 0
    }

    /// Adds the numbers that were counted in other objects.
    pub(super) const fn add(&mut self, other: Self) {
        self.repeated += other.repeated;
        self.without_key += other.without_key;
    }
}

impl DenseNodes<'_> {
    /// Counts the tags that readers misunderstand.
    pub(super) fn faulty_tags(&self, strings: &StringTable<'_>) -> FormatResult<FaultyTags> {
        let (mut keys_vals, mut found) = (self.keys_vals.values(), FaultyTags::default());
        while !keys_vals.is_done() {
            skip_untagged(&mut keys_vals, usize::MAX)?;
            let run = next_tag_run(&mut keys_vals)?;
            found.add(FaultyTags::of(Tags::of_one_run(strings, run)));
        }
        Ok(found)
    }
}
