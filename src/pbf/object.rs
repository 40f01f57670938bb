//! Objects in plain form: what a change file or a generator has, and what blocks are made of.

use super::element::{Info, Member};
use super::messages::RawInfo;
use super::outline::BlockUnits;
use super::wire::put_sint;
use crate::osm::{Location, NANO_PER_DECIMICRO, ObjectKind, TypeThenId, id_rank};

/// An object to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<'a> {
    /// The id.
    pub id: i64,
    /// The metadata; what is `None` is not written.
    pub info: Info<'a>,
    /// Keys and values.
    pub tags: &'a [(&'a str, &'a str)],
    /// What distinguishes nodes, ways and relations.
    pub body: ObjectBody<'a>,
}

/// The part of an [`Object`] that depends on its kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ObjectBody<'a> {
    /// A location.
    Node {
        /// The location; a deleted node has none.
        location: Option<Location>,
    },
    /// The ids of the nodes, in order.
    Way {
        /// Node ids.
        refs: &'a [i64],
        /// The location of each node; empty where they are not known.
        locations: &'a [Option<Location>],
    },
    /// The members, in order.
    Relation {
        /// Members.
        members: &'a [Member<'a>],
    },
}

impl<'a> Object<'a> {
    /// A node without metadata.
    pub fn node(id: i64, location: Option<Location>, tags: &'a [(&'a str, &'a str)]) -> Self {
        Self::new(id, tags, ObjectBody::Node { location })
    }

    /// A way without metadata and without the locations of its nodes.
    pub fn way(id: i64, refs: &'a [i64], tags: &'a [(&'a str, &'a str)]) -> Self {
        let locations = &[];
        Self::new(id, tags, ObjectBody::Way { refs, locations })
    }

    /// A relation without metadata.
    pub fn relation(id: i64, members: &'a [Member<'a>], tags: &'a [(&'a str, &'a str)]) -> Self {
        Self::new(id, tags, ObjectBody::Relation { members })
    }

    fn new(id: i64, tags: &'a [(&'a str, &'a str)], body: ObjectBody<'a>) -> Self {
        Self {
            id,
            info: Info::default(),
            tags,
            body,
        }
    }

    /// The same object with metadata.
    #[must_use]
    pub fn with_info(self, info: Info<'a>) -> Self {
        Self { info, ..self }
    }

    /// The kind of the object.
    pub const fn kind(&self) -> ObjectKind {
        match self.body {
            ObjectBody::Node { .. } => ObjectKind::Node,
            ObjectBody::Way { .. } => ObjectKind::Way,
            ObjectBody::Relation { .. } => ObjectKind::Relation,
        }
    }

    /// The place of the object in canonical order.
    pub const fn key(&self) -> TypeThenId {
        (self.kind(), id_rank(self.id))
    }

    /// The metadata as a block of that units stores it; `None` where the time cannot be expressed.
    pub(crate) fn raw_info(&self, units: &BlockUnits, user_sid: u32) -> Option<RawInfo> {
        let info = &self.info;
        let millis = info.timestamp.unwrap_or(0).checked_mul(1000)?;
        Some(RawInfo {
            version: i64::from(info.version.unwrap_or(0)),
            timestamp: exact_quotient(millis, units.date_granularity)?,
            changeset: info.changeset.unwrap_or(0),
            uid: i64::from(info.uid.unwrap_or(0)),
            user_sid,
            visible: (!info.visible).then_some(false),
        })
    }
}

/// Latitude and longitude of a location as a block with these units stores them; `None` where they cannot be expressed
/// exactly.
pub(crate) fn raw_location(units: &BlockUnits, location: Option<Location>) -> Option<(i64, i64)> {
    let (lat_e7, lon_e7) = Location::stored_e7(location);
    let raw = |value_e7: i32, offset: i64| {
        let nano = i64::from(value_e7) * NANO_PER_DECIMICRO;
        exact_quotient(nano.checked_sub(offset)?, units.granularity)
    };
    Some((
        raw(lat_e7, units.lat_offset)?,
        raw(lon_e7, units.lon_offset)?,
    ))
}

pub(crate) fn exact_quotient(value: i64, divisor: i64) -> Option<i64> {
    (value % divisor == 0).then(|| value / divisor)
}

/// Appends values as packed deltas.
pub(crate) fn put_deltas(out: &mut Vec<u8>, values: impl IntoIterator<Item = i64>) {
    let mut last = 0i64;
    for value in values {
        put_sint(out, value.wrapping_sub(last));
        last = value;
    }
}
