//! Looks at every blob of a damaged file.

use super::frames::{self, Frame, Frames, Gap, body_of, mark_table};
use super::report::{Loss, LostIds, MendedBlob, Report};
use crate::error::{Error, FormatError, Result};
use crate::file::{BlobDecoder, BlobPass, PbfFile};
use crate::io::Input;
use crate::osm::{ObjectKind, TypeThenId, id_from_rank};
use crate::pbf::{
    Blob, BlobEntry, BlobFlags, BlobKind, Block, Compression, Decompressor, Encoding,
    FRAME_PROBE_LEN, FrameEncoder, HeaderBlock, InvalidUtf8, Salvage, TocPointer, content_faults,
    may_be_table_blob, salvage, scan_for_outside,
};
use crate::runtime::{Context, NoObserver, WorkItem};
use std::sync::Arc;

/// The finding about a blob.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// The blob is whole, and is copied. The number is that of its ways with fewer than two nodes.
    Whole(BlobEntry, u64),
    /// The objects that can be read are written anew.
    Mended(Mended),
    /// No object can be read.
    Lost(BlobEntry, String),
    /// The blob has no objects.
    Empty,
}

/// A blob of which not everything can be copied.
#[derive(Debug, Clone)]
pub(super) struct Mended {
    pub entry: BlobEntry,
    pub cause: String,
    pub changes: Salvage,
    /// The facts about the blobs that replace it.
    pub new: Vec<BlobEntry>,
}

/// Everything that a file has.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub headers: Vec<HeaderBlock>,
    /// The outcomes of the data blobs, in file order.
    pub outcomes: Vec<Outcome>,
    /// Bytes that are no frames, each with the number of outcomes before it.
    pub gaps: Vec<(usize, Gap)>,
    /// Facts about the data in all blobs.
    pub has_deleted: bool,
    pub has_locations: bool,
    /// Whether the ids of lost blobs are known from the table of contents.
    is_indexed: bool,
    /// The size of the file that its headers declare; 0 if they do not.
    declared_len: u64,
}

/// A blob to look at.
struct SurveyItem(Frame);

impl WorkItem for SurveyItem {
    fn input_bytes(&self) -> u64 {
        self.0.entry.frame_len.into()
    }
}

impl Survey {
    /// Looks at all blobs of a file.
    pub(super) fn of(input: &Input, invalid: InvalidUtf8, ctx: &Context) -> Result<Self> {
        let indexed = PbfFile::of_input(
            input.clone(),
            &ctx.clone().with_observer(Arc::new(NoObserver)),
        );
        let table = indexed
            .ok()
            .and_then(|file| Some((file.header, file.toc?.entries)));
        let mut survey = Self::default();
        let frames = match table {
            Some((header, entries)) => {
                survey.headers.push(header);
                survey.is_indexed = true;
                let kind = BlobKind::Data;
                Frames {
                    frames: entries
                        .into_iter()
                        .map(|entry| Frame { entry, kind })
                        .collect(),
                    gaps: Vec::new(),
                }
            }
            None => {
                let _phase = ctx.phase("find blobs", input.len());
                frames::find(input)?
            }
        };
        let mut gaps = frames.gaps.into_iter().peekable();
        let mut items = Vec::new();
        for (number, frame) in frames.frames.into_iter().enumerate() {
            while let Some(gap) = gaps.next_if(|gap| gap.frames_before <= number) {
                survey.gaps.push((items.len(), gap));
            }
            match frame.kind {
                BlobKind::Header => survey.header(input, &frame.entry)?,
                BlobKind::Data | BlobKind::Unknown => items.push(SurveyItem(frame)),
            }
        }
        let count = items.len();
        survey.gaps.extend(gaps.map(|gap| (count, gap)));
        if survey.gaps.is_empty() && survey.declared_len > input.len() {
            let gap = Gap {
                offset: input.len(),
                len: survey.declared_len - input.len(),
                frames_before: 0,
                cause: "the file is shorter than its header says".into(),
            };
            survey.gaps.push((count, gap));
        }
        BlobPass::new("look at blobs", input, ctx).holding(4).run(
            items,
            || (),
            |reader, (), SurveyItem(frame)| look(reader, input, frame, invalid),
            |outcome| {
                survey.add(outcome);
                Ok(())
            },
        )?;
        Ok(survey)
    }

