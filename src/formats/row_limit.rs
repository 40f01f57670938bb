//! The limit on the size of a feature and of a table row.
//!
//! A small file can contain objects that take gigabytes when they are written: a relation that names a way a million
//! times, or an object with thousands of tags that share a long string. Tables address the values of a column with 31
//! bits, and the memory of a command must not depend on such objects.

use super::features::{Feature, Geometry};
use crate::osm::ObjectKind;
use crate::pbf::{Element, Info};
use crate::runtime::Context;
use std::fmt;

/// The maximum size in MB of a feature or of a row of a table. The size is the sum of the coordinates as WKB, the
/// strings and the lists. Larger features and rows are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowLimit(pub(crate) u64);

impl Default for RowLimit {
    fn default() -> Self {
        Self(64)
    }
}

impl fmt::Display for RowLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB", self.0)
    }
}

impl RowLimit {
    /// Returns the limit of a command that may use `max_memory` bytes: 64 MB for each GB, from 1 to 512 MB, because
    /// threads and the encoder of a table hold several copies of a row. `None` gives the default of 64 MB.
    pub(crate) fn of(max_memory: Option<u64>) -> Self {
        const BYTES_PER_MEGABYTE: u64 = 1_000_000_000 / 64;
        max_memory.map_or_else(Self::default, |bytes| {
            Self((bytes / BYTES_PER_MEGABYTE).clamp(1, 512))
        })
    }

    /// Whether a feature or a row of this size is allowed.
    pub(crate) const fn allows(self, bytes: u64) -> bool {
        bytes <= self.0 * 1_000_000
    }

    /// Whether a row with all parts of an object is within the limit. `payload_len` is the size in bytes of the block
    /// that holds the object.
    pub(crate) fn allows_object(self, element: &Element<'_>, payload_len: usize) -> bool {
        // First tries an upper bound of the size, in which each string is as long as the block. Most objects have so
        // few parts that the bound is within the limit. Their exact size need not be computed.
        let parts = element.part_count_bounds();
        let strings = (2 * parts.tags + parts.members + 1) as u64;
        let lists = PART * (parts.tags + 2 * parts.refs + parts.members) as u64;
        self.allows(lists + strings * payload_len as u64) || self.allows(object_size(element))
    }
}

/// The size in bytes of a point, of a tag without its strings, and of a member without its role.
pub(crate) const PART: u64 = 16;

/// Returns the size of tags in bytes.
pub(crate) fn tags_size<'t>(tags: impl Iterator<Item = (&'t str, &'t str)>) -> u64 {
    tags.map(|(key, value)| PART + (key.len() + value.len()) as u64)
        .sum()
}

/// Returns the size of the name of the user in bytes.
pub(crate) fn user_name_size(info: &Info<'_>) -> u64 {
    info.user.map_or(0, |user| user.len() as u64)
}

/// Returns the size of a feature in bytes.
pub(crate) fn feature_size(feature: &Feature<'_>) -> u64 {
    let line = |points: usize| (points as u64 + 1) * PART;
    let geometry = match feature.geometry {
        Geometry::Point(_) => PART,
        Geometry::LineString(points) => line(points.len()),
        Geometry::MultiLineString(lines) => lines.iter().map(|points| line(points.len())).sum(),
        Geometry::MultiPolygon(polygons) => {
            let rings = polygons.iter().flat_map(|polygon| polygon.rings());
            rings.map(|ring| line(ring.len())).sum()
        }
    };
    geometry + tags_size(feature.tags.iter().copied()) + user_name_size(&feature.info)
}

/// Returns the size of a row with all parts of an object, in bytes.
fn object_size(element: &Element<'_>) -> u64 {
    let lists: u64 = match element {
        Element::Node(_) => PART,
        Element::Way(way) => 2 * PART * way.refs().count() as u64,
        Element::Relation(relation) => {
            let roles = relation.members().map(|member| member.role.len() as u64);
            roles.map(|role| PART + role).sum()
        }
    };
    lists + tags_size(element.tags()) + user_name_size(&element.info())
}

/// The objects that were left out because their features or rows would be too large.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OversizedObjects {
    count: u64,
    first: Option<(ObjectKind, i64)>,
}

impl OversizedObjects {
    /// Adds an object.
    pub(crate) fn add(&mut self, kind: ObjectKind, id: i64) {
        self.count += 1;
        self.first.get_or_insert((kind, id));
    }

    /// Adds objects that come later in the input.
    pub(crate) fn extend(&mut self, later: &Self) {
        self.count += later.count;
        self.first = self.first.or(later.first);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Warns that the objects were left out, and names the first one. Does nothing if there are no objects.
    pub(crate) fn warn(&self, limit: RowLimit, ctx: &Context) {
        let Some((kind, id)) = self.first else {
            return;
        };
        let others = match self.count {
            1 => " is".to_owned(),
            2 => " and another object are".to_owned(),
            count => format!(" and {} other objects are", count - 1),
        };
        ctx.warn(format!(
            "{} {id}{others} left out: geometry and strings would take more than {limit}",
            kind.name()
        ));
    }
}
