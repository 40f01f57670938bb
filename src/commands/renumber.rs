//! `renumber`: ids without gaps. References follow.
//!
//! The ids of the file, read first, are numbered in canonical order: a set that knows the place of each id is the
//! map. Then each block is patched on the wire.

mod index_files;
mod numbering;

use super::rewrite::{Made, Rewrite};
use super::scan::Scan;
use super::{HeaderOptions, expected_blobs, input};
use crate::Context;
use crate::error::Result;
use crate::index::IdSet;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{BlobEntry, FormatError, NewIds, ParsedBlock, feature, patch_ids};
use crate::read::{BlobPlan, PbfFile, PlanNeeds};
use crate::write::{Expected, OutputTarget, PbfWriter, WriteOptions, Written};
pub use index_files::{IdPair, show_index};
use numbering::{NumberWalk, Numbering};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// What to renumber, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Input file.
    pub input: PathBuf,
    /// Where the result goes.
    pub output: OutputTarget,
    /// How it is written.
    pub write: WriteOptions,
    /// What its header says.
    pub header: HeaderOptions,
    /// Kinds of objects that get new ids.
    pub kinds: KindSet,
    /// The first new ids of nodes, ways and relations, none of them 0; ids are counted downwards from a negative one.
    /// Where `None`, as the directory says, and 1 without.
    pub start: Option<[i64; 3]>,
    /// Where the map of ids is kept from one run to the next.
    pub directory: Option<PathBuf>,
    /// What becomes of references to objects that are not in the file.
    pub orphans: Orphans,
}

/// What becomes of references to objects that are not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Orphans {
    /// They get ids behind those of the file, in the order in which they come.
    #[default]
    Assign,
    /// They stay as they are, and may then mean another object.
    Keep,
}

/// What `renumber` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The file that was written.
    pub written: Written,
    /// Ids of nodes that have a new one, those of earlier runs included.
    pub nodes: u64,
    /// Ids of ways.
    pub ways: u64,
    /// Ids of relations.
    pub relations: u64,
    /// Of all these, objects that are not in the file.
    pub orphans: u64,
    /// References that were kept and now mean an object of the file.
    pub mistaken: u64,
}

/// Renumbers.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let file = input::open_to_copy(&options.input, &options.write, ctx)?;
    let mut numberings = index_files::read(options.directory.as_deref(), options.start)?;
    let mut plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
    plan.resolve_shared(&file, ctx, |_| true)?;
    let orphans = number(&file, &mut plan, options, &mut numberings, ctx)?;
    let numberings = numberings;
    numberings.iter().try_for_each(Numbering::check)?;

    let mut header = file.header.clone();
    let keeps_order = |kind: &ObjectKind| {
        !options.kinds.contains(*kind) || numberings[*kind as usize].keeps_order()
    };
    if options.output.is_stream() && !ObjectKind::ALL.iter().all(keeps_order) {
        // A stream's header is written before it is known where the new ids stand.
        header.set_optional(feature::SORTED, false);
    }
    options.header.apply(&mut header);
    let expected = Expected {
        blobs: expected_blobs(&file)?,
        ..Expected::default()
    };
    let (target, write) = (options.output.clone(), options.write);
    let mut writer = PbfWriter::create(target, header, write, expected, ctx)?;
    let mistaken = AtomicU64::new(0);
    let rewrite = Rewrite {
        name: "renumber",
        file: &file,
        entries: plan.entries,
        write,
    };
    rewrite.run(
        &mut writer,
        ctx,
        Vec::new,
        |patched, entry, payload, encoder| {
            patched.clear();
            let mut ids = Ids::new(&numberings, options.kinds);
            patch_ids(payload, &mut ids, patched)?;
            mistaken.fetch_add(ids.mistaken, Ordering::Relaxed);
            match ids.entry(entry) {
                Some(entry) => encoder.add_payload_like(patched, &entry)?,
                None => encoder.add_payload(patched)?,
            }
            Ok(Made::New)
        },
    )?;
    // The map first: it may know more than the file needs, but not less.
    if let Some(directory) = &options.directory {
        index_files::write(directory, &numberings)?;
    }
    let [nodes, ways, relations] = numberings.each_ref().map(Numbering::len);
    Ok(Summary {
        written: writer.finish()?,
        nodes,
        ways,
        relations,
        orphans,
        mistaken: mistaken.into_inner(),
    })
}

