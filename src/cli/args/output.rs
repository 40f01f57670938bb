//! Arguments for outputs: path, format, encoding and header fields.

use super::format::{
    FormatKind, FormatSpec, feature_format_of_name, join_words, kind_of_name,
    read_only_format_error, written_formats,
};
use crate::Context;
use crate::cli::conventions::{Conventions, parse_with};
use crate::cli::session::Session;
use crate::engine::input_content::{OpenedInput, open_by_content};
use crate::engine::{Format, HeaderOption, HeaderOptions, KeptField, OutputOptions};
use crate::file::WriteOptions;
use crate::formats::{FileContent, TextFormat};
use crate::geometry::{parse_bbox, parse_corners};
use crate::io::OutputTarget;
use crate::osm::Bbox;
use crate::pbf::Compression;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use clap::builder::RangedI64ValueParser;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The output of a command that writes one file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct OutputArgs {
    /// Output file; standard output if omitted or -
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub write: WriteArgs,
}

impl OutputArgs {
    /// Returns the options of the output. Fails like [`WriteArgs::output`].
    pub fn options(&self, session: &Session) -> Result<OutputOptions> {
        self.write.output(session, self.output.as_deref())
    }

    /// Opens an input that is data or a change file. Returns the input, and the options of an output with the same kind
    /// of content. `content` is the content of the input; if it is `None`, it is determined from the input.
    pub fn open_input(
        &self,
        session: &Session,
        path: &Path,
        content: Option<FileContent>,
        ctx: &Context,
    ) -> Result<(OpenedInput, OutputOptions)> {
        let (of_data, of_changes) = match (self.options(session), self.change_file_options(session))
        {
            (Err(error), Err(_)) => return Err(error),
            outputs => outputs,
        };
        let any = of_data.as_ref().or(of_changes.as_ref());
        let encoding = any.map(OutputOptions::encoding).unwrap_or_default();
        let input = open_by_content(path, content, &encoding, ctx)?;
        let output = match &input {
            OpenedInput::Changes(_) => of_changes?,
            OpenedInput::Objects(_) => of_data?,
        };
        Ok((input, output))
    }

    /// Returns the options of an output that must be a change file. On standard output, without --output-format, the
    /// change file is not compressed. Fails if the format is not that of a change file.
    fn change_file_options(&self, session: &Session) -> Result<OutputOptions> {
        let options = self.options_for_changes(session)?;
        match &options.format {
            Format::Text(text) if text.format == TextFormat::OsmChange => Ok(options),
            _ => bail!(
                "{}: the output is a change file: name it .osc, .osc.gz, .osc.bz2 or .osc.zst, or say so with -f",
                options.target.path().display()
            ),
        }
    }
}

impl OutputArgs {
    /// Returns the options of an output. On standard output, without --output-format, the format is `by_default`.
    pub fn options_or(&self, session: &Session, by_default: &FormatSpec) -> Result<OutputOptions> {
        let is_file = self.output.as_deref().is_some_and(|path| !is_stdout(path));
        let is_free = !is_file && self.write.output_format.is_none();
        self.write.output_as(
            session,
            self.output.as_deref(),
            is_free.then_some(by_default),
        )
    }

    /// Returns the options of an output of changes. On standard output, without --output-format, the output is a change
    /// file, unless the conventions require --output-format.
    pub fn options_for_changes(&self, session: &Session) -> Result<OutputOptions> {
        if session.conventions.needs_format {
            self.options(session)
        } else {
            self.options_or(session, &FormatSpec::changes())
        }
    }
}

/// The part of the long help about the formats of outputs.
const MORE_OF_FORMATS: &str = "

All formats except pbf can be compressed: osm.gz, opl.bz2, osc.zst. Options follow after commas, as in \
opl,add_metadata=false or osm.gz,xml_change_format=true:

add_metadata=false, add_metadata=version+timestamp, locations_on_ways=false, force_visible_flag=true, \
xml_change_format=true, columns=name+highway (csv), pbf_dense_nodes=false, pbf_compression=none|zlib|lz4|zstd, \
pbf_compression_level=N";

fn output_format_help(more: &str) -> String {
    let names = join_words(written_formats(), "or");
    format!("Output format, if not that of the file name: {names}{more}")
}

/// Returns the parser of the value of --max-shrink.
pub fn parse_percent() -> RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(0..=100)
}

