//! Node, Way, Relation and Info messages, split into fields whose values are not interpreted.
//!
//! The types of this module are for commands that edit encoded blocks without decoding the objects. The modules
//! `element` and `object` interpret the values.

use super::delta::Delta;
use super::limits::check_parts;
use crate::error::{FormatError, FormatResult};
use crate::osm::ObjectKind;
use crate::pbf::wire::schema::{info, node, object, relation, way};
use crate::pbf::wire::{FEW_SUMS, Packed, Varints};
use crate::pbf::wire::{Fields, put_packed_field, put_sint_field, put_varint, put_varint_field};

/// The metadata of an object as a block stores it. `timestamp` is in the units of the block, and `user_sid` is a string
/// id of the block. Attributes that the message does not have are 0 or `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RawInfo {
    pub version: i64,
    pub timestamp: i64,
    pub changeset: i64,
    pub uid: i64,
    /// The string id of the user. `None` if the field is absent. The object then has no user, even if string 0 of the
    /// block is not empty.
    pub user_sid: Option<u32>,
    pub visible: Option<bool>,
}

impl RawInfo {
    pub(crate) fn parse(message: &[u8]) -> FormatResult<Self> {
        let mut info = Self::default();
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("Info"))? {
            match field.number {
                info::VERSION => info.version = i64::from(field.varint()? as i32),
                info::TIMESTAMP => info.timestamp = field.varint()? as i64,
                info::CHANGESET => info.changeset = field.varint()? as i64,
                info::UID => info.uid = i64::from(field.varint()? as i32),
                info::USER_SID => info.user_sid = Some(string_id(field.varint()?)?),
                info::VISIBLE => info.visible = Some(field.varint()? != 0),
                _ => {}
            }
        }
        Ok(info)
    }

    /// Returns the metadata in the Info message of an object; the default if the object has none.
    pub(crate) fn parse_optional(message: Option<&[u8]>) -> FormatResult<Self> {
        message.map_or(Ok(Self::default()), Self::parse)
    }

    /// Returns the metadata in a Node, Way or Relation message; the default if the object has none.
    pub(super) fn of_object(message: &[u8]) -> FormatResult<Self> {
        Self::parse(ObjectOutline::parse(message)?.info)
    }

    /// Returns the version in an Info message; 0 if there is none. If the version is the first field, the other fields
    /// are not read.
    pub(crate) fn parse_version(message: &[u8]) -> FormatResult<i64> {
        match Fields::new(message).next() {
            Ok(Some(field)) if field.number == info::VERSION => {
                Ok(i64::from(field.varint()? as i32))
            }
            _ => Ok(Self::parse(message)?.version),
        }
    }

    /// Returns the version, the time, and whether the object is a deleted version.
    pub(crate) fn version_info(&self) -> VersionInfo {
        VersionInfo {
            version: self.version,
            timestamp: self.timestamp,
            is_deleted: self.visible == Some(false),
        }
    }

    /// Appends the content of the Info message. Without metadata, the content is empty. Otherwise it has the version,
    /// timestamp, changeset, uid and user, because some readers expect all five or none. `visible` is added if it is
    /// known.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if *self == Self::default() {
            return;
        }
        let values = [
            (info::VERSION, self.version),
            (info::TIMESTAMP, self.timestamp),
            (info::CHANGESET, self.changeset),
            (info::UID, self.uid),
            (info::USER_SID, i64::from(self.user_sid.unwrap_or(0))),
        ];
        for (number, value) in values {
            put_varint_field(out, number, value as u64);
        }
        if let Some(visible) = self.visible {
            put_varint_field(out, info::VISIBLE, u64::from(visible));
        }
    }
}

/// Converts a stored version to a version number. Returns `None` if the version is not positive, or does not fit into
/// 32 bits.
pub(crate) fn version_number(stored: i64) -> Option<u32> {
    u32::try_from(stored).ok().filter(|&version| version > 0)
}

