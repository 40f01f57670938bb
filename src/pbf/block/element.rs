//! Nodes, ways and relations as views that borrow from a block. An object is checked before its view is handed out.

use super::delta::Delta;
use super::limits::check_parts;
use super::messages::{NodeMessage, RawInfo, RelationMessage, WayMessage, version_number};
use super::outline::{BlockUnits, StringTable};
use super::parsed::{Block, BlockMessage};
use crate::error::{FormatError, FormatResult};
use crate::osm::{Location, ObjectKind, truncated_e7};
use crate::pbf::wire::zigzag_decode;
use crate::pbf::wire::{Packed, Varints};

/// The metadata of an object. Attributes that the file does not have are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info<'a> {
    /// The version, 1 or larger.
    pub version: Option<u32>,
    /// The time in seconds since 1970.
    pub timestamp: Option<i64>,
    /// The id of the changeset.
    pub changeset: Option<i64>,
    /// The id of the user.
    pub uid: Option<i32>,
    /// The name of the user.
    pub user: Option<&'a str>,
    /// `false` for a deleted version in a history file.
    pub visible: bool,
}

impl Default for Info<'_> {
    /// The metadata of a visible object that has no attributes.
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a> Info<'a> {
    /// The metadata of a visible object that has no attributes.
    pub(crate) const EMPTY: Self = Self {
        version: None,
        timestamp: None,
        changeset: None,
        uid: None,
        user: None,
        visible: true,
    };

    /// Interprets stored metadata. Some writers store 0 or -1 for a missing attribute. So a timestamp of 0 becomes
    /// `None`, as does a version, changeset or user id that is not positive. Fails if the string id of the user is out
    /// of range.
    pub(crate) fn resolve(
        raw: &RawInfo,
        units: &BlockUnits,
        strings: &StringTable<'a>,
    ) -> FormatResult<Self> {
        let user = match raw.user_sid {
            None => "",
            // Index 0 means "no user" even in a block without strings.
            Some(0) => strings.get(0).unwrap_or(""),
            Some(id) => strings.get(u64::from(id))?,
        };
        Ok(Self {
            version: version_number(raw.version),
            timestamp: (raw.timestamp != 0).then(|| units.seconds(raw.timestamp)),
            changeset: (raw.changeset > 0).then_some(raw.changeset),
            uid: i32::try_from(raw.uid).ok().filter(|&uid| uid > 0),
            user: (!user.is_empty()).then_some(user),
            visible: raw.visible != Some(false),
        })
    }
}

/// An iterator over the tags of an object as pairs of key and value.
#[derive(Debug, Clone)]
pub struct Tags<'b> {
    strings: &'b StringTable<'b>,
    keys: Varints<'b>,
    /// The string ids of the values; `None` if keys and values alternate in `keys`.
    values: Option<Varints<'b>>,
}

impl<'b> Tags<'b> {
    /// Creates an iterator over tags whose string ids are in two runs, one for keys and one for values. Fails if a
    /// string id is out of range, or if the numbers of keys and values differ.
    pub(crate) fn from_key_and_value_runs(
        strings: &'b StringTable<'b>,
        keys: &'b Packed<'_>,
        values: &'b Packed<'_>,
    ) -> FormatResult<Self> {
        let (mut key_ids, mut value_ids) = (keys.values(), values.values());
        while !key_ids.is_done() && !value_ids.is_done() {
            strings.check(key_ids.read()?)?;
            strings.check(value_ids.read()?)?;
        }
        if key_ids.is_done() != value_ids.is_done() {
            return Err(FormatError::with(format!(
                "{} keys but {} values",
                keys.count(),
                values.count()
            )));
        }
        Ok(Self {
            strings,
            keys: keys.values(),
            values: Some(values.values()),
        })
    }

    /// Creates an iterator over tags whose keys and values alternate in one run. The caller must have checked the
    /// string ids, because the iteration ends at an id that is out of range.
    pub(crate) const fn from_alternating_run(strings: &'b StringTable<'b>, run: &'b [u8]) -> Self {
        Self {
            strings,
            keys: Varints::new(run),
            values: None,
        }
    }
}

impl Tags<'_> {
    /// Whether the string id of any key is among `ids`.
    #[inline]
    pub(crate) fn has_key_among(&self, ids: &[u64]) -> bool {
        let (mut keys, values) = (self.keys, self.values.is_some());
        while let Ok(key) = keys.read() {
            if ids.contains(&key) {
                return true;
            }
            if !values && keys.read().is_err() {
                break;
            }
        }
        false
    }
}

