//! `check`: checks that ids are in order and unique, that referenced objects are in the file, and that indexes describe
//! their blobs.

mod areas;
mod blob_check;
mod contents;
mod doubled;
mod id_table;
mod index;
mod locations;
mod problem_file;
mod summary;

pub use areas::{AreaCheck, ListedProblem};
pub use contents::{Fault, Outside};
pub use doubled::{DoubledCheck, DoubledObject};
pub use index::{Finding, IndexCheck};
pub use problem_file::ProblemFile;
pub use summary::{Dangling, IdViolation, Missing, ReferenceLocations, Summary};

use crate::engine::location_form::LocationForm;
use crate::engine::{input, repeats};
use crate::error::Result;
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanNeeds, PlannedFile};
use crate::index::{IdSet, SharedIdSet};
use crate::osm::{KindSet, ObjectKind, id_from_rank};
use crate::pbf::feature;
use crate::runtime::{Context, Disorder};
use blob_check::{
    BlobEnds, BlobFindings, KindCheck, OrderRule, StoredLocationUse, ViolationPosition,
};
use contents::{ContentFindings, ContentRules};
use locations::{compare_locations_with_nodes, count_unused_nodes};
use problem_file::ProblemWriter;
use std::collections::BTreeMap;
use std::path::PathBuf;

options! {
    /// The options of `check`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
    }
    /// Checks ids, the coordinates of nodes, and the references of ways, for all kinds of objects, and lists the first
    /// hundred problems of each sort.
    new(input: impl Into<PathBuf>);
    setters {
        /// Whether to check that ids are in canonical order and unique. In a history file, the versions of an object
        /// may follow each other in ascending order.
        ids: bool = true,
        /// Whether the check is complete. Duplicate ids are then found anywhere in the file, not only in adjacent
        /// objects; all objects are decoded; strings must be UTF-8; no two tags of an object may have the same key; no
        /// tag may lack a key; the header must declare the right features; and the locations that ways store must be
        /// those of the nodes.
        full: bool,
        /// Whether to check that the coordinates of nodes are in the valid range.
        places: bool = true,
        /// Whether to check that the nodes of ways are in the file.
        refs: bool = true,
        /// Whether all nodes of ways must be in the file. Otherwise, a node may be missing if the way stores its
        /// location. Has no effect without `refs`.
        needs_nodes: bool,
        /// Whether the check of references includes the members of relations. Has no effect without `refs`.
        relations: bool,
        /// Whether to check that all blobs can be decoded, and that the indexes of the file describe them.
        index: bool,
        /// Whether to check that polygons can be made from all areas: closed ways, multipolygons and boundaries,
        /// selected as in an [export](super::export::run) of areas with the default options.
        areas: bool,
        /// Whether to find doubled objects and repeated keys. Two nodes are doubled if they have the same location and
        /// tags, two ways if they have the same line and tags. A key is repeated if an object has it more than once.
        doubled: bool,
        /// The file that shows where areas are broken and objects are doubled; `None` for no file.
        problem_file: Option<ProblemFile>,
        /// The kinds of objects whose ids and references are checked.
        kinds: KindSet = KindSet::ALL,
        /// The maximum number of problems of each sort to list, such as problems of ids, of references, and of indexes.
        /// Further problems are only counted.
        max_listed: usize = 100,
    }
}

/// Checks the ids, references, indexes and areas of a file. A violation is not an error, but part of the summary.
///
/// Reads one file, which may be unsorted or a history file. Checks all nodes first, then all ways, then all relations.
/// A blob is read at most once for each kind that it contains. A check of indexes reads every blob once more.
/// [`Options::full`] also reads every blob once more, unless the ids of all kinds are checked. If ways store locations,
/// [`Options::full`] reads nodes and ways once more. A check of references reads nodes and relations once more if,
/// according to the header, the file lacks the nodes that only ways need. [`Options::areas`] and [`Options::doubled`]
/// each read relations twice and everything else once. Writes only [`Options::problem_file`] and temporary files.
/// Temporary files are needed if the locations of nodes or the hashes of doubled objects do not fit into memory.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and id sets: [`Options::refs`] needs the ids of nodes, and
/// [`Options::relations`] and [`Options::full`] need the ids of all kinds. [`Options::relations`] also needs the ids of
/// missing members. [`Options::full`] needs as much memory as
/// [`add_locations_to_ways`](super::add_locations_to_ways::run) if ways store locations. A check of indexes uses 16
/// bytes for each range of the id table, which has one range for every few hundred objects. [`Options::areas`] needs as
/// much as an [export](super::export::run). [`Options::doubled`] needs as much as an export needs for locations, and
/// 200 MB.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged ([details](crate::commands#errors)). If only indexes are
///   checked, a damaged blob is a finding instead, unless its length or its header is damaged.
/// - Areas or doubled objects are checked, and the input is a history or change file, an object occurs twice, or
///   objects are not in canonical order.
/// - The file of problems exists and may not be overwritten, or cannot be written.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let file = input::open(&options.input, ctx)?;
    let problem_file = options.problem_file.as_ref();
    let mut writer = problem_file
        .map(|problem_file| ProblemWriter::create(problem_file, ctx))
        .transpose()?;
    let mut summary = check_objects(options, &file, ctx)?;
    let max_listed = options.max_listed;
    if options.areas {
        summary.areas = Some(areas::check(&file, max_listed, writer.as_mut(), ctx)?);
    }
    if options.doubled {
        summary.doubled = Some(doubled::check(&file, max_listed, writer.as_mut(), ctx)?);
    }
    writer.map_or(Ok(()), |writer| writer.finish(ctx))?;
    Ok(summary)
}

