//! Objects of a block in plain form: strings instead of their indexes, nanodegrees instead of units.

use super::block::Block;
use super::dense::Delta;
use super::element::{Info, Member};
use super::messages::{NodeMessage, RawInfo, RelationMessage, WayMessage};
use super::object::{Object, ObjectBody};
use super::outline::{BlockUnits, StringTable};
use super::raw_element::{RawElement, RawForm};
use crate::error::FormatError;
use crate::osm::{Location, NANO_PER_DECIMICRO, ObjectKind, id_from_rank};
use crate::pbf::wire::{Packed, Varints};

/// An object in plain form. Can be filled again and again, so that its lists keep their memory.
#[derive(Debug, Clone)]
pub(crate) struct ObjectBuffer<'a> {
    pub kind: ObjectKind,
    pub id: i64,
    pub info: Info<'a>,
    /// Latitude and longitude of a node, in nanodegrees.
    pub nano_location: (i64, i64),
    pub tags: Vec<(&'a str, &'a str)>,
    pub refs: Vec<i64>,
    /// The locations of the nodes of a way; empty where the way has none.
    pub locations: Vec<Option<Location>>,
    pub members: Vec<Member<'a>>,
}

impl Default for ObjectBuffer<'_> {
    fn default() -> Self {
        Self {
            kind: ObjectKind::Node,
            id: 0,
            info: Info::default(),
            nano_location: (0, 0),
            tags: Vec::new(),
            refs: Vec::new(),
            locations: Vec::new(),
            members: Vec::new(),
        }
    }
}

impl<'a> ObjectBuffer<'a> {
    /// Takes in an object of a block.
    pub(crate) fn fill(
        &mut self,
        object: &RawElement<'a>,
        block: &Block<'a>,
    ) -> Result<(), FormatError> {
        let strings = &block.strings;
        (self.kind, self.id) = (object.key.0, id_from_rank(object.key.1));
        self.tags.clear();
        self.refs.clear();
        self.locations.clear();
        self.members.clear();
        self.nano_location = (0, 0);
        match (&object.form, self.kind) {
            (RawForm::Dense(node), _) => {
                let mut run = Varints::new(node.keys_vals);
                while !run.is_done() {
                    let (key, value) = (run.read()?, run.read()?);
                    self.tags.push((strings.get(key)?, strings.get(value)?));
                }
                self.set_location(node.lat, node.lon, &block.units);
                self.info = Info::resolve(&node.info, &block.units, strings)?;
            }
            (RawForm::Message(message), ObjectKind::Node) => {
                let node = NodeMessage::parse(message)?;
                self.set_tags(&node.keys, &node.values, strings)?;
                self.set_location(node.lat, node.lon, &block.units);
                self.info = Info::resolve(&node.info, &block.units, strings)?;
            }
            (RawForm::Message(message), ObjectKind::Way) => {
                let way = WayMessage::parse(message)?;
                way.check()?;
                self.set_tags(&way.keys, &way.values, strings)?;
                self.set_info(way.info, block)?;
                let mut refs = Delta::new(&way.refs);
                while !refs.is_done() {
                    self.refs.push(refs.read()?);
                }
                let (mut lats, mut lons) = (Delta::new(&way.lats), Delta::new(&way.lons));
                while !lats.is_done() {
                    let lat = nearest_e7(block.units.nano_lat(lats.read()?));
                    let lon = nearest_e7(block.units.nano_lon(lons.read()?));
                    self.locations.push(Location::new(lat, lon));
                }
            }
            (RawForm::Message(message), ObjectKind::Relation) => {
                let relation = RelationMessage::parse(message)?;
                relation.check(strings.len())?;
                self.set_tags(&relation.keys, &relation.values, strings)?;
                self.set_info(relation.info, block)?;
                let mut ids = Delta::new(&relation.member_ids);
                let mut kinds = relation.member_kinds.values();
                let mut roles = relation.roles.values();
                while !ids.is_done() {
                    self.members.push(Member {
                        id: ids.read()?,
                        kind: ObjectKind::from_number(kinds.read()?)
                            .ok_or(FormatError::new("a member of unknown kind"))?,
                        role: strings.get(roles.read()?)?,
                    });
                }
            }
        }
        Ok(())
    }

    fn set_location(&mut self, lat: i64, lon: i64, units: &BlockUnits) {
        self.nano_location = (units.nano_lat(lat), units.nano_lon(lon));
    }

    fn set_tags(
        &mut self,
        keys: &Packed<'_>,
        values: &Packed<'_>,
        strings: &StringTable<'a>,
    ) -> Result<(), FormatError> {
        let (mut keys, mut values) = (keys.values(), values.values());
        while !keys.is_done() {
            let (key, value) = (keys.read()?, values.read()?);
            self.tags.push((strings.get(key)?, strings.get(value)?));
        }
        if values.is_done() {
            Ok(())
        } else {
            Err(FormatError::new("the numbers of keys and values differ"))
        }
    }

    fn set_info(&mut self, message: Option<&[u8]>, block: &Block<'a>) -> Result<(), FormatError> {
        let raw = message.map_or(Ok(RawInfo::default()), RawInfo::parse)?;
        self.info = Info::resolve(&raw, &block.units, &block.strings)?;
        Ok(())
    }

    /// Latitude and longitude in units of 1e-7 degree; `None` where they are finer or do not fit.
    pub(crate) fn location_e7(&self) -> Option<(i32, i32)> {
        let e7 = |nano: i64| match nano % NANO_PER_DECIMICRO {
            0 => i32::try_from(nano / NANO_PER_DECIMICRO).ok(),
            _ => None,
        };
        e7(self.nano_location.0).zip(e7(self.nano_location.1))
    }

    /// The object as it is written; coordinates of a node are the nearest that can be.
    pub(crate) fn as_object(&self) -> Object<'_> {
        Object {
            id: self.id,
            info: self.info,
            tags: &self.tags,
            body: match self.kind {
                ObjectKind::Node => ObjectBody::Node {
                    location: Location::new(
                        nearest_e7(self.nano_location.0),
                        nearest_e7(self.nano_location.1),
                    ),
                },
                ObjectKind::Way => ObjectBody::Way {
                    refs: &self.refs,
                    locations: &self.locations,
                },
                ObjectKind::Relation => ObjectBody::Relation {
                    members: &self.members,
                },
            },
        }
    }
}

/// Nanodegrees in units of 1e-7 degree, or the nearest that there is.
fn nearest_e7(nano: i64) -> i32 {
    let rounded = nano.div_euclid(NANO_PER_DECIMICRO)
        + i64::from(nano.rem_euclid(NANO_PER_DECIMICRO) >= NANO_PER_DECIMICRO / 2);
    rounded.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

impl RawElement<'_> {
    /// Whether two objects are the same to the last bit, where the strings of one block are the first of
    /// the other's and the units are the same. `false` says nothing.
    pub(crate) fn is_bitwise_equal(&self, other: &Self) -> bool {
        match (&self.form, &other.form) {
            (RawForm::Dense(one), RawForm::Dense(two)) => {
                one.info == two.info
                    && (one.lat, one.lon) == (two.lat, two.lon)
                    && one.keys_vals == two.keys_vals
            }
            (RawForm::Message(one), RawForm::Message(two)) => one == two,
            _ => false,
        }
    }
}
