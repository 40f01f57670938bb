//! `augmented-diff`: writes the effects of changes on a file, with each object before and after the changes.
//!
//! First, passes over the base find the objects that changes concern (`find`, `ways`, `relations`). These objects are
//! kept (`kept`), and so are the locations and ways from which their geometries are made (`geometry`). `history` has
//! the versions between the old and the new state. Finally, the actions are found in order of kind and id (`actions`),
//! and encoded (`xml`, `groups`, `feed`, `tiles`).

mod action;
mod actions;
mod batches;
mod blobs;
mod earlier;
mod edit_groups;
mod feed;
mod filter;
mod find;
mod geometry;
mod group_files;
mod groups;
mod history;
mod kept;
mod nodes;
mod relations;
mod reshaped;
mod route_graph;
mod routes;
mod state_geometries;
mod states;
mod summary;
mod tiles;
mod two_files;
mod ways;
mod xml;

use super::repeated_keys::warn_of_repeated_keys;
use crate::engine::block_observer::BlockObserver;
use crate::engine::location_form::LocationForm;
use crate::engine::{input, repeats};
use crate::error::{Advice, Error, Result};
use crate::file::{BlobPlan, PbfFile, PlannedFile};
pub use crate::formats::features::{ActionView, EditGroup, GroupBy};
use crate::formats::{ChangeSet, KeptVersions, SameTime, read_changes};
use crate::geometry::Shape;
use crate::io::OutputTarget;
use crate::osm::{KindSet, ObjectExpression};
use crate::pbf::{BlobFlags, feature};
use crate::runtime::Context;
use actions::ActionSource;
pub use batches::{ActionMaker, batches};
pub use earlier::is_replaceable;
pub use edit_groups::{EditGroupForm, write_groups};
pub use feed::ActionList;
use feed::FeedForm;
use find::{Findings, GeometryNeeds, Search};
use group_files::Groups;
use history::{Replaces, Steps};
use nodes::ChangedNodes;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
pub use summary::Summary;
pub use two_files::{FilePair, between, groups_between, ids_between, list_between};

/// The highest zoom level of tiles.
pub const MAX_ZOOM: u8 = crate::geometry::MAX_ZOOM;

options! {
    /// The options of `augmented-diff`.
    pub struct Options {
        /// The file before the changes, which must have current data; `-` is standard input. A file that is not in
        /// canonical order is first sorted into a temporary file.
        pub base: PathBuf,
        /// The change files, in order. Of several changes with the same version and timestamp, the last one wins.
        pub changes: Vec<PathBuf>,
        /// The destination and the form of the augmented diff.
        pub output: Output,
    }
    new(base: impl Into<PathBuf>, changes: Vec<PathBuf>, output: Output);
    setters {
        /// The rules that select the actions to write.
        selection: Selection,
        /// The maximum memory in bytes for ways that are members of relations; `None` for 1 GB. Ways that do not fit go
        /// to a temporary file in the directory of the output. The maximum size of a row of a table is 64 MB for each
        /// GB of this memory.
        max_memory: Option<u64>,
    }
}

/// The destination and the form of an augmented diff.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Output {
    /// A file of XML, compressed if its name says so.
    Xml(OutputTarget),
    /// A file of GeoJSON, compressed if its name says so: a collection of features, or with `is_sequence` a text
    /// sequence (RFC 8142). A feature has the new geometry of its object, or the old geometry if the object is deleted.
    GeoJson {
        /// The file.
        target: OutputTarget,
        /// Whether the file is a text sequence.
        is_sequence: bool,
    },
    /// A file of comma-separated values (RFC 4180), compressed if its name says so. Each action has a location: the
    /// geometry itself if it is a point, and otherwise the middle of its box. Tags are JSON objects.
    Csv(OutputTarget),
    /// A Parquet table with a row for each object. The old and the new geometry are those that
    /// [`export`](crate::commands::export) writes to a table by default. A route also has an action if a route that is
    /// nested in it has changed.
    #[cfg(feature = "parquet")]
    Parquet(OutputTarget),
    /// A list of the Web Mercator tiles in which changes can be seen, compressed if the name of the file says so. Each
    /// line is a tile `z/x/y`, and the lines are in order of `z`, `x` and `y`. The tiles are those that the old or the
    /// new geometry touches. Polygons are filled unless they are too large. An object without a change of its own
    /// counts only if its geometry changes. A relation without a change of its own also has to be an area, before or
    /// after the changes.
    Tiles {
        /// The file.
        target: OutputTarget,
        /// The zoom levels, up to [`MAX_ZOOM`].
        zooms: RangeInclusive<u8>,
    },
    /// A directory with an XML file for each changeset, `CHANGESET.adiff`. Files of earlier runs are continued: an
    /// object that occurs again keeps its first old state, and gets the last new state.
    ByChangeset(PathBuf),
    /// A directory with an XML file for each change file. Existing files are replaced.
    ByChangeFile {
        /// The directory.
        directory: PathBuf,
        /// The names of the files without their ending, `.adiff`, one for each change file.
        names: Vec<String>,
    },
}

