//! Counts faulty tags, which other programs misunderstand: tags with the same key as an earlier tag of the object, and
//! tags without a key.

use super::dense::{DenseNodes, next_tag_run, skip_untagged};
use super::element::Tags;
use super::outline::StringTable;
use crate::error::FormatResult;
use crate::osm::UniqueTags;

/// The numbers of faulty tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FaultyTags {
    /// The number of tags with the same key as an earlier tag of the object.
    pub repeated: u64,
    /// The number of objects that have tags without a key.
    pub without_key: u64,
}

impl FaultyTags {
    /// Counts the faulty tags of an object.
    pub(super) fn count_in(tags: Tags<'_>) -> Self {
        let (mut unique, mut without_key) = (UniqueTags::new(tags), 0);
        for (key, _) in unique.by_ref() {
            without_key += u64::from(key.is_empty());
        }
        Self {
            repeated: unique.repeated(),
            without_key,
        }
    }

    /// Whether there are faulty tags.
    pub(super) const fn has_any(self) -> bool {
        self.repeated > 0 || self.without_key > 0
    }

    /// Adds the numbers that were counted in other objects.
    pub(super) const fn add(&mut self, other: Self) {
        self.repeated += other.repeated;
        self.without_key += other.without_key;
    }
}

impl DenseNodes<'_> {
    /// Counts the faulty tags of all nodes.
    pub(super) fn count_faulty_tags(&self, strings: &StringTable<'_>) -> FormatResult<FaultyTags> {
        let (mut keys_vals, mut found) = (self.keys_vals.values(), FaultyTags::default());
        while !keys_vals.is_done() {
            skip_untagged(&mut keys_vals, usize::MAX)?;
            let run = next_tag_run(&mut keys_vals)?;
            found.add(FaultyTags::count_in(Tags::from_alternating_run(
                strings, run,
            )));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use crate::pbf::block::parsed::Block;
    use crate::pbf::wire::{put_bytes_field, put_varint};
    use crate::pbf::{BlobEntry, scan_for_oddities};

    const STRINGS: [&str; 5] = ["", "k", "l", "k", "v"];

    /// Returns a block with [`STRINGS`] and with one group. The group has the given messages, each with its field
    /// number.
    fn block(messages: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let (mut table, mut group, mut block) = (Vec::new(), Vec::new(), Vec::new());
        for text in STRINGS {
            put_bytes_field(&mut table, 1, text.as_bytes());
        }
        for (number, message) in messages {
            put_bytes_field(&mut group, *number, message);
        }
        put_bytes_field(&mut block, 1, &table);
        put_bytes_field(&mut block, 2, &group);
        block
    }

    /// Returns four dense nodes that have the tags in `keys_vals`.
    fn dense(keys_vals: &[u64]) -> (u32, Vec<u8>) {
        let (mut run, mut dense) = (Vec::new(), Vec::new());
        keys_vals
            .iter()
            .for_each(|value| put_varint(&mut run, *value));
        put_bytes_field(&mut dense, 1, &[2; 4]);
        put_bytes_field(&mut dense, 8, &[0; 4]);
        put_bytes_field(&mut dense, 9, &[0; 4]);
        put_bytes_field(&mut dense, 10, &run);
        (2, dense)
    }

    /// Returns a way with tags that have the given keys.
    fn way(keys: &[u8]) -> (u32, Vec<u8>) {
        let mut way = vec![8, 1];
        put_bytes_field(&mut way, 2, keys);
        put_bytes_field(&mut way, 3, &vec![4; keys.len()]);
        (3, way)
    }

    #[test]
    fn keys_are_compared_by_their_texts() {
        let cases = [
            (vec![dense(&[1, 4, 2, 4, 0, 1, 4, 0])], false),
            (vec![dense(&[1, 4, 2, 4, 1, 4, 0])], true),
            (vec![dense(&[1, 4, 0, 3, 4, 0])], false),
            (vec![dense(&[1, 4, 0, 1, 4, 3, 4])], true),
            (vec![dense(&[0, 0, 2, 4, 2, 4])], true),
            (vec![dense(&[])], false),
            (vec![way(&[1, 2]), way(&[1]), way(&[3])], false),
            (vec![way(&[2]), way(&[1, 1])], true),
            (vec![way(&[3]), way(&[1, 2, 3])], true),
            (
                vec![dense(&[0, 0, 0, 1, 4]), way(&[1]), dense(&[1, 4])],
                false,
            ),
        ];
        for (messages, expected) in cases {
            let payload = block(&messages);
            let odd = scan_for_oddities(&payload, &mut BlobEntry::default()).unwrap();
            assert_eq!(odd.has_repeated_keys, expected, "{messages:?}");
            let facts = Block::parse(&payload).unwrap().check_contents().unwrap();
            assert_eq!(facts.faulty_tags.repeated > 0, expected, "{messages:?}");
        }
        let payload = block(&[dense(&[5, 4, 0])]);
        assert!(scan_for_oddities(&payload, &mut BlobEntry::default()).is_err());
    }
}
