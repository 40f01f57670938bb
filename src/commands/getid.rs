//! `getid`: writes the objects with given ids, or all other objects.

use super::ids;
use super::ids::IdSource;
use crate::engine::filter::{BlobDecision, FilterJob, Selection, select_by_id, write_selected};
use crate::engine::headers::header_of_part;
use crate::engine::id_search::{IdSearch, id_search_for};
use crate::engine::location_form::LocationForm;
use crate::engine::references::{referenced_ids, referring_ids};
use crate::engine::repeats::{Chosen, Repeats};
use crate::engine::scan::Scan;
use crate::engine::sink::WriteSummary;
use crate::engine::stored_locations::nodes_with_stored_locations;
use crate::engine::{OutputOptions, Selected, input};
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, PlannedFile};
pub use crate::index::{IdSet, IdSets};
use crate::io::OpenOutput;
use crate::osm::{ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, Block};
use crate::runtime::Context;
use serde::{Serialize, Serializer};
use std::path::PathBuf;

options! {
    /// The options of `getid`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The ids of the wanted objects.
        pub ids: IdSource,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// Only the wanted objects are written.
    new(input: impl Into<PathBuf>, ids: IdSource, output: OutputOptions);
    setters {
        /// Whether all objects except the wanted ones are written. Cannot be combined with `add_referenced` or
        /// `add_parents`.
        invert: bool,
        /// Whether to also write the members of wanted relations and the nodes of wanted ways, and in turn the members
        /// and nodes of these objects.
        add_referenced: bool,
        /// Whether to also write the ways and relations that refer to the wanted objects, directly or through other
        /// objects.
        add_parents: bool,
        /// Whether objects that are written only because other objects refer to them lose their tags. Has no effect
        /// without `add_referenced`.
        remove_tags: bool,
        /// Whether every referenced node that is not in the file counts as missing. Otherwise, such a node does not
        /// count as missing if a way stores its location. A requested node that is not in the file is always missing.
        needs_nodes: bool,
    }
}

impl Options {
    /// Whether the output has all nodes of its ways, except nodes that the file lacks. `wanted` has the wanted objects.
    fn keeps_nodes_of_ways(&self, wanted: &IdSets) -> bool {
        if self.invert {
            wanted.of(ObjectKind::Node).is_empty()
        } else {
            self.add_referenced && !self.add_parents
        }
    }
}

/// The result of `getid`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the numbers of input blobs that were copied, skipped and rewritten.
    #[serde(flatten)]
    pub kept: WriteSummary,
    /// The number of distinct ids that were asked for.
    pub requested: u64,
    /// The number of ids that were added to the requested ones. The added objects are referenced by requested objects
    /// or refer to requested objects, directly or through other objects. 0 unless [`Options::add_referenced`] or
    /// [`Options::add_parents`] is set.
    pub referenced: u64,
    /// The requested and referenced ids that are not in the file. Without [`Options::needs_nodes`], a node that is
    /// referenced but not requested is left out if a written way stores its location. The serialized form has the first
    /// thousand in canonical order.
    #[serde(serialize_with = "first_ids")]
    pub missing: IdSets,
    /// The number of ids in `missing`.
    pub missing_count: u64,
    /// The requested ids. Not serialized.
    #[serde(skip)]
    pub wanted: IdSets,
}

/// Serializes the first thousand ids in canonical order, in the form `n17`.
fn first_ids<S: Serializer>(ids: &IdSets, serializer: S) -> Result<S::Ok, S::Error> {
    const MOST: usize = 1000;
    serializer.collect_seq(ids.ids().take(MOST).map(|id| id.to_string()))
}

