//! Reads blobs one by one, from a stream or from a file. A stream is not read ahead.

use super::blob_decoder::check_payload_against_entry;
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobHeader, BlobKind, Block, Decompressor, FRAME_PREFIX_LEN,
    HeaderBlock, Object, TableBlob, put_host_objects,
};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

/// The position of a blob, for error messages.
#[derive(Debug, Clone)]
struct Place {
    path: Arc<Path>,
    number: u64,
    offset: u64,
}

impl Place {
    fn error(&self, source: FormatError) -> Error {
        Error::Blob {
            path: self.path.to_path_buf(),
            number: self.number,
            offset: self.offset,
            source,
        }
    }
}

/// Reads the blobs of a PBF file from a stream, one at a time, as they arrive. Nothing is read ahead, and only one blob
/// is kept in memory.
///
/// Blobs stay compressed until [`DataBlob::decode`] is called, which may be on another thread.
///
/// ```
/// use pbfhogg::read::BlobStream;
///
/// # let stream = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/table-version-1.osm.pbf"))?;
/// let mut count = 0; // `stream` is any `Read`, such as `std::io::stdin().lock()`.
/// for blob in BlobStream::new(stream)? {
///     count += blob?.decode()?.objects()?.len();
/// }
/// assert!(count > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BlobStream<R> {
    stream: R,
    header: HeaderBlock,
    /// The position of the next frame.
    next: Place,
    has_failed: bool,
}

impl<R: Read> BlobStream<R> {
    /// Creates a reader of a stream, and reads the header blob.
    ///
    /// # Errors
    ///
    /// The stream cannot be read, does not begin with the header blob of a PBF file, or requires an unknown feature.
    pub fn new(stream: R) -> Result<Self> {
        let mut blobs = Self {
            stream,
            header: HeaderBlock::default(),
            next: Place {
                path: Path::new("the stream").into(),
                number: 0,
                offset: 0,
            },
            has_failed: false,
        };
        let place = blobs.next.clone();
        let missing = || FormatError::truncated("the stream is empty");
        let (kind, body) = blobs.read_frame()?.ok_or_else(|| place.error(missing()))?;
        let header = match kind {
            BlobKind::Header => with_payload(&body, |payload| Ok(HeaderBlock::parse(payload)?.0)),
            _ => Err(FormatError::new("the first blob is not an OSMHeader")),
        };
        blobs.header = header.map_err(|error| place.error(error))?;
        Ok(blobs)
    }

    /// Returns the header of the PBF file.
    pub const fn header(&self) -> &HeaderBlock {
        &self.header
    }

    /// Reads the next frame, and returns its kind and its Blob message; `None` at the end of the stream.
    fn read_frame(&mut self) -> Result<Option<(BlobKind, Vec<u8>)>> {
        let place = self.next.clone();
        let bad = |error| place.error(error);
        let cut = || bad(FormatError::truncated("the stream ends within this blob"));
        let mut prefix = [0; FRAME_PREFIX_LEN];
        match self.fill(&mut prefix)? {
            0 => return Ok(None),
            FRAME_PREFIX_LEN => {}
            _ => return Err(cut()),
        }
        let len = BlobHeader::len_from_prefix(prefix).map_err(bad)? as usize;
        let mut header = vec![0; len];
        if self.fill(&mut header)? < len {
            return Err(cut());
        }
        let header = BlobHeader::parse(&header).map_err(bad)?;
        let mut body = vec![0; header.blob_len as usize];
        if self.fill(&mut body)? < body.len() {
            return Err(cut());
        }
        self.next.number += 1;
        self.next.offset += (FRAME_PREFIX_LEN + len + body.len()) as u64;
        Ok(Some((header.kind, body)))
    }