options! {
    /// The augmented diffs that a command writes while it applies changes.
    #[derive(Debug, Clone, Default)]
    #[non_exhaustive]
    pub struct AugmentedDiffs {
    }
    setters {
        /// The outputs: at most one with tiles, and at most one with actions; empty for none. They are complete before
        /// the data file gets its name.
        outputs: Vec<Output>,
        /// The rules that select the actions to write.
        selection: Selection,
    }
}

options! {
    /// The rules that select the actions to write.
    #[derive(Debug, Clone, Default)]
    #[non_exhaustive]
    pub struct Selection {
    }
    setters {
        /// Whether to leave out objects that are affected only because one of their nodes or members has changed.
        direct_only: bool,
        /// The region of the objects to write; `None` for all objects. An object must share a point with the region
        /// before or after the changes. An area that contains the whole region counts, too.
        region: Option<Shape>,
        /// The expressions that select objects; empty for all objects. At least one of them must match an object before
        /// or after the changes.
        filter: Vec<ObjectExpression>,
        /// The maximum number of members of a relation that is written with the geometry of its members; `None` for no
        /// limit.
        max_relation_members: Option<u64>,
        /// The kinds of objects; `None` for all kinds.
        kinds: Option<KindSet>,
        /// Whether features have all tags of their objects, and whether objects without tags have geometries, too.
        /// Otherwise features have the tags and geometries of an [`export`](crate::commands::export).
        whole_objects: bool,
    }
}

impl AugmentedDiffs {
    /// Returns the versions of changes that the outputs need.
    pub(crate) fn kept_versions(&self) -> KeptVersions {
        if self.outputs_for_versions(KeptVersions::All).is_empty() {
            KeptVersions::Newest
        } else {
            KeptVersions::All
        }
    }

    /// Fails if an output file may not be written. Also fails if two outputs have the same path, or if an output has
    /// the path of one of `inputs`. `data` is the output of the command that applies the changes.
    pub(crate) fn check(&self, data: &OutputTarget, inputs: &[&Path]) -> Result<()> {
        let mut targets: Vec<_> = self.outputs.iter().filter_map(Output::target).collect();
        if targets.is_empty() {
            return Ok(());
        }
        targets.iter().try_for_each(|target| target.check())?;
        OutputTarget::check_distinct(targets.iter().copied(), inputs)?;
        targets.push(data);
        for (number, target) in targets.iter().enumerate() {
            if targets.iter().take(number).any(|other| other == target) {
                let cause = "the augmented diff and the data need outputs of their own";
                return Err(Error::Usage(cause.into()));
            }
        }
        OutputTarget::check_distinct(targets, &[])
    }

    /// Writes the augmented diff that needs all versions of changes, if there is one. Afterwards, `changes` has only
    /// the newest change of each object. The base must be in canonical order.
    pub(crate) fn write_diff_of_all_versions(
        &self,
        source: PlannedFile<'_>,
        changes: &mut ChangeSet,
    ) -> Result<Option<Summary>> {
        let base = Base::new(source, Replaces::IfNewer);
        let mut written = None;
        for output in self.outputs_for_versions(KeptVersions::All) {
            written = Some(write(&base, changes, output, &self.selection)?);
        }
        if written.is_some() {
            changes.keep_newest(source.ctx);
        }
        Ok(written)
    }

