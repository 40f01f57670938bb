//! Holds back the last blobs of an output until the output is complete. The last objects are then written in hosts. A
//! host is a blob that contains both objects and a part of a table, such as the table of contents.

use super::blob_decoder::BlobDecoder;
use super::write_options::WriteOptions;
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::io::Input;
use crate::osm::{Bbox, ObjectKind};
use crate::pbf::{
    BlobEntry, BlobFlags, Block, BlockEncoder, Decompressor, EncodedFrame, FrameEncoder,
    MAX_HOST_LEN, SourceStrings, TableHost, scan_payload,
};
use crate::runtime::Context;
use std::collections::VecDeque;
use std::ops::Range;

/// The maximum payload size in bytes of a blob that becomes a host as a whole instead of being divided. This is done
/// only if a single further host is wanted. A host is not compressed, so the file can grow by up to this size.
const MAX_WHOLE_LEN: usize = 8 << 10;

/// The maximum payload size in bytes of the objects in a host. Applies to files with a spatial layout, in which whole
/// blobs become hosts. A part of a table adds up to 12 MB, and the sum stays below the limit of the format.
const MAX_LONG_HOST: usize = 8 << 20;

/// A blob of an output.
#[derive(Debug)]
pub(super) enum OutputBlob {
    /// A newly encoded frame.
    Frame(EncodedFrame),
    /// A blob of an input.
    Copy(Input, BlobEntry),
}

impl OutputBlob {
    /// Returns the entry of the blob. The offset and the sizes in the entry are not those in the output.
    pub const fn entry(&self) -> &BlobEntry {
        match self {
            Self::Frame(frame) => &frame.entry,
            Self::Copy(_, entry) => entry,
        }
    }

    /// Returns the uncompressed payload.
    pub fn payload(&self, ctx: &Context) -> Result<Vec<u8>> {
        match self {
            Self::Frame(frame) => {
                let mut decompressor = Decompressor::default();
                let payload = frame.payload(&mut decompressor);
                payload.map(<[u8]>::to_vec).map_err(internal_error)
            }
            Self::Copy(input, entry) => BlobDecoder::new(input, ctx)
                .payload(entry)
                .map(<[u8]>::to_vec),
        }
    }

    /// Returns the box around the locations in ways.
    pub fn box_of_ways(&self, ctx: &Context) -> Result<Bbox> {
        let payload = self.payload(ctx)?;
        let bbox =
            Block::parse_without_strings(&payload).and_then(|block| block.bbox_of_way_locations());
        bbox.map_err(|error| match self {
            Self::Frame(_) => internal_error(error),
            Self::Copy(input, entry) => {
                input.blob_error(u64::from(entry.number), entry.offset, error)
            }
        })
    }

