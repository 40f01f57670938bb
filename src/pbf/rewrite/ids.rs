//! Replaces the ids in an encoded block. Everything else is copied without decoding.

use super::message::{EditedMessage, IdPlaces, NewField, for_each_field};
use crate::error::{FormatError, FormatResult};
use crate::osm::ObjectKind;
use crate::pbf::block::delta::Delta;
use crate::pbf::block::dense::put_empty_keys_vals;
use crate::pbf::block::limits::check_parts;
use crate::pbf::block::messages::{OnlyId, RelationMessage, object_id};
use crate::pbf::block::object::put_deltas;
use crate::pbf::wire::schema::{
    dense_nodes, object, primitive_block, primitive_group, relation, way,
};
use crate::pbf::wire::{
    Field, MAX_VARINT_LEN, Packed, put_bytes_head, put_sints, put_varint, varint_len, zigzag_encode,
};

/// The maximum number of dense nodes whose ids are held in memory at a time. Blocks in real files have fewer nodes.
const NODES_AT_ONCE: usize = 1 << 16;

/// A mapping from old to new ids.
pub(crate) trait NewIds {
    /// Replaces the ids of consecutive objects of a block. Called in block order.
    fn replace_ids(&mut self, kind: ObjectKind, ids: &mut [i64]);

    /// Replaces `ids`, which are the references of a way or relation to objects of one kind, in the order of the
    /// references.
    fn replace_references(&mut self, kind: ObjectKind, ids: &mut [i64]);
}

/// Appends the block in `payload` with the ids of objects and references replaced by those of `new`.
pub(crate) fn patch_ids(
    payload: &[u8],
    new: &mut impl NewIds,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let mut scratch = Scratch::default();
    patch_messages(payload, out, |field, out| match field.number {
        primitive_group::NODES => patch_node(field.bytes()?, new, out),
        primitive_group::DENSE => patch_dense(field.bytes()?, new, &mut scratch, out),
        primitive_group::WAYS => patch_way(field.bytes()?, new, &mut scratch, out),
        primitive_group::RELATIONS => patch_relation(field.bytes()?, new, &mut scratch, out),
        _ => {
            out.extend_from_slice(field.raw);
            Ok(())
        }
    })
}

/// The ids of the ways of a block, and the ids of their nodes. The ids can be read, changed, and written back.
#[derive(Default)]
pub(crate) struct BlockWayIds {
    /// The ids of the ways.
    pub ways: Vec<i64>,
    /// The ids of the nodes of all ways.
    pub nodes: Vec<i64>,
    /// For each way, the end of its nodes in `nodes` (exclusive), and the positions of the ids in its message.
    places: Vec<(usize, IdPlaces)>,
}

impl BlockWayIds {
    /// Replaces the ids by those of the block in `payload`.
    pub(crate) fn read(&mut self, payload: &[u8]) -> FormatResult<()> {
        self.ways.clear();
        self.nodes.clear();
        self.places.clear();
        for_each_field(payload, "PrimitiveBlock", |field, _| {
            if field.number != primitive_block::PRIMITIVEGROUP {
                return Ok(());
            }
            for_each_field(field.bytes()?, "PrimitiveGroup", |field, _| {
                if field.number != primitive_group::WAYS {
                    return Ok(());
                }
                let way = WayPlaces::read(field.bytes()?)?;
                Delta::new(&way.nodes).append_all_to(&mut self.nodes)?;
                self.ways.push(way.id);
                self.places.push((self.nodes.len(), way.places));
                Ok(())
            })
        })
    }

