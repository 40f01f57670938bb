//! Determines the outcome for each blob of a damaged file.

use super::frames::{self, Frame, Piece};
use super::mender::BlobMender;
use super::outcome::Outcome;
use crate::error::{Error, FormatError, FormatResult, Result};
use crate::file::{BlobDecoder, FrameStart, read_blob_message};
use crate::io::Input;
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobKind, Encoding, FRAME_PREFIX_LEN, TableBlob, may_be_table_blob,
    report_content_faults, scan_for_oddities,
};
use crate::runtime::Context;
use std::iter::{from_fn, once};

/// Finds the blobs that are not where the table of contents lists them. Such a blob may have moved, or only its frame
/// may be damaged. In the result, the outcomes of found blobs precede the losses in whose range the blobs were found.
pub(super) fn find_displaced_blobs(
    outcomes: Vec<Outcome>,
    input: &Input,
    mender: &BlobMender,
    ctx: &Context,
) -> Result<Vec<Outcome>> {
    let mut reader = BlobDecoder::new(input, ctx);
    let mut found = Vec::with_capacity(outcomes.len());
    let mut rest = outcomes.into_iter().peekable();
    while let Some(outcome) = rest.next() {
        let Outcome::Lost(first, _) = &outcome else {
            found.push(outcome);
            continue;
        };
        let (start, number) = (first.offset, first.blob.unwrap_or(0));
        let run: Vec<Outcome> = once(outcome)
            .chain(from_fn(|| rest.next_if(Outcome::is_lost)))
            .collect();
        let end = run.iter().filter_map(Outcome::end).max();
        let range = start..end.unwrap_or(start).min(input.len());
        for piece in frames::find(input, range.clone(), number, ctx)? {
            let frame = match piece {
                Piece::Frame(frame) if frame.kind != BlobKind::Header => frame,
                _ => continue,
            };
            if frame.entry.end() > range.end {
                continue;
            }
            // Only data with a checksum counts as found. Data without a checksum may be the damaged data that the table
            // of contents lists. A Blob that cannot be parsed is examined, too: it is searched only for streams with a
            // checksum.
            let body = read_blob_message(input, &frame.entry)?;
            let is_zlib = |blob: Blob<'_>| blob.encoding == Encoding::Zlib;
            if frame.stream_in.is_some() || Blob::parse(&body).map_or(true, is_zlib) {
                let outcomes = outcomes_of(&mut reader, input, frame, mender, ctx)?.into_iter();
                found.extend(outcomes.filter(|found| found.written().next().is_some()));
            }
        }
        found.extend(run);
    }
    Ok(found)
}

/// Returns the outcomes for a frame. There are several if the data of another blob is in the frame.
pub(super) fn outcomes_of(
    reader: &mut BlobDecoder,
    input: &Input,
    frame: Frame,
    mender: &BlobMender,
    ctx: &Context,
) -> Result<Vec<Outcome>> {
    if frame.kind == BlobKind::Unknown || frame.stream_in.is_some() {
        return Ok(vec![outcome_without_frame(input, &frame, mender)?]);
    }
    let mut entry = frame.entry;
    if !entry.is_indexed() {
        let start = FrameStart::read(input, entry.offset)?;
        let started = start.parse();
        if started.is_ok_and(|started| may_be_table_blob(started.blob_start)) {
            let table = TableBlob::of(&read_blob_message(input, &entry)?);
            if table.has_no_objects() {
                return Ok(vec![Outcome::Empty]);
            }
            entry.flags.set(BlobFlags::HAS_TABLE, table.is_host());
        }
    }
    // A hash of the content is as good as the checksum of zlib.
    let mut has_checksum = entry.flags.has(BlobFlags::HASHED);
    let payload = reader.read(&entry).and_then(|stored| {
        has_checksum |= stored.blob.encoding == Encoding::Zlib;
        stored.payload()
    });
    match payload {
        Ok(payload) => {
            let outcome = match recompute_entry(&mut entry, payload, has_checksum) {
                Ok(short_ways) => Outcome::Whole { entry, short_ways },
                Err(cause) => mender.mend_blob(entry, payload, cause.to_string())?,
            };
            Ok(vec![outcome])
        }
        Err(Error::Blob { source, .. }) if entry.is_indexed() => {
            Ok(vec![Outcome::lost(entry, &source)])
        }
        Err(Error::Blob { source, .. }) => outcomes_of_streams(input, &frame, &source, mender, ctx),
        Err(error) => Err(error),
    }
}

