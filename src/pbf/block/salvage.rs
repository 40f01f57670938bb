//! Reads those objects of a damaged block that can still be read.

use super::delta::Delta;
use super::dense::{DenseNodes, RawNode};
use super::element::{Info, Member};
use super::limits::check_parts;
use super::list::List;
use super::messages::{NodeMessage, RawInfo, RelationMessage, WayMessage};
use super::object::{Object, ObjectBody, nearest_location};
use super::outline::{BlockUnits, Message, StringTable, check_string_count};
use super::string_faults::{is_forbidden_in_xml, is_inexpressible_in_xml};
use crate::error::{FormatError, FormatResult};
use crate::osm::{Location, ObjectKind, retain_unique};
use crate::pbf::wire::schema::{primitive_block, string_table};
use crate::pbf::wire::{Fields, Packed, Varints};
use serde::Serialize;
use std::borrow::Cow;

/// The treatment of invalid strings. A string is invalid if it is not UTF-8, or if it has a character that XML 1.0 does
/// not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvalidUtf8 {
    /// Bytes that are not UTF-8, and characters that XML does not allow, become U+FFFD.
    #[default]
    Replace,
    /// The tag, role or user name is left out.
    Drop,
}

/// The result of reading a damaged block. It has the numbers of objects that were read or lost, and the numbers of
/// parts of objects that were left out or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Salvage {
    /// The number of objects that were read.
    pub objects: u64,
    /// The number of objects that cannot be read.
    pub unreadable: u64,
    /// Whether there are further objects that cannot be read. Their number is not known.
    pub more_unreadable: bool,
    /// The number of nodes that were left out because their coordinates are outside of the world.
    pub outside: u64,
    /// The number of damaged parts of objects that were left out, entirely or partly: tags, roles, user names, lists of
    /// locations, and metadata. This includes tags without a key, tags with the same key as an earlier tag of the
    /// object, and versions and changesets that other programs refuse.
    pub parts_dropped: u64,
    /// The number of tags, roles and user names with parts that were replaced by U+FFFD. The replaced parts are bytes
    /// that are not UTF-8, and characters that XML 1.0 does not allow.
    pub texts_replaced: u64,
}

impl Salvage {
    /// Adds the numbers of another block.
    pub(crate) fn add(&mut self, other: &Self) {
        self.objects += other.objects;
        self.unreadable += other.unreadable;
        self.more_unreadable |= other.more_unreadable;
        self.outside += other.outside;
        self.parts_dropped += other.parts_dropped;
        self.texts_replaced += other.texts_replaced;
    }

    /// Whether something was left out or changed.
    pub(crate) const fn is_lossy(&self) -> bool {
        self.unreadable + self.outside + self.parts_dropped + self.texts_replaced > 0
            || self.more_unreadable
    }
}

/// The string table of a damaged block.
struct Strings<'a> {
    /// The strings; `None` for those that are left out.
    texts: Vec<Option<Cow<'a, str>>>,
}

impl<'a> Strings<'a> {
    /// Reads the strings up to the first damage of the table.
    fn read(message: &'a [u8], invalid: InvalidUtf8) -> Self {
        let (mut texts, mut fields) = (Vec::new(), Fields::new(message));
        while let Ok(Some(field)) = fields.next() {
            if field.number != string_table::S {
                continue;
            }
            let Ok(bytes) = field.bytes() else { break };
            let text = match String::from_utf8_lossy(bytes) {
                text if is_inexpressible_in_xml(&text) => {
                    Cow::Owned(text.replace(is_forbidden_in_xml, "\u{fffd}"))
                }
                text => text,
            };
            let is_dropped = matches!(text, Cow::Owned(_)) && invalid == InvalidUtf8::Drop;
            texts.push((!is_dropped).then_some(text));
            if check_string_count(texts.len()).is_err() {
                break;
            }
        }
        Self { texts }
    }
}

/// A reader of the objects of a damaged block.
struct Reader<'s> {
    strings: &'s Strings<'s>,
    units: BlockUnits,
    found: Salvage,
}

/// Calls `take` with each readable object of the block in `payload`, in order. If `take` fails, the object counts as
/// unreadable.
pub(crate) fn salvage(
    payload: &[u8],
    invalid: InvalidUtf8,
    mut take: impl FnMut(&Object<'_>) -> FormatResult<()>,
) -> Salvage {
    let (mut table, mut groups, mut units) = (None, Vec::new(), BlockUnits::default());
    let (mut fields, mut is_cut) = (Fields::new(payload), false);
    loop {
        let field = match fields.next() {
            Ok(Some(field)) => field,
            Ok(None) => break,
            Err(_) => {
                is_cut = true;
                break;
            }
        };
        let read = match field.number {
            primitive_block::STRINGTABLE if table.is_none() => {
                field.bytes().map(|bytes| table = Some(bytes))
            }
            primitive_block::PRIMITIVEGROUP => field.bytes().map(|bytes| groups.push(bytes)),
            number => units.read_field(number, &field),
        };
        is_cut |= read.is_err();
    }
    let strings = Strings::read(table.unwrap_or_default(), invalid);
    let mut reader = Reader {
        strings: &strings,
        units,
        found: Salvage {
            more_unreadable: is_cut,
            ..Salvage::default()
        },
    };
    for group in groups {
        reader.read_group(group, &mut take);
    }
    reader.found
}

type Take<'t> = dyn FnMut(&Object<'_>) -> FormatResult<()> + 't;

