//! `diff`: what differs between two files, as text or as a change file.
//!
//! Blobs that are equal by their hashes are not read. What is left is cut into ranges of ids, each of
//! which one worker goes through in both files side by side.

mod compare;
mod order;
mod show;

use crate::engine::headers::generator;
use crate::engine::shards::{MergeStep, Source, Sources, are_equal, plan_steps};
use crate::error::{Error, Result};
use crate::formats::{DocumentHeader, OscText, TextOutput};
use crate::io::OutputTarget;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{BlobEntry, feature};
use crate::runtime::{Context, Pass, WorkItem};
use compare::Comparison;
use order::{Side, in_order};
use serde::Serialize;
use std::path::PathBuf;

/// What to compare, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The old file.
    pub old: PathBuf,
    /// The new file.
    pub new: PathBuf,
    /// Kinds of objects that are compared.
    pub kinds: KindSet,
    /// What of an object counts.
    pub equality: Equality,
    /// Read blobs of equal hashes all the same.
    pub verify: bool,
    /// What is written, and where; `None` where only the counts are asked for.
    pub output: Option<(Format, OutputTarget)>,
}

/// What of an object has to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Equality {
    /// Not only location, tags, nodes and members, but the metadata, too.
    pub metadata: bool,
    /// Of the metadata, do not look at the changeset.
    pub ignore_changeset: bool,
    /// Of the metadata, do not look at the number of the user.
    pub ignore_uid: bool,
    /// Of the metadata, do not look at the name of the user.
    pub ignore_user: bool,
}

/// How differences are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A line an object: `-` only in the old file, `+` only in the new one, `*` in both and different, a
    /// space where it is the same.
    Text {
        /// Also objects that are the same.
        common: bool,
        /// Below each object that differs, what differs.
        details: bool,
    },
    /// A change file that makes the new file of the old one.
    Osc(Deletions),
}

/// What a change file says of objects that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deletions {
    /// Their version is one higher than in the old file.
    pub increment_version: bool,
    /// Their time is that of the run, in seconds since 1970; as in the old file where `None`.
    pub timestamp: Option<i64>,
    /// Everything that the old file says of them is kept.
    pub keep_details: bool,
    /// The name of the writing program.
    pub generator: Option<String>,
}

/// Objects of one kind, by where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Only in the old file.
    pub left: u64,
    /// Only in the new file.
    pub right: u64,
    /// In both, and the same.
    pub same: u64,
    /// In both, and different.
    pub different: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.left += other.left;
        self.right += other.right;
        self.same += other.same;
        self.different += other.different;
    }

    /// Whether nothing differs.
    pub const fn is_same(&self) -> bool {
        self.left + self.right + self.different == 0
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Nodes.
    pub nodes: Counts,
    /// Ways.
    pub ways: Counts,
    /// Relations.
    pub relations: Counts,
    /// Pairs of blobs that were equal by their hashes.
    pub blobs_equal: u64,
    /// Objects that have a lower version or an older time in the new file: a change file does not bring
    /// them back, since the newest version wins.
    pub going_back: u64,
    /// Nodes whose coordinates are finer than a change file can say.
    pub inexact: u64,
}

impl Summary {
    /// All kinds together.
    pub fn total(&self) -> Counts {
        let mut total = self.nodes;
        total.add(&self.ways);
        total.add(&self.relations);
        total
    }

    fn of_mut(&mut self, kind: ObjectKind) -> &mut Counts {
        match kind {
            ObjectKind::Node => &mut self.nodes,
            ObjectKind::Way => &mut self.ways,
            ObjectKind::Relation => &mut self.relations,
        }
    }

    fn add(&mut self, other: &Self) {
        self.nodes.add(&other.nodes);
        self.ways.add(&other.ways);
        self.relations.add(&other.relations);
        self.blobs_equal += other.blobs_equal;
        self.going_back += other.going_back;
        self.inexact += other.inexact;
    }
}

