//! Frames. A frame is the big-endian length of a `BlobHeader`, the `BlobHeader`, and a `Blob` (fileformat.proto).

use crate::error::FormatError;
use crate::pbf::wire::schema::{blob, blob_header};
use crate::pbf::wire::{
    Fields, put_bytes_field, put_bytes_head, put_varint_field, read_varint, varint_len,
};

/// The size in bytes of the length field at the start of a frame.
pub const FRAME_PREFIX_LEN: usize = 4;
/// A BlobHeader must be smaller than this many bytes (wiki: 64 KiB).
pub const MAX_BLOB_HEADER_LEN: u32 = 64 * 1024;
/// A Blob must be smaller than this many bytes (wiki: 32 MiB).
pub const MAX_BLOB_LEN: u32 = 32 * 1024 * 1024;
/// An uncompressed payload must not be larger than this many bytes (wiki: 32 MiB).
pub const MAX_PAYLOAD_LEN: u32 = 32 * 1024 * 1024;

/// The type of a frame, from its BlobHeader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobKind {
    /// "OSMHeader": a HeaderBlock.
    Header,
    /// "OSMData": a PrimitiveBlock.
    Data,
    /// Another type; readers skip the frame.
    Unknown,
}

impl BlobKind {
    fn type_name(self) -> &'static str {
        match self {
            Self::Header => "OSMHeader",
            Self::Data | Self::Unknown => "OSMData",
        }
    }
}

/// A `BlobHeader`, with the type and the size of the Blob that follows, and an optional index of the contents of the
/// Blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobHeader<'a> {
    /// Field 1, `type`.
    pub kind: BlobKind,
    /// Field 2, `indexdata`, undecoded.
    pub indexdata: Option<&'a [u8]>,
    /// Field 3, `datasize`: the size of the Blob in bytes, checked against [`MAX_BLOB_LEN`].
    pub blob_len: u32,
}

impl<'a> BlobHeader<'a> {
    /// Reads the size of a BlobHeader from `prefix`, the first four bytes of its frame, and checks it against
    /// [`MAX_BLOB_HEADER_LEN`].
    pub fn len_from_prefix(prefix: [u8; FRAME_PREFIX_LEN]) -> Result<u32, FormatError> {
        let len = u32::from_be_bytes(prefix);
        if len >= MAX_BLOB_HEADER_LEN {
            return Err(FormatError::with(format!(
                "BlobHeader of {len} bytes (the limit is {MAX_BLOB_HEADER_LEN}): not a PBF frame"
            )));
        }
        Ok(len)
    }

    /// Reads the BlobHeader of the frame at the start of `frame`. Returns the BlobHeader and the bytes after it. The
    /// frame need not be complete.
    pub fn read(frame: &'a [u8]) -> Result<(Self, &'a [u8]), FormatError> {
        let (prefix, rest) =
            frame
                .split_first_chunk::<FRAME_PREFIX_LEN>()
                .ok_or(FormatError::truncated(
                    "the file ends within the length of a frame",
                ))?;
        let (message, rest) = rest
            .split_at_checked(Self::len_from_prefix(*prefix)? as usize)
            .ok_or(FormatError::truncated("the file ends within a BlobHeader"))?;
        Ok((Self::parse(message)?, rest))
    }

    /// Reads a BlobHeader. Fails if it has no `type` or no `datasize`, or if `datasize` is not less than
    /// [`MAX_BLOB_LEN`].
    pub fn parse(message: &'a [u8]) -> Result<Self, FormatError> {
        let (mut kind, mut indexdata, mut blob_len) = (None, None, None);
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("BlobHeader"))? {
            match field.number {
                blob_header::TYPE => {
                    kind = Some(match field.bytes()? {
                        b"OSMHeader" => BlobKind::Header,
                        b"OSMData" => BlobKind::Data,
                        _ => BlobKind::Unknown,
                    });
                }
                blob_header::INDEXDATA => indexdata = Some(field.bytes()?),
                blob_header::DATASIZE => blob_len = Some(field.varint()?),
                _ => {}
            }
        }
        let kind = kind.ok_or(FormatError::new("BlobHeader without type"))?;
        let blob_len = blob_len.ok_or(FormatError::new("BlobHeader without datasize"))?;
        match u32::try_from(blob_len) {
            Ok(blob_len) if blob_len < MAX_BLOB_LEN => Ok(Self {
                kind,
                indexdata,
                blob_len,
            }),
            _ => Err(FormatError::with(format!(
                "blob of {blob_len} bytes (the limit is {MAX_BLOB_LEN})"
            ))),
        }
    }
}