/// The version and the time of an object as its block stores them, and whether the object is a deleted version. A
/// missing version or time is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct VersionInfo {
    pub version: i64,
    pub timestamp: i64,
    pub is_deleted: bool,
}

impl VersionInfo {
    /// Returns the version number; `None` if the object has none.
    pub(crate) fn version_number(self) -> Option<u32> {
        version_number(self.version)
    }
}

/// The tags of one object, as encoded string ids of keys and values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TagIds<'a> {
    /// The tags of a dense node. Keys and values alternate, and there is no closing 0.
    Dense(&'a [u8]),
    /// The Node, Way or Relation message that contains the tags.
    Message(&'a [u8]),
}

impl TagIds<'_> {
    /// Whether `test` returns `true` for at least one tag. The arguments of `test` are the string ids of the tag's key
    /// and value. Does not decode the tags after the first one for which `test` returns `true`. Fails if `test` fails.
    #[inline]
    pub(crate) fn any(
        self,
        mut test: impl FnMut(u64, u64) -> FormatResult<bool>,
    ) -> FormatResult<bool> {
        match self {
            TagIds::Dense(keys_vals) => {
                let mut run = Varints::new(keys_vals);
                while !run.is_done() {
                    if test(run.read()?, run.read()?)? {
                        return Ok(true);
                    }
                }
            }
            TagIds::Message(message) => {
                let (mut keys, mut values) = (Packed::default(), Packed::default());
                let mut fields = Fields::new(message);
                while let Some(field) = fields.next()? {
                    match field.number {
                        object::KEYS => keys.add(&field)?,
                        object::VALS => values.add(&field)?,
                        _ => {}
                    }
                }
                let (mut keys, mut values) = (keys.values(), values.values());
                while !keys.is_done() {
                    if test(keys.read()?, values.read()?)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Calls `visit` for each tag, with the string ids of its key and its value.
    pub(crate) fn for_each(self, mut visit: impl FnMut(u64, u64)) -> FormatResult<()> {
        let visited = self.any(|key, value| {
            visit(key, value);
            Ok(false)
        });
        visited.map(drop)
    }
}

/// Converts `value` to a string id. Fails if `value` does not fit into 32 bits.
pub(crate) fn string_id(value: u64) -> FormatResult<u32> {
    u32::try_from(value)
        .map_err(|_| FormatError::with(format!("string index {value} is out of range")))
}

/// The id found in a message. A message with a second id is refused, because [`object_id`] reads only the first one.
#[derive(Debug, Default)]
pub(in crate::pbf) struct OnlyId(Option<i64>);

impl OnlyId {
    #[inline]
    pub(in crate::pbf) fn set(&mut self, id: i64) -> FormatResult<()> {
        match self.0.replace(id) {
            None => Ok(()),
            Some(_) => Err(FormatError::new("an object with several ids")),
        }
    }

    #[inline]
    pub(in crate::pbf) fn get(&self) -> FormatResult<i64> {
        self.0.ok_or(FormatError::new("object without id"))
    }
}

/// A Node message.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeMessage<'a> {
    pub id: i64,
    pub keys: Packed<'a>,
    pub values: Packed<'a>,
    pub info: RawInfo,
    pub lat: i64,
    pub lon: i64,
}

impl<'a> NodeMessage<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> FormatResult<Self> {
        let (mut node, mut id) = (Self::default(), OnlyId::default());
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("Node"))? {
            match field.number {
                object::ID => id.set(field.sint()?)?,
                object::KEYS => node.keys.add(&field)?,
                object::VALS => node.values.add(&field)?,
                object::INFO => node.info = RawInfo::parse(field.bytes()?)?,
                node::LAT => node.lat = field.sint()?,
                node::LON => node.lon = field.sint()?,
                _ => {}
            }
        }
        node.id = id.get()?;
        Ok(node)
    }

    /// Fails if the node has more than [`MAX_PARTS`](super::limits::MAX_PARTS) tags.
    pub(crate) fn check_size(&self) -> FormatResult<()> {
        check_parts(self.keys.as_bytes(), 1, "tags", ObjectKind::Node, self.id)
    }
}