impl<'b> Iterator for Tags<'b> {
    type Item = (&'b str, &'b str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let key = self.keys.read().ok()?;
        let value = self.values.as_mut().unwrap_or(&mut self.keys).read().ok()?;
        Some((self.strings.get(key).ok()?, self.strings.get(value).ok()?))
    }
}

/// A node.
#[derive(Debug, Clone)]
pub struct Node<'b> {
    pub(crate) id: i64,
    pub(crate) nano_lat: i64,
    pub(crate) nano_lon: i64,
    pub(crate) tags: Tags<'b>,
    pub(crate) info: Info<'b>,
}

impl<'b> Node<'b> {
    /// The id; negative for objects that were never uploaded.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Latitude in nanodegrees.
    pub const fn nano_lat(&self) -> i64 {
        self.nano_lat
    }

    /// Longitude in nanodegrees.
    pub const fn nano_lon(&self) -> i64 {
        self.nano_lon
    }

    /// Latitude in units of 1e-7 degree, truncated.
    pub fn decimicro_lat(&self) -> i32 {
        truncated_e7(self.nano_lat)
    }

    /// Longitude in units of 1e-7 degree, truncated.
    pub fn decimicro_lon(&self) -> i32 {
        truncated_e7(self.nano_lon)
    }

    /// The location, truncated to units of 1e-7 degree; `None` if the coordinates are those of an undefined location.
    pub fn location(&self) -> Option<Location> {
        Location::new(self.decimicro_lat(), self.decimicro_lon())
    }

    /// Latitude in degrees.
    pub fn lat(&self) -> f64 {
        self.nano_lat as f64 / 1e9
    }

    /// Longitude in degrees.
    pub fn lon(&self) -> f64 {
        self.nano_lon as f64 / 1e9
    }

    /// The tags in file order.
    pub fn tags(&self) -> Tags<'b> {
        self.tags.clone()
    }

    /// The metadata.
    pub const fn info(&self) -> Info<'b> {
        self.info
    }
}

/// An iterator over the node ids of a way, which decodes their deltas.
#[derive(Debug, Clone)]
pub struct Refs<'b> {
    deltas: Varints<'b>,
    last: i64,
}

impl<'b> Refs<'b> {
    pub(crate) const fn new(run: &'b [u8]) -> Self {
        Self {
            deltas: Varints::new(run),
            last: 0,
        }
    }
}

impl Iterator for Refs<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        let delta = self.deltas.read().ok()?;
        self.last = self.last.wrapping_add(zigzag_decode(delta));
        Some(self.last)
    }
}

/// A way.
#[derive(Debug)]
pub struct Way<'b> {
    pub(crate) message: &'b WayMessage<'b>,
    pub(crate) units: BlockUnits,
    pub(crate) tags: Tags<'b>,
    pub(crate) info: Info<'b>,
}

impl<'b> Way<'b> {
    /// The id.
    pub const fn id(&self) -> i64 {
        self.message.id
    }

    /// The ids of the way's nodes, in order.
    pub fn refs(&self) -> Refs<'b> {
        Refs::new(self.message.refs.as_bytes())
    }

    /// Whether the way has more than one node, and its last node is its first.
    pub fn is_closed(&self) -> bool {
        let mut refs = self.refs();
        let first = refs.next();
        refs.last().is_some_and(|last| Some(last) == first)
    }

    /// The locations of the way's nodes, in the order of [`refs`](Self::refs); empty if the way does not carry
    /// locations.
    pub fn locations(&self) -> impl Iterator<Item = Option<Location>> + use<'b> {
        let units = self.units;
        let lats = Refs::new(self.message.lats.as_bytes());
        let lons = Refs::new(self.message.lons.as_bytes());
        lats.zip(lons)
            .map(move |(lat, lon)| units.location(lat, lon))
    }

    /// Latitude and longitude of the way's nodes in nanodegrees, in the order of [`refs`](Self::refs); empty if the way
    /// does not carry locations.
    pub fn nano_locations(&self) -> impl Iterator<Item = (i64, i64)> + use<'b> {
        let units = self.units;
        let lats = Refs::new(self.message.lats.as_bytes());
        let lons = Refs::new(self.message.lons.as_bytes());
        lats.zip(lons)
            .map(move |(lat, lon)| (units.nano_lat(lat), units.nano_lon(lon)))
    }

    /// Appends the locations of the way's nodes, as [`locations`](Self::locations) returns them. Faster than that
    /// iterator, because many values of a column are decoded at a time.
    pub(crate) fn read_locations(&self, locations: &mut Vec<Option<Location>>) -> FormatResult<()> {
        const AT_ONCE: usize = 64;
        let message = self.message;
        let (mut lats, mut lons) = (Delta::new(&message.lats), Delta::new(&message.lons));
        let mut left = message.lats.count();
        let mut columns = [[0; AT_ONCE]; 2];
        while left > 0 {
            let count = left.min(AT_ONCE);
            left -= count;
            for (column, deltas) in columns.iter_mut().zip([&mut lats, &mut lons]) {
                deltas.fill(&mut column[..count])?;
            }
            let [lats, lons] = &columns;
            let pairs = lats.iter().zip(lons).take(count);
            locations.extend(pairs.map(|(lat, lon)| self.units.location(*lat, *lon)));
        }
        Ok(())
    }

    /// Whether the way carries locations. They may be undefined.
    pub(crate) fn has_locations(&self) -> bool {
        !self.message.lats.is_empty()
    }

    /// The number of the way's nodes.
    pub(crate) fn ref_count(&self) -> usize {
        self.message.refs.count()
    }

    /// The tags in file order.
    pub fn tags(&self) -> Tags<'b> {
        self.tags.clone()
    }

    /// The metadata.
    pub const fn info(&self) -> Info<'b> {
        self.info
    }
}

