//! Removes replaced changes while changes are read, to limit the memory.

use super::{Change, ChangeSet, SameTime, Span};
use crate::osm::{ObjectKind, StringPool};
use crate::runtime::{Context, human_bytes};

/// The memory in bytes at which replaced changes are removed for the first time.
const MIN_MEMORY: usize = 64 << 20;

/// The versions of an object that are kept while changes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptVersions {
    /// The newest version.
    Newest,
    /// All versions.
    All,
}

/// The changes that were read so far. Replaced changes are removed from time to time, so memory use depends on the
/// number of distinct objects, and not on the number of changes. If all versions are kept, only changes that repeat a
/// version are removed.
#[derive(Debug)]
pub(in crate::formats) struct NewestChanges {
    set: ChangeSet,
    same_time: SameTime,
    versions: KeptVersions,
    /// The smallest value of `limit`.
    min: usize,
    /// The memory in bytes at which replaced changes are removed next.
    limit: usize,
    /// The maximum memory in bytes.
    max: usize,
}

impl NewestChanges {
    /// Returns an empty collection. `same_time` is the rule for changes with equal versions and times.
    pub(in crate::formats) fn new(same_time: SameTime, versions: KeptVersions) -> Self {
        Self {
            set: ChangeSet::default(),
            same_time,
            versions,
            min: MIN_MEMORY,
            limit: MIN_MEMORY,
            max: usize::MAX,
        }
    }

    /// Sets the maximum memory in bytes.
    pub(in crate::formats) fn max_memory(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Adds the next changes. Fails if a list or the strings become too long for 32-bit indices. Also fails if the kept
    /// changes take more than the maximum memory.
    pub(in crate::formats) fn add(
        &mut self,
        changes: ChangeSet,
        ctx: &Context,
    ) -> Result<(), String> {
        self.set.append(changes)?;
        if self.set.memory() >= self.limit {
            self.set.sort_and_keep(self.versions, self.same_time, ctx);
            // If nothing was removed because little was unused, little will probably be unused next time, too. So the
            // limit grows faster.
            let factor = if self.set.compact_if_mostly_unused() {
                2
            } else {
                4
            };
            let memory = self.set.memory();
            if memory > self.max {
                return Err(format!(
                    "the objects take more than {} of memory; read the file as PBF, or leave out those that are not needed",
                    human_bytes(self.max as u64)
                ));
            }
            self.limit = self.min.max(memory * factor).min(self.max);
        }
        Ok(())
    }

    /// Returns the kept changes in canonical order. Several changes of an object are in the order of their versions.
    pub(in crate::formats) fn finish(mut self, ctx: &Context) -> ChangeSet {
        self.set.sort_and_keep(self.versions, self.same_time, ctx);
        self.set
    }
}

/// The approximate memory overhead in bytes of a string in a pool, without its text.
const STRING: usize = 16;

impl ChangeSet {
    /// Returns the approximate memory in bytes of the changes with their lists and strings.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(self.changes.as_slice())
            + size_of_val(self.tags.as_slice())
            + size_of_val(self.refs.as_slice())
            + size_of_val(self.roles.as_slice())
            + size_of_val(self.locations.as_slice())
            + self.strings.len() * STRING
            + self.strings.text_len()
    }

    /// Removes unused list entries and strings if they use more than half of the memory. Returns whether it removed
    /// them.
    fn compact_if_mostly_unused(&mut self) -> bool {
        let mut is_used = vec![false; self.strings.len()];
        let mut mark = |id: u32| is_used[id as usize] = true;
        let mut used = size_of_val(self.changes.as_slice());
        for change in &self.changes {
            let (tags, refs) = (change.tags.slice(&self.tags), change.refs.slice(&self.refs));
            let (roles, locations) = (self.roles(change), self.given_locations(change));
            used +=
                size_of_val(tags) + size_of_val(refs) + size_of_val(roles) + size_of_val(locations);
            mark(change.user);
            tags.iter().for_each(|id| mark(*id));
            roles.iter().for_each(|(_, role)| mark(*role));
        }
        let strings = (0u32..).zip(&is_used).filter(|(_, is_used)| **is_used);
        used += strings
            .map(|(id, _)| STRING + self.strings.get(id).len())
            .sum::<usize>();
        // Removed changes still count, because the list keeps its capacity.
        let held =
            self.memory() + (self.changes.capacity() - self.changes.len()) * size_of::<Change>();
        let is_worth = held / 2 > used;
        if is_worth {
            self.retain_used(&is_used);
        }
        is_worth
    }

