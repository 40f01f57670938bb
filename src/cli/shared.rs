//! Argument groups that several commands have in common.

use super::progress::Terminal;
use crate::commands::cat::Format;
use crate::commands::{HeaderOption, HeaderOptions, IdSource};
use crate::file::WriteOptions;
use crate::formats::{TextCompression, TextFormat};
use crate::index::IdSets;
use crate::io::OutputTarget;
use crate::osm::{KindSet, ObjectKind, TagExpression, TagFilter, parse_object_ids};
use crate::pbf::{Compression, InfoFields};
use crate::{Context, InputFormat, IoMode};
use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the program runs and what it says meanwhile.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct RunArgs {
    /// Worker threads; 0 means every core
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = parse_jobs)]
    pub jobs: usize,
    /// Format of the inputs, where their content does not say it: pbf, osm or opl
    ///
    /// OSM XML and OPL, compressed or not, are converted to a temporary PBF first.
    #[arg(short = 'F', long, value_name = "FORMAT", value_parser = parse_input_format, hide_short_help = true)]
    pub input_format: Option<InputFormat>,
    /// Read and write past the page cache (O_DIRECT), so that what the machine holds in memory stays
    #[arg(long, conflicts_with = "io_uring", hide_short_help = true)]
    pub direct_io: bool,
    /// Write by io_uring
    #[arg(long, hide_short_help = true)]
    pub io_uring: bool,
    /// Do not trust an index in the input (accepted everywhere; only `cat` needs it)
    #[arg(long, hide_short_help = true)]
    pub force: bool,
    /// Show a progress bar even if standard error is not a terminal
    #[arg(long, overrides_with = "no_progress", hide_short_help = true)]
    pub progress: bool,
    /// Do not show a progress bar
    #[arg(long, hide_short_help = true)]
    pub no_progress: bool,
    /// Tell what each phase took
    #[arg(short, long)]
    pub verbose: bool,
    /// Say nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Write phases with their times, and counters of bytes and blobs, to FILE as JSON; - is standard output
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub stats: Option<PathBuf>,
}

impl RunArgs {
    /// The context that the command runs in.
    pub fn context(&self) -> Context {
        let mut ctx = Context::new(self.jobs);
        ctx.io = match (self.direct_io, self.io_uring) {
            (true, _) => IoMode::Direct,
            (false, true) => IoMode::IoUring,
            (false, false) => IoMode::Auto,
        };
        ctx.input_format = self.input_format.unwrap_or_default();
        ctx.observer = Arc::new(Terminal::new(
            self.progress,
            self.no_progress,
            self.quiet,
            self.verbose,
        ));
        ctx
    }

    /// Ends a run: prints its summary where standard output is stdout_is_free, and writes the statistics.
    pub fn finish<S: Serialize>(
        &self,
        ctx: &Context,
        summary: &S,
        stdout_is_free: bool,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        ctx.observer.finished();
        let report = ctx.stats.report();
        let stats_to_stdout = self.stats.as_deref() == Some(Path::new("-"));
        if let Some(path) = &self.stats {
            let json = serde_json::to_string_pretty(&report)? + "\n";
            match stats_to_stdout && stdout_is_free {
                true => super::print(&json)?,
                false if stats_to_stdout => bail!(
                    "--stats -: standard output has the result of the command; give a file, such as /dev/stderr"
                ),
                false => std::fs::write(path, json)
                    .map_err(|error| crate::Error::io(path, "cannot write", error))?,
            }
        }
        let stdout_is_free = stdout_is_free && !stats_to_stdout;
        if self.verbose {
            super::complain(&super::show::stats(&report));
        }
        if self.json && stdout_is_free {
            super::print(&(serde_json::to_string_pretty(summary)? + "\n"))
        } else if !self.quiet && stdout_is_free {
            super::print(&(text() + &super::show::passed_over(&report)))
        } else {
            Ok(())
        }
    }
}

/// Where the output goes and how it is written.
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
    /// Where the output goes.
    pub fn target(&self) -> Result<OutputTarget> {
        self.write.target(&self.output)
    }

    /// Where the output goes where it is text.
    pub fn text_target(&self) -> OutputTarget {
        text_target(&self.output, self.write.overwrite)
    }
}