    /// Begins the search for changed nodes; `None` if no output needs the newest versions of changes.
    pub(crate) fn changed_nodes(&self, changes: &ChangeSet) -> Option<ChangedNodes> {
        let outputs = self.outputs_for_versions(KeptVersions::Newest).into_iter();
        let mut nodes = outputs.map(|output| {
            ChangedNodes::new(changes, Replaces::IfNewer, &output.scratch_directory())
        });
        nodes.next()
    }

    /// Returns the outputs that need the given versions of changes.
    fn outputs_for_versions(&self, versions: KeptVersions) -> Vec<&Output> {
        let outputs = self.outputs.iter();
        outputs
            .filter(|output| output.kept_versions() == versions)
            .collect()
    }
}

impl Selection {
    /// Returns which geometries the selected actions need.
    fn geometry_needs(&self, follows_routes: bool) -> GeometryNeeds {
        GeometryNeeds {
            max_members: self.max_relation_members.unwrap_or(u64::MAX),
            follows_routes,
        }
    }
}

impl Output {
    /// Returns the directory for temporary files.
    fn scratch_directory(&self) -> PathBuf {
        match self {
            Self::ByChangeset(directory) | Self::ByChangeFile { directory, .. } => {
                directory.parent().unwrap_or(directory).to_owned()
            }
            _ => self
                .target()
                .map_or_else(std::env::temp_dir, OutputTarget::scratch_directory),
        }
    }

    /// Whether the output has the geometries of an export, or is computed from them.
    fn has_features(&self) -> bool {
        match self {
            Self::GeoJson { .. } | Self::Csv(_) | Self::Tiles { .. } => true,
            #[cfg(feature = "parquet")]
            Self::Parquet(_) => true,
            Self::Xml(_) | Self::ByChangeset(_) | Self::ByChangeFile { .. } => false,
        }
    }

    /// Returns the output file; `None` for a directory.
    pub(crate) fn target(&self) -> Option<&OutputTarget> {
        match self {
            Self::Xml(target)
            | Self::Csv(target)
            | Self::GeoJson { target, .. }
            | Self::Tiles { target, .. } => Some(target),
            #[cfg(feature = "parquet")]
            Self::Parquet(target) => Some(target),
            Self::ByChangeset(_) | Self::ByChangeFile { .. } => None,
        }
    }

    /// Returns the versions of changes that the output needs.
    pub(crate) fn kept_versions(&self) -> KeptVersions {
        match self {
            Self::ByChangeset(_) | Self::ByChangeFile { .. } => KeptVersions::All,
            _ => KeptVersions::Newest,
        }
    }
}

/// Writes the augmented diff of changes to a file of current data.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), the changes as in [`apply_changes`](crate::commands::apply_changes::run),
/// and 16 bytes for each node of the written ways. The ways that are members of written relations need 6 to 12 bytes
/// for each of their nodes, at most [`Options::max_memory`]. If the members of all relations need at most 128 MB, they
/// are all held. Up to 32 MB of the written objects of the base are held, and the rest is in a temporary file. Features
/// and tiles also need 32 bytes for each relation that is a member of a route. For each route that is nested in a
/// written route, they need 16 bytes per member. [`Output::ByChangeset`] also needs 100 MB, and the size of the largest
/// file of a changeset.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - The base is a history file, according to its header or because it contains deleted versions.
/// - An object occurs twice in the base.
/// - A change file has data instead of changes, or is damaged.
/// - With [`Output::ByChangeset`]: a change has no changeset, a file of the directory is not an augmented diff of this
///   program, or another run writes to the directory.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    ctx.expect_phases(7 + u64::from(options.output.has_features()));
    let inputs = options.changes.iter().chain([&options.base]);
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    OutputTarget::check_distinct(options.output.target(), &inputs)?;
    let versions = options.output.kept_versions();
    let scratch = options.output.scratch_directory();
    let paths = (options.base.as_path(), options.changes.as_slice());
    with_changes(paths, versions, &scratch, ctx, |base, changes| {
        let base = base.with_memory(options.max_memory);
        write(&base, changes, &options.output, &options.selection)
    })
}

