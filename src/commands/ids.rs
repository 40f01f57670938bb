//! The ids that the user gives a command: as arguments, in text files, and in OSM files.

use crate::engine::input;
use crate::engine::scan::Scan;
use crate::error::{Error, FileResult, Result};
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
    /// Text files with an id at the start of each line; the text after a space, a tab or a `#` is ignored. Tables whose
    /// cells are separated by commas, semicolons or tabs are also accepted. Their first line may name the columns of
    /// kinds and ids, such as `@type` and `@id`; otherwise kind and id are the first two columns. `-` is standard
    /// input.
    pub id_files: Vec<PathBuf>,
    /// OSM files. The ids of all their objects are used.
    pub osm_files: Vec<PathBuf>,
    /// The kind of the ids that a text file gives without a kind, such as `17` instead of `n17`.
    pub default_kind: ObjectKind,
}

impl IdSource {
    /// Creates a source with the given ids and no files.
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
        read_ids_of_text_file(path, source.default_kind, &mut ids)?;
    }
    for path in &source.osm_files {
        read_ids_of_osm_file(path, &mut ids, ctx)?;
    }
    Ok(ids)
}

/// The maximum length of a line in a file of ids, in bytes. It is large because OPL files are accepted, in which a line
/// begins with an id and contains a whole object.
const MAX_LINE_LEN: u64 = 16 << 20;

/// Adds the ids in a text file.
fn read_ids_of_text_file(path: &Path, default: ObjectKind, ids: &mut IdSets) -> Result<()> {
    let failed = |error| Error::io(path, "cannot read", error);
    let mut lines: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = std::fs::File::open(path);
        Box::new(BufReader::new(file.for_path(path, "cannot open")?))
    };
    let (mut line, mut columns) = (Vec::new(), None);
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
        if ids.is_empty() && columns.is_none() {
            columns = IdColumns::of_header_line(&text);
            if columns.is_some() {
                continue;
            }
        }
        let id = match &columns {
            Some(columns) => columns.parse_id(&text, default),
            None => parse_first_id(&text, default),
        };
        if let Some(id) = id.map_err(bad)? {
            ids.insert(id.kind, id.id);
        }
    }
    Ok(())
}

/// Returns the id at the start of a line, or in the first two columns of a line of a table; `None` if the line has no
/// id.
fn parse_first_id(line: &str, default: ObjectKind) -> Result<Option<ObjectId>, String> {
    let text = line.split('#').next().unwrap_or_default();
    let mut words = text.split_whitespace();
    let Some(word) = words.next() else {
        return Ok(None);
    };
    // The kind can be a word of its own: `way 17`.
    if let (Some(kind), Some(id)) = (ObjectKind::from_word(word), words.next()) {
        return ObjectId::parse(id, kind).map(Some);
    }
    let parsed = ObjectId::parse(word, default);
    let columns = IdColumns { kind: 0, id: 1 };
    match (&parsed, columns.parse_id(line, default)) {
        (Err(_), Ok(Some(id))) => Ok(Some(id)),
        _ => parsed.map(Some),
    }
}

/// The columns of a table that have the kind and the id of an object.
struct IdColumns {
    kind: usize,
    id: usize,
}

impl IdColumns {
    /// Returns the columns that the first line of a table names; `None` if the line does not name a column of kinds and
    /// a column of ids.
    fn of_header_line(line: &str) -> Option<Self> {
        let names: Vec<String> = cells(line).map(str::to_ascii_lowercase).collect();
        let position =
            |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        Some(Self {
            kind: position(&["type", "@type", "osm_type", "kind"])?,
            id: position(&["id", "@id", "osm_id"])?,
        })
    }

    /// Returns the id in a line of the table; `None` for an empty line. The id may begin with the letter of its kind,
    /// as in `w17`.
    fn parse_id(&self, line: &str, default: ObjectKind) -> Result<Option<ObjectId>, String> {
        let cells: Vec<&str> = cells(line).collect();
        if cells.iter().all(|cell| cell.is_empty()) {
            return Ok(None);
        }
        let cell = |column: usize| cells.get(column).map_or("", |cell| *cell);
        let kind = match cell(self.kind) {
            "" => default,
            name => ObjectKind::from_word(name)
                .ok_or_else(|| format!("'{name}' is not a kind: expected node, way or relation"))?,
        };
        ObjectId::parse(cell(self.id), kind).map(Some)
    }
}

/// Returns the cells of a line of a table, without spaces and quotation marks around them.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    let cells = line.trim_end_matches(['\r', '\n']).split([',', ';', '\t']);
    cells.map(|cell| cell.trim().trim_matches('"'))
}

/// Adds the ids of all objects of an OSM file.
fn read_ids_of_osm_file(path: &Path, ids: &mut IdSets, ctx: &Context) -> Result<()> {
    let file = input::open(path, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
    Scan::without_strings("read ids", &file, &plan, ctx).collect(
        |_| true,
        |block, found| block.for_each_id(|kind, id| found.push(ObjectId { kind, id })),
        ids,
    )
}

/// Returns the kinds of objects that can refer to an object of `ids`: ways if `ids` has nodes, and relations unless
/// `ids` is empty.
pub(super) fn parent_kinds(ids: &IdSets) -> KindSet {
    let kinds = ids.kinds();
    let way = kinds.contains(ObjectKind::Node).then_some(ObjectKind::Way);
    let relation = (!kinds.is_empty()).then_some(ObjectKind::Relation);
    way.into_iter().chain(relation).collect()
}
