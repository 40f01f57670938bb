//! Sums up the changes of each user, or of each changeset, in one row.

use super::action::ActionRow;
use crate::formats::ChangeAction;
use crate::formats::table::{ColumnGetter, RowType, TableColumn};
use crate::geometry::Extent;
use crate::osm::{DECIMICRO_PER_DEGREE, ObjectKind, format_timestamp};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The property by which changes are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The name of the user of the new version.
    User,
    /// The changeset of the new version.
    Changeset,
}

/// The numbers of changes in a group, and the time and place of the changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EditGroup {
    /// The user; `None` if unknown. For example, a comparison of two files does not tell who deleted an object.
    pub user: Option<String>,
    /// The id of the user.
    pub uid: Option<i32>,
    /// The changeset; `None` if it is unknown, or if changes are grouped by user.
    pub changeset: Option<i64>,
    /// The number of changesets.
    pub changesets: u64,
    /// The number of all changes.
    pub changes: u64,
    /// The number of created objects.
    pub created: u64,
    /// The number of modified objects.
    pub modified: u64,
    /// The number of deleted objects.
    pub deleted: u64,
    /// The number of changed nodes.
    pub nodes: u64,
    /// The number of changed ways.
    pub ways: u64,
    /// The number of changed relations.
    pub relations: u64,
    /// The earliest time of a new version, in seconds since 1970.
    #[serde(serialize_with = "as_text")]
    pub first: Option<i64>,
    /// The latest time of a new version, in seconds since 1970.
    #[serde(serialize_with = "as_text")]
    pub last: Option<i64>,
    /// The box around all old and new geometries, as west, south, east and north in degrees.
    pub bbox: Option<[f64; 4]>,
}

/// Serializes a time as text.
fn as_text<S: Serializer>(seconds: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    seconds.map(format_timestamp).serialize(serializer)
}

/// The changes of a group so far.
#[derive(Default)]
struct GroupTotals {
    user: Option<String>,
    uid: Option<i32>,
    changesets: BTreeSet<i64>,
    actions: [u64; 3],
    kinds: [u64; 3],
    times: Option<(i64, i64)>,
    extent: Option<Extent>,
}

/// Collects the groups of changes.
pub(crate) struct EditGroups {
    by: GroupBy,
    totals: BTreeMap<(Option<String>, Option<i64>), GroupTotals>,
}

impl EditGroups {
    pub(crate) const fn new(by: GroupBy) -> Self {
        Self {
            by,
            totals: BTreeMap::new(),
        }
    }

    /// Adds a change.
    pub(crate) fn add(&mut self, row: &ActionRow) {
        let key = match (self.by, &row.user) {
            (GroupBy::User, Some(user)) => (Some(user.clone()), None),
            (GroupBy::User, None) => (None, row.uid.map(i64::from)),
            (GroupBy::Changeset, _) => (None, row.changeset),
        };
        let totals = self.totals.entry(key).or_default();
        totals.user = totals.user.take().or_else(|| row.user.clone());
        totals.uid = totals.uid.or(row.uid);
        totals.changesets.extend(row.changeset);
        let action = match row.action {
            ChangeAction::Create => 0,
            ChangeAction::Modify => 1,
            ChangeAction::Delete => 2,
        };
        totals.actions[action] += 1;
        totals.kinds[row.kind as usize] += 1;
        if let Some(time) = row.timestamp {
            let (first, last) = totals.times.unwrap_or((time, time));
            totals.times = Some((first.min(time), last.max(time)));
        }
        if let Some(extent) = row.extent() {
            let all = totals.extent.map_or(extent, |all| all.and(&extent));
            totals.extent = Some(all);
        }
    }

    /// Returns the groups, those with the most changes first. Groups with equally many changes are ordered by name or
    /// changeset.
    pub(crate) fn finish(self) -> Vec<EditGroup> {
        let by = self.by;
        let mut groups: Vec<EditGroup> = self
            .totals
            .into_values()
            .map(|totals| totals.into_edit_group(by))
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.changes));
        groups
    }
}

