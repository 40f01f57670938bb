//! Augmented diffs as features: GeoJSON, GeoJSON text sequences, CSV, and Parquet. Another program can use them to keep
//! a table of features up to date.

use super::Summary;
use super::action::{Action, Encoder, LeftOut, SendPart};
use super::actions::{ActionSource, encode_actions};
use super::filter::Filter;
use super::find::Findings;
use super::state_geometries::{GeometryPair, geometries_of};
use crate::commands::export::ObjectGeometries;
use crate::engine::geometry_pass::is_area;
use crate::error::Result;
use crate::formats::csv::CsvText;
use crate::formats::features::{
    ACTION_CSV, ActionRow, ActionText, ActionView, EditGroup, EditGroups, GroupBy, OwnedGeometry,
    OwnedTags, put_table_header, put_table_row,
};
#[cfg(feature = "parquet")]
use crate::formats::parquet::{ActionFacts, ActionTable, ParquetFile};
use crate::formats::row_limit::{PART, tags_size, user_name_size};
use crate::formats::{ChangeAction, FeatureFormat, TextOutput};
use crate::io::OutputTarget;
#[cfg(feature = "parquet")]
use crate::io::{OpenOutput, StreamOutput};
use crate::osm::{ObjectId, ObjectKind, UniqueTags};
use crate::pbf::{Info, Object};
use std::borrow::Cow;
use std::convert::identity;

/// Builds the rows of actions. `encode` turns rows into a part of an output.
struct Rows<F> {
    geometries: ObjectGeometries,
    /// Whether rows have all tags of objects, including the tag `type` of areas.
    has_all_tags: bool,
    rows: Vec<ActionRow>,
    /// The size in bytes of the rows.
    bytes: u64,
    left_out: LeftOut,
    encode: F,
}

/// Finds the actions for an output of features. Builds their rows, and calls `take` with the encoded parts of the rows,
/// in order. `new_encode` creates the encoder of a thread. With [`Selection::whole_objects`], rows have all tags of
/// objects, and objects without tags have geometries, too.
pub(super) fn encode_rows<T: Send, F: FnMut(Vec<ActionRow>) -> T + Send>(
    source: ActionSource<'_>,
    new_encode: impl Fn() -> F + Sync,
    take: impl FnMut(T) -> Result<()>,
) -> Result<Summary> {
    let selection = source.selection;
    let new_rows = || Rows {
        geometries: ObjectGeometries::new(selection.whole_objects),
        has_all_tags: selection.whole_objects,
        rows: Vec::new(),
        bytes: 0,
        left_out: LeftOut::default(),
        encode: new_encode(),
    };
    let filter = Filter::of_features(selection);
    encode_actions(source, &filter, new_rows, take)
}

/// Returns a function that leaves rows as they are. If [`encode_rows`] gets `unencoded_rows` as its argument
/// `new_encode`, `take` gets the rows themselves.
fn identity_row_encoder() -> fn(Vec<ActionRow>) -> Vec<ActionRow> {
    identity
}

impl<T: Send, F: FnMut(Vec<ActionRow>) -> T> Encoder for Rows<F> {
    type Part = T;

