//! `split`: divides a file into parts of consecutive blobs.

use crate::engine::block_packer::Encoders;
use crate::engine::headers::{header_of_part, merged_header};
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::{Format, HeaderOptions, input, repeats};
use crate::error::Result;
use crate::file::{BlobPlan, Parts, PbfFile, PlanNeeds, WriteOptions, Written, divide_blobs};
use crate::io::{Input, OpenOutput, OutputDirectory, SizeHint};
use crate::pbf::{BlobEntry, HeaderBlock};
use crate::runtime::{Context, Pass, WorkItem};
use serde::Serialize;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The suffix of the names of parts.
const SUFFIX: &str = ".osm.pbf";

options! {
    /// The options of `split`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
        /// The directory for the parts. It is created if it does not exist.
        pub directory: PathBuf,
        /// The number or the size of the parts.
        pub parts: Parts,
    }
    new(input: impl Into<PathBuf>, directory: impl Into<PathBuf>, parts: Parts);
    setters {
        /// Whether the parts of an earlier run are replaced.
        overwrite: bool,
        /// The options for the blobs of the parts.
        write: WriteOptions,
        /// The options for the headers of the parts.
        header: HeaderOptions,
    }
}

/// The result of `split`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The parts, in the order of the file.
    pub parts: Vec<Part>,
    /// The total number of objects in the parts.
    pub objects: u64,
    /// The total size of the parts in bytes.
    pub bytes: u64,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// The name of the file, within the output directory.
    pub name: String,
    /// The number of the part's first blob in the input, counted from 1.
    pub first_blob: u64,
    /// The number of consecutive blobs of the input that are in the part.
    pub blobs: u64,
    /// The size, blobs and objects of the part.
    pub written: Written,
}

/// Divides a file into parts, which together have all objects of the file, in the same order.
///
/// Each part is a complete PBF file with a table of contents. Blobs are copied. Objects are re-encoded only at the end
/// of each part, because the last blobs also contain the table of contents. The parts get their names together, when
/// all of them are complete.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), in which the memory for an output counts once per job.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged; an output cannot be written, or the file system has too little
///   space ([details](crate::commands#errors)).
/// - The directory is not empty, unless [`Options::overwrite`] is set.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let file = input::open(&options.input, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    repeats::warn_of_repeated_objects(&file, &plan, ctx)?;
    let ranges = divide_blobs(&plan.entries, options.parts);
    let header = merged_header(std::slice::from_ref(&file))?;
    let mut header = header_of_part(header, ranges.len() < 2);
    options.header.apply(&mut header);
    let mut directory =
        OutputDirectory::create(&options.directory, options.overwrite, is_part, ctx)?;
    let width = (ranges.len().max(1) - 1).to_string().len().max(4);
    ctx.expect_phases(1);
    let bytes = plan.entries.iter();
    let bytes = bytes.map(|entry| u64::from(entry.frame_len)).sum();
    let (mut first_blob, mut number) = (1, 0);
    let parts = ranges.into_iter().map(|entries| {
        let name = format!("part-{number:0width$}{SUFFIX}");
        let part = OpenPart {
            output: directory.open(Path::new(&name))?,
            name,
            first_blob,
            entries: entries.to_vec(),
        };
        number += 1;
        first_blob += entries.len() as u64;
        Ok(part)
    });
    let writer = PartWriter::new(&file, header, options.write);
    let mut summary = Summary::default();
    Pass::new("split", ctx).with_item_limit().run_stream(
        bytes,
        parts,
        || (),
        |(), part| writer.write(part, ctx),
        |part| {
            summary.objects += part.written.objects.unwrap_or(0);
            summary.bytes += part.written.bytes;
            summary.parts.push(part);
            Ok(())
        },
    )?;
    directory.complete(ctx)?;
    Ok(summary)
}

/// A part that is still to be written.
struct OpenPart {
    name: String,
    first_blob: u64,
    entries: Vec<BlobEntry>,
    output: OpenOutput,
}

impl WorkItem for OpenPart {
    fn input_bytes(&self) -> u64 {
        let entries = self.entries.iter();
        entries.map(|entry| u64::from(entry.frame_len)).sum()
    }
}

/// Writes parts of a file.
struct PartWriter {
    input: Input,
    header: HeaderBlock,
    write: WriteOptions,
}

impl PartWriter {
    fn new(file: &PbfFile, header: HeaderBlock, write: WriteOptions) -> Self {
        Self {
            input: file.input.clone(),
            write: write.for_header(&header),
            header,
        }
    }

    /// Writes a part.
    fn write(&self, part: OpenPart, ctx: &Context) -> Result<Part> {
        let hint = part
            .entries
            .iter()
            .fold(SizeHint::default(), |hint, entry| {
                hint.and(SizeHint::copy_of(entry.offset, entry.frame_len.into()))
            });
        let encoders = Encoders::new(self.write, ctx);
        let (format, header) = (Format::Pbf, self.header.clone());
        let mut sink = Sink::begin_in_output(
            part.output,
            format,
            self.write,
            header,
            hint,
            &encoders,
            ctx,
        )?;
        let blobs = part.entries.len() as u64;
        for entry in part.entries {
            sink.add(&self.input, BlobOutcome::Copy(entry))?;
        }
        Ok(Part {
            name: part.name,
            first_blob: part.first_blob,
            blobs,
            written: sink.finish()?.written,
        })
    }
}

/// Whether an open file is a part that this program has written. `path` is relative to the directory of the parts.
fn is_part(path: &Path, file: &File) -> bool {
    let name = path.to_str().and_then(|path| path.strip_prefix("part-"));
    let number = name.and_then(|name| name.strip_suffix(SUFFIX));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.is_some_and(is_number)
        && file
            .try_clone()
            .is_ok_and(|file| is_written_by_this_program(file, path))
}

/// Whether a PBF file has a table of contents, or the name of this program in its header.
fn is_written_by_this_program(file: File, path: &Path) -> bool {
    let input = Input::from_temporary(file, path);
    let file = input.and_then(|input| PbfFile::of_input(input, &Context::default()));
    file.is_ok_and(|file| {
        let program = file.header.writing_program.as_deref();
        file.toc.is_some() || program.is_some_and(|name| name.starts_with("pbfhogg"))
    })
}