/// How an output is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct WriteArgs {
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    pub overwrite: bool,
    /// Format of the output, where its name does not say it
    ///
    /// pbf; cat also writes osm and opl, and these compressed, as osm.gz, opl.bz2 or osm.zst.
    #[arg(short = 'f', long, value_name = "FORMAT", value_parser = parse_output_format)]
    pub output_format: Option<Format>,
    /// Compression of new blobs: none, zlib[:1-12], zstd[:1-22] or lz4 [default: zlib:6]
    ///
    /// Every program reads zlib; hardly any but osmium reads lz4 and zstd, and some refuse none. The level of zlib
    /// promises a size: 6 gives what zlib gives at 6. Blobs that are copied keep the compression that they have; repack
    /// changes all of them.
    #[arg(long, value_name = "KIND[:LEVEL]")]
    compression: Option<Compression>,
    /// Name of the writing program in the header
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub generator: Option<String>,
    /// Set a header field, such as osmosis_replication_sequence_number=4711; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = HeaderOption::parse, hide_short_help = true)]
    pub output_header: Vec<HeaderOption>,
    /// Also write an index into every blob's header, for programs that know it; osmconvert refuses such files
    #[arg(long, hide_short_help = true)]
    pub blob_index: bool,
    /// Decompress the blobs that are copied, too, and compare them with their content hashes, so that damage in the
    /// input is an error and not passed on
    ///
    /// Costs what decompressing the file costs on every core: about 0.8 s for 500 MB on two cores. Without it blobs that
    /// nothing has to look into are copied as they are.
    #[arg(long, hide_short_help = true)]
    pub verify: bool,
    /// Write no table of contents
    #[arg(long, hide_short_help = true)]
    pub no_index: bool,
}

impl WriteArgs {
    /// A path from the command line as an output.
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
                    "{}: this command writes PBF; name it .osm.pbf, or say -f pbf, and make text of it \
                     with `pbfhogg cat`",
                    path.display()
                ),
                None => bail!(
                    "{}: the name does not say in which format; name it .osm.pbf, or say -f pbf",
                    path.display()
                ),
            }
        }
        Ok(OutputTarget::File {
            path: path.to_owned(),
            overwrite: self.overwrite,
        })
    }

    /// The format that the output is in: as given, or as the name says. Standard output and devices get PBF.
    pub fn format(&self, path: &Path) -> Result<Format> {
        let of_name = || match is_stdout(path) || is_device(path) {
            true => Some(Format::Pbf),
            false => format_of_name(path),
        };
        match self.output_format.or_else(of_name) {
            Some(format) => Ok(format),
            None => bail!(
                "{}: the name does not say in which format; known are .osm.pbf, .osm and .opl, the latter \
                 two also with .gz, .bz2 or .zst; -f says it for any name",
                path.display()
            ),
        }
    }

    /// How the output is written.
    pub fn options(&self) -> WriteOptions {
        WriteOptions {
            compression: self.compression.unwrap_or_default(),
            is_compression_asked: self.compression.is_some(),
            verify: self.verify,
            toc: !self.no_index,
            blob_index: self.blob_index,
        }
    }

    /// What the header says.
    pub fn header(&self) -> HeaderOptions {
        HeaderOptions {
            generator: self.generator.clone(),
            set: self.output_header.clone(),
        }
    }
}

/// Which kinds of objects a command is about.
#[derive(Debug, Args)]
pub struct KindArgs {
    /// Kinds of objects: node, way, relation; several with commas or by repetition
    #[arg(short = 't', long = "type", visible_alias = "object-type", value_name = "KIND",
          value_delimiter = ',', value_parser = parse_kind)]
    pub kinds: Vec<ObjectKind>,
}

impl KindArgs {
    /// The kinds given, or all.
    pub fn set(&self) -> KindSet {
        if self.kinds.is_empty() {
            KindSet::ALL
        } else {
            self.kinds.iter().copied().collect()
        }
    }
}