/// Returns the outcome for a blob whose frame is damaged: a zlib stream that was found without its frame, or a frame of
/// unknown type. The latter has objects only if its type is damaged.
fn outcome_without_frame(input: &Input, frame: &Frame, mender: &BlobMender) -> Result<Outcome> {
    let cause = match &frame.stream_in {
        Some(cause) => format!("the frame around the data is damaged: {cause}"),
        None => "the type of the blob is damaged".into(),
    };
    let outcome = frame.read_payload(input, |payload| {
        Ok(match frames::kind_of(payload) {
            Some(BlobKind::Data) => mender.mend_blob(frame.entry, payload, cause),
            _ => Ok(Outcome::Empty),
        })
    })?;
    let fault = match outcome {
        Ok(outcome) => return outcome,
        Err(fault) => fault,
    };
    // The blob counts as lost if more than half of the bytes in its type field are those of the type `OSMData`.
    const DATA: &[u8] = b"\x0a\x07OSMData";
    let start = FrameStart::read(input, frame.entry.offset)?;
    let found = start.bytes().iter().skip(FRAME_PREFIX_LEN);
    let equal = found.zip(DATA).filter(|(one, other)| one == other);
    if frame.stream_in.is_none() && equal.count() > DATA.len() / 2 {
        return Ok(Outcome::lost(frame.entry, &fault));
    }
    Ok(Outcome::Empty)
}

/// Returns the outcomes for a frame whose blob cannot be decoded. The data of the blob may be whole although the fields
/// around the data are damaged.
fn outcomes_of_streams(
    input: &Input,
    frame: &Frame,
    cause: &FormatError,
    mender: &BlobMender,
    ctx: &Context,
) -> Result<Vec<Outcome>> {
    let entry = &frame.entry;
    let (mut found, mut is_lost) = (Vec::new(), false);
    for piece in frames::find_streams(input, entry.offset..entry.end(), &cause.to_string(), ctx)? {
        let outcome = match piece {
            Piece::Frame(mut stream) => {
                stream.entry.number = entry.number;
                outcome_without_frame(input, &stream, mender)?
            }
            Piece::Gap { .. } => Outcome::Empty,
        };
        let has_objects = outcome.keys().is_some();
        is_lost |= !has_objects;
        found.extend(has_objects.then_some(outcome));
    }
    // Bytes without readable objects are the remains of the blob, which then counts as lost.
    if is_lost {
        let start = FrameStart::read(input, entry.offset)?;
        let indexed = start
            .parse()
            .ok()
            .and_then(|frame| frame.indexed_entry(*entry));
        found.insert(0, Outcome::lost(indexed.unwrap_or(*entry), cause));
    }
    Ok(found)
}

/// Checks the content of a blob, and computes its entry again, because a table of contents can have false facts about a
/// blob. Returns the number of ways with fewer than two nodes. Fails if the blob cannot be copied as it is. Without a
/// checksum, damage can be anywhere, so every value is checked.
fn recompute_entry(entry: &mut BlobEntry, payload: &[u8], has_checksum: bool) -> FormatResult<u64> {
    if !has_checksum {
        report_content_faults(payload, |_| ())?;
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
    if odd.has_repeated_keys {
        let cause = "tags with a key that the object has already";
        return Err(FormatError::new(cause));
    }
    if odd.has_refused_info {
        let cause = "versions or changesets that are out of range";
        return Err(FormatError::new(cause));
    }
    Ok(odd.short_ways)
}