    /// Appends the block in `payload` with the ids that are now in `ways` and `nodes`. The block must be the one that
    /// was read. Objects other than ways keep their ids.
    pub(crate) fn patch(&self, payload: &[u8], out: &mut Vec<u8>) -> FormatResult<()> {
        let (mut run, mut start) = (Vec::new(), 0);
        let mut ways = self.ways.iter().zip(&self.places);
        patch_messages(payload, out, |field, out| {
            if field.number != primitive_group::WAYS {
                out.extend_from_slice(field.raw);
                return Ok(());
            }
            let missing = FormatError::new("a block has more ways than were read");
            let (id, (end, places)) = ways.next().ok_or(missing)?;
            let nodes = &self.nodes[start..*end];
            start = *end;
            put_way(field.bytes()?, *id, nodes, places, &mut run, out)
        })
    }
}

/// Appends the block in `payload`. `patch` is called with each field of a group, and appends the field that replaces
/// it.
fn patch_messages(
    payload: &[u8],
    out: &mut Vec<u8>,
    mut patch: impl FnMut(&Field<'_>, &mut Vec<u8>) -> FormatResult<()>,
) -> FormatResult<()> {
    for_each_field(payload, "PrimitiveBlock", |field, _| {
        if field.number != primitive_block::PRIMITIVEGROUP {
            out.extend_from_slice(field.raw);
            return Ok(());
        }
        let group = field.bytes()?;
        put_bytes_head(out, field.number, group.len());
        let start = out.len();
        for_each_field(group, "PrimitiveGroup", |field, _| patch(field, out))?;
        // The length of the new group is known only now. In most cases, the new length takes as many bytes as the old
        // one, so that no content moves.
        let mut len = Vec::with_capacity(MAX_VARINT_LEN);
        put_varint(&mut len, (out.len() - start) as u64);
        out.splice(start - varint_len(group.len() as u64)..start, len);
        Ok(())
    })
}

#[derive(Default)]
struct Scratch {
    run: Vec<u8>,
    ids: Vec<i64>,
    kinds: Vec<u64>,
    of_kind: Vec<i64>,
}

/// Returns the new id of an object.
fn new_id(new: &mut impl NewIds, kind: ObjectKind, id: i64) -> i64 {
    let mut ids = [id];
    new.replace_ids(kind, &mut ids);
    ids[0]
}

fn patch_node(message: &[u8], new: &mut impl NewIds, out: &mut Vec<u8>) -> FormatResult<()> {
    let id = object_id(message, ObjectKind::Node)?;
    let id = new_id(new, ObjectKind::Node, id);
    let numbers = [object::ID, 0];
    EditedMessage {
        number: primitive_group::NODES,
        message,
        numbers,
        places: &IdPlaces::find(message, numbers)?,
        fields: [
            &NewField::varint(object::ID, zigzag_encode(id)),
            &NewField::NONE,
        ],
        appended: &[],
    }
    .put(out)
}

fn patch_dense(
    message: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let numbers = [dense_nodes::ID, 0];
    let (mut ids, mut has_tags, mut places) = (Packed::default(), false, IdPlaces::default());
    for_each_field(message, "DenseNodes", |field, range| {
        places.add(field.number, numbers, range);
        match field.number {
            dense_nodes::ID => ids.add(field)?,
            dense_nodes::KEYS_VALS => has_tags = true,
            _ => {}
        }
        Ok(())
    })?;
    let count = ids.count();
    let (mut deltas, mut left, mut last) = (Delta::new(&ids), count, 0);
    let Scratch { run, ids, .. } = scratch;
    run.clear();
    while left > 0 {
        ids.clear();
        ids.resize(left.min(NODES_AT_ONCE), 0);
        left -= ids.len();
        deltas.fill(ids)?;
        new.replace_ids(ObjectKind::Node, ids);
        let delta = |id: &i64| id.wrapping_sub(std::mem::replace(&mut last, *id));
        put_sints(run, ids.iter().map(delta));
    }
    let mut no_tags = Vec::new();
    if !has_tags {
        put_empty_keys_vals(count, &mut no_tags);
    }
    EditedMessage {
        number: primitive_group::DENSE,
        message,
        numbers,
        places: &places,
        fields: [&NewField::bytes(dense_nodes::ID, run), &NewField::NONE],
        appended: &no_tags,
    }
    .put(out)
}

/// A way, and the positions of the ids in its message.
struct WayPlaces<'m> {
    id: i64,
    nodes: Packed<'m>,
    places: IdPlaces,
}

