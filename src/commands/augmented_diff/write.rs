//! Writes the actions in order of kind and id.

use super::find::{Findings, Status};
use super::geometry::index_of;
use super::{Base, Options, Summary};
use crate::engine::text_sink::warn_inexpressible;
use crate::error::{FormatError, Result};
use crate::file::BlobPass;
use crate::formats::{
    AugmentedObject, AugmentedXml, Change, ChangeAction, ChangeSet, Place, PlacedNode, TextOutput,
};
use crate::index::IdSet;
use crate::osm::{ObjectKind, TypeThenId, id_from_rank};
use crate::pbf::{BlobEntry, Block, Member, Object, ObjectBody};
use crate::runtime::WorkItem;
use std::ops::Range;

/// The text before the actions.
const PROLOGUE: &str = "<?xml version='1.0' encoding='UTF-8'?>\n<osm version=\"0.6\" generator=\"pbfhogg\">\n  \
                        <note>The data included in this document is from www.openstreetmap.org. The data is made \
                        available under ODbL.</note>\n";
const EPILOGUE: &str = "</osm>\n";

/// Objects of the base, and changes between them, in order.
struct Item {
    /// The blob with objects that are written; `None` for changes behind all blobs.
    blob: Option<BlobEntry>,
    /// The kind of the objects.
    kind: ObjectKind,
    /// The changes up to the end of the blob, as indices.
    changes: Range<usize>,
}

impl WorkItem for Item {
    fn input_bytes(&self) -> u64 {
        self.blob.map_or(0, |blob| u64::from(blob.frame_len))
    }

    fn held_bytes(&self) -> u64 {
        self.input_bytes() * 4 + self.changes.len() as u64 * 1000
    }
}

/// Writes the augmented diff.
pub(super) fn write(
    base: &Base<'_>,
    findings: &Findings<'_>,
    options: &Options,
) -> Result<Summary> {
    let mut output = TextOutput::create(options.output.clone(), base.ctx)?;
    output.write(PROLOGUE)?;
    let (mut summary, mut inexpressible) = (Summary::default(), 0);
    BlobPass::new("write", &base.file.input, base.ctx).run(
        items(base, findings),
        AugmentedXml::new,
        |reader, xml, item| {
            let mut writer = Writer {
                states: States { base, findings },
                options,
                xml,
                summary: Summary::default(),
            };
            match &item.blob {
                None => item.changes.clone().for_each(|index| writer.create(index)),
                Some(entry) => reader.decode(entry, |payload| writer.blob(payload, &item))?,
            }
            let summary = writer.summary;
            Ok((xml.take(), summary))
        },
        |((text, unknown), counts)| {
            summary.add(&counts);
            inexpressible += unknown;
            output.write(&text)
        },
    )?;
    output.write(EPILOGUE)?;
    base.ctx.stats.bytes_written.add(output.finish()?);
    warn_inexpressible(inexpressible, base.ctx);
    Ok(summary)
}

impl Summary {
    fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.modified += other.modified;
        self.deleted += other.deleted;
        self.indirect += other.indirect;
        self.outdated += other.outdated;
        self.absent += other.absent;
        self.missing += other.missing;
        self.missing_references += other.missing_references;
    }
}

