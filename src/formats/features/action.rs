//! The rows of an augmented diff, with the geometries of features. Writes these rows as GeoJSON.

use super::OwnedGeometry;
use super::geojson::{put_geometry, put_string, put_tags};
use crate::formats::ChangeAction;
use crate::formats::numbers::{TimeFormatter, put_number};
use crate::formats::text_buffer::TextBuffer;
use crate::geometry::Extent;
use crate::osm::{DECIMICRO_PER_DEGREE, ObjectKind};

/// The tags of an object.
pub(crate) type OwnedTags = Vec<(String, String)>;

/// The effect of changes on an object.
#[derive(Debug, Clone)]
pub(crate) struct ActionRow {
    pub action: ChangeAction,
    /// Whether the object itself is unchanged, and only its nodes or members have changed.
    pub is_indirect: bool,
    pub kind: ObjectKind,
    pub id: i64,
    /// The changeset of the new version. The user id and the user name are those of the new version, too.
    pub changeset: Option<i64>,
    /// The time of the new version in seconds since 1970.
    pub timestamp: Option<i64>,
    pub uid: Option<i32>,
    pub user: Option<String>,
    pub new_version: Option<u32>,
    pub old_version: Option<u32>,
    /// The tags before the changes; `None` for a creation.
    pub old_tags: Option<OwnedTags>,
    /// The tags after the changes; `None` for a deletion.
    pub new_tags: Option<OwnedTags>,
    /// The geometry before the changes; `None` if the object was not a feature.
    pub old_geometry: Option<OwnedGeometry>,
    /// The geometry after the changes; `None` if the object is not a feature or was deleted.
    pub new_geometry: Option<OwnedGeometry>,
}

impl ActionRow {
    /// Returns the geometry that stands for the object on a map: the new one or, after a deletion, the old one.
    pub(crate) const fn shown_geometry(&self) -> Option<&OwnedGeometry> {
        match self.action {
            ChangeAction::Delete => self.old_geometry.as_ref(),
            ChangeAction::Create | ChangeAction::Modify => self.new_geometry.as_ref(),
        }
    }

    /// Returns the box around the old and the new geometry; `None` if the object has neither.
    pub(crate) fn extent(&self) -> Option<Extent> {
        let extent = |geometry: &Option<OwnedGeometry>| geometry.as_ref()?.view().extent();
        match (extent(&self.old_geometry), extent(&self.new_geometry)) {
            (Some(one), Some(other)) => Some(one.and(&other)),
            (one, other) => one.or(other),
        }
    }
}

/// A buffer of actions as features in GeoJSON, without separators. The geometry of a feature is the new one; after a
/// deletion, the old one. The properties are the other fields of the row.
#[derive(Debug)]
pub(crate) struct ActionText {
    text: TextBuffer,
    times: TimeFormatter,
}

impl ActionText {
    pub(crate) const fn new() -> Self {
        Self {
            text: TextBuffer::new(),
            times: TimeFormatter::new(),
        }
    }

    /// Removes and returns the text.
    pub(crate) fn take(&mut self) -> String {
        self.text.take()
    }

    /// Appends a text.
    pub(crate) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a character.
    pub(crate) fn push(&mut self, char: char) {
        self.text.push(char);
    }

    /// Appends an action.
    pub(crate) fn put(&mut self, row: &ActionRow) {
        let text = &mut self.text;
        text.push_str("{\"type\":\"Feature\"");
        if let Some(extent) = row.extent() {
            put_bbox(text, &extent);
        }
        text.push_str(",\"geometry\":");
        put_geometry_or_null(text, row.shown_geometry());
        text.push_str(",\"properties\":{\"action\":\"");
        text.push_str(row.action.name());
        text.push_str("\",\"indirect\":");
        text.push_str(if row.is_indirect { "true" } else { "false" });
        text.push_str(",\"type\":\"");
        text.push_str(row.kind.name());
        text.push_str("\",\"id\":");
        put_number(text, row.id);
        self.put_info(row);
        let text = &mut self.text;
        for (name, tags) in [("old_tags", &row.old_tags), ("new_tags", &row.new_tags)] {
            if let Some(tags) = tags {
                put_name(text, name);
                put_owned_tags(text, tags);
            }
        }
        if row.action == ChangeAction::Modify {
            put_name(text, "old_geometry");
            put_geometry_or_null(text, row.old_geometry.as_ref());
        }
        text.push_str("}}");
    }
}

impl ActionText {
    /// Appends the metadata of a row.
    fn put_info(&mut self, row: &ActionRow) {
        let text = &mut self.text;
        for (name, value) in [
            ("changeset", row.changeset),
            ("uid", row.uid.map(i64::from)),
            ("old_version", row.old_version.map(i64::from)),
            ("new_version", row.new_version.map(i64::from)),
        ] {
            if let Some(value) = value {
                put_name(text, name);
                put_number(text, value);
            }
        }
        if let Some(timestamp) = row.timestamp {
            put_name(text, "timestamp");
            text.push('"');
            self.times.put(text, timestamp);
            text.push('"');
        }
        if let Some(user) = &row.user {
            put_name(text, "user");
            put_string(text, user);
        }
    }
}

fn put_bbox(text: &mut TextBuffer, Extent { low, high }: &Extent) {
    let mut separator = ",\"bbox\":[";
    for edge in [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7] {
        text.push_str(separator);
        text.push_str(&(f64::from(edge) / DECIMICRO_PER_DEGREE as f64).to_string());
        separator = ",";
    }
    text.push(']');
}

fn put_name(text: &mut TextBuffer, name: &str) {
    text.push_str(",\"");
    text.push_str(name);
    text.push_str("\":");
}

fn put_owned_tags(text: &mut TextBuffer, tags: &[(String, String)]) {
    let tags: Vec<(&str, &str)> = tags
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    put_tags(text, &tags);
}

fn put_geometry_or_null(text: &mut TextBuffer, geometry: Option<&OwnedGeometry>) {
    match geometry {
        Some(geometry) => put_geometry(text, &geometry.view()),
        None => text.push_str("null"),
    }
}
