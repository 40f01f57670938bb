//! PrimitiveBlock as borrowed views (osmformat.proto): nothing is copied but the list of strings.

use super::FormatError;
use super::messages::{RawInfo, RelationMessage, WayMessage};
use super::wire::{Fields, Packed, Varints, zigzag_decode};
use crate::osm::{NANO_PER_DECIMICRO, ObjectKind};

/// The strings of one block. Index 0 is the empty delimiter.
#[derive(Debug, Clone, Default)]
pub struct StringTable<'a>(Vec<&'a str>);

impl<'a> StringTable<'a> {
    /// Reads a StringTable message. Fails on a string that is not UTF-8.
    pub fn parse(message: &'a [u8]) -> Result<Self, FormatError> {
        let mut strings = Vec::with_capacity(message.len() / 12);
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("StringTable"))? {
            if field.number == 1 {
                let text = std::str::from_utf8(field.bytes()?).map_err(|_| {
                    FormatError::with(format!("string {} is not UTF-8", strings.len()))
                })?;
                strings.push(text);
            }
        }
        Ok(Self(strings))
    }

    /// The string with that index.
    #[inline]
    pub fn get(&self, index: u64) -> Result<&'a str, FormatError> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.0.get(index).copied())
            .ok_or_else(|| self.out_of_range(index))
    }

    fn out_of_range(&self, index: u64) -> FormatError {
        FormatError::with(format!(
            "string index {index} is out of range (the table has {} strings)",
            self.0.len()
        ))
    }

    /// Fails where `index` is out of range.
    #[inline]
    pub fn check(&self, index: u64) -> Result<(), FormatError> {
        if index < self.0.len() as u64 {
            Ok(())
        } else {
            Err(self.out_of_range(index))
        }
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.0.iter().copied()
    }
}

/// How the integers of a block become coordinates and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Nanodegrees a unit of latitude or longitude.
    pub granularity: i64,
    /// Nanodegrees added to every latitude.
    pub lat_offset: i64,
    /// Nanodegrees added to every longitude.
    pub lon_offset: i64,
    /// Milliseconds a unit of time.
    pub date_granularity: i64,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            granularity: 100,
            lat_offset: 0,
            lon_offset: 0,
            date_granularity: 1000,
        }
    }
}

impl Scale {
    /// Nanodegrees of a stored latitude.
    #[inline]
    pub const fn nano_lat(&self, value: i64) -> i64 {
        self.lat_offset
            .wrapping_add(self.granularity.wrapping_mul(value))
    }

    /// Nanodegrees of a stored longitude.
    #[inline]
    pub const fn nano_lon(&self, value: i64) -> i64 {
        self.lon_offset
            .wrapping_add(self.granularity.wrapping_mul(value))
    }

    /// Seconds since 1970 of a stored time.
    #[inline]
    pub const fn seconds(&self, value: i64) -> i64 {
        if self.date_granularity == 1000 {
            value
        } else {
            value.wrapping_mul(self.date_granularity).div_euclid(1000)
        }
    }
}