/// Returns the blobs with objects that are written, each with the changes up to its end, and the changes behind them.
fn items(base: &Base<'_>, findings: &Findings<'_>) -> Vec<Item> {
    let changes = base.changes;
    let nodes: IdSet = changes
        .changes()
        .iter()
        .zip(&findings.status)
        .filter(|(change, status)| change.kind() == ObjectKind::Node && **status != Status::Absent)
        .map(|(change, _)| change.id)
        .collect();
    let mut items = Vec::new();
    for (kind, ids) in
        ObjectKind::ALL
            .into_iter()
            .zip([&nodes, &findings.ways, &findings.relations])
    {
        let of_kind = changes.range((kind, 0), (kind, u64::MAX));
        let mut next = of_kind.start;
        let may_have = |entry: &&BlobEntry| {
            entry.kinds.contains(kind)
                && !ids.is_empty()
                && (entry.kinds.single().is_none() || ids.may_meet(entry.min_id, entry.max_id))
        };
        for entry in base.plan.entries.iter().filter(may_have) {
            let end = match entry.last_key() {
                Some(last) if last.0 == kind => changes.range((kind, 0), last).end,
                // The blob has objects of later kinds, too: it is the last one of this kind.
                _ => of_kind.end,
            };
            items.push(Item {
                blob: Some(*entry),
                kind,
                changes: next..end.max(next),
            });
            next = end.max(next);
        }
        if next < of_kind.end {
            items.push(Item {
                blob: None,
                kind,
                changes: next..of_kind.end,
            });
        }
    }
    items
}

/// The changes, and what was found in the base.
#[derive(Clone, Copy)]
struct States<'w, 'b> {
    base: &'w Base<'b>,
    findings: &'w Findings<'b>,
}

/// Writes actions to a buffer.
struct Writer<'w, 'b> {
    states: States<'w, 'b>,
    options: &'w Options,
    xml: &'w mut AugmentedXml,
    summary: Summary,
}

impl Writer<'_, '_> {
    fn blob(&mut self, payload: &[u8], item: &Item) -> std::result::Result<(), FormatError> {
        let block = Block::parse(payload)?;
        let (mut cursor, mut object) = (block.cursor(), Object::default());
        let mut next = item.changes.start;
        let changes = self.states.base.changes.changes();
        while let Some(element) = cursor.next()? {
            if element.key.0 != item.kind {
                continue;
            }
            while next < item.changes.end && changes[next].key < element.key {
                self.create(next);
                next += 1;
            }
            let is_changed = next < item.changes.end && changes[next].key == element.key;
            if is_changed || self.is_concerned(element.key) {
                object.fill(&element, &block)?;
                self.existing(&object, is_changed.then_some(next));
            }
            next += usize::from(is_changed);
        }
        (next..item.changes.end).for_each(|index| self.create(index));
        Ok(())
    }

    /// Whether a way or relation of the base is written, because it is concerned by a change.
    fn is_concerned(&self, key: TypeThenId) -> bool {
        let id = id_from_rank(key.1);
        match key.0 {
            ObjectKind::Node => false,
            ObjectKind::Way => self.states.findings.ways.contains(id),
            ObjectKind::Relation => self.states.findings.relations.contains(id),
        }
    }

    /// Writes the change of an object that the base does not have.
    fn create(&mut self, index: usize) {
        let change = &self.states.base.changes.changes()[index];
        if change.is_deletion() {
            self.summary.absent += 1;
            return;
        }
        self.summary.created += 1;
        self.summary.missing += u64::from(change.action == ChangeAction::Modify);
        let object = self.states.base.changes.object(change);
        self.put(ChangeAction::Create, None, &object, true);
    }

    /// Writes the change of an object of the base, or the object as one that is concerned by others.
    fn existing(&mut self, old: &Object<'_>, index: Option<usize>) {
        let change = index.map(|index| {
            (
                &self.states.base.changes.changes()[index],
                self.states.findings.status[index],
            )
        });
        match change {
            Some((change, Status::Replaces)) => {
                let new = self.states.base.changes.object(change);
                let action = if change.is_deletion() {
                    self.summary.deleted += 1;
                    ChangeAction::Delete
                } else {
                    self.summary.modified += 1;
                    ChangeAction::Modify
                };
                self.put(action, Some(old), &new, true);
            }
            _ => {
                self.summary.outdated += u64::from(change.is_some());
                if self.is_concerned(old.key()) && !self.options.direct_only {
                    self.summary.indirect += 1;
                    self.put(ChangeAction::Modify, Some(old), old, false);
                }
            }
        }
    }

