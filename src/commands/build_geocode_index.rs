//! `build-geocode-index`: makes an index for reverse geocoding.

mod collect;
mod kinds;
mod numbered_cells;
mod relations;
mod simplify;
mod street_names;

use crate::engine::IndexType;
use crate::engine::geometry_pass::{GeometryPass, LocationsInWays, Visits};
use crate::engine::input;
use crate::engine::way_locations::{LocateOptions, default_memory_limit};
use crate::error::{Advice, Error, ErrorKind, Result};
use crate::file::PbfFile;
use crate::geocode::{Layer, MANIFEST, Manifest, ROW_KEY, is_container, write_index};
use crate::index::{IdSet, RowLimits, RowSorter, SortedRows};
use crate::io::{OutputDirectory, StreamOutput, remove_unlisted_files};
use crate::osm::ObjectId;
use crate::runtime::{Context, human_bytes};
use collect::{Collector, CollectorState};
use kinds::select_wanted_areas;
use numbered_cells::NumberedCells;
use relations::Relations;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The default of [`Options::search_radius`], in metres.
pub const SEARCH_RADIUS: f64 = 75.0;
/// The default of [`Options::coarse_search_radius`], in metres.
pub const COARSE_SEARCH_RADIUS: f64 = 1000.0;

/// The memory limits for sorting rows.
const LIMITS: RowLimits = RowLimits::new(16 << 20, 128 << 20);

/// The lower bound of the default memory for locations, in bytes.
const LEAST_MEMORY: u64 = 1 << 30;

options! {
    /// The options of `build-geocode-index`.
    pub struct Options {
        /// The input file.
        pub input: PathBuf,
        /// The directory of the index. It is created if it does not exist.
        pub directory: PathBuf,
    }
    new(input: impl Into<PathBuf>, directory: impl Into<PathBuf>);
    setters {
        /// Whether an index in the directory may be replaced.
        overwrite: bool,
        /// The maximum distance in metres between the position of a query and the address in the answer.
        search_radius: f64 = SEARCH_RADIUS,
        /// The maximum distance in metres between the position of a query and a street or road in the answer. Place
        /// nodes have limits of their own.
        coarse_search_radius: f64 = COARSE_SEARCH_RADIUS,
        /// The maximum number of corners of an area; `None` for no limit.
        max_area_vertices: Option<usize>,
        /// The method used to look up node locations. It is not used if the ways have locations.
        index_type: IndexType,
        /// The directory for temporary files; `None` for the directory of the index.
        temp_dir: Option<PathBuf>,
        /// The maximum memory for locations, in bytes. `None` allows a sixteenth of the size of the input, clamped
        /// between 1 GiB and 7 GiB, but at most 80 % of the available memory. If [`index_type`](Self::index_type) names
        /// a method, `None` sets no limit.
        max_memory: Option<u64>,
    }
}

/// The result of `build-geocode-index`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size in bytes of the index.
    pub bytes: u64,
    /// The number of objects in each layer, by layer name. Streets and roads are split into parts, which count
    /// separately.
    pub counts: BTreeMap<String, u64>,
    /// The number of closed ways and relations that were left out. They are not valid areas, or their nodes or members
    /// are not all in the file.
    pub incomplete: u64,
    /// The number of ways with `addr:interpolation` along which some house numbers are not made. A way with more than
    /// 2,000 nodes gets none. If more than 10,000 numbers lie between two neighbouring house numbers of a way, none are
    /// made between these two.
    pub not_interpolated: u64,
    /// The number of tags that were left out because their key or value has more than 255 characters. The OSM database
    /// does not allow such tags.
    pub long_tags: u64,
    /// The areas that have fewer corners in the index than in the file.
    #[serde(serialize_with = "as_texts")]
    pub simplified: Vec<ObjectId>,
    /// The method used to look up locations; `None` if no node had to be looked up.
    pub index_type: Option<IndexType>,
}

fn as_texts<S: Serializer>(ids: &[ObjectId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(ToString::to_string))
}

/// Builds an index for reverse geocoding from a file without history.
///
/// An existing index is replaced when the new index is complete. Programs that have opened the old index continue to
/// use it until they open the index again.
///
/// # Memory
///
/// 280 MB, up to 128 MB for the grid cells that contain house numbers, 20 MB per job, and what
/// [`export`](super::export::run) uses for the nodes of member ways and for locations.
///
/// # Errors
///
/// - The input cannot be opened or read, is damaged ([details](crate::commands#errors)), or is a history file.
/// - The directory has an index that may not be replaced, or cannot be written.
/// - The chosen method of looking up locations needs more memory than [`Options::max_memory`].
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    if options.input.is_dir() {
        let failed = |cause| Error::file(&options.input, cause);
        return Err(match Manifest::read(&options.input) {
            Ok(_) => failed("this is an index already; an index is made of an OSM file")
                .advise(Advice::AskGeocodeIndex),
            Err(_) => failed("this is a directory; an index is made of an OSM file"),
        });
    }
    let file = input::open(&options.input, ctx)?;
    let mut directory = IndexDirectory::open(&options.directory, options.overwrite, ctx)?;
    let collected = collect(&file, options, directory.files.scratch_directory(), ctx)?;
    let output = directory.create()?;
    let written = write_index(&collected.rows, &collected.interpolated, output, ctx)?;
    let bytes = written.output.len();
    ctx.stats.bytes_written.add(bytes);
    let counts = Layer::ALL.iter().zip(written.counts);
    let counts: BTreeMap<String, u64> = counts
        .map(|(layer, count)| (layer.name().to_owned(), count))
        .collect();
    let name = options.input.file_name().unwrap_or_default();
    let manifest = Manifest::new(
        bytes,
        name.to_string_lossy(),
        file.header.replication_timestamp,
        counts.clone(),
        [options.search_radius, options.coarse_search_radius],
    );
    directory.complete(written.output, &manifest, ctx)?;
    Ok(Summary {
        bytes,
        counts,
        incomplete: collected.incomplete,
        not_interpolated: collected.not_interpolated + written.not_interpolated,
        long_tags: collected.long_tags,
        simplified: collected.simplified,
        index_type: collected.index_type,
    })
}