/// A Way message.
#[derive(Debug, Clone, Default)]
pub(crate) struct WayMessage<'a> {
    pub id: i64,
    pub keys: Packed<'a>,
    pub values: Packed<'a>,
    pub info: Option<&'a [u8]>,
    pub refs: Packed<'a>,
    pub lats: Packed<'a>,
    pub lons: Packed<'a>,
}

impl<'a> WayMessage<'a> {
    // Inlining is forced, so that the large return value is built directly in the caller. Copying the value would take
    // 4 % of the time for visiting ways.
    #[inline(always)]
    pub(crate) fn parse(message: &'a [u8]) -> FormatResult<Self> {
        let (mut way, mut id) = (Self::default(), OnlyId::default());
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("Way"))? {
            match field.number {
                object::ID => id.set(field.varint()? as i64)?,
                object::KEYS => way.keys.add(&field)?,
                object::VALS => way.values.add(&field)?,
                object::INFO => way.info = Some(field.bytes()?),
                way::REFS => way.refs.add(&field)?,
                way::LAT => way.lats.add(&field)?,
                way::LON => way.lons.add(&field)?,
                _ => {}
            }
        }
        way.id = id.get()?;
        Ok(way)
    }

    /// Fails if the way has more than [`MAX_PARTS`](super::limits::MAX_PARTS) nodes or tags.
    pub(crate) fn check_size(&self) -> FormatResult<()> {
        check_parts(self.keys.as_bytes(), 1, "tags", ObjectKind::Way, self.id)?;
        check_parts(self.refs.as_bytes(), 1, "nodes", ObjectKind::Way, self.id)
    }

    /// Fails if a varint of the refs or coordinates is malformed. Also fails if the way has coordinates, but not one
    /// latitude and one longitude for each ref.
    pub(crate) fn check_refs(&self) -> FormatResult<()> {
        for (run, name) in [
            (&self.refs, "refs"),
            (&self.lats, "lat"),
            (&self.lons, "lon"),
        ] {
            crate::pbf::wire::check_varints(run.as_bytes())
                .map_err(|error| error.within(&format!("way {}: {name}", self.id)))?;
        }
        let (lats, lons) = (self.lats.count(), self.lons.count());
        check_coordinate_counts(self.id, self.refs.count(), lats, lons)
    }
}

/// Fails if a way with `refs` refs has coordinates, but not `refs` latitudes and `refs` longitudes.
pub(super) fn check_coordinate_counts(
    id: i64,
    refs: usize,
    lats: usize,
    lons: usize,
) -> FormatResult<()> {
    if lats != lons || (lats != 0 && lats != refs) {
        return Err(FormatError::with(format!(
            "way {id}: {refs} refs but {lats} latitudes and {lons} longitudes"
        )));
    }
    Ok(())
}

/// The id, the refs and the tag keys of a Way message. Other fields are not decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct WayRefs<'a> {
    pub id: i64,
    pub refs: Packed<'a>,
    /// The string ids of the tag keys.
    pub keys: Packed<'a>,
}

impl<'a> WayRefs<'a> {
    // Inlining is forced for the same reason as in `WayMessage::parse`.
    #[inline(always)]
    pub(crate) fn parse(message: &'a [u8]) -> FormatResult<Self> {
        let (mut way, mut id) = (Self::default(), OnlyId::default());
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("Way"))? {
            match field.number {
                object::ID => id.set(field.varint()? as i64)?,
                way::REFS => way.refs.add(&field)?,
                object::KEYS => way.keys.add(&field)?,
                _ => {}
            }
        }
        way.id = id.get()?;
        Ok(way)
    }

    /// Whether the string id of any tag key is among `ids`.
    pub(crate) fn has_key_among(&self, ids: &[u64]) -> bool {
        let mut keys = self.keys.values();
        std::iter::from_fn(|| keys.read().ok()).any(|key| ids.contains(&key))
    }

    /// Fails if the way has more than [`MAX_PARTS`](super::limits::MAX_PARTS) nodes.
    #[inline]
    pub(crate) fn check_size(&self) -> FormatResult<()> {
        check_parts(self.refs.as_bytes(), 1, "nodes", ObjectKind::Way, self.id)
    }

    /// Whether `test` returns `true` for any ref. Stops at the first such ref, so a malformed ref after it is not an
    /// error.
    pub(super) fn any_ref(&self, test: impl FnMut(i64) -> bool) -> FormatResult<bool> {
        self.refs.values().any_sum(0, test)
    }
}