/// Calls `take` with the base and with the changes to it. `paths` are the path of the base and the paths of the change
/// files.
fn with_changes<T>(
    paths: (&Path, &[PathBuf]),
    versions: KeptVersions,
    scratch: &Path,
    ctx: &Context,
    take: impl FnOnce(&Base<'_>, &ChangeSet) -> Result<T>,
) -> Result<T> {
    let (base, changes) = paths;
    let file = input::open(base, ctx)?;
    let changes = {
        let _phase = ctx.phase("read changes", 0);
        read_changes(changes, SameTime::LastRead, versions, ctx)?
    };
    let (file, plan) = input::sort_if_needed(file, &Default::default(), scratch, ctx)?;
    let source = PlannedFile::new(&file, &plan, ctx);
    with_base(source, Replaces::IfNewer, |base| take(base, &changes))
}

/// Calls `take` with the file as the base. The file must be in canonical order.
fn with_base<T>(
    source: PlannedFile<'_>,
    replaces: Replaces,
    take: impl FnOnce(&Base<'_>) -> Result<T>,
) -> Result<T> {
    check_not_history(source.file, source.plan)?;
    let ctx = &repeats::context_refusing_repeats(source.file, source.plan, source.ctx)?;
    take(&Base::new(PlannedFile { ctx, ..source }, replaces))
}

/// Augmented diffs that are made while another command applies the changes. Blobs of ways that the diffs and the other
/// command both need are decoded only once.
pub(crate) struct OngoingDiffs<'o, 'c> {
    search: Search<'o, 'c>,
    base: Base<'o>,
    outputs: Vec<&'o Output>,
    selection: &'o Selection,
}

impl<'o, 'c> OngoingDiffs<'o, 'c> {
    /// Begins the augmented diffs that need the newest versions of `changes` to the base, which is in canonical order.
    /// `nodes` has seen those blobs of nodes that the other command has decoded.
    pub(crate) fn begin(
        diffs: &'o AugmentedDiffs,
        source: PlannedFile<'o>,
        changes: &'c ChangeSet,
        nodes: ChangedNodes,
    ) -> Result<Self> {
        let base = Base::new(source, Replaces::IfNewer);
        let (outputs, selection) = (
            diffs.outputs_for_versions(KeptVersions::Newest),
            &diffs.selection,
        );
        Ok(Self {
            search: begin_search(base, changes, nodes, &outputs, selection)?,
            base,
            outputs,
            selection,
        })
    }

    /// Returns the search for ways as an observer of the blobs of the base that the other command decodes.
    pub(crate) fn observer(&self) -> &dyn BlockObserver {
        &self.search
    }

    /// Reads the blobs that the [observer](Self::observer) has not seen, and writes the augmented diffs. Returns the
    /// summary of the augmented diff with actions, and that of the augmented diff with tiles.
    pub(crate) fn finish(self) -> Result<[Option<Summary>; 2]> {
        let findings = self.search.finish()?;
        let [mut actions, mut tiles] = [None, None];
        for output in self.outputs {
            let written = write_output(&self.base, &findings, output, self.selection)?;
            match output {
                Output::Tiles { .. } => tiles = Some(written),
                _ => actions = Some(written),
            }
        }
        Ok([actions, tiles])
    }
}

/// Writes one augmented diff.
fn write(
    base: &Base<'_>,
    changes: &ChangeSet,
    output: &Output,
    selection: &Selection,
) -> Result<Summary> {
    let nodes = ChangedNodes::new(changes, base.replaces, &output.scratch_directory());
    let findings = begin_search(*base, changes, nodes, &[output], selection)?.finish()?;
    write_output(base, &findings, output, selection)
}

/// Finds the objects that changes concern. Treats all changes as one step.
fn find_concerned_objects<'s, 'c>(
    base: &Base<'s>,
    changes: &'c ChangeSet,
    selection: &Selection,
    scratch: &Path,
) -> Result<Findings<'c>> {
    let nodes = ChangedNodes::new(changes, base.replaces, scratch);
    let (steps, needs) = (Steps::default(), selection.geometry_needs(true));
    Search::begin(*base, (changes, steps), nodes, needs, scratch)?.finish()
}

/// Begins the search for the objects that changes concern.
fn begin_search<'s, 'c>(
    base: Base<'s>,
    changes: &'c ChangeSet,
    nodes: ChangedNodes,
    outputs: &[&Output],
    selection: &Selection,
) -> Result<Search<'s, 'c>> {
    let mut targets = outputs.iter().filter_map(|output| output.target());
    targets.try_for_each(OutputTarget::check)?;
    let steps = match outputs {
        [Output::ByChangeset(_)] => Steps::by_changeset(changes)?,
        [Output::ByChangeFile { .. }] => Steps::grouped_by_file(changes)?,
        _ => Steps::default(),
    };
    let scratch = outputs.first().map(|output| output.scratch_directory());
    let scratch = scratch.unwrap_or_else(std::env::temp_dir);
    let needs = selection.geometry_needs(outputs.iter().any(|output| output.has_features()));
    Search::begin(base, (changes, steps), nodes, needs, &scratch)
}

/// Writes one output: the actions or tiles that follow from the findings.
fn write_output(
    base: &Base<'_>,
    findings: &Findings<'_>,
    output: &Output,
    selection: &Selection,
) -> Result<Summary> {
    let source = ActionSource {
        base,
        findings,
        selection,
    };
    let written = match output {
        Output::Xml(target) => xml::write(source, target),
        Output::GeoJson {
            target,
            is_sequence,
        } => {
            let form = if *is_sequence {
                FeedForm::Sequence
            } else {
                FeedForm::Collection
            };
            feed::write_text(source, target, form)
        }
        Output::Csv(target) => feed::write_text(source, target, FeedForm::Csv),
        #[cfg(feature = "parquet")]
        Output::Parquet(target) => feed::write_table(source, target),
        Output::Tiles { target, zooms } => tiles::write(source, zooms, target),
        Output::ByChangeset(directory) => groups::write(source, directory, &Groups::Changesets),
        Output::ByChangeFile { directory, names } => {
            groups::write(source, directory, &Groups::Files(names))
        }
    };
    written.inspect(|summary| warn_of_repeated_keys(summary.repeated_keys, base.source.ctx))
}

/// The default of [`Options::max_memory`].
const MAX_MEMORY: usize = 1_000_000_000;

/// The file before the changes.
#[derive(Clone, Copy)]
struct Base<'b> {
    source: PlannedFile<'b>,
    /// The maximum memory in bytes for ways that are members of relations. The maximum size of a row of a table follows
    /// from this maximum.
    max_memory: usize,
    replaces: Replaces,
}

