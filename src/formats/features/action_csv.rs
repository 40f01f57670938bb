//! Rows of an augmented diff as comma-separated values.

use super::action::{ActionRow, OwnedTags};
use super::geojson::put_tags;
use crate::formats::csv::CsvText;
use crate::geometry::Extent;

/// The names of the columns. A place is that of a point, and otherwise the middle of the box around the new geometry,
/// or after a deletion the old one. Tags are JSON objects.
const COLUMNS: [&str; 14] = [
    "action",
    "type",
    "id",
    "indirect",
    "old_version",
    "new_version",
    "user",
    "uid",
    "changeset",
    "timestamp",
    "lon",
    "lat",
    "old_tags",
    "new_tags",
];

/// Appends the row with the names of the columns of actions.
pub(crate) fn put_action_header(csv: &mut CsvText) {
    csv.header(&COLUMNS);
}

/// Whether a file begins with the names of the columns of actions.
pub(crate) fn is_action_csv(start: &[u8]) -> bool {
    start.starts_with(COLUMNS.join(",").as_bytes())
}

/// Appends the row of an action.
pub(crate) fn put_action_row(csv: &mut CsvText, row: &ActionRow) {
    csv.text(Some(row.action.name()));
    csv.text(Some(row.kind.name()));
    csv.number(Some(row.id));
    csv.text(Some(if row.is_indirect { "true" } else { "false" }));
    csv.number(row.old_version.map(i64::from));
    csv.number(row.new_version.map(i64::from));
    csv.text(row.user.as_deref());
    csv.number(row.uid.map(i64::from));
    csv.number(row.changeset);
    csv.time(row.timestamp);
    let extent = row.shown().and_then(|geometry| geometry.view().extent());
    let place = extent.as_ref().map(Extent::centre);
    csv.degrees(place.map(|place| place.lon_e7));
    csv.degrees(place.map(|place| place.lat_e7));
    for tags in [&row.old_tags, &row.new_tags] {
        csv.value(tags.as_ref(), |text, tags: &OwnedTags| {
            let tags = tags
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()));
            put_tags(text, &tags.collect::<Vec<_>>());
        });
    }
    csv.end_row();
}