/// A Relation message.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelationMessage<'a> {
    pub id: i64,
    pub keys: Packed<'a>,
    pub values: Packed<'a>,
    pub info: Option<&'a [u8]>,
    pub roles: Packed<'a>,
    pub member_ids: Packed<'a>,
    pub member_kinds: Packed<'a>,
}

impl<'a> RelationMessage<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> FormatResult<Self> {
        let (mut relation, mut id) = (Self::default(), OnlyId::default());
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("Relation"))? {
            match field.number {
                object::ID => id.set(field.varint()? as i64)?,
                object::KEYS => relation.keys.add(&field)?,
                object::VALS => relation.values.add(&field)?,
                object::INFO => relation.info = Some(field.bytes()?),
                relation::ROLES_SID => relation.roles.add(&field)?,
                relation::MEMIDS => relation.member_ids.add(&field)?,
                relation::TYPES => relation.member_kinds.add(&field)?,
                _ => {}
            }
        }
        relation.id = id.get()?;
        Ok(relation)
    }

    /// Fails if the relation has more than [`MAX_PARTS`](super::limits::MAX_PARTS) members or tags.
    pub(crate) fn check_size(&self) -> FormatResult<()> {
        let (kind, id) = (ObjectKind::Relation, self.id);
        check_parts(self.keys.as_bytes(), 1, "tags", kind, id)?;
        check_parts(self.member_ids.as_bytes(), 1, "members", kind, id)
    }

    /// Fails if the numbers of roles, ids and kinds of members differ, or if an id is malformed. Also fails if a kind
    /// is unknown, or if the string id of a role is `strings` or greater. `strings` is the number of strings of the
    /// block.
    pub(crate) fn check_members(&self, strings: usize) -> FormatResult<()> {
        let count = self.count_members()?;
        crate::pbf::wire::check_varints(self.member_ids.as_bytes())?;
        let mut kinds = self.member_kinds.values();
        let mut roles = self.roles.values();
        for _ in 0..count {
            let (kind, role) = (kinds.read()?, roles.read()?);
            if kind > 2 || role >= strings as u64 {
                return Err(FormatError::with(format!(
                    "relation {}: member kind {kind} or role string {role} is out of range",
                    self.id
                )));
            }
        }
        Ok(())
    }

    /// Returns the number of members. Fails if the numbers of roles, ids and kinds differ.
    fn count_members(&self) -> FormatResult<usize> {
        let counts = [
            self.roles.count(),
            self.member_ids.count(),
            self.member_kinds.count(),
        ];
        if counts.iter().all(|count| *count == counts[0]) {
            return Ok(counts[0]);
        }
        Err(FormatError::with(format!(
            "relation {}: {} roles, {} member ids and {} member kinds",
            self.id, counts[0], counts[1], counts[2]
        )))
    }

    /// Whether `test` returns `true` for the kind and the id of any member. Fails if the columns of members differ in
    /// length, or if the kind of a tested member is unknown. Does not read the roles.
    pub(super) fn any_member(
        &self,
        mut test: impl FnMut(ObjectKind, i64) -> bool,
    ) -> FormatResult<bool> {
        self.count_members()?;
        let mut kinds = self.member_kinds.values();
        let mut next_kind = || {
            let unknown = FormatError::new("a member of unknown kind");
            ObjectKind::from_number(kinds.read()?).ok_or(unknown)
        };
        let (mut members, mut values) = (Delta::new(&self.member_ids), [0; FEW_SUMS]);
        while !members.is_done() {
            let ids = match members.read_some(&mut values) {
                Ok(ids) => ids,
                Err(error) => return next_kind().and(Err(error)),
            };
            for id in ids {
                if test(next_kind()?, *id) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Facts about a Node, Way or Relation message that are found in one pass over the fields of the message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ObjectOutline<'a> {
    /// The Info message; empty if there is none.
    pub info: &'a [u8],
    /// Whether the message has a field 9 or 10. In Way messages, these fields are coordinates; in Node and Relation
    /// messages, they have another meaning.
    pub has_locations: bool,
}

impl<'a> ObjectOutline<'a> {
    #[inline]
    pub(crate) fn parse(message: &'a [u8]) -> FormatResult<Self> {
        let mut outline = Self::default();
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            match field.number {
                object::INFO => outline.info = field.bytes()?,
                way::LAT | way::LON => outline.has_locations = true,
                _ => {}
            }
        }
        Ok(outline)
    }
}

/// Returns the id in a Node, Way or Relation message. Fields after the id are not read.
#[inline]
pub(crate) fn object_id(message: &[u8], kind: ObjectKind) -> FormatResult<i64> {
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if field.number == object::ID {
            // Only the ids of nodes are zigzag coded.
            return match kind {
                ObjectKind::Node => field.sint(),
                ObjectKind::Way | ObjectKind::Relation => field.varint().map(|id| id as i64),
            };
        }
    }
    Err(FormatError::new("object without id"))
}