/// Checks everything but areas and doubled objects.
fn check_objects(options: &Options, file: &PbfFile, ctx: &Context) -> Result<Summary> {
    // One phase per kind, one for the indexes, and one for the contents unless the phases per kind read the contents,
    // too.
    let by_kind = if options.ids || options.refs || options.places {
        3
    } else {
        0
    };
    ctx.expect_phases(
        by_kind
            + u64::from(options.index)
            + u64::from(options.full && !options.checks_contents_with_ids()),
    );
    let index = if options.index {
        Some(index::check_index(file, options.max_listed, ctx)?)
    } else {
        None
    };
    let nothing_else = by_kind == 0 && !options.full;
    if nothing_else && (index.is_some() || options.areas || options.doubled) {
        return Ok(Summary {
            index,
            ..Summary::default()
        });
    }
    let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
    plan.check_is_current(file, ctx)?;
    let ctx = &match ctx.disorder {
        Disorder::Refuse => repeats::context_refusing_repeats(file, &plan, ctx)?,
        Disorder::Accept | Disorder::Tell { .. } => ctx.clone(),
    };
    let mut check = Check::begin(options, file, &plan, index);
    if options.refs {
        let [of_ways, of_relations] =
            [ObjectKind::Way, ObjectKind::Relation].map(|kind| check.checks_refs_of(kind));
        check.summary.missing = Some(Missing::zero_counts(of_ways, of_relations));
        let counts_locations = of_ways && !options.needs_nodes;
        check.summary.locations = counts_locations.then(ReferenceLocations::default);
    }
    for kind in ObjectKind::ALL {
        check.check_kind(kind, ctx)?;
    }
    let findings = check.contents.take();
    let mut summary = check.finish();
    let source = PlannedFile::new(file, &plan, ctx);
    if options.full {
        let found = contents::check(source, findings, options.content_rules())?;
        summary.set_content_faults(found);
    }
    check_locations(&mut summary, options, source)?;
    Ok(summary)
}

/// Completes the counts of locations in ways. Compares these locations with those of the nodes if [`Options::full`] is
/// set.
fn check_locations(
    summary: &mut Summary,
    options: &Options,
    source: PlannedFile<'_>,
) -> Result<()> {
    let form = LocationForm::of(source.file, source.plan);
    if let Some(found) = &mut summary.locations {
        let missing = summary.missing.and_then(|missing| missing.nodes_in_ways);
        found.unknown = missing.unwrap_or(0);
    }
    // In a history file, each version of a node has a location of its own, so the comparison has no meaning.
    if source.file.header.has(feature::HISTORY) || options.kinds != KindSet::ALL {
        return Ok(());
    }
    let is_each_once = summary.duplicates.or(summary.duplicates_in_a_row) == Some(0);
    if options.full
        && is_each_once
        && form.has_locations()
        && let Some(found) = compare_locations_with_nodes(source, options.max_listed)?
    {
        summary.locations = Some(found.counts);
        summary.listed_contradictions = found.listed;
        if form == LocationForm::AllNodes && found.counts.stored > 0 {
            summary.add_fault(FALSE_PROMISE, options.max_listed);
        }
    }
    if options.refs && form == LocationForm::NeededNodes {
        summary.unused_nodes = Some(count_unused_nodes(source)?);
    }
    Ok(())
}

