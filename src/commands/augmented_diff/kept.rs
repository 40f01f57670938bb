//! The objects of the base that changes concern, as rows. They are kept when they are found, so that their blobs are
//! not decompressed again.

use crate::engine::object_row::{put_object, read_object};
use crate::error::{Error, FormatResult, Result};
use crate::io::Spool;
use crate::osm::{ObjectKind, TypeThenId};
use crate::pbf::Object;
use crate::pbf::wire::Varints;
use std::path::Path;

/// The maximum size in bytes of the rows that are held in memory. Further rows go to a temporary file.
const MEMORY: usize = 32 << 20;
/// The maximum total size in bytes of the rows that are combined into one part.
pub(super) const PART: usize = 64 << 10;

/// The rows of objects of one kind, which a worker collects in file order.
#[derive(Debug, Default)]
pub(super) struct KeptRows {
    chunks: Vec<RowChunk>,
    /// The row of the current object.
    row: Vec<u8>,
}

/// Consecutive rows with a total size of at most [`PART`], or a single row.
#[derive(Debug)]
struct RowChunk {
    /// The keys of the first and the last object.
    first: TypeThenId,
    last: TypeThenId,
    bytes: Vec<u8>,
}

impl KeptRows {
    /// Adds an object.
    pub(super) fn push(&mut self, object: &Object<'_>) {
        self.row.clear();
        put_object(object, &mut self.row);
        let (key, len) = (object.key(), self.row.len());
        let fits = |chunk: &&mut RowChunk| chunk.bytes.len() + len <= PART;
        if self.chunks.last_mut().filter(fits).is_none() {
            self.chunks.push(RowChunk {
                first: key,
                last: key,
                bytes: Vec::new(),
            });
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.bytes.extend_from_slice(&self.row);
            chunk.last = key;
        }
    }
}

/// The objects of the base that changes concern.
#[derive(Debug)]
pub(super) struct KeptObjects {
    /// The parts. They are in order after [`finish`](Self::finish).
    pub(super) parts: Vec<KeptPart>,
    spool: Spool,
    is_in_order: bool,
    /// The last part, which is not in the spool yet.
    open: Option<RowChunk>,
}

/// Consecutive objects of one kind.
#[derive(Debug)]
pub(super) struct KeptPart {
    /// The keys of the first and the last object.
    pub first: TypeThenId,
    pub last: TypeThenId,
    /// The size of the rows in bytes.
    pub len: usize,
    piece: usize,
}

impl KeptObjects {
    /// Creates an empty list. Rows that do not fit into memory go to a temporary file in `directory`.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            parts: Vec::new(),
            spool: Spool::new(MEMORY, directory),
            is_in_order: true,
            open: None,
        }
    }

    /// Adds the rows of a blob. Blobs may come in any order.
    pub(super) fn add(&mut self, rows: KeptRows) -> Result<()> {
        let mut chunks = rows.chunks.into_iter();
        chunks.try_for_each(|chunk| self.add_chunk(chunk))
    }

    fn add_chunk(&mut self, chunk: RowChunk) -> Result<()> {
        if let Some(open) = &mut self.open
            && open.last.0 == chunk.last.0
            && self.is_in_order
            && open.last < chunk.first
            && open.bytes.len() + chunk.bytes.len() <= PART
        {
            open.bytes.extend_from_slice(&chunk.bytes);
            open.last = chunk.last;
            return Ok(());
        }
        self.end_part()?;
        self.open = Some(chunk);
        Ok(())
    }

    /// Sets whether the next blobs come in file order. Only then can a part have the rows of several blobs.
    pub(super) fn set_in_order(&mut self, is_in_order: bool) {
        self.is_in_order = is_in_order;
    }

    /// Sorts the parts. Has to be called before the parts are read.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.end_part()?;
        self.parts.sort_unstable_by_key(|part| part.last);
        Ok(())
    }

    fn end_part(&mut self) -> Result<()> {
        if let Some(RowChunk { first, last, bytes }) = self.open.take() {
            let len = bytes.len();
            let piece = self.spool.add(bytes)?;
            self.parts.push(KeptPart {
                first,
                last,
                len,
                piece,
            });
        }
        Ok(())
    }

    /// Calls `take` with the objects of a part.
    pub(super) fn for_each(
        &self,
        part: &KeptPart,
        mut take: impl FnMut(&Object<'_>),
    ) -> Result<()> {
        let bytes = self.spool.read(part.piece, 0..part.len)?;
        let walked = for_each_object(&bytes, part.last.0, &mut take);
        walked.map_err(|error| Error::internal(format!("a kept object is broken: {error}")))
    }
}

/// Calls `take` with the object of each row.
fn for_each_object(
    bytes: &[u8],
    kind: ObjectKind,
    take: &mut impl FnMut(&Object<'_>),
) -> FormatResult<()> {
    let (mut rows, mut object) = (Varints::new(bytes), Object::default());
    while !rows.is_done() {
        read_object(kind, &mut rows, &mut object)?;
        take(&object);
    }
    Ok(())
}
