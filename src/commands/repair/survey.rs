//! Examines every blob of a damaged file.

use super::blob_outcome::{find_displaced_blobs, outcomes_of};
use super::frames::{self, Frame, Piece};
use super::losses;
use super::mender::BlobMender;
use super::outcome::Outcome;
use super::report::{Loss, MendedBlob, Report};
use crate::error::Result;
use crate::file::{BlobPass, PbfFile};
use crate::io::Input;
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, BlobFlags, BlobKind, HeaderBlock, TocPointer, feature};
use crate::runtime::{Context, NoObserver, WorkItem};
use std::sync::Arc;

/// The headers of a file, its parts, and the outcome for each part.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub headers: Vec<HeaderBlock>,
    /// The blobs of the file and the damaged bytes between them, until they are examined.
    pub pieces: Vec<Piece>,
    /// The entries of the table of contents, until the pieces are examined.
    table: Option<Vec<BlobEntry>>,
    /// Whether the pieces come from the table of contents.
    is_by_table: bool,
    /// The outcomes of the data blobs and of bytes that are no frames, in file order.
    pub outcomes: Vec<Outcome>,
    /// Whether a blob has deleted versions.
    pub has_deleted: bool,
    /// Whether a blob has ways with locations.
    pub has_locations: bool,
    /// Whether a blob has ways that have nodes, but no locations.
    pub has_bare_ways: bool,
    /// Whether a header that can be read announces a table of contents.
    announces_table: bool,
    /// The error in the frame of a header whose payload could be read.
    header_fault: Option<String>,
    /// The size of the file that its headers declare; 0 if they declare none.
    declared_len: u64,
}

/// A check that the objects of consecutive blobs are in canonical order. Each object must occur only once or, in a
/// history file, with all its versions in the same blob.
#[derive(Debug)]
pub(super) struct Order {
    last: Option<TypeThenId>,
    /// The flag that a blob in this order has.
    flag: BlobFlags,
}

impl Order {
    pub(super) const fn new(is_history: bool) -> Self {
        let flag = if is_history {
            BlobFlags::SORTED
        } else {
            BlobFlags::UNIQUE_IDS
        };
        Self { last: None, flag }
    }

    /// Whether the objects of the next blob are in order, and follow the objects of the previous blobs.
    pub(super) fn accept_next(&mut self, entry: &BlobEntry) -> bool {
        let is_next =
            entry.count == 0 || (entry.flags.has(self.flag) && entry.first_sort_key() > self.last);
        self.last = entry.last_sort_key().max(self.last);
        is_next
    }
}

impl WorkItem for Piece {
    fn input_bytes(&self) -> u64 {
        match self {
            Self::Frame(frame) => frame.entry.frame_len.into(),
            Self::Gap { .. } => 0,
        }
    }
}

impl Survey {
    /// Creates the survey of a file without damage. The content of the file must be as `header` declares.
    pub(super) fn of_undamaged_file(header: &HeaderBlock) -> Self {
        Self {
            headers: vec![header.clone()],
            has_deleted: header.has(feature::HISTORY),
            has_locations: header.has(feature::LOCATIONS),
            ..Self::default()
        }
    }

    /// Finds the headers and the blobs of a file. They are not examined yet.
    pub(super) fn begin(input: &Input, ctx: &Context) -> Result<Self> {
        let mut survey = Self::default();
        let quiet = ctx.clone().with_observer(Arc::new(NoObserver));
        let indexed = PbfFile::of_input(input.clone(), &quiet).ok();
        let indexed = indexed.and_then(|file| Some((file.header, file.toc?.entries)));
        if let Some((header, entries)) = indexed {
            let frame = |entry: &BlobEntry| Piece::Frame(Frame::new(*entry, BlobKind::Data));
            survey.headers.push(header);
            survey.pieces = entries.iter().map(frame).collect();
            (survey.table, survey.is_by_table) = (Some(entries), true);
            return Ok(survey);
        }
        let _phase = ctx.phase("find blobs", input.len());
        let found = frames::find(input, 0..input.len(), 0, ctx)?;
        let is_header_frame = |piece: &&Piece| match piece {
            Piece::Frame(frame) => frame.kind == BlobKind::Header,
            Piece::Gap { .. } => false,
        };
        let is_one_file = found.iter().filter(is_header_frame).count() < 2;
        for piece in found {
            let left = survey.read_header(input, piece, ctx)?;
            survey.pieces.extend(left);
        }
        // A table that no readable header announces is not used. It describes an earlier file: another program has
        // copied the strings of the table together with the last objects. If no header can be read, the table is used.
        if is_one_file && (survey.headers.is_empty() || survey.announces_table) {
            survey.table = losses::read_toc_at_end(input, &survey.pieces)?;
        }
        Ok(survey)
    }

    /// Examines all blobs. `each` is called with every outcome, in file order, while the next blobs are examined.
    pub(super) fn examine(
        &mut self,
        input: &Input,
        mender: &BlobMender,
        mut each: impl FnMut(&Outcome) -> Result<()>,
        ctx: &Context,
    ) -> Result<()> {
        let (pass, mut outcomes) = (BlobPass::new("look at blobs", input, ctx), Vec::new());
        pass.with_memory_factor(4).run(
            std::mem::take(&mut self.pieces),
            || (),
            |reader, (), piece| match piece {
                Piece::Frame(frame) => outcomes_of(reader, input, frame, mender, ctx),
                Piece::Gap { bytes, cause } => {
                    let loss = Loss::new(None, bytes.start, bytes.end - bytes.start, cause);
                    Ok(vec![Outcome::Lost(loss, None)])
                }
            },
            |found| {
                found.iter().try_for_each(&mut each)?;
                outcomes.extend(found);
                Ok(())
            },
        )?;
        if self.is_by_table {
            outcomes = find_displaced_blobs(outcomes, input, mender, ctx)?;
        }
        let table = self.table.take();
        self.outcomes = losses::with_lost_ids(outcomes, table.as_deref());
        for entry in self.outcomes.iter().flat_map(Outcome::written) {
            self.has_deleted |= entry.flags.has(BlobFlags::DELETED);
            self.has_locations |= entry.flags.has(BlobFlags::LOCATIONS);
            self.has_bare_ways |= entry.flags.has(BlobFlags::BARE_WAYS);
        }
        Ok(())
    }

