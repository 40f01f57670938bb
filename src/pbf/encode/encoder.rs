//! Encodes objects of one kind as a PrimitiveBlock with one group and a string table that is ordered by use.

use super::dense_columns::{DenseColumns, InfoColumn};
use super::intern::{Interner, SourceStrings};
use crate::error::{FormatError, FormatResult};
use crate::osm::{Location, ObjectKind};
use crate::pbf::block::dense::RawNode;
use crate::pbf::block::limits::check_parts;
use crate::pbf::block::messages::{
    Head, NodeMessage, RawInfo, RelationMessage, WayMessage, encode_node, encode_relation,
    encode_way,
};
use crate::pbf::block::object::{Object, ObjectBody, put_deltas, raw_location};
use crate::pbf::block::outline::BlockUnits;
use crate::pbf::block::raw_element::{RawElement, RawForm};
use crate::pbf::wire::schema::{primitive_block, primitive_group};
use crate::pbf::wire::{Packed, Varints, put_bytes_field, put_varint, put_varint_field};
use std::ops::Range;

/// The number of objects in a full block. Nearly all programs write blocks of this size.
pub const TARGET_ELEMENTS: usize = 8000;
/// The estimated payload length in bytes at which a block is full, regardless of its number of objects.
pub const TARGET_PAYLOAD: usize = 4 * 1024 * 1024;

/// An encoder of objects as PrimitiveBlocks. When [`must_finish_before`](Self::must_finish_before) returns `true`, the
/// caller must end the block with [`finish`](Self::finish) before it adds the next object.
#[derive(Debug, Default)]
pub struct BlockEncoder {
    units: BlockUnits,
    kind: Option<ObjectKind>,
    drop_locations: bool,
    plain_nodes: bool,
    /// The maximum number of objects per block; 0 for [`TARGET_ELEMENTS`].
    most: usize,
    interner: Interner,
    objects: Vec<PendingObject>,
    lats: Vec<i64>,
    lons: Vec<i64>,
    /// The provisional string ids of all tags; keys and values alternate.
    tags: Vec<u32>,
    /// The provisional string ids of the roles of all members.
    roles: Vec<u32>,
    /// The packed runs of all ways (refs, latitudes, longitudes) and relations (ids and kinds of members).
    runs: Vec<u8>,
}

/// An object of the block. Its string ids are provisional (see [`Interner`]), and its ranges refer to vectors of the
/// encoder.
#[derive(Debug)]
struct PendingObject {
    id: i64,
    info: RawInfo,
    tags: Range<usize>,
    roles: Range<usize>,
    runs: [Range<usize>; 3],
}

impl BlockEncoder {
    /// Returns the number of objects in the block so far.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether the block has no objects yet.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the estimated length of the payload in bytes.
    fn payload_estimate(&self) -> usize {
        let ids = self.objects.len() * 24 + self.tags.len() * 2 + self.roles.len() * 2;
        ids + self.runs.len() + self.interner.text_len()
    }

    /// Whether the block must be finished before an object of `kind` is added. This is the case if the block is full,
    /// or has objects of another kind.
    pub fn must_finish_before(&self, kind: ObjectKind) -> bool {
        !self.is_empty()
            && (self.kind != Some(kind)
                || self.len() >= self.max_objects()
                || self.payload_estimate() >= TARGET_PAYLOAD)
    }

    /// Whether objects of a block with `units` can be added without converting them.
    pub(crate) fn accepts_units(&self, units: &BlockUnits) -> bool {
        self.is_empty() || self.units == *units
    }

    /// Sets the maximum number of objects per block; 0 for [`TARGET_ELEMENTS`].
    pub(crate) const fn set_max_objects(&mut self, most: usize) {
        self.most = most;
    }

    /// Returns the maximum number of objects per block.
    const fn max_objects(&self) -> usize {
        match self.most {
            0 => TARGET_ELEMENTS,
            most => most,
        }
    }

    /// Omits the coordinates of all ways that are added from now on.
    pub(crate) fn drop_locations(&mut self) {
        self.drop_locations = true;
    }

    /// Writes each node as a message of its own, instead of in DenseNodes.
    pub(crate) fn write_plain_nodes(&mut self) {
        self.plain_nodes = true;
    }

    /// Sets the units of the block, which must be empty.
    pub(crate) fn set_units(&mut self, units: &BlockUnits) {
        debug_assert!(self.is_empty());
        self.units = *units;
    }

