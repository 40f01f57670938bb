//! Leaves out tags that have the same key as an earlier tag. OSM, Parquet maps and JSON objects allow only one
//! value per key.

use std::collections::HashSet;

/// The maximum number of keys that are compared one by one.
const FEW: usize = 16;

/// The keys of an object's tags that have been seen so far.
#[derive(Debug, Default)]
pub(crate) struct SeenKeys<'t> {
    few: [&'t str; FEW],
    /// The number of keys in `few`.
    count: usize,
    /// The keys that are not in `few`, because it is full.
    many: HashSet<&'t str>,
}

impl<'t> SeenKeys<'t> {
    /// Adds a key. Returns `false` if it was added before.
    #[inline]
    pub(crate) fn insert(&mut self, key: &'t str) -> bool {
        let mut few = self.few.iter().take(self.count);
        if few.any(|seen| *seen == key) {
            return false;
        }
        match self.few.get_mut(self.count) {
            Some(free) => {
                *free = key;
                self.count += 1;
                true
            }
            None => self.many.insert(key),
        }
    }
}

/// An iterator over tags as pairs of key and value. Of several tags with the same key, it returns only the first one.
#[derive(Debug)]
pub struct UniqueTags<'t, I> {
    tags: I,
    seen: SeenKeys<'t>,
    repeated: u64,
}

impl<'t, I: Iterator<Item = (&'t str, &'t str)>> UniqueTags<'t, I> {
    /// Creates an iterator over the tags of an object.
    pub fn new(tags: I) -> Self {
        Self {
            tags,
            seen: SeenKeys::default(),
            repeated: 0,
        }
    }

    /// Returns the number of tags that were left out so far, because they have the same key as an earlier tag.
    pub const fn repeated(&self) -> u64 {
        self.repeated
    }
}

impl<'t, I: Iterator<Item = (&'t str, &'t str)>> Iterator for UniqueTags<'t, I> {
    type Item = (&'t str, &'t str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let tag = self.tags.next()?;
            if self.seen.insert(tag.0) {
                return Some(tag);
            }
            self.repeated += 1;
        }
    }
}

/// Removes the tags that have the same key as an earlier tag. Returns the number of removed tags.
pub(crate) fn retain_unique<'t>(tags: &mut Vec<(&'t str, &'t str)>) -> u64 {
    let is_repeated = |(index, (key, _)): (usize, &(&str, &str))| {
        tags[..index].iter().any(|(earlier, _)| earlier == key)
    };
    // Most objects have a few tags with different keys, so no set is needed.
    if tags.len() <= FEW && !tags.iter().enumerate().any(is_repeated) {
        return 0;
    }
    let (mut seen, before) = (SeenKeys::default(), tags.len());
    tags.retain(|&(key, _)| seen.insert(key));
    (before - tags.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_tags_with_the_same_key_is_kept() {
        let tags = [
            ("name", "a"),
            ("x", "1"),
            ("name", "b"),
            ("", "c"),
            ("x", "1"),
        ];
        let mut unique = UniqueTags::new(tags.into_iter());
        let found: Vec<_> = unique.by_ref().collect();
        assert_eq!(found, [("name", "a"), ("x", "1"), ("", "c")]);
        assert_eq!(unique.repeated(), 2);
        let mut list = tags.to_vec();
        assert_eq!(retain_unique(&mut list), 2);
        assert_eq!(list, found);
        assert_eq!(retain_unique(&mut list), 0);
    }

    #[test]
    fn repeated_keys_are_found_among_many_keys() {
        let keys: Vec<String> = (0..100).map(|key| key.to_string()).collect();
        let mut seen = SeenKeys::default();
        assert!(keys.iter().all(|key| seen.insert(key)));
        assert!(!keys.iter().any(|key| seen.insert(key)));
    }
}
