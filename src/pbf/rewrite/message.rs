//! Replaces fields of a message. All other fields are copied without decoding.

use crate::error::FormatResult;
use crate::pbf::wire::{Field, Fields, MAX_VARINT_LEN, put_bytes_head};
use std::ops::Range;

/// Calls `visit` with each field of a message, and with the range of the field in the message. `name` is the type of
/// the message, for errors.
#[inline(always)]
pub(super) fn for_each_field<'m>(
    message: &'m [u8],
    name: &str,
    mut visit: impl FnMut(&Field<'m>, Range<usize>) -> FormatResult<()>,
) -> FormatResult<()> {
    let (mut fields, mut end) = (Fields::new(message), 0);
    while let Some(field) = fields.next().map_err(|error| error.within(name))? {
        let start = end;
        end += field.raw.len();
        visit(&field, start..end)?;
    }
    Ok(())
}

/// The positions of two fields in a message: the object's id, and its references. A field that the message does not
/// have is an empty range at 0.
#[derive(Debug, Clone, Default)]
pub(super) struct IdPlaces {
    id: Range<u32>,
    references: Range<u32>,
    /// Whether one of the fields occurs several times.
    has_repeats: bool,
}

impl IdPlaces {
    /// Adds the field with the given number and range, if `number` is `id` or `references`.
    #[inline]
    pub(super) fn add(&mut self, number: u32, [id, references]: [u32; 2], range: Range<usize>) {
        let place = match number {
            _ if number == id => &mut self.id,
            _ if number == references => &mut self.references,
            _ => return,
        };
        if place.end == 0 {
            // An offset fits into 32 bits, because a blob has at most 32 MiB.
            *place = range.start as u32..range.end as u32;
        } else {
            self.has_repeats = true;
        }
    }

    /// Finds the fields with the given numbers in a message.
    pub(super) fn find(message: &[u8], numbers: [u32; 2]) -> FormatResult<Self> {
        let mut places = Self::default();
        for_each_field(message, "object", |field, range| {
            places.add(field.number, numbers, range);
            Ok(())
        })?;
        Ok(places)
    }
}

/// A field that replaces another one. `head` has the tag, and the value of a varint field or the length of `body`.
/// `body` has the bytes of a length-delimited field.
pub(super) struct NewField<'r> {
    head: [u8; 2 * MAX_VARINT_LEN],
    head_len: usize,
    body: &'r [u8],
}

impl<'r> NewField<'r> {
    /// A field without bytes, which removes the field that it replaces.
    pub(super) const NONE: Self = Self {
        head: [0; 2 * MAX_VARINT_LEN],
        head_len: 0,
        body: &[],
    };

    fn new(tag: u32, value: u64, body: &'r [u8]) -> Self {
        let mut field = Self { body, ..Self::NONE };
        for mut value in [u64::from(tag), value] {
            while value >= 0x80 {
                field.push(value as u8 | 0x80);
                value >>= 7;
            }
            field.push(value as u8);
        }
        field
    }

    fn push(&mut self, byte: u8) {
        self.head[self.head_len] = byte;
        self.head_len += 1;
    }

    /// Returns a field with a number as its value.
    pub(super) fn varint(number: u32, value: u64) -> Self {
        Self::new(number << 3, value, &[])
    }

    /// Returns a field with bytes as its value.
    pub(super) fn bytes(number: u32, body: &'r [u8]) -> Self {
        Self::new(number << 3 | 2, body.len() as u64, body)
    }

    const fn len(&self) -> usize {
        self.head_len + self.body.len()
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head[..self.head_len]);
        out.extend_from_slice(self.body);
    }
}

/// A message with new ids.
pub(super) struct EditedMessage<'e> {
    /// The number of the message's field in its group.
    pub number: u32,
    pub message: &'e [u8],
    /// The numbers of the fields with the object's id and with its references; 0 for no field.
    pub numbers: [u32; 2],
    pub places: &'e IdPlaces,
    /// The new id field, and the new field of references.
    pub fields: [&'e NewField<'e>; 2],
    /// Further fields, which are appended to the message.
    pub appended: &'e [u8],
}

impl EditedMessage<'_> {
    /// Appends the message.
    #[inline]
    pub(super) fn put(&self, out: &mut Vec<u8>) -> FormatResult<()> {
        if self.places.has_repeats {
            return self.put_without_repeats(out);
        }
        let bytes = |range: &Range<u32>| range.start as usize..range.end as usize;
        let (id, references) = (bytes(&self.places.id), bytes(&self.places.references));
        let mut edits = [(id, self.fields[0]), (references, self.fields[1])];
        if edits[1].0.end < edits[0].0.end {
            edits.swap(0, 1);
        }
        // A message gets no field that it did not have.
        let edits = edits.map(|(range, field)| match range.len() {
            0 => (range, &NewField::NONE),
            _ => (range, field),
        });
        let ([(one, first), (two, second)], message) = (edits, self.message);
        let kept = message.len() - one.len() - two.len();
        let len = kept + first.len() + second.len() + self.appended.len();
        put_bytes_head(out, self.number, len);
        out.extend_from_slice(&message[..one.start]);
        first.put(out);
        out.extend_from_slice(&message[one.end..two.start]);
        second.put(out);
        out.extend_from_slice(&message[two.end..]);
        out.extend_from_slice(self.appended);
        Ok(())
    }

    /// Appends the message with a single occurrence of each replaced field. Further occurrences are left out.
    #[cold]
    fn put_without_repeats(&self, out: &mut Vec<u8>) -> FormatResult<()> {
        let (mut message, mut seen) = (Vec::with_capacity(self.message.len()), [false; 2]);
        for_each_field(self.message, "object", |field, _| {
            let replaced = self.numbers.iter().position(|one| *one == field.number);
            let is_repeat = replaced.is_some_and(|index| std::mem::replace(&mut seen[index], true));
            if !is_repeat {
                message.extend_from_slice(field.raw);
            }
            Ok(())
        })?;
        let places = IdPlaces::find(&message, self.numbers)?;
        EditedMessage {
            message: &message,
            places: &places,
            ..*self
        }
        .put(out)
    }
}