/// The options for the format, encoding and header of an output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct WriteArgs {
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    pub overwrite: bool,
    /// Fail, with exit status 1, if an output is smaller than the file that it replaces by more than PERCENT
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent(), hide_short_help = true)]
    max_shrink: Option<u8>,
    /// The format of the output
    #[arg(
        short = 'f',
        long,
        value_name = "FORMAT",
        value_parser = parse_with(FormatSpec::parse),
        help = output_format_help(""),
        long_help = output_format_help(MORE_OF_FORMATS)
    )]
    pub output_format: Option<FormatSpec>,
    /// Compression of new blobs: none, zlib[:1-12], zstd[:1-22] or lz4 [default: zlib:6]
    ///
    /// Every program reads zlib. Hardly any program except osmium reads lz4 and zstd, and some do not read uncompressed
    /// blobs (none). zlib:6 gives about the size that the zlib library gives at level 6. Copied blobs keep their
    /// compression; repack and -f pbf,pbf_compression=KIND change all blobs.
    #[arg(long, value_name = "KIND[:LEVEL]")]
    compression: Option<Compression>,
    /// Name of the writing program in the header
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub generator: Option<String>,
    /// Set a header field (KEY=VALUE), remove it (KEY=), or keep that of the input (KEY!); repeatable
    ///
    /// For example, osmosis_replication_sequence_number=4711. `pbfhogg help output-headers` lists the fields.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_with(parse_header), hide_short_help = true)]
    pub output_header: Vec<HeaderOption>,
    /// Bounding box in the header: data (the box of all nodes), none, or min_lon,min_lat,max_lon,max_lat
    ///
    /// data needs a PBF file as output, and covers the locations in ways, too. By default, the box is that of the
    /// input, unless the command knows a better one.
    #[arg(long, value_name = "BOX", value_parser = parse_with(OutputBox::parse), allow_hyphen_values = true, hide_short_help = true)]
    set_bbox: Option<OutputBox>,
    /// Also write an index into the header of every blob, for programs that use it
    ///
    /// osmconvert does not read files with these indexes.
    #[arg(long, hide_short_help = true)]
    pub blob_index: bool,
    /// Compare copied blobs with their content hashes; damage in the input is then an error
    ///
    /// This decompresses the copied blobs on all cores, which takes about 0.8 s for 500 MB on two cores. By default,
    /// blobs that the command does not need to decode are copied without being read.
    #[arg(long, hide_short_help = true)]
    pub verify: bool,
    /// No effect: files are always flushed to disk before they get their name
    #[arg(long, hide = true)]
    fsync: bool,
    /// Write no table of contents
    #[arg(long, hide_short_help = true)]
    pub no_index: bool,
}

impl WriteArgs {
    /// Returns the options of an output to a path on the command line. Without a path, or with `-`, the output is
    /// standard output. The format is --output-format or, without that option, the format that the file name ends with.
    /// Without --output-format, standard output and devices get PBF.
    ///
    /// Fails if neither --output-format nor the file name gives the format, if an option of the format has an invalid
    /// value, or if PBF would be written to a terminal.
    pub fn output(&self, session: &Session, path: Option<&Path>) -> Result<OutputOptions> {
        self.output_as(session, path, None)
    }

    /// Returns the options of an output, as [`output`](Self::output) does. If `format` is given, it replaces
    /// --output-format.
    pub fn output_as(
        &self,
        session: &Session,
        path: Option<&Path>,
        format: Option<&FormatSpec>,
    ) -> Result<OutputOptions> {
        let path = path.filter(|path| !is_stdout(path));
        let spec = format.or(self.output_format.as_ref());
        let spec = spec.cloned().unwrap_or_default();
        let kind = match (spec.kind, path) {
            (Some(kind), _) => kind,
            (None, None) if session.conventions.needs_format => {
                bail!("give the output with -o, or its format with -f")
            }
            (None, None) => FormatKind::PBF,
            (None, Some(path)) if is_device(path) => FormatKind::PBF,
            (None, Some(path)) => kind_of_name(path).ok_or_else(|| match (
                read_only_format_error(path),
                feature_format_of_name(path),
            ) {
                (Some(cause), _) => anyhow!("{}: {cause}", path.display()),
                (None, Some(ending)) => anyhow!(
                    "{}: only `pbfhogg export` writes {ending}; this command writes OSM files, and -f sets their format for \
                     any name",
                    path.display()
                ),
                (None, None) => anyhow!(
                    "{}: the name does not show the format; known are .osm.pbf, {}, all but the first also with .gz, .bz2 \
                     or .zst; -f sets it for any name",
                    path.display(),
                    join_words(written_formats().skip(1).map(|name| format!(".{name}")), "and")
                ),
            })?,
        };
        let (format, write) = (spec.format(session, kind)?, self.options(session, kind)?);
        let target = match path {
            Some(path) => OutputTarget::named_file(path, self.overwrite),
            None => standard_output(session)?,
        };
        if write.box_of_data && (format != Format::Pbf || target == OutputTarget::Stdout) {
            bail!(
                "--set-bbox data needs a PBF file as output: only there the box can be written last"
            );
        }
        if format == Format::Pbf
            && target == OutputTarget::Stdout
            && std::io::stdout().is_terminal()
        {
            bail!(
                "standard output is a terminal, and the output is PBF: give a file with -o, or a format to read \
                 with -f, such as opl"
            );
        }
        Ok(self.output_options(session, target, format, write))
    }

