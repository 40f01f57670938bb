//! Finds the actions of an augmented diff, in the order of kinds and ids.

use super::action::{Action, Encoder, LeftOut, SendPart};
use super::filter::Filter;
use super::find::Findings;
use super::history::Status;
use super::kept::{self, KeptPart};
use super::states::State;
use super::summary::Summary;
use super::{Base, Selection};
use crate::error::Result;
use crate::formats::row_limit::OversizedObjects;
use crate::formats::{Change, ChangeAction, ChangeSet};
use crate::osm::ObjectKind;
use crate::pbf::{Object, ObjectBody};
use crate::runtime::{Pass, WorkItem};
use std::collections::BTreeMap;
use std::ops::Range;

/// Consecutive objects of the base and consecutive changes, which one worker examines.
struct Item<'k> {
    /// The objects; `None` if the item has only changes. The objects of these changes come before, between or after the
    /// parts of the base.
    objects: Option<&'k KeptPart>,
    /// The indices of the changes. If there are objects, these are the changes from the first to the last object.
    changes: Range<usize>,
}

impl WorkItem for Item<'_> {
    fn input_bytes(&self) -> u64 {
        self.objects.map_or(0, |part| part.len as u64) + self.changes.len() as u64
    }

    /// Returns at least [`kept::PART`], so that only a few items are worked on at the same time. A long object takes up
    /// to a hundred times its input bytes.
    fn held_bytes(&self) -> u64 {
        self.objects.map_or(0, |part| part.len).max(kept::PART) as u64
    }
}

/// The size in bytes at which the encoded actions of an item are sent. An item is sent in parts, because a relation
/// with the geometry of its members is far longer than the relation in the base, and any number of relations may have
/// the same members.
const PART: usize = 1 << 20;

/// The source of the actions: the base, the findings, and the rules that select actions.
#[derive(Clone, Copy)]
pub(super) struct ActionSource<'a> {
    pub base: &'a Base<'a>,
    pub findings: &'a Findings<'a>,
    pub selection: &'a Selection,
}

/// Finds the actions that the filter selects. Calls `take` with their encoded form, in order.
pub(super) fn encode_actions<E: Encoder + Send>(
    source: ActionSource<'_>,
    filter: &Filter,
    new_encoder: impl Fn() -> E + Sync,
    mut take: impl FnMut(E::Part) -> Result<()>,
) -> Result<Summary> {
    let ActionSource { base, findings, .. } = source;
    let (mut summary, mut oversized) = (Summary::default(), OversizedObjects::default());
    let items = items(findings);
    let bytes = items.iter().map(WorkItem::input_bytes).sum();
    let budget = (4 * base.source.ctx.jobs * kept::PART) as u64;
    Pass::new("write", base.source.ctx)
        .with_budget(budget)
        .run_results(
            bytes,
            items.into_iter().map(Ok),
            new_encoder,
            |encoder, item, results| {
                let send = |part: E::Part, bytes: usize| results.send_sized((part, None), bytes);
                let mut finder = Finder {
                    findings,
                    filter,
                    encoder,
                    send: &send,
                    sent: Ok(()),
                    summary: Summary::default(),
                };
                match item.objects {
                    None => finder.find_actions_without_base(item.changes.clone()),
                    Some(part) => finder.find_actions_in_part(part, item.changes)?,
                }
                let Finder { sent, summary, .. } = finder;
                sent?;
                findings.check_for_read_error()?;
                let len = encoder.len();
                let part = encoder.take()?;
                let last = Some((summary, encoder.take_left_out()));
                results.send_sized((part, last), len)
            },
            |_| (),
            |(part, counts): (E::Part, Option<(Summary, LeftOut)>)| {
                if let Some((counts, left_out)) = counts {
                    summary.add(&counts);
                    summary.repeated_keys += left_out.repeated_keys;
                    oversized.extend(&left_out.oversized);
                }
                take(part)
            },
        )?;
    oversized.warn(findings.row_limit, base.source.ctx);
    Ok(summary)
}

/// Returns an item for each part of the objects of the base, with the changes from the first to the last object of the
/// part. Changes before, between and after the parts get items without objects.
fn items<'k>(findings: &'k Findings<'_>) -> Vec<Item<'k>> {
    let (changes, parts) = (findings.history.changes, &findings.kept.parts);
    let mut items = Vec::new();
    for kind in ObjectKind::ALL {
        let of_kind = changes.range((kind, 0), (kind, u64::MAX));
        let mut next = of_kind.start;
        for part in parts.iter().filter(|part| part.last.0 == kind) {
            let start = changes.range(part.first, part.last).start.max(next);
            add_changes(&mut items, changes, next..start);
            let end = changes.range((kind, 0), part.last).end.max(start);
            items.push(Item {
                objects: Some(part),
                changes: start..end,
            });
            next = end;
        }
        add_changes(&mut items, changes, next..of_kind.end);
    }
    items
}