    /// Replaces the lists and strings by copies with only the list entries that changes use and the strings that
    /// `is_used` marks.
    fn retain_used(&mut self, is_used: &[bool]) {
        fn move_span<T: Clone>(span: Span, from: &[T], to: &mut Vec<T>) -> Span {
            let start = to.len() as u32;
            to.extend_from_slice(span.slice(from));
            Span {
                start,
                end: to.len() as u32,
            }
        }
        let mut strings = StringPool::default();
        let new_ids: Vec<u32> = (0u32..)
            .zip(is_used)
            .map(|(id, is_used)| match is_used {
                true => strings.add(self.strings.get(id)),
                false => u32::MAX,
            })
            .collect();
        let new_id = |id: u32| new_ids[id as usize];
        let (mut tags, mut refs, mut roles) = (Vec::new(), Vec::new(), Vec::new());
        let mut locations = Vec::new();
        self.changes.shrink_to_fit();
        for change in &mut self.changes {
            change.user = new_id(change.user);
            change.tags = move_span(change.tags, &self.tags, &mut tags);
            change.refs = move_span(change.refs, &self.refs, &mut refs);
            change.details = match change.kind() {
                ObjectKind::Relation => move_span(change.details, &self.roles, &mut roles),
                ObjectKind::Node | ObjectKind::Way => {
                    move_span(change.details, &self.locations, &mut locations)
                }
            };
        }
        tags.iter_mut().for_each(|id| *id = new_id(*id));
        roles.iter_mut().for_each(|(_, role)| *role = new_id(*role));
        (self.strings, self.tags, self.refs) = (strings, tags, refs);
        (self.roles, self.locations) = (roles, locations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{OscText, TextFormat, read_texts};
    use crate::io::Input;

    /// Returns the changes as the text of a change file.
    fn text_of(set: &ChangeSet) -> String {
        let mut text = OscText::default();
        for (change, object) in set.iter() {
            text.put(change.action, &object);
        }
        text.finish()
    }

    #[test]
    fn removing_replaced_changes_early_does_not_change_the_result() {
        let directory = tempfile::tempdir().unwrap();
        let (mut inputs, mut text) = (Vec::new(), String::new());
        for number in 1..=3000u64 {
            let id = number * 7919 % 41;
            let (version, user) = (1 + number * 31 % 17, number % 97);
            text.push_str(&format!(
                "<way id='{id}' version='{version}' user='u{user}' uid='{user}' changeset='1' \
                 timestamp='2020-01-01T00:00:00Z'><nd ref='{number}' lat='1' lon='2'/><tag k='k{user}' v='v{number}'/></way>\
                 <relation id='{id}' version='{version}'><member type='way' ref='{number}' role='r{number}'/></relation>"
            ));
            if number % 60 == 0 {
                let path = directory.path().join(format!("{number}.osc"));
                let document =
                    format!("<osmChange version='0.6'><modify>{text}</modify></osmChange>");
                std::fs::write(&path, document).unwrap();
                inputs.push(Input::open(&path).unwrap());
                text.clear();
            }
        }
        let ctx = Context::new(1);
        let read = |min| {
            let mut all = NewestChanges {
                min,
                limit: min,
                ..NewestChanges::new(SameTime::LastRead, KeptVersions::Newest)
            };
            let pass = |_: &mut (), _: usize, set: ChangeSet| Ok(set);
            let add = |set| {
                all.add(set, &ctx).unwrap();
                Ok(())
            };
            read_texts(&inputs, TextFormat::OsmChange, &ctx, || (), pass, add).unwrap();
            (all.set.memory(), text_of(&all.finish(&ctx)))
        };
        let ((whole_len, whole), (len, often)) = (read(usize::MAX), read(1));
        assert!(whole == often && whole.len() > 10_000);
        assert!(len < whole_len / 4, "{len} of {whole_len}");
    }
}
