//! `synth`: generates a deterministic, realistic data set, and change files whose effect is known.
//!
//! The world consists of towns. Each town is generated from the seed and the number of the town, independently of the
//! other towns, so towns can be generated in any order, on all cores, and in bounded memory. The seed also decides on
//! which day an object changes. The state after any number of days can therefore be generated directly. It must equal
//! the result of applying the change files of these days to the base, which is the state at day 0.

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
use crate::runtime::{Context, parallel_single_result_phase};
pub use changes::DaySummary;
use serde::Serialize;
use std::path::PathBuf;
use town::Town;
use world::World;

options! {
    /// The options of `synth`.
    pub struct Options {
        /// The approximate number of objects in the base.
        pub objects: u64,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// The seed is 1, and there are no changes.
    new(objects: u64, output: OutputOptions);
    setters {
        /// The seed of all random choices. Runs with the same options write the same bytes.
        seed: u64 = 1,
        /// The number of days of changes that the output contains; 0 gives the base.
        day: u32,
        /// The number of daily change files to write, and their directory; `None` for no change files.
        changes: Option<(u32, PathBuf)>,
    }
}

/// The maximum number of days of changes, which is the number of the last day on which objects change.
pub const MAX_DAYS: u32 = world::DAYS;

/// The result of `synth`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the numbers of its blobs and objects.
    pub written: Written,
    /// The number of towns in the base.
    pub towns: u64,
    /// The change files, in the order of their days.
    pub days: Vec<DaySummary>,
}

/// The number of towns per work item. No block has objects of two items, so fewer towns would give smaller blocks.
const TOWNS_PER_ITEM: u64 = 8;

/// Generates a data set and its change files.
///
/// Reads nothing. Writes one file in canonical order. With [`Options::changes`], then writes the change files and their
/// state files into a directory, and creates the directory if it does not exist. Existing change files are overwritten
/// if the output is a file that may be overwritten.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and with [`Options::changes`] all changed objects of all days.
///
/// # Errors
///
/// - The output or a change file exists and may not be overwritten, or cannot be written; the directory cannot be
///   created ([details](crate::commands#errors)).
/// - [`Options::day`] or the number of change files exceeds [`MAX_DAYS`].
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let days = options.changes.as_ref().map_or(0, |(days, _)| *days);
    if days.max(options.day) > MAX_DAYS {
        return Err(Error::Usage(format!(
            "a synthetic world has at most {MAX_DAYS} days"
        )));
    }
    let world = World::new(options.seed, options.objects);
    let written = write_state(options, &world, ctx)?;
    let mut summary = Summary {
        written,
        towns: world.towns,
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

/// The objects of one work item.
#[derive(Debug, Clone, Copy)]
enum GeneratedObjects {
    /// The objects of one kind that a group of [`TOWNS_PER_ITEM`] towns has in the base, in their state at the end of
    /// [`Options::day`]. The number is the index of the group.
    Towns(ObjectKind, u64),
    /// The objects of one kind that all towns create on one day.
    Created(ObjectKind, u32),
}

fn write_state(options: &Options, world: &World, ctx: &Context) -> Result<Written> {
    let mut header = HeaderBlock::for_objects();
    header.set_optional(feature::SORTED, true);
    header.source = Some("synthetic".into());
    header.replication_sequence = Some(i64::from(options.day));
    header.replication_timestamp = Some(world::day_end(options.day));
    options.output.header.apply(&mut header);
    let write = options.output.encoding();
    let mut sink = Sink::create(&options.output, header, SizeHint::default(), ctx)?;
    let units = world.towns.div_ceil(TOWNS_PER_ITEM);
    let portions = ObjectKind::ALL.into_iter().flat_map(|kind| {
        let towns = (0..units).map(move |unit| GeneratedObjects::Towns(kind, unit));
        towns.chain((1..=options.day).map(move |day| GeneratedObjects::Created(kind, day)))
    });
    let _phase = ctx.phase("synth", 0);
    parallel_single_result_phase(
        ctx.limits(ctx.byte_budget()),
        portions.map(Ok),
        |_| 8 << 20,
        || FrameEncoder::new(write.compression, write.blob_index),
        |encoder, part| {
            let mut add =
                |object: &town::SyntheticObject| object.with_object(|object| encoder.add(object));
            let added = match part {
                GeneratedObjects::Towns(kind, unit) => {
                    let first = unit * TOWNS_PER_ITEM;
                    let towns = first..(first + TOWNS_PER_ITEM).min(world.towns);
                    towns.into_iter().try_for_each(|town| {
                        let objects =
                            Town::new(world, town).objects_at_end_of_day(kind, options.day);
                        objects.iter().try_for_each(&mut add)
                    })
                }
                GeneratedObjects::Created(kind, day) => (0..world.towns).try_for_each(|town| {
                    let created = Town::new(world, town).objects_created_on(kind, day);
                    created.iter().try_for_each(&mut add)
                }),
            };
            let frames = added.and_then(|()| encoder.finish());
            frames.map_err(Error::internal)
        },
        |frames| sink.append(frames),
    )?;
    Ok(sink.finish()?.written)
}
