//! The outline of a PrimitiveBlock (osmformat.proto), with its string table, its units, and the undecoded messages of
//! its groups.

use crate::error::{FormatError, FormatResult};
use crate::osm::{Location, NANO_PER_DECIMICRO, ObjectKind, floor_e7};
use crate::pbf::wire::schema::{primitive_block, primitive_group, string_table};
use crate::pbf::wire::{Field, Fields};

/// The strings of one block. Index 0 is an empty string, which delimits the tags of dense nodes.
#[derive(Debug, Clone, Default)]
pub struct StringTable<'a>(Vec<&'a str>);

/// The maximum number of strings in a block. It limits the memory, because a string uses 16 bytes even if it is empty.
const MAX_STRINGS: usize = 1 << 22;

/// Fails if `count`, the number of strings in a table, exceeds [`MAX_STRINGS`].
pub(in crate::pbf) fn check_string_count(count: usize) -> FormatResult<()> {
    if count > MAX_STRINGS {
        Err(FormatError::with(format!(
            "a string table of more than {MAX_STRINGS} strings"
        )))
    } else {
        Ok(())
    }
}

/// A UTF-8 part of a StringTable message. Most messages are UTF-8 as a whole, including the bytes between the strings.
/// Checking many strings at once takes a fraction of the time of checking each one.
#[derive(Default)]
struct ValidText<'a> {
    /// The offset of the part in the message.
    start: usize,
    text: &'a str,
}

impl<'a> ValidText<'a> {
    /// Returns the text of the string `bytes`, which ends at the offset `end` of `message`. Returns `None` if the
    /// string is not UTF-8. The calls must be in the order of the strings.
    #[inline]
    fn text(&mut self, message: &'a [u8], bytes: &'a [u8], end: usize) -> Option<&'a str> {
        let start = end - bytes.len();
        self.text_between(start, end).or_else(|| {
            // In front of a string of 128 bytes or more, the encoded length is not UTF-8. So a part ends before that
            // length, and the next part begins with the string.
            let rest = &message[start..];
            let text = match std::str::from_utf8(rest) {
                Ok(text) => text,
                Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).ok()?,
            };
            *self = Self { start, text };
            self.text_between(start, end)
        })
    }

    /// Returns the text between two offsets of the message; `None` if this part does not have it.
    fn text_between(&self, start: usize, end: usize) -> Option<&'a str> {
        self.text
            .get(start.checked_sub(self.start)?..end - self.start)
    }
}

/// The end of the error message for a string that is not UTF-8.
pub(super) const NOT_UTF8: &str = "is not UTF-8";

impl<'a> StringTable<'a> {
    /// Reads a StringTable message. Fails if a string is not UTF-8, or if there are more than 2^22 strings.
    pub fn parse(message: &'a [u8]) -> Result<Self, FormatError> {
        let mut strings = Vec::with_capacity(message.len() / 12);
        let mut valid = ValidText::default();
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("StringTable"))? {
            if field.number == string_table::S {
                let end = message.len() - fields.rest().len();
                let text = valid.text(message, field.bytes()?, end).ok_or_else(|| {
                    FormatError::with(format!("string {} {NOT_UTF8}", strings.len()))
                })?;
                strings.push(text);
                check_string_count(strings.len())?;
            }
        }
        Ok(Self(strings))
    }

    /// A table with the given strings.
    pub(in crate::pbf) const fn from_strings(strings: Vec<&'a str>) -> Self {
        Self(strings)
    }

    /// The string at `index`. Fails if the index is out of range.
    #[inline]
    pub fn get(&self, index: u64) -> Result<&'a str, FormatError> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.0.get(index).copied())
            .ok_or_else(|| self.index_error(index))
    }

    fn index_error(&self, index: u64) -> FormatError {
        string_index_error(index, self.0.len() as u64)
    }

    /// Fails if `index` is out of range.
    #[inline]
    pub fn check(&self, index: u64) -> Result<(), FormatError> {
        if index < self.0.len() as u64 {
            Ok(())
        } else {
            Err(self.index_error(index))
        }
    }

    /// The indexes of the strings that equal one of `wanted`.
    pub fn indexes_of(&self, wanted: &[&str]) -> Vec<u64> {
        let strings = (0..).zip(&self.0);
        // Most strings differ in length from all wanted strings, and are not compared.
        let bit = |text: &str| 1u64 << text.len().min(63);
        let lens = wanted.iter().fold(0, |lens, text| lens | bit(text));
        let found = strings.filter(|(_, text)| lens & bit(text) != 0 && wanted.contains(*text));
        found.map(|(index, _)| index).collect()
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the table has no strings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> + '_ {
        self.0.iter().copied()
    }
}