    /// Reads a header. Also reads a header from a frame whose type is damaged, or from a stream within a damaged frame.
    /// Returns `None` if the header was read, and a gap with the bytes of `piece` if the header cannot be read. Returns
    /// `piece` itself if it is not a header.
    fn read_header(&mut self, input: &Input, piece: Piece, ctx: &Context) -> Result<Option<Piece>> {
        let Piece::Frame(frame) = &piece else {
            return Ok(Some(piece));
        };
        let mut fault = frame.stream_in.clone();
        let mut kind = frame.kind;
        if kind == BlobKind::Unknown {
            fault = fault.or(Some("the type of the blob is damaged".to_owned()));
            let found = frame.read_payload(input, |payload| Ok(frames::kind_of(payload)))?;
            kind = found.ok().flatten().unwrap_or(kind);
        }
        if kind != BlobKind::Header {
            return Ok(Some(piece));
        }
        let parse = |frame: &Frame| {
            frame.read_payload(input, |payload| {
                let (header, about_toc) = HeaderBlock::parse(payload)?;
                Ok((header, about_toc.toc.map(<[u8]>::to_vec)))
            })
        };
        let (mut found, bytes) = (parse(frame)?, frame.entry.offset..frame.entry.end());
        if let Err(cause) = &found {
            let cause = cause.to_string();
            for piece in frames::find_streams(input, bytes.clone(), &cause, ctx)? {
                match piece {
                    Piece::Frame(stream) if found.is_err() => found = parse(&stream)?,
                    _ => {}
                }
            }
            fault = Some(cause);
        }
        let Ok((header, toc)) = found else {
            let cause = format!(
                "the header of the file is damaged: {}",
                fault.unwrap_or_default()
            );
            return Ok(Some(Piece::Gap { bytes, cause }));
        };
        self.headers.push(header);
        self.header_fault = self.header_fault.take().or(fault);
        self.announces_table |= toc.is_some();
        if let Some(TocPointer::At { file_len, .. }) = toc.as_deref().and_then(TocPointer::parse) {
            self.declared_len = self.declared_len.saturating_add(file_len);
        }
        Ok(None)
    }

    /// Adds a loss if the end of the file is missing and no other loss explains that. The end is missing if the headers
    /// declare a longer file. It is also missing if `is_cut` is set: only a part of a compressed file could be
    /// unpacked.
    pub(super) fn record_missing_end(&mut self, input: &Input, is_cut: bool) {
        let missing = self.declared_len.saturating_sub(input.len());
        let cause = match (missing, is_cut) {
            (0, true) => "the compressed file ends early or is damaged",
            (0, false) => return,
            _ => "the file is shorter than its header says",
        };
        let is_told = match missing {
            0 => self.outcomes.last().is_some_and(Outcome::is_lost),
            _ => self.outcomes.iter().any(Outcome::is_lost),
        };
        if !is_told {
            let loss = Loss::new(None, input.len(), missing, cause.to_owned());
            let end = Outcome::Lost(loss, None);
            let outcomes = std::mem::take(&mut self.outcomes);
            let outcomes = outcomes.into_iter().chain([end]).collect();
            self.outcomes = losses::with_lost_ids(outcomes, None);
        }
    }

    /// Whether the file has several versions of objects, or deleted ones.
    pub(super) fn is_history(&self) -> bool {
        self.has_deleted
            || self
                .headers
                .iter()
                .any(|header| header.has(feature::HISTORY))
    }

    /// Whether an object can be saved.
    pub(super) fn can_save_objects(&self) -> bool {
        let mut written = self.outcomes.iter().flat_map(Outcome::written);
        written.any(|entry| entry.count > 0)
    }

    /// Puts the findings into a report.
    pub(super) fn fill_report(&self, report: &mut Report) {
        report.headers = self.headers.len() as u64;
        report.header_fault.clone_from(&self.header_fault);
        report.had_replication = self.headers.iter().any(HeaderBlock::has_replication);
        let mut order = Order::new(self.is_history());
        let mut written = self.outcomes.iter().flat_map(Outcome::written);
        report.was_sorted = written.all(|entry| order.accept_next(entry));
        for outcome in &self.outcomes {
            match outcome {
                Outcome::Whole { short_ways, .. } => {
                    report.whole_blobs += 1;
                    report.short_ways += short_ways;
                }
                Outcome::Mended(mended) => {
                    report.short_ways += mended.short_ways;
                    report.changes.add(&mended.changes);
                    report.mended.push(MendedBlob {
                        blob: mended.entry.number,
                        offset: mended.entry.offset,
                        cause: mended.cause.clone(),
                        changes: mended.changes,
                    });
                }
                Outcome::Lost(loss, _) => report.lost.push(loss.clone()),
                Outcome::Empty => {}
            }
        }
    }
}