impl<'b> Base<'b> {
    const fn new(source: PlannedFile<'b>, replaces: Replaces) -> Self {
        Self {
            source,
            max_memory: MAX_MEMORY,
            replaces,
        }
    }

    /// Returns the same base with another maximum of memory; `None` for the default.
    fn with_memory(self, max_memory: Option<u64>) -> Self {
        Self {
            max_memory: max_memory.map_or(MAX_MEMORY, |bytes| bytes as usize),
            ..self
        }
    }

    /// Whether the header declares that ways store the locations of their nodes. If it does, these locations are used,
    /// and the nodes are not read. Otherwise, these locations are used only for nodes that are not in the base.
    fn uses_stored_locations(&self) -> bool {
        self.source.file.header.has(feature::LOCATIONS)
    }

    /// Whether the base may lack nodes of its ways as objects. The ways then store the locations of these nodes.
    fn may_lack_nodes(&self) -> bool {
        LocationForm::of(self.source.file, self.source.plan).may_lack_nodes()
    }
}

/// Fails if the base is a history file.
fn check_not_history(file: &PbfFile, plan: &BlobPlan) -> Result<()> {
    if file.header.has(feature::HISTORY) || plan.has_entry_with_flag(BlobFlags::DELETED) {
        let error = Error::file(
            file.input.path(),
            "this is a history file: the state before the changes is not one file",
        );
        return Err(error.advise(Advice::StateAtTime));
    }
    Ok(())
}
