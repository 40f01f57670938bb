//! `synth`: generates a deterministic, realistic data set, and change files whose effect is known.
//!
//! The world consists of towns. Each town depends on the seed and its number alone, so that towns can be
//! generated in any order, on every core, in bounded memory. The seed also decides on which day an object
//! changes. The state after any number of days can therefore be generated directly, and must equal the base
//! with the change files of these days applied.

mod changes;
mod names;
mod town;
mod world;

use crate::engine::OutputOptions;
use crate::engine::sink::Sink;
use crate::error::{Error, Result};
use crate::file::Written;
use crate::io::{OutputTarget, SizeHint};
use crate::osm::ObjectKind;
use crate::pbf::{FrameEncoder, HeaderBlock, feature};
use crate::runtime::{Context, parallel_classify_phase};
pub use changes::DaySummary;
use serde::Serialize;
use std::path::PathBuf;
use town::Town;
use world::World;

/// The options of `synth`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The approximate number of objects in the base.
    pub elements: u64,
    /// The seed: the same seed gives the same bytes.
    pub seed: u64,
    /// The number of days of changes that the output contains; 0 gives the base.
    pub day: u32,
    /// The output: where it goes, how it is written, and its header.
    pub output: OutputOptions,
    /// The number of daily change files to write, and their directory; `None` for no change files.
    pub changes: Option<(u32, PathBuf)>,
}

impl Options {
    /// The options with what is required. The seed is 1, and there are no changes.
    pub fn new(elements: u64, output: OutputOptions) -> Self {
        Self {
            elements,
            seed: 1,
            day: 0,
            output,
            changes: None,
        }
    }
}

setters!(Options {
    seed: u64,
    day: u32,
    changes: Option<(u32, PathBuf)>,
});

/// The maximum number of days of changes: no object changes after that day.
pub const MAX_DAYS: u32 = world::DAYS;

/// The result of `synth`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The output.
    pub written: Written,
    /// The number of towns in the base.
    pub towns: u64,
    /// The change files, in the order of their days.
    pub days: Vec<DaySummary>,
}

/// The number of towns per work item. Each item ends its last block, so that few towns would give small blocks.
const TOWNS_PER_ITEM: u64 = 8;

/// Generates a data set and its change files.
///
/// Reads nothing. Writes one PBF file, in canonical order, and after it the change files and their state files into a
/// directory, which is created if it does not exist. Change files may be overwritten if the output may.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and with [`Options::changes`] all changed objects of all days.
///
/// # Errors
///
/// - The output or a change file exists and may not be overwritten, or cannot be written; the directory cannot be
///   created ([details](crate::commands#errors)).
/// - There are more than [`MAX_DAYS`] days.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let days = options.changes.as_ref().map_or(0, |(days, _)| *days);
    if days.max(options.day) > MAX_DAYS {
        return Err(Error::Usage(format!(
            "a synthetic world has at most {MAX_DAYS} days"
        )));
    }
    let world = World::new(options.seed, options.elements);
    let written = write_state(options, &world, ctx)?;
    let mut summary = Summary {
        written,
        towns: world.towns(),
        days: Vec::new(),
    };
    if let Some((days, directory)) = &options.changes {
        let overwrite = matches!(
            options.output.target,
            OutputTarget::File {
                overwrite: true,
                ..
            }
        );
        summary.days = changes::write_days(&world, *days, directory, overwrite, ctx)?;
    }
    Ok(summary)
}

/// A work item: the objects of a kind in a run of [`TOWNS_PER_ITEM`] towns of the base, with the index of the run; or
/// the objects of a kind that all towns create on one day.
#[derive(Debug, Clone, Copy)]
enum WorkItem {
    Towns(ObjectKind, u64),
    Created(ObjectKind, u32),
}

fn write_state(options: &Options, world: &World, ctx: &Context) -> Result<Written> {
    let mut header = HeaderBlock::default();
    header.set_required(feature::SCHEMA, true);
    header.set_required(feature::DENSE_NODES, true);
    header.set_optional(feature::SORTED, true);
    header.source = Some("synthetic".into());
    header.replication_sequence = Some(i64::from(options.day));
    header.replication_timestamp = Some(world::day_ends(options.day));
    options.output.header.apply(&mut header);
    let size_hint = SizeHint::default();
    let mut sink = Sink::create(
        options.output.target.clone(),
        header,
        options.output.write,
        size_hint,
        ctx,
    )?;
    let units = world.towns().div_ceil(TOWNS_PER_ITEM);
    let portions = ObjectKind::ALL.into_iter().flat_map(|kind| {
        let towns = (0..units).map(move |unit| WorkItem::Towns(kind, unit));
        towns.chain((1..=options.day).map(move |day| WorkItem::Created(kind, day)))
    });
    let _phase = ctx.phase("synth", 0);
    parallel_classify_phase(
        ctx.jobs,
        ctx.byte_budget(),
        portions.map(Ok),
        |_| 8 << 20,
        || {
            FrameEncoder::new(
                options.output.write.compression,
                options.output.write.blob_index,
            )
        },
        |encoder, portion| {
            let mut add =
                |object: &town::SyntheticObject| object.with(|object| encoder.add(object));
            let added = match portion {
                WorkItem::Towns(kind, unit) => {
                    let first = unit * TOWNS_PER_ITEM;
                    let towns = first..(first + TOWNS_PER_ITEM).min(world.towns());
                    towns.into_iter().try_for_each(|town| {
                        let objects = Town::new(world, town).objects_after(kind, options.day);
                        objects.iter().try_for_each(&mut add)
                    })
                }
                WorkItem::Created(kind, day) => (0..world.towns()).try_for_each(|town| {
                    let created = Town::new(world, town).created_on(kind, day);
                    created.iter().try_for_each(&mut add)
                }),
            };
            let frames = added.and_then(|()| encoder.finish());
            frames.map_err(|error| Error::Internal(error.to_string()))
        },
        |frames| sink.append(frames),
    )?;
    Ok(sink.finish()?.written)
}
