//! `apply-changes`: applies change files to a sorted file.
//!
//! A blob whose id range contains no changed id is copied. The other blobs are decoded as far as needed to find the
//! changed ids, and a blob that contains a changed object is spliced on the wire.

mod edit;
mod locations;
mod steps;

use crate::engine::headers::HeaderOptions;
use crate::engine::input;
use crate::engine::sink::Sink;
use crate::error::{Error, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, WriteOptions, Written};
use crate::formats::{ChangeSet, read_change_files};
use crate::io::{OutputTarget, SizeHint};
use crate::osm::{NANO_PER_DECIMICRO, ObjectKind, format_timestamp};
use crate::pbf::{BlobFlags, HeaderBlock, feature};
use crate::runtime::Context;
use edit::{Applied, Editor, Rules, Tally};
use locations::Locations;
pub use locations::UntaggedNodes;
use serde::Serialize;
use std::path::PathBuf;
use steps::{ApplyStep, plan_steps};

/// What to apply to what, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The base: a sorted file.
    pub base: PathBuf,
    /// Change files, in order.
    pub changes: Vec<PathBuf>,
    /// Where the result goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
    /// Whether the ways have the coordinates of their nodes, and keep them, and what that means for nodes.
    pub locations_on_ways: Option<UntaggedNodes>,
}

/// What `apply-changes` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The file that was written.
    pub written: Written,
    /// Objects that had changes.
    pub changes: u64,
    /// Objects that were not in the base and are now.
    pub created: u64,
    /// Objects that were replaced.
    pub modified: u64,
    /// Objects that are gone.
    pub deleted: u64,
    /// Changes that did nothing, because the base had a newer version.
    pub outdated: u64,
    /// Deletions that did nothing, because the base did not have the object.
    pub absent: u64,
    /// Blobs that were copied as they were.
    pub blobs_copied: u64,
    /// Blobs of the base that hold something else now.
    pub blobs_rewritten: u64,
    /// Number of the last change file contained, as far as it is known.
    pub replication_sequence: Option<i64>,
    /// Time up to which changes are contained, as far as it is known.
    pub replication_timestamp: Option<String>,
    /// The fate of the box in the header.
    pub header_box: HeaderBox,
    /// What became of the coordinates in ways, where they are kept.
    pub locations: Option<LocationsSummary>,
}

/// What became of the coordinates in ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LocationsSummary {
    /// Ways that were not changed and have other coordinates, because their nodes moved.
    pub ways_moved: u64,
    /// References of changed ways, and of ways whose nodes are gone, to nodes of which nobody says where they are.
    pub missing_references: u64,
    /// New or changed nodes that were left out, because the base has no nodes that only ways need.
    pub nodes_left_out: u64,
    /// Nodes that relations now refer to, and that the base was made without.
    pub members_missing: u64,
}

/// Applies.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(if options.locations_on_ways.is_some() {
        4
    } else {
        1
    });
    let file = input::open_to_copy(&options.base, &options.write, ctx)?;
    if options.output.path() == options.base && input::is_text(&file) {
        let cause = "this is a text file: a PBF cannot take its place; give another output";
        return Err(Error::file(&options.base, cause));
    }
    if file.header.has(feature::HISTORY) {
        return Err(Error::file(
            &options.base,
            "this is a history file; changes can be applied to current data only",
        ));
    }
    let mut changes = {
        let _phase = ctx.phase("read changes", 0);
        read_change_files(&options.changes, ctx)?
    };
    let scratch = options.output.scratch_directory();
    let (file, plan) = input::in_order(file, &options.write, &scratch, ctx)?;
    check_base(&file, &plan)?;
    let has_locations = plan.any(BlobFlags::LOCATIONS) || file.header.has(feature::LOCATIONS);
    let locations = match options.locations_on_ways {
        Some(untagged) => Some(Locations::find(&file, &plan, &changes, untagged, ctx)?),
        None => None,
    };
    if has_locations && locations.is_none() {
        ctx.warn(format!(
            "{}: ways carry locations, which are not kept: the output has none \
             (--locations-on-ways keeps them up to date)",
            options.base.display()
        ));
    }
    let rules = Rules {
        drops_locations: has_locations && locations.is_none(),
        locations,
    };
    let (header, header_box) = output_header(&file.header, &changes, options);
    let steps = plan_steps(&plan, &changes, |entry| rules.rewrites(entry));
    let run = Run {
        options,
        file: &file,
        ctx,
    };
    let summary = run.write(header, steps, &mut changes, rules, &plan)?;
    Ok(Summary {
        header_box,
        ..summary
    })
}

/// Fails if the base contains deleted versions, or an object that two blobs share.
fn check_base(file: &PbfFile, plan: &BlobPlan) -> Result<()> {
    let path = file.input.path();
    if plan.any(BlobFlags::DELETED) {
        let cause = "the file holds deleted versions; changes can be applied to current data only";
        return Err(Error::file(path, cause));
    }
    if let Some(entry) = plan.first_continued() {
        let cause = format!(
            "an object comes twice: blob {} begins with the one that ended the blob before; \
             changes can be applied to current data only",
            entry.number
        );
        return Err(Error::file(path, cause));
    }
    Ok(())
}

/// The effect of the changes on the bounding box in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderBox {
    /// The box is unchanged, or the header has none.
    #[default]
    Kept,
    /// The box was widened: nodes of the changes lie outside of it.
    Widened,
    /// The box was removed: it crosses the 180th meridian, and nodes of the changes lie outside of it.
    Dropped,
}

