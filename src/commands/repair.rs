//! `repair`: writes a valid file with everything that can be saved of a damaged file.
//!
//! `text` repairs files that are not PBF. `frames` finds the frames of the file; `frame_parts` recognises damaged
//! frames. `survey` examines every blob: `blob_outcome` determines the `outcome` for one blob, and `mender` encodes the
//! readable objects of damaged blobs. `losses` finds the ids of lost objects. `write` writes the saved objects under
//! the header that `headers` makes; `whole_copy` copies blobs during the survey, in case nothing has to be repaired.
//! `report` has the result.

mod blob_outcome;
mod frame_parts;
mod frames;
mod headers;
mod losses;
mod mender;
mod outcome;
mod report;
mod survey;
mod text;
mod whole_copy;
mod write;

use crate::engine::{OutputOptions, input};
use crate::error::{Error, ErrorKind, Result};
use crate::file::PbfFile;
use crate::io::{FileCompression, Input, OutputTarget, decompressed_reader};
pub use crate::pbf::{InvalidUtf8, Salvage};
use crate::runtime::Context;
use mender::BlobMender;
use outcome::Outcome;
pub use report::{Loss, LostIds, MendedBlob, Report, Taken};
use std::io::Read;
use std::path::{Path, PathBuf};
use survey::Survey;
use whole_copy::WholeCopy;

options! {
    /// The options of `repair`.
    pub struct Options {
        /// The damaged file, in any format; `-` is standard input. It is not changed.
        pub input: PathBuf,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    new(input: impl Into<PathBuf>, output: OutputOptions);
    setters {
        /// The treatment of strings that are not UTF-8, and of strings with characters that XML 1.0 does not allow.
        invalid_utf8: InvalidUtf8,
        /// Another file in any format. Objects that the damaged file may have lost, judged by their ids, are taken from
        /// it.
        from: Option<PathBuf>,
        /// Whether only the report is made, and nothing is written. In this case, `output` has no effect.
        dry_run: bool,
    }
}

/// Writes a valid, sorted file of all objects that can be saved of a damaged file.
///
/// Blobs that are whole are copied. If the content of a blob is damaged, its readable objects are written anew. After
/// damage, the next frame is searched for at every byte. Several header blobs (concatenated files) become one. Objects
/// that are not in order are sorted. Unless the file is a history file, sorting keeps only the newest version of an
/// object. A file that is compressed with gzip, bzip2 or zstd as a whole is unpacked first, up to the first damage.
/// From a file in another format (OSM XML, OsmChange, OPL, o5m, o5c), the objects before the first damage are saved.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and up to 1,000 bytes for each blob. If the objects have to be sorted or
/// some are taken from another file, the memory of [`sort`](crate::commands::sort::run), with temporary files in the
/// directory of the output. Encoded blobs that take more than 8 MB are held in such a file, too. A compressed file is
/// unpacked into the system's directory for temporary files.
///
/// # Errors
///
/// - The input cannot be opened or read, or no object can be saved; the output exists and may not be overwritten, or it
///   cannot be written ([details](crate::commands#errors)).
/// - [`Options::from`] cannot be opened or read, or is damaged.
pub fn run(options: &Options, ctx: &Context) -> Result<Report> {
    if !options.dry_run {
        let from = options.from.iter().map(PathBuf::as_path);
        let inputs: Vec<&Path> = from.chain([options.input.as_path()]).collect();
        OutputTarget::check_distinct([&options.output.target], &inputs)?;
        options.output.target.check()?;
    }
    ctx.expect_phases(2);
    let mut report = Report::default();
    let input = Input::open_in(&options.input, ctx)?;
    // A file whose format is not recognised may be a PBF file with a damaged start.
    if let Ok(Some(format)) = input::detect_format(&input, ctx) {
        return text::repair(&input, format, options, ctx);
    }
    let input = unpack_file(input, &mut report)?;
    report.bytes = input.len();
    let mut survey = Survey::begin(&input, ctx)?;
    let mender = BlobMender::new(options);
    let mut copy = WholeCopy::begin(&survey, options, ctx)?;
    let add_to_copy = |outcome: &Outcome| {
        copy = copy
            .take()
            .map_or(Ok(None), |copy| copy.add(&input, outcome))?;
        Ok(())
    };
    survey.examine(&input, &mender, add_to_copy, ctx)?;
    survey.record_missing_end(&input, report.unpacked_in_part);
    survey.fill_report(&mut report);
    // It is no error if an undamaged file has no objects.
    let is_whole = report.is_complete() && report.lost.is_empty();
    if !survey.can_save_objects() && !is_whole {
        return Err(nothing_saved_error(&input));
    }
    write::write(&input, &survey, &mender, copy, options, &mut report, ctx)?;
    Ok(report)
}

/// The cause of the error for a file without any readable object.
const NOTHING_SAVED: &str = "there is no object in it that can be saved";

/// Returns the error for a file without any readable object. The file may be damaged or of another format.
fn nothing_saved_error(input: &Input) -> Error {
    match PbfFile::of_input(input.clone(), &Context::default()) {
        Err(error) if error.kind() == ErrorKind::NotOsm => error,
        _ => Error::file_of(input.path(), ErrorKind::Damaged, NOTHING_SAVED),
    }
}

/// Unpacks a file that is compressed as a whole, up to the first damage.
fn unpack_file(input: Input, report: &mut Report) -> Result<Input> {
    let Some(compression) = FileCompression::detect(input.first_bytes()?) else {
        return Ok(input);
    };
    let mut content = UntilError {
        reader: decompressed_reader(&input)?,
        failure: None,
    };
    let unpacked = Input::spool(input.path(), &mut content)?;
    report.unpacked = Some(compression.name());
    report.unpacked_in_part = content.failure.is_some();
    match content.failure {
        Some(cause) if unpacked.is_empty() => {
            let cause = format!("cannot be decompressed: {cause}");
            Err(Error::file(unpacked.path(), cause))
        }
        _ => Ok(unpacked),
    }
}

/// A reader whose data ends at the first damage, without an error. Errors in reading the input are still returned.
struct UntilError<R> {
    reader: R,
    /// The message about the damage; `None` if no damage was found yet.
    failure: Option<String>,
}

impl<R: Read> Read for UntilError<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.failure.is_some() {
            return Ok(0);
        }
        self.reader.read(buffer).or_else(|error| {
            // A decompressor passes on the errors of the input that it reads.
            if error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
                return Err(error);
            }
            self.failure = Some(error.to_string());
            Ok(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    struct Failing(Option<io::Error>);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.take() {
                Some(error) => Err(error),
                None => Ok(buffer.len()),
            }
        }
    }

    fn read(error: io::Error) -> io::Result<usize> {
        let mut reader = UntilError {
            reader: Failing(Some(error)),
            failure: None,
        };
        reader.read(&mut [0; 10])
    }

    #[test]
    fn damage_ends_the_data_but_errors_of_the_input_are_returned() {
        assert_eq!(
            read(io::Error::from(io::ErrorKind::InvalidData)).unwrap(),
            0
        );
        let of_input = io::Error::other(Error::Usage("cannot read".into()));
        assert!(read(of_input).is_err());
    }
}
