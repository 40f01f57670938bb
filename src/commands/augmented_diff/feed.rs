//! Augmented diffs as features: GeoJSON, GeoJSON text sequences, and Parquet. With them, another program can keep a
//! table of features current.

use super::action::{Action, Encoder};
use super::actions::for_each;
use super::features::StateFeatures;
use super::filter::Filter;
use super::find::Findings;
use super::states::State;
use super::{Base, Selection, Summary};
use crate::commands::export::KeptFeature;
use crate::error::Result;
use crate::formats::features::{ActionRow, ActionText, OwnedGeometry, OwnedTags};
#[cfg(feature = "parquet")]
use crate::formats::parquet::{ActionFacts, ActionTable, ParquetFile};
use crate::formats::{ChangeAction, TextOutput};
use crate::io::OutputTarget;
#[cfg(feature = "parquet")]
use crate::io::{OpenOutput, StreamOutput};

/// Builds the rows of actions.
pub(super) struct Rows {
    features: StateFeatures,
    rows: Vec<ActionRow>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            features: StateFeatures::new(false),
            rows: Vec::new(),
        }
    }
}

impl Encoder for Rows {
    type Part = Vec<ActionRow>;

    fn put(&mut self, action: &Action<'_>, findings: &Findings<'_>) {
        if let Some((old, new)) = self.features.of(action, findings) {
            self.rows.push(row(action, old, new));
        }
    }

    fn take(&mut self) -> Result<Vec<ActionRow>> {
        self.features.check()?;
        Ok(std::mem::take(&mut self.rows))
    }
}

/// Returns the row of an action. A state that is a feature has the tags that an export writes, and any other state has
/// all tags of the object.
fn row(action: &Action<'_>, old: Option<KeptFeature>, new: Option<KeptFeature>) -> ActionRow {
    let object = action.new.object;
    let info = &object.info;
    let of_object = |state: &State<'_>| -> OwnedTags {
        let tags = state.object.tags.iter();
        tags.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let parts = |feature: Option<KeptFeature>, state: Option<&State<'_>>| match feature {
        Some(feature) => (feature.tags, Some(feature.geometry)),
        None => (
            state.map_or_else(Vec::new, of_object),
            None::<OwnedGeometry>,
        ),
    };
    let is_deleted = action.kind == ChangeAction::Delete;
    let (old_tags, old_geometry) = parts(old, action.old.as_ref());
    let (new_tags, new_geometry) = parts(new, (!is_deleted).then_some(&action.new));
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
        old_version: action.old.as_ref().and_then(|old| old.object.info.version),
        old_tags,
        new_tags,
        old_geometry,
        new_geometry,
    }
}

/// Encodes actions as GeoJSON features.
struct Features {
    rows: Rows,
    text: ActionText,
    is_sequence: bool,
}

impl Encoder for Features {
    type Part = String;

    fn put(&mut self, action: &Action<'_>, findings: &Findings<'_>) {
        self.rows.put(action, findings);
    }

    fn take(&mut self) -> Result<String> {
        for (index, row) in self.rows.take()?.iter().enumerate() {
            if self.is_sequence {
                self.text.push('\u{1e}');
                self.text.put(row);
                self.text.push('\n');
            } else {
                if index > 0 {
                    self.text.push_str(",\n");
                }
                self.text.put(row);
            }
        }
        Ok(self.text.take())
    }
}

/// Writes all actions as GeoJSON features: one collection, or a text sequence.
pub(super) fn write_text(
    base: &Base<'_>,
    findings: &Findings<'_>,
    selection: &Selection,
    target: &OutputTarget,
    is_sequence: bool,
) -> Result<Summary> {
    let mut output = TextOutput::create(target.clone(), base.ctx)?;
    if !is_sequence {
        output.write("{\"type\":\"FeatureCollection\",\"features\":[\n")?;
    }
    let new_encoder = || Features {
        rows: Rows::new(),
        text: ActionText::new(),
        is_sequence,
    };
    let mut is_first = true;
    let filter = Filter::new(selection);
    let summary = for_each(base, findings, &filter, new_encoder, |text| {
        if text.is_empty() {
            return Ok(());
        }
        if !std::mem::take(&mut is_first) && !is_sequence {
            output.write(",\n")?;
        }
        output.write(&text)
    })?;
    if !is_sequence {
        output.write("\n]}\n")?;
    }
    base.ctx.stats.bytes_written.add(output.finish()?);
    Ok(summary)
}

/// A limited number of actions, as GeoJSON features.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ActionList {
    /// The features, each as a text, as in [`Output::GeoJson`](super::Output::GeoJson).
    pub features: Vec<String>,
    /// The number of actions of objects with a geometry, including those that are not in the list.
    pub total: u64,
}

/// Returns the first `most` actions of each kind among those with a geometry.
pub(super) fn list(base: &Base<'_>, findings: &Findings<'_>, most: usize) -> Result<ActionList> {
    /// The maximum number of points of all geometries in the list. One object may have a tenth of them.
    const LISTED_POINTS: usize = 200_000;
    let (mut found, mut counts, mut points) = (ActionList::default(), [0; 3], 0);
    let filter = Filter::new(&Selection::default());
    for_each(base, findings, &filter, Rows::new, |rows| {
        for row in rows.iter().filter(|row| row.extent().is_some()) {
            found.total += 1;
            let count = &mut counts[row.kind as usize];
            let geometries = row.old_geometry.iter().chain(&row.new_geometry);
            let more = geometries.map(OwnedGeometry::points).sum::<usize>();
            if *count < most && more <= LISTED_POINTS / 10 && points + more <= LISTED_POINTS {
                *count += 1;
                points += more;
                let mut text = ActionText::new();
                text.put(row);
                found.features.push(text.take());
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Writes all actions as a Parquet table.
#[cfg(feature = "parquet")]
pub(super) fn write_table(
    base: &Base<'_>,
    findings: &Findings<'_>,
    selection: &Selection,
    target: &OutputTarget,
) -> Result<Summary> {
    let output = StreamOutput::new(OpenOutput::open(target.clone(), base.ctx)?);
    let table = ActionTable::new()?;
    let (schema, properties) = (table.form.schema.clone(), table.form.properties.clone());
    let mut writer = TableWriter {
        file: ParquetFile::create(output, schema, properties)?,
        table,
        facts: ActionFacts::default(),
        rows: Vec::new(),
        points: 0,
    };
    let filter = Filter::new(selection);
    let summary = for_each(base, findings, &filter, Rows::new, |rows| writer.add(rows))?;
    writer.end_group()?;
    let metadata = writer.facts.metadata();
    let written = writer.file.finish(Some(("geo", metadata)))?.commit()?;
    base.ctx.stats.bytes_written.add(written);
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
}

#[cfg(feature = "parquet")]
impl TableWriter {
    /// The number of rows, and of points in their geometries, at which a row group ends.
    const MAX_ROWS: usize = 50_000;
    const MAX_POINTS: usize = 2_000_000;

    fn add(&mut self, rows: Vec<ActionRow>) -> Result<()> {
        for row in rows {
            self.facts.add(&row);
            let geometries = row.old_geometry.iter().chain(&row.new_geometry);
            self.points += geometries.map(OwnedGeometry::points).sum::<usize>();
            self.rows.push(row);
            if self.rows.len() >= Self::MAX_ROWS || self.points >= Self::MAX_POINTS {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        self.points = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        self.file.add(self.table.encode(&rows)?)
    }
}
