//! Arguments for outputs: path, format, encoding and header fields.

use crate::InputFormat;
use crate::commands::cat::Format;
use crate::commands::{HeaderOption, HeaderOptions};
use crate::engine::OutputOptions;
use crate::file::WriteOptions;
use crate::formats::{TextCompression, TextFormat};
use crate::io::OutputTarget;
use crate::pbf::Compression;
use anyhow::{Result, bail};
use clap::Args;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The output of a command that writes one file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct OutputArgs {
    /// Output file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub write: WriteArgs,
}

impl OutputArgs {
    /// The options of an output in PBF. Fails like [`WriteArgs::target`].
    pub fn options(&self) -> Result<OutputOptions> {
        Ok(self.write.output(self.target()?))
    }
    /// The target of an output in PBF. Fails like [`WriteArgs::target`].
    pub fn target(&self) -> Result<OutputTarget> {
        self.write.target(&self.output)
    }

    /// The target of an output in a text format.
    pub fn text_target(&self) -> OutputTarget {
        text_target(&self.output, self.write.overwrite)
    }
}

/// The options for the form of an output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct WriteArgs {
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    pub overwrite: bool,
    /// Format of the output if its name does not show it
    ///
    /// pbf; cat also writes osm and opl, and these compressed, as osm.gz, opl.bz2 or osm.zst.
    #[arg(short = 'f', long, value_name = "FORMAT", value_parser = parse_output_format)]
    pub output_format: Option<Format>,
    /// Compression of new blobs: none, zlib[:1-12], zstd[:1-22] or lz4 [default: zlib:6]
    ///
    /// Every program reads zlib; hardly any but osmium reads lz4 and zstd, and some do not read none. Level 6 gives about
    /// the size that zlib gives at level 6. Copied blobs keep their compression; repack changes all of them.
    #[arg(long, value_name = "KIND[:LEVEL]")]
    compression: Option<Compression>,
    /// Name of the writing program in the header
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub generator: Option<String>,
    /// Set a header field, such as osmosis_replication_sequence_number=4711; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = HeaderOption::parse, hide_short_help = true)]
    pub output_header: Vec<HeaderOption>,
    /// Also write an index into the header of every blob, for programs that use it; osmconvert does not read such files
    #[arg(long, hide_short_help = true)]
    pub blob_index: bool,
    /// Also decompress copied blobs and compare them with their content hashes, so that damage in the input is an error
    ///
    /// Takes as long as decompressing the file on every core: about 0.8 s for 500 MB on two cores. Without it, blobs
    /// that the command does not need to decode are copied unread.
    #[arg(long, hide_short_help = true)]
    pub verify: bool,
    /// Write no table of contents
    #[arg(long, hide_short_help = true)]
    pub no_index: bool,
}

impl WriteArgs {
    /// The options of an output in PBF with the given target.
    pub fn output(&self, target: OutputTarget) -> OutputOptions {
        OutputOptions::new(target)
            .write(self.options())
            .header(self.header())
    }

    /// Makes the target of an output in PBF from a path on the command line; `-` is standard output. Fails if
    /// --output-format is a text format, or is not given and the file name does not end as that of a PBF file. Fails if
    /// standard output is a terminal.
    pub fn target(&self, path: &Path) -> Result<OutputTarget> {
        if let Some(Format::Text(..)) = self.output_format {
            bail!("this command writes PBF; `pbfhogg cat` makes text of it");
        }
        if is_stdout(path) {
            if std::io::stdout().is_terminal() {
                bail!(
                    "standard output is a terminal, and the output is PBF: give a file with -o, or a pipe"
                );
            }
            return Ok(OutputTarget::Stdout);
        }
        if self.output_format.is_none() && !is_device(path) {
            match format_of_name(path) {
                Some(Format::Pbf) => {}
                Some(Format::Text(..)) => bail!(
                    "{}: this command writes PBF; name it .osm.pbf, or use -f pbf, and convert it to text \
                     with `pbfhogg cat`",
                    path.display()
                ),
                None => bail!(
                    "{}: the name does not show the format; name it .osm.pbf, or use -f pbf",
                    path.display()
                ),
            }
        }
        Ok(OutputTarget::File {
            path: path.to_owned(),
            overwrite: self.overwrite,
        })
    }