/// Writes all versions of the objects with given ids, or all other objects.
///
/// Reads the sources of ids, then one file, which may be unsorted or a history file. One pass decodes the blobs that
/// may contain a wanted id. The id range of a blob can rule this out. If the file has a table of ids, the table can
/// rule it out, too. With [`Options::invert`], the other blobs are copied. With [`Options::add_referenced`], earlier
/// passes read the wanted relations, their member relations and so on, and the wanted ways. If many blobs may contain
/// these relations, all relations are read twice instead. With [`Options::add_parents`], earlier passes read all ways,
/// and all relations once for each level of nested relations. Writes one file, in the order of the input. An id that is
/// not in the file is not an error; the summary lists it.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and sets of the ids that are requested, referenced and found; with
/// [`Options::add_referenced`], also the references from relations to relations.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - [`Options::invert`] is set with [`Options::add_referenced`] or [`Options::add_parents`].
/// - A file of ids cannot be read, or contains something other than ids and comments.
///
/// # Examples
///
/// ```
/// use pbfhogg::commands::{IdSource, getid};
/// use pbfhogg::{Context, ObjectId, ObjectKind, OutputOptions};
/// # use pbfhogg::commands::synth;
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// # let world = at("world.osm.pbf");
/// # let ctx = Context::default();
/// # synth::run(&synth::Options::new(20_000, OutputOptions::file(&world)), &ctx)?;
/// // A way and its nodes.
/// let way = ObjectId::parse("w1", ObjectKind::Node).expect("an id");
/// let output = OutputOptions::file(at("way.osm.pbf"));
/// let options = getid::Options::new(&world, IdSource::new(vec![way]), output).add_referenced(true);
/// assert!(getid::run(&options, &ctx)?.missing.is_empty());
/// # Ok::<(), pbfhogg::Error>(())
/// ```
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let (children, parents) = (options.add_referenced, options.add_parents);
    check_options(options)?;
    ctx.expect_phases(1 + 2 * u64::from(children) + 3 * u64::from(parents));
    let wanted = ids::collect(&options.ids, ctx)?;
    let file = input::open_to_copy(&options.input, &options.output.encoding(), ctx)?;
    let output = OpenOutput::open(options.output.target.clone(), ctx)?;
    // If no references are followed, a single pass visits the blobs, even blobs without an index. Otherwise several
    // passes choose blobs by kind and id range, so the entry of each blob must have its kinds and its id range.
    let follows = children || parents;
    let needs = if follows {
        PlanNeeds::Ranges
    } else {
        PlanNeeds::Frames
    };
    let plan = BlobPlan::open(&file, needs, ctx)?;
    let (added, parent_ids) =
        find_added_and_parent_ids(options, PlannedFile::new(&file, &plan, ctx), &wanted)?;
    let chosen = Chosen::of(&file, &plan, Repeats::Counted, ctx);
    let located = LocatedWays::new_if_needed(options, &file, &plan);
    let sets = [&wanted, &added];
    let search = id_search_for(&sets, &file, ctx)?;
    let is_copied = |entry: &&BlobEntry| options.invert && !search.may_have_wanted(entry);
    chosen.add_repeats_in_copied(plan.entries.iter().filter(is_copied));
    let header = header_of_part(file.header.clone(), options.keeps_nodes_of_ways(&wanted));
    let job = FilterJob::with_output("get objects", &file, plan, output, header, &options.output);
    let rule = KeepRule {
        options,
        wanted: &wanted,
        added: &added,
        referring: &parent_ids,
        chosen: &chosen,
    };
    let mut found = IdSets::default();
    let kept = write_selected(
        job,
        move |entry| rule.decide(entry, &search),
        |_, block, selection| rule.select(block, selection),
        |ids| found.extend(ids),
        ctx,
    )?;
    chosen.warn_of_repeats(ctx);
    let absent = |id: &ObjectId| !found.contains(id.kind, id.id);
    let not_wanted = |id: &ObjectId| !wanted.contains(id.kind, id.id);
    let mut missing: IdSets = wanted.ids().filter(absent).collect();
    missing.extend(added.ids().filter(absent));
    if let Some(located) = located {
        missing = located.without_located_nodes(missing, [&wanted, &added], ctx)?;
    }
    Ok(Summary {
        kept,
        requested: wanted.len(),
        referenced: added.ids().filter(not_wanted).count() as u64,
        missing_count: missing.len(),
        missing,
        wanted,
    })
}

/// Fails if options contradict each other.
fn check_options(options: &Options) -> Result<()> {
    if options.invert && (options.add_referenced || options.add_parents) {
        let cause = "references and parents cannot be added to an inverted selection: they add to the objects that \
                     are kept";
        return Err(Error::Usage(cause.into()));
    }
    Ok(())
}

/// A file whose ways store locations. A way may store the location of a node that is not in the file.
struct LocatedWays<'f> {
    file: &'f PbfFile,
    plan: BlobPlan,
}

impl<'f> LocatedWays<'f> {
    /// Returns `None` if ways store no locations. Also returns `None` without [`Options::add_referenced`], and with
    /// [`Options::needs_nodes`]. Stored locations have no effect in these cases.
    fn new_if_needed(options: &Options, file: &'f PbfFile, plan: &BlobPlan) -> Option<Self> {
        let is_needed = options.add_referenced && !options.needs_nodes;
        let is_located = LocationForm::of(file, plan).has_locations();
        (is_needed && is_located).then(|| Self {
            file,
            plan: plan.clone(),
        })
    }

