//! Checksums of objects and changesets. A checksum is the CRC-32 of the attributes in binary form, as in osmium.

use super::changesets::Changeset;
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Object, ObjectBody};
use crc32fast::Hasher;

/// The coordinate of an undefined location, in units of 1e-7 degree.
const NOWHERE: i32 = i32::MAX;

/// Adds an object to a checksum. The checksum of a file is the result of adding its objects one after the other.
pub(crate) fn add_object(sum: &mut Hasher, object: &Object<'_>) {
    let info = &object.info;
    sum.update(&object.id.to_le_bytes());
    sum.update(&[u8::from(info.visible)]);
    sum.update(&info.version.unwrap_or(0).to_le_bytes());
    sum.update(&time_bytes(info.timestamp));
    sum.update(&(info.uid.unwrap_or(0) as u32).to_le_bytes());
    sum.update(info.user.unwrap_or("").as_bytes());
    for (key, value) in &object.tags {
        sum.update(key.as_bytes());
        sum.update(value.as_bytes());
    }
    match &object.body {
        ObjectBody::Node { location } => add_location(sum, *location),
        ObjectBody::Way { refs, locations } => {
            for (index, id) in refs.iter().enumerate() {
                sum.update(&id.to_le_bytes());
                add_location(sum, locations.get(index).copied().flatten());
            }
        }
        ObjectBody::Relation { members } => {
            for member in members {
                sum.update(&member.id.to_le_bytes());
                let kind: u16 = match member.kind {
                    ObjectKind::Node => 1,
                    ObjectKind::Way => 2,
                    ObjectKind::Relation => 3,
                };
                sum.update(&kind.to_le_bytes());
                sum.update(member.role.as_bytes());
            }
        }
    }
}

/// Adds a changeset to a checksum.
pub(crate) fn add_changeset(sum: &mut Hasher, changeset: &Changeset) {
    sum.update(&changeset.id.to_le_bytes());
    sum.update(&time_bytes(changeset.created));
    sum.update(&time_bytes(changeset.closed));
    let edges = changeset
        .bbox
        .as_ref()
        .map(|bbox| bbox.edges_e7().into_array());
    for edge in edges.unwrap_or([NOWHERE; 4]) {
        sum.update(&edge.to_le_bytes());
    }
    sum.update(&(changeset.changes as u32).to_le_bytes());
    sum.update(&(changeset.comments_count as u32).to_le_bytes());
    sum.update(&(changeset.uid.unwrap_or(0) as u32).to_le_bytes());
    sum.update(changeset.user.as_bytes());
    for (key, value) in &changeset.tags {
        sum.update(key.as_bytes());
        sum.update(value.as_bytes());
    }
    for comment in &changeset.comments {
        sum.update(&time_bytes(comment.date));
        sum.update(&(comment.uid.unwrap_or(0) as u32).to_le_bytes());
        sum.update(comment.user.as_bytes());
        sum.update(comment.text.as_bytes());
    }
}

fn time_bytes(seconds: Option<i64>) -> [u8; 4] {
    (seconds.unwrap_or(0) as u32).to_le_bytes()
}

fn add_location(sum: &mut Hasher, location: Option<Location>) {
    let (lat_e7, lon_e7) = Location::lat_lon_e7_or_undefined(location);
    sum.update(&lon_e7.to_le_bytes());
    sum.update(&lat_e7.to_le_bytes());
}