/// The description of a fault: the header declares that the file has all nodes, but the file lacks some.
const FALSE_PROMISE: &str = "the header declares pbfhogg.AllNodes, and ways store locations of nodes that are not in the file";

impl Options {
    /// Whether contents are checked in the passes that check the ids of each kind. No further pass over blobs with
    /// objects is then needed.
    fn checks_contents_with_ids(&self) -> bool {
        self.full && self.ids && self.kinds == KindSet::ALL
    }

    fn content_rules(&self) -> ContentRules {
        ContentRules {
            kinds: self.kinds,
            max_listed: self.max_listed,
        }
    }
}

/// The state of a check of ids and references.
struct Check<'a> {
    options: &'a Options,
    file: &'a PbfFile,
    plan: &'a BlobPlan,
    order: OrderRule,
    /// The ids of all objects of each kind; empty for a kind whose ids are not needed.
    sets: [IdSet; 3],
    /// The first and last object of each blob of the plan; `None` if the blob was not read for its ids.
    ends: Vec<Option<BlobEnds>>,
    /// The violations to list, by the index of the blob in the plan and their position in the blob.
    ids: BTreeMap<(usize, ViolationPosition), IdViolation>,
    /// The missing nodes and ways that are members of relations, indexed by kind. Each object is counted once.
    missing_members: [IdSet; 2],
    /// The plan indices of the blobs in which relations refer to relations. References to relations are looked up when
    /// the ids of all relations are known.
    nested: Vec<usize>,
    /// The findings in contents, if contents are checked in the same passes as ids.
    contents: Option<ContentFindings>,
    summary: Summary,
}

impl<'a> Check<'a> {
    fn begin(
        options: &'a Options,
        file: &'a PbfFile,
        plan: &'a BlobPlan,
        index: Option<IndexCheck>,
    ) -> Self {
        Self {
            options,
            file,
            plan,
            order: OrderRule {
                is_free: file.has_spatial_layout(),
                history: file.header.has(feature::HISTORY),
            },
            sets: Default::default(),
            ends: vec![None; plan.entries.len()],
            ids: BTreeMap::new(),
            missing_members: Default::default(),
            nested: Vec::new(),
            contents: options
                .checks_contents_with_ids()
                .then(ContentFindings::default),
            summary: Summary {
                index,
                nodes: Some(0),
                ways: Some(0),
                relations: Some(0),
                spatial_layout: file.has_spatial_layout(),
                form: Some(LocationForm::of(file, plan).name()),
                outside: options.places.then_some(0),
                ..Summary::default()
            },
        }
    }
}