/// One member of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'b> {
    /// The kind of the object that the member refers to.
    pub kind: ObjectKind,
    /// The id of the object that the member refers to.
    pub id: i64,
    /// The role of the object in the relation; often empty.
    pub role: &'b str,
}

/// An iterator over the members of a relation.
#[derive(Debug, Clone)]
pub struct Members<'b> {
    strings: &'b StringTable<'b>,
    roles: Varints<'b>,
    ids: Refs<'b>,
    kinds: Varints<'b>,
}

impl<'b> Iterator for Members<'b> {
    type Item = Member<'b>;

    #[inline]
    fn next(&mut self) -> Option<Member<'b>> {
        Some(Member {
            id: self.ids.next()?,
            kind: ObjectKind::from_number(self.kinds.read().ok()?)?,
            role: self.strings.get(self.roles.read().ok()?).ok()?,
        })
    }
}

/// A relation.
#[derive(Debug)]
pub struct Relation<'b> {
    pub(crate) message: &'b RelationMessage<'b>,
    pub(crate) strings: &'b StringTable<'b>,
    pub(crate) tags: Tags<'b>,
    pub(crate) info: Info<'b>,
}

impl<'b> Relation<'b> {
    /// The id.
    pub const fn id(&self) -> i64 {
        self.message.id
    }

    /// The members in order.
    pub fn members(&self) -> Members<'b> {
        Members {
            strings: self.strings,
            roles: self.message.roles.values(),
            ids: Refs::new(self.message.member_ids.as_bytes()),
            kinds: self.message.member_kinds.values(),
        }
    }

    /// The tags in file order.
    pub fn tags(&self) -> Tags<'b> {
        self.tags.clone()
    }

    /// The metadata.
    pub const fn info(&self) -> Info<'b> {
        self.info
    }
}

/// A node, way or relation.
#[derive(Debug)]
pub enum Element<'b> {
    /// A node, stored in a DenseNodes message or in a message of its own.
    Node(Node<'b>),
    /// A way.
    Way(Way<'b>),
    /// A relation.
    Relation(Relation<'b>),
}

impl Element<'_> {
    /// The kind of the object.
    pub const fn kind(&self) -> ObjectKind {
        match self {
            Self::Node(_) => ObjectKind::Node,
            Self::Way(_) => ObjectKind::Way,
            Self::Relation(_) => ObjectKind::Relation,
        }
    }

    /// The id of the object.
    pub const fn id(&self) -> i64 {
        match self {
            Self::Node(node) => node.id(),
            Self::Way(way) => way.id(),
            Self::Relation(relation) => relation.id(),
        }
    }
}

impl Element<'_> {
    /// Fails if the object has more than [`MAX_PARTS`](super::limits::MAX_PARTS) nodes, members or tags.
    pub(crate) fn check_size(&self) -> FormatResult<()> {
        match self {
            Self::Node(node) => {
                let tags = &node.tags;
                let each = if tags.values.is_some() { 1 } else { 2 };
                check_parts(tags.keys.rest(), each, "tags", ObjectKind::Node, node.id)
            }
            Self::Way(way) => way.message.check_size(),
            Self::Relation(relation) => relation.message.check_size(),
        }
    }
}

/// The numbers of the tags, refs and members of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartCounts {
    pub tags: usize,
    pub refs: usize,
    pub members: usize,
}

