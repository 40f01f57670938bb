//! The values of the columns of features.

use super::columns::Values;
use super::derived::DerivedValues;
use super::facts::{TableFacts, degrees};
use super::row::{FeatureRow, GeometryBuffer, StoredTags};
use super::theme::ThemeValues;
use super::{AdminAreas, GeoParquetOptions, ThemeSet};
use crate::area::interior_point;
use crate::error::FormatError;
use crate::formats::features::{Geometry, put_wkb};
use crate::geometry::Extent;
use crate::osm::ObjectKind;
use bytes::Bytes;
use parquet::data_type::ByteArray;

/// The size in bytes at which a batch of rows ends.
const BATCH_BYTES: usize = 1 << 20;
/// The number of rows at which a batch ends. It is small, so that the values stay in a CPU cache.
const BATCH_ROWS: usize = 4096;

/// The size in bytes above which the tags of a row are counted before they are read, to reserve exactly the memory that
/// they need.
const MANY_TAGS: usize = 64 << 10;

/// The values of all columns for some rows, and facts about the rows.
pub(super) struct FeatureValues<'k> {
    pub kinds: Values<ByteArray>,
    pub ids: Values<i64>,
    pub versions: Values<i32>,
    /// The times of the versions in milliseconds since 1970.
    pub timestamps: Values<i64>,
    pub changesets: Values<i64>,
    pub uids: Values<i32>,
    pub users: Values<ByteArray>,
    pub keys: Values<ByteArray>,
    /// The values of tags.
    pub tags: Values<ByteArray>,
    /// The values of the tags that have a column of their own.
    pub tag_columns: Vec<Values<ByteArray>>,
    /// The boxes around the geometries: left, bottom, right, top.
    pub edges: [Values<f32>; 4],
    pub geometries: Values<ByteArray>,
    pub of_theme: ThemeValues<'k>,
    pub derived: DerivedValues,
    pub facts: TableFacts,
    /// The keys of the tags that have a column of their own.
    wanted: &'k [String],
    theme: usize,
    areas: Option<&'k AdminAreas>,
    buffer: GeometryBuffer,
}

impl<'k> FeatureValues<'k> {
    /// Creates an empty batch for rows of a theme.
    pub(super) fn new(
        options: &'k GeoParquetOptions,
        themes: &'k ThemeSet,
        areas: Option<&'k AdminAreas>,
        theme: usize,
    ) -> Self {
        let wanted = options.tag_columns.as_slice();
        Self {
            kinds: Values::default(),
            ids: Values::default(),
            versions: Values::default(),
            timestamps: Values::default(),
            changesets: Values::default(),
            uids: Values::default(),
            users: Values::default(),
            keys: Values::default(),
            tags: Values::default(),
            tag_columns: wanted.iter().map(|_| Values::default()).collect(),
            of_theme: ThemeValues::new(themes),
            derived: DerivedValues::new(options.derived),
            edges: Default::default(),
            geometries: Values::default(),
            facts: TableFacts::default(),
            wanted,
            theme,
            areas,
            buffer: GeometryBuffer::default(),
        }
    }

    fn clear(&mut self) {
        let Self {
            kinds,
            ids,
            versions,
            timestamps,
            changesets,
            uids,
            users,
            keys,
            tags,
            tag_columns,
            edges,
            geometries,
            of_theme,
            derived,
            facts,
            wanted: _,
            theme: _,
            areas: _,
            buffer: _,
        } = self;
        let texts = [kinds, users, keys, tags, geometries];
        texts.into_iter().chain(tag_columns).for_each(Values::clear);
        [ids, timestamps, changesets]
            .into_iter()
            .for_each(Values::clear);
        [versions, uids].into_iter().for_each(Values::clear);
        edges.iter_mut().for_each(Values::clear);
        of_theme.clear();
        derived.clear();
        *facts = TableFacts::default();
    }

