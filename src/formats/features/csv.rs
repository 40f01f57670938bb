//! Writes features as comma-separated values: attributes, a location, and columns of tags.

use super::feature_id::FeatureId;
#[cfg(feature = "parquet")]
use super::label_point::centroid;
use super::label_point::label_point;
use super::options::{Attribute, FeatureFormat, FeatureOptions, UniqueId};
use super::{Feature, geojson, wkt};
#[cfg(feature = "parquet")]
use crate::formats::DerivedColumns;
use crate::formats::csv::CsvText;
#[cfg(feature = "parquet")]
use crate::formats::derived_columns::{h3_cell, language_of_key};
use crate::formats::text_buffer::TextBuffer;
#[cfg(feature = "parquet")]
use std::fmt::Write as _;

/// The names of the columns with the location of a feature.
const PLACE: [&str; 2] = ["@lon", "@lat"];
/// The name of the column with the geometry.
const GEOMETRY: &str = "@geometry";
/// The name of the column with all tags.
const TAGS: &str = "tags";
/// The key of the tag that has a column of its own in addition to the column with all tags.
const NAME: &str = "name";

/// Returns the row with the names of the columns.
///
/// # Errors
///
/// Two columns have the same name. The error is a message that describes the problem.
pub(super) fn header_row(options: &FeatureOptions) -> Result<String, String> {
    let mut names = Vec::new();
    names.extend((options.unique_id != UniqueId::None).then_some("id"));
    names.extend(options.attributes.iter().map(|(_, name)| name));
    names.extend(PLACE);
    names.extend(has_geometry(options).then_some(GEOMETRY));
    #[cfg(feature = "parquet")]
    names.extend(options.derived.names());
    match &options.tag_columns {
        Some(keys) => names.extend(keys.iter().map(String::as_str)),
        None => names.extend([NAME, TAGS]),
    }
    let mut csv = CsvText::new();
    csv.put_unique_column_names(&names)?;
    Ok(csv.take())
}

/// Whether there is a column with the geometry.
const fn has_geometry(options: &FeatureOptions) -> bool {
    matches!(options.format, FeatureFormat::Csv { has_geometry: true })
}

/// Appends the row of a feature. `csv` is an empty buffer, and is empty again afterwards.
pub(super) fn put_row(
    text: &mut TextBuffer,
    csv: &mut CsvText,
    feature: &Feature<'_>,
    options: &FeatureOptions,
    id: Option<FeatureId<'_>>,
) {
    match id {
        None => {}
        // The row begins with the number of the feature. The number is inserted later, before the first comma of the
        // row.
        Some(FeatureId::Number(positions)) => {
            positions.push(text.len());
            csv.put_text(None);
        }
        Some(id) => csv.put_value(Some(id), |out, id| id.put(out, feature, "")),
    }
    for (attribute, _) in options.attributes.iter() {
        put_attribute(csv, feature, attribute);
    }
    let place = label_point(&feature.geometry);
    csv.put_degrees(Some(place.lon_e7));
    csv.put_degrees(Some(place.lat_e7));
    if has_geometry(options) {
        csv.put_value(Some(&feature.geometry), wkt::put_geometry);
    }
    #[cfg(feature = "parquet")]
    put_derived_columns(csv, feature, options.derived);
    let tag = |wanted: &str| {
        let found = feature.tags.iter().find(|(key, _)| *key == wanted);
        found.map(|(_, value)| *value)
    };
    match &options.tag_columns {
        Some(keys) => keys.iter().for_each(|key| csv.put_text(tag(key))),
        None => {
            csv.put_text(tag(NAME));
            csv.put_value(Some(feature.tags), geojson::put_tags);
        }
    }
    csv.end_row();
    csv.move_to(text);
}

/// Appends the fields of computed columns, in the order of [`DerivedColumns::names`].
#[cfg(feature = "parquet")]
fn put_derived_columns(csv: &mut CsvText, feature: &Feature<'_>, wanted: DerivedColumns) {
    let geometry = &feature.geometry;
    let number = |out: &mut TextBuffer, value: f64| {
        let _ = write!(out, "{value}");
    };
    if wanted.names {
        let names = feature.tags.iter().filter_map(|(key, value)| {
            let code = language_of_key(key.as_bytes())?;
            Some((std::str::from_utf8(code).ok()?, *value))
        });
        csv.put_value(
            Some(names.collect::<Vec<_>>().as_slice()),
            geojson::put_tags,
        );
    }
    if wanted.area {
        csv.put_value(geometry.area_m2(), number);
    }
    if wanted.length {
        csv.put_value(geometry.length_m(), number);
    }
    if wanted.centroid {
        centroid(geometry)
            .into_iter()
            .for_each(|edge| csv.put_value(Some(edge), number));
    }
    if wanted.country {
        csv.put_text(None);
    }
    let centre = geometry.extent().map(|extent| extent.centre());
    for resolution in wanted.h3_resolutions() {
        let cell = centre.and_then(|centre| h3_cell(resolution, centre));
        csv.put_text(cell.map(|cell| cell.to_string()).as_deref());
    }
}

/// Appends the field of an attribute. The field of an unknown attribute is empty.
fn put_attribute(csv: &mut CsvText, feature: &Feature<'_>, attribute: Attribute) {
    let info = &feature.info;
    match attribute {
        Attribute::Type => csv.put_text(Some(feature.kind.name())),
        Attribute::Id => csv.put_integer(Some(feature.id)),
        Attribute::Version => csv.put_integer(info.version.map(i64::from)),
        Attribute::Changeset => csv.put_integer(info.changeset),
        Attribute::Uid => csv.put_integer(info.uid.map(i64::from)),
        Attribute::User => csv.put_text(info.user),
        Attribute::Timestamp => csv.put_time(info.timestamp),
        Attribute::WayNodes => csv.put_value(feature.way_nodes, geojson::put_ids),
    }
}