/// Adds items for changes of objects that the base does not have. All changes of an object are in one item.
fn add_changes(items: &mut Vec<Item<'_>>, changes: &ChangeSet, range: Range<usize>) {
    /// The number of changes at which an item ends.
    const CHANGES: usize = 1000;
    let (all, mut start) = (changes.changes(), range.start);
    while start < range.end {
        let mut end = range.end.min(start + CHANGES);
        while end < range.end && all[end].key == all[end - 1].key {
            end += 1;
        }
        items.push(Item {
            objects: None,
            changes: start..end,
        });
        start = end;
    }
}

/// The first and the last step in which a group of changes has an effect on an object.
#[derive(Debug, Clone, Copy)]
struct Effect {
    first: u32,
    last: u32,
    /// Whether one of the changes is a change of the object itself.
    is_direct: bool,
}

/// The effects on an object, by group. Without groups, the key is `None`.
#[derive(Default)]
struct Effects(BTreeMap<Option<i64>, Effect>);

impl Effects {
    /// Extends the effect of a group by a step.
    fn add(&mut self, group: Option<i64>, step: u32, is_direct: bool) {
        let effect = self.0.entry(group).or_insert(Effect {
            first: step,
            last: step,
            is_direct,
        });
        effect.first = effect.first.min(step);
        effect.last = effect.last.max(step);
        effect.is_direct |= is_direct;
    }
}

/// A finder of actions, which also encodes them.
struct Finder<'w, 'c, E: Encoder> {
    findings: &'w Findings<'c>,
    filter: &'w Filter,
    encoder: &'w mut E,
    send: &'w SendPart<'w, E::Part>,
    /// The first error in encoding or sending actions. After an error, no more actions are encoded.
    sent: Result<()>,
    summary: Summary,
}

impl<E: Encoder> Finder<'_, '_, E> {
    /// Finds the actions of objects of the base, and of the changes between them.
    fn find_actions_in_part(&mut self, part: &KeptPart, range: Range<usize>) -> Result<()> {
        let mut next = range.start;
        let changes = &self.findings.history.changes.changes()[..range.end];
        let kept = &self.findings.kept;
        kept.for_each(part, |object| {
            let key = object.key();
            let start = next + count_leading(&changes[next..], |change| change.key < key);
            self.find_actions_without_base(next..start);
            next = start + count_leading(&changes[start..], |change| change.key == key);
            self.find_actions_of_object(Some(object), start..next);
        })?;
        self.find_actions_without_base(next..range.end);
        Ok(())
    }

    /// Finds the actions of changes of objects that the base does not have.
    fn find_actions_without_base(&mut self, changes: Range<usize>) {
        let mut start = changes.start;
        let all = &self.findings.history.changes.changes()[changes];
        for of_object in all.chunk_by(|one, other| one.key == other.key) {
            let end = start + of_object.len();
            self.find_actions_of_object(None, start..end);
            start = end;
        }
    }

    /// Finds the actions of an object. `base` is the object in the base, and `range` are the indices of its changes.
    fn find_actions_of_object(&mut self, base: Option<&Object<'_>>, range: Range<usize>) {
        let history = &self.findings.history;
        self.count_ineffective_changes(base.is_some(), range.clone());
        // The base may lack nodes of its ways. The deletion of such a node has an effect on the ways, but is not an
        // action of its own.
        let is_absent = |(_, change): &(u32, &Change)| base.is_none() && change.is_deletion();
        let versions = history.effective_changes(range).skip_while(is_absent);
        let versions: Vec<(u32, &Change)> = versions.collect();
        let effects = self.effects(base, &versions);
        for (group, effect) in effects.0 {
            let (before, after) = (effect.first, effect.last + 1);
            let [old, new] = [before, after].map(|moment| {
                let last = versions.iter().rev().find(|(step, _)| *step < moment);
                last.map(|(_, change)| *change)
            });
            let new_object = new.map(|change| history.changes.object(change));
            let old_object = old.map(|change| history.changes.object(change));
            let Some(new_object) = new_object.as_ref().or(base) else {
                continue;
            };
            let old_object = match old {
                Some(change) if change.is_deletion() => None,
                Some(_) => old_object.as_ref(),
                None => base,
            };
            let is_deleted = new.is_some_and(Change::is_deletion);
            let kind = match (old_object, is_deleted) {
                (None, true) => {
                    self.encoder
                        .note_created_and_deleted(group, new_object.key());
                    continue;
                }
                (None, false) => ChangeAction::Create,
                (Some(_), true) => ChangeAction::Delete,
                (Some(_), false) => ChangeAction::Modify,
            };
            let is_base = |change: Option<&Change>| change.is_none();
            self.put(&Action {
                kind,
                is_indirect: !effect.is_direct,
                group,
                old: old_object
                    .map(|object| State::new(object, is_base(old), before, self.findings)),
                new: State::new(new_object, is_base(new), after, self.findings),
            });
        }
    }

