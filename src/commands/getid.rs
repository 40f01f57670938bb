//! `getid`: writes the objects with given ids, or all other objects.

use super::ids;
use super::ids::IdSource;
use crate::engine::filter::{BlobDecision, FilterJob, FilterOutput, select_by_id, write_selected};
use crate::engine::headers::HeaderOptions;
use crate::engine::references::referenced;
use crate::engine::sink::WriteSummary;
use crate::engine::{Selected, input};
use crate::error::{Error, Result};
use crate::file::{BlobPlan, PlanNeeds, WriteOptions};
use crate::index::IdSets;
use crate::io::{OpenOutput, OutputTarget};
use crate::osm::ObjectId;
use crate::pbf::{BlobEntry, InfoFields};
use crate::runtime::Context;
use serde::{Serialize, Serializer};
use std::path::PathBuf;

/// Which objects to get, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file.
    pub input: PathBuf,
    /// Where the ids come from.
    pub ids: IdSource,
    /// Selected everything but the objects.
    pub invert: bool,
    /// Also what the objects refer to: members of relations, nodes of ways, and what these refer to.
    pub add_referenced: bool,
    /// Take the tags from objects that are there for the sake of a reference alone.
    pub remove_tags: bool,
    /// Where the result goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
}

/// What `getid` did.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// What was written.
    #[serde(flatten)]
    pub kept: WriteSummary,
    /// Ids that were asked for, each counted once.
    pub requested: u64,
    /// How many objects they refer to that were not asked for; 0 unless these were to be added.
    pub referenced: u64,
    /// Ids that were asked for or referred to and are not in the file, in canonical order. Of many a report lists the
    /// first thousand.
    #[serde(serialize_with = "first_ids")]
    pub missing: IdSets,
    /// How many these are.
    pub missing_count: u64,
    /// The ids that were asked for.
    #[serde(skip)]
    pub wanted: IdSets,
}

/// Serializes the first thousand ids, in the form `n17`.
fn first_ids<S: Serializer>(ids: &IdSets, serializer: S) -> Result<S::Ok, S::Error> {
    const MOST: usize = 1000;
    serializer.collect_seq(ids.ids().take(MOST).map(|id| id.to_string()))
}

/// Gets objects.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    if options.invert && options.add_referenced {
        let cause =
            "what is referred to can be added to objects that are kept, not to those that go";
        return Err(Error::Usage(cause.into()));
    }
    ctx.expect_phases(if options.add_referenced { 3 } else { 1 });
    let wanted = ids::collect(&options.ids, ctx)?;
    let file = input::open_to_copy(&options.input, &options.write, ctx)?;
    let output = OpenOutput::open(options.output.clone())?;
    // A single pass can visit blobs of unknown content. To follow references, the kinds of all blobs must be known.
    let needs = if options.add_referenced {
        PlanNeeds::Ranges
    } else {
        PlanNeeds::Frames
    };
    let plan = BlobPlan::open(&file, needs, ctx)?;
    let added = if options.add_referenced {
        referenced(&file, &plan, &wanted, None, ctx)?
    } else {
        IdSets::default()
    };
    let mut header = file.header.clone();
    options.header.apply(&mut header);
    let met = |entry: &BlobEntry| wanted.may_meet(entry) || added.may_meet(entry);
    let decision = |entry: &BlobEntry| match (options.invert, met(entry)) {
        (_, true) => BlobDecision::Visit,
        (true, false) => BlobDecision::Copy,
        (false, false) => BlobDecision::Drop,
    };
    let job = FilterJob {
        name: "get objects",
        file: &file,
        plan,
        prefilter: None,
        cache: None,
        clean: InfoFields::NONE,
        outputs: vec![FilterOutput { output, header }],
        write: options.write,
    };
    let only_referenced = if options.remove_tags {
        Selected::Untagged
    } else {
        Selected::Whole
    };
    let mut found = IdSets::default();
    let kept = write_selected(
        job,
        decision,
        |_, block, selection| {
            let mut found = Vec::new();
            select_by_id(block, selection, |kind, id| {
                let keep = match wanted.contains(kind, id) {
                    true => Selected::whole_if(!options.invert),
                    false if options.invert => return Selected::Whole,
                    false if added.contains(kind, id) => only_referenced,
                    false => return Selected::Drop,
                };
                found.push(ObjectId { kind, id });
                keep
            })?;
            Ok(found)
        },
        |ids| found.extend(ids),
        ctx,
    )?;
    let absent = |id: &ObjectId| !found.contains(id.kind, id.id);
    let not_wanted = |id: &ObjectId| !wanted.contains(id.kind, id.id);
    let mut missing: IdSets = wanted.ids().filter(absent).collect();
    missing.extend(added.ids().filter(absent));
    Ok(Summary {
        kept,
        requested: wanted.len(),
        referenced: added.ids().filter(not_wanted).count() as u64,
        missing_count: missing.len(),
        missing,
        wanted,
    })
}