/// The format in which a Blob stores its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Not compressed.
    Raw,
    /// zlib (RFC 1950).
    Zlib,
    /// lz4 block format.
    Lz4,
    /// zstd frame.
    Zstd,
}

impl Encoding {
    /// The name of the encoding in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "none",
            Self::Zlib => "zlib",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The number of the field of Blob that contains data in this encoding.
    const fn field_number(self) -> u32 {
        match self {
            Self::Raw => 1,
            Self::Zlib => 3,
            Self::Lz4 => 6,
            Self::Zstd => 7,
        }
    }
}

/// A `Blob`, which stores a payload in some encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blob<'a> {
    /// The encoding of `data`.
    pub encoding: Encoding,
    /// The stored bytes of the payload.
    pub data: &'a [u8],
    /// The size in bytes of the uncompressed payload, checked against [`MAX_PAYLOAD_LEN`].
    pub payload_len: u32,
}

impl<'a> Blob<'a> {
    /// Reads a Blob. Fails if the Blob is compressed with lzma or bzip2, has no data, or declares a payload of more
    /// than [`MAX_PAYLOAD_LEN`] bytes. Also fails if compressed data has no `raw_size`, or if the length of
    /// uncompressed data differs from `raw_size`.
    pub fn parse(message: &'a [u8]) -> Result<Self, FormatError> {
        let mut stored = None;
        let mut raw_size = None;
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("Blob"))? {
            match field.number {
                blob::RAW => stored = Some((Encoding::Raw, field.bytes()?)),
                blob::RAW_SIZE => raw_size = Some(field.varint()?),
                blob::ZLIB_DATA => stored = Some((Encoding::Zlib, field.bytes()?)),
                blob::LZ4_DATA => stored = Some((Encoding::Lz4, field.bytes()?)),
                blob::ZSTD_DATA => stored = Some((Encoding::Zstd, field.bytes()?)),
                blob::LZMA_DATA => {
                    return Err(FormatError::new(
                        "the blob is compressed with lzma, which is not supported",
                    ));
                }
                blob::BZIP2_DATA => {
                    return Err(FormatError::new(
                        "the blob is compressed with bzip2, which is obsolete and not supported",
                    ));
                }
                _ => {}
            }
        }
        let (encoding, data) = stored.ok_or(FormatError::new("Blob without data"))?;
        let payload_len = match (raw_size, encoding) {
            (Some(size), _) => size,
            (None, Encoding::Raw) => data.len() as u64,
            (None, _) => return Err(FormatError::new("compressed Blob without raw_size")),
        };
        let payload_len = u32::try_from(payload_len)
            .ok()
            .filter(|&len| len <= MAX_PAYLOAD_LEN)
            .ok_or_else(|| {
                FormatError::with(format!(
                    "payload of {payload_len} bytes (the limit is {MAX_PAYLOAD_LEN})"
                ))
            })?;
        if encoding == Encoding::Raw && data.len() != payload_len as usize {
            return Err(raw_size_error(payload_len, data.len()));
        }
        Ok(Self {
            encoding,
            data,
            payload_len,
        })
    }
}

impl<'a> Blob<'a> {
    /// Reads the beginning of a Blob whose data is compressed with zlib. The data of the result is cut off at the end
    /// of `beginning`. The Blob must begin with a valid `raw_size`, and the zlib data must follow. Returns `None` for
    /// other Blobs.
    pub(crate) fn parse_beginning(beginning: &'a [u8]) -> Option<Self> {
        const RAW_SIZE: u64 = (blob::RAW_SIZE << 3) as u64;
        const ZLIB_DATA: u64 = (blob::ZLIB_DATA << 3 | 2) as u64;
        let mut pos = 0;
        let mut next = || read_varint(beginning, &mut pos).ok();
        if next()? != RAW_SIZE {
            return None;
        }
        let payload_len = u32::try_from(next()?).ok()?;
        if payload_len > MAX_PAYLOAD_LEN || next()? != ZLIB_DATA {
            return None;
        }
        let data_len = usize::try_from(next()?).ok()?;
        let data = beginning.get(pos..)?;
        Some(Self {
            encoding: Encoding::Zlib,
            data: &data[..data.len().min(data_len)],
            payload_len,
        })
    }
}

