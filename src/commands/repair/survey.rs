//! Examines every blob of a damaged file.

use super::blob_outcome::{find_displaced_blobs, outcomes_of};
use super::frames::{self, Frame, Piece};
use super::losses;
use super::mender::BlobMender;
use super::outcome::Outcome;
use super::report::{Loss, MendedBlob, Report};
use crate::error::{FormatResult, Result};
use crate::file::{BlobPass, PbfFile};
use crate::io::Input;
use crate::osm::TypeThenId;
use crate::pbf::{BlobEntry, BlobFlags, BlobKind, HeaderBlock, TocPointer, feature};
use crate::runtime::{Context, NoObserver, WorkItem};
use std::sync::Arc;

/// The headers of a file, and the outcome for each of its parts.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub headers: Vec<HeaderBlock>,
    /// The outcomes of the data blobs and of bytes that are no frames, in file order.
    pub outcomes: Vec<Outcome>,
    /// Whether a blob has deleted versions.
    pub has_deleted: bool,
    /// Whether a blob has ways with locations.
    pub has_locations: bool,
    /// Whether ways have nodes and no locations.
    pub has_bare_ways: bool,
    /// Whether a header that can be read announces a table of contents.
    announces_table: bool,
    /// The error of the frame around a header.
    header_fault: Option<String>,
    /// The size of the file that its headers declare; 0 if they do not.
    declared_len: u64,
}

/// The blobs of a file and the damaged bytes between them, before they are examined.
pub(super) struct UnexaminedFile {
    pub pieces: Vec<Piece>,
    table: Option<Vec<BlobEntry>>,
    /// Whether the pieces come from the table of contents.
    is_by_table: bool,
}

/// The canonical order of blobs, in which each object comes once, or with all its versions in a history file.
#[derive(Debug)]
pub(super) struct Order {
    last: Option<TypeThenId>,
    /// The flag of blobs in this order.
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

