//! The states of objects before, between and after the changes.
//!
//! The changes are made in steps. With one step, each object has one state before all changes and one after them. With
//! a step for each upload of a changeset, or for each change file, objects also have states between the steps. Steps
//! are counted from 0. A moment is the number of steps that are done: the moment `n` is before the step `n`, and the
//! moment `n + 1` is after it.

use crate::error::{Error, Result};
use crate::formats::{Change, ChangeAction, ChangeSet};
use crate::index::IdSet;
use crate::osm::{ObjectKind, id_rank};
use crate::pbf::Info;
use std::ops::Range;

/// The result of comparing a change with the object in the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The base does not have the object.
    Absent,
    /// The base has a newer version of the object.
    Outdated,
    /// The change replaces the object of the base.
    Replaces,
}

/// The rule by which a change replaces the object of the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaces {
    /// Only if the change is newer than the object, as when changes are applied.
    IfNewer,
    /// Always, because the changes are the differences between two files.
    Always,
}

impl Replaces {
    /// Returns the status of a change whose object is in the base. `info` is the object's metadata in the base.
    pub(super) fn status(self, change: &Change, info: &Info<'_>) -> Status {
        match self {
            Self::Always => Status::Replaces,
            Self::IfNewer if change.replaces(info.version, info.timestamp) => Status::Replaces,
            Self::IfNewer => Status::Outdated,
        }
    }
}

/// The steps in which the changes are made.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// For each change, the number of its step; empty if there is one step.
    of_change: Vec<u32>,
    /// For each step, the number of the changeset or of the change file that its changes belong to; empty if there is
    /// one step.
    groups: Vec<i64>,
}

/// The largest changeset number that is accepted.
const MAX_CHANGESET: i64 = 1 << 60;

/// The sort key of a step: its time, its rank among the steps with this time, and the group of its changes.
type StepKey = (i64, i32, i64);

impl Steps {
    /// Puts all changes with the same time and the same changeset into one step. The group of a step is its changeset.
    /// Steps are in the order of their times; changes without a time come first. Fails if a change has no changeset.
    pub(super) fn by_changeset(changes: &ChangeSet) -> Result<Self> {
        Self::grouped_by(changes, |change| match change.changeset() {
            Some(changeset) if (0..=MAX_CHANGESET).contains(&changeset) => {
                Ok((change.timestamp.unwrap_or(i64::MIN), changeset))
            }
            found => {
                let name = format!("{} {}", change.kind().name(), change.id());
                let has = match found {
                    Some(changeset) => format!("the changeset {changeset}"),
                    None => "no changeset".to_owned(),
                };
                Err(Error::Usage(format!(
                    "the change of {name} has {has}: the changes cannot be divided by changesets"
                )))
            }
        })
    }

    /// Puts all changes of a file into one step. The group of a step is the number of its file.
    pub(super) fn grouped_by_file(changes: &ChangeSet) -> Result<Self> {
        Self::grouped_by(changes, |change| {
            Ok((change.file.into(), change.file.into()))
        })
    }

    /// Puts all changes with the same time and group into one step. A version of an object never gets a later step than
    /// the next version, even if their times contradict this order.
    fn grouped_by(
        changes: &ChangeSet,
        key_of: impl Fn(&Change) -> Result<(i64, i64)>,
    ) -> Result<Self> {
        let mut keys: Vec<StepKey> = Vec::with_capacity(changes.changes().len());
        let mut later: Option<(&Change, StepKey)> = None;
        for change in changes.changes().iter().rev() {
            let (time, group) = key_of(change)?;
            let mut key = (time, 0, group);
            if let Some((next, next_key)) = later
                && next.key == change.key
                && key >= next_key
            {
                key = if group == next_key.2 {
                    next_key
                } else {
                    (next_key.0, next_key.1 - 1, group)
                };
            }
            later = Some((change, key));
            keys.push(key);
        }
        keys.reverse();
        let mut steps = keys.clone();
        steps.sort_unstable();
        steps.dedup();
        let number = |key: &StepKey| steps.partition_point(|step| step < key) as u32;
        Ok(Self {
            of_change: keys.iter().map(number).collect(),
            groups: steps.iter().map(|step| step.2).collect(),
        })
    }

    /// Returns the group of a step; `None` if there is one step.
    pub(super) fn group(&self, step: u32) -> Option<i64> {
        self.groups.get(step as usize).copied()
    }

    /// Returns the step of a change.
    pub(super) fn step_of_change(&self, index: usize) -> u32 {
        self.of_change.get(index).map_or(0, |step| *step)
    }
}

/// The versions of all changed objects.
pub(super) struct History<'c> {
    pub changes: &'c ChangeSet,
    pub steps: Steps,
    replaces: Replaces,
    /// Whether the base may lack nodes to which its ways refer. The ways then store the locations of these nodes.
    may_lack_nodes: bool,
    /// For each change, the result of comparing it with the object in the base.
    pub status: Vec<Status>,
    /// For each change, whether it has an effect. [`decide_effects`](Self::decide_effects) sets the flags of one kind
    /// at a time.
    has_effect: Vec<bool>,
    /// For each kind, the ids of the objects that have a change with an effect.
    changed: [IdSet; 3],
}

