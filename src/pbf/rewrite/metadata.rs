//! Taking metadata out of a block on the wire: everything else is copied as it stands.

use crate::error::FormatError;
use crate::pbf::block::{Group, Message, StringTable};
use crate::pbf::block_encoder::InfoColumn;
use crate::pbf::dense::{DenseNodes, put_no_tags};
use crate::pbf::schema::{
    dense_nodes, info, object, primitive_block, primitive_group, relation, string_table,
};
use crate::pbf::wire::{Fields, Packed, put_bytes_field, put_packed_field, put_varint_field};

/// Attributes of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InfoFields(u8);

impl InfoFields {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self(31);
    /// Whether an object is visible, or a deleted version, which history files say.
    pub(crate) const VISIBLE: Self = Self(32);
    /// The version.
    pub const VERSION: Self = Self(1);
    /// The timestamp.
    pub const TIMESTAMP: Self = Self(2);
    /// The id of the changeset.
    pub const CHANGESET: Self = Self(4);
    /// The id of the user.
    pub const UID: Self = Self(8);
    /// The name of the user.
    pub const USER: Self = Self(16);

    /// Everything that is in one of some.
    pub fn all_of(fields: &[Self]) -> Self {
        Self(fields.iter().fold(0, |all, one| all | one.0))
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the attribute with that number in Info and DenseInfo is among them.
    const fn has(self, field: u32) -> bool {
        field >= 1 && field <= 6 && self.0 >> (field - 1) & 1 != 0
    }
}

/// Appends the block in `payload` without some metadata. Names of users leave the string table with it.
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
                    &without_unused(field.bytes()?, &used)?,
                );
            }
            primitive_block::PRIMITIVEGROUP => {
                group_out.clear();
                clean_group(field.bytes()?, without, &mut group_out)?;
                put_bytes_field(out, primitive_block::PRIMITIVEGROUP, &group_out);
            }
            _ => out.extend_from_slice(field.raw),
        }
    }
    Ok(())
}

/// Which strings of a block are keys, values or roles.
fn used_strings(payload: &[u8]) -> Result<Vec<bool>, FormatError> {
    let mut used = Vec::new();
    let mut fields = Fields::new(payload);
    while let Some(field) = fields.next()? {
        if field.number == primitive_block::PRIMITIVEGROUP {
            Group(field.bytes()?).try_for_each(|message| match message {
                Message::Dense(bytes) => note(&DenseNodes::parse(bytes)?.keys_vals, &mut used),
                Message::Node(bytes) | Message::Way(bytes) => {
                    note_strings(bytes, &[object::KEYS, object::VALS], &mut used)
                }
                Message::Relation(bytes) => note_strings(
                    bytes,
                    &[object::KEYS, object::VALS, relation::ROLES_SID],
                    &mut used,
                ),
                Message::Other => Ok(()),
            })?;
        }
    }
    Ok(used)
}

fn note_strings(message: &[u8], numbers: &[u32], used: &mut Vec<bool>) -> Result<(), FormatError> {
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if numbers.contains(&field.number) {
            let mut run = Packed::default();
            run.add(&field)?;
            note(&run, used)?;
        }
    }
    Ok(())
}

fn note(run: &Packed<'_>, used: &mut Vec<bool>) -> Result<(), FormatError> {
    let mut values = run.values();
    while !values.is_done() {
        let index = usize::try_from(values.read()?).unwrap_or(usize::MAX);
        // No payload holds that many strings: who uses the index finds out.
        if index >= used.len() && index < crate::pbf::MAX_PAYLOAD_LEN as usize {
            used.resize(index + 1, false);
        }
        if let Some(used) = used.get_mut(index) {
            *used = true;
        }
    }
    Ok(())
}

/// A StringTable message in which strings that nobody uses are empty.
fn without_unused(message: &[u8], used: &[bool]) -> Result<Vec<u8>, FormatError> {
    let strings = StringTable::parse(message)?;
    let mut table = Vec::with_capacity(message.len());
    for (index, text) in strings.iter().enumerate() {
        let is_used = used.get(index).copied().unwrap_or_default();
        put_bytes_field(
            &mut table,
            string_table::S,
            if is_used { text.as_bytes() } else { b"" },
        );
    }
    Ok(table)
}

fn clean_group(group: &[u8], without: InfoFields, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let mut message = Vec::new();
    let mut fields = Fields::new(group);
    while let Some(field) = fields
        .next()
        .map_err(|error| error.within("PrimitiveGroup"))?
    {
        message.clear();
        match field.number {
            primitive_group::NODES | primitive_group::WAYS | primitive_group::RELATIONS => {
                clean_object(field.bytes()?, without, &mut message)?
            }
            primitive_group::DENSE => clean_dense(field.bytes()?, without, &mut message)?,
            _ => {
                out.extend_from_slice(field.raw);
                continue;
            }
        }
        put_bytes_field(out, field.number, &message);
    }
    Ok(())
}

/// A Node, Way or Relation message.
fn clean_object(message: &[u8], without: InfoFields, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if field.number != object::INFO {
            out.extend_from_slice(field.raw);
            continue;
        }
        put_packed_field(out, object::INFO, &clean_info(field.bytes()?, without)?);
    }
    Ok(())
}

/// An Info message. Where some attributes stay, the others become 0: some readers take them to be all there or not at
/// all.
fn clean_info(message: &[u8], without: InfoFields) -> Result<Vec<u8>, FormatError> {
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

/// A DenseNodes message. What is left of the columns of metadata stays complete: some readers take them
/// to be all there or not at all.
fn clean_dense(message: &[u8], without: InfoFields, out: &mut Vec<u8>) -> Result<(), FormatError> {
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
        put_no_tags(dense.len(), out);
    }
    Ok(())
}