/// Returns the error for a payload whose length, `found`, differs from `raw_size`.
pub(super) fn raw_size_error(raw_size: u32, found: usize) -> FormatError {
    FormatError::with(format!(
        "raw_size is {raw_size} bytes, but the data has {found}"
    ))
}

/// Appends a whole frame, with prefix, BlobHeader and Blob. Fails if the Blob or its payload exceeds a limit of the
/// format.
pub fn encode_frame(
    out: &mut Vec<u8>,
    kind: BlobKind,
    indexdata: Option<&[u8]>,
    blob: &Blob<'_>,
) -> Result<(), FormatError> {
    let mut blob_head = Vec::with_capacity(24);
    if blob.encoding != Encoding::Raw {
        put_varint_field(&mut blob_head, blob::RAW_SIZE, u64::from(blob.payload_len));
    }
    put_bytes_head(
        &mut blob_head,
        blob.encoding.field_number(),
        blob.data.len(),
    );
    let blob_len = blob_head.len() + blob.data.len();
    if blob_len >= MAX_BLOB_LEN as usize || blob.payload_len > MAX_PAYLOAD_LEN {
        return Err(FormatError::with(format!(
            "a blob of {blob_len} bytes is too large to write"
        )));
    }
    encode_blob_header(out, kind, indexdata, blob_len as u32);
    out.extend_from_slice(&blob_head);
    out.extend_from_slice(blob.data);
    Ok(())
}

/// Appends the prefix and the BlobHeader of a frame whose Blob has `blob_len` bytes.
pub(crate) fn encode_blob_header(
    out: &mut Vec<u8>,
    kind: BlobKind,
    indexdata: Option<&[u8]>,
    blob_len: u32,
) {
    let mut header = Vec::with_capacity(32 + indexdata.map_or(0, <[u8]>::len));
    put_bytes_field(&mut header, blob_header::TYPE, kind.type_name().as_bytes());
    if let Some(indexdata) = indexdata {
        put_bytes_field(&mut header, blob_header::INDEXDATA, indexdata);
    }
    put_varint_field(&mut header, blob_header::DATASIZE, u64::from(blob_len));
    out.extend_from_slice(&(header.len() as u32).to_be_bytes());
    out.extend_from_slice(&header);
}

/// Returns the size in bytes of the prefix and the BlobHeader of a data frame without an index.
pub const fn plain_header_len(blob_len: u32) -> u32 {
    (FRAME_PREFIX_LEN + 2 + "OSMData".len() + 1 + varint_len(blob_len as u64)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_frame_is_read_back_unchanged() {
        let mut frame = Vec::new();
        let blob = Blob {
            encoding: Encoding::Raw,
            data: b"payload",
            payload_len: 7,
        };
        encode_frame(&mut frame, BlobKind::Data, None, &blob).unwrap();
        let (header, body) = BlobHeader::read(&frame).unwrap();
        assert_eq!(header.kind, BlobKind::Data);
        let header_len = frame.len() - body.len();
        assert_eq!(plain_header_len(header.blob_len) as usize, header_len);
        assert_eq!(body.len(), header.blob_len as usize);
        assert_eq!(Blob::parse(body).unwrap(), blob);
    }

    #[test]
    fn limits_are_checked_before_anything_is_allocated() {
        assert!(BlobHeader::len_from_prefix(*b"<?xm").is_err());
        let mut header = Vec::new();
        put_bytes_field(&mut header, 1, b"OSMData");
        put_varint_field(&mut header, 3, u64::MAX);
        assert!(BlobHeader::parse(&header).is_err());
        let mut blob = Vec::new();
        put_varint_field(&mut blob, 2, 1 << 40);
        put_bytes_field(&mut blob, 3, b"x");
        assert!(Blob::parse(&blob).is_err());
    }

    #[test]
    fn an_error_names_the_old_compression() {
        for (field, name) in [(4, "lzma"), (5, "bzip2")] {
            let mut blob = Vec::new();
            put_bytes_field(&mut blob, field, b"x");
            assert!(Blob::parse(&blob).unwrap_err().to_string().contains(name));
        }
    }
}