impl<'m> WayPlaces<'m> {
    const NUMBERS: [u32; 2] = [object::ID, way::REFS];

    #[inline]
    fn read(message: &'m [u8]) -> FormatResult<Self> {
        let (mut id, mut nodes, mut places) =
            (OnlyId::default(), Packed::default(), IdPlaces::default());
        for_each_field(message, "Way", |field, range| {
            places.add(field.number, Self::NUMBERS, range);
            match field.number {
                object::ID => id.set(field.varint()? as i64),
                way::REFS => nodes.add(field),
                _ => Ok(()),
            }
        })?;
        let id = id.get()?;
        check_parts(nodes.as_bytes(), 1, "nodes", ObjectKind::Way, id)?;
        Ok(Self { id, nodes, places })
    }
}

/// Appends the message of a way with a new id and new node ids, as a field of its group.
#[inline]
fn put_way(
    message: &[u8],
    id: i64,
    nodes: &[i64],
    places: &IdPlaces,
    run: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    run.clear();
    put_deltas(run, nodes.iter().copied());
    EditedMessage {
        number: primitive_group::WAYS,
        message,
        numbers: WayPlaces::NUMBERS,
        places,
        fields: [
            &NewField::varint(object::ID, id as u64),
            &NewField::bytes(way::REFS, run),
        ],
        appended: &[],
    }
    .put(out)
}

fn patch_way(
    message: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let way = WayPlaces::read(message)?;
    scratch.ids.clear();
    Delta::new(&way.nodes).append_all_to(&mut scratch.ids)?;
    new.replace_references(ObjectKind::Node, &mut scratch.ids);
    let id = new_id(new, ObjectKind::Way, way.id);
    put_way(
        message,
        id,
        &scratch.ids,
        &way.places,
        &mut scratch.run,
        out,
    )
}

