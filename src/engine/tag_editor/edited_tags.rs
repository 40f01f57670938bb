//! The tags of an object while rules change them.

use crate::osm::{KeyPatterns, MAX_TAG_LEN, RegexMatcher};
use std::borrow::Cow;

/// A key or a value.
#[derive(Debug, Clone)]
struct TagText<'t> {
    text: Cow<'t, str>,
    /// The string id of the text in the block of the object; `None` if the text comes from elsewhere, such as a rule.
    id: Option<u32>,
}

impl<'t> TagText<'t> {
    const fn new(text: &'t str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            id: None,
        }
    }
}

/// The tags of an object, in order. The methods that change tags return whether they have changed any.
#[derive(Debug, Clone, Default)]
pub(crate) struct EditedTags<'t>(Vec<[TagText<'t>; 2]>);

impl<'t> EditedTags<'t> {
    /// Creates a list of tags that belong to no block.
    pub(super) fn of(tags: impl Iterator<Item = (&'t str, &'t str)>) -> Self {
        Self(
            tags.map(|(key, value)| [TagText::new(key), TagText::new(value)])
                .collect(),
        )
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a tag of a block. The ids are the string ids of the key and the value.
    pub(super) fn push_block_tag(&mut self, texts: [&'t str; 2], ids: [u32; 2]) {
        let [key, value] = texts.map(TagText::new);
        let [key_id, value_id] = ids.map(Some);
        self.0.push([
            TagText { id: key_id, ..key },
            TagText {
                id: value_id,
                ..value
            },
        ]);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let tags = self.0.iter();
        tags.map(|[key, value]| (key.text.as_ref(), value.text.as_ref()))
    }

    /// Returns the string ids of keys and values, which alternate. `id_of` returns the id of a text from a rule.
    pub(super) fn string_ids(&self, mut id_of: impl FnMut(&str) -> u32) -> Vec<u32> {
        let texts = self.0.iter().flatten();
        texts
            .map(|text| text.id.unwrap_or_else(|| id_of(&text.text)))
            .collect()
    }

    /// Returns the index of the first tag with the given key.
    fn find(&self, key: &str) -> Option<usize> {
        self.0.iter().position(|[one, _]| one.text == key)
    }

    /// Removes the tags for whose keys `keeps` returns `false`.
    pub(super) fn retain(&mut self, keeps: impl Fn(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|[key, _]| keeps(&key.text));
        self.0.len() != before
    }

    /// Sets the value of a key, or adds a tag if no tag has the key. Keeps only the first of several tags with the key.
    pub(super) fn set(&mut self, key: &'t str, value: &'t str) -> bool {
        let Some(first) = self.find(key) else {
            self.0.push([key, value].map(TagText::new));
            return true;
        };
        let (before, mut index) = (self.0.len(), 0);
        self.0.retain(|[one, _]| {
            index += 1;
            index - 1 == first || one.text != key
        });
        let [_, old] = &mut self.0[first];
        let is_new = old.text != value;
        if is_new {
            *old = TagText::new(value);
        }
        is_new || self.0.len() != before
    }

    /// Adds a tag unless the object already has a tag with this key.
    pub(super) fn set_default(&mut self, key: &'t str, value: &'t str) -> bool {
        let is_absent = self.find(key).is_none();
        if is_absent {
            self.0.push([key, value].map(TagText::new));
        }
        is_absent
    }

    /// Replaces the key `from` with `to`. If the object already has a tag with the key `to`, removes the tag with the
    /// key `from`. In this case, fails if the values of the two tags differ.
    pub(super) fn rename(&mut self, from: &str, to: &'t str) -> Result<bool, String> {
        let mut is_changed = false;
        while let Some(at) = self.find(from) {
            is_changed = true;
            if self.is_key_free(to, at)? {
                self.0[at][0] = TagText::new(to);
            } else {
                self.0.remove(at);
            }
        }
        Ok(is_changed)
    }

    /// Adds a tag with the key `to` and the value of the key `from`. Fails if the key `to` already has another value.
    pub(super) fn copy(&mut self, from: &str, to: &'t str) -> Result<bool, String> {
        let Some(at) = self.find(from) else {
            return Ok(false);
        };
        let is_free = self.is_key_free(to, at)?;
        if is_free {
            let [_, value] = self.0[at].clone();
            self.0.push([TagText::new(to), value]);
        }
        Ok(is_free)
    }

    /// Whether no tag has the key `to`. Fails if a tag has this key, and another value than the tag with the index
    /// `at`.
    fn is_key_free(&self, to: &str, at: usize) -> Result<bool, String> {
        let Some(other) = self.find(to) else {
            return Ok(true);
        };
        let [old, new] = [other, at].map(|index| &self.0[index][1].text);
        if old == new {
            return Ok(false);
        }
        Err(format!(
            "the key '{to}' would occur twice, as '{old}' and '{new}'"
        ))
    }

    /// Replaces the matches of a regular expression in the values of some keys. Removes tags whose values become empty.
    /// Fails if a value becomes too long.
    pub(super) fn replace(
        &mut self,
        keys: &KeyPatterns,
        pattern: &RegexMatcher,
        by: &str,
    ) -> Result<bool, String> {
        let (mut is_changed, mut fault) = (false, None);
        self.0.retain_mut(|[key, value]| {
            if !keys.matches(&key.text) {
                return true;
            }
            let Cow::Owned(new) = pattern.replace_all(&value.text, by) else {
                return true;
            };
            if new == value.text {
                return true;
            }
            if new.chars().count() > MAX_TAG_LEN {
                fault = Some(format!(
                    "the value of '{}' would have more than {MAX_TAG_LEN} characters",
                    key.text
                ));
                return true;
            }
            is_changed = true;
            let has_value = !new.is_empty();
            *value = TagText {
                text: Cow::Owned(new),
                id: None,
            };
            has_value
        });
        fault.map_or(Ok(is_changed), Err)
    }
}