/// The error for the string index `index`, which a table of `count` strings does not have.
pub(in crate::pbf) fn string_index_error(index: u64, count: u64) -> FormatError {
    FormatError::with(format!(
        "string index {index} is out of range (the table has {count} strings)"
    ))
}

/// The units in which a block stores coordinates and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockUnits {
    /// Nanodegrees per unit of latitude and longitude.
    pub granularity: i64,
    /// Nanodegrees added to every latitude.
    pub lat_offset: i64,
    /// Nanodegrees added to every longitude.
    pub lon_offset: i64,
    /// Milliseconds per unit of time.
    pub date_granularity: i64,
}

impl Default for BlockUnits {
    fn default() -> Self {
        Self {
            granularity: 100,
            lat_offset: 0,
            lon_offset: 0,
            date_granularity: 1000,
        }
    }
}

impl BlockUnits {
    /// Whether a [`crate::osm::Location`] can express all coordinates in these units exactly.
    pub(crate) const fn is_exact_in_e7(&self) -> bool {
        self.granularity % 100 == 0 && self.lat_offset % 100 == 0 && self.lon_offset % 100 == 0
    }

    /// Sets the unit that a field of a PrimitiveBlock stores. Ignores other fields.
    pub(super) fn read_field(&mut self, number: u32, field: &Field<'_>) -> FormatResult<()> {
        match number {
            primitive_block::GRANULARITY => {
                self.granularity = parse_positive(field.varint()?, "granularity")?;
            }
            primitive_block::DATE_GRANULARITY => {
                self.date_granularity = parse_positive(field.varint()?, "date_granularity")?;
            }
            primitive_block::LAT_OFFSET => self.lat_offset = field.varint()? as i64,
            primitive_block::LON_OFFSET => self.lon_offset = field.varint()? as i64,
            _ => {}
        }
        Ok(())
    }

    /// Converts a stored latitude to nanodegrees. Wraps around on overflow.
    #[inline]
    pub const fn nano_lat(&self, value: i64) -> i64 {
        self.lat_offset
            .wrapping_add(self.granularity.wrapping_mul(value))
    }

    /// Converts a stored longitude to nanodegrees. Wraps around on overflow.
    #[inline]
    pub const fn nano_lon(&self, value: i64) -> i64 {
        self.lon_offset
            .wrapping_add(self.granularity.wrapping_mul(value))
    }

    /// Converts stored coordinates to a location, truncated to units of 1e-7 degree; `None` if the location is
    /// undefined or does not fit 32 bits.
    #[inline]
    pub(crate) fn location(&self, lat: i64, lon: i64) -> Option<Location> {
        let (mut lat, mut lon) = (lat, lon);
        if !self.is_decimicro() {
            lat = self.nano_lat(lat) / NANO_PER_DECIMICRO;
            lon = self.nano_lon(lon) / NANO_PER_DECIMICRO;
        }
        match (i32::try_from(lat), i32::try_from(lon)) {
            (Ok(lat), Ok(lon)) => Location::new(lat, lon),
            _ => None,
        }
    }

    /// Whether stored coordinates exceed 90 degrees of latitude or 180 degrees of longitude, and do not stand for an
    /// undefined location.
    pub(in crate::pbf) fn is_outside_world(&self, lat: i64, lon: i64) -> bool {
        const NO_LOCATION: i64 = i32::MAX as i64;
        let (lat, lon) = (self.nano_lat(lat), self.nano_lon(lon));
        let has_none = floor_e7(lat) == NO_LOCATION && floor_e7(lon) == NO_LOCATION;
        let is_outside =
            lat.unsigned_abs() > 90_000_000_000 || lon.unsigned_abs() > 180_000_000_000;
        is_outside && !has_none
    }

    /// Whether latitude and longitude are stored in units of 1e-7 degree, without an offset.
    #[inline]
    pub(crate) const fn is_decimicro(&self) -> bool {
        self.granularity == 100 && self.lat_offset == 0 && self.lon_offset == 0
    }

