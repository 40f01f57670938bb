//! Objects that can be read, but that other programs refuse or misunderstand.

use super::dense::DenseInfo;
use super::messages::RawInfo;
use crate::error::FormatResult;
use crate::pbf::wire::Fields;
use crate::pbf::wire::schema::string_table;
use std::ops::RangeInclusive;

/// Facts about the objects of a block that can be read, but that other programs refuse or misunderstand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Oddities {
    /// Whether a tag has no key.
    pub has_empty_keys: bool,
    /// Whether an object has several tags with the same key.
    pub has_repeated_keys: bool,
    /// Whether an object has a version or a changeset that other programs refuse.
    pub has_refused_info: bool,
    /// The number of ways with fewer than two nodes.
    pub short_ways: u64,
    /// Whether a string has characters that XML 1.0 does not allow.
    pub has_inexpressible: bool,
    /// Whether a node has coordinates outside of the world.
    pub has_outside: bool,
}

/// The stored versions that all programs accept. -1 stands for a missing version.
const VERSIONS: RangeInclusive<i64> = -1..=i32::MAX as i64;

/// The stored changesets that all programs accept. -1 stands for a missing changeset.
const CHANGESETS: RangeInclusive<i64> = -1..=u32::MAX as i64 - 1;

impl RawInfo {
    /// Describes the version or the changeset that other programs refuse; `None` if they accept both.
    pub(in crate::pbf) fn refusal(&self) -> Option<String> {
        let (value, name) = if !VERSIONS.contains(&self.version) {
            (self.version, "version")
        } else if !CHANGESETS.contains(&self.changeset) {
            (self.changeset, "changeset")
        } else {
            return None;
        };
        Some(format!("the {name} {value} is out of range"))
    }

    /// Removes the version if other programs refuse it, and likewise the changeset. Returns whether something was
    /// removed.
    pub(super) fn clear_refused_numbers(&mut self) -> bool {
        let is_refused = self.refusal().is_some();
        for (value, accepted) in [
            (&mut self.version, VERSIONS),
            (&mut self.changeset, CHANGESETS),
        ] {
            if !accepted.contains(value) {
                *value = 0;
            }
        }
        is_refused
    }
}

impl DenseInfo<'_> {
    /// Whether a node has a version or a changeset that other programs refuse.
    pub(in crate::pbf) fn has_refused_info(&self) -> FormatResult<bool> {
        let (mut versions, mut found) = (self.versions.values(), false);
        // If all varints have one byte, no version is negative.
        if !self.versions.as_bytes().is_ascii() {
            while !versions.is_done() {
                found |= !VERSIONS.contains(&i64::from(versions.read()? as i32));
            }
        }
        let changesets = self.changesets.values();
        changesets.for_each_sum(|changeset, _| found |= !CHANGESETS.contains(&changeset))?;
        Ok(found)
    }
}

/// The strings of a block that are keys of tags.
#[derive(Debug, Default)]
pub(in crate::pbf) struct UsedKeys {
    /// For each string, the number of the last object that has the string as a key; 0 if the string is no key.
    last_objects: Vec<u32>,
    /// Whether an object has a string as the key of several tags.
    pub(in crate::pbf) has_repeated: bool,
}

impl UsedKeys {
    /// Creates an empty set of keys for a table of `strings` strings.
    pub(in crate::pbf) fn new(strings: usize) -> Self {
        Self {
            last_objects: vec![0; strings],
            has_repeated: false,
        }
    }

    /// Adds the key of a tag. `object` is the number of the object in the block, from 1. Strings beyond the table are
    /// ignored.
    #[inline]
    pub(in crate::pbf) fn add(&mut self, key: u64, object: u32) {
        if let Some(last) = self.last_objects.get_mut(key as usize) {
            self.has_repeated |= std::mem::replace(last, object) == object;
        }
    }

    /// Whether the string with this index is a key.
    pub(in crate::pbf) fn is_used_as_key(&self, string: u32) -> bool {
        self.last_objects[string as usize] > 0
    }

    /// Whether two strings of the table have the same text and are both used as keys.
    pub(in crate::pbf) fn has_duplicate_key_strings(
        &self,
        string_table: &[u8],
    ) -> FormatResult<bool> {
        let (mut texts, mut index) = (Vec::new(), 0);
        let mut fields = Fields::new(string_table);
        while let Some(field) = fields.next()? {
            if field.number == string_table::S {
                if self.last_objects.get(index).is_some_and(|last| *last > 0) {
                    texts.push(field.bytes()?);
                }
                index += 1;
            }
        }
        texts.sort_unstable();
        Ok(!texts.is_sorted_by(|one, other| one < other))
    }
}