    /// Writes an action. `is_changed` is whether `new` comes from a change.
    fn put(
        &mut self,
        action: ChangeAction,
        old: Option<&Object<'_>>,
        new: &Object<'_>,
        is_changed: bool,
    ) {
        let states = self.states;
        let nodes = &states.findings.nodes;
        let old_nodes = old.map_or_else(Vec::new, |old| {
            placed(old, |id, given| nodes.old(id, given))
        });
        let new_nodes = placed(new, |id, given| {
            // The locations in a changed way are those of the change file, which has none or the new ones.
            let found = nodes.new_state(id, if is_changed { None } else { given });
            PlacedNode {
                location: found.location.or(given.filter(|_| is_changed)),
                ..found
            }
        });
        let unknown = |nodes: &[PlacedNode]| {
            nodes.iter().filter(|node| node.location.is_none()).count() as u64
        };
        self.summary.missing_references += unknown(&old_nodes) + unknown(&new_nodes);
        let old_places =
            |member: &Member<'_>, take: &mut dyn FnMut(Place<'_>)| states.old_place(member, take);
        let new_places =
            |member: &Member<'_>, take: &mut dyn FnMut(Place<'_>)| states.new_place(member, take);
        let old = old.map(|object| AugmentedObject {
            object,
            nodes: &old_nodes,
            places: Some(&old_places),
        });
        let new = AugmentedObject {
            object: new,
            nodes: &new_nodes,
            places: Some(&new_places),
        };
        self.xml.put(action, old.as_ref(), &new);
    }
}

impl States<'_, '_> {
    fn old_place(&self, member: &Member<'_>, take: &mut dyn FnMut(Place<'_>)) {
        let nodes = &self.findings.nodes;
        match member.kind {
            ObjectKind::Node => take(Place::Node(nodes.old(member.id, None).location)),
            ObjectKind::Way => {
                let mut placed = Vec::new();
                self.findings
                    .member_ways
                    .for_each_node(member.id, |id, given| {
                        placed.push(nodes.old_of_member(id, given));
                    });
                take(Place::Way(&placed));
            }
            ObjectKind::Relation => take(Place::None),
        }
    }

    fn new_place(&self, member: &Member<'_>, take: &mut dyn FnMut(Place<'_>)) {
        let nodes = &self.findings.nodes;
        match member.kind {
            ObjectKind::Node => take(Place::Node(nodes.new_state(member.id, None).location)),
            ObjectKind::Way => {
                let mut placed = Vec::new();
                match self.effective(ObjectKind::Way, member.id) {
                    Some(change) => {
                        let refs = self.base.changes.refs(change).iter();
                        placed.extend(refs.map(|id| nodes.new_of_member(*id, None)));
                    }
                    None => {
                        let mut push = |id, given| placed.push(nodes.new_of_member(id, given));
                        self.findings
                            .member_ways
                            .for_each_node(member.id, &mut push);
                    }
                }
                take(Place::Way(&placed));
            }
            ObjectKind::Relation => take(Place::None),
        }
    }

    /// Returns the change of an object if it has an effect.
    fn effective(&self, kind: ObjectKind, id: i64) -> Option<&Change> {
        let changes: &ChangeSet = self.base.changes;
        let index = index_of(changes, kind, id)?;
        let change = &changes.changes()[index];
        self.findings.status[index]
            .has_effect(change)
            .then_some(change)
    }
}

/// Returns the nodes of a way, placed by `place`, which gets the id of a node and its location in the way.
fn placed(
    object: &Object<'_>,
    place: impl Fn(i64, Option<crate::osm::Location>) -> PlacedNode,
) -> Vec<PlacedNode> {
    let ObjectBody::Way { refs, locations } = &object.body else {
        return Vec::new();
    };
    let nodes = refs.iter().enumerate();
    nodes
        .map(|(at, id)| place(*id, locations.get(at).copied().flatten()))
        .collect()
}
