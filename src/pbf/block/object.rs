//! Objects that do not depend on a block. They have strings instead of string ids, and locations instead of coordinates
//! in the units of a block. Encoders accept objects in this form.

use super::delta::Delta;
use super::element::{Element, Info, Member};
use super::limits::check_parts;
use super::list::List;
use super::messages::{NodeMessage, RawInfo, RelationMessage, WayMessage};
use super::outline::{BlockUnits, StringTable, exact_quotient};
use super::parsed::Block;
use super::raw_element::{RawElement, RawForm};
use crate::error::{FormatError, FormatResult};
use crate::osm::{
    Location, ObjectId, ObjectKind, TypeThenId, id_from_rank, id_rank, nano_of_e7, nearest_e7,
};
use crate::pbf::wire::{Packed, Varints, put_sint};

type TagList<'a> = List<'a, (&'a str, &'a str)>;

/// A node, way or relation with strings instead of indexes into a string table, so it can be written to any block.
///
/// The strings are borrowed, and the lists are borrowed or owned. `Object::from(&element)` copies the lists of an
/// [`Element`] and borrows its strings from the block.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<'a> {
    /// The id.
    pub id: i64,
    /// The metadata; fields that are `None` are not written.
    pub info: Info<'a>,
    /// The tags as pairs of key and value.
    pub tags: List<'a, (&'a str, &'a str)>,
    /// The location of a node, the refs and locations of a way, or the members of a relation.
    pub body: ObjectBody<'a>,
}

/// The part of an [`Object`] that depends on its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectBody<'a> {
    /// The body of a node.
    Node {
        /// The location; a deleted node has none.
        location: Option<Location>,
    },
    /// The body of a way.
    Way {
        /// The ids of the nodes, in order.
        refs: List<'a, i64>,
        /// The location of each node, in the order of `refs`; empty if the way does not carry locations.
        locations: List<'a, Option<Location>>,
    },
    /// The body of a relation.
    Relation {
        /// The members, in order.
        members: List<'a, Member<'a>>,
    },
}

impl ObjectBody<'_> {
    /// Returns a body without location, refs or members.
    const fn empty(kind: ObjectKind) -> Self {
        match kind {
            ObjectKind::Node => Self::Node { location: None },
            ObjectKind::Way => Self::Way {
                refs: List::EMPTY,
                locations: List::EMPTY,
            },
            ObjectKind::Relation => Self::Relation {
                members: List::EMPTY,
            },
        }
    }

    const fn kind(&self) -> ObjectKind {
        match self {
            Self::Node { .. } => ObjectKind::Node,
            Self::Way { .. } => ObjectKind::Way,
            Self::Relation { .. } => ObjectKind::Relation,
        }
    }
}

impl<'a> Object<'a> {
    /// Creates a node without metadata.
    pub fn node(id: i64, location: Option<Location>, tags: impl Into<TagList<'a>>) -> Self {
        Self::new(id, tags.into(), ObjectBody::Node { location })
    }

    /// Creates a way without metadata and without the locations of its nodes.
    pub fn way(id: i64, refs: impl Into<List<'a, i64>>, tags: impl Into<TagList<'a>>) -> Self {
        let (refs, locations) = (refs.into(), List::EMPTY);
        Self::new(id, tags.into(), ObjectBody::Way { refs, locations })
    }

    /// Creates a relation without metadata.
    pub fn relation(
        id: i64,
        members: impl Into<List<'a, Member<'a>>>,
        tags: impl Into<TagList<'a>>,
    ) -> Self {
        let members = members.into();
        Self::new(id, tags.into(), ObjectBody::Relation { members })
    }

    /// Creates an object without metadata.
    const fn new(id: i64, tags: TagList<'a>, body: ObjectBody<'a>) -> Self {
        let info = Info::EMPTY;
        Self {
            id,
            info,
            tags,
            body,
        }
    }

    /// Returns the object with `info` as its metadata.
    #[must_use]
    pub fn with_info(self, info: Info<'a>) -> Self {
        Self { info, ..self }
    }

    /// Returns the kind of the object.
    pub const fn kind(&self) -> ObjectKind {
        self.body.kind()
    }

    /// Returns the kind and the id of the object.
    pub(crate) const fn object_id(&self) -> ObjectId {
        ObjectId {
            kind: self.kind(),
            id: self.id,
        }
    }

    /// Sets the kind of the object. Its body becomes empty if the object had another kind.
    pub(crate) fn set_kind(&mut self, kind: ObjectKind) {
        if self.kind() != kind {
            self.body = ObjectBody::empty(kind);
        }
    }

