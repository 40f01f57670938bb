//! Looks at single blobs of a damaged file.

use super::frames::{self, Frame, Piece, body_of, mark_table};
use super::outcome::{Mended, Outcome};
use crate::error::{Error, FormatError, Result};
use crate::file::BlobDecoder;
use crate::io::Input;
use crate::pbf::{
    BlobEntry, BlobFlags, BlobKind, Block, Compression, Decompressor, EncodedFrame, Encoding,
    FRAME_PREFIX_LEN, FRAME_PROBE_LEN, FrameEncoder, InvalidUtf8, Object, ObjectBody, Salvage,
    content_faults, may_be_table_blob, salvage, scan_for_oddities,
};
use crate::runtime::Context;
use std::iter::{from_fn, once};

/// Looks for the blobs that are not where the table of contents lists them. They can have moved, or only their frames
/// are damaged. Blobs that are found come before the losses.
pub(super) fn look_again(
    outcomes: Vec<Outcome>,
    input: &Input,
    invalid: InvalidUtf8,
    ctx: &Context,
) -> Result<Vec<Outcome>> {
    if !outcomes.iter().any(Outcome::is_lost) {
        return Ok(outcomes);
    }
    let mut reader = BlobDecoder::new(input, ctx);
    let mut found = Vec::with_capacity(outcomes.len());
    let mut rest = outcomes.into_iter().peekable();
    while let Some(outcome) = rest.next() {
        let Outcome::Lost(first, entry) = &outcome else {
            found.push(outcome);
            continue;
        };
        let (start, number) = (first.offset, entry.number);
        let run: Vec<Outcome> = once(outcome)
            .chain(from_fn(|| rest.next_if(Outcome::is_lost)))
            .collect();
        let end = run.iter().filter_map(Outcome::end).max();
        let range = start..end.unwrap_or(start).min(input.len());
        for piece in frames::find(input, range.clone(), number, ctx)? {
            if let Piece::Frame(frame) = piece
                && frame.kind != BlobKind::Header
                && frame.entry.end() <= range.end
                && has_checksum(input, &frame)?
            {
                let outcomes = look(&mut reader, input, frame, invalid, ctx)?.into_iter();
                found.extend(outcomes.filter(|found| found.written().next().is_some()));
            }
        }
        found.extend(run);
    }
    Ok(found)
}

/// Whether objects in a frame have a checksum. Without one, they can be those that the table of contents says are
/// damaged. If the Blob is damaged, only data with a checksum is looked for.
fn has_checksum(input: &Input, frame: &Frame) -> Result<bool> {
    let body = body_of(input, &frame.entry)?;
    let blob = frame.blob(&body);
    Ok(blob.map_or(true, |blob| blob.encoding == Encoding::Zlib))
}

/// Looks at a blob. Returns several outcomes if the data of another blob is in it.
pub(super) fn look(
    reader: &mut BlobDecoder,
    input: &Input,
    frame: Frame,
    invalid: InvalidUtf8,
    ctx: &Context,
) -> Result<Vec<Outcome>> {
    if frame.kind == BlobKind::Unknown || frame.stream_in.is_some() {
        return Ok(vec![without_frame(input, frame, invalid)?]);
    }
    let mut entry = frame.entry;
    if !entry.is_indexed() {
        let mut start = [0; FRAME_PROBE_LEN];
        let len = start
            .len()
            .min((entry.frame_len - entry.header_len) as usize);
        let offset = entry.offset + u64::from(entry.header_len);
        input.read_all_at(&mut start[..len], offset)?;
        if may_be_table_blob(&start[..len]) {
            let body = body_of(input, &entry)?;
            if !mark_table(&mut entry, &body) {
                return Ok(vec![Outcome::Empty]);
            }
        }
    }
    // A hash of the content is as good as the checksum of zlib.
    let mut has_checksum = entry.flags.has(BlobFlags::HASHED);
    let payload = reader.payload_if(&entry, |encoding| {
        has_checksum |= encoding == Encoding::Zlib;
        true
    });
    match payload {
        Ok(payload) => Ok(vec![of_payload(
            Frame { entry, ..frame },
            payload.unwrap_or_default(),
            has_checksum,
            invalid,
        )]),
        Err(Error::Blob { source, .. }) if entry.is_indexed() => {
            Ok(vec![Outcome::lost(entry, &source)])
        }
        Err(Error::Blob { source, .. }) => undecodable(input, &frame, &source, invalid, ctx),
        Err(error) => Err(error),
    }
}

/// Looks at a blob whose frame is damaged: a zlib stream that was found without its frame, or a frame of unknown type,
/// which has objects only if the type is the damage.
fn without_frame(input: &Input, frame: Frame, invalid: InvalidUtf8) -> Result<Outcome> {
    let body = body_of(input, &frame.entry)?;
    let mut decompressor = Decompressor::default();
    let payload = frame
        .blob(&body)
        .and_then(|blob| decompressor.payload(&blob));
    let has_objects = |payload: &&[u8]| frames::kind_of(payload) == Some(BlobKind::Data);
    let cause = match &frame.stream_in {
        Some(cause) => format!("the frame around the data is damaged: {cause}"),
        None => "the type of the blob is damaged".into(),
    };
    Ok(match payload {
        Ok(payload) if has_objects(&payload) => mended(frame, payload, cause, invalid),
        Err(fault) if is_nearly_data(input, &frame)? => Outcome::lost(frame.entry, &fault),
        Ok(_) | Err(_) => Outcome::Empty,
    })
}