    /// Adds an object. A block without objects gets the default units. The locations of a way are written only if there
    /// is one for each node. Fails if the units cannot express a time or location exactly.
    pub fn add(&mut self, object: &Object<'_>) -> Result<(), FormatError> {
        if self.is_empty() {
            self.units = BlockUnits::default();
        }
        let user_sid = self.interner.add_or_empty(object.info.user.unwrap_or(""));
        let inexact =
            || FormatError::with(format!("{} {}: inexact units", object.kind(), object.id));
        let info = object.raw_info(&self.units, user_sid).ok_or_else(inexact)?;
        let tags_start = self.tags.len();
        for (key, value) in &object.tags {
            self.tags.push(self.interner.add(key));
            self.tags.push(self.interner.add(value));
        }
        let mut pending = self.begin_object(object.kind(), object.id, info, tags_start);
        match &object.body {
            ObjectBody::Node { location } => {
                let (lat, lon) = raw_location(&self.units, *location).ok_or_else(inexact)?;
                self.lats.push(lat);
                self.lons.push(lon);
            }
            ObjectBody::Way { refs, locations } => {
                let located = !self.drop_locations && locations.len() == refs.len();
                let locations: &[_] = if located { locations } else { &[] };
                let raw = |location: &Option<Location>| raw_location(&self.units, *location);
                let raw: Option<Vec<_>> = locations.iter().map(raw).collect();
                let raw = raw.ok_or_else(inexact)?;
                let (lats, lons) = (raw.iter().map(|at| at.0), raw.iter().map(|at| at.1));
                pending.runs = [
                    self.add_run(|run| put_deltas(run, refs.iter().copied())),
                    self.add_run(|run| put_deltas(run, lats)),
                    self.add_run(|run| put_deltas(run, lons)),
                ];
            }
            ObjectBody::Relation { members } => {
                for member in members {
                    self.roles.push(self.interner.add_or_empty(member.role));
                }
                pending.roles.end = self.roles.len();
                let ids = members.iter().map(|member| member.id);
                pending.runs[0] = self.add_run(|run| put_deltas(run, ids));
                let kinds = members.iter().map(|member| member.kind.number());
                pending.runs[1] = self.add_run(|run| run.extend(kinds));
            }
        }
        self.objects.push(pending);
        Ok(())
    }

    /// Sets the kind of the block, and returns an object without roles and runs. The tags of the object are those from
    /// `tags_start` on.
    fn begin_object(
        &mut self,
        kind: ObjectKind,
        id: i64,
        info: RawInfo,
        tags_start: usize,
    ) -> PendingObject {
        self.kind = Some(kind);
        let (roles, runs) = (self.roles.len(), self.runs.len());
        PendingObject {
            id,
            info,
            tags: tags_start..self.tags.len(),
            roles: roles..roles,
            runs: [runs..runs, runs..runs, runs..runs],
        }
    }

    /// Appends the run that `write` encodes to `runs`, and returns its range.
    fn add_run(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
        let start = self.runs.len();
        write(&mut self.runs);
        start..self.runs.len()
    }

    fn push_node(&mut self, id: i64, info: RawInfo, tags_start: usize, (lat, lon): (i64, i64)) {
        let pending = self.begin_object(ObjectKind::Node, id, info, tags_start);
        self.lats.push(lat);
        self.lons.push(lon);
        self.objects.push(pending);
    }

    /// Adds an object of another block. The other block must have the same units as this block. `source` has its
    /// strings.
    pub(crate) fn add_raw(
        &mut self,
        object: &RawElement<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        let tagged = object.tagged;
        match (object.form, object.key.0) {
            (RawForm::Dense(mut node), _) => {
                if !tagged {
                    node.keys_vals = &[];
                }
                self.add_raw_node(&node, source)
            }
            (RawForm::Message(bytes), ObjectKind::Node) => {
                let mut node = NodeMessage::parse(bytes)?;
                clear_tags_if_untagged(tagged, &mut node.keys, &mut node.values);
                self.add_node_message(&node, source)
            }
            (RawForm::Message(bytes), ObjectKind::Way) => {
                let mut way = WayMessage::parse(bytes)?;
                clear_tags_if_untagged(tagged, &mut way.keys, &mut way.values);
                self.add_way_message(&way, source)
            }
            (RawForm::Message(bytes), ObjectKind::Relation) => {
                let mut relation = RelationMessage::parse(bytes)?;
                clear_tags_if_untagged(tagged, &mut relation.keys, &mut relation.values);
                self.add_relation_message(&relation, source)
            }
        }
    }

