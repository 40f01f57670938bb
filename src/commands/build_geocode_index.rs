//! `build-geocode-index`: makes an index for reverse geocoding.

mod collect;

use crate::engine::IndexType;
use crate::engine::filter::BlobDecision;
use crate::engine::geometry_pass::{GeometryOptions, GeometryPass, Visits};
use crate::engine::input;
use crate::engine::scan::Scan;
use crate::error::{Error, Result};
use crate::file::PbfFile;
use crate::geocode::{Layer, MANIFEST, Manifest, ROW_KEY, VERSION, write_index};
use crate::index::{IdSet, RowLimits, RowSorter, SortedRows};
use crate::io::{OpenOutput, OutputTarget, StreamOutput};
use crate::osm::ObjectKind;
use crate::pbf::{BlobFlags, Element, feature};
use crate::runtime::{Context, human_bytes};
use collect::{Collector, Shared, wanted_areas};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default of [`Options::search_radius`], in metres.
pub const SEARCH_RADIUS: f64 = 75.0;
/// The default of [`Options::coarse_search_radius`], in metres.
pub const COARSE_SEARCH_RADIUS: f64 = 1000.0;

/// The limits of memory for rows that are being sorted.
const LIMITS: RowLimits = RowLimits {
    run: 16 << 20,
    memory: 48 << 20,
};

/// The options of `build-geocode-index`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The input.
    pub input: PathBuf,
    /// The directory of the index. It is made if it does not exist.
    pub directory: PathBuf,
    /// Whether an index in the directory may be replaced.
    pub overwrite: bool,
    /// The distance in metres within which an address is the address of a place.
    pub search_radius: f64,
    /// The distance in metres within which objects are found.
    pub coarse_search_radius: f64,
    /// The method of looking up the locations of nodes, unless ways have them.
    pub index_type: IndexType,
    /// The directory of temporary files; `None` for that of the index.
    pub temp_dir: Option<PathBuf>,
    /// The maximum memory in bytes; `None` for four fifths of the available memory.
    pub max_memory: Option<u64>,
}

impl Options {
    /// Options with the given input and directory, and defaults otherwise.
    pub fn new(input: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            input: input.into(),
            directory: directory.into(),
            overwrite: false,
            search_radius: SEARCH_RADIUS,
            coarse_search_radius: COARSE_SEARCH_RADIUS,
            index_type: IndexType::default(),
            temp_dir: None,
            max_memory: None,
        }
    }
}

setters!(Options {
    overwrite: bool,
    search_radius: f64,
    coarse_search_radius: f64,
    index_type: IndexType,
    temp_dir: Option<PathBuf>,
    max_memory: Option<u64>,
});

/// The result of `build-geocode-index`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The length of the index in bytes.
    pub bytes: u64,
    /// The number of objects, or of parts of streets, of each sort.
    pub counts: BTreeMap<String, u64>,
    /// The number of relations that were left out, since they are no valid areas or a part of them is not in the file.
    pub incomplete: u64,
    /// The method of looking up locations; `None` if no node had to be looked up.
    pub index_type: Option<IndexType>,
}

/// Makes an index for reverse geocoding of a file of current data.
///
/// An existing index is replaced when the new one is complete: programs that use the old one go on with it until they
/// open the index again.
///
/// # Memory
///
/// 200 MB, 20 MB per job, and what [`export`](super::export::run) takes for the nodes of member ways and for locations.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged ([details](crate::commands#errors)); it is a history file.
/// - The directory has an index that may not be replaced, or cannot be written.
/// - The chosen method of looking up locations takes more than [`Options::max_memory`].
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let file = input::open(&options.input, ctx)?;
    let directory = IndexDirectory::open(&options.directory, options.overwrite)?;
    let collected = collect(&file, options, ctx)?;
    let output = StreamOutput::new(OpenOutput::open(directory.target())?);
    let (output, counts) = write_index(&collected.rows, output, ctx)?;
    let bytes = output.commit()?;
    let counts = Layer::ALL.iter().zip(counts);
    let counts: BTreeMap<String, u64> = counts
        .map(|(layer, count)| (layer.name().to_owned(), count))
        .collect();
    directory.complete(&Manifest::new(
        bytes,
        options
            .input
            .file_name()
            .unwrap_or_default()
            .to_string_lossy(),
        file.header.replication_timestamp,
        counts.clone(),
        [options.search_radius, options.coarse_search_radius],
    ))?;
    Ok(Summary {
        bytes,
        counts,
        incomplete: collected.incomplete,
        index_type: collected.index_type,
    })
}

/// The rows of an index, and facts about the objects.
struct Collected {
    rows: SortedRows,
    incomplete: u64,
    index_type: Option<IndexType>,
}

