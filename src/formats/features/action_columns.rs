//! The columns of augmented diffs.

use super::action::{ActionRow, OwnedTags};
use super::{OwnedGeometry, put_wkb};
use crate::formats::ChangeAction;
use crate::formats::table::{ColumnGetter, OsmRow, RowType, TableColumn, TagPairs};
use crate::geometry::Point;
use crate::osm::{Edges, ObjectKind};
use crate::pbf::Info;

/// The effect of changes on an object. The geometries are those that an [`export`](crate::commands::export) to a table
/// has by default.
#[derive(Debug, Clone, Copy)]
pub struct ActionView<'a>(pub(crate) &'a ActionRow);

impl<'a> ActionView<'a> {
    /// Returns the kind of the effect.
    pub const fn action(&self) -> ChangeAction {
        self.0.action
    }

    /// Whether the object itself is unchanged, and only its nodes or members have changed.
    pub const fn is_indirect(&self) -> bool {
        self.0.is_indirect
    }

    /// Returns the kind of the object.
    pub const fn kind(&self) -> ObjectKind {
        self.0.kind
    }

    /// Returns the id of the object.
    pub const fn id(&self) -> i64 {
        self.0.id
    }

    /// Returns the metadata of the new version. For a deletion, this is the version that deleted the object.
    pub fn info(&self) -> Info<'a> {
        Info {
            version: self.0.new_version,
            timestamp: self.0.timestamp,
            changeset: self.0.changeset,
            uid: self.0.uid,
            user: self.0.user.as_deref(),
            visible: self.0.action != ChangeAction::Delete,
        }
    }

    /// Returns the version that the object had before the changes; `None` for a creation, or if the version is unknown.
    pub const fn old_version(&self) -> Option<u32> {
        self.0.old_version
    }

    /// Returns the tags that the object had before the changes, as pairs of a key and a value; `None` for a creation.
    pub fn old_tags(&self) -> Option<impl Iterator<Item = (&'a str, &'a str)> + use<'a>> {
        tag_pairs(&self.0.old_tags)
    }

    /// Returns the tags that the object has after the changes, as pairs of a key and a value; `None` for a deletion.
    pub fn new_tags(&self) -> Option<impl Iterator<Item = (&'a str, &'a str)> + use<'a>> {
        tag_pairs(&self.0.new_tags)
    }

    /// Appends the geometry that the object had before the changes, as WKB (OGC 06-103r4). The coordinates are in
    /// degrees, longitude first. Returns `false` if the object was not a feature.
    pub fn put_old_wkb(&self, out: &mut Vec<u8>) -> bool {
        put_wkb_if_present(self.0.old_geometry.as_ref(), out)
    }

    /// Appends the geometry that the object has after the changes, in the same form as
    /// [`put_old_wkb`](Self::put_old_wkb). Returns `false` if the object is not a feature or was deleted.
    pub fn put_new_wkb(&self, out: &mut Vec<u8>) -> bool {
        put_wkb_if_present(self.0.new_geometry.as_ref(), out)
    }

    /// Returns the box around the old and the new geometry, in units of 1e-7 degree; `None` if there is neither.
    pub fn edges(&self) -> Option<Edges<i32>> {
        self.0.extent().map(|extent| extent.edges())
    }

    /// Returns the centre of the box around the geometry that stands for the object on a map.
    fn centre(&self) -> Option<Point> {
        let extent = self.0.shown_geometry()?.view().extent()?;
        Some(extent.centre())
    }
}

fn tag_pairs(tags: &Option<OwnedTags>) -> Option<TagPairs<'_>> {
    tags.as_ref().map(|tags| TagPairs::Owned(tags.iter()))
}

fn put_wkb_if_present(geometry: Option<&OwnedGeometry>, out: &mut Vec<u8>) -> bool {
    geometry
        .inspect(|geometry| put_wkb(out, &geometry.view(), None))
        .is_some()
}

impl OsmRow for ActionView<'_> {
    fn kind(&self) -> ObjectKind {
        self.kind()
    }

    fn id(&self) -> i64 {
        self.id()
    }

    fn info(&self) -> Info<'_> {
        self.info()
    }

    fn tags(&self) -> TagPairs<'_> {
        tag_pairs(&self.0.new_tags).unwrap_or(TagPairs::Owned([].iter()))
    }
}

/// The rows of an augmented diff.
#[derive(Clone, Copy)]
pub struct ActionRows;

impl RowType for ActionRows {
    type Row<'r> = ActionView<'r>;
}

type ActionColumn = TableColumn<ActionRows>;

const ACTION: ActionColumn =
    ActionColumn::required("action", ColumnGetter::Name(|row| row.action().name()));
const INDIRECT: ActionColumn =
    ActionColumn::required("indirect", ColumnGetter::Bool(|row| row.is_indirect()));
const OLD_VERSION: ActionColumn = ActionColumn::optional(
    "old_version",
    ColumnGetter::Int32(|row| row.old_version().map(|version| version as i32)),
);
const NEW_VERSION: ActionColumn = ActionColumn::VERSION.named("new_version");
const OLD_TAGS: ActionColumn = ActionColumn::optional(
    "old_tags",
    ColumnGetter::Tags(|row| tag_pairs(&row.0.old_tags)),
);
const NEW_TAGS: ActionColumn = ActionColumn::optional(
    "new_tags",
    ColumnGetter::Tags(|row| tag_pairs(&row.0.new_tags)),
);

/// The columns of an augmented diff in a Parquet table.
#[cfg(any(feature = "parquet", feature = "unstable"))]
pub const ACTION_COLUMNS: [ActionColumn; 15] = {
    use ColumnGetter::{Bbox, Geometry};
    [
        ACTION,
        ActionColumn::TYPE,
        ActionColumn::ID,
        INDIRECT,
        ActionColumn::CHANGESET,
        ActionColumn::TIMESTAMP,
        ActionColumn::UID,
        ActionColumn::USER,
        OLD_VERSION,
        NEW_VERSION,
        OLD_TAGS,
        NEW_TAGS,
        ActionColumn::optional("bbox", Bbox(|row| row.edges())),
        ActionColumn::optional("old_geometry", Geometry(|row, out| row.put_old_wkb(out))),
        ActionColumn::optional("new_geometry", Geometry(|row, out| row.put_new_wkb(out))),
    ]
};

/// The columns of an augmented diff in comma-separated values. The location is the centre of the box around the new
/// geometry or, after a deletion, around the old one. Tags are JSON objects.
pub(crate) const ACTION_CSV: [ActionColumn; 14] = {
    use ColumnGetter::Degrees;
    [
        ACTION,
        ActionColumn::TYPE,
        ActionColumn::ID,
        INDIRECT,
        OLD_VERSION,
        NEW_VERSION,
        ActionColumn::USER,
        ActionColumn::UID,
        ActionColumn::CHANGESET,
        ActionColumn::TIMESTAMP,
        ActionColumn::optional("lon", Degrees(|row| Some(row.centre()?.lon_e7))),
        ActionColumn::optional("lat", Degrees(|row| Some(row.centre()?.lat_e7))),
        OLD_TAGS,
        NEW_TAGS,
    ]
};

/// Whether a file begins with the column names of [`ACTION_CSV`].
pub(crate) fn is_action_csv(start: &[u8]) -> bool {
    let names = ACTION_CSV.map(|column| column.name);
    start.starts_with(names.join(",").as_bytes())
}
