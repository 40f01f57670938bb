//! Which blob of the base gets which changes.

use crate::osm::{ObjectKind, OrderKey};
use crate::pbf::{BlobEntry, TARGET_ELEMENTS};
use crate::read::BlobPlan;
use crate::text::ChangeSet;
use crate::write::Expected;
use std::ops::Range;

/// One step of the output, in canonical order.
#[derive(Debug, Clone)]
pub(super) enum Unit {
    /// A blob that no change concerns.
    Copy(BlobEntry),
    /// A blob, and the changes that fall into it.
    Edit(BlobEntry, Range<usize>),
    /// Changes that fall between blobs.
    Insert(Range<usize>),
}

impl Unit {
    pub(super) fn frame_bytes(&self) -> u64 {
        match self {
            Self::Copy(entry) | Self::Edit(entry, _) => u64::from(entry.frame_len),
            Self::Insert(_) => 0,
        }
    }

    /// Whether the unit is about nodes alone.
    pub(super) fn is_nodes(&self, changes: &ChangeSet) -> bool {
        let kind = match self {
            Self::Copy(entry) | Self::Edit(entry, _) => entry.kinds.single(),
            Self::Insert(range) => {
                let first = changes.changes().get(range.start);
                first.map(|change| change.key.0)
            }
        };
        kind == Some(ObjectKind::Node)
    }

    /// What the output gets of this unit.
    pub(super) fn expected(&self) -> Expected {
        match self {
            Self::Copy(entry) => Expected::copy_of(1, entry.offset, entry.frame_len.into()),
            Self::Edit(entry, _) => Expected {
                blobs: 1,
                bytes: entry.frame_len.into(),
                ..Expected::default()
            },
            Self::Insert(_) => Expected {
                blobs: 1,
                ..Expected::default()
            },
        }
    }

    /// Bytes that the unit holds in memory until it is written: its own frame and the new one.
    pub(super) fn held_bytes(&self) -> u64 {
        match self {
            Self::Copy(_) => 0,
            Self::Edit(entry, _) => u64::from(entry.frame_len) * 2,
            Self::Insert(changes) => changes.len() as u64 * 64,
        }
    }
}

/// A blob of the base with the changes assigned to it so far.
struct Slot {
    entry: BlobEntry,
    changes: Range<usize>,
    first: OrderKey,
    last: OrderKey,
}

impl Slot {
    /// Whether `more` objects of `kind` may join the blob at its edge. A blob that has to be
    /// written anyway takes more of them than one that could have been copied.
    fn has_room(&self, edge: OrderKey, kind: ObjectKind, more: usize) -> bool {
        let limit = if self.changes.is_empty() {
            TARGET_ELEMENTS
        } else {
            TARGET_ELEMENTS + TARGET_ELEMENTS / 4
        };
        edge.0 == kind && self.entry.blobs == 1 && self.entry.count as usize + more <= limit
    }
}

/// Assigns every change to a blob or to a place between blobs. `is_rewritten` says which blobs have to be looked at
/// without changes.
pub(super) fn plan_units(
    plan: &BlobPlan,
    changes: &ChangeSet,
    is_rewritten: impl Fn(&BlobEntry) -> bool,
) -> Vec<Unit> {
    let mut slots: Vec<Slot> = Vec::with_capacity(plan.entries.len());
    let mut empty: Vec<Unit> = Vec::new();
    for entry in &plan.entries {
        match (entry.first_key(), entry.last_key()) {
            (Some(first), Some(last)) => {
                slots.push(Slot {
                    entry: *entry,
                    changes: changes.range(first, last),
                    first,
                    last,
                });
            }
            // Without nodes, ways or relations a blob has no place in the order.
            _ => empty.push(Unit::Copy(*entry)),
        }
    }
    let mut units = Vec::with_capacity(slots.len() + 8);
    let mut next_change = 0;
    // New blobs that come before the slot with that index.
    let mut inserts: Vec<(usize, Range<usize>)> = Vec::new();
    for index in 0..=slots.len() {
        let gap_end = slots
            .get(index)
            .map_or(changes.changes().len(), |slot| slot.changes.start);
        for part in by_kind(changes, next_change..gap_end.max(next_change)) {
            if !attach(&mut slots, index, &part, changes) {
                inserts.push((index, part));
            }
        }
        next_change = slots
            .get(index)
            .map_or(gap_end, |slot| slot.changes.end.max(gap_end));
    }
    let mut inserts = inserts.into_iter().peekable();
    for (index, slot) in slots.into_iter().enumerate() {
        while let Some((_, part)) = inserts.next_if(|(before, _)| *before == index) {
            units.push(Unit::Insert(part));
        }
        if slot.changes.is_empty() && !is_rewritten(&slot.entry) {
            units.push(Unit::Copy(slot.entry));
        } else {
            units.push(Unit::Edit(slot.entry, slot.changes));
        }
    }
    units.extend(inserts.map(|(_, part)| Unit::Insert(part)));
    units.extend(empty);
    units
}

/// Gives the changes of a gap to the blob before or behind it, if one of them has room.
fn attach(slots: &mut [Slot], behind: usize, part: &Range<usize>, changes: &ChangeSet) -> bool {
    let inserted = changes.changes().get(part.clone()).unwrap_or_default();
    let new = inserted
        .iter()
        .filter(|change| !change.is_deletion())
        .count();
    let (Some(kind), true) = (inserted.first().map(|change| change.key.0), new > 0) else {
        return false;
    };
    let (before, after) = slots.split_at_mut(behind);
    // Only changes that adjoin the blob's own can join them: a range has no holes.
    if let Some(slot) = before.last_mut()
        && slot.has_room(slot.last, kind, new)
        && (slot.changes.is_empty() || slot.changes.end == part.start)
    {
        let start = if slot.changes.is_empty() {
            part.start
        } else {
            slot.changes.start
        };
        slot.changes = start..part.end;
        return true;
    }
    if let Some(slot) = after.first_mut()
        && slot.has_room(slot.first, kind, new)
        && (slot.changes.is_empty() || slot.changes.start == part.end)
    {
        let end = if slot.changes.is_empty() {
            part.end
        } else {
            slot.changes.end
        };
        slot.changes = part.start..end;
        return true;
    }
    false
}

/// Cuts a range of changes where the kind changes, and into what fills a block, so that the new
/// objects of a day are work for every core.
fn by_kind(changes: &ChangeSet, range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let all = changes.changes().get(range.clone()).unwrap_or_default();
    for (index, change) in range.zip(all) {
        let kind_at = |at: usize| changes.changes().get(at).map(|change| change.key.0);
        match parts.last_mut() {
            Some(part)
                if kind_at(part.start) == Some(change.key.0) && part.len() < TARGET_ELEMENTS =>
            {
                part.end = index + 1;
            }
            _ => parts.push(index..index + 1),
        }
    }
    parts
}