impl GroupTotals {
    fn into_edit_group(self, by: GroupBy) -> EditGroup {
        let [created, modified, deleted] = self.actions;
        let [nodes, ways, relations] =
            ObjectKind::ALL.map(|kind| self.kinds.get(kind as usize).copied().unwrap_or(0));
        let degrees = |e7: i32| f64::from(e7) / DECIMICRO_PER_DEGREE as f64;
        EditGroup {
            user: self.user,
            uid: self.uid,
            changeset: self
                .changesets
                .first()
                .copied()
                .filter(|_| by == GroupBy::Changeset),
            changesets: self.changesets.len() as u64,
            changes: created + modified + deleted,
            created,
            modified,
            deleted,
            nodes,
            ways,
            relations,
            first: self.times.map(|(first, _)| first),
            last: self.times.map(|(_, last)| last),
            bbox: self.extent.map(|Extent { low, high }| {
                [low.lon_e7, low.lat_e7, high.lon_e7, high.lat_e7].map(degrees)
            }),
        }
    }
}

/// The rows of a table of groups.
#[derive(Clone, Copy)]
pub(crate) struct EditGroupRows;

impl RowType for EditGroupRows {
    type Row<'r> = &'r EditGroup;
}

type GroupColumn = TableColumn<EditGroupRows>;

/// The columns of a table of groups.
pub(crate) const EDIT_GROUP_COLUMNS: [GroupColumn; 17] = {
    use ColumnGetter::{Double, Int32, Int64, Text, Time};
    [
        GroupColumn::optional("user", Text(|group| group.user.as_deref())),
        GroupColumn::optional("uid", Int32(|group| group.uid)),
        GroupColumn::optional("changeset", Int64(|group| group.changeset)),
        GroupColumn::required("changesets", Int64(|group| Some(group.changesets as i64))),
        GroupColumn::required("changes", Int64(|group| Some(group.changes as i64))),
        GroupColumn::required("created", Int64(|group| Some(group.created as i64))),
        GroupColumn::required("modified", Int64(|group| Some(group.modified as i64))),
        GroupColumn::required("deleted", Int64(|group| Some(group.deleted as i64))),
        GroupColumn::required("nodes", Int64(|group| Some(group.nodes as i64))),
        GroupColumn::required("ways", Int64(|group| Some(group.ways as i64))),
        GroupColumn::required("relations", Int64(|group| Some(group.relations as i64))),
        GroupColumn::optional("first", Time(|group| group.first)),
        GroupColumn::optional("last", Time(|group| group.last)),
        GroupColumn::optional("min_lon", Double(|group| Some(group.bbox?[0]))),
        GroupColumn::optional("min_lat", Double(|group| Some(group.bbox?[1]))),
        GroupColumn::optional("max_lon", Double(|group| Some(group.bbox?[2]))),
        GroupColumn::optional("max_lat", Double(|group| Some(group.bbox?[3]))),
    ]
};

impl EditGroup {
    /// Returns the group as a feature of GeoJSON, whose geometry is the box.
    pub(crate) fn to_geojson(&self) -> Value {
        let geometry = self.bbox.map(|[west, south, east, north]| {
            if [west, south] == [east, north] {
                return json!({"type": "Point", "coordinates": [west, south]});
            }
            let corners = [
                [west, south],
                [east, south],
                [east, north],
                [west, north],
                [west, south],
            ];
            json!({"type": "Polygon", "coordinates": [corners]})
        });
        let mut properties = json!(self);
        if let Some(properties) = properties.as_object_mut() {
            properties.remove("bbox");
        }
        let mut feature = json!({
            "type": "Feature", "geometry": geometry, "properties": properties
        });
        if let (Some(bbox), Some(feature)) = (self.bbox, feature.as_object_mut()) {
            feature.insert("bbox".to_owned(), json!(bbox));
        }
        feature
    }
}