    fn put(
        &mut self,
        action: &Action<'_>,
        findings: &Findings<'_>,
        _: &SendPart<'_, T>,
    ) -> Result<()> {
        let geometries = geometries_of(action, findings, &mut self.geometries);
        let size = row_size(action, &geometries);
        if findings.row_limit.allows(size) {
            self.bytes += size_of::<ActionRow>() as u64 + size;
            let knows_deletions = findings.history.has_deletion_metadata();
            let row = self.row_of(action, geometries, knows_deletions);
            self.rows.push(row);
        } else {
            let object = action.new.object;
            self.left_out.oversized.add(object.kind(), object.id);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.bytes as usize
    }

    fn take(&mut self) -> Result<T> {
        self.bytes = 0;
        Ok((self.encode)(std::mem::take(&mut self.rows)))
    }

    fn take_left_out(&mut self) -> LeftOut {
        std::mem::take(&mut self.left_out)
    }
}

impl<F> Rows<F> {
    /// Returns the row of an action. The row of a deletion has metadata only if the changes record the metadata of
    /// deletions.
    fn row_of(
        &mut self,
        action: &Action<'_>,
        (old, new): GeometryPair,
        knows_deletions: bool,
    ) -> ActionRow {
        let object = action.new.object;
        let is_deleted = action.kind == ChangeAction::Delete;
        let info = if is_deleted && !knows_deletions {
            &Info::EMPTY
        } else {
            &object.info
        };
        let new_object = (!is_deleted).then_some(object);
        let old_object = action.old.as_ref().map(|old| old.object);
        // An export leaves out the tag `type` of a relation that is an area. An action leaves it out of the old and the
        // new tags if the last state of the relation has the tags of an area. This holds even if the area cannot be
        // assembled. Otherwise, a relation whose area breaks would seem to get the tag.
        let is_area = new_object.or(old_object).is_some_and(is_relation_area);
        let without_type = is_area && !self.has_all_tags;
        let mut tags = |object: Option<&Object<'_>>| {
            object.map(|object| self.owned_tags(object, without_type))
        };
        ActionRow {
            action: action.kind,
            is_indirect: action.is_indirect,
            kind: object.kind(),
            id: object.id,
            changeset: info.changeset,
            timestamp: info.timestamp,
            uid: info.uid,
            user: info.user.map(str::to_owned),
            new_version: info.version,
            old_version: old_object.and_then(|old| old.info.version),
            old_tags: tags(old_object),
            new_tags: tags(new_object),
            old_geometry: old,
            new_geometry: new,
        }
    }

    /// Returns the tags of an object as an export writes them: of several tags with the same key, only the first one.
    fn owned_tags(&mut self, object: &Object<'_>, without_type: bool) -> OwnedTags {
        let mut unique = UniqueTags::new(object.tags.iter().copied());
        let tags = unique
            .by_ref()
            .filter(|(key, _)| !(without_type && *key == "type"))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        self.left_out.repeated_keys += unique.repeated();
        tags
    }
}

/// Returns the size in bytes of the row of an action. All tags count, even those that the row leaves out.
fn row_size(action: &Action<'_>, (old, new): &GeometryPair) -> u64 {
    let states = action.old.iter().chain([&action.new]);
    let tags = states.map(|state| tags_size(state.object.tags.iter().copied()));
    let geometries = old.iter().chain(new);
    let points = geometries.map(|geometry| geometry.point_count() as u64 * PART);
    user_name_size(&action.new.object.info) + tags.sum::<u64>() + points.sum::<u64>()
}

/// Whether an object is a relation that is an area.
fn is_relation_area(object: &Object<'_>) -> bool {
    object.kind() == ObjectKind::Relation && is_area(object.tags.iter().copied())
}

/// The text format in which actions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FeedForm {
    /// A collection of GeoJSON features.
    Collection,
    /// A sequence of GeoJSON features (RFC 8142).
    Sequence,
    /// Comma-separated values.
    Csv,
}

impl FeedForm {
    /// Returns the text before the first action, the text between two encoded parts, and the text after the last
    /// action.
    fn frame(self) -> [Cow<'static, str>; 3] {
        match self {
            Self::Collection => FeatureFormat::GeoJson
                .prologue_separator_epilogue()
                .map(Cow::Borrowed),
            Self::Sequence => [""; 3].map(Cow::Borrowed),
            Self::Csv => {
                let mut csv = CsvText::new();
                put_table_header(&mut csv, &ACTION_CSV);
                [csv.take().into(), "".into(), "".into()]
            }
        }
    }