impl<'c> History<'c> {
    /// Creates a history for which no object of the base is known yet. `may_lack_nodes` tells whether the base may lack
    /// nodes to which its ways refer.
    pub(super) fn new(
        changes: &'c ChangeSet,
        steps: Steps,
        replaces: Replaces,
        may_lack_nodes: bool,
    ) -> Self {
        let count = changes.changes().len();
        Self {
            changes,
            steps,
            replaces,
            may_lack_nodes,
            status: vec![Status::Absent; count],
            has_effect: vec![false; count],
            changed: Default::default(),
        }
    }

    /// Returns the status of a change whose object is in the base. `info` is the object's metadata in the base.
    pub(super) fn status_in_base(&self, index: usize, info: &Info<'_>) -> Status {
        self.replaces.status(self.change(index), info)
    }

    /// Sets the status of the changes with the given indices.
    pub(super) fn set_status(&mut self, status: &[(usize, Status)]) {
        for (index, one) in status {
            self.status[*index] = *one;
        }
    }

    /// Decides which changes of a kind have an effect. The status of all changes of this kind must be known.
    pub(super) fn decide_effects(&mut self, kind: ObjectKind) {
        let range = self.changes.range((kind, 0), (kind, u64::MAX));
        let all = &self.changes.changes()[range.clone()];
        let mut is_there = false;
        for (index, change) in range.clone().zip(all) {
            if index == range.start || all[index - range.start - 1].key != change.key {
                is_there = self.may_be_in_base(index);
            }
            let has_effect = match self.status[index] {
                Status::Outdated => false,
                Status::Absent | Status::Replaces => is_there || !change.is_deletion(),
            };
            self.has_effect[index] = has_effect;
            if has_effect {
                is_there = !change.is_deletion();
                self.changed[kind as usize].insert(change.id());
            }
        }
    }

    /// Whether an object may be in the base. `first` is the index of its first change. A node that is not in the base
    /// as an object may still be in ways of the base.
    fn may_be_in_base(&self, first: usize) -> bool {
        let change = self.change(first);
        let may_be_in_ways = self.may_lack_nodes
            && change.key.0 == ObjectKind::Node
            && change.action != ChangeAction::Create;
        self.status[first] != Status::Absent || may_be_in_ways
    }

    /// Whether the changes have the metadata of deletions. Differences between two files do not have it.
    pub(super) fn has_deletion_metadata(&self) -> bool {
        self.replaces == Replaces::IfNewer
    }

    /// Returns the ids of those objects of a kind that have a change with an effect.
    pub(super) fn changed_ids(&self, kind: ObjectKind) -> &IdSet {
        &self.changed[kind as usize]
    }

    /// Returns the indices of the changes of an object.
    pub(super) fn change_indices(&self, kind: ObjectKind, id: i64) -> Range<usize> {
        let key = (kind, id_rank(id));
        self.changes.range(key, key)
    }

    pub(super) fn change(&self, index: usize) -> &'c Change {
        &self.changes.changes()[index]
    }

    /// Returns those of the changes with the given indices that have an effect, each with its step.
    pub(super) fn effective_changes(
        &self,
        indices: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = (u32, &'c Change)> + '_ {
        let with_effect = indices.filter(|index| self.has_effect[*index]);
        with_effect.map(|index| (self.steps.step_of_change(index), self.change(index)))
    }

    /// Returns the last change of an object before a moment; `None` if the object is still as in the base.
    pub(super) fn last_change(&self, kind: ObjectKind, id: i64, moment: u32) -> Option<&'c Change> {
        if !self.changed_ids(kind).contains(id) {
            return None;
        }
        let mut before = self.effective_changes(self.change_indices(kind, id)).rev();
        before
            .find(|(step, _)| *step < moment)
            .map(|(_, change)| change)
    }

    /// Calls `take` with each step in which an object changes, and with the last change of the object in that step. A
    /// step that creates the object and deletes it again is left out.
    pub(super) fn for_each_step(
        &self,
        kind: ObjectKind,
        id: i64,
        mut take: impl FnMut(u32, &'c Change),
    ) {
        if !self.changed_ids(kind).contains(id) {
            return;
        }
        let range = self.change_indices(kind, id);
        let mut is_there = self.may_be_in_base(range.start);
        let mut versions = self.effective_changes(range).peekable();
        while let Some((step, change)) = versions.next() {
            if versions.peek().is_some_and(|(next, _)| *next == step) {
                continue;
            }
            let is_there_after = !change.is_deletion();
            if is_there || is_there_after {
                take(step, change);
            }
            is_there = is_there_after;
        }
    }

    /// Whether the changes are made in one step.
    pub(super) fn is_one_step(&self) -> bool {
        self.steps.groups.is_empty()
    }
}
