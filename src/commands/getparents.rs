//! `getparents`: writes the ways and relations that refer to given objects.

use super::ids;
use super::ids::{IdSource, parent_kinds};
use crate::engine::filter::{BlobDecision, FilterJob, write_selected};
use crate::engine::headers::header_of_part;
use crate::engine::repeats::{Chosen, Repeats};
use crate::engine::sink::WriteSummary;
use crate::engine::{OutputOptions, Selected, Selection, input};
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PlanNeeds};
use crate::index::IdSets;
use crate::io::OpenOutput;
use crate::osm::{ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::Context;
use serde::Serialize;
use std::path::PathBuf;

options! {
    /// The options of `getparents`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The ids of the objects whose parents are wanted.
        pub ids: IdSource,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// Only the parents are written.
    new(input: impl Into<PathBuf>, ids: IdSource, output: OutputOptions);
    setters {
        /// Whether the given objects themselves are also written.
        add_self: bool,
    }
}

/// The result of `getparents`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the numbers of input blobs that were copied, skipped and rewritten.
    #[serde(flatten)]
    pub kept: WriteSummary,
    /// The number of distinct ids that were asked for.
    pub requested: u64,
    /// The requested ids. Not serialized.
    #[serde(skip)]
    pub wanted: IdSets,
}

/// Writes the ways and relations that refer directly to given objects.
///
/// Reads the sources of ids, then one file, which may be unsorted or a history file. One pass visits the blobs that may
/// contain parents: the blobs with relations, and the blobs with ways if any given object is a node. With
/// [`Options::add_self`], it also visits the blobs whose id range contains a given id. Writes one file, in the order of
/// the input.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and the set of requested ids.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - A file of ids cannot be read, or contains something other than ids and comments.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(1);
    let wanted = ids::collect(&options.ids, ctx)?;
    let file = input::open_to_copy(&options.input, &options.output.encoding(), ctx)?;
    let output = OpenOutput::open(options.output.target.clone(), ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
    let parents = parent_kinds(&wanted);
    let decision = |entry: &BlobEntry| {
        let has_parents = !entry.kinds.intersection(parents).is_empty();
        let has_self = options.add_self && wanted.may_meet(entry);
        BlobDecision::visit_if(has_parents || has_self)
    };
    let chosen = Chosen::of(&file, &plan, Repeats::Counted, ctx);
    let header = header_of_part(file.header.clone(), false);
    let job = FilterJob::with_output("get parents", &file, plan, output, header, &options.output);
    let select = |_: &BlobEntry, block: &Block<'_>, selection: &mut Selection| {
        let parents = select_parents(block, selection, &wanted, options.add_self)?;
        chosen.add(&parents)
    };
    let kept = write_selected(job, decision, select, |()| (), ctx)?;
    chosen.warn_of_repeats(ctx);
    Ok(Summary {
        kept,
        requested: wanted.len(),
        wanted,
    })
}

/// Selects the objects of a block that refer to wanted objects and, with `add_self`, the wanted objects themselves.
/// Returns the selected objects.
fn select_parents(
    block: &Block<'_>,
    selection: &mut Selection,
    wanted: &IdSets,
    add_self: bool,
) -> FormatResult<Vec<ObjectId>> {
    let (nodes, mut parents) = (wanted.of(ObjectKind::Node), Vec::new());
    let mut objects = block.walk();
    while let Some(kind) = objects.next()? {
        let is_self = add_self && wanted.contains(kind, objects.id()?);
        let refers = is_self
            || match kind {
                ObjectKind::Node => false,
                ObjectKind::Way => !nodes.is_empty() && objects.any_ref(|id| nodes.contains(id))?,
                ObjectKind::Relation => objects.any_member(|kind, id| wanted.contains(kind, id))?,
            };
        selection.push(Selected::whole_if(refers));
        if refers {
            let id = objects.id()?;
            parents.push(ObjectId { kind, id });
        }
    }
    Ok(parents)
}
