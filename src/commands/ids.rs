//! The ids that the user gives a command: as arguments, in text files, and in OSM files.

use crate::engine::input;
use crate::engine::scan::Scan;
use crate::error::{Error, Result};
use crate::file::{BlobPlan, PlanNeeds};
use crate::index::IdSets;
use crate::osm::{KindSet, ObjectId, ObjectKind};
use crate::runtime::Context;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The sources of ids.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdSource {
    /// Ids that were given as arguments.
    pub ids: Vec<ObjectId>,
    /// Text files with an id at the start of each line; everything after a space, a tab or a `#` is ignored. `-` is
    /// standard input.
    pub id_files: Vec<PathBuf>,
    /// OSM files. The ids of all their objects are used.
    pub osm_files: Vec<PathBuf>,
    /// The kind of an id without a letter in a text file.
    pub default_kind: ObjectKind,
}

impl IdSource {
    /// A source with the given ids and no files.
    pub const fn new(ids: Vec<ObjectId>) -> Self {
        Self {
            ids,
            id_files: Vec::new(),
            osm_files: Vec::new(),
            default_kind: ObjectKind::Node,
        }
    }
}

/// Collects the ids of all sources. Fails if a file cannot be read or contains something other than ids.
pub(super) fn collect(source: &IdSource, ctx: &Context) -> Result<IdSets> {
    let mut ids: IdSets = source.ids.iter().copied().collect();
    for path in &source.id_files {
        read_lines(path, source.default_kind, &mut ids)?;
    }
    for path in &source.osm_files {
        read_objects(path, &mut ids, ctx)?;
    }
    Ok(ids)
}

/// The maximum length of a line of a file of ids, in bytes. It is large because OPL files are accepted: a line of OPL
/// begins with an id and contains a whole object.
const MAX_LINE_LEN: u64 = 16 << 20;

fn read_lines(path: &Path, default: ObjectKind, ids: &mut IdSets) -> Result<()> {
    let failed = |error| Error::io(path, "cannot read", error);
    let mut lines: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = std::fs::File::open(path);
        Box::new(BufReader::new(
            file.map_err(|error| Error::io(path, "cannot open", error))?,
        ))
    };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = (&mut lines).take(MAX_LINE_LEN);
        if limited.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let bad = |cause: String| Error::file(path, format!("line {number}: {cause}"));
        if line.len() as u64 == MAX_LINE_LEN {
            return Err(bad("longer than 16 MiB: this is not a list of ids".into()));
        }
        let text = String::from_utf8_lossy(&line);
        let id = text.trim_start().split([' ', '#', '\t', '\r', '\n']).next();
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            let id = ObjectId::parse(id, default).map_err(bad)?;
            ids.insert(id.kind, id.id);
        }
    }
    Ok(())
}

fn read_objects(path: &Path, ids: &mut IdSets, ctx: &Context) -> Result<()> {
    let file = input::open(path, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
    Scan::bare("read ids", &file, &plan, ctx).run(
        |_| true,
        |_, block| {
            let mut found = Vec::new();
            block.for_each_id(|kind, id| found.push(ObjectId { kind, id }))?;
            Ok(found)
        },
        |found| ids.extend(found),
    )
}

/// The kinds of objects that can refer to an object of `ids`: ways for nodes, relations for all objects.
pub(super) fn kinds_of_parents(ids: &IdSets) -> KindSet {
    let kinds = ids.kinds();
    let way = kinds.contains(ObjectKind::Node).then_some(ObjectKind::Way);
    let relation = (!kinds.is_empty()).then_some(ObjectKind::Relation);
    way.into_iter().chain(relation).collect()
}