impl<'s> Reader<'s> {
    fn read_group(&mut self, group: &[u8], take: &mut Take<'_>) {
        let mut fields = Fields::new(group);
        loop {
            let message = match fields.next() {
                Ok(None) => return,
                Ok(Some(field)) => Message::from_field(&field),
                Err(error) => Err(error),
            };
            let Ok(message) = message else {
                self.found.more_unreadable = true;
                return;
            };
            let object = match message {
                Message::Dense(bytes) => {
                    self.read_dense(bytes, take);
                    continue;
                }
                Message::Node(bytes) => self.read_node(bytes),
                Message::Way(bytes) => self.read_way(bytes).map(Some),
                Message::Relation(bytes) => self.read_relation(bytes).map(Some),
                Message::Other => continue,
            };
            match object {
                Ok(object) => self.emit_object(object, take),
                Err(_) => self.found.unreadable += 1,
            }
        }
    }

    /// Passes an object to `take`, and counts it. `object` is `None` for a node outside of the world. Such a node is
    /// only counted.
    fn emit_object(&mut self, object: Option<Object<'s>>, take: &mut Take<'_>) {
        match object.map(|object| take(&object)) {
            None => self.found.outside += 1,
            Some(Ok(())) => self.found.objects += 1,
            Some(Err(_)) => self.found.unreadable += 1,
        }
    }

    fn read_dense(&mut self, message: &[u8], take: &mut Take<'_>) {
        let Ok((dense, left_out, lengths)) = DenseNodes::parse_without_damaged_columns(message)
        else {
            self.found.more_unreadable = true;
            return;
        };
        let count = dense.len() as u64;
        if lengths.is_err() {
            // The coordinates cannot be assigned to the ids.
            self.found.unreadable += count;
            return;
        }
        self.found.parts_dropped += if left_out { count } else { 0 };
        let (mut nodes, mut done) = (dense.raw_nodes(), 0);
        loop {
            match nodes.next() {
                Ok(Some(node)) => {
                    done += 1;
                    match check_parts(node.keys_vals, 2, "tags", ObjectKind::Node, node.id) {
                        Ok(()) => {
                            let object = self.read_dense_node(&node);
                            self.emit_object(object, take);
                        }
                        Err(_) => self.found.unreadable += 1,
                    }
                }
                Ok(None) => return,
                Err(_) => {
                    // Columns are delta coded, so the values after a damaged one are not known.
                    let left = dense.len() - done;
                    self.found.unreadable += left as u64;
                    self.found.parts_dropped += u64::from(left == 0);
                    return;
                }
            }
        }
    }

    fn read_dense_node(&mut self, node: &RawNode<'_>) -> Option<Object<'s>> {
        let (mut run, mut tags) = (Varints::new(node.keys_vals), Vec::new());
        while let (Ok(key), Ok(value)) = (run.read(), run.read()) {
            self.add_tag(key, value, &mut tags);
        }
        self.found.parts_dropped += retain_unique(&mut tags);
        self.node_within_world(node.id, (node.lat, node.lon), node.info, tags)
    }

    fn read_node(&mut self, message: &[u8]) -> FormatResult<Option<Object<'s>>> {
        let node = NodeMessage::parse(message)?;
        node.check_size()?;
        let tags = self.read_tags(&node.keys, &node.values);
        Ok(self.node_within_world(node.id, (node.lat, node.lon), node.info, tags))
    }

