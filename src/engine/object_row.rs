//! Encodes objects as rows, for sorting by keys other than ids. A row is a sequence of bytes that does not depend on
//! the string table or units of a block.

use crate::error::FormatError;
use crate::osm::{Location, ObjectKind};
use crate::pbf::wire::{put_sint, put_text, put_varint, read_varint, zigzag_decode};
use crate::pbf::{Info, Member, Object, ObjectBody, RowInfo, put_row_info};

const TRUNCATED: FormatError = FormatError::new("a row is cut off");

/// Appends an object to `out` as a row, which does not contain the object's kind.
pub(crate) fn put_object(object: &Object<'_>, out: &mut Vec<u8>) {
    put_sint(out, object.id);
    put_row_info(out, &object.info);
    put_varint(out, object.tags.len() as u64);
    for (key, value) in object.tags.iter() {
        put_text(out, key);
        put_text(out, value);
    }
    match &object.body {
        ObjectBody::Node { location } => put_location(*location, out),
        ObjectBody::Way { refs, locations } => {
            put_varint(out, refs.len() as u64);
            let mut last = 0;
            for id in refs.iter() {
                put_sint(out, id.wrapping_sub(last));
                last = *id;
            }
            put_varint(out, locations.len() as u64);
            locations
                .iter()
                .for_each(|location| put_location(*location, out));
        }
        ObjectBody::Relation { members } => {
            put_varint(out, members.len() as u64);
            for member in members.iter() {
                out.push(member.kind.number());
                put_sint(out, member.id);
                put_text(out, member.role);
            }
        }
    }
}

fn put_location(location: Option<Location>, out: &mut Vec<u8>) {
    let (lat, lon) = Location::stored_e7(location);
    out.extend_from_slice(&lat.to_le_bytes());
    out.extend_from_slice(&lon.to_le_bytes());
}

/// Decodes a row into `object`, which becomes an object of the kind `kind`. Reuses the allocations of the owned lists
/// in `object`.
pub(crate) fn read_object<'r>(
    kind: ObjectKind,
    row: &'r [u8],
    object: &mut Object<'r>,
) -> Result<(), FormatError> {
    let mut row = Row { row, at: 0 };
    object.id = row.sint()?;
    object.info = row.info()?;
    let tags = object.tags.cleared();
    for _ in 0..row.varint()? {
        tags.push((row.text()?, row.text()?));
    }
    object.make(kind);
    match &mut object.body {
        ObjectBody::Node { location } => *location = row.location()?,
        ObjectBody::Way { refs, locations } => {
            let (refs, locations) = (refs.cleared(), locations.cleared());
            let mut last = 0i64;
            for _ in 0..row.varint()? {
                last = last.wrapping_add(row.sint()?);
                refs.push(last);
            }
            for _ in 0..row.varint()? {
                locations.push(row.location()?);
            }
        }
        ObjectBody::Relation { members } => {
            let members = members.cleared();
            for _ in 0..row.varint()? {
                let kind = ObjectKind::from_number(u64::from(row.byte()?)).ok_or(TRUNCATED)?;
                let (id, role) = (row.sint()?, row.text()?);
                members.push(Member { kind, id, role });
            }
        }
    }
    Ok(())
}

struct Row<'r> {
    row: &'r [u8],
    at: usize,
}

impl<'r> Row<'r> {
    fn take(&mut self, len: usize) -> Result<&'r [u8], FormatError> {
        let rest = self.row.get(self.at..).ok_or(TRUNCATED)?;
        let bytes = rest.get(..len).ok_or(TRUNCATED)?;
        self.at += len;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, FormatError> {
        self.take(1)?.first().copied().ok_or(TRUNCATED)
    }

    fn varint(&mut self) -> Result<u64, FormatError> {
        read_varint(self.row, &mut self.at)
    }

    fn sint(&mut self) -> Result<i64, FormatError> {
        self.varint().map(zigzag_decode)
    }

    fn text(&mut self) -> Result<&'r str, FormatError> {
        let len = self.varint()? as usize;
        std::str::from_utf8(self.take(len)?).map_err(|_| TRUNCATED)
    }

    fn location(&mut self) -> Result<Option<Location>, FormatError> {
        let mut edge = || {
            let bytes = self.take(size_of::<i32>())?.first_chunk();
            bytes
                .map(|bytes| i32::from_le_bytes(*bytes))
                .ok_or(TRUNCATED)
        };
        Ok(Location::new(edge()?, edge()?))
    }

    fn info(&mut self) -> Result<Info<'r>, FormatError> {
        let mut rest = &self.row[self.at..];
        let info = RowInfo::take(&mut rest)?;
        self.at = self.row.len() - rest.len();
        info.to_info()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_back() {
        let info = Info {
            version: Some(7),
            timestamp: Some(1_700_000_000),
            changeset: Some(1 << 40),
            uid: Some(5),
            user: Some("ü"),
            visible: false,
        };
        let place = Location::new(-900_000_000, 1_800_000_000);
        let member = |kind, id, role| Member { kind, id, role };
        let mut located = Object::way(i64::MAX, vec![3, -1, i64::MIN], vec![]);
        if let ObjectBody::Way { locations, .. } = &mut located.body {
            *locations = vec![place, None, place].into();
        }
        let objects = [
            Object::node(-1, place, vec![("a", "b"), ("", "")]).with_info(info),
            Object::node(1, None, vec![]),
            located,
            Object::way(2, vec![], vec![("highway", "path")]),
            Object::relation(
                i64::MIN,
                vec![
                    member(ObjectKind::Node, 1, ""),
                    member(ObjectKind::Way, -5, "outer"),
                    member(ObjectKind::Relation, 9, "ß"),
                ],
                vec![],
            ),
        ];
        let mut rows = Vec::new();
        for object in &objects {
            let mut row = Vec::new();
            put_object(object, &mut row);
            rows.push((object.kind(), row));
        }
        // Reads all rows into the same object, in which no value of an earlier row may remain.
        let mut found = Object::node(0, None, vec![]);
        for (expected, (kind, row)) in objects.iter().zip(&rows) {
            read_object(*kind, row, &mut found).unwrap();
            assert_eq!(&found, expected);
            for end in 0..row.len() {
                let mut other = Object::node(0, None, vec![]);
                assert!(read_object(*kind, &row[..end], &mut other).is_err());
            }
        }
    }
}