    /// The format of the output: that of --output-format, or else the one that the file name ends with. Without
    /// --output-format, standard output and devices get PBF, and an unknown ending is an error.
    pub fn format(&self, path: &Path) -> Result<Format> {
        let of_name = || match is_stdout(path) || is_device(path) {
            true => Some(Format::Pbf),
            false => format_of_name(path),
        };
        match self.output_format.or_else(of_name) {
            Some(format) => Ok(format),
            None => bail!(
                "{}: the name does not show the format; known are .osm.pbf, .osm and .opl, the latter \
                 two also with .gz, .bz2 or .zst; -f sets it for any name",
                path.display()
            ),
        }
    }

    /// The options for encoding PBF.
    pub fn options(&self) -> WriteOptions {
        WriteOptions {
            compression: self.compression.unwrap_or_default(),
            is_compression_explicit: self.compression.is_some(),
            verify: self.verify,
            toc: !self.no_index,
            blob_index: self.blob_index,
        }
    }

    /// The header fields that the arguments set.
    pub fn header(&self) -> HeaderOptions {
        HeaderOptions {
            generator: self.generator.clone(),
            set: self.output_header.clone(),
        }
    }
}

/// Parses the name of an input format. The suffix of a compression, as in `osm.gz`, is accepted and has no effect.
pub(super) fn parse_input_format(text: &str) -> Result<InputFormat, String> {
    match text {
        "pbf" | "osm.pbf" | "osh.pbf" => Ok(InputFormat::Pbf),
        _ => match parse_output_format(text) {
            Ok(Format::Text(TextFormat::Opl, _)) => Ok(InputFormat::Opl),
            Ok(Format::Text(..)) => Ok(InputFormat::Osm),
            _ => Err("expected pbf, osm or opl".into()),
        },
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-" || path == Path::new("/dev/stdout")
}

/// Whether a path leads to a device or a named pipe, whose name does not show a format.
fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The format that a file name ends with, in upper or lower case; `None` for an unknown ending.
fn format_of_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let (_, ending) = name.split_once('.')?;
    // The name can have dots before the ending: tries the longest possible ending first.
    let mut endings = std::iter::successors(Some(ending), |rest| {
        rest.split_once('.').map(|(_, ending)| ending)
    });
    endings.find_map(|ending| parse_output_format(ending).ok())
}

fn parse_output_format(text: &str) -> Result<Format, String> {
    let compressions = [
        (".gz", TextCompression::Gzip),
        (".bz2", TextCompression::Bzip2),
        (".zst", TextCompression::Zstd),
    ];
    let mut compressed = compressions
        .into_iter()
        .filter_map(|(ending, compression)| {
            let format = text.strip_suffix(ending)?;
            Some((format, compression))
        });
    match compressed.next().unwrap_or((text, TextCompression::None)) {
        ("pbf" | "osm.pbf" | "osh.pbf", TextCompression::None) => Ok(Format::Pbf),
        ("osm" | "osh" | "xml" | "osm.xml", compression) => {
            Ok(Format::Text(TextFormat::Osm, compression))
        }
        ("opl" | "osm.opl" | "osh.opl", compression) => {
            Ok(Format::Text(TextFormat::Opl, compression))
        }
        _ => Err("expected pbf, osm or opl; the latter two also with .gz, .bz2 or .zst".into()),
    }
}

/// Makes the target of an output in a text format from a path on the command line; `-` is standard output.
pub fn text_target(path: &Path, overwrite: bool) -> OutputTarget {
    match path.as_os_str() == "-" {
        true => OutputTarget::Stdout,
        false => OutputTarget::File {
            path: path.to_owned(),
            overwrite,
        },
    }
}

/// Whether a file name ends as that of a change file: `.osc`, or `.osc` with the suffix of a compression.
pub fn names_changes(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".osc", ".osc.gz", ".osc.bz2", ".osc.zst"]
        .iter()
        .any(|ending| name.ends_with(ending))
}
