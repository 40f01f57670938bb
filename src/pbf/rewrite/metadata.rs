//! Removes metadata from an encoded block. All other fields are copied without decoding.

use crate::error::{FormatError, FormatResult};
use crate::pbf::block::dense::{DenseNodes, put_empty_keys_vals};
use crate::pbf::block::messages::RawInfo;
use crate::pbf::block::outline::{Group, Message, StringTable};
use crate::pbf::encode::dense_columns::InfoColumn;
use crate::pbf::wire::schema::{
    dense_nodes, info, object, primitive_block, primitive_group, relation, string_table,
};
use crate::pbf::wire::{Fields, Packed, put_bytes_field, put_packed_field, put_varint_field};

/// A set of metadata attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InfoFields(u8);

impl InfoFields {
    /// No attributes.
    pub const NONE: Self = Self(0);
    /// Version, timestamp, changeset, uid and user.
    pub const ALL: Self = Self(31);
    /// The attribute `visible`, which marks deleted versions in history files.
    pub(crate) const VISIBLE: Self = Self(32);
    /// The version.
    pub const VERSION: Self = Self(1);
    /// The time of the version.
    pub const TIMESTAMP: Self = Self(2);
    /// The id of the changeset.
    pub const CHANGESET: Self = Self(4);
    /// The id of the user.
    pub const UID: Self = Self(8);
    /// The name of the user.
    pub const USER: Self = Self(16);

    /// Returns the union of the sets in `fields`.
    pub fn all_of(fields: &[Self]) -> Self {
        Self(fields.iter().fold(0, |all, one| all | one.0))
    }

    /// Returns the union of two sets.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set as bits, for [`InfoFields::from_bits`].
    pub(in crate::pbf) const fn bits(self) -> u8 {
        self.0
    }

    pub(in crate::pbf) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set has all attributes of `fields`.
    pub const fn contains(self, fields: Self) -> bool {
        self.0 & fields.0 == fields.0
    }

    /// Whether the set has the attribute with the field number `field` in Info and DenseInfo.
    const fn has(self, field: u32) -> bool {
        field >= 1 && field <= 6 && self.0 >> (field - 1) & 1 != 0
    }
}

/// Appends the block in `payload` without the attributes in `without`. If user names are removed, strings that are not
/// used as a key, value or role become empty.
pub fn clean_block(
    payload: &[u8],
    without: InfoFields,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let mut fields = Fields::new(payload);
    let mut group_out = Vec::with_capacity(payload.len());
    while let Some(field) = fields
        .next()
        .map_err(|error| error.within("PrimitiveBlock"))?
    {
        match field.number {
            primitive_block::STRINGTABLE if without.has(info::USER_SID) => {
                let used = used_strings(payload)?;
                put_bytes_field(
                    out,
                    primitive_block::STRINGTABLE,
                    &blank_unused_strings(field.bytes()?, &used)?,
                );
            }
            primitive_block::PRIMITIVEGROUP => {
                group_out.clear();
                put_group_without_attributes(field.bytes()?, without, &mut group_out)?;
                put_bytes_field(out, primitive_block::PRIMITIVEGROUP, &group_out);
            }
            _ => out.extend_from_slice(field.raw),
        }
    }
    Ok(())
}

/// Returns for each string id, up to the largest in use, whether a key, value or role in the block has the id.
fn used_strings(payload: &[u8]) -> FormatResult<Vec<bool>> {
    let mut used = Vec::new();
    let mut fields = Fields::new(payload);
    while let Some(field) = fields.next()? {
        if field.number == primitive_block::PRIMITIVEGROUP {
            mark_strings_of_group(Group(field.bytes()?), &mut used)?;
        }
    }
    Ok(used)
}

/// Marks the string ids of the keys, values and roles in a group.
pub(super) fn mark_strings_of_group(group: Group<'_>, used: &mut Vec<bool>) -> FormatResult<()> {
    group.try_for_each(|message| match message {
        Message::Dense(bytes) => mark_used_ids(&DenseNodes::parse(bytes)?.keys_vals, used),
        Message::Node(bytes) | Message::Way(bytes) => {
            mark_used_strings(bytes, &[object::KEYS, object::VALS], used)
        }
        Message::Relation(bytes) => mark_used_strings(
            bytes,
            &[object::KEYS, object::VALS, relation::ROLES_SID],
            used,
        ),
        Message::Other => Ok(()),
    })
}

/// Marks the string ids of the users in a group.
pub(super) fn mark_users_of_group(group: Group<'_>, used: &mut Vec<bool>) -> FormatResult<()> {
    group.try_for_each(|message| {
        let message = match message {
            Message::Dense(bytes) => {
                let dense = DenseNodes::parse(bytes)?;
                let (mut deltas, mut id) = (dense.info.user_sids.values(), 0i64);
                while !deltas.is_done() {
                    id = id.wrapping_add(deltas.read_sint()?);
                    mark_used_id(id as u64, used);
                }
                return Ok(());
            }
            Message::Node(bytes) | Message::Way(bytes) | Message::Relation(bytes) => bytes,
            Message::Other => return Ok(()),
        };
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            if field.number == object::INFO {
                let user = RawInfo::parse(field.bytes()?)?.user_sid;
                user.into_iter()
                    .for_each(|id| mark_used_id(u64::from(id), used));
            }
        }
        Ok(())
    })
}