    /// Returns `missing` without the nodes whose locations the kept ways store. Requested nodes always stay. `wanted`
    /// has the requested objects. The kept ways are in `wanted` and `added`.
    fn without_located_nodes(
        &self,
        missing: IdSets,
        [wanted, added]: [&IdSets; 2],
        ctx: &Context,
    ) -> Result<IdSets> {
        if missing.of(ObjectKind::Node).is_empty() {
            return Ok(missing);
        }
        let ways = [wanted, added].map(|ids| ids.of(ObjectKind::Way));
        let mut known = IdSet::default();
        ctx.expect_phases(1);
        Scan::without_strings("locations in ways", self.file, &self.plan, ctx).run(
            BlobEntry::may_have_locations,
            |_, block| {
                let mut is_kept = Vec::new();
                block.for_each_id(|kind, id| {
                    if kind == ObjectKind::Way {
                        is_kept.push(ways.iter().any(|ways| ways.contains(id)));
                    }
                })?;
                nodes_with_stored_locations(block, &is_kept)
            },
            |located| known.extend(located),
        )?;
        let is_missing = |id: &ObjectId| {
            id.kind != ObjectKind::Node || wanted.contains(id.kind, id.id) || !known.contains(id.id)
        };
        Ok(missing.ids().filter(is_missing).collect())
    }
}

/// Returns `(added, parents)`. `parents` has the objects that refer to wanted objects. `added` has the objects of
/// `parents` and the objects that wanted objects refer to. Objects that the options do not ask for are in neither set.
fn find_added_and_parent_ids(
    options: &Options,
    source: PlannedFile<'_>,
    wanted: &IdSets,
) -> Result<(IdSets, IdSets)> {
    let (mut added, mut parents) = (IdSets::default(), IdSets::default());
    if options.add_referenced {
        added = referenced_ids(source, wanted, None)?;
    }
    if options.add_parents {
        parents = referring_ids(source, wanted)?;
    }
    added.extend(parents.ids());
    Ok((added, parents))
}

/// The rule by which objects are kept.
#[derive(Clone, Copy)]
struct KeepRule<'a> {
    options: &'a Options,
    wanted: &'a IdSets,
    /// The ids of the objects that wanted objects refer to, and of the objects that refer to wanted objects.
    added: &'a IdSets,
    /// The ids of the objects that refer to wanted objects. These objects always keep their tags.
    referring: &'a IdSets,
    /// The written objects, which are recorded to find objects that occur twice.
    chosen: &'a Chosen,
}

impl KeepRule<'_> {
    /// Decides by the entry of a blob whether the blob is visited, copied or dropped.
    fn decide(
        &self,
        entry: &BlobEntry,
        search: &IdSearch<impl Fn(ObjectKind, i64, i64) -> bool>,
    ) -> BlobDecision {
        match (self.options.invert, search.may_have_wanted(entry)) {
            (_, true) => BlobDecision::Visit,
            (true, false) => BlobDecision::Copy,
            (false, false) => BlobDecision::Drop,
        }
    }

    /// Selects the objects of a block. Returns the wanted and added ids that occur in the block.
    fn select(&self, block: &Block<'_>, selection: &mut Selection) -> FormatResult<Vec<ObjectId>> {
        let only_referenced = if self.options.remove_tags {
            Selected::Untagged
        } else {
            Selected::Whole
        };
        let (mut found, mut rest) = (Vec::new(), Vec::new());
        let counts_rest = self.options.invert && self.chosen.may_have_repeats();
        select_by_id(block, selection, |kind, id| {
            let keep = match self.wanted.contains(kind, id) {
                true => Selected::whole_if(!self.options.invert),
                false if self.options.invert => {
                    rest.extend(counts_rest.then_some(ObjectId { kind, id }));
                    return Selected::Whole;
                }
                false if self.referring.contains(kind, id) => Selected::Whole,
                false if self.added.contains(kind, id) => only_referenced,
                false => return Selected::Drop,
            };
            found.push(ObjectId { kind, id });
            keep
        })?;
        let kept = if self.options.invert { &rest } else { &found };
        self.chosen.add(kept)?;
        Ok(found)
    }
}
