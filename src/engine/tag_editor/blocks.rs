//! Changes the tags of the objects of a block.
//!
//! An object is looked at if it has a key that a rule names. Each string of the block is compared with the rules once,
//! and not once per object. If the rules name no string of a block, its objects need not be read.

use super::counts::EditCounts;
use super::edited_tags::EditedTags;
use super::editor::{EditStep, EditedObject, TagEditor};
use crate::engine::block_matcher::{BlockMatcher, may_select_in_blob};
use crate::error::{FormatError, FormatResult};
use crate::osm::{KindSet, ObjectId, ObjectKind, TagAction, TagRule};
use crate::pbf::{BlobEntry, Block, BlockUnits, BlockWalk, Info, NewTags, StringTable, TagIds};

/// The keys that rules name, among the strings of a block.
struct NamedKeys {
    /// For each string, the kinds of the objects that a rule may change if they have the string as a key. The kinds are
    /// bits of a [`KindSet`].
    by_string: Vec<u8>,
    /// The kinds of the objects that a rule may change whatever keys they have.
    any_key: u8,
}

impl NamedKeys {
    /// Finds the keys of a block. Rules that cannot concern a blob with the entry `entry` are left out.
    fn of(editor: &TagEditor, strings: &StringTable<'_>, entry: Option<&BlobEntry>) -> Self {
        let mut named = Self {
            by_string: vec![0; strings.len()],
            any_key: 0,
        };
        for step in editor.steps() {
            if let EditStep::Rule(rule) = step
                && entry.is_none_or(|entry| may_select_in_blob(&rule.filter, entry))
            {
                named.add(rule, strings);
            }
        }
        named
    }

    /// Adds the keys that `rule` names. If no earlier rule has changed an object, `rule` changes the object only if the
    /// object has one of these keys. A rule that can change objects with any keys adds its kinds to `any_key` instead.
    fn add(&mut self, rule: &TagRule, strings: &StringTable<'_>) {
        let (filter, mut kinds) = (&rule.filter, KindSet::ALL.bits());
        if !filter.expressions().is_empty() {
            if BlockMatcher::new(filter, strings).cannot_match() {
                return;
            }
            kinds = filter.kinds().bits();
        }
        let has_tag = !filter.expressions().is_empty() && filter.without_tag().next().is_none();
        let is_named = |key: &str| match &rule.action {
            TagAction::Drop(keys) | TagAction::Replace { keys, .. } => keys.matches(key),
            TagAction::Rename(from, _) | TagAction::Copy(from, _) => from == key,
            TagAction::Keep(_) | TagAction::Set(..) | TagAction::Default(..) if has_tag => {
                filter.with_key(key).next().is_some()
            }
            TagAction::Keep(keys) => !keys.matches(key),
            TagAction::Set(..) | TagAction::Default(..) => false,
        };
        if matches!(rule.action, TagAction::Set(..) | TagAction::Default(..)) && !has_tag {
            self.any_key |= kinds;
            return;
        }
        for (key, slot) in strings.iter().zip(&mut self.by_string) {
            // A string for which the bits are set already need not be compared.
            if *slot & kinds != kinds && is_named(key) {
                *slot |= kinds;
            }
        }
    }

    /// Returns the kinds of the objects that a rule may change, as bits of a [`KindSet`].
    fn kinds(&self) -> u8 {
        self.by_string
            .iter()
            .fold(self.any_key, |all, one| all | one)
    }

    /// Whether a rule may change an object of this kind with these tags.
    fn may_change_object(
        &self,
        kind: ObjectKind,
        tags: TagIds<'_>,
        strings: &StringTable<'_>,
    ) -> FormatResult<bool> {
        let bit = KindSet::of(kind).bits();
        if self.any_key & bit != 0 {
            return Ok(true);
        }
        tags.any(|key, _| match self.by_string.get(key as usize) {
            Some(kinds) => Ok(kinds & bit != 0),
            None => strings.check(key).map(|()| false),
        })
    }
}