impl Check<'_> {
    /// Whether the ids of all objects of a kind have to be collected.
    fn needs_id_set(&self, kind: ObjectKind) -> bool {
        let for_refs = self.options.refs && (self.options.relations || kind == ObjectKind::Node);
        for_refs || (self.options.ids && self.options.full && self.options.kinds.contains(kind))
    }

    fn checks_places_of(&self, kind: ObjectKind) -> bool {
        let has_places = kind == ObjectKind::Node && self.options.kinds.contains(kind);
        self.options.places && has_places
    }

    fn checks_refs_of(&self, kind: ObjectKind) -> bool {
        let has_refs = match kind {
            ObjectKind::Node => false,
            ObjectKind::Way => true,
            ObjectKind::Relation => self.options.relations,
        };
        self.options.refs && has_refs && self.options.kinds.contains(kind)
    }

    fn stored_location_use(&self) -> StoredLocationUse {
        if self.options.needs_nodes {
            StoredLocationUse::Ignored
        } else if LocationForm::of(self.file, self.plan).may_lack_nodes() {
            StoredLocationUse::Always
        } else {
            StoredLocationUse::IfMissing
        }
    }

    /// Returns the rules for the objects of a kind.
    fn rules_of(&self, kind: ObjectKind) -> KindCheck {
        KindCheck {
            kind,
            order: self.order,
            places: self.checks_places_of(kind),
            checks_ids: self.options.ids && self.options.kinds.contains(kind),
            collects: self.needs_id_set(kind),
            refs: self.checks_refs_of(kind),
            stored: self.stored_location_use(),
            max_listed: self.options.max_listed,
            full: self.options.full,
            contents: self.contents.as_ref().map(|_| self.options.content_rules()),
        }
    }

    /// Checks all objects of one kind. The checks must be made in the order nodes, ways, relations: each check collects
    /// the ids to which objects of later kinds refer.
    fn check_kind(&mut self, kind: ObjectKind, ctx: &Context) -> Result<()> {
        let (file, plan) = (self.file, self.plan);
        let check = self.rules_of(kind);
        let (mut blobs, mut counted) = (Vec::new(), 0);
        for (index, entry) in plan.entries.iter().enumerate() {
            match entry.kinds.contains(kind) {
                true if check.needs_payload(entry) => blobs.push((entry, index)),
                true => counted += u64::from(entry.count),
                false => {}
            }
        }
        *self.object_counter(kind) += counted;
        if blobs.is_empty() {
            return Ok(());
        }
        let others = std::mem::take(&mut self.sets);
        let (mut own, collected) = (IdSet::default(), SharedIdSet::default());
        let mut last_id: Option<i64> = None;
        BlobPass::new(check.phase_name(), &file.input, ctx)
            .with_memory_factor(2)
            .run(
                blobs,
                || (),
                |reader, (), (entry, index)| {
                    let found =
                        reader.decode(entry, |payload| check.check_blob(entry, payload, &others));
                    found
                        .map(|found| check.move_ids_to(BlobFindings { index, ..found }, &collected))
                },
                |mut found| {
                    self.find_repeated_ids(check, &mut found, &mut own, &mut last_id);
                    self.add_findings(kind, found);
                    Ok(())
                },
            )?;
        self.sets = others;
        if !check.finds_all_duplicates() {
            own = collected.into_set(ctx.jobs);
        }
        self.sets[kind as usize] = own;
        self.check_nested_refs(check, ctx)
    }

    /// Adds the ids of a blob to `own`, which has the ids of all preceding blobs. Adds each id that occurred before to
    /// the findings. `last_id` is the last id of the preceding blob.
    fn find_repeated_ids(
        &self,
        check: KindCheck,
        found: &mut BlobFindings,
        own: &mut IdSet,
        last_id: &mut Option<i64>,
    ) {
        // If no id of the blob can have occurred before, the ids need not be looked at one by one.
        if !own.add_new(&found.batch) {
            found.ids = found.batch.ids().collect();
        }
        let mut listed = 0;
        for (position, id) in (0..).zip(std::mem::take(&mut found.ids)) {
            let is_new = own.insert(id);
            // In a history file, the versions of an object follow each other, so an id may equal the one before it.
            let is_version = check.order.history && last_id.replace(id) == Some(id);
            if is_new || is_version || !check.finds_all_duplicates() {
                continue;
            }
            if listed == check.max_listed {
                found.more_violations[1] += 1;
                continue;
            }
            listed += 1;
            let violation = IdViolation {
                kind: check.kind,
                id,
                blob: self.blob_number(found.index),
                duplicate: true,
            };
            let position = (check.kind, position, true);
            found.violations.push((position, violation));
        }
    }

    /// Checks the references of relations to relations, now that the ids of all relations are known.
    fn check_nested_refs(&mut self, check: KindCheck, ctx: &Context) -> Result<()> {
        let blobs = std::mem::take(&mut self.nested);
        if blobs.is_empty() {
            return Ok(());
        }
        let (file, plan) = (self.file, self.plan);
        let blobs = blobs.into_iter().map(|index| &plan.entries[index]);
        let relations = std::mem::take(&mut self.sets[ObjectKind::Relation as usize]);
        ctx.expect_phases(1);
        BlobPass::new("check relations", &file.input, ctx)
            .with_memory_factor(2)
            .run(
                blobs.collect(),
                || (),
                |reader, (), entry| {
                    reader.decode(entry, |payload| {
                        check.check_nested_refs(payload, &relations)
                    })
                },
                |found| {
                    self.add_dangling_of_blob(ObjectKind::Relation, found);
                    Ok(())
                },
            )
    }

    fn object_counter(&mut self, kind: ObjectKind) -> &mut u64 {
        let counter = match kind {
            ObjectKind::Node => &mut self.summary.nodes,
            ObjectKind::Way => &mut self.summary.ways,
            ObjectKind::Relation => &mut self.summary.relations,
        };
        counter.get_or_insert(0)
    }

    /// Adds the findings of a worker about one blob.
    fn add_findings(&mut self, kind: ObjectKind, mut found: BlobFindings) {
        *self.object_counter(kind) += found.count;
        if let Some(locations) = &mut self.summary.locations {
            locations.references += found.references;
            locations.stored += found.stored;
        }
        if let (Some(all), Some(contents)) = (&mut self.contents, found.contents.take()) {
            all.add(contents, self.options.max_listed);
        }
        let ends = &mut self.ends[found.index];
        *ends = ends.or(found.ends);
        for (position, violation) in std::mem::take(&mut found.violations) {
            self.add_violation((found.index, position), violation);
        }
        for (is_duplicate, count) in [false, true].into_iter().zip(found.more_violations) {
            if count > 0 {
                *self.violation_counter(is_duplicate) += count;
            }
        }
        self.nested.extend(found.has_nested.then_some(found.index));
        if let Some(outside) = &mut self.summary.outside {
            *outside += found.outside.len() as u64 + found.more_outside;
            let listed = &mut self.summary.listed_outside;
            let room = self.options.max_listed.saturating_sub(listed.len());
            listed.extend(found.outside.drain(..).take(room));
        }
        self.add_dangling_of_blob(kind, found);
    }

    /// Adds the references to missing objects that a worker found in one blob with objects of `in_kind`.
    fn add_dangling_of_blob(&mut self, in_kind: ObjectKind, found: BlobFindings) {
        let more = found.more_members.iter();
        for dangling in found.dangling.into_iter().chain(more) {
            self.add_dangling(dangling);
        }
        // `more_dangling` counts references of ways to nodes, or of relations to relations. References of relations to
        // nodes and ways are in `more_members`.
        let kind = match in_kind {
            ObjectKind::Way => ObjectKind::Node,
            _ => ObjectKind::Relation,
        };
        if found.more_dangling > 0 {
            let missing = self.summary.missing.get_or_insert_default();
            missing.add_count(kind, in_kind, found.more_dangling);
        }
    }

    /// Returns the counter of duplicate ids if `are_duplicates` is set, and the counter of ids out of order otherwise.
    fn violation_counter(&mut self, are_duplicates: bool) -> &mut u64 {
        let counter = if are_duplicates {
            &mut self.summary.duplicates
        } else {
            &mut self.summary.out_of_order
        };
        counter.get_or_insert(0)
    }

    /// Counts a violation. Keeps it for the list if it is among the first [`Options::max_listed`] violations in file
    /// order.
    fn add_violation(&mut self, position: (usize, ViolationPosition), violation: IdViolation) {
        *self.violation_counter(violation.duplicate) += 1;
        // Violations are not found in file order, but the list keeps the first violations in file order.
        self.ids.insert(position, violation);
        if self.ids.len() > self.options.max_listed {
            self.ids.pop_last();
        }
    }

    fn blob_number(&self, index: usize) -> u32 {
        self.plan.entries[index].number
    }

    /// Counts and lists a reference to a missing object. Further references of relations to the same node or way are
    /// ignored.
    fn add_dangling(&mut self, dangling: Dangling) {
        let is_member = dangling.in_kind == ObjectKind::Relation;
        if is_member
            && dangling.kind != ObjectKind::Relation
            && !self.missing_members[dangling.kind as usize].insert(dangling.id)
        {
            return;
        }
        self.summary
            .missing
            .get_or_insert_default()
            .add_count(dangling.kind, dangling.in_kind, 1);
        if self.summary.listed_refs.len() < self.options.max_listed {
            self.summary.listed_refs.push(dangling);
        }
    }

    fn finish(mut self) -> Summary {
        if self.options.ids {
            self.compare_blob_ends();
            let out_of_order = *self.summary.out_of_order.get_or_insert(0);
            let found = *self.summary.duplicates.get_or_insert(0);
            if self.order.is_free {
                self.summary.out_of_order = None;
            }
            if (out_of_order > 0 || self.order.is_free) && !self.options.full {
                // Without order, duplicates may be far apart, but only adjacent ones were found.
                self.summary.duplicates = None;
                self.summary.duplicates_in_a_row = Some(found);
            }
        }
        self.summary.listed_ids = self.ids.into_values().collect();
        self.summary
    }

    /// Compares the last object of each blob with the first object of the next blob.
    fn compare_blob_ends(&mut self) {
        let ends = std::mem::take(&mut self.ends);
        let mut before: Option<BlobEnds> = None;
        for (index, ends) in ends.into_iter().enumerate() {
            let Some(ends) = ends else { continue };
            if let Some((_, last, _, last_version)) = before
                && let Some(duplicate) = self
                    .order
                    .find_violation((last, last_version), (ends.0, ends.2))
            {
                let (kind, id) = (ends.0.0, id_from_rank(ends.0.1));
                if self.options.kinds.contains(kind) && !(duplicate && self.options.full) {
                    let blob = self.blob_number(index);
                    let violation = IdViolation {
                        kind,
                        id,
                        blob,
                        duplicate,
                    };
                    self.add_violation((index, (kind, 0, duplicate)), violation);
                }
            }
            before = Some(ends);
        }
    }
}