/// Widens the box in the header to contain the nodes of the changes: programs that clip to the box would lose them.
/// Removes a box that crosses the 180th meridian and does not contain them.
fn widen_box(header: &mut HeaderBlock, changes: &ChangeSet) -> HeaderBox {
    let Some([left, right, top, bottom]) = header.bbox_nano else {
        return HeaderBox::Kept;
    };
    let nano = |e7: i32| i64::from(e7) * NANO_PER_DECIMICRO;
    let nodes = changes
        .changes()
        .iter()
        .filter(|change| change.key.0 == ObjectKind::Node);
    let locations = nodes.filter_map(ChangeSet::location);
    let locations = locations.map(|at| (nano(at.lat_e7()), nano(at.lon_e7())));
    let mut wide = [left, right, top, bottom];
    for (lat, lon) in locations {
        let [left, right, top, bottom] = wide;
        if header
            .bbox_nano
            .is_some_and(|[left, right, ..]| left > right)
        {
            let is_inside = (bottom..=top).contains(&lat) && (lon >= left || lon <= right);
            if !is_inside {
                header.bbox_nano = None;
                return HeaderBox::Dropped;
            }
        } else {
            wide = [left.min(lon), right.max(lon), top.max(lat), bottom.min(lat)];
        }
    }
    match header.bbox_nano.replace(wide) == Some(wide) {
        true => HeaderBox::Kept,
        false => HeaderBox::Widened,
    }
}

/// The header of the output, which is that of the base with the replication state of the changes, and the effect of the
/// changes on its box.
fn output_header(
    base: &HeaderBlock,
    changes: &ChangeSet,
    options: &Options,
) -> (HeaderBlock, HeaderBox) {
    let mut header = base.clone();
    header.set_optional(feature::SORTED, true);
    match options.locations_on_ways {
        Some(_) => header.set_optional(feature::LOCATIONS, true),
        None => header.set_locations(None),
    }
    let replication = changes.replication();
    // An older change file that is applied late does not set the replication state back.
    header.replication_sequence = header.replication_sequence.max(replication.sequence);
    header.replication_timestamp = header.replication_timestamp.max(replication.timestamp);
    if let Some(url) = &changes.document_header().replication_url {
        header.replication_url = Some(url.clone());
    }
    let header_box = widen_box(&mut header, changes);
    options.header.apply(&mut header);
    (header, header_box)
}

/// The input and the options of a run.
struct Run<'r> {
    options: &'r Options,
    file: &'r PbfFile,
    ctx: &'r Context,
}

impl Run<'_> {
    fn write(
        &self,
        header: HeaderBlock,
        mut steps: Vec<ApplyStep>,
        changes: &mut ChangeSet,
        mut rules: Rules,
        plan: &BlobPlan,
    ) -> Result<Summary> {
        let (options, ctx) = (self.options, self.ctx);
        let size_hint = steps
            .iter()
            .map(ApplyStep::size_hint)
            .fold(SizeHint::default(), SizeHint::and);
        let replication_sequence = header.replication_sequence;
        let replication_timestamp = header.replication_timestamp.map(format_timestamp);
        let target = options.output.clone();
        let mut sink = Sink::create(target, header, options.write, size_hint, ctx)?;
        let mut tally = Tally::default();
        if rules.locations.is_some() {
            // Nodes are written before ways, since only then it is known which changes of nodes are older than the
            // base.
            let ways = steps.partition_point(|step| step.is_nodes(changes));
            let ways = steps.split_off(ways);
            let nodes = std::mem::replace(&mut steps, ways);
            self.apply(nodes, changes, &rules, &mut tally, &mut sink)?;
        }
        if let Some(locations) = &mut rules.locations {
            let outdated = std::mem::take(&mut tally.outdated_nodes);
            locations.forget(outdated, self.file, plan, ctx)?;
            locations.locate(changes);
        }
        self.apply(steps, changes, &rules, &mut tally, &mut sink)?;
        if tally.locations_dropped > 0 {
            ctx.warn(format!(
                "{} ways lost their locations",
                tally.locations_dropped
            ));
        }
        let summary = sink.finish()?;
        Ok(Summary {
            written: summary.written,
            changes: changes.changes().len() as u64,
            created: tally.created,
            modified: tally.modified,
            deleted: tally.deleted,
            outdated: tally.outdated,
            absent: tally.absent,
            blobs_copied: summary.blobs_copied,
            blobs_rewritten: summary.blobs_rewritten + tally.blobs_joined,
            replication_sequence,
            replication_timestamp,
            header_box: HeaderBox::Kept,
            locations: rules.locations.map(|locations| LocationsSummary {
                ways_moved: tally.ways_moved,
                missing_references: tally.missing_references,
                nodes_left_out: tally.left_out,
                members_missing: locations.omitted.map_or(0, |omitted| omitted.lost),
            }),
        })
    }

    /// Applies the changes of some steps and writes their outcomes.
    fn apply<'f>(
        &'f self,
        steps: Vec<ApplyStep>,
        changes: &ChangeSet,
        rules: &Rules,
        tally: &mut Tally,
        sink: &mut Sink<'f>,
    ) -> Result<()> {
        let input = &self.file.input;
        BlobPass::new("apply", input, self.ctx).run(
            steps,
            || Editor::new(changes, self.options.write, rules),
            |reader, editor, step| editor.apply(reader, &step),
            |(outcomes, counts)| {
                tally.add(counts);
                match outcomes {
                    Applied::Blobs(outcomes) => {
                        let mut outcomes = outcomes.into_iter();
                        outcomes.try_for_each(|outcome| sink.add(input, outcome))
                    }
                    Applied::Joined(frames, blobs) => {
                        tally.blobs_joined += blobs;
                        sink.append(frames)
                    }
                    Applied::Inserted(frames) => sink.append(frames),
                }
            },
        )
    }
}
