//! `renumber`: gives objects ids without gaps, and changes references accordingly.
//!
//! Nodes and ways in canonical order get new ids according to their positions, while they are written. Relations, and
//! all objects of files in another order, are read twice: first for their ids and their references to objects that are
//! not in the file, then to be written. The new id of an object that is read twice follows from the rank of its old id
//! in the set of all old ids. Ids are replaced in the encoded blocks, without rebuilding the blocks.

mod in_order;
mod index_files;
mod new_ids;
mod numbering;

use crate::engine::changesets::{self, Placement};
use crate::engine::input_content::refuse_changes;
use crate::engine::rewrite::{Rewrite, Rewritten};
use crate::engine::scan::Scan;
use crate::engine::sink::Sink;
use crate::engine::{OutputOptions, input, repeats};
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, Written};
use crate::index::SharedIdSet;
use crate::io::SizeHint;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{Block, HeaderBlock, feature, patch_ids};
use crate::runtime::Context;
pub use index_files::{IdPair, show_index};
use new_ids::NewIdLookup;
use numbering::{IdList, Numbering};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::path::PathBuf;

options! {
    /// The options of `renumber`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// Objects of all kinds get new ids, from 1 on.
    new(input: impl Into<PathBuf>, output: OutputOptions);
    setters {
        /// The kinds of objects that get new ids. References to objects of other kinds stay.
        kinds: KindSet = KindSet::ALL,
        /// The first new ids of nodes, ways and relations. The caller must not pass 0; this is not checked. From a
        /// negative first id, new ids count downwards. `None` for the first ids that `directory` records. If it records
        /// none, the first ids are 1.
        start: Option<[i64; 3]>,
        /// The directory that keeps the map of ids from one run to the next; `None` to keep no map.
        directory: Option<PathBuf>,
        /// The handling of references to objects that are not in the file.
        orphans: Orphans,
        /// Whether the input may be a change file. After renumbering, its ids do not match those of the data to which
        /// the changes belong.
        accepts_changes: bool,
    }
}

/// The handling of references to objects that are not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Orphans {
    /// The referenced objects get new ids, in the order of the references. These ids follow the new ids of the objects
    /// in the file.
    #[default]
    Assign,
    /// The references keep their ids, which may be the new ids of other objects.
    Keep,
}

/// The reason why a change file is refused.
const NOT_OF_CHANGES: &str = "with new ids, its changes would be those of other objects";

/// The result of `renumber`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the numbers of its blobs and objects.
    pub written: Written,
    /// The number of node ids in the map from old to new ids, including the ids of earlier runs.
    pub nodes: u64,
    /// The number of way ids in the map.
    pub ways: u64,
    /// The number of relation ids in the map.
    pub relations: u64,
    /// The number of objects that this run added to the map although they are not in the file.
    pub orphans: u64,
    /// The number of ambiguous references. They were left unchanged because the referenced object is not in the file,
    /// although the id in the reference is now the new id of another object.
    pub ambiguous: u64,
}