/// Compares.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(1);
    let sides = [&options.old, &options.new].map(|path| in_order(path, ctx));
    let [old, new] = sides;
    let sides = [old?, new?];
    let history = sides
        .iter()
        .any(|side| side.file.header.has(feature::HISTORY));
    if history && matches!(options.output, Some((Format::Osc(_), _))) {
        let side = sides
            .iter()
            .find(|side| side.file.header.has(feature::HISTORY));
        let path = side.map_or(&options.old, |side| &side.path);
        let cause = "this is a history file; a change file is made of current data";
        return Err(Error::file(path, cause));
    }
    let mut output = match &options.output {
        None => None,
        Some((_, target)) => Some(TextOutput::create(target.clone())?),
    };
    let format = options.output.as_ref().map(|(format, _)| format);
    let mut put = |text: &str| match &mut output {
        Some(output) => output.write(text),
        None => Ok(()),
    };
    if let Some(Format::Osc(deletions)) = format {
        let [_, new] = &sides;
        put(&OscText::prologue_of(&DocumentHeader {
            generator: Some(generator(deletions.generator.as_deref())),
            bbox: None,
            ..DocumentHeader::of(&new.file.header)
        }))?;
    }
    let mut summary = Summary::default();
    let steps = plan(options, &sides, &mut summary, ctx);
    let inputs = sides.each_ref().map(|side| &side.file.input);
    Pass::new("compare", ctx)
        .with_budget(ctx.byte_budget() * 4)
        .run(
            steps.into_iter().map(Decoded).collect(),
            || Comparison::new(Sources::new(&inputs, ctx), options, history),
            |comparison, Decoded(step)| comparison.step(step),
            |found| {
                summary.add(&found.summary);
                put(&found.text)
            },
        )?;
    if let Some(Format::Osc(_)) = format {
        put(OscText::EPILOGUE)?;
    }
    output.map(TextOutput::finish).transpose()?;
    Ok(summary)
}

/// A step all of whose blobs are decoded.
struct Decoded(MergeStep);

impl WorkItem for Decoded {
    fn input_bytes(&self) -> u64 {
        self.0.input_bytes()
    }

    fn held_bytes(&self) -> u64 {
        2 * match &self.0 {
            MergeStep::Copy(source) => u64::from(source.entry.payload_len),
            MergeStep::Merge(shard) => shard.held_bytes(),
        }
    }
}

/// Bytes of payload that one worker takes at a time, of both files together.
const SHARD_BYTES: u64 = 16 << 20;

/// What has to be looked at. Pairs of equal blobs are counted at once.
fn plan(
    options: &Options,
    sides: &[Side; 2],
    summary: &mut Summary,
    ctx: &Context,
) -> Vec<MergeStep> {
    let shows_common = matches!(options.output, Some((Format::Text { common: true, .. }, _)));
    let is_wanted = |entry: &&BlobEntry| !entry.kinds.intersection(options.kinds).is_empty();
    let [old, new] = sides.each_ref().map(|side| {
        let entries = side.plan.entries.iter().filter(is_wanted);
        entries.collect::<Vec<_>>()
    });
    let may_skip = !shows_common && !options.verify;
    let mut new_blobs = new.iter().peekable();
    let mut sources: Vec<Source> = Vec::new();
    for old in old {
        let before = |new: &&&BlobEntry| new.first_key() < old.first_key();
        while let Some(new) = new_blobs.next_if(before) {
            sources.push(Source {
                file: 1,
                entry: **new,
            });
        }
        let is_equal = |new: &&&BlobEntry| may_skip && are_equal(old, new);
        match (new_blobs.next_if(is_equal), old.kinds.single()) {
            (Some(equal), Some(kind)) => {
                summary.of_mut(kind).same += u64::from(old.count);
                summary.blobs_equal += 1;
                for entry in [old, equal] {
                    ctx.stats.skip_blob(entry.is_verified());
                }
            }
            _ => sources.push(Source {
                file: 0,
                entry: *old,
            }),
        }
    }
    sources.extend(new_blobs.map(|new| Source {
        file: 1,
        entry: **new,
    }));
    plan_steps(sources, SHARD_BYTES)
}