impl TagEditor {
    /// Whether the tags of any object in a blob may change, according to the entry of the blob and, if `strings` is
    /// `Some`, the strings of the blob.
    pub(crate) fn may_change(&self, entry: &BlobEntry, strings: Option<&StringTable<'_>>) -> bool {
        let Some(strings) = strings else {
            let concerns = |rule: &TagRule| may_select_in_blob(&rule.filter, entry);
            return self.rules().any(concerns) || self.may_name_object_in(entry);
        };
        let kinds = if entry.kinds.is_empty() {
            KindSet::ALL
        } else {
            entry.kinds
        };
        NamedKeys::of(self, strings, Some(entry)).kinds() & kinds.bits() != 0
            || self.may_name_object_in(entry)
    }

    /// Whether the tags of an object in a block with these strings may change.
    pub(crate) fn may_change_objects_with(&self, strings: &StringTable<'_>) -> bool {
        self.has_ids() || NamedKeys::of(self, strings, None).kinds() != 0
    }

    /// Calls `take` with each object of a block, in order, and with its new tags; `None` if its tags do not change.
    /// Returns the numbers of changed objects.
    pub(crate) fn for_each_object<'t>(
        &'t self,
        block: &'t Block<'_>,
        mut take: impl FnMut(&mut BlockWalk<'_>, Option<&EditedTags<'t>>) -> FormatResult<()>,
    ) -> FormatResult<EditCounts> {
        let strings = &block.strings;
        let named = NamedKeys::of(self, strings, None);
        let (has_ids, mut counts) = (self.has_ids(), EditCounts::default());
        let (mut objects, mut tags) = (block.walk(), EditedTags::default());
        while let Some(kind) = objects.next()? {
            let old = objects.tags()?;
            let is_named = |objects: &BlockWalk<'_>| {
                let id = objects.id()?;
                Ok::<_, FormatError>(self.names_object(ObjectId { kind, id }))
            };
            if !(named.may_change_object(kind, old, strings)? || has_ids && is_named(&objects)?) {
                take(&mut objects, None)?;
                continue;
            }
            tags.clear();
            old.any(|key, value| {
                let texts = [strings.get(key)?, strings.get(value)?];
                tags.push_block_tag(texts, [key as u32, value as u32]);
                Ok(false)
            })?;
            let stays = tags.is_empty() && objects.version_info()?.is_deleted;
            let is_changed = !stays && {
                let object = self.edited_object(&mut objects, &block.units, strings)?;
                self.apply(&object, &mut tags, &mut counts)?
            };
            take(&mut objects, is_changed.then_some(&tags))?;
        }
        Ok(counts)
    }

    /// Returns the facts that rules need about the current object.
    fn edited_object<'s>(
        &self,
        objects: &mut BlockWalk<'_>,
        units: &BlockUnits,
        strings: &StringTable<'s>,
    ) -> FormatResult<EditedObject<'s>> {
        let (kind, id) = (objects.kind(), objects.id()?);
        Ok(EditedObject {
            id: ObjectId { kind, id },
            is_closed: self.needs_areas()
                && match kind {
                    ObjectKind::Node => false,
                    ObjectKind::Way => objects.is_closed(4)?,
                    ObjectKind::Relation => true,
                },
            info: if self.needs_metadata() {
                Info::resolve(&objects.info()?, units, strings)?
            } else {
                Info::EMPTY
            },
        })
    }

    /// Appends the block of a blob with new tags to `out`, or appends nothing if no tag changes. Returns the numbers of
    /// changed objects. The new block may be too long for a blob.
    pub(crate) fn edit_block(
        &self,
        entry: &BlobEntry,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> FormatResult<EditCounts> {
        let block = Block::parse(payload)?;
        if !self.may_change(entry, Some(&block.strings)) {
            return Ok(EditCounts::default());
        }
        let (mut new, mut index) = (None, 0);
        let counts = self.for_each_object(&block, |_, tags| {
            if let Some(tags) = tags {
                if new.is_none() {
                    new = Some(NewTags::new(payload)?);
                }
                if let Some(new) = &mut new {
                    let ids = tags.string_ids(|text| new.string_id(text));
                    new.push(index, ids);
                }
            }
            index += 1;
            Ok(())
        })?;
        new.map_or(Ok(()), |new| new.put(out))?;
        Ok(counts)
    }
}