    /// Counts the outdated changes of an object. If the base does not have the object, also counts the first change if
    /// it is a deletion or a modification.
    fn count_ineffective_changes(&mut self, is_in_base: bool, range: Range<usize>) {
        let history = &self.findings.history;
        let summary = &mut self.summary;
        let outdated = range
            .clone()
            .filter(|index| history.status[*index] == Status::Outdated);
        summary.outdated += outdated.count() as u64;
        if !is_in_base && let Some(first) = range.map(|index| history.change(index)).next() {
            match first.action {
                ChangeAction::Delete => summary.absent += 1,
                ChangeAction::Modify => summary.missing += 1,
                ChangeAction::Create => {}
            }
        }
    }

    /// Returns the effects of all changes on an object. `versions` are the changes of the object itself.
    fn effects(&self, base: Option<&Object<'_>>, versions: &[(u32, &Change)]) -> Effects {
        let history = &self.findings.history;
        let mut effects = Effects::default();
        for (step, _) in versions {
            effects.add(history.steps.group(*step), *step, true);
        }
        let first = versions.first().map_or(u32::MAX, |(step, _)| *step);
        if let Some(base) = base {
            self.add_indirect_effects(base, 0..first, &mut effects);
        }
        for (at, (step, change)) in versions.iter().enumerate() {
            let next = versions.get(at + 1).map_or(u32::MAX, |(step, _)| *step);
            if !change.is_deletion() && !history.is_one_step() {
                let object = history.changes.object(change);
                self.add_indirect_effects(&object, step + 1..next, &mut effects);
            }
        }
        effects
    }

    /// Adds the effects that changes of the nodes and members of an object have on the object in the given steps.
    fn add_indirect_effects(&self, object: &Object<'_>, steps: Range<u32>, effects: &mut Effects) {
        let Findings {
            history,
            reshaped,
            routes,
            ..
        } = self.findings;
        let mut add = |step: u32| {
            if steps.contains(&step) {
                effects.add(history.steps.group(step), step, false);
            }
        };
        match &object.body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, .. } => {
                for node in refs.iter() {
                    history.for_each_step(ObjectKind::Node, *node, |step, _| add(step));
                }
            }
            ObjectBody::Relation { members } => {
                for member in members {
                    if member.kind != ObjectKind::Relation {
                        history.for_each_step(member.kind, member.id, |step, _| add(step));
                    }
                    if member.kind == ObjectKind::Way {
                        reshaped.for_each_step(member.id, &mut add);
                    }
                }
                if self.filter.follows_routes && routes.is_affected(object.id) {
                    // If routes are followed, all changes are made in one step, which has the number 0.
                    add(0);
                }
            }
        }
    }

    /// Encodes an action if the filter selects it.
    fn put(&mut self, action: &Action<'_>) {
        if self.sent.is_err() || !self.filter.selects(action, self.findings) {
            return;
        }
        let mut states = action.old.iter().chain([&action.new]);
        let has_geometry = states.all(State::has_member_geometry);
        self.summary.count(action, has_geometry);
        self.sent = self.encode(action);
    }

    /// Encodes an action. Sends the encoded actions if their size has reached [`PART`].
    fn encode(&mut self, action: &Action<'_>) -> Result<()> {
        self.encoder.put(action, self.findings, self.send)?;
        let len = self.encoder.len();
        if len < PART {
            return Ok(());
        }
        (self.send)(self.encoder.take()?, len)
    }
}

/// Returns the number of changes at the start of a list that meet a condition.
fn count_leading(changes: &[Change], is_counted: impl Fn(&Change) -> bool) -> usize {
    changes
        .iter()
        .take_while(|change| is_counted(change))
        .count()
}
