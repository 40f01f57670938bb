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
    /// The ids of the objects. The other columns have an element for each object, too.
    ids: Vec<i64>,
    /// The metadata. The string ids of users are provisional.
    infos: Vec<RawInfo>,
    /// The end in `tags` of each object's tags (exclusive).
    tag_ends: Vec<usize>,
    /// The end in `roles` of each relation's roles (exclusive). Empty for nodes and ways.
    role_ends: Vec<usize>,
    /// The ends in `runs` of the packed runs of each way or relation (exclusive). Empty for nodes.
    run_ends: Vec<[usize; 3]>,
    lats: Vec<i64>,
    lons: Vec<i64>,
    /// The provisional string ids of all tags; keys and values alternate.
    tags: Vec<u32>,
    /// The provisional string ids of the roles of all members.
    roles: Vec<u32>,
    /// The packed runs of all ways (refs, latitudes, longitudes) and relations (ids and kinds of members).
    runs: Vec<u8>,
}

impl BlockEncoder {
    /// Returns the number of objects in the block so far.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the block has no objects yet.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the estimated length of the payload in bytes.
    fn payload_estimate(&self) -> usize {
        let ids = self.ids.len() * 24 + self.tags.len() * 2 + self.roles.len() * 2;
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
        self.discard_unfinished_object();
        let user_sid = self.interner.add_or_empty(object.info.user.unwrap_or(""));
        let inexact =
            || FormatError::with(format!("{} {}: inexact units", object.kind(), object.id));
        let info = object.raw_info(&self.units, user_sid).ok_or_else(inexact)?;
        for (key, value) in &object.tags {
            self.tags.push(self.interner.add(key));
            self.tags.push(self.interner.add(value));
        }
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
                let ends = [
                    self.add_run(|run| put_deltas(run, refs.iter().copied())),
                    self.add_run(|run| put_deltas(run, lats)),
                    self.add_run(|run| put_deltas(run, lons)),
                ];
                self.run_ends.push(ends);
            }
            ObjectBody::Relation { members } => {
                for member in members {
                    self.roles.push(self.interner.add_or_empty(member.role));
                }
                let ids = members.iter().map(|member| member.id);
                let ids_end = self.add_run(|run| put_deltas(run, ids));
                let kinds = members.iter().map(|member| member.kind.number());
                let kinds_end = self.add_run(|run| run.extend(kinds));
                self.role_ends.push(self.roles.len());
                self.run_ends.push([ids_end, kinds_end, kinds_end]);
            }
        }
        self.push_object(object.kind(), object.id, info);
        Ok(())
    }

    /// Removes the parts of an object that could not be added.
    fn discard_unfinished_object(&mut self) {
        self.tags
            .truncate(self.tag_ends.last().copied().unwrap_or(0));
        self.roles
            .truncate(self.role_ends.last().copied().unwrap_or(0));
        let runs_end = self.run_ends.last().map_or(0, |[.., end]| *end);
        self.runs.truncate(runs_end);
    }

    /// Adds an object whose other parts have been added already.
    fn push_object(&mut self, kind: ObjectKind, id: i64, info: RawInfo) {
        self.kind = Some(kind);
        self.ids.push(id);
        self.infos.push(info);
        self.tag_ends.push(self.tags.len());
    }

    /// Appends the run that `write` encodes to `runs`, and returns its end.
    fn add_run(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        write(&mut self.runs);
        self.runs.len()
    }

    /// Adds a node whose tags have been added already.
    fn push_node(&mut self, id: i64, info: RawInfo, (lat, lon): (i64, i64)) {
        self.lats.push(lat);
        self.lons.push(lon);
        self.push_object(ObjectKind::Node, id, info);
    }

    /// Adds an object of another block. The other block must have the same units as this block. `source` has its
    /// strings.
    pub(crate) fn add_raw(
        &mut self,
        object: &RawElement<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        self.discard_unfinished_object();
        let tagged = object.tagged;
        match (&object.form, object.key.0) {
            (RawForm::Dense(node), _) => {
                let keys_vals = if tagged { node.keys_vals } else { &[] };
                self.add_dense_node(node, keys_vals, source)
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

    /// Adds a dense node of another block, but with the tags in `keys_vals`.
    fn add_dense_node(
        &mut self,
        node: &RawNode<'_>,
        keys_vals: &[u8],
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        check_parts(keys_vals, 2, "tags", ObjectKind::Node, node.id)?;
        let mut ids = Varints::new(keys_vals);
        while !ids.is_done() {
            self.tags.push(source.id(ids.read()?, &mut self.interner)?);
        }
        let info = self.copy_info(node.info, source)?;
        self.push_node(node.id, info, (node.lat, node.lon));
        Ok(())
    }

    /// Adds a node of another block that is stored as a message of its own.
    fn add_node_message(
        &mut self,
        node: &NodeMessage<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        node.check_size()?;
        self.copy_tags(&node.keys, &node.values, source)?;
        let info = self.copy_info(node.info, source)?;
        self.push_node(node.id, info, (node.lat, node.lon));
        Ok(())
    }

    /// Adds a way of another block.
    fn add_way_message(
        &mut self,
        way: &WayMessage<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        way.check_refs()?;
        way.check_size()?;
        self.copy_tags(&way.keys, &way.values, source)?;
        let info = RawInfo::parse_optional(way.info)?;
        let info = self.copy_info(info, source)?;
        let [lats, lons] = if self.drop_locations {
            [&[] as &[u8]; 2]
        } else {
            [way.lats.as_bytes(), way.lons.as_bytes()]
        };
        let runs = [way.refs.as_bytes(), lats, lons];
        let ends = runs.map(|run| self.add_run(|runs| runs.extend_from_slice(run)));
        self.run_ends.push(ends);
        self.push_object(ObjectKind::Way, way.id, info);
        Ok(())
    }

    /// Adds a relation of another block.
    fn add_relation_message(
        &mut self,
        relation: &RelationMessage<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        relation.check_members(usize::MAX)?;
        relation.check_size()?;
        self.copy_tags(&relation.keys, &relation.values, source)?;
        let info = RawInfo::parse_optional(relation.info)?;
        let info = self.copy_info(info, source)?;
        let mut roles = relation.roles.values();
        while !roles.is_done() {
            let role = source.id_or_empty(roles.read()?, &mut self.interner)?;
            self.roles.push(role);
        }
        let runs = [&relation.member_ids, &relation.member_kinds];
        let [ids_end, kinds_end] =
            runs.map(|run| self.add_run(|runs| runs.extend_from_slice(run.as_bytes())));
        self.role_ends.push(self.roles.len());
        self.run_ends.push([ids_end, kinds_end, kinds_end]);
        self.push_object(ObjectKind::Relation, relation.id, info);
        Ok(())
    }

    /// Appends the tags of a message to `tags`.
    fn copy_tags(
        &mut self,
        keys: &Packed<'_>,
        values: &Packed<'_>,
        source: &mut SourceStrings<'_>,
    ) -> FormatResult<()> {
        let (mut key_ids, mut value_ids) = (keys.values(), values.values());
        while !key_ids.is_done() {
            self.tags
                .push(source.id(key_ids.read()?, &mut self.interner)?);
            self.tags
                .push(source.id(value_ids.read()?, &mut self.interner)?);
        }
        if value_ids.is_done() {
            Ok(())
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
        let infos = self.infos.iter_mut();
        infos
            .filter_map(|info| info.user_sid.as_mut())
            .for_each(to_final);
        put_bytes_field(out, primitive_block::STRINGTABLE, &table);
        if self.kind == Some(ObjectKind::Node) && !self.plain_nodes {
            self.encode_dense_columns().put_group(out);
        } else {
            let mut group = Vec::with_capacity(self.runs.len() + self.ids.len() * 24);
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
        self.ids.clear();
        self.infos.clear();
        self.tag_ends.clear();
        self.role_ends.clear();
        self.run_ends.clear();
        self.lats.clear();
        self.lons.clear();
        self.tags.clear();
        self.roles.clear();
        self.runs.clear();
    }

    /// Encodes each object as a message of its own. All objects must be of the given kind.
    fn encode_messages(&self, kind: ObjectKind, group: &mut Vec<u8>) {
        let (mut message, mut scratch) = (Vec::new(), Vec::new());
        let (mut tags_start, mut roles_start, mut runs_start) = (0, 0, 0);
        for (index, (id, info)) in self.ids.iter().zip(&self.infos).enumerate() {
            let tags_end = self.tag_ends[index];
            let head = Head {
                id: *id,
                tags: &self.tags[tags_start..tags_end],
                info: *info,
            };
            tags_start = tags_end;
            // Nodes have no runs.
            let ends = match kind {
                ObjectKind::Node => [0; 3],
                ObjectKind::Way | ObjectKind::Relation => self.run_ends[index],
            };
            let runs = [runs_start..ends[0], ends[0]..ends[1], ends[1]..ends[2]];
            let runs = runs.map(|range| &self.runs[range]);
            runs_start = ends[2];
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
                    let roles = &self.roles[roles_start..self.role_ends[index]];
                    roles_start = self.role_ends[index];
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
        put_deltas(&mut columns.ids, self.ids.iter().copied());
        put_deltas(&mut columns.lats, self.lats.iter().copied());
        put_deltas(&mut columns.lons, self.lons.iter().copied());
        // The column of tags is written even if no node has tags. Without the column, some readers lose the nodes.
        let mut start = 0;
        for end in &self.tag_ends {
            for &id in &self.tags[start..*end] {
                put_varint(&mut columns.keys_vals, u64::from(id));
            }
            start = *end;
            columns.keys_vals.push(0);
        }
        let infos = || self.infos.iter();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::block::parsed::Block;

    #[test]
    fn an_object_that_cannot_be_added_leaves_nothing() {
        let mut encoder = BlockEncoder::default();
        encoder.add(&Object::node(1, None, &[])).unwrap();
        // The location cannot be expressed in these units.
        encoder.units.granularity = 1_000_000;
        let location = Location::new(1, 1);
        let tagged = Object::node(2, location, &[("key", "value")]);
        assert!(encoder.add(&tagged).is_err());
        encoder.units = BlockUnits::default();
        let last = Object::node(3, location, &[("other", "value")]);
        encoder.add(&last).unwrap();
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        let block = Block::parse(&payload).unwrap();
        let objects = block.objects().unwrap();
        assert_eq!(objects, [Object::node(1, None, &[]), last]);
    }
}