    /// Adds a dense node of another block. The other block must have the same units as this block. `source` has its
    /// strings.
    pub(crate) fn add_raw_node(
        &mut self,
        node: &RawNode<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        check_parts(node.keys_vals, 2, "tags", ObjectKind::Node, node.id)?;
        let tags_start = self.tags.len();
        let mut ids = Varints::new(node.keys_vals);
        while !ids.is_done() {
            self.tags.push(source.id(ids.read()?, &mut self.interner)?);
        }
        let info = self.copy_info(node.info, source)?;
        self.push_node(node.id, info, tags_start, (node.lat, node.lon));
        Ok(())
    }

    /// Adds a node of another block that is stored as a message of its own. The other block must have the same units as
    /// this block. `source` has its strings.
    pub(crate) fn add_node_message(
        &mut self,
        node: &NodeMessage<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        node.check_size()?;
        let tags_start = self.copy_tags(&node.keys, &node.values, source)?;
        let info = self.copy_info(node.info, source)?;
        self.push_node(node.id, info, tags_start, (node.lat, node.lon));
        Ok(())
    }

    /// Adds a way of another block. The other block must have the same units as this block. `source` has its strings.
    pub(crate) fn add_way_message(
        &mut self,
        way: &WayMessage<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        way.check_refs()?;
        way.check_size()?;
        let tags_start = self.copy_tags(&way.keys, &way.values, source)?;
        let info = RawInfo::parse_optional(way.info)?;
        let info = self.copy_info(info, source)?;
        let mut pending = self.begin_object(ObjectKind::Way, way.id, info, tags_start);
        let [lats, lons] = if self.drop_locations {
            [&[] as &[u8]; 2]
        } else {
            [way.lats.as_bytes(), way.lons.as_bytes()]
        };
        let runs = [way.refs.as_bytes(), lats, lons];
        pending.runs = runs.map(|run| self.add_run(|runs| runs.extend_from_slice(run)));
        self.objects.push(pending);
        Ok(())
    }

    /// Adds a relation of another block. The other block must have the same units as this block. `source` has its
    /// strings.
    pub(crate) fn add_relation_message(
        &mut self,
        relation: &RelationMessage<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        relation.check_members(usize::MAX)?;
        relation.check_size()?;
        let tags_start = self.copy_tags(&relation.keys, &relation.values, source)?;
        let info = RawInfo::parse_optional(relation.info)?;
        let info = self.copy_info(info, source)?;
        let mut pending = self.begin_object(ObjectKind::Relation, relation.id, info, tags_start);
        let mut roles = relation.roles.values();
        while !roles.is_done() {
            let role = source.id_or_empty(roles.read()?, &mut self.interner)?;
            self.roles.push(role);
        }
        pending.roles.end = self.roles.len();
        let runs = [&relation.member_ids, &relation.member_kinds];
        for (place, run) in pending.runs.iter_mut().zip(runs) {
            *place = self.add_run(|runs| runs.extend_from_slice(run.as_bytes()));
        }
        self.objects.push(pending);
        Ok(())
    }