/// Returns the default memory limit for locations, in bytes; `None` if the user chose a method.
fn default_locations_memory(file: &PbfFile, options: &Options) -> Option<u64> {
    let memory = (file.input.len() / 16).max(LEAST_MEMORY);
    let memory = memory.min(default_memory_limit());
    (options.index_type == IndexType::Auto).then_some(memory)
}

/// The sorted rows of an index, and the findings about the objects of the file.
struct Collected {
    rows: SortedRows,
    /// The nodes of interpolation ways.
    interpolated: IdSet,
    incomplete: u64,
    not_interpolated: u64,
    long_tags: u64,
    simplified: Vec<ObjectId>,
    index_type: Option<IndexType>,
}

/// Collects the addresses, streets and areas of a file, and sorts them into index order. Writes temporary files to
/// `directory` unless the options name another directory.
fn collect(
    file: &PbfFile,
    options: &Options,
    directory: &Path,
    ctx: &Context,
) -> Result<Collected> {
    let scratch = options.temp_dir.as_deref().unwrap_or(directory);
    let max_memory = options
        .max_memory
        .or_else(|| default_locations_memory(file, options));
    let locate = LocateOptions::new(options.index_type, scratch.to_owned(), max_memory);
    let shared = CollectorState {
        sorter: RowSorter::new(LIMITS, ROW_KEY, &locate.temp_dir, ctx),
        relations: Relations::default(),
        numbered: NumberedCells::new(),
    };
    let stored = LocationsInWays::AsDeclared;
    let pass = GeometryPass::open(file, Visits::TAGGED, stored, locate, ctx)?;
    let (mut incomplete, mut interpolated) = (0, IdSet::default());
    let (mut not_interpolated, mut long_tags) = (0, 0);
    let mut simplified = Vec::new();
    let max_vertices = options.max_area_vertices;
    ctx.expect_phases(4);
    let index_type = pass.run(
        |block| {
            shared.relations.read_block(block)?;
            select_wanted_areas(block)
        },
        || Collector::new(&shared, max_vertices),
        |found| {
            incomplete += found.incomplete;
            not_interpolated += found.not_interpolated;
            long_tags += found.long_tags;
            interpolated.extend(found.interpolated);
            simplified.extend(found.simplified);
            Ok(())
        },
    )?;
    let rows = shared.sorter.finish()?;
    ctx.debug(format!(
        "rows are sorted: {} in temporary files",
        human_bytes(rows.scratch_len())
    ));
    Ok(Collected {
        rows,
        interpolated,
        incomplete,
        not_interpolated,
        long_tags,
        simplified,
        index_type,
    })
}

/// The directory of an index that is being written. Its manifest names the file with the index.
struct IndexDirectory {
    path: PathBuf,
    files: OutputDirectory,
    /// The name of the new index file.
    file: String,
}

impl IndexDirectory {
    fn open(path: &Path, overwrite: bool, ctx: &Context) -> Result<Self> {
        if path.join(MANIFEST).exists() && !overwrite {
            let error = Error::file_of(path, ErrorKind::Exists, "there is an index already");
            return Err(error.advise(Advice::Replace));
        }
        let files = OutputDirectory::create_or_extend(path, is_own, ctx)?;
        remove_unlisted_files(path, is_index_file, || Manifest::read_index_file_name(path));
        // The process id in the name keeps builds that run at the same time from writing the same file.
        let process = std::process::id();
        let name = |number: u32| format!("index-{process}-{number}.bin");
        let mut number = 1;
        while path.join(name(number)).exists() {
            number += 1;
        }
        Ok(Self {
            files,
            path: path.to_owned(),
            file: name(number),
        })
    }

    /// Creates the new index file.
    fn create(&mut self) -> Result<StreamOutput> {
        Ok(StreamOutput::new(self.files.open(Path::new(&self.file))?))
    }

    /// Writes a manifest that names the new file, and removes the old index file.
    fn complete(self, output: StreamOutput, manifest: &Manifest, ctx: &Context) -> Result<()> {
        let manifest = Manifest {
            file: self.file.clone(),
            ..manifest.clone()
        };
        let mut bytes = serde_json::to_vec_pretty(&manifest).map_err(Error::internal)?;
        bytes.push(b'\n');
        self.files
            .complete_with_list(vec![output], Path::new(MANIFEST), &bytes, ctx)?;
        // Removes the old index file and the files of killed builds. A file that cannot be removed only wastes space.
        remove_unlisted_files(&self.path, is_index_file, || {
            Manifest::read_index_file_name(&self.path)
        });
        Ok(())
    }
}

/// Whether a file in the directory of an index is its manifest or was written by a build.
fn is_own(path: &Path, file: &File) -> bool {
    path == Path::new(MANIFEST) || path.to_str().is_some_and(|name| is_index_file(name, file))
}

/// Whether a file in the directory of an index was written by a build, according to its contents and to its name,
/// `index-PROCESS-NUMBER.bin`.
fn is_index_file(name: &str, file: &File) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name
        .strip_prefix("index-")
        .and_then(|name| name.strip_suffix(".bin")?.split_once('-'));
    numbers.is_some_and(|(process, count)| number(process) && number(count)) && is_container(file)
}