/// One of the messages that a PrimitiveGroup holds, undecoded.
#[derive(Debug, Clone, Copy)]
pub enum Message<'a> {
    /// A plain node.
    Node(&'a [u8]),
    /// Many nodes, column by column.
    Dense(&'a [u8]),
    /// A way.
    Way(&'a [u8]),
    /// A relation.
    Relation(&'a [u8]),
    /// A changeset or a field this crate does not know: kept where blocks are copied, else ignored.
    Other,
}

impl Message<'_> {
    /// The kind of object in the message.
    pub const fn kind(&self) -> Option<ObjectKind> {
        match self {
            Self::Node(_) | Self::Dense(_) => Some(ObjectKind::Node),
            Self::Way(_) => Some(ObjectKind::Way),
            Self::Relation(_) => Some(ObjectKind::Relation),
            Self::Other => None,
        }
    }
}

/// A PrimitiveGroup.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a>(pub(crate) &'a [u8]);

impl<'a> Group<'a> {
    /// Calls `visit` with each message of the group, in order.
    pub fn try_for_each<E: From<FormatError>>(
        &self,
        mut visit: impl FnMut(Message<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut fields = Fields::new(self.0);
        while let Some(field) = fields
            .next()
            .map_err(|error| error.within("PrimitiveGroup"))?
        {
            visit(match field.number {
                1 => Message::Node(field.bytes()?),
                2 => Message::Dense(field.bytes()?),
                3 => Message::Way(field.bytes()?),
                4 => Message::Relation(field.bytes()?),
                _ => Message::Other,
            })?;
        }
        Ok(())
    }
}

/// The outline of a PrimitiveBlock: where its parts are, nothing decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockOutline<'a> {
    pub string_table: &'a [u8],
    pub groups: Vec<Group<'a>>,
    pub scale: Scale,
    /// Every field but the string table and the groups, as found.
    pub other_fields: Vec<&'a [u8]>,
}

impl<'a> BlockOutline<'a> {
    pub(crate) fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let mut block = Self::default();
        let mut fields = Fields::new(payload);
        while let Some(field) = fields
            .next()
            .map_err(|error| error.within("PrimitiveBlock"))?
        {
            match field.number {
                1 => block.string_table = field.bytes()?,
                2 => block.groups.push(Group(field.bytes()?)),
                number => {
                    block.other_fields.push(field.raw);
                    match number {
                        17 => block.scale.granularity = positive(field.varint()?, "granularity")?,
                        18 => {
                            block.scale.date_granularity =
                                positive(field.varint()?, "date_granularity")?
                        }
                        19 => block.scale.lat_offset = field.varint()? as i64,
                        20 => block.scale.lon_offset = field.varint()? as i64,
                        _ => {}
                    }
                }
            }
        }
        Ok(block)
    }
}

fn positive(value: u64, name: &str) -> Result<i64, FormatError> {
    match i32::try_from(value) {
        Ok(value) if value > 0 => Ok(i64::from(value)),
        _ => Err(FormatError::with(format!(
            "{name} {} is not a positive number",
            value as i64
        ))),
    }
}

/// A PrimitiveBlock: a string table and groups of objects.
#[derive(Debug, Clone)]
pub struct PrimitiveBlock<'a> {
    strings: StringTable<'a>,
    groups: Vec<Group<'a>>,
    scale: Scale,
}

impl<'a> PrimitiveBlock<'a> {
    /// Reads the outline of a block and its strings; objects are decoded when they are asked for.
    pub fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let outline = BlockOutline::parse(payload)?;
        let strings = StringTable::parse(outline.string_table)?;
        Ok(Self {
            strings,
            groups: outline.groups,
            scale: outline.scale,
        })
    }

    /// The strings of the block.
    pub const fn strings(&self) -> &StringTable<'a> {
        &self.strings
    }

    /// How stored integers become coordinates and times.
    pub const fn scale(&self) -> Scale {
        self.scale
    }

    /// Calls `visit` with each message of each group, in order.
    pub fn try_for_each_message<E: From<FormatError>>(
        &self,
        mut visit: impl FnMut(Message<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.groups
            .iter()
            .try_for_each(|group| group.try_for_each(&mut visit))
    }
}

/// Metadata of an object. What the file does not have is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info<'a> {
    /// Version, 1 and up.
    pub version: Option<u32>,
    /// Seconds since 1970.
    pub timestamp: Option<i64>,
    /// Number of the changeset.
    pub changeset: Option<i64>,
    /// Number of the user.
    pub uid: Option<i32>,
    /// Name of the user.
    pub user: Option<&'a str>,
    /// False for a deleted version in a history file.
    pub visible: bool,
}

impl<'a> Info<'a> {
    /// The meaning of stored metadata: 0 and -1 are old writers' "absent".
    pub(crate) fn resolve(
        raw: &RawInfo,
        scale: &Scale,
        strings: &StringTable<'a>,
    ) -> Result<Self, FormatError> {
        let user = strings.get(u64::from(raw.user_sid)).or_else(|error| {
            if raw.user_sid == 0 {
                Ok("")
            } else {
                Err(error)
            }
        })?;
        Ok(Self {
            version: raw.version_number(),
            timestamp: (raw.timestamp != 0).then(|| scale.seconds(raw.timestamp)),
            changeset: (raw.changeset > 0).then_some(raw.changeset),
            uid: i32::try_from(raw.uid).ok().filter(|&uid| uid > 0),
            user: (!user.is_empty()).then_some(user),
            visible: raw.visible != Some(false),
        })
    }
}

/// The tags of an object: pairs of key and value.
#[derive(Debug, Clone)]
pub struct Tags<'b> {
    strings: &'b StringTable<'b>,
    keys: Varints<'b>,
    /// Values beside `keys`; `None` where keys and values alternate in `keys`.
    values: Option<Varints<'b>>,
}