fn parse_input_format(text: &str) -> Result<InputFormat, String> {
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

/// Whether a path leads to a device or a named pipe, whose name says nothing.
fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The format that the name of a file promises.
fn format_of_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let (_, ending) = name.split_once('.')?;
    // Whatever stands before the ending may have dots, too.
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

/// One of the attributes of metadata.
pub fn parse_attribute(text: &str) -> Result<InfoFields, String> {
    InfoFields::named(text)
        .ok_or_else(|| "expected version, timestamp, changeset, uid or user".into())
}

/// A path from the command line as an output of text.
pub fn text_target(path: &Path, overwrite: bool) -> OutputTarget {
    match path.as_os_str() == "-" {
        true => OutputTarget::Stdout,
        false => OutputTarget::File {
            path: path.to_owned(),
            overwrite,
        },
    }
}

/// Whether a name is one of a change file.
pub fn names_changes(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".osc", ".osc.gz", ".osc.bz2", ".osc.zst"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// Which tags a command is about.
#[derive(Debug, Args)]
pub struct ExpressionArgs {
    /// Expressions: [nwra/]key[=value], != for other values, * at either end of key or value, several
    /// with commas
    #[arg(value_name = "EXPRESSION")]
    expressions: Vec<String>,
    /// Read expressions from FILE, one a line; # begins a comment
    #[arg(short = 'e', long = "expressions", value_name = "FILE")]
    expression_files: Vec<PathBuf>,
}

impl ExpressionArgs {
    /// The expressions, those of files first.
    pub fn parse(&self) -> Result<Vec<TagExpression>> {
        let mut expressions = Vec::new();
        for path in &self.expression_files {
            let text = std::fs::read_to_string(path)
                .map_err(|error| crate::Error::io(path, "cannot read", error))?;
            let lines = TagFilter::parse_lines(&text);
            expressions.extend(lines.map_err(|cause| crate::Error::file(path, cause))?);
        }
        for text in &self.expressions {
            expressions.push(TagExpression::parse(text).map_err(anyhow::Error::msg)?);
        }
        Ok(expressions)
    }
}

/// Which objects a command is about.
#[derive(Debug, Args)]
pub struct IdArgs {
    /// Ids: n17 w4 r8; a bare number is a node unless --default-type says otherwise. Several in one
    /// argument are separated by spaces, commas, semicolons, slashes or bars
    #[arg(value_name = "ID", allow_negative_numbers = true,
          required_unless_present_any = ["id_file", "id_osm_file"])]
    ids: Vec<String>,
    /// Read ids from FILE, one at the start of each line; what follows a space or # is not read, so that
    /// OPL will do. - is standard input
    #[arg(short = 'i', long, value_name = "FILE")]
    id_file: Vec<PathBuf>,
    /// Take the ids of all objects in the OSM file FILE
    #[arg(short = 'I', long, value_name = "FILE")]
    id_osm_file: Vec<PathBuf>,
    /// Kind of ids without a letter
    #[arg(long, value_name = "KIND", default_value = "node", value_parser = parse_kind)]
    default_type: ObjectKind,
    /// Print the ids that were asked for and those that were not found
    #[arg(long)]
    pub verbose_ids: bool,
}

impl IdArgs {
    /// Where the ids come from.
    pub fn source(&self) -> Result<IdSource> {
        let mut ids = Vec::new();
        for text in &self.ids {
            ids.extend(parse_object_ids(text, self.default_type).map_err(anyhow::Error::msg)?);
        }
        Ok(IdSource {
            ids,
            id_files: self.id_file.clone(),
            osm_files: self.id_osm_file.clone(),
            default_kind: self.default_type,
        })
    }

    /// Prints the ids that were asked for, where that was asked for, to standard error.
    pub fn tell(&self, what: &str, ids: &IdSets) {
        if self.verbose_ids {
            for kind in ObjectKind::ALL {
                let ids: Vec<String> = ids.of(kind).ids().map(|id| id.to_string()).collect();
                if !ids.is_empty() {
                    super::complain(&format!("{what} {}: {}\n", kind.plural(), ids.join(" ")));
                }
            }
        }
    }
}

/// Reads a number of bytes: `1048576`, `500M`, `2G`, `1.5GB`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is not a size like 500M or 2G");
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.strip_suffix('b').unwrap_or(&lower);
    let end = lower.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let factor = match lower.get(end.len()..) {
        Some("") => 1.0,
        Some("k") => 1e3,
        Some("m") => 1e6,
        Some("g") => 1e9,
        Some("t") => 1e12,
        _ => return Err(bad()),
    };
    match end.trim().parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok((number * factor) as u64),
        _ => Err(bad()),
    }
}

fn parse_jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 0..=1024) => Ok(jobs),
        _ => Err("expected 0 (every core) to 1024".into()),
    }
}

pub fn parse_kind(text: &str) -> Result<ObjectKind, String> {
    match text {
        "node" | "nodes" | "n" => Ok(ObjectKind::Node),
        "way" | "ways" | "w" => Ok(ObjectKind::Way),
        "relation" | "relations" | "rel" | "r" => Ok(ObjectKind::Relation),
        _ => Err("expected node, way or relation".into()),
    }
}
