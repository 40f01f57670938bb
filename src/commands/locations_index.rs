//! `create-locations-index` and `query-locations-index`: write and read a file with the locations of nodes by id, in
//! the format of osmium and osm2pgsql.
//!
//! The file is an array with an entry of 8 bytes for each id from 0 on. An entry consists of the longitude and the
//! latitude in units of 1e-7 degree, each as 4 bytes in little-endian order. An id without a location has `i32::MAX`
//! for both.

use crate::engine::location_form::LocationForm;
use crate::engine::scan::Scan;
use crate::engine::{ElementWriter, OutputOptions, input};
use crate::error::{Advice, Error, ErrorKind, FileResult, Result, display_path};
use crate::file::{BlobPlan, PlanNeeds, Written};
use crate::io::{OpenOutput, Output, OutputTarget};
use crate::osm::{Location, ObjectKind};
use crate::pbf::Object;
use crate::runtime::{Context, human_bytes};
use crate::system;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The size of an entry in bytes.
const ENTRY: u64 = 8;
/// The number of spare entries that follow the new largest id when the file is extended, as in osmium.
const GROWTH: u64 = 1 << 20;
/// The number of entries that are read or filled at a time.
const PORTION: usize = 1 << 17;

options! {
    /// The options of `create-locations-index`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The path of the index file that is created or updated.
        pub index: PathBuf,
    }
    /// With these options, an existing index is an error.
    new(input: impl Into<PathBuf>, index: impl Into<PathBuf>);
    setters {
        /// Whether an existing index is updated in place. The locations of nodes that are not in the input stay
        /// unchanged.
        update: bool,
    }
}

/// The result of `create-locations-index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of nodes whose entries were written. Each version of a node counts.
    pub nodes: u64,
    /// The number of nodes with negative ids, which the index cannot contain.
    pub negative: u64,
    /// The size of the index in bytes.
    pub bytes: u64,
}

/// Writes the locations of all nodes of a file to an index. The index does not have locations that only ways store.
/// Warns if the file may have such locations.
///
/// Reads one file, which may be unsorted, a history file or a change file. Stores the location of the last version of
/// each node in the file; a deleted version has no location. A new index appears under its name when it is complete. An
/// existing index is updated in place.
///
/// # Memory
///
/// The [base memory](crate::commands#memory).
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged ([details](crate::commands#errors)).
/// - The index, which has 8 bytes for each id up to the largest, would need more than the free space.
/// - The index exists and [`Options::update`] is not set, or its size is not a multiple of 8 bytes. The index cannot be
///   created or written.
pub fn create(options: &Options, ctx: &Context) -> Result<Summary> {
    let failed = |error| Error::io(&options.index, "cannot write", error);
    let exists = options.index.exists();
    if exists && !options.update {
        let error = Error::file_of(&options.index, ErrorKind::Exists, "the index exists");
        return Err(error.advise(Advice::UpdateIndex));
    }
    let file = input::open(&options.input, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Ranges, ctx)?;
    check_free_space_for_plan(&plan, &options.index)?;
    if LocationForm::of(&file, &plan).may_lack_nodes() {
        ctx.warn(format!(
            "{}: ways may store the locations of nodes that are not in the file: the index does not have these nodes",
            display_path(&options.input)
        ));
    }
    let (target, output) = if exists {
        (open(&options.index, true)?, None)
    } else {
        let path = options.index.clone();
        let target = OutputTarget::file(path);
        let opened = OpenOutput::open(target, ctx)?;
        (opened.file, Some(opened.output))
    };
    let mut index = EntryWriter::new(target).map_err(failed)?;
    let mut summary = Summary::default();
    Scan::without_strings("read locations", &file, &plan, ctx).try_run(
        |entry| entry.kinds.contains(ObjectKind::Node),
        |_, block| {
            let (mut nodes, mut negative) = (Vec::new(), 0);
            block.for_each_node(|id, location, _| match u64::try_from(id) {
                Ok(id) => nodes.push((id, Location::lat_lon_e7_or_undefined(location))),
                Err(_) => negative += 1,
            })?;
            // The nodes are sorted by id, so that adjacent entries are written together.
            if !nodes.is_sorted_by_key(|(id, _)| *id) {
                nodes.sort_by_key(|(id, _)| *id);
            }
            Ok((nodes, negative))
        },
        |(nodes, negative)| {
            summary.nodes += nodes.len() as u64;
            summary.negative += negative;
            for (id, location) in nodes {
                if id >= index.len {
                    check_free_space_for_id(&options.index, id, index.len)?;
                }
                index.set(id, location).map_err(failed)?;
            }
            Ok(())
        },
    )?;
    summary.bytes = index.finish().map_err(failed)?;
    output.map_or(Ok(()), Output::commit)?;
    Ok(summary)
}

/// Fails if the file system has too little space for an index up to the largest known node id. `plan` shows the node
/// ids of a blob only if the blob has no other objects. This check comes before anything is written.
fn check_free_space_for_plan(plan: &BlobPlan, index: &Path) -> Result<()> {
    let has = index.metadata().map_or(0, |metadata| metadata.len()) / ENTRY;
    let of_nodes = plan.entries.iter();
    let of_nodes = of_nodes.filter(|entry| entry.kinds.single() == Some(ObjectKind::Node));
    let ids = of_nodes.filter_map(|entry| u64::try_from(entry.max_id).ok());
    check_free_space_for_id(index, ids.max().unwrap_or(0), has)
}

/// Fails if the file system has too little space to extend an index of `has` entries up to the entry of `id` and
/// [`GROWTH`] entries beyond it. All new entries are written, because a hole in the file would read as the location
/// 0,0.
fn check_free_space_for_id(path: &Path, id: u64, has: u64) -> Result<()> {
    let entries = id.saturating_add(1 + GROWTH);
    let wanted = entries.saturating_mul(ENTRY);
    let more = entries.saturating_sub(has).saturating_mul(ENTRY);
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let free = system::free_space(directory.unwrap_or(Path::new(".")));
    if more > free.unwrap_or(u64::MAX).min(i64::MAX as u64) {
        let cause = format!(
            "an index of locations has 8 bytes for each id up to the largest: for node {id} that is {}, and {} are free",
            human_bytes(wanted),
            human_bytes(free.unwrap_or(0))
        );
        return Err(Error::file(path, cause).advise(Advice::RenumberNodes));
    }
    Ok(())
}

/// Writes entries of an index. Adjacent entries are written together.
struct EntryWriter {
    file: File,
    /// The number of entries in the file, including those that `run` will replace.
    len: u64,
    /// The id of the first entry of a run that is not written yet, and the bytes of the run.
    run: (u64, Vec<u8>),
}

impl EntryWriter {
    fn new(file: File) -> io::Result<Self> {
        let mut writer = Self {
            len: file.metadata()?.len() / ENTRY,
            file,
            run: (0, Vec::new()),
        };
        writer.extend_to(GROWTH)?;
        Ok(writer)
    }

    /// Sets the entry of an id to a latitude and a longitude.
    fn set(&mut self, id: u64, (lat_e7, lon_e7): (i32, i32)) -> io::Result<()> {
        if id >= self.len {
            self.extend_to(id + 1 + GROWTH)?;
        }
        let (start, bytes) = &mut self.run;
        let end = *start + bytes.len() as u64 / ENTRY;
        if id + 1 == end {
            // The last entry is of an earlier version of the same node, and is replaced.
            bytes.truncate(bytes.len() - ENTRY as usize);
        } else if id != end || bytes.len() >= PORTION * ENTRY as usize {
            self.write_run()?;
            self.run.0 = id;
        }
        self.run.1.extend_from_slice(&lon_e7.to_le_bytes());
        self.run.1.extend_from_slice(&lat_e7.to_le_bytes());
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        let (start, bytes) = &mut self.run;
        system::write_at(&self.file, bytes, *start * ENTRY)?;
        bytes.clear();
        Ok(())
    }

    /// Extends the file to `len` entries if it has fewer. The new entries have no location.
    fn extend_to(&mut self, len: u64) -> io::Result<()> {
        let portion = i32::MAX.to_le_bytes().repeat(2 * PORTION);
        while self.len < len {
            let count = (len - self.len).min(PORTION as u64);
            let bytes = &portion[..(count * ENTRY) as usize];
            system::write_at(&self.file, bytes, self.len * ENTRY)?;
            self.len += count;
        }
        Ok(())
    }

    /// Writes all entries to disk. Returns the size of the file in bytes.
    fn finish(mut self) -> io::Result<u64> {
        self.write_run()?;
        self.file.sync_all()?;
        Ok(self.len * ENTRY)
    }
}

/// Opens an index. Fails if its size is not a multiple of the size of an entry.
fn open(path: &Path, to_write: bool) -> Result<File> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let cause = "this is no index of locations: it is no regular file";
        return Err(Error::file(path, cause));
    }
    let file = File::options()
        .read(true)
        .write(to_write)
        .open(path)
        .for_path(path, "cannot open")?;
    let len = file.metadata().for_path(path, "cannot read")?;
    match len.len() % ENTRY {
        0 => Ok(file),
        _ => {
            let cause = "this is no index of locations: its length is not a multiple of 8 bytes";
            Err(Error::file(path, cause))
        }
    }
}