    /// Appends the tags of a message to `tags`, and returns the index in `tags` of the first one.
    fn copy_tags(
        &mut self,
        keys: &Packed<'_>,
        values: &Packed<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<usize> {
        let start = self.tags.len();
        let (mut key_ids, mut value_ids) = (keys.values(), values.values());
        while !key_ids.is_done() {
            self.tags
                .push(source.id(key_ids.read()?, &mut self.interner)?);
            self.tags
                .push(source.id(value_ids.read()?, &mut self.interner)?);
        }
        if value_ids.is_done() {
            Ok(start)
        } else {
            Err(FormatError::new("the numbers of keys and values differ"))
        }
    }

    /// Returns `info` with another string id of the user: the provisional id in this block instead of the id in
    /// `source`.
    fn copy_info(
        &mut self,
        info: RawInfo,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<RawInfo> {
        let user_sid = match info.user_sid {
            Some(id) => Some(source.id_or_empty(u64::from(id), &mut self.interner)?),
            None => None,
        };
        Ok(RawInfo {
            user_sid: user_sid.filter(|id| *id > 0),
            ..info
        })
    }

    /// Appends the payload of the block to `out` and begins a new block.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.finish_with_title(&[], out);
    }

    /// Appends the payload as [`finish`](Self::finish) does. The string table begins with the empty string and the
    /// strings in `title`. The strings of the objects follow.
    pub(in crate::pbf) fn finish_with_title(&mut self, title: &[&str], out: &mut Vec<u8>) {
        let mut table = Vec::with_capacity(self.interner.text_len() * 2);
        let final_ids = self.interner.finish(title, &mut table);
        let to_final = |id: &mut u32| *id = final_ids[*id as usize];
        self.tags.iter_mut().for_each(to_final);
        self.roles.iter_mut().for_each(to_final);
        let infos = self.objects.iter_mut().map(|object| &mut object.info);
        infos
            .filter_map(|info| info.user_sid.as_mut())
            .for_each(to_final);
        put_bytes_field(out, primitive_block::STRINGTABLE, &table);
        if self.kind == Some(ObjectKind::Node) && !self.plain_nodes {
            self.encode_dense_columns().put_group(out);
        } else {
            let mut group = Vec::with_capacity(self.runs.len() + self.objects.len() * 24);
            if let Some(kind) = self.kind {
                self.encode_messages(kind, &mut group);
            }
            put_bytes_field(out, primitive_block::PRIMITIVEGROUP, &group);
        }
        put_units(out, &self.units);
        self.clear();
    }

    fn clear(&mut self) {
        self.kind = None;
        self.objects.clear();
        self.lats.clear();
        self.lons.clear();
        self.tags.clear();
        self.roles.clear();
        self.runs.clear();
    }

    /// Encodes each object as a message of its own. All objects must be of the given kind.
    fn encode_messages(&self, kind: ObjectKind, group: &mut Vec<u8>) {
        let (mut message, mut scratch) = (Vec::new(), Vec::new());
        for (index, object) in self.objects.iter().enumerate() {
            let head = Head {
                id: object.id,
                tags: &self.tags[object.tags.clone()],
                info: object.info,
            };
            let runs = object.runs.clone().map(|range| &self.runs[range]);
            message.clear();
            let number = match kind {
                ObjectKind::Node => {
                    let location = [self.lats[index], self.lons[index]];
                    encode_node(&mut message, &mut scratch, &head, location);
                    primitive_group::NODES
                }
                ObjectKind::Way => {
                    encode_way(&mut message, &mut scratch, &head, runs);
                    primitive_group::WAYS
                }
                ObjectKind::Relation => {
                    let roles = &self.roles[object.roles.clone()];
                    encode_relation(&mut message, &mut scratch, &head, roles, [runs[0], runs[1]]);
                    primitive_group::RELATIONS
                }
            };
            put_bytes_field(group, number, &message);
        }
    }

    /// Encodes the objects, which must be nodes, as columns.
    fn encode_dense_columns(&self) -> DenseColumns {
        let mut columns = DenseColumns::default();
        put_deltas(
            &mut columns.ids,
            self.objects.iter().map(|object| object.id),
        );
        put_deltas(&mut columns.lats, self.lats.iter().copied());
        put_deltas(&mut columns.lons, self.lons.iter().copied());
        // The column of tags is written even if no node has tags. Without the column, some readers lose the nodes.
        for object in &self.objects {
            for &id in &self.tags[object.tags.clone()] {
                put_varint(&mut columns.keys_vals, u64::from(id));
            }
            columns.keys_vals.push(0);
        }
        let infos = || self.objects.iter().map(|object| &object.info);
        let differs = |column: &InfoColumn| {
            infos().any(|info| column.value(info) != column.value_if_missing())
        };
        let needed: Vec<_> = InfoColumn::ALL.into_iter().filter(differs).collect();
        for column in InfoColumn::written_columns(&needed) {
            column.encode(infos().map(|info| column.value(info)), columns.info(column));
        }
        columns
    }
}

/// Appends the fields of those units that differ from the default.
fn put_units(out: &mut Vec<u8>, units: &BlockUnits) {
    let default = BlockUnits::default();
    let mut put = |number: u32, value: i64, default: i64| {
        if value != default {
            put_varint_field(out, number, value as u64);
        }
    };
    let BlockUnits {
        granularity,
        date_granularity,
        lat_offset,
        lon_offset,
    } = *units;
    put(
        primitive_block::GRANULARITY,
        granularity,
        default.granularity,
    );
    put(
        primitive_block::DATE_GRANULARITY,
        date_granularity,
        default.date_granularity,
    );
    put(primitive_block::LAT_OFFSET, lat_offset, default.lat_offset);
    put(primitive_block::LON_OFFSET, lon_offset, default.lon_offset);
}

/// Removes the keys and values unless `tagged` is set.
fn clear_tags_if_untagged(tagged: bool, keys: &mut Packed<'_>, values: &mut Packed<'_>) {
    if !tagged {
        (*keys, *values) = (Packed::default(), Packed::default());
    }
}