    /// Fills `buffer`, and returns the number of bytes read. This number is less than the length of `buffer` only at
    /// the end of the stream.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error_of_read(error)),
            }
        }
        Ok(filled)
    }

    fn error_of_read(&self, error: io::Error) -> Error {
        Error::io(&self.next.path, "cannot read", error)
    }

    /// Reads frames up to the next blob with objects, and returns this blob. Returns `None` at the end.
    fn next_blob(&mut self) -> Result<Option<DataBlob>> {
        loop {
            let place = self.next.clone();
            match self.read_frame()? {
                None => return Ok(None),
                Some((BlobKind::Data, body)) => {
                    let table = TableBlob::of(&body);
                    if !table.has_no_objects() {
                        let mut entry = BlobEntry::default();
                        entry.flags.set(BlobFlags::HAS_TABLE, table.is_host());
                        return Ok(Some(DataBlob { body, place, entry }));
                    }
                }
                Some((BlobKind::Header, _)) => {
                    let cause = "a second OSMHeader: these are files one behind the other";
                    return Err(place.error(FormatError::new(cause)));
                }
                Some((BlobKind::Unknown, _)) => {}
            }
        }
    }
}

impl<R: Read> Iterator for BlobStream<R> {
    type Item = Result<DataBlob>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.next_blob().transpose();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}

/// A blob of objects as it is stored, that is, compressed.
#[derive(Debug, Clone)]
pub struct DataBlob {
    /// The Blob message.
    body: Vec<u8>,
    place: Place,
    /// The entry of the blob. [`decode`](Self::decode) compares the contents of the blob with the entry. If the blob
    /// was read from a stream, the entry has no facts about the contents.
    entry: BlobEntry,
}

impl DataBlob {
    /// Creates the blob that `entry` describes. `body` is its Blob message.
    pub(crate) fn new(body: Vec<u8>, path: Arc<Path>, entry: BlobEntry) -> Self {
        let place = Place {
            path,
            number: u64::from(entry.number),
            offset: entry.offset,
        };
        Self { body, place, entry }
    }

    /// Decompresses the blob.
    ///
    /// # Errors
    ///
    /// The blob is damaged.
    pub fn decode(&self) -> Result<DataBlock> {
        let payload = if self.entry.flags.has(BlobFlags::HAS_TABLE) {
            let mut payload = Vec::new();
            Blob::parse(&self.body)
                .and_then(|blob| put_host_objects(&blob, &mut payload))
                .map(|()| payload)
        } else {
            with_payload(&self.body, |payload| Ok(payload.to_vec()))
        };
        let payload = payload.and_then(|payload| {
            check_payload_against_entry(&payload, &self.entry)?;
            Ok(payload)
        });
        Ok(DataBlock {
            payload: payload.map_err(|error| self.place.error(error))?,
            place: self.place.clone(),
        })
    }
}

/// Calls `read` with the uncompressed payload of a Blob message.
fn with_payload<T>(body: &[u8], read: impl FnOnce(&[u8]) -> FormatResult<T>) -> FormatResult<T> {
    thread_local! {
        static DECOMPRESSOR: RefCell<Decompressor> = RefCell::default();
    }
    let blob = Blob::parse(body)?;
    DECOMPRESSOR.with_borrow_mut(|decompressor| read(decompressor.payload(&blob)?))
}

/// A decompressed blob of objects.
#[derive(Debug, Clone)]
pub struct DataBlock {
    payload: Vec<u8>,
    place: Place,
}

impl DataBlock {
    /// Parses the structure of the block, without decoding its objects.
    ///
    /// # Errors
    ///
    /// The block is damaged.
    pub fn parse(&self) -> Result<Block<'_>> {
        Block::parse(&self.payload).map_err(|error| self.place.error(error))
    }

    /// Returns all objects, in file order. Their strings are borrowed from the block. To visit objects without copying
    /// their lists, use [`Block::try_for_each`].
    ///
    /// # Errors
    ///
    /// An object is damaged.
    pub fn objects(&self) -> Result<Vec<Object<'_>>> {
        let objects = Block::parse(&self.payload).and_then(|block| block.objects());
        objects.map_err(|error| self.place.error(error))
    }
}