    /// Returns rows as text.
    fn encode(self, rows: &[ActionRow], text: &mut ActionText, csv: &mut CsvText) -> String {
        for (index, row) in rows.iter().enumerate() {
            match self {
                Self::Csv => put_table_row(csv, &ACTION_CSV, &ActionView(row)),
                Self::Sequence => {
                    text.push('\u{1e}');
                    text.put(row);
                    text.push('\n');
                }
                Self::Collection => {
                    if index > 0 {
                        text.push_str(",\n");
                    }
                    text.put(row);
                }
            }
        }
        match self {
            Self::Csv => csv.take(),
            Self::Collection | Self::Sequence => text.take(),
        }
    }
}

/// Writes all actions as text.
pub(super) fn write_text(
    source: ActionSource<'_>,
    target: &OutputTarget,
    form: FeedForm,
) -> Result<Summary> {
    let [before, between, after] = form.frame();
    let ctx = source.base.source.ctx;
    let mut output = TextOutput::create(target.clone(), ctx)?;
    output.write(&before)?;
    let new_encode = || {
        let (mut text, mut csv) = (ActionText::new(), CsvText::new());
        move |rows: Vec<ActionRow>| form.encode(&rows, &mut text, &mut csv)
    };
    let mut is_first = true;
    let summary = encode_rows(source, new_encode, |text| {
        if text.is_empty() {
            return Ok(());
        }
        if !std::mem::take(&mut is_first) {
            output.write(&between)?;
        }
        output.write(&text)
    })?;
    output.write(&after)?;
    ctx.stats.bytes_written.add(output.finish()?);
    Ok(summary)
}

/// The maximum memory in bytes for the changes from which [`list`] makes an [`ActionList`]. The limit can be low,
/// because the list shows only a few of these changes.
pub(super) const MAX_CHANGES: u64 = 256 << 20;

/// Actions as GeoJSON features, up to the number that a page can hold.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ActionList {
    /// The features, each as a text, as in [`Output::GeoJson`](super::Output::GeoJson).
    pub features: Vec<String>,
    /// The number of all actions.
    pub total: u64,
}

/// Returns as many actions as fit on a page. Objects with tags come before objects without tags. Large geometries are
/// left out.
pub(super) fn list(source: ActionSource<'_>) -> Result<ActionList> {
    /// The maximum number of points of all geometries in the list. A single action may have at most a tenth of them.
    const LISTED_POINTS: usize = 400_000;
    /// The maximum number of bytes of all features in the list. A single feature may have at most a tenth of them.
    const LISTED_BYTES: usize = 40 << 20;
    let mut found = ActionList::default();
    let mut untagged = Vec::new();
    let (mut points, mut bytes) = (0, 0);
    encode_rows(source, identity_row_encoder, |rows: Vec<_>| {
        for mut row in rows {
            found.total += 1;
            let geometries = row.old_geometry.iter().chain(&row.new_geometry);
            let more = geometries.map(OwnedGeometry::point_count).sum::<usize>();
            if more > LISTED_POINTS / 10 || points + more > LISTED_POINTS {
                (row.old_geometry, row.new_geometry) = (None, None);
            } else {
                points += more;
            }
            let mut text = ActionText::new();
            text.put(&row);
            let feature = text.take();
            let is_short = feature.len() <= LISTED_BYTES / 10;
            let mut tags = row.old_tags.iter().chain(&row.new_tags).flatten();
            if is_short && tags.next().is_none() && untagged.len() < LISTED_BYTES / 500 {
                untagged.push(feature);
            } else if is_short && bytes + feature.len() <= LISTED_BYTES {
                bytes += feature.len();
                found.features.push(feature);
            }
        }
        Ok(())
    })?;
    for feature in untagged {
        bytes += feature.len();
        if bytes <= LISTED_BYTES {
            found.features.push(feature);
        }
    }
    Ok(found)
}

/// Returns the kinds and ids of the objects of all actions.
pub(super) fn ids(source: ActionSource<'_>) -> Result<Vec<ObjectId>> {
    let mut ids = Vec::new();
    let filter = Filter::of_features(source.selection);
    encode_actions(source, &filter, ActionIds::default, |keys| {
        ids.extend(keys);
        Ok(())
    })?;
    Ok(ids)
}

