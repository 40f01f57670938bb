//! `getparents`: writes the ways and relations that refer to given objects.

use super::ids;
use super::ids::{IdSource, kinds_of_parents};
use crate::engine::filter::{BlobDecision, FilterJob, FilterOutput, write_selected};
use crate::engine::headers::HeaderOptions;
use crate::engine::sink::WriteSummary;
use crate::engine::{Selected, Selection, input};
use crate::error::{FormatError, Result};
use crate::file::{BlobPlan, PlanNeeds, WriteOptions};
use crate::index::IdSets;
use crate::io::{OpenOutput, OutputTarget};
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, InfoFields, ParsedBlock};
use crate::runtime::Context;
use serde::Serialize;
use std::path::PathBuf;

/// Whose parents to get, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file.
    pub input: PathBuf,
    /// Where the ids come from.
    pub ids: IdSource,
    /// Also the objects themselves.
    pub add_self: bool,
    /// Where the result goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
}

/// What `getparents` did.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// What was written.
    #[serde(flatten)]
    pub kept: WriteSummary,
    /// Ids that were asked for, each counted once.
    pub requested: u64,
    /// The ids that were asked for.
    #[serde(skip)]
    pub wanted: IdSets,
}

/// Gets parents.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(1);
    let wanted = ids::collect(&options.ids, ctx)?;
    let file = input::open_to_copy(&options.input, &options.write, ctx)?;
    let output = OpenOutput::open(options.output.clone())?;
    let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
    let mut header = file.header.clone();
    options.header.apply(&mut header);
    let parents = kinds_of_parents(&wanted);
    let decision = |entry: &BlobEntry| {
        let has_parents = !entry.kinds.intersection(parents).is_empty();
        let has_self = options.add_self && wanted.may_meet(entry);
        match has_parents || has_self {
            true => BlobDecision::Visit,
            false => BlobDecision::Drop,
        }
    };
    let job = FilterJob {
        name: "get parents",
        file: &file,
        plan,
        prefilter: None,
        cache: None,
        clean: InfoFields::NONE,
        outputs: vec![FilterOutput { output, header }],
        write: options.write,
    };
    let select = |_: &BlobEntry, block: &ParsedBlock<'_>, selection: &mut Selection| {
        select_parents(block, selection, &wanted, options.add_self)
    };
    let kept = write_selected(job, decision, select, |()| (), ctx)?;
    Ok(Summary {
        kept,
        requested: wanted.len(),
        wanted,
    })
}

fn select_parents(
    block: &ParsedBlock<'_>,
    selection: &mut Selection,
    wanted: &IdSets,
    add_self: bool,
) -> Result<(), FormatError> {
    let nodes = wanted.of(ObjectKind::Node);
    block.for_each_object(|object| {
        let is_self = add_self && wanted.contains(object.kind, object.id()?);
        let refers = is_self
            || match object.kind {
                ObjectKind::Node => false,
                ObjectKind::Way => !nodes.is_empty() && object.any_ref(|id| nodes.contains(id))?,
                ObjectKind::Relation => object.any_member(|kind, id| wanted.contains(kind, id))?,
            };
        selection.push(Selected::whole_if(refers));
        Ok(())
    })
}