    /// Returns the sort key of the object in canonical order.
    pub const fn key(&self) -> TypeThenId {
        (self.kind(), id_rank(self.id))
    }

    /// Returns the metadata as a block with the given units stores it; `None` if the units cannot express the time
    /// exactly. `user_sid` is the string id of the user; 0 for none.
    pub(crate) fn raw_info(&self, units: &BlockUnits, user_sid: u32) -> Option<RawInfo> {
        let info = &self.info;
        let millis = info.timestamp.unwrap_or(0).checked_mul(1000)?;
        Some(RawInfo {
            version: i64::from(info.version.unwrap_or(0)),
            timestamp: exact_quotient(millis, units.date_granularity)?,
            changeset: info.changeset.unwrap_or(0),
            uid: i64::from(info.uid.unwrap_or(0)),
            user_sid: (user_sid > 0).then_some(user_sid),
            visible: (!info.visible).then_some(false),
        })
    }

    /// Overwrites this object with `element`, which is an element of `block`. Owned lists keep their memory.
    ///
    /// Coordinates are rounded to units of 1e-7 degree.
    pub(crate) fn fill(&mut self, element: &RawElement<'_>, block: &Block<'a>) -> FormatResult<()> {
        self.fill_reusing_info(element, block, &mut None).map(drop)
    }

    /// Does the same as [`fill`](Self::fill), but keeps the metadata of this object if `element` has the same metadata.
    /// `last` must be the metadata of this object as `block` stores it, or `None` if it is unknown. Afterwards, `last`
    /// is the metadata of `element`. Returns whether the metadata was kept.
    pub(crate) fn fill_reusing_info(
        &mut self,
        element: &RawElement<'_>,
        block: &Block<'a>,
        last: &mut Option<RawInfo>,
    ) -> FormatResult<bool> {
        let (kind, strings) = (element.key.0, &block.strings);
        self.id = id_from_rank(element.key.1);
        self.set_kind(kind);
        let tags = self.tags.cleared_vec();
        let raw_info = match (&element.form, &mut self.body) {
            (RawForm::Dense(node), ObjectBody::Node { location }) => {
                check_parts(node.keys_vals, 2, "tags", kind, node.id)?;
                let mut run = Varints::new(node.keys_vals);
                while !run.is_done() {
                    let (key, value) = (run.read()?, run.read()?);
                    tags.push((strings.get(key)?, strings.get(value)?));
                }
                *location = nearest_location(&block.units, node.lat, node.lon);
                node.info
            }
            (RawForm::Message(message), ObjectBody::Node { location }) => {
                let node = NodeMessage::parse(message)?;
                node.check_size()?;
                read_tags(&node.keys, &node.values, strings, tags)?;
                *location = nearest_location(&block.units, node.lat, node.lon);
                node.info
            }
            (RawForm::Message(message), ObjectBody::Way { refs, locations }) => {
                let way = WayMessage::parse(message)?;
                way.check_refs()?;
                way.check_size()?;
                read_tags(&way.keys, &way.values, strings, tags)?;
                read_way(
                    &way,
                    &block.units,
                    refs.cleared_vec(),
                    locations.cleared_vec(),
                )?;
                RawInfo::parse_optional(way.info)?
            }
            (RawForm::Message(message), ObjectBody::Relation { members }) => {
                let relation = RelationMessage::parse(message)?;
                relation.check_members(strings.len())?;
                relation.check_size()?;
                read_tags(&relation.keys, &relation.values, strings, tags)?;
                read_members(&relation, strings, members.cleared_vec())?;
                RawInfo::parse_optional(relation.info)?
            }
            (RawForm::Dense(_), _) => return Err(FormatError::new("a dense way or relation")),
        };
        if *last == Some(raw_info) {
            return Ok(true);
        }
        self.info = Info::resolve(&raw_info, &block.units, strings)?;
        *last = Some(raw_info);
        Ok(false)
    }
}

impl<'a> Block<'a> {
    /// Returns all objects, in order. Coordinates are rounded to units of 1e-7 degree.
    ///
    /// # Errors
    ///
    /// An object is damaged.
    pub fn objects(&self) -> Result<Vec<Object<'a>>, FormatError> {
        let (mut objects, mut cursor) = (Vec::new(), self.cursor());
        while let Some(element) = cursor.next()? {
            let mut object = Object::default();
            object.fill(element, self)?;
            objects.push(object);
        }
        Ok(objects)
    }
}

