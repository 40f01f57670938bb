//! `diff --html`: shows the changes between two files on one page.

use super::charts::{ChangeCharts, Charts};
use super::{Format, Options, Summary, compare_sides, open_sides};
use crate::commands::pages;
use crate::error::{Result, path_without_credentials};
use crate::io::OutputTarget;
use crate::osm::ObjectKind;
use crate::runtime::Context;
use serde::Serialize;
use serde_json::value::RawValue;

const PAGE: &str = include_str!("page.html");

/// The data of the page.
#[derive(Serialize)]
struct Data {
    old: String,
    new: String,
    summary: Summary,
    charts: Charts,
    compared: Compared,
    objects: Option<Objects>,
    /// Whether only selected objects were compared.
    is_selection: bool,
    program: &'static str,
}

/// The objects that the page shows one by one.
#[derive(Debug, Clone, Serialize)]
pub struct Objects {
    /// GeoJSON features with the old and the new state, as [`augmented_diff`](crate::commands::augmented_diff) writes
    /// them.
    pub features: Vec<Box<RawValue>>,
    /// The number of all objects that changed or have a changed node or member.
    pub total: u64,
}

/// The kinds of objects that were compared, and whether metadata was compared. The counts of the other kinds are
/// unknown, not 0.
#[derive(Serialize)]
struct Compared {
    nodes: bool,
    ways: bool,
    relations: bool,
    metadata: bool,
}

impl Compared {
    fn of(options: &Options) -> Self {
        let has = |kind| options.kinds.contains(kind);
        let makes_changes = matches!(options.output, Some((Format::Osc(_), _)));
        Self {
            nodes: has(ObjectKind::Node),
            ways: has(ObjectKind::Way),
            relations: has(ObjectKind::Relation),
            metadata: options.equality.metadata || makes_changes,
        }
    }
}

/// Compares two files, and writes an HTML page about the changes. The page shows where, when and by whom objects were
/// changed, and which keys changed. It contains its data as JSON and loads no other resource. Also writes
/// [`Options::output`].
///
/// Reads both files as [`run`](super::run) does, and then reads again the blobs that may contain the middle node of a
/// changed way. Calls `list` with the counts to get the objects that the page shows one by one. Returns the counts.
///
/// # Memory
///
/// As [`run`](super::run), plus 16 bytes for each way that changed (at most 128 MB), and up to 400,000 keys and users.
///
/// # Errors
///
/// - As [`run`](super::run).
/// - The page exists and must not be overwritten, or cannot be written.
pub fn write(
    options: &Options,
    list: impl FnOnce(&Summary) -> Result<Option<Objects>>,
    page: OutputTarget,
    ctx: &Context,
) -> Result<Summary> {
    page.check()?;
    ctx.expect_phases(3);
    let sides = open_sides(options, ctx)?;
    let (found, counts) = compare_sides::<ChangeCharts>(options, &sides, ctx)?;
    let charts = counts.finish(&sides, ctx)?;
    let summary = found.summary;
    let data = Data {
        old: path_without_credentials(&options.old).into_owned(),
        new: path_without_credentials(&options.new).into_owned(),
        summary,
        charts,
        compared: Compared::of(options),
        objects: list(&summary)?,
        is_selection: options.only.is_some(),
        program: pages::PROGRAM,
    };
    pages::write(PAGE, &data, page, ctx)?;
    Ok(summary)
}