/// Collects the objects of actions.
#[derive(Default)]
struct ActionIds(Vec<ObjectId>);

impl Encoder for ActionIds {
    type Part = Vec<ObjectId>;

    fn put(
        &mut self,
        action: &Action<'_>,
        _: &Findings<'_>,
        _: &SendPart<'_, Self::Part>,
    ) -> Result<()> {
        let object = action.new.object;
        let (kind, id) = (object.kind(), object.id);
        self.0.push(ObjectId { kind, id });
        Ok(())
    }

    fn len(&self) -> usize {
        self.0.len() * size_of::<ObjectId>()
    }

    fn take(&mut self) -> Result<Vec<ObjectId>> {
        Ok(std::mem::take(&mut self.0))
    }
}

/// Groups the actions by user or by changeset. Returns the groups, and a summary with the numbers of actions.
pub(super) fn group(source: ActionSource<'_>, by: GroupBy) -> Result<(Vec<EditGroup>, Summary)> {
    let mut groups = EditGroups::new(by);
    let summary = encode_rows(source, identity_row_encoder, |rows: Vec<_>| {
        rows.iter().for_each(|row| groups.add(row));
        Ok(())
    })?;
    Ok((groups.finish(), summary))
}

/// Writes all actions as a Parquet table.
#[cfg(feature = "parquet")]
pub(super) fn write_table(source: ActionSource<'_>, target: &OutputTarget) -> Result<Summary> {
    let ctx = source.base.source.ctx;
    let output = StreamOutput::new(OpenOutput::open(target.clone(), ctx)?);
    let table = ActionTable::new()?;
    let (schema, properties) = (table.form.schema.clone(), table.form.properties.clone());
    let mut writer = TableWriter {
        file: ParquetFile::create(output, schema, properties)?,
        table,
        facts: ActionFacts::default(),
        rows: Vec::new(),
        points: 0,
        bytes: 0,
    };
    let summary = encode_rows(source, identity_row_encoder, |rows| writer.add(rows))?;
    writer.end_group()?;
    let metadata = writer.facts.metadata();
    let written = writer.file.finish(Some(("geo", metadata)))?.commit()?;
    ctx.stats.bytes_written.add(written);
    Ok(summary)
}

/// Collects rows, and writes them as row groups.
#[cfg(feature = "parquet")]
struct TableWriter {
    file: ParquetFile,
    table: ActionTable,
    facts: ActionFacts,
    rows: Vec<ActionRow>,
    /// The number of points in the geometries of the rows.
    points: usize,
    /// The size of the tags and users of the rows in bytes.
    bytes: u64,
}

#[cfg(feature = "parquet")]
impl TableWriter {
    /// A row group ends when it reaches one of these limits: its rows, the points in their geometries, or the bytes of
    /// their tags and users.
    const MAX_ROWS: usize = 50_000;
    const MAX_POINTS: usize = 2_000_000;
    const MAX_BYTES: u64 = 64 << 20;

    /// Adds rows, and writes row groups that are full.
    fn add(&mut self, rows: Vec<ActionRow>) -> Result<()> {
        for row in rows {
            self.facts.add(&row);
            let geometries = row.old_geometry.iter().chain(&row.new_geometry);
            self.points += geometries.map(OwnedGeometry::point_count).sum::<usize>();
            let tags = row.old_tags.iter().chain(&row.new_tags).flatten();
            self.bytes += tags_size(tags.map(|(key, value)| (key.as_str(), value.as_str())));
            self.bytes += row.user.as_ref().map_or(0, String::len) as u64;
            self.rows.push(row);
            if self.rows.len() >= Self::MAX_ROWS
                || self.points >= Self::MAX_POINTS
                || self.bytes >= Self::MAX_BYTES
            {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        (self.points, self.bytes) = (0, 0);
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        self.file.add(self.table.encode(&rows)?)
    }
}
