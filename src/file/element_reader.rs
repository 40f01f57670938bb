//! The library's front door: every object of a file, on one core or on all.

use super::blob_reader::BlobReader;
use super::header_walker::{FrameHead, HeaderWalker};
use super::pbf_file::PbfFile;
use crate::error::{FormatError, Result};
use crate::pbf::{BlobEntry, Element, HeaderBlock, PrimitiveBlock};
use crate::runtime::{Context, parallel_classify_phase};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Reads every object of a PBF file, whatever its compression, order or index.
///
/// ```no_run
/// let reader = pbfhogg::ElementReader::from_path("planet.osm.pbf")?;
/// let objects = reader.par_map_reduce(|_| 1u64, || 0, |a, b| a + b)?;
/// # let _ = objects;
/// # Ok::<(), pbfhogg::Error>(())
/// ```
#[derive(Debug)]
pub struct ElementReader {
    file: PbfFile,
    ctx: Context,
}

impl ElementReader {
    /// Opens a file; work is spread over every core.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self> {
        Self::with_context(path, Context::default())
    }

    /// Opens a file; `ctx` says how many cores to use.
    pub fn with_context(path: impl AsRef<Path>, ctx: Context) -> Result<Self> {
        Ok(Self {
            file: PbfFile::open(path.as_ref(), &ctx)?,
            ctx,
        })
    }

    /// What the file says of itself.
    pub const fn header(&self) -> &HeaderBlock {
        &self.file.header
    }

    fn frames(&self) -> HeaderWalker<'_> {
        self.file.frames()
    }

    /// Calls `visit` with every object in file order, on this thread alone.
    pub fn for_each(&self, mut visit: impl FnMut(Element<'_>)) -> Result<()> {
        let mut blobs = BlobReader::new(&self.file.input, &self.ctx);
        for head in self.frames() {
            let FrameHead { entry, .. } = head?;
            let visited = visit_payload(blobs.payload(&entry)?, &mut visit);
            visited.map_err(|error| blobs.error(&entry, error))?;
        }
        Ok(())
    }

    /// Calls `visit` with every object in file order, on this thread; the other cores read and
    /// decompress ahead.
    pub fn for_each_pipelined(&self, mut visit: impl FnMut(Element<'_>)) -> Result<()> {
        let spare: Mutex<Vec<Vec<u8>>> = Mutex::default();
        let lock = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        parallel_classify_phase(
            self.ctx.jobs,
            self.ctx.byte_budget(),
            self.frames(),
            // Payloads are a few times as long as their frames.
            |head| u64::from(head.entry.frame_len) * 4,
            || BlobReader::new(&self.file.input, &self.ctx),
            |blobs, head| {
                let mut payload = lock().pop().unwrap_or_default();
                payload.clear();
                payload.extend_from_slice(blobs.payload(&head.entry)?);
                Ok((head.entry, payload))
            },
            |(entry, payload): (BlobEntry, Vec<u8>)| {
                let visited = visit_payload(&payload, &mut visit);
                lock().push(payload);
                visited.map_err(|error| self.error(&entry, error))
            },
        )
    }

    /// Maps every object on all cores and folds the results. Objects of one blob are folded in
    /// file order, and blobs are folded in file order, so that the result does not depend on the
    /// number of cores as long as `reduce` is associative.
    pub fn par_map_reduce<T: Send>(
        &self,
        map: impl Fn(Element<'_>) -> T + Sync,
        identity: impl Fn() -> T + Sync,
        reduce: impl Fn(T, T) -> T + Sync,
    ) -> Result<T> {
        let mut total = Some(identity());
        parallel_classify_phase(
            self.ctx.jobs,
            self.ctx.byte_budget(),
            self.frames(),
            |head| u64::from(head.entry.frame_len),
            || BlobReader::new(&self.file.input, &self.ctx),
            |blobs, head| {
                let mut part = Some(identity());
                let visited = visit_payload(blobs.payload(&head.entry)?, &mut |element| {
                    part = part.take().map(|part| reduce(part, map(element)));
                });
                visited.map_err(|error| blobs.error(&head.entry, error))?;
                Ok(part)
            },
            |part| {
                total = total
                    .take()
                    .zip(part)
                    .map(|(total, part)| reduce(total, part));
                Ok(())
            },
        )?;
        Ok(total.unwrap_or_else(identity))
    }

    fn error(&self, entry: &BlobEntry, source: FormatError) -> crate::error::Error {
        self.file
            .input
            .blob_error(u64::from(entry.number), entry.offset, source)
    }
}

fn visit_payload(payload: &[u8], visit: &mut impl FnMut(Element<'_>)) -> Result<(), FormatError> {
    PrimitiveBlock::parse(payload)?.try_for_each(|element| {
        visit(element);
        Ok::<_, FormatError>(())
    })
}