/// Collects the addresses, streets and areas of a file, in the order of the index.
fn collect(file: &PbfFile, options: &Options, ctx: &Context) -> Result<Collected> {
    let visits = Visits {
        nodes: true,
        untagged_nodes: false,
        node_info: false,
        ways: true,
        areas: true,
        member_node_ids: false,
    };
    let scratch = options.temp_dir.clone();
    let geometries = GeometryOptions {
        locations_in_ways: false,
        index_type: options.index_type,
        scratch: scratch.unwrap_or_else(|| options.directory.clone()),
        max_memory: options.max_memory,
    };
    let sorter = Arc::new(RowSorter::new(LIMITS, ROW_KEY, &geometries.scratch));
    let pass = GeometryPass::open(file, visits, geometries, ctx)?;
    if file.header.has(feature::HISTORY) || pass.plan().any(BlobFlags::DELETED) {
        let cause = "this is a history file, and an index is made of one version of each object; run \
                     `pbfhogg time-filter` first";
        return Err(Error::file(&options.input, cause));
    }
    let wanted = interpolated_nodes(file, &pass, ctx)?;
    let shared = Arc::new(Shared::new(wanted, sorter.clone()));
    let of_threads = shared.clone();
    let mut incomplete = 0;
    let index_type = pass.run(
        wanted_areas,
        move || Collector::new(&of_threads),
        |found| {
            incomplete += shared.add(found);
            Ok(())
        },
    )?;
    drop(shared);
    let sorter = Arc::into_inner(sorter);
    let sorter = sorter.ok_or_else(|| Error::Internal("a thread still adds rows".into()))?;
    let rows = sorter.finish()?;
    ctx.debug(format!(
        "rows are sorted: {} in temporary files",
        human_bytes(rows.scratch_len())
    ));
    Ok(Collected {
        rows,
        incomplete,
        index_type,
    })
}

/// The nodes of interpolation ways.
fn interpolated_nodes(file: &PbfFile, pass: &GeometryPass<'_>, ctx: &Context) -> Result<IdSet> {
    const KEY: &str = "addr:interpolation";
    let mut nodes = IdSet::default();
    ctx.expect_phases(1);
    Scan::bare("interpolations", file, pass.plan(), ctx)
        .prefiltered(&|strings| match strings.iter().any(|text| text == KEY) {
            true => BlobDecision::Visit,
            false => BlobDecision::Drop,
        })
        .run(
            |entry| entry.kinds.contains(ObjectKind::Way),
            |_, block| {
                let mut found = Vec::new();
                block.try_for_each(|element| {
                    if let Element::Way(way) = element
                        && way.tags().any(|(key, _)| key == KEY)
                    {
                        found.extend(way.refs());
                    }
                    Ok(())
                })?;
                Ok(found)
            },
            |found| nodes.extend(found),
        )?;
    Ok(nodes)
}

/// The directory of an index that is being written.
struct IndexDirectory {
    path: PathBuf,
    /// The name of the file of the index that is replaced.
    old: Option<String>,
    /// The name of the new file.
    new: String,
    is_new: bool,
    is_complete: bool,
}

impl IndexDirectory {
    fn open(path: &Path, overwrite: bool) -> Result<Self> {
        let is_new = !path.exists();
        if is_new {
            let created = std::fs::create_dir(path);
            created.map_err(|error| Error::io(path, "cannot create", error))?;
        }
        let manifest = path.join(MANIFEST);
        if manifest.exists() && !overwrite {
            let cause = "there is an index already; --overwrite replaces it";
            return Err(Error::file(path, cause));
        }
        let old = std::fs::read(&manifest).ok();
        let old = old.and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok());
        let old = old.map(|manifest| manifest.file);
        let number = old.as_ref().and_then(|name| {
            let number = name.strip_prefix("index-")?.strip_suffix(".bin")?;
            number.parse::<u64>().ok()
        });
        Ok(Self {
            path: path.to_owned(),
            old,
            new: format!("index-{}.bin", number.unwrap_or_default().wrapping_add(1)),
            is_new,
            is_complete: false,
        })
    }

    fn target(&self) -> OutputTarget {
        OutputTarget::File {
            path: self.path.join(&self.new),
            overwrite: true,
        }
    }

    /// Makes the new file the index.
    fn complete(mut self, manifest: &Manifest) -> Result<()> {
        let manifest = Manifest {
            version: VERSION,
            file: self.new.clone(),
            ..manifest.clone()
        };
        let mut bytes = serde_json::to_vec_pretty(&manifest)
            .map_err(|error| Error::Internal(error.to_string()))?;
        bytes.push(b'\n');
        let mut output = StreamOutput::new(OpenOutput::open(OutputTarget::File {
            path: self.path.join(MANIFEST),
            overwrite: true,
        })?);
        output.write(&bytes)?;
        output.commit()?;
        self.is_complete = true;
        if let Some(old) = self.old.take().filter(|old| *old != self.new) {
            // A file that cannot be removed takes space, and does no harm.
            let _ = std::fs::remove_file(self.path.join(old));
        }
        Ok(())
    }
}

impl Drop for IndexDirectory {
    fn drop(&mut self) {
        if !self.is_complete {
            // The file has its name only if the manifest could not be written.
            let _ = std::fs::remove_file(self.path.join(&self.new));
            if self.is_new {
                let _ = std::fs::remove_dir(&self.path);
            }
        }
    }
}
