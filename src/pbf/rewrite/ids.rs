//! Replaces the ids in an encoded block. Everything else is copied without decoding.

use crate::error::FormatError;
use crate::osm::ObjectKind;
use crate::pbf::block::delta::Delta;
use crate::pbf::block::dense::put_no_tags;
use crate::pbf::block::messages::{RelationMessage, WayRefs, object_id};
use crate::pbf::block::object::put_deltas;
use crate::pbf::wire::schema::{
    dense_nodes, object, primitive_block, primitive_group, relation, way,
};
use crate::pbf::wire::{
    Fields, Packed, put_bytes_field, put_sint, put_sint_field, put_varint_field,
};

/// The maximum number of dense nodes whose ids are held in memory at a time. Blocks in real files have fewer nodes.
const NODES_AT_ONCE: usize = 1 << 16;

/// A mapping from old to new ids.
pub(crate) trait NewIds {
    /// Replaces the ids of consecutive objects of a block. Called in block order.
    fn objects(&mut self, kind: ObjectKind, ids: &mut [i64]);

    /// Replaces the ids in `ids`, which are references of a way or relation to objects of one kind.
    fn references(&mut self, kind: ObjectKind, ids: &mut [i64]);

    /// Appends the new ids of the nodes of a way to `ids`, which must be empty. `refs` are the old ids.
    fn nodes_of_way(&mut self, refs: &Packed<'_>, ids: &mut Vec<i64>) -> Result<(), FormatError> {
        Delta::new(refs).push_all(ids)?;
        self.references(ObjectKind::Node, ids);
        Ok(())
    }
}

/// Appends the block in `payload` with the ids of objects and references replaced by those of `new`.
pub(crate) fn patch_ids(
    payload: &[u8],
    new: &mut impl NewIds,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let (mut group, mut scratch) = (Vec::new(), Scratch::default());
    let mut fields = Fields::new(payload);
    while let Some(field) = fields
        .next()
        .map_err(|error| error.within("PrimitiveBlock"))?
    {
        if field.number == primitive_block::PRIMITIVEGROUP {
            group.clear();
            patch_group(field.bytes()?, new, &mut scratch, &mut group)?;
            put_bytes_field(out, primitive_block::PRIMITIVEGROUP, &group);
        } else {
            out.extend_from_slice(field.raw);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Scratch {
    message: Vec<u8>,
    run: Vec<u8>,
    ids: Vec<i64>,
}

fn patch_group(
    group: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let mut fields = Fields::new(group);
    while let Some(field) = fields
        .next()
        .map_err(|error| error.within("PrimitiveGroup"))?
    {
        scratch.message.clear();
        match field.number {
            primitive_group::NODES => patch_node(field.bytes()?, new, scratch)?,
            primitive_group::DENSE => patch_dense(field.bytes()?, new, scratch)?,
            primitive_group::WAYS => patch_way(field.bytes()?, new, scratch)?,
            primitive_group::RELATIONS => patch_relation(field.bytes()?, new, scratch)?,
            _ => {
                out.extend_from_slice(field.raw);
                continue;
            }
        }
        put_bytes_field(out, field.number, &scratch.message);
    }
    Ok(())
}

/// Copies a message to `scratch.message` without the fields with the given `numbers`, which must be below 64. At the
/// first occurrence of each removed field, calls `put` with the number of the field. `put` can write a replacement.
fn replace(
    message: &[u8],
    numbers: &[u32],
    scratch: &mut Scratch,
    mut put: impl FnMut(u32, &mut Scratch),
) -> Result<(), FormatError> {
    let mut seen = 0u64;
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if !numbers.contains(&field.number) {
            scratch.message.extend_from_slice(field.raw);
        } else if seen >> field.number & 1 == 0 {
            seen |= 1 << field.number;
            put(field.number, scratch);
        }
    }
    Ok(())
}

fn new_id(new: &mut impl NewIds, kind: ObjectKind, id: i64) -> i64 {
    let mut ids = [id];
    new.objects(kind, &mut ids);
    ids[0]
}

fn patch_node(
    message: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
) -> Result<(), FormatError> {
    let id = object_id(message, ObjectKind::Node)?;
    let id = new_id(new, ObjectKind::Node, id);
    replace(message, &[object::ID], scratch, |number, scratch| {
        put_sint_field(&mut scratch.message, number, id);
    })
}

fn patch_dense(
    message: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
) -> Result<(), FormatError> {
    let (mut ids, mut has_tags) = (Packed::default(), false);
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next().map_err(|error| error.within("DenseNodes"))? {
        match field.number {
            dense_nodes::ID => ids.add(&field)?,
            dense_nodes::KEYS_VALS => has_tags = true,
            _ => {}
        }
    }
    let count = ids.count();
    let (mut deltas, mut left, mut last) = (Delta::new(&ids), count, 0);
    let mut run = std::mem::take(&mut scratch.run);
    run.clear();
    while left > 0 {
        scratch.ids.clear();
        scratch.ids.resize(left.min(NODES_AT_ONCE), 0);
        left -= scratch.ids.len();
        deltas.fill(&mut scratch.ids)?;
        new.objects(ObjectKind::Node, &mut scratch.ids);
        for id in &scratch.ids {
            put_sint(&mut run, id.wrapping_sub(last));
            last = *id;
        }
    }
    scratch.run = run;
    replace(message, &[dense_nodes::ID], scratch, |number, scratch| {
        put_bytes_field(&mut scratch.message, number, &scratch.run);
    })?;
    if !has_tags {
        put_no_tags(count, &mut scratch.message);
    }
    Ok(())
}

/// Copies the message of a way or relation to `scratch.message` with the new `id`, and with `scratch.ids` as the
/// references in the field with the number `references`.
fn replace_ids(
    message: &[u8],
    id: i64,
    references: u32,
    scratch: &mut Scratch,
) -> Result<(), FormatError> {
    scratch.run.clear();
    put_deltas(&mut scratch.run, scratch.ids.iter().copied());
    let numbers = [object::ID, references];
    replace(message, &numbers, scratch, |number, scratch| {
        if number == object::ID {
            put_varint_field(&mut scratch.message, number, id as u64);
        } else {
            put_bytes_field(&mut scratch.message, number, &scratch.run);
        }
    })
}

fn patch_way(
    message: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
) -> Result<(), FormatError> {
    let way = WayRefs::parse(message)?;
    way.check_size()?;
    scratch.ids.clear();
    new.nodes_of_way(&way.refs, &mut scratch.ids)?;
    let id = new_id(new, ObjectKind::Way, way.id);
    replace_ids(message, id, way::REFS, scratch)
}

fn patch_relation(
    message: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
) -> Result<(), FormatError> {
    let relation = RelationMessage::parse(message)?;
    relation.check(usize::MAX)?;
    relation.check_size()?;
    scratch.ids.clear();
    let mut members = Delta::new(&relation.member_ids);
    let mut kinds = relation.member_kinds.values();
    while !members.is_done() {
        let mut id = [members.read()?];
        if let Some(kind) = ObjectKind::from_number(kinds.read()?) {
            new.references(kind, &mut id);
        }
        scratch.ids.extend(id);
    }
    let id = object_id(message, ObjectKind::Relation)?;
    let id = new_id(new, ObjectKind::Relation, id);
    replace_ids(message, id, relation::MEMIDS, scratch)
}
