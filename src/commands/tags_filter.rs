//! `tags-filter`: writes the objects with certain tags, and the objects that they refer to.

pub mod changes;

use crate::engine::block_matcher::{BlockMatcher, may_select_in_blob};
use crate::engine::filter::{BlobDecision, FilterJob, select_by_id, write_selected};
use crate::engine::headers::header_of_part;
use crate::engine::id_search::id_search_for;
use crate::engine::location_form::LocationForm;
use crate::engine::references::{referenced_ids, sort_and_dedup};
use crate::engine::repeats::{Chosen, Repeats};
use crate::engine::scan::PlanningScan;
use crate::engine::sink::WriteSummary;
use crate::engine::stored_locations::nodes_with_stored_locations;
use crate::engine::{OutputOptions, Selected, Selection, input};
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, PlannedFile};
use crate::index::{IdBatch, IdSet, IdSets, SharedIdSet};
use crate::io::OpenOutput;
use crate::osm::{ObjectExpression, ObjectFilter, ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, Block, StringTable};
use crate::runtime::Context;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

options! {
    /// The options of `tags-filter`.
    pub struct Options {
        /// The input file; `-` is standard input. [`changes::run`] reads a change file.
        pub input: PathBuf,
        /// The expressions. An object that matches at least one of them is kept.
        pub expressions: Vec<ObjectExpression>,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// By default, the objects that matching objects refer to are written, too.
    new(input: impl Into<PathBuf>, expressions: Vec<ObjectExpression>, output: OutputOptions);
    setters {
        /// Whether the objects that match none of the expressions are kept instead.
        invert: bool,
        /// Whether the objects that the matching objects refer to are left out.
        omit_referenced: bool,
        /// Whether objects that are kept only because other objects refer to them lose their tags. Has no effect with
        /// `omit_referenced`.
        remove_tags: bool,
    }
}

/// The result of `tags-filter`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the numbers of input blobs that were copied, skipped and rewritten.
    #[serde(flatten)]
    pub kept: WriteSummary,
    /// The number of objects that were kept because of their tags. With [`Options::omit_referenced`], each version of
    /// an object counts, and blobs may be copied without decoding them. `matched` is then 0 if the number of objects in
    /// a copied blob is not known.
    pub matched: u64,
    /// The number of referenced objects that are not in the file; 0 if referenced objects are left out. A node is not
    /// missing if a kept way stores its location.
    pub missing: u64,
    /// Whether the strings of the blobs contain a key of any expression; `None` if no strings were read.
    #[serde(skip)]
    pub has_keys: Option<bool>,
}

/// Writes the objects with certain tags, and the objects that they refer to.
///
/// Reads one file, which may be unsorted or a history file. One pass finds the matching objects, further passes find
/// the objects that the matching objects refer to, directly or through other objects, and the last pass writes all of
/// these objects. With [`Options::omit_referenced`], a single pass finds and writes the matching objects. Blobs whose
/// strings match no expression need not be decompressed completely. Writes one file, in the order of the input.
///
/// # Memory
///
/// The [base memory](crate::commands#memory). Unless [`Options::omit_referenced`] is set, also sets of the ids that are
/// kept, and the references from relations to relations.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
///
/// # Examples
///
/// ```
/// use pbfhogg::commands::tags_filter;
/// use pbfhogg::read::ObjectExpression;
/// use pbfhogg::{Context, OutputOptions};
/// # use pbfhogg::commands::synth;
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// # let world = at("world.osm.pbf");
/// # let ctx = Context::default();
/// # synth::run(&synth::Options::new(20_000, OutputOptions::file(&world)), &ctx)?;
/// // Residential streets and their nodes.
/// let streets = ObjectExpression::parse("w/highway=residential").expect("an expression");
/// let output = OutputOptions::file(at("streets.osm.pbf"));
/// let summary = tags_filter::run(&tags_filter::Options::new(&world, vec![streets], output), &ctx)?;
/// assert!(summary.matched > 0);
/// # Ok::<(), pbfhogg::Error>(())
/// ```
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let file = input::open_to_copy(&options.input, &options.output.encoding(), ctx)?;
    filter(&file, options, ctx)
}

/// Does the same as [`run`], with an input that is open already. Ignores [`Options::input`].
pub(crate) fn filter(file: &PbfFile, options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(if options.omit_referenced { 1 } else { 4 });
    let filter = FilterRun {
        objects: ObjectFilter::new(options.expressions.iter().cloned()),
        invert: options.invert,
        has_strings: AtomicBool::new(false),
        has_keys: AtomicBool::new(false),
    };
    let output = OpenOutput::open(options.output.target.clone(), ctx)?;
    let mut summary = if options.omit_referenced {
        filter.write_matching(file, output, options, ctx)
    } else {
        filter.write_with_referenced(file, output, options, ctx)
    }?;
    let has_strings = filter.has_strings.into_inner();
    summary.has_keys = has_strings.then(|| filter.has_keys.into_inner());
    Ok(summary)
}