impl Element<'_> {
    /// Returns upper bounds of the numbers of tags, refs and members, computed from the lengths of their packed runs. A
    /// value in a run has at least one byte.
    pub(crate) fn part_count_bounds(&self) -> PartCounts {
        let bytes = |run: &Packed<'_>| run.as_bytes().len();
        let (tags, refs, members) = match self {
            Self::Node(node) => {
                let tags = &node.tags;
                let each = if tags.values.is_some() { 1 } else { 2 };
                (tags.keys.rest().len() / each, 0, 0)
            }
            Self::Way(way) => (bytes(&way.message.keys), bytes(&way.message.refs), 0),
            Self::Relation(relation) => {
                let message = &relation.message;
                (bytes(&message.keys), 0, bytes(&message.member_ids))
            }
        };
        PartCounts {
            tags,
            refs,
            members,
        }
    }
}

impl<'b> Element<'b> {
    /// The tags in file order.
    pub fn tags(&self) -> Tags<'b> {
        match self {
            Self::Node(node) => node.tags(),
            Self::Way(way) => way.tags(),
            Self::Relation(relation) => relation.tags(),
        }
    }

    /// The metadata.
    pub const fn info(&self) -> Info<'b> {
        match self {
            Self::Node(node) => node.info(),
            Self::Way(way) => way.info(),
            Self::Relation(relation) => relation.info(),
        }
    }
}

impl Block<'_> {
    /// Calls `visit` with every object of the block, in order.
    ///
    /// # Errors
    ///
    /// Returns the first error of `visit`. Fails if an object is damaged: a string index is out of range, columns
    /// differ in length, or a varint is malformed. An object is checked before it is visited.
    pub fn try_for_each<E: From<FormatError>>(
        &self,
        visit: impl FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_for_each_with_wanted_ways(true, || true, visit)
    }

    /// Does the same as [`try_for_each`](Self::try_for_each), but skips ways that `is_wanted` refuses. `is_wanted` is
    /// called once for each way, in order. Skipped ways are not checked for damage. If `way_info` is `false`, the
    /// metadata of ways is not read, and ways are visited with empty metadata.
    pub(crate) fn try_for_each_with_wanted_ways<E: From<FormatError>>(
        &self,
        way_info: bool,
        mut is_wanted: impl FnMut() -> bool,
        mut visit: impl FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => {
                    for node in dense.iter(&self.strings, self.units) {
                        visit(Element::Node(node?))?;
                    }
                }
                BlockMessage::Single(ObjectKind::Way, _) if !is_wanted() => {}
                BlockMessage::Single(kind, bytes) => {
                    self.visit_single(kind, bytes, way_info, &mut visit)?;
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with the object of a message. `visit` is a trait object, so that this long function is compiled
    /// only once for each type of error.
    pub(super) fn visit_single<E: From<FormatError>>(
        &self,
        kind: ObjectKind,
        bytes: &[u8],
        way_info: bool,
        visit: &mut dyn FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match kind {
            ObjectKind::Node => {
                let message = NodeMessage::parse(bytes)?;
                visit(Element::Node(Node {
                    id: message.id,
                    nano_lat: self.units.nano_lat(message.lat),
                    nano_lon: self.units.nano_lon(message.lon),
                    tags: Tags::from_key_and_value_runs(
                        &self.strings,
                        &message.keys,
                        &message.values,
                    )?,
                    info: Info::resolve(&message.info, &self.units, &self.strings)?,
                }))
            }
            ObjectKind::Way => {
                let message = WayMessage::parse(bytes)?;
                message.check_refs()?;
                visit(Element::Way(Way {
                    message: &message,
                    units: self.units,
                    tags: Tags::from_key_and_value_runs(
                        &self.strings,
                        &message.keys,
                        &message.values,
                    )?,
                    info: self.resolve_info(message.info.filter(|_| way_info))?,
                }))
            }
            ObjectKind::Relation => {
                let message = RelationMessage::parse(bytes)?;
                message.check_members(self.strings.len())?;
                visit(Element::Relation(Relation {
                    message: &message,
                    strings: &self.strings,
                    tags: Tags::from_key_and_value_runs(
                        &self.strings,
                        &message.keys,
                        &message.values,
                    )?,
                    info: self.resolve_info(message.info)?,
                }))
            }
        }
    }

    fn resolve_info(&self, message: Option<&[u8]>) -> FormatResult<Info<'_>> {
        let raw = RawInfo::parse_optional(message)?;
        Info::resolve(&raw, &self.units, &self.strings)
    }
}