/// Numbers the objects of a file, and what they refer to without it being there; returns how many of the latter are
/// new.
fn number(
    file: &PbfFile,
    plan: &mut BlobPlan,
    options: &Options,
    numberings: &mut [Numbering; 3],
    ctx: &Context,
) -> Result<u64> {
    use ObjectKind::{Node, Relation, Way};
    let assigns = options.orphans == Orphans::Assign;
    let mut orphans = Orphaned::default();
    let mut members = Vec::new();
    // All nodes have to be known before any reference to one is looked at, and all ways likewise.
    for (name, kind) in [
        ("read nodes", Node),
        ("read ways", Way),
        ("read relations", Relation),
    ] {
        let (mut fresh, is_renumbered) = (IdSet::default(), options.kinds.contains(kind));
        let refers = assigns && kind != Node;
        let known = &*numberings;
        Scan::bare(name, file, plan, ctx).run(
            |entry| entry.kinds.contains(kind) && (is_renumbered || refers),
            |_, block| {
                let mut ids = Vec::new();
                block.for_each_id(|found, id| {
                    if found == kind && is_renumbered {
                        ids.push(id);
                    }
                })?;
                let (mut unknown, mut undecided) = (Vec::new(), Vec::new());
                match kind {
                    Way if refers && options.kinds.contains(Node) => {
                        unknown = unknown_nodes(block, &known[Node as usize])?;
                    }
                    Relation if refers => block.for_each_member(|_, kind, id| {
                        if kind == Relation && options.kinds.contains(kind) {
                            undecided.push(id);
                        } else if options.kinds.contains(kind) {
                            let add = |id| unknown.push((kind, id));
                            known[kind as usize].for_each_unknown(&[id], add);
                        }
                    })?,
                    _ => {}
                }
                Ok((ids, unknown, undecided))
            },
            |(ids, unknown, undecided)| {
                fresh.extend(ids);
                orphans.add(unknown);
                members.extend(undecided);
            },
        )?;
        numberings[kind as usize].add_all(fresh);
    }
    numberings[Relation as usize].for_each_unknown(&members, |id| orphans.add([(Relation, id)]));
    for (kind, id) in &orphans.in_order {
        numberings[*kind as usize].add(*id);
    }
    Ok(orphans.in_order.len() as u64)
}

/// What is referred to and not in the file, in the order in which it comes.
#[derive(Default)]
struct Orphaned {
    in_order: Vec<(ObjectKind, i64)>,
    seen: FxHashSet<(ObjectKind, i64)>,
}

impl Orphaned {
    fn add(&mut self, found: impl IntoIterator<Item = (ObjectKind, i64)>) {
        let seen = &mut self.seen;
        let new = found.into_iter().filter(|orphan| seen.insert(*orphan));
        self.in_order.extend(new);
    }
}

/// The nodes of ways of a block that have no number, in order.
fn unknown_nodes(
    block: &ParsedBlock<'_>,
    known: &Numbering,
) -> Result<Vec<(ObjectKind, i64)>, FormatError> {
    let (mut refs, mut ways, mut found) = (Vec::new(), Vec::new(), Vec::new());
    block.collect_refs(&mut refs, &mut ways)?;
    known.for_each_unknown(&refs, |id| found.push((ObjectKind::Node, id)));
    Ok(found)
}

/// The new ids as blocks are patched with them.
struct Ids<'n> {
    numberings: &'n [Numbering; 3],
    walks: [NumberWalk<'n>; 3],
    kinds: KindSet,
    /// References that were kept and now mean another object.
    mistaken: u64,
}

impl<'n> Ids<'n> {
    fn new(numberings: &'n [Numbering; 3], kinds: KindSet) -> Self {
        Self {
            numberings,
            walks: numberings.each_ref().map(Numbering::walk),
            kinds,
            mistaken: 0,
        }
    }
}

impl Ids<'_> {
    /// What an entry says of its blob with the new ids, where that is known: the order is the same.
    fn entry(&mut self, entry: &BlobEntry) -> Option<BlobEntry> {
        let kind = entry.kinds.single()?;
        let keeps_order =
            !self.kinds.contains(kind) || self.numberings[kind as usize].keeps_order();
        let mut ends = [entry.min_id, entry.max_id];
        self.objects(kind, &mut ends[..1]);
        self.objects(kind, &mut ends[1..]);
        let [min_id, max_id] = ends;
        keeps_order.then_some(BlobEntry {
            min_id,
            max_id,
            ..*entry
        })
    }
}

impl NewIds for Ids<'_> {
    fn objects(&mut self, kind: ObjectKind, ids: &mut [i64]) {
        if self.kinds.contains(kind) {
            self.walks[kind as usize].objects(ids);
        }
    }

    fn references(&mut self, kind: ObjectKind, ids: &mut [i64]) {
        if !self.kinds.contains(kind) {
            return;
        }
        let (walk, numbering) = (
            &mut self.walks[kind as usize],
            &self.numberings[kind as usize],
        );
        for id in ids {
            match walk.new_id(*id) {
                Some(new) => *id = new,
                None => self.mistaken += u64::from(numbering.is_new_id(*id)),
            }
        }
    }
}