    /// Returns the uncompressed payload. Returns `None` if the blob is damaged.
    fn payload_if_undamaged(&self, ctx: &Context) -> Result<Option<Vec<u8>>> {
        match self.payload(ctx) {
            Ok(payload) => Ok(Some(payload)),
            Err(Error::Blob { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a host with all objects of the blob. Returns `None` if the blob cannot become a host. This is the case
    /// for a blob that is damaged or long, has no objects, or has objects of several kinds.
    pub fn as_host(&self, ctx: &Context) -> Result<Option<TableHost>> {
        let entry = self.entry();
        let payload = self.payload_if_undamaged(ctx)?;
        let Some(payload) = payload.filter(|payload| payload.len() <= MAX_LONG_HOST) else {
            return Ok(None);
        };
        let host =
            Block::parse(&payload).and_then(|block| encode_table_host(&block, 0..usize::MAX));
        let host = host.ok().filter(|host| host.payload.len() <= MAX_LONG_HOST);
        let Some((kind, mut host)) = entry.kinds.single().zip(host) else {
            return Ok(None);
        };
        if kind != ObjectKind::Node {
            // The bounding box is copied, because it cannot be computed from a blob without the locations of nodes.
            host.entry.bbox = entry.bbox;
        }
        Ok(Some(host))
    }
}

/// Returns the error for damage in a block that this program has made or read before.
fn internal_error(error: FormatError) -> Error {
    Error::Internal(error.to_string())
}

/// The last blobs of an output, in order.
#[derive(Debug, Default)]
pub(super) struct LastBlobs {
    blobs: VecDeque<OutputBlob>,
    /// The number of objects in the blobs. A blob with an unknown number of objects counts as one object.
    objects: u64,
    /// The number of objects in the largest blob that was added.
    most: u32,
}

/// Returns the number of objects in a blob, or 1 if the number is unknown.
fn object_count(blob: &OutputBlob) -> u64 {
    let entry = blob.entry();
    if entry.is_indexed() {
        u64::from(entry.count)
    } else {
        1
    }
}

impl LastBlobs {
    /// Adds a blob at the end.
    pub fn push(&mut self, blob: OutputBlob) {
        self.objects += object_count(&blob);
        self.most = self.most.max(blob.entry().count);
        self.blobs.push_back(blob);
    }

    /// Removes and returns the first blob. Returns `None` and removes nothing if fewer than two blobs would remain, or
    /// if the remaining blobs would have fewer than `hosts` objects in total.
    pub fn pop_front_if_left(&mut self, hosts: u64) -> Option<OutputBlob> {
        let first = self.blobs.front()?;
        let stays = self.objects - object_count(first);
        if self.blobs.len() > 2 && stays >= hosts {
            self.pop_front()
        } else {
            None
        }
    }

    /// Returns the number of blobs.
    pub fn len(&self) -> usize {
        self.blobs.len()
    }

    /// Returns the entries of the blobs.
    pub fn entries(&self) -> impl Iterator<Item = &BlobEntry> {
        self.blobs.iter().map(OutputBlob::entry)
    }

    /// Returns a host for each of the last `count` blobs, in file order. Begins with the last blob, and stops at a blob
    /// that cannot become a host. The blobs are not removed.
    pub fn hosts_of_last_blobs(&self, count: usize, ctx: &Context) -> Result<Vec<TableHost>> {
        let mut hosts = VecDeque::new();
        for blob in self.blobs.iter().rev().take(count) {
            match blob.as_host(ctx)? {
                Some(host) => hosts.push_front(host),
                None => break,
            }
        }
        Ok(hosts.into())
    }

    /// Removes and returns the first blob.
    pub fn pop_front(&mut self) -> Option<OutputBlob> {
        let first = self.blobs.pop_front()?;
        self.objects -= object_count(&first);
        Some(first)
    }

    /// Removes and returns the last blob.
    pub fn pop_back(&mut self) -> Option<OutputBlob> {
        let last = self.blobs.pop_back()?;
        self.objects -= object_count(&last);
        Some(last)
    }

    /// Removes objects from the end of the output and puts them into at most `wanted` hosts. Returns the hosts in file
    /// order. A host gets one object with all its versions. If a single further host is wanted and the last remaining
    /// blob is small, the host gets all objects of this blob. If only some objects of a blob go into hosts, the other
    /// objects of this blob are encoded again. A blob is not divided if it is damaged, or if the last object of the
    /// output is too long for a host.
    pub fn take_hosts(
        &mut self,
        wanted: usize,
        options: &WriteOptions,
        ctx: &Context,
    ) -> Result<Vec<TableHost>> {
        let mut hosts = VecDeque::new();
        while hosts.len() < wanted
            && let Some(blob) = self.blobs.back()
            && let Some(split) =
                Split::split_off(blob, wanted - hosts.len(), hosts.is_empty(), ctx)?
        {
            let rest = match split.rest {
                0 => Rest::default(),
                _ => match self.encode_rest(&split.payload, split.rest, options, ctx) {
                    Some(rest) => rest,
                    None => break,
                },
            };
            self.pop_back();
            if rest.has_blob_before {
                self.pop_back();
            }
            for host in split.hosts.into_iter().rev() {
                hosts.push_front(host);
            }
            for frame in rest.frames {
                self.push(OutputBlob::Frame(frame));
            }
            if split.rest > 0 {
                break;
            }
        }
        Ok(hosts.into())
    }

    /// Encodes the first `count` objects of `payload`, the payload of the last blob. May join them with the objects of
    /// the previous blob. Otherwise, small blobs would accumulate in a file that is updated daily. Returns `None` if an
    /// object is damaged.
    fn encode_rest(
        &self,
        payload: &[u8],
        count: usize,
        options: &WriteOptions,
        ctx: &Context,
    ) -> Option<Rest> {
        let before = self.blobs.iter().rev().nth(1);
        let before = before.filter(|blob| self.can_take_objects(blob, payload, count));
        let before = before.and_then(|blob| blob.payload(ctx).ok());
        let frames = || {
            let mut encoder = FrameEncoder::new(options.compression, options.blob_index);
            encoder.set_max_objects(self.most as usize);
            if !options.dense_nodes {
                encoder.write_plain_nodes();
            }
            if let Some(before) = &before {
                encoder.add_objects(before, 0..usize::MAX)?;
            }
            encoder.add_objects(payload, 0..count)?;
            encoder.finish()
        };
        let frames: FormatResult<Vec<EncodedFrame>> = frames();
        Some(Rest {
            frames: frames.ok()?,
            has_blob_before: before.is_some(),
        })
    }

    /// Whether the first `count` objects of `payload` can be joined with the objects of `blob`, the previous blob. They
    /// must be few, and must fit into the blob. A blob with far more objects takes none: all its objects would be
    /// encoded again for a few new ones. The few objects then stay in a blob of their own, and later updates add their
    /// new objects to this small blob.
    fn can_take_objects(&self, blob: &OutputBlob, payload: &[u8], count: usize) -> bool {
        const FEW: usize = 1000;
        const FAR_MORE: usize = 8;
        let entry = blob.entry();
        let kind = || {
            let block = Block::parse(payload).ok()?;
            let mut objects = block.cursor();
            objects.next().ok()?.map(|object| object.key.0)
        };
        let is_of_kind = kind().is_some_and(|kind| entry.kinds.single() == Some(kind));
        let before = entry.count as usize;
        let fits = before + count <= self.most as usize && before <= count * FAR_MORE;
        is_of_kind && fits && count <= FEW && entry.flags.has(BlobFlags::SORTED)
    }
}

/// The objects of a divided blob that did not go into a host. They are encoded again.
#[derive(Default)]
struct Rest {
    frames: Vec<EncodedFrame>,
    /// Whether `frames` also has the objects of the blob before the divided one.
    has_blob_before: bool,
}

/// A block that is divided in two. The first `rest` objects stay together, and the objects after them are in `hosts`.
struct Split {
    payload: Vec<u8>,
    /// The number of objects that are not in a host.
    rest: usize,
    hosts: Vec<TableHost>,
}

impl Split {
    /// Puts the objects at the end of a blob into at most `wanted` hosts. A host gets one object with all its versions.
    /// If `wanted` is 1 and the blob is small, the host gets all objects of the blob. Returns `None` if the blob has no
    /// objects or is damaged, or if an object has more than [`MAX_HOST_LEN`] versions. Also returns `None` if the blob
    /// is the last one (`is_last`) and its last object is too long.
    fn split_off(
        blob: &OutputBlob,
        wanted: usize,
        is_last: bool,
        ctx: &Context,
    ) -> Result<Option<Self>> {
        let Some(payload) = blob.payload_if_undamaged(ctx)? else {
            return Ok(None);
        };
        let Ok(block) = Block::parse(&payload) else {
            return Ok(None);
        };
        // A blob with a damaged object is not divided, because the objects after the damaged one would be lost.
        let Ok((count, starts)) = starts_of_last_objects(&block, wanted) else {
            return Ok(None);
        };
        let is_small = payload.len() <= MAX_WHOLE_LEN && blob.entry().kinds.single().is_some();
        if wanted == 1
            && is_small
            && let Ok(host) = encode_table_host(&block, 0..count)
        {
            let (rest, hosts) = (0, vec![host]);
            return Ok(Some(Self {
                payload,
                rest,
                hosts,
            }));
        }
        let mut hosts = Vec::with_capacity(starts.len());
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(count);
            // Each version of an object takes at least one byte.
            if end - start > MAX_HOST_LEN {
                return Ok(None);
            }
            let Ok(host) = encode_table_host(&block, *start..end) else {
                return Ok(None);
            };
            hosts.push(host);
        }
        let is_short = |host: &TableHost| host.payload.len() <= MAX_HOST_LEN;
        if hosts.is_empty() || (is_last && !hosts.last().is_some_and(is_short)) {
            return Ok(None);
        }
        let rest = starts[0];
        Ok(Some(Self {
            payload,
            rest,
            hosts,
        }))
    }
}

/// Returns the number of objects in `block`, and the indices of the first versions of the last `wanted` objects.
fn starts_of_last_objects(
    block: &Block<'_>,
    wanted: usize,
) -> FormatResult<(usize, VecDeque<usize>)> {
    let (mut objects, mut starts) = (block.cursor(), VecDeque::new());
    let (mut count, mut before) = (0, None);
    while let Some(object) = objects.next()? {
        if before != Some(object.key) {
            before = Some(object.key);
            starts.push_back(count);
            if starts.len() > wanted {
                starts.pop_front();
            }
        }
        count += 1;
    }
    Ok((count, starts))
}

/// Returns a host with the objects of `block` at the indices in `range`. All these objects must have the same kind.
fn encode_table_host(block: &Block<'_>, range: Range<usize>) -> FormatResult<TableHost> {
    let (mut encoder, mut strings) = (BlockEncoder::default(), SourceStrings::new(&block.strings));
    encoder.set_units(&block.units);
    let (mut objects, mut index) = (block.cursor(), 0);
    while index < range.end
        && let Some(object) = objects.next()?
    {
        if index >= range.start {
            if object.is_node_message() {
                encoder.write_plain_nodes();
            }
            encoder.add_raw(object, &mut strings)?;
        }
        index += 1;
    }
    let (mut payload, mut entry) = (Vec::new(), BlobEntry::default());
    encoder.finish(&mut payload);
    scan_payload(&payload, &mut entry)?;
    Ok(TableHost { payload, entry })
}