/// Marks the string ids in those fields of a message whose numbers are in `numbers`.
fn mark_used_strings(message: &[u8], numbers: &[u32], used: &mut Vec<bool>) -> FormatResult<()> {
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if numbers.contains(&field.number) {
            let mut run = Packed::default();
            run.add(&field)?;
            mark_used_ids(&run, used)?;
        }
    }
    Ok(())
}

/// Marks the string ids of a packed run.
fn mark_used_ids(run: &Packed<'_>, used: &mut Vec<bool>) -> FormatResult<()> {
    let mut values = run.values();
    while !values.is_done() {
        mark_used_id(values.read()?, used);
    }
    Ok(())
}

/// Marks a string id.
#[inline]
fn mark_used_id(id: u64, used: &mut Vec<bool>) {
    let index = usize::try_from(id).unwrap_or(usize::MAX);
    // Ignores an index of `MAX_PAYLOAD_LEN` or more, because no payload has so many strings. An error is reported when
    // the object is decoded.
    if index >= used.len() && index < crate::pbf::MAX_PAYLOAD_LEN as usize {
        used.resize(index + 1, false);
    }
    if let Some(used) = used.get_mut(index) {
        *used = true;
    }
}

/// Returns the StringTable message with unused strings replaced by empty ones, so that the other strings keep their
/// ids.
pub(super) fn blank_unused_strings(message: &[u8], used: &[bool]) -> FormatResult<Vec<u8>> {
    let strings = StringTable::parse(message)?;
    let mut table = Vec::with_capacity(message.len());
    for (index, text) in strings.iter().enumerate() {
        // `used` ends with the largest id in use, so strings with larger ids are unused.
        let is_used = used.get(index) == Some(&true);
        let text = if is_used { text.as_bytes() } else { b"" };
        put_bytes_field(&mut table, string_table::S, text);
    }
    Ok(table)
}

fn put_group_without_attributes(
    group: &[u8],
    without: InfoFields,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let mut message = Vec::new();
    let mut fields = Fields::new(group);
    while let Some(field) = fields
        .next()
        .map_err(|error| error.within("PrimitiveGroup"))?
    {
        message.clear();
        match field.number {
            primitive_group::NODES | primitive_group::WAYS | primitive_group::RELATIONS => {
                put_object_without_attributes(field.bytes()?, without, &mut message)?
            }
            primitive_group::DENSE => {
                put_dense_without_attributes(field.bytes()?, without, &mut message)?
            }
            _ => {
                out.extend_from_slice(field.raw);
                continue;
            }
        }
        put_bytes_field(out, field.number, &message);
    }
    Ok(())
}

/// Appends a Node, Way or Relation message without the attributes in `without`.
fn put_object_without_attributes(
    message: &[u8],
    without: InfoFields,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if field.number != object::INFO {
            out.extend_from_slice(field.raw);
            continue;
        }
        put_packed_field(
            out,
            object::INFO,
            &info_without_attributes(field.bytes()?, without)?,
        );
    }
    Ok(())
}

/// Returns the Info message without the attributes in `without`. Some readers expect all five attributes besides
/// `visible`, or none. So if one of the five stays, the removed ones are set to 0 instead.
fn info_without_attributes(message: &[u8], without: InfoFields) -> FormatResult<Vec<u8>> {
    let mut info = Vec::with_capacity(message.len());
    let (mut stays, mut gone) = (false, Vec::new());
    let mut attributes = Fields::new(message);
    while let Some(attribute) = attributes.next().map_err(|error| error.within("Info"))? {
        match attribute.number {
            number @ info::VERSION..=info::USER_SID if without.has(number) => gone.push(number),
            number if without.has(number) => {}
            number => {
                stays |= number <= info::USER_SID;
                info.extend_from_slice(attribute.raw);
            }
        }
    }
    if stays {
        gone.dedup();
        gone.into_iter()
            .for_each(|number| put_varint_field(&mut info, number, 0));
    }
    Ok(info)
}

/// Appends a DenseNodes message without the attributes in `without`. Some readers expect all five columns besides
/// `visible`, or none. So if one of the five stays, the removed and the missing ones are filled with 0.
fn put_dense_without_attributes(
    message: &[u8],
    without: InfoFields,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let dense = DenseNodes::parse(message)?;
    let columns = dense.info.columns();
    let stays = |(number, column): (u32, &(&Packed<'_>, _))| {
        !without.has(number) && number <= info::USER_SID && !column.0.is_empty()
    };
    let any_stays = (1..).zip(&columns).any(stays);
    let mut info = Vec::new();
    for ((number, (column, _)), kind) in (1..).zip(&columns).zip(InfoColumn::ALL) {
        if !without.has(number) && !column.is_empty() {
            put_packed_field(&mut info, number, column.as_bytes());
        } else if any_stays && kind != InfoColumn::Visible {
            put_packed_field(&mut info, number, &vec![0; dense.len()]);
        }
    }
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if field.number != dense_nodes::DENSEINFO {
            out.extend_from_slice(field.raw);
        }
    }
    put_packed_field(out, dense_nodes::DENSEINFO, &info);
    if dense.keys_vals.is_empty() {
        put_empty_keys_vals(dense.len(), out);
    }
    Ok(())
}