    /// Whether the units are the default ones, which new blocks use.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Converts a stored time to seconds since 1970, rounded down.
    #[inline]
    pub const fn seconds(&self, value: i64) -> i64 {
        if self.date_granularity == 1000 {
            value
        } else {
            value.wrapping_mul(self.date_granularity).div_euclid(1000)
        }
    }
}

/// One message of a PrimitiveGroup, undecoded.
#[derive(Debug, Clone, Copy)]
pub enum Message<'a> {
    /// A node that has a message of its own.
    Node(&'a [u8]),
    /// A DenseNodes message, which stores many nodes column by column.
    Dense(&'a [u8]),
    /// A way.
    Way(&'a [u8]),
    /// A relation.
    Relation(&'a [u8]),
    /// A changeset, or a field that this crate does not know. The message is kept if the block is copied, and otherwise
    /// ignored.
    Other,
}

impl<'a> Message<'a> {
    /// The message in a field of a PrimitiveGroup.
    #[inline(always)]
    pub(super) fn from_field(field: &Field<'a>) -> FormatResult<Self> {
        Ok(match field.number {
            primitive_group::NODES => Self::Node(field.bytes()?),
            primitive_group::DENSE => Self::Dense(field.bytes()?),
            primitive_group::WAYS => Self::Way(field.bytes()?),
            primitive_group::RELATIONS => Self::Relation(field.bytes()?),
            _ => Self::Other,
        })
    }

    /// The kind of the objects in the message; `None` for [`Other`](Self::Other).
    pub const fn kind(&self) -> Option<ObjectKind> {
        match self {
            Self::Node(_) | Self::Dense(_) => Some(ObjectKind::Node),
            Self::Way(_) => Some(ObjectKind::Way),
            Self::Relation(_) => Some(ObjectKind::Relation),
            Self::Other => None,
        }
    }
}

/// The content of a PrimitiveGroup message, undecoded.
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
            visit(Message::from_field(&field)?)?;
        }
        Ok(())
    }

    /// Splits the group into parts of consecutive messages. A part has at most `most` bytes, or is a single message.
    pub(super) fn parts(self, most: usize) -> impl Iterator<Item = FormatResult<Self>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (mut fields, mut len) = (Fields::new(rest), 0);
            loop {
                match fields.next() {
                    Err(error) => return Some(Err(error)),
                    Ok(Some(field)) if len == 0 || len + field.raw.len() <= most => {
                        len += field.raw.len();
                    }
                    Ok(_) => break,
                }
            }
            let (part, others) = rest.split_at(len);
            rest = others;
            (!part.is_empty()).then_some(Ok(Self(part)))
        })
    }
}

/// The outline of a PrimitiveBlock. Only the units are decoded; all other parts are encoded bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockOutline<'a> {
    pub string_table: &'a [u8],
    pub groups: Vec<Group<'a>>,
    pub units: BlockUnits,
    /// Every field except the string table and the groups, encoded, in the order of the payload.
    pub other_fields: Vec<u8>,
}

impl<'a> BlockOutline<'a> {
    pub(crate) fn parse(payload: &'a [u8]) -> FormatResult<Self> {
        let (mut block, mut has_strings) = (Self::default(), false);
        let mut fields = Fields::new(payload);
        while let Some(field) = fields
            .next()
            .map_err(|error| error.within("PrimitiveBlock"))?
        {
            match field.number {
                primitive_block::STRINGTABLE if std::mem::replace(&mut has_strings, true) => {
                    return Err(FormatError::new("a block with several string tables"));
                }
                primitive_block::STRINGTABLE => block.string_table = field.bytes()?,
                primitive_block::PRIMITIVEGROUP => match field.bytes()? {
                    [] => {}
                    group => block.groups.push(Group(group)),
                },
                number => {
                    block.other_fields.extend_from_slice(field.raw);
                    block.units.read_field(number, &field)?;
                }
            }
        }
        Ok(block)
    }
}

fn parse_positive(value: u64, name: &str) -> FormatResult<i64> {
    match i32::try_from(value) {
        Ok(value) if value > 0 => Ok(i64::from(value)),
        _ => Err(FormatError::with(format!(
            "{name} {} is not a positive number",
            value as i64
        ))),
    }
}

/// `value / divisor`; `None` if there is a remainder.
pub(crate) fn exact_quotient(value: i64, divisor: i64) -> Option<i64> {
    (value % divisor == 0).then(|| value / divisor)
}