/// Appends the node ids and the locations of a way.
fn read_way(
    way: &WayMessage<'_>,
    units: &BlockUnits,
    refs: &mut Vec<i64>,
    locations: &mut Vec<Option<Location>>,
) -> FormatResult<()> {
    Delta::new(&way.refs).append_all_to(refs)?;
    let (mut lats, mut lons) = (Delta::new(&way.lats), Delta::new(&way.lons));
    while !lats.is_done() {
        locations.push(nearest_location(units, lats.read()?, lons.read()?));
    }
    Ok(())
}

/// Appends the members of a relation.
fn read_members<'a>(
    relation: &RelationMessage<'_>,
    strings: &StringTable<'a>,
    members: &mut Vec<Member<'a>>,
) -> FormatResult<()> {
    let mut ids = Delta::new(&relation.member_ids);
    let mut kinds = relation.member_kinds.values();
    let mut roles = relation.roles.values();
    while !ids.is_done() {
        members.push(Member {
            id: ids.read()?,
            kind: ObjectKind::from_number(kinds.read()?)
                .ok_or(FormatError::new("a member of unknown kind"))?,
            role: strings.get(roles.read()?)?,
        });
    }
    Ok(())
}

impl Default for Object<'_> {
    /// Returns a node with id 0 and nothing else.
    fn default() -> Self {
        Self::node(0, None, &[])
    }
}

impl<'a> From<&Element<'a>> for Object<'a> {
    /// Copies an element. Coordinates are truncated to units of 1e-7 degree.
    fn from(element: &Element<'a>) -> Self {
        Self {
            id: element.id(),
            info: element.info(),
            tags: element.tags().collect(),
            body: match element {
                Element::Node(node) => ObjectBody::Node {
                    location: node.location(),
                },
                Element::Way(way) => ObjectBody::Way {
                    refs: way.refs().collect(),
                    locations: way.locations().collect(),
                },
                Element::Relation(relation) => ObjectBody::Relation {
                    members: relation.members().collect(),
                },
            },
        }
    }
}

/// Appends the tags whose string ids are `keys` and `values`. Fails if a string id is out of range, or if the numbers
/// of keys and values differ.
fn read_tags<'a>(
    keys: &Packed<'_>,
    values: &Packed<'_>,
    strings: &StringTable<'a>,
    tags: &mut Vec<(&'a str, &'a str)>,
) -> FormatResult<()> {
    let (mut keys, mut values) = (keys.values(), values.values());
    while !keys.is_done() {
        let (key, value) = (keys.read()?, values.read()?);
        tags.push((strings.get(key)?, strings.get(value)?));
    }
    if values.is_done() {
        Ok(())
    } else {
        Err(FormatError::new("the numbers of keys and values differ"))
    }
}

/// Converts stored coordinates to a location, rounded to 1e-7 degree; `None` if the location is undefined.
#[inline]
pub(super) fn nearest_location(units: &BlockUnits, lat: i64, lon: i64) -> Option<Location> {
    if units.is_decimicro()
        && let (Ok(lat), Ok(lon)) = (i32::try_from(lat), i32::try_from(lon))
    {
        return Location::new(lat, lon);
    }
    Location::new(
        nearest_e7(units.nano_lat(lat)),
        nearest_e7(units.nano_lon(lon)),
    )
}

/// Returns the latitude and longitude of a location as a block with the given units stores them; `None` if the units
/// cannot express them exactly.
pub(crate) fn raw_location(units: &BlockUnits, location: Option<Location>) -> Option<(i64, i64)> {
    let (lat_e7, lon_e7) = Location::lat_lon_e7_or_undefined(location);
    let raw = |value_e7: i32, offset: i64| {
        exact_quotient(nano_of_e7(value_e7).checked_sub(offset)?, units.granularity)
    };
    Some((
        raw(lat_e7, units.lat_offset)?,
        raw(lon_e7, units.lon_offset)?,
    ))
}

/// Appends values as zigzag-coded deltas. The first delta is relative to 0.
///
/// In the columns of nodes, most encoded deltas have the same length. A branch on the length then costs less than
/// [`put_sints`](crate::pbf::wire::put_sints), which has no such branch.
#[inline]
pub(crate) fn put_deltas(out: &mut Vec<u8>, values: impl IntoIterator<Item = i64>) {
    let mut last = 0i64;
    for value in values {
        put_sint(out, value.wrapping_sub(last));
        last = value;
    }
}