impl<'b> Tags<'b> {
    /// Tags whose keys and values stand in two runs. Every index is checked here.
    pub(crate) fn beside(
        strings: &'b StringTable<'b>,
        keys: &'b Packed<'_>,
        values: &'b Packed<'_>,
    ) -> Result<Self, FormatError> {
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

    /// Tags whose keys and values alternate in one run, already checked.
    pub(crate) const fn alternating(strings: &'b StringTable<'b>, run: &'b [u8]) -> Self {
        Self {
            strings,
            keys: Varints::new(run),
            values: None,
        }
    }
}

impl<'b> Iterator for Tags<'b> {
    type Item = (&'b str, &'b str);

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

    /// Latitude in nanodegrees, the unit of the file.
    pub const fn nano_lat(&self) -> i64 {
        self.nano_lat
    }

    /// Longitude in nanodegrees, the unit of the file.
    pub const fn nano_lon(&self) -> i64 {
        self.nano_lon
    }

    /// Latitude in units of 1e-7 degree.
    pub const fn decimicro_lat(&self) -> i32 {
        (self.nano_lat / NANO_PER_DECIMICRO) as i32
    }

    /// Longitude in units of 1e-7 degree.
    pub const fn decimicro_lon(&self) -> i32 {
        (self.nano_lon / NANO_PER_DECIMICRO) as i32
    }

    /// Latitude in degrees.
    pub fn lat(&self) -> f64 {
        self.nano_lat as f64 * 1e-9
    }

    /// Longitude in degrees.
    pub fn lon(&self) -> f64 {
        self.nano_lon as f64 * 1e-9
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

/// The node ids of a way, delta decoded.
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
    pub(crate) scale: Scale,
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

    /// Latitude and longitude of the way's nodes in nanodegrees, beside [`refs`](Self::refs);
    /// empty in a file without LocationsOnWays.
    pub fn nano_locations(&self) -> impl Iterator<Item = (i64, i64)> + use<'b> {
        let scale = self.scale;
        let lats = Refs::new(self.message.lats.as_bytes());
        let lons = Refs::new(self.message.lons.as_bytes());
        lats.zip(lons)
            .map(move |(lat, lon)| (scale.nano_lat(lat), scale.nano_lon(lon)))
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
    /// What it refers to.
    pub kind: ObjectKind,
    /// The id of what it refers to.
    pub id: i64,
    /// The part it plays; often empty.
    pub role: &'b str,
}

/// The members of a relation.
#[derive(Debug, Clone)]
pub struct Members<'b> {
    strings: &'b StringTable<'b>,
    roles: Varints<'b>,
    ids: Refs<'b>,
    kinds: Varints<'b>,
}

impl<'b> Iterator for Members<'b> {
    type Item = Member<'b>;

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
    /// A node, dense or plain.
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

impl PrimitiveBlock<'_> {
    /// Calls `visit` with every object of the block, in order. Objects are checked before they are
    /// handed out: string indexes, column lengths and varints.
    pub fn try_for_each<E: From<FormatError>>(
        &self,
        mut visit: impl FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_for_each_message(|message| match message {
            Message::Dense(bytes) => {
                let dense = super::DenseNodes::parse(bytes)?;
                dense
                    .iter(&self.strings, self.scale)
                    .try_for_each(|node| visit(Element::Node(node?)))
            }
            Message::Node(bytes) => {
                let message = super::messages::NodeMessage::parse(bytes)?;
                visit(Element::Node(Node {
                    id: message.id,
                    nano_lat: self.scale.nano_lat(message.lat),
                    nano_lon: self.scale.nano_lon(message.lon),
                    tags: Tags::beside(&self.strings, &message.keys, &message.values)?,
                    info: Info::resolve(&message.info, &self.scale, &self.strings)?,
                }))
            }
            Message::Way(bytes) => {
                let message = WayMessage::parse(bytes)?;
                message.check()?;
                visit(Element::Way(Way {
                    message: &message,
                    scale: self.scale,
                    tags: Tags::beside(&self.strings, &message.keys, &message.values)?,
                    info: self.resolve_info(message.info)?,
                }))
            }
            Message::Relation(bytes) => {
                let message = RelationMessage::parse(bytes)?;
                message.check(self.strings.len())?;
                visit(Element::Relation(Relation {
                    message: &message,
                    strings: &self.strings,
                    tags: Tags::beside(&self.strings, &message.keys, &message.values)?,
                    info: self.resolve_info(message.info)?,
                }))
            }
            Message::Other => Ok(()),
        })
    }

    fn resolve_info(&self, message: Option<&[u8]>) -> Result<Info<'_>, FormatError> {
        let raw = message.map_or(Ok(RawInfo::default()), RawInfo::parse)?;
        Info::resolve(&raw, &self.scale, &self.strings)
    }
}
