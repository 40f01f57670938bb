//! Encodes objects as rows, for sorting by keys other than ids. A row is a sequence of bytes that does not depend on
//! the string table or units of a block.

use crate::error::{FormatError, FormatResult};
use crate::osm::{Location, ObjectKind};
use crate::pbf::wire::{Varints, put_sint, put_text, put_varint};
use crate::pbf::{Member, Object, ObjectBody, RowInfo, put_row_info};

const NO_KIND: FormatError = FormatError::new("a row has a member of no kind");

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
    let (lat, lon) = Location::lat_lon_e7_or_undefined(location);
    out.extend_from_slice(&lat.to_le_bytes());
    out.extend_from_slice(&lon.to_le_bytes());
}

/// Reads the object of a row into `object`. [`put_object`] must have written the row, and `kind` must be the kind of
/// its object. Reuses the allocations of the owned lists in `object`.
pub(crate) fn read_object<'r>(
    kind: ObjectKind,
    row: &mut Varints<'r>,
    object: &mut Object<'r>,
) -> FormatResult<()> {
    object.id = row.read_sint()?;
    object.info = RowInfo::read(row)?.to_info()?;
    let tags = object.tags.cleared_vec();
    for _ in 0..row.read()? {
        tags.push((row.read_str()?, row.read_str()?));
    }
    object.set_kind(kind);
    match &mut object.body {
        ObjectBody::Node { location } => *location = read_location(row)?,
        ObjectBody::Way { refs, locations } => {
            let (refs, locations) = (refs.cleared_vec(), locations.cleared_vec());
            let mut last = 0i64;
            for _ in 0..row.read()? {
                last = last.wrapping_add(row.read_sint()?);
                refs.push(last);
            }
            for _ in 0..row.read()? {
                locations.push(read_location(row)?);
            }
        }
        ObjectBody::Relation { members } => {
            let members = members.cleared_vec();
            for _ in 0..row.read()? {
                let kind = ObjectKind::from_number(row.read()?).ok_or(NO_KIND)?;
                let (id, role) = (row.read_sint()?, row.read_str()?);
                members.push(Member { kind, id, role });
            }
        }
    }
    Ok(())
}

fn read_location(row: &mut Varints<'_>) -> FormatResult<Option<Location>> {
    let [lat, lon] = [row.read_array()?, row.read_array()?].map(i32::from_le_bytes);
    Ok(Location::new(lat, lon))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::Info;

    #[test]
    fn a_row_decodes_to_its_object() {
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
            read_object(*kind, &mut Varints::new(row), &mut found).unwrap();
            assert_eq!(&found, expected);
            for end in 0..row.len() {
                let mut other = Object::node(0, None, vec![]);
                let mut cut = Varints::new(&row[..end]);
                assert!(read_object(*kind, &mut cut, &mut other).is_err());
            }
        }
    }
}