    /// Returns the options of a PBF output that replaces the file at `path`. Fails if --output-format is not PBF, or if
    /// `path` is `-`.
    pub fn in_place_output(&self, session: &Session, path: &Path) -> Result<OutputOptions> {
        if path.as_os_str() == "-" {
            bail!("--in-place needs a file to replace, not standard input");
        }
        let write = self.pbf(
            session,
            "--in-place writes PBF: give another format with -f and -o",
        )?;
        let target = OutputTarget::named_file(path, true);
        Ok(self.output_options(session, target, Format::Pbf, write))
    }

    /// Returns the options for encoding PBF. Fails with `cause` if --output-format is a format other than PBF.
    pub fn pbf(&self, session: &Session, cause: &'static str) -> Result<WriteOptions> {
        let kind = self.output_format.as_ref().and_then(|spec| spec.kind);
        let kind = kind.unwrap_or(FormatKind::PBF);
        if !matches!(kind, FormatKind::Pbf { .. }) {
            bail!(cause);
        }
        self.options(session, kind)
    }

    fn output_options(
        &self,
        session: &Session,
        target: OutputTarget,
        format: Format,
        write: WriteOptions,
    ) -> OutputOptions {
        OutputOptions::new(target)
            .format(format)
            .write(write)
            .header(self.header(session))
    }

    /// Whether --output-format is that of a history file, or of a change file in PBF.
    pub fn is_history_format(&self) -> bool {
        let kind = self.output_format.as_ref().and_then(|spec| spec.kind);
        kind.is_some_and(FormatKind::is_history)
    }

    /// Returns the options for encoding PBF. Whether the file is a history file depends on --output-format or, without
    /// that option, on the file name in `path`.
    pub fn encoding(&self, session: &Session, path: Option<&Path>) -> Result<WriteOptions> {
        let kind = self.output_format.as_ref().and_then(|spec| spec.kind);
        let kind = kind.or_else(|| path.and_then(kind_of_name));
        self.options(session, kind.unwrap_or(FormatKind::PBF))
    }

    /// Returns the options for encoding PBF in an output of the given kind.
    fn options(&self, session: &Session, kind: FormatKind) -> Result<WriteOptions> {
        let mut write = WriteOptions {
            compression: self.compression.unwrap_or_default(),
            is_compression_explicit: self.compression.is_some(),
            verify: self.verify,
            toc: !self.no_index,
            blob_index: self.blob_index,
            box_of_data: self.set_bbox == Some(OutputBox::OfData),
            ..WriteOptions::default()
        };
        let spec = self.output_format.clone().unwrap_or_default();
        spec.apply_to(session, kind, &mut write)?;
        Ok(write)
    }

    /// Returns the header fields that the arguments set.
    pub fn header(&self, session: &Session) -> HeaderOptions {
        HeaderOptions {
            generator: self.generator.clone(),
            set: self.output_header.clone(),
            inherited: session.inherited(),
            bbox: match self.set_bbox {
                None | Some(OutputBox::OfData) => None,
                Some(OutputBox::Nothing) => Some(None),
                Some(OutputBox::Box(bbox)) => Some(Some(bbox)),
            },
        }
    }
}

/// The bounding box in the header of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputBox {
    OfData,
    Nothing,
    Box(Bbox),
}

impl OutputBox {
    /// Parses the value of --set-bbox.
    pub fn parse(conventions: &Conventions, text: &str) -> Result<Self, String> {
        match text {
            "data" => Ok(Self::OfData),
            "none" => Ok(Self::Nothing),
            _ if !conventions.reports_like_osmium
                && parse_bbox(text).is_ok_and(|shape| shape.polygons.len() > 1) =>
            {
                Err("the box of a header cannot cross the antimeridian".into())
            }
            _ => parse_corners(text).map(Self::Box).map_err(|error| {
                format!("expected data, none or min_lon,min_lat,max_lon,max_lat: {error}")
            }),
        }
    }
}

/// Parses a header field. An unknown field is ignored if [`Conventions::ignores_unknown_options`] is set.
pub fn parse_header(conventions: &Conventions, text: &str) -> Result<HeaderOption, String> {
    let option = HeaderOption::parse(text);
    if conventions.ignores_unknown_options {
        Ok(option.unwrap_or(HeaderOption::Keep(KeptField::Order)))
    } else {
        option
    }
}

/// Returns the target of an output in a text format for a path on the command line; `-` is standard output.
pub fn text_target(session: &Session, path: &Path, overwrite: bool) -> Result<OutputTarget> {
    if is_stdout(path) {
        standard_output(session)
    } else {
        Ok(OutputTarget::named_file(path, overwrite))
    }
}

/// Returns standard output as a target. Fails if the command runs inside of another program (see
/// [`call`](crate::cli::call)), because that program uses standard output itself.
fn standard_output(session: &Session) -> Result<OutputTarget> {
    if session.is_call() {
        bail!("the result needs a file: give an output");
    }
    Ok(OutputTarget::Stdout)
}

/// Whether an output is written to standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-" || path == Path::new("/dev/stdout")
}

/// Whether a path is that of a device or a named pipe, whose name does not show a format.
fn is_device(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}
