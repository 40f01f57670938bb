//! `synth`: a deterministic, realistic data set, and change files whose effect is known.
//!
//! The world consists of towns, each made from the seed and its number alone, so that they can be
//! made in any order, on every core, in bounded memory. What happens to an object on which day is
//! fixed by the seed as well: the state after any number of days can be made directly, and is what
//! applying the change files of those days has to lead to.

mod changes;
mod names;
mod town;
mod world;

use crate::engine::headers::HeaderOptions;
use crate::engine::sink::Sink;
use crate::error::{Error, Result};
use crate::file::{WriteOptions, Written};
use crate::io::{OutputTarget, SizeHint};
use crate::osm::ObjectKind;
use crate::pbf::{FrameEncoder, HeaderBlock, feature};
use crate::runtime::{Context, parallel_classify_phase};
pub use changes::DaySummary;
use serde::Serialize;
use std::path::PathBuf;
use town::Town;
use world::World;

/// What to make.
#[derive(Debug, Clone)]
pub struct Options {
    /// About how many objects the base has.
    pub elements: u64,
    /// The seed: same seed, same bytes.
    pub seed: u64,
    /// The state after that many days of changes; 0 is the base.
    pub day: u32,
    /// Where the file goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
    /// Change files to write: how many days, and into which directory.
    pub changes: Option<(u32, PathBuf)>,
}

/// The most days that change files can be made for: after that the same objects change again.
pub const MAX_DAYS: u32 = world::DAYS;

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The file that was written.
    pub written: Written,
    /// Towns in it.
    pub towns: u64,
    /// Each change file, and what it does.
    pub days: Vec<DaySummary>,
}

/// Towns that are made at a time, so that blocks are full.
const TOWNS_PER_UNIT: u64 = 8;

/// Makes a data set.
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
            options.output,
            OutputTarget::File {
                overwrite: true,
                ..
            }
        );
        summary.days = changes::write_days(&world, *days, directory, overwrite, ctx)?;
    }
    Ok(summary)
}

/// A portion of the output: some towns' objects of a kind, or what was created on one day.
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
    options.header.apply(&mut header);
    let size_hint = SizeHint::default();
    let mut sink = Sink::create(
        options.output.clone(),
        header,
        options.write,
        size_hint,
        ctx,
    )?;
    let units = world.towns().div_ceil(TOWNS_PER_UNIT);
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
        || FrameEncoder::new(options.write.compression, options.write.blob_index),
        |encoder, portion| {
            let mut add = |object: &town::Made| object.with(|object| encoder.add(object));
            let added = match portion {
                WorkItem::Towns(kind, unit) => {
                    let first = unit * TOWNS_PER_UNIT;
                    let towns = first..(first + TOWNS_PER_UNIT).min(world.towns());
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
