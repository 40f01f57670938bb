//! A copy of the file that is made while its blobs are examined.

use super::Options;
use super::frames::{Frame, Piece};
use super::headers::header;
use super::outcome::Outcome;
use super::report::Report;
use super::survey::{Order, Survey};
use crate::engine::Format;
use crate::engine::sink::{BlobOutcome, Sink};
use crate::error::Result;
use crate::io::{Input, SizeHint};
use crate::pbf::HeaderBlock;
use crate::runtime::Context;

/// A copy of the file. It becomes the output if nothing has to be repaired: all blobs are whole and in order, and the
/// header is right. If the value is dropped, the copy is removed.
pub(super) struct WholeCopy {
    pub sink: Sink,
    /// The header of the output, before the options are applied to it.
    pub header: HeaderBlock,
    order: Order,
}

impl WholeCopy {
    /// Begins a copy. Returns `None` if damage was already found, or in a dry run. Also returns `None` if the output
    /// could not be discarded later, because it is a stream or a text file.
    pub(super) fn begin(survey: &Survey, options: &Options, ctx: &Context) -> Result<Option<Self>> {
        let output = &options.output;
        let can_be_dropped = output.format == Format::Pbf && !output.target.is_stream();
        let [declared] = survey.headers.as_slice() else {
            return Ok(None);
        };
        if options.dry_run || !can_be_dropped {
            return Ok(None);
        }
        let expected = Survey::of_undamaged_file(declared);
        let mut report = Report {
            headers: 1,
            ..Report::default()
        };
        let header = header(&expected, &mut report, None);
        let mut written = header.clone();
        output.header.apply(&mut written);
        let mut size = SizeHint::default();
        for piece in &survey.pieces {
            let Piece::Frame(Frame { entry, .. }) = piece else {
                return Ok(None);
            };
            size = size.and(SizeHint::copy_of(entry.offset, entry.frame_len.into()));
        }
        Ok(Some(Self {
            sink: Sink::create(output, written, size, ctx)?,
            header,
            order: Order::new(expected.is_history()),
        }))
    }

    /// Copies the next blob. Returns `None` if there is something to repair.
    pub(super) fn add(mut self, input: &Input, outcome: &Outcome) -> Result<Option<Self>> {
        match outcome {
            Outcome::Whole { entry, .. } if self.order.accept_next(entry) => {
                self.sink.add(input, BlobOutcome::Copy(*entry))?;
                Ok(Some(self))
            }
            Outcome::Empty => Ok(Some(self)),
            Outcome::Whole { .. } | Outcome::Mended(_) | Outcome::Lost(..) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::feature;

    #[test]
    fn a_whole_file_keeps_its_header() {
        let mut declared = HeaderBlock::default();
        declared.replication_sequence = Some(4704);
        declared.replication_timestamp = Some(1_795_000_000);
        declared.replication_url = Some("https://example.org/minute".into());
        for required in [feature::SCHEMA, feature::DENSE_NODES, feature::HISTORY] {
            declared.set_required(required, true);
        }
        declared.set_optional(feature::SORTED, true);
        declared.declare_locations(Some(feature::ALL_NODES));
        let mut report = Report {
            headers: 1,
            ..Report::default()
        };
        let header = header(&Survey::of_undamaged_file(&declared), &mut report, None);
        assert_eq!(header, declared);
    }
}