    fn header(&mut self, input: &Input, entry: &BlobEntry) -> Result<()> {
        let body = body_of(input, entry)?;
        let header = Blob::parse(&body).and_then(|blob| {
            let mut decompressor = Decompressor::default();
            let (header, about_toc) = HeaderBlock::parse(decompressor.payload(&blob)?)?;
            Ok((header, about_toc.toc.and_then(TocPointer::parse)))
        });
        match header {
            Ok((header, pointer)) => {
                self.headers.push(header);
                if let Some(TocPointer::At { file_len, .. }) = pointer {
                    self.declared_len = self.declared_len.saturating_add(file_len);
                }
            }
            Err(cause) => self.gaps.push((
                self.outcomes.len(),
                Gap {
                    offset: entry.offset,
                    len: entry.frame_len.into(),
                    frames_before: 0,
                    cause: format!("the header of the file is damaged: {cause}"),
                },
            )),
        }
        Ok(())
    }

    fn add(&mut self, outcome: Outcome) {
        for entry in outcome.written() {
            self.has_deleted |= entry.flags.has(BlobFlags::DELETED);
            self.has_locations |= entry.flags.has(BlobFlags::LOCATIONS);
        }
        self.outcomes.push(outcome);
    }

    /// Whether all objects that can be saved are in canonical order, each once.
    pub(super) fn is_sorted(&self) -> bool {
        let mut last: Option<TypeThenId> = None;
        let mut entries = self.outcomes.iter().flat_map(Outcome::written);
        entries.all(|entry| {
            let is_next = entry.count == 0
                || (entry.flags.has(BlobFlags::UNIQUE_IDS) && entry.first_key() > last);
            last = entry.last_key().max(last);
            is_next
        })
    }

    /// Puts what was found into a report.
    pub(super) fn report(&self, report: &mut Report) {
        report.headers = self.headers.len() as u64;
        report.was_sorted = self.is_sorted();
        let mut gaps = self.gaps.iter().peekable();
        for (index, outcome) in self.outcomes.iter().enumerate() {
            while let Some((_, gap)) = gaps.next_if(|(at, _)| *at <= index) {
                report.lost.push(self.loss_of_gap(index, gap));
            }
            match outcome {
                Outcome::Whole(_, short) => {
                    report.whole_blobs += 1;
                    report.short_ways += short;
                }
                Outcome::Mended(mended) => {
                    report.changes.add(&mended.changes);
                    report.mended.push(MendedBlob {
                        blob: mended.entry.number,
                        offset: mended.entry.offset,
                        cause: mended.cause.clone(),
                        changes: mended.changes,
                    });
                }
                Outcome::Lost(entry, cause) => report.lost.push(Loss {
                    blob: Some(entry.number),
                    offset: entry.offset,
                    bytes: entry.frame_len.into(),
                    cause: cause.clone(),
                    objects: self.is_indexed.then_some(entry.count.into()),
                    ids: self.lost_ids(index, entry),
                }),
                Outcome::Empty => {}
            }
        }
        for (at, gap) in gaps {
            report.lost.push(self.loss_of_gap(*at, gap));
        }
    }

    fn loss_of_gap(&self, at: usize, gap: &Gap) -> Loss {
        Loss {
            blob: None,
            offset: gap.offset,
            bytes: gap.len,
            cause: gap.cause.clone(),
            objects: None,
            ids: self.ids_between(at, at),
        }
    }

    /// Returns the ids that a lost blob can have had.
    fn lost_ids(&self, index: usize, entry: &BlobEntry) -> Vec<LostIds> {
        if let (true, Some(kind), Some(first), Some(last)) = (
            self.is_indexed,
            entry.kinds.single(),
            entry.first_key(),
            entry.last_key(),
        ) {
            let [first, last] = [first, last].map(|(_, rank)| Some(id_from_rank(rank)));
            return vec![LostIds {
                kind,
                first,
                last,
                is_exact: true,
            }];
        }
        self.ids_between(index, index + 1)
    }

    /// Returns the ids between the last object before an outcome and the first object from another outcome on.
    fn ids_between(&self, before: usize, behind: usize) -> Vec<LostIds> {
        let keys = |outcome: &Outcome| {
            let entries = outcome.written().filter(|entry| entry.count > 0);
            let keys = entries.filter_map(|entry| entry.first_key().zip(entry.last_key()));
            keys.collect::<Vec<_>>()
        };
        let mut earlier = self.outcomes[..before].iter().rev();
        let from = earlier.find_map(|outcome| keys(outcome).last().map(|(_, last)| *last));
        let mut later = self.outcomes[behind.min(self.outcomes.len())..].iter();
        let to = later.find_map(|outcome| keys(outcome).first().map(|(first, _)| *first));
        let first_kind = from.map_or(ObjectKind::Node, |(kind, _)| kind);
        let last_kind = to.map_or(ObjectKind::Relation, |(kind, _)| kind);
        let kinds = ObjectKind::ALL.into_iter();
        let kinds = kinds.filter(|kind| (first_kind..=last_kind).contains(kind));
        let found = kinds.map(|kind| LostIds {
            kind,
            first: from
                .filter(|(of, _)| *of == kind)
                .map(|(_, rank)| id_from_rank(rank + 1)),
            last: to
                .filter(|(of, _)| *of == kind)
                .map(|(_, rank)| id_from_rank(rank.saturating_sub(1))),
            is_exact: false,
        });
        found.collect()
    }
}