struct FilterRun {
    objects: ObjectFilter,
    invert: bool,
    /// Whether the strings of at least one blob were read.
    has_strings: AtomicBool,
    /// Whether a key of any expression was among the strings that were read.
    has_keys: AtomicBool,
}

impl FilterRun {
    /// Decides about a blob by the kinds and the ids of its objects.
    fn decide_by_entry(&self, entry: &BlobEntry) -> BlobDecision {
        let kinds = entry.kinds.intersection(self.objects.kinds());
        match !kinds.is_empty() && may_select_in_blob(&self.objects, entry) {
            false if self.invert => BlobDecision::Copy,
            false => BlobDecision::Drop,
            true => BlobDecision::Visit,
        }
    }

    /// Decides about a blob by its strings.
    fn decide_by_strings(&self, strings: &StringTable<'_>) -> BlobDecision {
        let matcher = BlockMatcher::new(&self.objects, strings);
        self.has_strings.store(true, Ordering::Relaxed);
        if matcher.has_keys() {
            self.has_keys.store(true, Ordering::Relaxed);
        }
        match matcher.cannot_match() {
            true if self.invert => BlobDecision::Copy,
            true => BlobDecision::Drop,
            false => BlobDecision::Visit,
        }
    }

    /// Calls `take` for each object of a block, in file order. The first argument of `take` tells whether the object is
    /// kept because of its tags.
    fn for_each(
        &self,
        block: &Block<'_>,
        mut take: impl FnMut(bool, &crate::pbf::BlockWalk<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let matcher = BlockMatcher::new(&self.objects, &block.strings);
        matcher.for_each(block, |matches, object| {
            take(matches != self.invert, object)
        })
    }

    /// Writes the matching objects in one pass, without the objects that they refer to.
    fn write_matching(
        &self,
        file: &PbfFile,
        output: OpenOutput,
        options: &Options,
        ctx: &Context,
    ) -> Result<Summary> {
        let plan = BlobPlan::open(file, PlanNeeds::Frames, ctx)?;
        let prefilter = |strings: &StringTable<'_>| self.decide_by_strings(strings);
        let chosen = Chosen::of(file, &plan, Repeats::Refused, ctx);
        let select = |_: &BlobEntry, block: &Block<'_>, selection: &mut Selection| {
            let mut objects = Vec::new();
            self.for_each(block, |kept, object| {
                selection.push(Selected::whole_if(kept));
                if kept && chosen.may_have_repeats() {
                    let (kind, id) = (object.kind(), object.id()?);
                    objects.push(ObjectId { kind, id });
                }
                Ok(())
            })?;
            chosen.add(&objects)
        };
        let decision = |entry: &BlobEntry| self.decide_by_entry(entry);
        let job = job(file, plan, output, options, Some(&prefilter));
        let kept = write_selected(job, decision, select, |()| (), ctx)?;
        Ok(Summary {
            matched: kept.written.objects.unwrap_or(0),
            missing: 0,
            has_keys: None,
            kept,
        })
    }