    /// Whether the objects of the next blob are in order, and after the objects of the previous blobs.
    pub(super) fn goes_on_with(&mut self, entry: &BlobEntry) -> bool {
        let is_next =
            entry.count == 0 || (entry.flags.has(self.flag) && entry.first_key() > self.last);
        self.last = entry.last_key().max(self.last);
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
    /// The survey of a file in which everything is as its header declares.
    pub(super) fn of_whole(header: &HeaderBlock) -> Self {
        Self {
            headers: vec![header.clone()],
            has_deleted: header.has(feature::HISTORY),
            has_locations: header.has(feature::LOCATIONS),
            ..Self::default()
        }
    }

    /// Finds the headers and the blobs of a file. They are not examined yet.
    pub(super) fn begin(input: &Input, ctx: &Context) -> Result<(Self, UnexaminedFile)> {
        let quiet = ctx.clone().with_observer(Arc::new(NoObserver));
        let indexed = PbfFile::of_input(input.clone(), &quiet);
        let indexed = indexed
            .ok()
            .and_then(|file| Some((file.header, file.toc?.entries)));
        let mut survey = Self::default();
        if let Some((header, entries)) = indexed {
            survey.headers.push(header);
            let frame = |entry: &BlobEntry| Piece::Frame(Frame::new(*entry, BlobKind::Data));
            let found = UnexaminedFile {
                pieces: entries.iter().map(frame).collect(),
                table: Some(entries),
                is_by_table: true,
            };
            return Ok((survey, found));
        }
        let _phase = ctx.phase("find blobs", input.len());
        let found = frames::find(input, 0..input.len(), 0, ctx)?;
        let is_header_frame = |piece: &&Piece| match piece {
            Piece::Frame(frame) => frame.kind == BlobKind::Header,
            Piece::Gap { .. } => false,
        };
        let is_one_file = found.iter().filter(is_header_frame).count() < 2;
        let mut pieces = Vec::with_capacity(found.len());
        for piece in found {
            match piece {
                Piece::Frame(frame) if is_header(input, &frame)? => {
                    pieces.extend(survey.read_header(input, &frame, ctx)?);
                }
                piece => pieces.push(piece),
            }
        }
        // If no header announces the table, another program has copied the strings of the table together with the last
        // objects.
        let may_have_table = survey.headers.is_empty() || survey.announces_table;
        let table = if is_one_file && may_have_table {
            losses::table_at_end(input, &pieces)?
        } else {
            None
        };
        let found = UnexaminedFile {
            pieces,
            table,
            is_by_table: false,
        };
        Ok((survey, found))
    }

    /// Examines all blobs. `each` is called with every outcome, in file order, while the next blobs are examined.
    pub(super) fn examine(
        mut self,
        input: &Input,
        found: UnexaminedFile,
        mender: &BlobMender,
        mut each: impl FnMut(&Outcome) -> Result<()>,
        ctx: &Context,
    ) -> Result<Self> {
        let (pass, mut outcomes) = (BlobPass::new("look at blobs", input, ctx), Vec::new());
        pass.holding(4).run(
            found.pieces,
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
        if found.is_by_table {
            outcomes = find_displaced_blobs(outcomes, input, mender, ctx)?;
        }
        let outcomes = losses::with_lost_ids(outcomes, found.table.as_deref());
        for entry in outcomes.iter().flat_map(Outcome::written) {
            self.has_deleted |= entry.flags.has(BlobFlags::DELETED);
            self.has_locations |= entry.flags.has(BlobFlags::LOCATIONS);
            self.has_bare_ways |= entry.flags.has(BlobFlags::BARE_WAYS);
        }
        self.outcomes = outcomes;
        Ok(self)
    }

    /// Reads a header. Returns its bytes if it cannot be read.
    fn read_header(
        &mut self,
        input: &Input,
        frame: &Frame,
        ctx: &Context,
    ) -> Result<Option<Piece>> {
        let cause = match parsed_header(input, frame)? {
            Ok(found) => {
                let fault = frame.kind == BlobKind::Unknown;
                let fault = fault.then(|| "the type of the blob is damaged".to_owned());
                self.add_header(found, frame.stream_in.clone().or(fault));
                return Ok(None);
            }
            Err(cause) => cause.to_string(),
        };
        let bytes = frame.entry.offset..frame.entry.end();
        for piece in frames::rescue(input, bytes.clone(), &cause, ctx)? {
            if let Piece::Frame(stream) = piece
                && let Ok(found) = parsed_header(input, &stream)?
            {
                self.add_header(found, Some(cause));
                return Ok(None);
            }
        }
        let cause = format!("the header of the file is damaged: {cause}");
        Ok(Some(Piece::Gap { bytes, cause }))
    }

    /// Adds a header, and the error of the frame around it, if there is an error.
    fn add_header(&mut self, found: FoundHeader, fault: Option<String>) {
        self.headers.push(found.header);
        self.header_fault = self.header_fault.take().or(fault);
        self.announces_table |= found.announces_table;
        if let Some(TocPointer::At { file_len, .. }) = found.pointer {
            self.declared_len = self.declared_len.saturating_add(file_len);
        }
    }

    /// Adds the loss of the end of the file, if the end is missing and no other loss explains it. The end is missing if
    /// the headers announce a longer file, or if the file was unpacked in part (`is_cut`).
    pub(super) fn add_missing_end(&mut self, input: &Input, is_cut: bool) {
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

    /// Whether all objects that can be saved are in canonical order, each once or with all versions.
    pub(super) fn is_sorted(&self) -> bool {
        let mut order = Order::new(self.is_history());
        let mut entries = self.outcomes.iter().flat_map(Outcome::written);
        entries.all(|entry| order.goes_on_with(entry))
    }

    /// Puts the findings into a report.
    pub(super) fn report(&self, report: &mut Report) {
        report.headers = self.headers.len() as u64;
        report.header_fault.clone_from(&self.header_fault);
        report.had_replication = self.headers.iter().any(HeaderBlock::has_replication);
        report.was_sorted = self.is_sorted();
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

/// Whether a frame has a header. In a frame of another type, there is one only if the type is damaged.
fn is_header(input: &Input, frame: &Frame) -> Result<bool> {
    if frame.kind != BlobKind::Unknown {
        return Ok(frame.kind == BlobKind::Header);
    }
    let kind = frame.read_payload(input, |payload| Ok(frames::kind_of(payload)))?;
    Ok(kind.is_ok_and(|kind| kind == Some(BlobKind::Header)))
}

/// A header, and its facts about the table of contents.
struct FoundHeader {
    header: HeaderBlock,
    /// Whether the header has a table of contents or a pointer to one, damaged or not.
    announces_table: bool,
    pointer: Option<TocPointer>,
}

/// Reads the header in a frame. The inner result is an error if it cannot be read.
fn parsed_header(input: &Input, frame: &Frame) -> Result<FormatResult<FoundHeader>> {
    frame.read_payload(input, |payload| {
        let (header, about_toc) = HeaderBlock::parse(payload)?;
        Ok(FoundHeader {
            header,
            announces_table: about_toc.toc.is_some(),
            pointer: about_toc.toc.and_then(TocPointer::parse),
        })
    })
}