/// The fields that Node, Way and Relation messages have in common.
pub(crate) struct Head<'a> {
    pub id: i64,
    /// The tags as string ids of the block that is being encoded; keys and values alternate.
    pub tags: &'a [u32],
    pub info: RawInfo,
}

impl Head<'_> {
    fn encode(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        put_varint_field(out, object::ID, self.id as u64);
        self.encode_rest(out, scratch);
    }

    /// Appends all fields except the id, which is encoded differently in nodes.
    fn encode_rest(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        for (number, skip) in [(object::KEYS, 0), (object::VALS, 1)] {
            scratch.clear();
            self.tags
                .iter()
                .skip(skip)
                .step_by(2)
                .for_each(|&id| put_varint(scratch, u64::from(id)));
            put_packed_field(out, number, scratch);
        }
        scratch.clear();
        self.info.encode(scratch);
        put_packed_field(out, object::INFO, scratch);
    }
}

/// Appends a Node message.
pub(crate) fn encode_node(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    head: &Head<'_>,
    [lat, lon]: [i64; 2],
) {
    put_sint_field(out, object::ID, head.id);
    head.encode_rest(out, scratch);
    put_sint_field(out, node::LAT, lat);
    put_sint_field(out, node::LON, lon);
}

/// Appends a Way message; `refs`, `lats` and `lons` are packed runs.
pub(crate) fn encode_way(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    head: &Head<'_>,
    [refs, lats, lons]: [&[u8]; 3],
) {
    head.encode(out, scratch);
    put_packed_field(out, way::REFS, refs);
    put_packed_field(out, way::LAT, lats);
    put_packed_field(out, way::LON, lons);
}

/// Appends a Relation message. `roles` are string ids of the block that is being encoded. `member_ids` and
/// `member_kinds` are packed runs.
pub(crate) fn encode_relation(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    head: &Head<'_>,
    roles: &[u32],
    [member_ids, member_kinds]: [&[u8]; 2],
) {
    head.encode(out, scratch);
    scratch.clear();
    roles
        .iter()
        .for_each(|&role| put_varint(scratch, u64::from(role)));
    put_packed_field(out, relation::ROLES_SID, scratch);
    put_packed_field(out, relation::MEMIDS, member_ids);
    put_packed_field(out, relation::TYPES, member_kinds);
}