/// Whether most bytes of the type of a frame are those of `OSMData`.
fn is_nearly_data(input: &Input, frame: &Frame) -> Result<bool> {
    const START: &[u8] = b"\x0a\x07OSMData";
    let mut start = [0; START.len()];
    let offset = frame.entry.offset + FRAME_PREFIX_LEN as u64;
    input.read_all_at(&mut start, offset)?;
    let equal = start.iter().zip(START).filter(|(one, other)| one == other);
    Ok(frame.stream_in.is_none() && equal.count() > START.len() / 2)
}

/// Looks at a blob that cannot be decoded. Its data may be whole, and only what the blob says about it wrong.
fn undecodable(
    input: &Input,
    frame: &Frame,
    cause: &FormatError,
    invalid: InvalidUtf8,
    ctx: &Context,
) -> Result<Vec<Outcome>> {
    let entry = &frame.entry;
    let (mut found, mut is_lost) = (Vec::new(), false);
    for piece in frames::rescue(input, entry.offset..entry.end(), &cause.to_string(), ctx)? {
        let outcome = match piece {
            Piece::Frame(mut stream) => {
                stream.entry.number = entry.number;
                without_frame(input, stream, invalid)?
            }
            Piece::Gap { .. } => Outcome::Empty,
        };
        let has_objects = outcome.keys().is_some();
        is_lost |= !has_objects;
        found.extend(has_objects.then_some(outcome));
    }
    // Other bytes than those of the data that was found are what is left of the blob.
    let lost = is_lost
        .then(|| frames::index_of(input, entry))
        .transpose()?;
    let lost = lost.map(|entry| Outcome::lost(entry, cause));
    Ok(lost.into_iter().chain(found).collect())
}

/// Looks at the content of a blob.
fn of_payload(
    mut frame: Frame,
    payload: &[u8],
    has_checksum: bool,
    invalid: InvalidUtf8,
) -> Outcome {
    match check(&mut frame.entry, payload, has_checksum) {
        Ok(short_ways) => Outcome::Whole(frame.entry, short_ways),
        Err(cause) => mended(frame, payload, cause.to_string(), invalid),
    }
}

/// Checks the content of a blob, and makes its entry anew: the facts in a table of contents can be false although they
/// belong to the blob. Returns the number of ways with fewer than two nodes. Fails if the blob cannot be copied as it
/// is. Without a checksum, damage can be anywhere, and every value is looked at.
fn check(entry: &mut BlobEntry, payload: &[u8], has_checksum: bool) -> Result<u64, FormatError> {
    if !has_checksum {
        content_faults(payload, |_| ())?;
    }
    let mut found = entry.without_facts();
    let odd = scan_for_oddities(payload, &mut found)?;
    *entry = found;
    if odd.has_outside {
        return Err(FormatError::new("nodes with coordinates beyond the earth"));
    }
    if odd.has_empty_keys {
        return Err(FormatError::new("tags without a key"));
    }
    if odd.has_inexpressible {
        let cause = "strings with characters that XML does not know";
        return Err(FormatError::new(cause));
    }
    if Block::parse(payload)?.repeated_keys()? > 0 {
        return Err(FormatError::new(
            "tags with a key that the object has already",
        ));
    }
    Ok(odd.short_ways)
}

/// Reads what is left of a blob.
fn mended(frame: Frame, payload: &[u8], cause: String, invalid: InvalidUtf8) -> Outcome {
    let (mut encoder, mut short_ways) = (FrameEncoder::new(Compression::Lz4, false), 0);
    let (changes, frames) = rewrite(payload, invalid, &mut encoder, |object| {
        if let ObjectBody::Way { refs, .. } = &object.body {
            short_ways += u64::from(refs.len() < 2);
        }
    });
    match frames {
        Ok(frames) if changes.objects > 0 => Outcome::Mended(Box::new(Mended {
            frame,
            cause,
            changes,
            short_ways,
            new: frames.into_iter().map(|frame| frame.entry).collect(),
        })),
        Ok(_) | Err(_) => Outcome::lost(frame.entry, &FormatError::with(cause)),
    }
}

/// Writes what is left of a blob anew. Calls `each` with every object.
pub(super) fn rewrite(
    payload: &[u8],
    invalid: InvalidUtf8,
    encoder: &mut FrameEncoder,
    mut each: impl FnMut(&Object<'_>),
) -> (Salvage, Result<Vec<EncodedFrame>, FormatError>) {
    let changes = salvage(payload, invalid, |object| {
        encoder.add(object)?;
        each(object);
        Ok(())
    });
    (changes, encoder.finish())
}