/// Gives objects ids without gaps, and changes references accordingly.
///
/// Reads one file, which may be unsorted or a history file. Nodes are read once if they are known to be in canonical
/// order and there is no map of earlier runs. In this case, ways that are known to be in canonical order are read once,
/// too. All other objects are read twice: first for their ids and references, and then to be written. Writes one file.
/// With [`Options::directory`], reads the map of ids of earlier runs first, and writes the map before the output gets
/// its name.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and in addition:
///
/// - for the ids of all kinds: between 1 bit and 2 bytes per id, and 6 % more;
/// - for each object that is referenced but not in the file: about 40 bytes;
/// - for each id that was added to the map after the first run: about 40 bytes;
/// - for each reference from a relation to a relation: 8 bytes.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - The directory of the map does not exist, a file in the directory is damaged or cannot be written, or the directory
///   records other first ids than [`Options::start`].
/// - The input is a change file, and [`Options::accepts_changes`] is not set.
/// - An object occurs twice, and the input is neither a history nor a change file.
/// - A new id does not fit in 64 bits.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(4);
    let file = input::open_with_changesets(&options.input, &options.output, ctx)?;
    if !options.accepts_changes {
        refuse_changes(&file, NOT_OF_CHANGES, ctx)?;
    }
    let overwrite = options.output.target.may_overwrite();
    let directory = options.directory.as_deref();
    let (numberings, index_files) = index_files::read(directory, options.start, overwrite, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
    plan.check_is_current(&file, ctx)?;
    let ctx = &repeats::context_refusing_repeats(&file, &plan, ctx)?;
    let size_hint = SizeHint::default();
    let header = header(&file, options, &numberings);
    let mut sink = Sink::create(&options.output, header, size_hint, ctx)?;
    changesets::put(&file, Placement::Before, &options.output, &mut sink, ctx)?;
    let mut renumbering = Renumbering {
        file: &file,
        plan,
        options,
        numberings,
        orphans: Orphaned::default(),
        ctx,
    };
    let mut ambiguous = 0;
    for kind in [ObjectKind::Node, ObjectKind::Way] {
        match renumbering.take_ordered_blobs(kind) {
            Some(blobs) => ambiguous += renumbering.write_in_order(kind, blobs, &mut sink)?,
            None => renumbering.assign_ids_to_kind(kind)?,
        }
    }
    renumbering.assign_ids_to_kind(ObjectKind::Relation)?;
    let orphans = renumbering.assign_ids_to_orphans()?;
    ambiguous += renumbering.write_remaining_blobs(&mut sink)?;
    changesets::put(&file, Placement::Behind, &options.output, &mut sink, ctx)?;
    let numberings = renumbering.numberings;
    // The map gets its name before the output does, because every id of the output must be in the map. A map with ids
    // that no file has is harmless.
    if let Some(files) = index_files {
        files.write(&numberings)?;
    }
    let [nodes, ways, relations] = numberings.each_ref().map(Numbering::len);
    Ok(Summary {
        written: sink.finish()?.written,
        nodes,
        ways,
        relations,
        orphans,
        ambiguous,
    })
}

/// Returns the header of the output.
fn header(file: &PbfFile, options: &Options, numberings: &[Numbering; 3]) -> HeaderBlock {
    let mut header = file.header.clone();
    let keeps_order =
        |kind: &ObjectKind| !options.kinds.contains(*kind) || numberings[*kind as usize].len() == 0;
    if options.output.target.is_stream() && !ObjectKind::ALL.iter().all(keeps_order) {
        // The header of a stream is written before the order of the new ids is known, and cannot be corrected later.
        header.set_optional(feature::SORTED, false);
    }
    options.output.header.apply(&mut header);
    header
}

/// The state of a run.
struct Renumbering<'f> {
    file: &'f PbfFile,
    /// The blobs that are not written yet.
    plan: BlobPlan,
    options: &'f Options,
    numberings: [Numbering; 3],
    orphans: Orphaned,
    ctx: &'f Context,
}

impl<'f> Renumbering<'f> {
    /// Assigns new ids to the objects of one kind, and collects their references to objects that are not in the file.
    /// Looks up references among the ids of the kinds before. Must therefore be called for nodes first, then for ways,
    /// and then for relations.
    fn assign_ids_to_kind(&mut self, kind: ObjectKind) -> Result<()> {
        use ObjectKind::{Node, Relation, Way};
        let (fresh, kinds) = (SharedIdSet::default(), self.options.kinds);
        let is_renumbered = kinds.contains(kind);
        let refers = self.options.orphans == Orphans::Assign && kind != Node;
        let (known, orphans) = (&self.numberings, &mut self.orphans);
        let name = match kind {
            Node => "read nodes",
            Way => "read ways",
            Relation => "read relations",
        };
        Scan::without_strings(name, self.file, &self.plan, self.ctx).run(
            |entry| entry.kinds.contains(kind) && (is_renumbered || refers),
            |_, block| {
                let mut ids = Vec::new();
                block.for_each_id(|found, id| {
                    if found == kind && is_renumbered {
                        ids.push(id);
                    }
                })?;
                let (mut unknown, mut undecided) = ([const { Vec::new() }; 3], Vec::new());
                match kind {
                    Way if refers && kinds.contains(Node) => {
                        unknown[Node as usize] = unknown_nodes(block, &known[Node as usize])?;
                    }
                    Relation if refers => {
                        block.check_relation_sizes()?;
                        let mut members = [const { Vec::new() }; 3];
                        block.for_each_member(|_, kind, id| members[kind as usize].push(id))?;
                        for kind in [Node, Way].into_iter().filter(|kind| kinds.contains(*kind)) {
                            let add = |id| unknown[kind as usize].push(id);
                            known[kind as usize].for_each_unknown(&members[kind as usize], add);
                        }
                        if kinds.contains(Relation) {
                            undecided = std::mem::take(&mut members[Relation as usize]);
                        }
                    }
                    _ => {}
                }
                fresh.add(&ids.as_slice().into());
                Ok((unknown, undecided))
            },
            |(unknown, undecided)| {
                for (ids, unknown) in orphans.ids.iter_mut().zip(unknown) {
                    ids.extend(unknown);
                }
                orphans.undecided.extend(undecided);
            },
        )?;
        self.numberings[kind as usize].assign_new_ids(fresh.into_set(self.ctx.jobs));
        Ok(())
    }