fn patch_relation(
    message: &[u8],
    new: &mut impl NewIds,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let relation = RelationMessage::parse(message)?;
    relation.check_members(usize::MAX)?;
    relation.check_size()?;
    let Scratch {
        run,
        ids,
        kinds,
        of_kind,
    } = scratch;
    ids.clear();
    Delta::new(&relation.member_ids).append_all_to(ids)?;
    kinds.clear();
    let mut numbers = relation.member_kinds.values();
    while !numbers.is_done() {
        kinds.push(numbers.read()?);
    }
    for kind in ObjectKind::ALL {
        let is_of_kind = |number: &u64| *number == u64::from(kind.number());
        of_kind.clear();
        let members = ids.iter_mut().zip(&*kinds);
        of_kind.extend(
            members
                .filter(|(_, number)| is_of_kind(number))
                .map(|(id, _)| *id),
        );
        new.replace_references(kind, of_kind);
        let members = ids.iter_mut().zip(&*kinds);
        let members = members.filter(|(_, number)| is_of_kind(number));
        members.zip(&*of_kind).for_each(|((id, _), new)| *id = *new);
    }
    let id = new_id(new, ObjectKind::Relation, relation.id);
    run.clear();
    put_deltas(run, ids.iter().copied());
    let numbers = [object::ID, relation::MEMIDS];
    EditedMessage {
        number: primitive_group::RELATIONS,
        message,
        numbers,
        places: &IdPlaces::find(message, numbers)?,
        fields: [
            &NewField::varint(object::ID, id as u64),
            &NewField::bytes(relation::MEMIDS, run),
        ],
        appended: &[],
    }
    .put(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::wire::{put_bytes_field, put_sint, put_varint_field};

    /// New ids that differ from the old ids by 1000 for objects, and by the number of the kind plus one for references.
    struct Shifted;

    impl NewIds for Shifted {
        fn replace_ids(&mut self, _: ObjectKind, ids: &mut [i64]) {
            ids.iter_mut().for_each(|id| *id += 1000);
        }

        fn replace_references(&mut self, kind: ObjectKind, ids: &mut [i64]) {
            ids.iter_mut()
                .for_each(|id| *id += i64::from(kind.number()) + 1);
        }
    }

    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, bytes) in fields {
            put_bytes_field(&mut out, *number, bytes);
        }
        out
    }

    fn deltas(values: &[i64]) -> Vec<u8> {
        let (mut out, mut last) = (Vec::new(), 0);
        for value in values {
            put_sint(&mut out, *value - last);
            last = *value;
        }
        out
    }

    fn id_field(id: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint_field(&mut out, object::ID, id);
        out
    }

    fn refs_field(refs: &[i64]) -> Vec<u8> {
        message(&[(way::REFS, &deltas(refs))])
    }

    /// A block with a table of strings, and one group for each of `groups`.
    fn block(groups: &[&[(u32, &[u8])]]) -> Vec<u8> {
        let strings = message(&[(1, b""), (1, b"highway")]);
        let mut block = message(&[(primitive_block::STRINGTABLE, &strings)]);
        for group in groups {
            put_bytes_field(&mut block, primitive_block::PRIMITIVEGROUP, &message(group));
        }
        put_varint_field(&mut block, 17, 100);
        block
    }

    fn shift_ids(block: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        patch_ids(block, &mut Shifted, &mut out).unwrap();
        out
    }

    /// Checks that both `patch_ids` and [`BlockWayIds`] turn a way with the fields `old` into a way with the fields
    /// `new`.
    #[track_caller]
    fn check_way(old: &[&[u8]], new: &[&[u8]]) {
        let other = [id_field(7), refs_field(&[70, 75])].concat();
        let other_new = [id_field(1007), refs_field(&[71, 76])].concat();
        let ways = |way: &[&[u8]], other: &[u8]| {
            let way = way.concat();
            let ways: [(u32, &[u8]); 2] = [
                (primitive_group::WAYS, other),
                (primitive_group::WAYS, &way),
            ];
            block(&[&ways[..], &ways[1..]])
        };
        let (old, new) = (ways(old, &other), ways(new, &other_new));
        assert_eq!(shift_ids(&old), new);
        let (mut ids, mut out) = (BlockWayIds::default(), Vec::new());
        ids.read(&old).unwrap();
        Shifted.replace_ids(ObjectKind::Way, &mut ids.ways);
        Shifted.replace_references(ObjectKind::Node, &mut ids.nodes);
        ids.patch(&old, &mut out).unwrap();
        assert_eq!(out, new);
    }

    #[test]
    fn ids_of_ways_are_replaced_wherever_their_fields_are() {
        let keys = message(&[(object::KEYS, &[1])]);
        let (old, new) = (id_field(5), id_field(1005));
        let (refs, new_refs) = (
            refs_field(&[9, 3, 1 << 40]),
            refs_field(&[10, 4, (1 << 40) + 1]),
        );
        check_way(&[&old, &keys, &refs], &[&new, &keys, &new_refs]);
        check_way(&[&refs, &keys, &old], &[&new_refs, &keys, &new]);
        check_way(&[&refs, &old], &[&new_refs, &new]);
        check_way(&[&keys, &old, &keys], &[&keys, &new, &keys]);
        check_way(&[&old, &refs_field(&[])], &[&new, &refs_field(&[])]);
        // References in several fields become one field.
        let pieces = [&refs_field(&[9]), &old, &keys, &refs_field(&[-6]), &keys];
        let whole = refs_field(&[10, 4]);
        check_way(&pieces.map(Vec::as_slice), &[&whole, &new, &keys, &keys]);
        // References that are not packed.
        let mut single = Vec::new();
        put_varint_field(&mut single, way::REFS, zigzag_encode(9));
        check_way(&[&old, &single, &keys], &[&new, &refs_field(&[10]), &keys]);
        let twice = [single.clone(), single].concat();
        check_way(&[&old, &twice], &[&new, &refs_field(&[10, 19])]);
    }

    #[test]
    fn a_group_whose_length_takes_more_or_fewer_bytes_stays_whole() {
        for count in [1, 2, 7, 8, 9, 900, 1000, 1100] {
            let ids: Vec<i64> = (0..count).map(|number| number * 4_000_000).collect();
            let new: Vec<i64> = ids.iter().map(|id| id + 1).collect();
            let refs = [id_field(5), refs_field(&ids)].concat();
            let new_refs = [id_field(1005), refs_field(&new)].concat();
            check_way(&[&refs], &[&new_refs]);
        }
        let near: Vec<i64> = (1..=100).collect();
        struct Far;
        impl NewIds for Far {
            fn replace_ids(&mut self, _: ObjectKind, ids: &mut [i64]) {
                ids.iter_mut().for_each(|id| *id *= -1 << 50);
            }
            fn replace_references(&mut self, _: ObjectKind, _: &mut [i64]) {}
        }
        let far: Vec<i64> = near.iter().map(|id| id * (-1 << 50)).collect();
        let dense = |ids: &[i64]| {
            let dense = message(&[
                (dense_nodes::ID, &deltas(ids)),
                (dense_nodes::KEYS_VALS, &[0]),
            ]);
            block(&[&[(primitive_group::DENSE, &dense)]])
        };
        let mut out = Vec::new();
        patch_ids(&dense(&near), &mut Far, &mut out).unwrap();
        assert_eq!(out, dense(&far));
    }

    #[test]
    fn ids_of_nodes_and_members_are_replaced() {
        let lats = deltas(&[5, 6, 7]);
        let dense = |ids: &[i64], tags: &[u8]| {
            let mut dense = message(&[(dense_nodes::LAT, &lats), (dense_nodes::ID, &deltas(ids))]);
            if !tags.is_empty() {
                put_bytes_field(&mut dense, dense_nodes::KEYS_VALS, tags);
            }
            block(&[&[(primitive_group::DENSE, &dense)]])
        };
        let (old, new) = ([-4, 2, 1 << 50], [996, 1002, (1 << 50) + 1000]);
        // Readers need the column of tags, so it is added.
        for tags in [&[][..], &[0, 0, 0]] {
            assert_eq!(shift_ids(&dense(&old, tags)), dense(&new, &[0, 0, 0]));
        }
        let node = |id: i64| {
            let node = [
                id_field(zigzag_encode(id)),
                message(&[(object::KEYS, &[1])]),
            ]
            .concat();
            block(&[&[(primitive_group::NODES, &node)]])
        };
        assert_eq!(shift_ids(&node(-6)), node(994));
        let relation = |id: u64, members: &[i64]| {
            let fields = message(&[
                (relation::ROLES_SID, &[0, 0, 0, 0]),
                (relation::MEMIDS, &deltas(members)),
                (relation::TYPES, &[1, 2, 0, 1]),
            ]);
            let relation = [id_field(id), fields].concat();
            block(&[&[(primitive_group::RELATIONS, &relation)]])
        };
        let expected = relation(1003, &[12, 23, 31, 42]);
        assert_eq!(shift_ids(&relation(3, &[10, 20, 30, 40])), expected);
    }

    #[test]
    fn references_that_are_cut_off_are_errors() {
        let way = [id_field(1), message(&[(way::REFS, &[2, 0x80])])].concat();
        let block = block(&[&[(primitive_group::WAYS, &way)]]);
        assert!(patch_ids(&block, &mut Shifted, &mut Vec::new()).is_err());
        assert!(BlockWayIds::default().read(&block).is_err());
    }
}