    /// Returns a node; `None` if the node is visible and outside of the world.
    fn node_within_world(
        &mut self,
        id: i64,
        (lat, lon): (i64, i64),
        info: RawInfo,
        tags: Vec<(&'s str, &'s str)>,
    ) -> Option<Object<'s>> {
        let info = self.resolve_info(info);
        if info.visible && self.units.is_outside_world(lat, lon) {
            return None;
        }
        let location = nearest_location(&self.units, lat, lon).filter(|_| info.visible);
        Some(Object::node(id, location, tags).with_info(info))
    }

    fn read_way(&mut self, message: &[u8]) -> FormatResult<Object<'s>> {
        let way = WayMessage::parse(message)?;
        way.check_size()?;
        let mut refs = Vec::new();
        Delta::new(&way.refs).append_all_to(&mut refs)?;
        let locations = match self.read_locations(&way, refs.len()) {
            Ok(locations) => locations,
            Err(_) => {
                self.found.parts_dropped += 1;
                Vec::new()
            }
        };
        let tags = self.read_tags(&way.keys, &way.values);
        let info = self.parse_info(way.info);
        let mut object = Object::way(way.id, refs, tags).with_info(info);
        if let ObjectBody::Way { locations: all, .. } = &mut object.body {
            *all = List::from(locations);
        }
        Ok(object)
    }

    /// Returns the locations that a way stores for its nodes; an empty list if it stores none. `count` is the number of
    /// nodes of the way. Fails if a location is malformed, or if the number of locations is neither 0 nor `count`.
    fn read_locations(
        &self,
        way: &WayMessage<'_>,
        count: usize,
    ) -> FormatResult<Vec<Option<Location>>> {
        let (mut lats, mut lons) = (Delta::new(&way.lats), Delta::new(&way.lons));
        let mut locations = Vec::new();
        while !lats.is_done() || !lons.is_done() {
            let (lat, lon) = (lats.read()?, lons.read()?);
            locations.push(nearest_location(&self.units, lat, lon));
        }
        if locations.is_empty() || locations.len() == count {
            Ok(locations)
        } else {
            Err(FormatError::new("a way with too few locations"))
        }
    }

    fn read_relation(&mut self, message: &[u8]) -> FormatResult<Object<'s>> {
        let relation = RelationMessage::parse(message)?;
        relation.check_size()?;
        let mut ids = Delta::new(&relation.member_ids);
        let mut kinds = relation.member_kinds.values();
        let mut roles = relation.roles.values();
        let mut members = Vec::new();
        while !ids.is_done() {
            let (id, kind, role) = (ids.read()?, kinds.read()?, roles.read()?);
            let kind = ObjectKind::from_number(kind)
                .ok_or(FormatError::new("a member of unknown kind"))?;
            let role = self.read_text(role).unwrap_or_else(|| {
                self.found.parts_dropped += 1;
                ""
            });
            members.push(Member { kind, id, role });
        }
        if !kinds.is_done() || !roles.is_done() {
            return Err(FormatError::new(
                "a relation with columns of unequal length",
            ));
        }
        let tags = self.read_tags(&relation.keys, &relation.values);
        let info = self.parse_info(relation.info);
        Ok(Object::relation(relation.id, members, tags).with_info(info))
    }

    fn parse_info(&mut self, message: Option<&[u8]>) -> Info<'s> {
        let raw = RawInfo::parse_optional(message).unwrap_or_else(|_| {
            self.found.parts_dropped += 1;
            RawInfo::default()
        });
        self.resolve_info(raw)
    }

    fn resolve_info(&mut self, mut raw: RawInfo) -> Info<'s> {
        let user = raw.user_sid.take().filter(|sid| *sid > 0);
        let user = user.and_then(|sid| {
            let user = self.read_text(sid.into());
            self.found.parts_dropped += u64::from(user.is_none());
            user
        });
        self.found.parts_dropped += u64::from(raw.clear_refused_numbers());
        let info = Info::resolve(&raw, &self.units, &StringTable::default());
        let info = info.unwrap_or_else(|_| {
            self.found.parts_dropped += 1;
            Info::EMPTY
        });
        Info { user, ..info }
    }

    /// Returns the string at `index`; `None` if there is no such string, or if it is left out.
    fn read_text(&mut self, index: u64) -> Option<&'s str> {
        let strings = self.strings;
        let text = strings.texts.get(usize::try_from(index).ok()?)?.as_ref()?;
        self.found.texts_replaced += u64::from(matches!(text, Cow::Owned(_)));
        Some(text.as_ref())
    }

    /// Adds the tag with the given string ids to `tags`. A tag without a key or with a missing string is left out.
    fn add_tag(&mut self, key: u64, value: u64, tags: &mut Vec<(&'s str, &'s str)>) {
        let replaced = self.found.texts_replaced;
        let texts = (self.read_text(key), self.read_text(value));
        match texts {
            (Some(key), Some(value)) if !key.is_empty() => {
                // A tag counts once, even if both its key and its value were replaced.
                self.found.texts_replaced = self.found.texts_replaced.min(replaced + 1);
                tags.push((key, value));
            }
            _ => {
                self.found.texts_replaced = replaced;
                self.found.parts_dropped += 1;
            }
        }
    }

    fn read_tags(&mut self, keys: &Packed<'_>, values: &Packed<'_>) -> Vec<(&'s str, &'s str)> {
        let (count, other) = (keys.count(), values.count());
        let mut tags = Vec::new();
        if count != other {
            // The values cannot be assigned to the keys.
            self.found.parts_dropped += count.max(other) as u64;
            return tags;
        }
        let (mut keys, mut values) = (keys.values(), values.values());
        while !keys.is_done() {
            match (keys.read(), values.read()) {
                (Ok(key), Ok(value)) => self.add_tag(key, value, &mut tags),
                _ => {
                    self.found.parts_dropped += 1;
                    break;
                }
            }
        }
        self.found.parts_dropped += retain_unique(&mut tags);
        tags
    }
}