    /// Replaces the values by the values of the next batch of rows. The rows must be slices of `bytes`, because the
    /// values share the memory of `bytes`. Returns the size of the strings and geometries in bytes.
    pub(super) fn read<'r>(
        &mut self,
        bytes: &'r Bytes,
        rows: &mut impl Iterator<Item = &'r [u8]>,
    ) -> Result<usize, FormatError> {
        self.clear();
        let kind = |kind: ObjectKind| ByteArray::from(Bytes::from_static(kind.name().as_bytes()));
        let (mut wkb, mut ends) = (Vec::new(), Vec::new());
        let mut len = 0;
        while len < BATCH_BYTES
            && ends.len() < BATCH_ROWS
            && let Some(row) = rows.next()
        {
            len += row.len();
            let row = FeatureRow::parse(row)?;
            self.kinds.values.push(kind(row.kind));
            self.add_row(&mut wkb, &row, bytes)?;
            ends.push(wkb.len());
        }
        len += wkb.len();
        let wkb = Bytes::from(wkb);
        let starts = [0].into_iter().chain(ends.iter().copied());
        let ranges = starts.zip(&ends);
        let geometries = ranges.map(|(start, end)| ByteArray::from(wkb.slice(start..*end)));
        self.geometries.values.extend(geometries);
        Ok(len)
    }

    /// Adds the values of a row except its kind. Appends its geometry to `wkb`.
    fn add_row(
        &mut self,
        wkb: &mut Vec<u8>,
        row: &FeatureRow<'_>,
        bytes: &Bytes,
    ) -> Result<(), FormatError> {
        let text = |text: &[u8]| ByteArray::from(bytes.slice_ref(text));
        self.ids.values.push(row.id);
        self.versions
            .push_optional(row.info.version.map(|version| version as i32));
        let milliseconds = |seconds: i64| seconds.saturating_mul(1000);
        self.timestamps
            .push_optional(row.info.timestamp.map(milliseconds));
        self.changesets.push_optional(row.info.changeset);
        self.uids.push_optional(row.info.uid);
        self.users.push_optional(row.info.user.map(text));
        self.facts.types.insert(row.geometry_type);
        let (geometry, tags) = row.geometry(&mut self.buffer)?;
        put_wkb(wkb, &geometry, None);
        let parents = || parents(self.areas, &geometry, row.kind, row.id, tags);
        let subject = (row.kind, &geometry);
        self.of_theme
            .add(self.theme, subject, tags, text, parents)?;
        let extent = geometry.extent();
        for (column, wanted) in self.tag_columns.iter_mut().zip(self.wanted) {
            // `flatten` skips errors, which the loop below reports.
            let found = tags.flatten().find(|(key, _)| *key == wanted.as_bytes());
            column.push_optional(found.map(|(_, value)| text(value)));
        }
        let start = self.tags.values.len();
        if tags.len() > MANY_TAGS {
            // Reserves exactly the memory that many tags need, because a list that doubles its capacity could use twice
            // as much.
            let count = tags.count();
            self.keys.reserve(count);
            self.tags.reserve(count);
        }
        for tag in tags {
            let (key, value) = tag?;
            self.derived.add_tag(key, value, text);
            self.keys.values.push(text(key));
            self.tags.values.push(text(value));
        }
        let count = self.tags.values.len() - start;
        self.keys.end_list(count);
        self.tags.end_list(count);
        self.derived.add(&geometry, self.areas);
        self.add_extent(extent.ok_or(FormatError::new("a geometry without points"))?);
        Ok(())
    }

    fn add_extent(&mut self, extent: Extent) {
        let edges = [
            below(extent.low.lon_e7),
            below(extent.low.lat_e7),
            above(extent.high.lon_e7),
            above(extent.high.lat_e7),
        ];
        for (column, edge) in self.edges.iter_mut().zip(edges) {
            column.values.push(edge);
        }
        let all = self.facts.extent;
        self.facts.extent = Some(all.map_or(extent, |all| all.and(&extent)));
    }
}

/// Returns the ids of the administrative areas around an area, countries first. If the area has a tag `admin_level`,
/// only areas with a lower admin level count.
fn parents(
    areas: Option<&AdminAreas>,
    geometry: &Geometry<'_>,
    kind: ObjectKind,
    id: i64,
    tags: StoredTags<'_>,
) -> Vec<i64> {
    let (Some(areas), Geometry::MultiPolygon(polygons)) = (areas, geometry) else {
        return Vec::new();
    };
    let level = tags.flatten().find(|(key, _)| *key == b"admin_level");
    let level = level.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
    let relation = (kind == ObjectKind::Relation).then_some(id);
    let place = interior_point(polygons);
    place.map_or_else(Vec::new, |place| areas.parents_at(place, relation, level))
}

/// The largest `f32` that is not above a coordinate.
pub(super) fn below(value_e7: i32) -> f32 {
    let exact = degrees(value_e7);
    let rounded = exact as f32;
    if f64::from(rounded) > exact {
        rounded.next_down()
    } else {
        rounded
    }
}

/// The smallest `f32` that is not below a coordinate.
pub(super) fn above(value_e7: i32) -> f32 {
    -below(-value_e7)
}