    /// Writes the matching objects and the objects that they refer to. Collects the ids of the matching objects, then
    /// the ids of the referenced objects, and then writes both.
    fn write_with_referenced(
        &self,
        file: &PbfFile,
        output: OpenOutput,
        options: &Options,
        ctx: &Context,
    ) -> Result<Summary> {
        let (plan, matched, nodes) = self.find_matches(file, ctx)?;
        let once = plan.has_each_object_once();
        // `nodes` has only the nodes of matching versions, but the output keeps all versions of a matching way, and
        // needs the nodes of all these versions. Therefore `nodes` is used only if each object has one version.
        let nodes = Some(nodes).filter(|_| once);
        let added = referenced_ids(PlannedFile::new(file, &plan, ctx), &matched, nodes)?;
        let sets = [&matched, &added];
        let search = id_search_for(&sets, file, ctx)?;
        let decision = |entry: &BlobEntry| BlobDecision::visit_if(search.may_have_wanted(entry));
        let lacks_nodes = LocationForm::of(file, &plan).may_lack_nodes();
        let kept = KeptReferences {
            matched: &matched,
            added: &added,
            only_referenced: if options.remove_tags {
                Selected::Untagged
            } else {
                Selected::Whole
            },
            collects_ids: !once || lacks_nodes,
            located: lacks_nodes.then(SharedIdSet::default),
            chosen: Chosen::of(file, &plan, Repeats::Refused, ctx),
        };
        let (mut count, mut found) = (0, IdSets::default());
        let job = job(file, plan, output, options, None);
        let select = |_: &BlobEntry, block: &Block<'_>, selection: &mut Selection| {
            kept.select(block, selection)
        };
        let note = |(more, ids): (u64, Vec<ObjectId>)| {
            count += more;
            found.extend(ids);
        };
        let written = write_selected(job, decision, select, note, ctx)?;
        let collects_ids = kept.collects_ids;
        let located = kept.located.map(|located| located.into_set(ctx.jobs));
        let is_located = |object: &ObjectId| {
            let mut located = located.iter();
            object.kind == ObjectKind::Node && located.any(|ids| ids.contains(object.id))
        };
        let is_missing =
            |object: &ObjectId| !found.contains(object.kind, object.id) && !is_located(object);
        Ok(Summary {
            matched: matched.len(),
            missing: if collects_ids {
                added.ids().filter(is_missing).count() as u64
            } else {
                added.len().saturating_sub(count)
            },
            has_keys: None,
            kept: written,
        })
    }

    /// Collects the ids of the matching objects, and the ids of the nodes of the matching ways. Also returns the plan
    /// of the file.
    fn find_matches(&self, file: &PbfFile, ctx: &Context) -> Result<(BlobPlan, IdSets, IdSet)> {
        let (mut matched, nodes) = (IdSets::default(), SharedIdSet::default());
        let prefilter = |strings: &StringTable<'_>| match self.decide_by_strings(strings) {
            BlobDecision::Drop => BlobDecision::Drop,
            BlobDecision::Copy | BlobDecision::Visit => BlobDecision::Visit,
        };
        let scan = PlanningScan {
            name: "find tags",
            file,
            prefilter: &prefilter,
            ctx,
        };
        let plan = scan.run(
            |entry| self.decide_by_entry(entry) != BlobDecision::Drop,
            |_, block| {
                let (mut ids, mut refs) = ([const { Vec::new() }; 3], Vec::new());
                self.for_each(block, |kept, object| {
                    if kept {
                        let (kind, id) = (object.kind(), object.id()?);
                        ids[kind as usize].push(id);
                        if kind == ObjectKind::Way {
                            object.any_ref(|id| {
                                refs.push(id);
                                false
                            })?;
                        }
                    }
                    Ok(())
                })?;
                nodes.add(&IdBatch::from(sort_and_dedup(refs).as_slice()));
                Ok(ids.map(|ids| IdBatch::from(ids.as_slice())))
            },
            |ids| {
                for (kind, ids) in ObjectKind::ALL.into_iter().zip(ids) {
                    matched.of_mut(kind).add(&ids);
                }
            },
        )?;
        Ok((plan, matched, nodes.into_set(ctx.jobs)))
    }
}

/// The kept objects: the matching objects, and the objects that they refer to.
struct KeptReferences<'k> {
    matched: &'k IdSets,
    /// The objects that the matching objects refer to.
    added: &'k IdSets,
    /// The selection of objects that are kept only because other objects refer to them: whole, or without their tags.
    only_referenced: Selected,
    /// Whether the ids of the referenced objects in the file are collected. Otherwise the objects are only counted. The
    /// ids are needed if an object may occur more than once, or if ways may store locations of nodes that the file
    /// lacks.
    collects_ids: bool,
    /// The nodes whose locations are stored in kept ways; `None` if ways store no locations of nodes that the file
    /// lacks.
    located: Option<SharedIdSet>,
    chosen: Chosen,
}

impl KeptReferences<'_> {
    /// Selects the kept objects of a block. Returns the number of referenced objects in the block and, if ids are
    /// collected, the ids of these objects.
    fn select(
        &self,
        block: &Block<'_>,
        selection: &mut Selection,
    ) -> FormatResult<(u64, Vec<ObjectId>)> {
        let (mut count, mut ids, mut objects) = (0, Vec::new(), Vec::new());
        let mut ways = Vec::new();
        select_by_id(block, selection, |kind, id| {
            let is_matched = self.matched.contains(kind, id);
            let is_added = self.added.contains(kind, id);
            let is_kept = is_matched || is_added;
            count += u64::from(is_added);
            if is_added && self.collects_ids {
                ids.push(ObjectId { kind, id });
            }
            if is_kept && self.chosen.may_have_repeats() {
                objects.push(ObjectId { kind, id });
            }
            if kind == ObjectKind::Way && self.located.is_some() {
                ways.push(is_kept);
            }
            match (is_matched, is_added) {
                (true, _) => Selected::Whole,
                (false, true) => self.only_referenced,
                (false, false) => Selected::Drop,
            }
        })?;
        self.chosen.add(&objects)?;
        if let Some(located) = self.located.as_ref().filter(|_| ways.contains(&true)) {
            let nodes = sort_and_dedup(nodes_with_stored_locations(block, &ways)?);
            located.add(&IdBatch::from(nodes.as_slice()));
        }
        Ok((count, ids))
    }
}

/// Returns the job that writes the kept objects.
fn job<'a>(
    file: &'a PbfFile,
    plan: BlobPlan,
    output: OpenOutput,
    options: &Options,
    prefilter: Option<crate::engine::filter::StringPrefilter<'a>>,
) -> FilterJob<'a> {
    let header = header_of_part(file.header.clone(), !options.omit_referenced);
    let options = &options.output;
    FilterJob {
        prefilter,
        ..FilterJob::with_output("write objects", file, plan, output, header, options)
    }
}