/// Returns the location of a node in an index; `None` if the index has no location for it.
///
/// # Errors
///
/// The index cannot be opened or read, or its size is not a multiple of 8 bytes.
pub fn query(index: &Path, id: u64) -> Result<Option<Location>> {
    let file = open(index, false)?;
    let mut entry = [0; ENTRY as usize];
    let start = id.checked_mul(ENTRY).unwrap_or(u64::MAX - ENTRY);
    match system::read_exact_at(&file, &mut entry, start) {
        Ok(()) => Ok(location(entry)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(Error::io(index, "cannot read", error)),
    }
}

/// Decodes the location in an entry.
fn location(entry: [u8; ENTRY as usize]) -> Option<Location> {
    let both = u64::from_le_bytes(entry);
    let (lon, lat) = (both as i32, (both >> 32) as i32);
    Location::new(lat, lon)
}

/// Writes a node for each location in an index.
///
/// # Memory
///
/// The memory for an output ([details](crate::commands#memory)), and 1 MB.
///
/// # Errors
///
/// - The index cannot be opened or read, or its size is not a multiple of 8 bytes.
/// - The output exists and may not be overwritten, or it cannot be written ([details](crate::commands#errors)).
pub fn dump(index: &Path, output: OutputOptions, ctx: &Context) -> Result<Written> {
    let file = open(index, false)?;
    let mut writer = ElementWriter::new(output, ctx.clone())?;
    let mut portion = vec![0; PORTION * ENTRY as usize];
    let (mut id, mut position) = (0, 0);
    loop {
        ctx.cancellation.check()?;
        let read = system::read_at(&file, &mut portion, position).for_path(index, "cannot read")?;
        // If the last entry is incomplete, its bytes are read again with the next portion.
        let whole = read - read % ENTRY as usize;
        if whole == 0 {
            return writer.finish();
        }
        position += whole as u64;
        for entry in portion[..whole].as_chunks().0 {
            if let Some(location) = location(*entry) {
                writer.write(&Object::node(id, Some(location), &[]))?;
            }
            id += 1;
        }
    }
}