impl Outcome {
    /// The facts about the blobs that are written for a blob.
    pub(super) fn written(&self) -> impl Iterator<Item = &BlobEntry> {
        let (one, several) = match self {
            Self::Whole(entry, _) => (Some(entry), &[][..]),
            Self::Mended(mended) => (None, mended.new.as_slice()),
            Self::Lost(..) | Self::Empty => (None, &[][..]),
        };
        one.into_iter().chain(several)
    }
}

/// Looks at a blob.
fn look(
    reader: &mut BlobDecoder,
    input: &Input,
    frame: Frame,
    invalid: InvalidUtf8,
) -> Result<Outcome> {
    let (mut entry, kind) = (frame.entry, frame.kind);
    if kind == BlobKind::Unknown {
        return unknown(input, entry, invalid);
    }
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
                return Ok(Outcome::Empty);
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
        Ok(payload) => Ok(of_payload(
            entry,
            payload.unwrap_or_default(),
            has_checksum,
            invalid,
        )),
        Err(Error::Blob { source, .. }) => Ok(Outcome::Lost(entry, source.to_string())),
        Err(error) => Err(error),
    }
}

/// Looks at a frame of unknown type, whose type may be damaged.
fn unknown(input: &Input, entry: BlobEntry, invalid: InvalidUtf8) -> Result<Outcome> {
    let body = body_of(input, &entry)?;
    let mut decompressor = Decompressor::default();
    let payload = Blob::parse(&body).and_then(|blob| decompressor.payload(&blob));
    let has_objects = |payload: &&[u8]| {
        let block = Block::parse_bare(payload);
        block.is_ok_and(|block| ObjectKind::ALL.into_iter().any(|kind| block.has(kind)))
    };
    Ok(match payload.ok().filter(has_objects) {
        None => Outcome::Empty,
        Some(payload) => mended(
            entry,
            payload,
            "the type of the blob is damaged".into(),
            invalid,
        ),
    })
}

/// Looks at the content of a blob.
fn of_payload(
    mut entry: BlobEntry,
    payload: &[u8],
    has_checksum: bool,
    invalid: InvalidUtf8,
) -> Outcome {
    match check(&mut entry, payload, has_checksum) {
        Ok(short_ways) => Outcome::Whole(entry, short_ways),
        Err(cause) => mended(entry, payload, cause.to_string(), invalid),
    }
}

/// Checks the content of a blob, and completes its entry. Returns the number of ways with fewer than two nodes. Fails if
/// the blob cannot be copied as it is. Without a checksum, damage can be anywhere, and every value is looked at.
fn check(entry: &mut BlobEntry, payload: &[u8], has_checksum: bool) -> Result<u64, FormatError> {
    if !has_checksum {
        content_faults(payload, |_| ())?;
    }
    let block = Block::parse(payload)?;
    let is_known = entry.flags.has(BlobFlags::HASHED);
    let mut is_outside = false;
    if is_known || scan_for_outside(payload, entry)? {
        block.for_each_node_outside(|_, _, _| is_outside = true)?;
    }
    if is_outside {
        return Err(FormatError::new("nodes with coordinates beyond the earth"));
    }
    let odd = block.oddities()?;
    if odd.has_empty_keys {
        return Err(FormatError::new("tags without a key"));
    }
    Ok(odd.short_ways)
}

/// Reads what is left of a blob.
fn mended(entry: BlobEntry, payload: &[u8], cause: String, invalid: InvalidUtf8) -> Outcome {
    let mut encoder = FrameEncoder::new(Compression::Lz4, false);
    let (changes, frames) = rewrite(payload, invalid, &mut encoder);
    match frames {
        Ok(frames) if changes.objects > 0 => Outcome::Mended(Mended {
            entry,
            cause,
            changes,
            new: frames.into_iter().map(|frame| frame.entry).collect(),
        }),
        Ok(_) | Err(_) => Outcome::Lost(entry, cause),
    }
}

/// Writes what is left of a blob anew.
pub(super) fn rewrite(
    payload: &[u8],
    invalid: InvalidUtf8,
    encoder: &mut FrameEncoder,
) -> (Salvage, Result<Vec<crate::pbf::EncodedFrame>, FormatError>) {
    let changes = salvage(payload, invalid, |object| encoder.add(object));
    (changes, encoder.finish())
}