    /// Assigns new ids to the objects that are referenced but not in the file, and returns their number. The ids follow
    /// the new ids of all objects in the file.
    fn assign_ids_to_orphans(&mut self) -> Result<u64> {
        let members = std::mem::take(&mut self.orphans.undecided);
        let relations = &self.numberings[ObjectKind::Relation as usize];
        let unknown = &mut self.orphans.ids[ObjectKind::Relation as usize];
        relations.for_each_unknown(&members, |id| {
            unknown.index_or_append(id);
        });
        let orphans = std::mem::take(&mut self.orphans.ids);
        let count = orphans.iter().map(IdList::len).sum();
        for (numbering, ids) in self.numberings.iter_mut().zip(orphans) {
            numbering.append(ids);
        }
        self.numberings
            .iter()
            .try_for_each(|numbering| numbering.check_new_ids_fit(numbering.len()))?;
        Ok(count)
    }

    /// Writes the blobs that are not written yet. Returns the number of ambiguous references, as in
    /// [`Summary::ambiguous`].
    fn write_remaining_blobs(&mut self, sink: &mut Sink) -> Result<u64> {
        let (numberings, kinds) = (&self.numberings, self.options.kinds);
        let rewrite = Rewrite {
            name: "renumber",
            file: self.file,
            entries: std::mem::take(&mut self.plan.entries),
            stays: None,
            write: self.options.output.encoding(),
        };
        let mut ambiguous = 0;
        rewrite.run(
            sink,
            self.ctx,
            Vec::new,
            |patched, blob, encoder| {
                patched.clear();
                let mut ids = NewIdLookup::new(numberings, kinds);
                patch_ids(blob.payload, &mut ids, patched)?;
                match ids.renumbered_entry(blob.entry) {
                    Some(entry) => {
                        encoder.add_edited_payload_with_entry(patched, blob.segments, &entry)?
                    }
                    None => encoder.add_edited_payload(patched, blob.segments)?,
                }
                Ok((Rewritten::Yes, ids.ambiguous))
            },
            |more| ambiguous += more,
        )?;
        Ok(ambiguous)
    }
}

/// The objects that are referenced but not in the file.
#[derive(Default)]
struct Orphaned {
    /// The ids of each kind, in the order of the first references to them.
    ids: [IdList; 3],
    /// The relations that are members of relations. Whether the file contains them is known only after all relations
    /// have been read.
    undecided: Vec<i64>,
}

/// Looks up the node references of the ways of a block in `known`. Returns the ids that have no new id, in the order of
/// the references.
fn unknown_nodes(block: &Block<'_>, known: &Numbering) -> FormatResult<Vec<i64>> {
    // Checks the sizes first. The unknown nodes of a way that is too large may not fit into memory.
    block.check_way_sizes()?;
    let (mut found, mut limit) = (Vec::new(), MANY);
    block.for_each_ref_batch(MANY, |refs, _| {
        known.for_each_unknown(refs, |id| found.push(id));
        if found.len() > limit {
            remove_repeats(&mut found);
            limit = MANY.max(2 * found.len());
        }
    })?;
    Ok(found)
}

/// The number of collected references above which duplicates are removed before the end of a block. Blocks of real
/// files have fewer.
const MANY: usize = 1 << 20;

/// Removes all but the first of equal ids.
fn remove_repeats(found: &mut Vec<i64>) {
    let mut seen = FxHashSet::default();
    found.retain(|id| seen.insert(*id));
    found.shrink_to_fit();
}
