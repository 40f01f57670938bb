//! Writing objects as comma-separated values: attributes, a location, and tags.

use super::csv::CsvText;
use super::features::{Geometry, label_point, put_json_tags};
use super::object_lines::ObjectLines;
use super::text_buffer::TextBuffer;
use super::text_options::{TextOptions, Visibility, WayLocations};
use crate::geometry::Point;
use crate::osm::{Location, UniqueTags};
use crate::pbf::{InfoFields, Object, ObjectBody};

/// The metadata fields that have columns, and the names of the columns, in the order of the columns.
const METADATA: [(InfoFields, &str); 5] = [
    (InfoFields::VERSION, "version"),
    (InfoFields::TIMESTAMP, "timestamp"),
    (InfoFields::CHANGESET, "changeset"),
    (InfoFields::UID, "uid"),
    (InfoFields::USER, "user"),
];

/// Returns the row with the names of the columns. `visibility` tells which objects have the attribute `visible`. If all
/// objects have this attribute, it is a column.
///
/// # Errors
///
/// Two columns have the same name. The error is a message that describes the problem.
pub(super) fn csv_header(
    options: &TextOptions,
    visibility: Visibility,
) -> Result<TextBuffer, String> {
    let mut names = vec!["type", "id"];
    names.extend((visibility == Visibility::All).then_some("visible"));
    let written = METADATA
        .iter()
        .filter(|(field, _)| !options.without.contains(*field));
    names.extend(written.map(|(_, name)| *name));
    names.extend(["lon", "lat"]);
    match &options.tag_columns {
        Some(keys) => names.extend(keys.iter().map(String::as_str)),
        None => names.push("tags"),
    }
    let (mut csv, mut text) = (CsvText::new(), TextBuffer::new());
    csv.put_unique_column_names(&names)?;
    csv.move_to(&mut text);
    Ok(text)
}

/// A buffer of objects as rows. A row has neither the nodes of a way nor the members of a relation.
#[derive(Debug)]
pub(super) struct CsvRows {
    text: TextBuffer,
    csv: CsvText,
    without: InfoFields,
    has_visible: bool,
    way_locations: WayLocations,
    tag_columns: Option<Vec<String>>,
}

impl CsvRows {
    /// Creates an empty buffer for the rows below the header that [`csv_header`] returns for the same arguments.
    pub(super) fn new(options: &TextOptions, visibility: Visibility) -> Self {
        Self {
            text: TextBuffer::new(),
            csv: CsvText::new(),
            without: options.without,
            has_visible: visibility == Visibility::All,
            way_locations: options.way_locations,
            tag_columns: options.tag_columns.clone(),
        }
    }

    /// Appends the fields of the metadata. The field of an attribute that the object does not have is empty.
    fn put_metadata(&mut self, object: &Object<'_>) {
        let (csv, info, without) = (&mut self.csv, &object.info, self.without);
        let has = |field| !without.contains(field);
        if has(InfoFields::VERSION) {
            csv.put_integer(info.version.map(i64::from));
        }
        if has(InfoFields::TIMESTAMP) {
            csv.put_time(info.timestamp);
        }
        if has(InfoFields::CHANGESET) {
            csv.put_integer(info.changeset);
        }
        if has(InfoFields::UID) {
            csv.put_integer(info.uid.map(i64::from));
        }
        if has(InfoFields::USER) {
            csv.put_text(info.user);
        }
    }

    /// Returns the location of a node, or the point halfway along a way that has nodes and the locations of all of
    /// them. Returns `None` for other objects, and for all ways if `way_locations` is [`WayLocations::Never`].
    fn representative_point(&self, object: &Object<'_>) -> Option<Point> {
        match &object.body {
            ObjectBody::Node { location } => location.map(Point::from),
            ObjectBody::Way { locations, .. } if self.way_locations != WayLocations::Never => {
                let points = locations
                    .iter()
                    .map(|location: &Option<Location>| location.map(Point::from));
                let points: Vec<Point> = points.collect::<Option<_>>()?;
                (!points.is_empty()).then(|| label_point(&Geometry::LineString(&points)))
            }
            ObjectBody::Way { .. } | ObjectBody::Relation { .. } => None,
        }
    }
}

impl ObjectLines for CsvRows {
    /// Appends an object. Of several tags with the same key, the row has the first one.
    fn put(&mut self, object: &Object<'_>, _: bool) {
        let csv = &mut self.csv;
        csv.put_text(Some(object.kind().name()));
        csv.put_integer(Some(object.id));
        if self.has_visible {
            csv.put_text(Some(if object.info.visible { "true" } else { "false" }));
        }
        self.put_metadata(object);
        let place = self.representative_point(object);
        let csv = &mut self.csv;
        csv.put_degrees(place.map(|place| place.lon_e7));
        csv.put_degrees(place.map(|place| place.lat_e7));
        match &self.tag_columns {
            Some(keys) => {
                for wanted in keys {
                    let mut tags = object.tags.iter();
                    let found = tags.find(|(key, _)| key == wanted);
                    csv.put_text(found.map(|(_, value)| *value));
                }
            }
            None => {
                let tags: Vec<_> = UniqueTags::new(object.tags.iter().copied()).collect();
                csv.put_value(Some(tags.as_slice()), put_json_tags);
            }
        }
        csv.end_row();
        csv.move_to(&mut self.text);
    }

    fn text(&mut self) -> &mut TextBuffer {
        &mut self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::TextFormat;
    use crate::osm::ObjectKind;
    use crate::pbf::Info;

    #[test]
    fn a_row_has_attributes_location_and_tags() {
        let mut options = TextOptions::new(TextFormat::Csv);
        let object = Object {
            id: -3,
            info: Info {
                version: Some(2),
                user: Some("a, b"),
                ..Info::default()
            },
            tags: (&[("name", "x"), ("name", "y"), ("note", "say \"z\"")][..]).into(),
            body: ObjectBody::Node {
                location: Location::new(10_000_000, -25_000_000),
            },
        };
        assert_eq!(object.kind(), ObjectKind::Node);
        let rows = |options: &TextOptions, is_history| {
            let visibility = options.resolve_visibility(is_history);
            let mut rows = CsvRows::new(options, visibility);
            rows.put(&object, false);
            csv_header(options, visibility).map(|mut header| header.take() + &rows.text.take())
        };
        assert_eq!(
            rows(&options, false).unwrap(),
            "type,id,version,timestamp,changeset,uid,user,lon,lat,tags\n\
             node,-3,2,,,,\"a, b\",-2.5,1,\"{\"\"name\"\":\"\"x\"\",\"\"note\"\":\"\"say \\\"\"z\\\"\"\"\"}\"\n"
        );
        options.without = InfoFields::ALL;
        options.tag_columns = Some(vec!["note".into(), "name".into(), "ref".into()]);
        assert_eq!(
            rows(&options, true).unwrap(),
            "type,id,visible,lon,lat,note,name,ref\nnode,-3,true,-2.5,1,\"say \"\"z\"\"\",x,\n"
        );
        options.tag_columns = Some(vec!["type".into()]);
        assert!(rows(&options, false).unwrap_err().starts_with("type: "));
    }
}
