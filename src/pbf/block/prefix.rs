//! Reads fields at the beginning of a payload, so that the rest of the payload need not be decompressed.

use crate::osm::ObjectKind;
use crate::pbf::wire::schema::{primitive_block, primitive_group};
use crate::pbf::wire::{MAX_VARINT_LEN, read_varint};

/// The number of bytes to read beyond the end of a field. These bytes have the field numbers and lengths of the next
/// messages.
const LOOKAHEAD: usize = 48;

/// The reason why fields were not found at the beginning of a payload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// This number of bytes from the start of the payload is needed.
    NeedsBytes(usize),
    /// The fields stand elsewhere or are absent, or the payload is damaged.
    Elsewhere,
}

impl Unread {
    /// Returns the number of bytes of the payload that are needed; `None` if no more bytes have to be read.
    pub(super) fn needed_bytes<T>(read: &Result<T, Self>) -> Option<usize> {
        match read {
            Err(Self::NeedsBytes(len)) => Some(*len),
            Err(Self::Elsewhere) | Ok(_) => None,
        }
    }
}

/// Returns the kind of the first object of a block, from the beginning of its payload. Fails unless the string table
/// and a group of objects come first.
pub(crate) fn first_kind(prefix: &[u8]) -> Result<ObjectKind, Unread> {
    let mut fields = PrefixFields::new(prefix);
    fields.read_content(primitive_block::STRINGTABLE)?;
    if fields.enter_field(primitive_block::PRIMITIVEGROUP)? == 0 {
        return Err(Unread::Elsewhere);
    }
    let number = fields.peek_number()?;
    let kind = match number {
        primitive_group::NODES | primitive_group::DENSE => ObjectKind::Node,
        primitive_group::WAYS => ObjectKind::Way,
        primitive_group::RELATIONS => ObjectKind::Relation,
        _ => return Err(Unread::Elsewhere),
    };
    if fields.enter_field(number)? == 0 {
        return Err(Unread::Elsewhere);
    }
    Ok(kind)
}

/// Returns the number of bytes from the start of a payload that [`first_kind`] needs; `None` if it would be of no use
/// to read more bytes than `prefix`.
pub(crate) fn bytes_needed_for_first_kind(prefix: &[u8]) -> Option<usize> {
    Unread::needed_bytes(&first_kind(prefix))
}

/// A reader of the length-delimited fields at the beginning of a message. The end of the message may be missing.
pub(super) struct PrefixFields<'a> {
    prefix: &'a [u8],
    pos: usize,
}

impl<'a> PrefixFields<'a> {
    /// Creates a reader of `prefix`, the beginning of a payload.
    pub(super) const fn new(prefix: &'a [u8]) -> Self {
        Self { prefix, pos: 0 }
    }

    /// Returns the number of the next field. Fails unless the field is length-delimited and its number is at most 15.
    fn peek_number(&self) -> Result<u32, Unread> {
        const LENGTH_DELIMITED: u8 = 2;
        match self.prefix.get(self.pos) {
            None => Err(Unread::NeedsBytes(self.pos + LOOKAHEAD)),
            Some(tag) if tag & 0x87 == LENGTH_DELIMITED => Ok(u32::from(tag >> 3)),
            Some(_) => Err(Unread::Elsewhere),
        }
    }

    /// Moves to the content of the next field, which must have the given number. Returns the length of the content.
    pub(super) fn enter_field(&mut self, number: u32) -> Result<usize, Unread> {
        if self.peek_number()? != number {
            return Err(Unread::Elsewhere);
        }
        let rest = &self.prefix[self.pos + 1..];
        let mut len_bytes = 0;
        match read_varint(rest, &mut len_bytes) {
            Ok(len) => {
                self.pos += 1 + len_bytes;
                usize::try_from(len).map_err(|_| Unread::Elsewhere)
            }
            Err(_) if rest.len() < MAX_VARINT_LEN => Err(Unread::NeedsBytes(self.pos + LOOKAHEAD)),
            Err(_) => Err(Unread::Elsewhere),
        }
    }

    /// Returns the content of the next field, which must have the given number, and moves to the end of the field.
    pub(super) fn read_content(&mut self, number: u32) -> Result<&'a [u8], Unread> {
        let len = self.enter_field(number)?;
        let end = self.pos.checked_add(len).ok_or(Unread::Elsewhere)?;
        let bytes = self.prefix.get(self.pos..end);
        let bytes = bytes.ok_or(Unread::NeedsBytes(end.saturating_add(LOOKAHEAD)))?;
        self.pos = end;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osm::Location;
    use crate::pbf::encode::builder::BlockBuilder;
    use crate::pbf::{Object, ObjectBody};

    fn payload(objects: &[Object<'_>], is_plain: bool) -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        if is_plain {
            builder.write_plain_nodes();
        }
        for object in objects {
            builder.add(object).unwrap();
        }
        builder.end_block();
        builder.take_blocks().remove(0).payload
    }

    #[test]
    fn the_beginning_of_a_block_tells_the_kind_of_its_first_object() {
        let tags = vec![("name", "Kastanienallee"); 40];
        let node = Object::node(1, Location::new(1, 2), tags.clone());
        let way = Object {
            body: ObjectBody::Way {
                refs: (1..900).collect::<Vec<i64>>().into(),
                locations: Vec::new().into(),
            },
            ..node.clone()
        };
        for (object, is_plain, kind) in [
            (&node, false, ObjectKind::Node),
            (&node, true, ObjectKind::Node),
            (&way, false, ObjectKind::Way),
        ] {
            let payload = payload(std::slice::from_ref(object), is_plain);
            let mut len = 0;
            while let Some(needed) = bytes_needed_for_first_kind(&payload[..len]) {
                assert!(needed > len);
                len = needed.min(payload.len());
            }
            assert_eq!(first_kind(&payload[..len]), Ok(kind));
            for short in 0..payload.len() {
                let found = first_kind(&payload[..short]);
                let needed = bytes_needed_for_first_kind(&payload[..short]);
                assert!(found == Ok(kind) || needed.is_some_and(|needed| needed > short));
            }
        }
    }

    #[test]
    fn an_empty_group_has_no_first_kind() {
        // A string table, and a group with a DenseNodes message without content.
        let empty = [0x0a, 0, 0x12, 2, 0x12, 0, 0x12, 4, 0x1a, 2, 8, 1];
        assert_eq!(first_kind(&empty), Err(Unread::Elsewhere));
        assert_eq!(first_kind(&[0x0a, 0, 0x12, 0]), Err(Unread::Elsewhere));
        assert_eq!(first_kind(&[0x12, 2, 0x12, 0]), Err(Unread::Elsewhere));
    }
}
