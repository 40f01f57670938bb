//! The objects of the base that changes concern, as rows. They are kept when they are found, so that their blobs are
//! not decompressed again.

use super::spool::Spool;
use crate::engine::object_row::{put_object, read_object};
use crate::error::{Error, FormatError, Result};
use crate::osm::{ObjectKind, TypeThenId};
use crate::pbf::Object;
use crate::pbf::wire::{put_varint, read_varint};
use std::path::Path;

/// The size in bytes of the rows that are held in memory. Further rows go to a temporary file.
const MEMORY: usize = 32 << 20;
/// The size in bytes up to which rows of several blobs make up one part.
const PART: usize = 64 << 10;

/// The rows of objects of one kind, which a worker collects in file order.
#[derive(Debug, Default)]
pub(super) struct KeptRows {
    /// Each row comes after its length.
    bytes: Vec<u8>,
    /// The keys of the first and the last object; `None` if there is none.
    first: Option<TypeThenId>,
    last: Option<TypeThenId>,
    /// The row of the current object.
    row: Vec<u8>,
}

impl KeptRows {
    /// Adds an object.
    pub(super) fn push(&mut self, object: &Object<'_>) {
        self.row.clear();
        put_object(object, &mut self.row);
        put_varint(&mut self.bytes, self.row.len() as u64);
        self.bytes.extend_from_slice(&self.row);
        self.first.get_or_insert(object.key());
        self.last = Some(object.key());
    }
}

/// The objects of the base that changes concern.
#[derive(Debug)]
pub(super) struct KeptObjects {
    parts: Vec<KeptPart>,
    spool: Spool,
    is_in_order: bool,
    /// The rows of the last part, which are not in the spool yet, with the key of the last object.
    open: Option<(TypeThenId, Vec<u8>)>,
}

/// Consecutive objects of one kind.
#[derive(Debug)]
pub(super) struct KeptPart {
    /// The key of the last object.
    pub last: TypeThenId,
    /// The size of the rows in bytes.
    pub len: usize,
    piece: usize,
}

impl KeptObjects {
    /// Creates an empty list. A temporary file would be in `directory`.
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
        let (Some(first), Some(last)) = (rows.first, rows.last) else {
            return Ok(());
        };
        if let Some((key, bytes)) = &mut self.open
            && key.0 == last.0
            && self.is_in_order
            && *key < first
            && bytes.len() + rows.bytes.len() <= PART
        {
            bytes.extend_from_slice(&rows.bytes);
            *key = last;
            return Ok(());
        }
        self.end_part()?;
        self.open = Some((last, rows.bytes));
        Ok(())
    }

    /// Sets whether the next blobs come in their order in the file, so that rows of several blobs may make up a part.
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
        if let Some((last, bytes)) = self.open.take() {
            let len = bytes.len();
            let piece = self.spool.add(bytes)?;
            self.parts.push(KeptPart { last, len, piece });
        }
        Ok(())
    }

    /// Returns the parts in order.
    pub(super) fn parts(&self) -> &[KeptPart] {
        &self.parts
    }

    /// Calls `take` with the objects of a part.
    pub(super) fn for_each(
        &self,
        part: &KeptPart,
        mut take: impl FnMut(&Object<'_>),
    ) -> Result<()> {
        let bytes = self.spool.read(part.piece, 0..part.len)?;
        let walked = walk(&bytes, part.last.0, &mut take);
        walked.map_err(|error| Error::Internal(format!("a kept object is broken: {error}")))
    }
}

/// Calls `take` with the objects of rows.
fn walk(
    bytes: &[u8],
    kind: ObjectKind,
    take: &mut impl FnMut(&Object<'_>),
) -> std::result::Result<(), FormatError> {
    const BROKEN: FormatError = FormatError::new("a row is cut off");
    let (mut at, mut object) = (0, Object::default());
    while at < bytes.len() {
        let len = read_varint(bytes, &mut at)? as usize;
        let row = bytes.get(at..at + len).ok_or(BROKEN)?;
        at += len;
        read_object(kind, row, &mut object)?;
        take(&object);
    }
    Ok(())
}
