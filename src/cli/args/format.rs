//! Names and options of file formats on the command line.

use crate::InputFormat;
use crate::cli::conventions::Conventions;
use crate::cli::session::Session;
use crate::engine::Format;
use crate::file::{BlobHistory, BlobLocations, WriteOptions};
use crate::formats::{
    FeatureFormat, FileContent, TextCompression, TextFormat, TextOptions, Visibility, WayLocations,
};
use crate::pbf::{Compression, InfoFields};
use anyhow::{Result, anyhow, bail};
use std::path::Path;

/// A file format, as determined from a format name or a file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatKind {
    Pbf {
        /// Whether the name is that of a history file, such as `.osh.pbf`, or of a change file. Both can contain
        /// deleted objects.
        is_history: bool,
        /// Whether the name is that of a change file, such as `.osc.pbf`.
        is_change: bool,
    },
    Text {
        format: TextFormat,
        compression: TextCompression,
        /// Whether the name is that of a history file, such as `.osh`.
        is_history: bool,
    },
}

impl FormatKind {
    /// PBF that is neither a history file nor a change file.
    pub const PBF: Self = Self::Pbf {
        is_history: false,
        is_change: false,
    };

    /// Parses the name of a format, such as `pbf`, `osm.gz` or `.osm`. Returns `None` for an unknown name.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('.').unwrap_or(text);
        let (name, compression) = TextCompression::split_extension(text);
        if matches!(text, "pbf" | "osm.pbf" | "osh.pbf" | "osc.pbf") {
            let is_change = text.starts_with("osc");
            return Some(Self::Pbf {
                is_history: is_change || text.starts_with("osh"),
                is_change,
            });
        }
        let format = TextFormat::from_name(name).filter(|format| !format.is_read_only())?;
        Some(Self::Text {
            format,
            compression,
            is_history: name.starts_with("osh"),
        })
    }
}

impl FormatKind {
    /// Whether the name is that of a history file, or of a change file in PBF.
    pub const fn is_history(self) -> bool {
        match self {
            Self::Pbf { is_history, .. } | Self::Text { is_history, .. } => is_history,
        }
    }

    /// Whether the name is that of a change file in PBF.
    pub const fn is_change_pbf(self) -> bool {
        matches!(
            self,
            Self::Pbf {
                is_change: true,
                ..
            }
        )
    }

    /// Whether the format is OsmChange.
    pub fn is_change_file(self) -> bool {
        matches!(
            self,
            Self::Text {
                format: TextFormat::OsmChange,
                ..
            }
        )
    }
}

/// Returns the format for the ending of a file name, in upper or lower case; `None` for an unknown ending.
pub fn kind_of_name(path: &Path) -> Option<FormatKind> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    Some(parse_format_ending(&name)?.1)
}

/// Returns the longest ending of a file name (in lower case) that is the name of a format, and this format.
fn parse_format_ending(name: &str) -> Option<(&str, FormatKind)> {
    let (_, ending) = name.split_once('.')?;
    // The file name can have dots before the ending, as in `a.b.osm.pbf`. So everything after the first dot is tried
    // first, then everything after the second dot, and so on.
    let mut endings = std::iter::successors(Some(ending), |rest| {
        rest.split_once('.').map(|(_, ending)| ending)
    });
    endings.find_map(|ending| Some((ending, FormatKind::parse(ending)?)))
}

/// Returns the ending of a file name if it stands for data or a history, such as `osm`, `osm.pbf` or `osh.opl`.
pub fn data_ending(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let (ending, _) = parse_format_ending(&name)?;
    let first = ending.split('.').next()?;
    matches!(first, "osm" | "osh" | "xml").then(|| ending.to_owned())
}

/// Whether a name is that of a feature format, which only `export` writes.
fn is_feature_format(name: &str) -> bool {
    matches!(name, "parquet" | "geoparquet" | "wkt")
        || !matches!(name, "txt" | "text") && FeatureFormat::of_name(name).is_some()
}

/// Returns the feature format that a file name ends with. Only `export` writes these formats.
pub fn feature_format_of_name(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(ending).filter(|ending| is_feature_format(ending))
}

/// Whether a file name has the ending of a change file, such as `.osc`, `.osc.gz` or `.o5c`.
pub fn is_change_file_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut endings = name.rsplit('.').take(2);
    let is_changes = |ending: &str| {
        let format = TextFormat::from_name(&ending.to_ascii_lowercase());
        format.is_some_and(|format| format.is_read_only() && format.is_change())
    };
    kind_of_name(path).is_some_and(FormatKind::is_change_file) || endings.any(is_changes)
}

/// Returns an error message if a file name has the ending of a format that can only be read.
pub fn read_only_format_error(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let mut endings = name.rsplit('.').take(2);
    endings
        .any(is_read_only_format)
        .then(read_only_format_message)
}

/// Whether a file name has the ending of a history file, such as `.osh.pbf` or `.osh`, or of a change file in PBF.
pub fn is_history_file_name(path: &Path) -> bool {
    kind_of_name(path).is_some_and(FormatKind::is_history)
}

/// A format and its options, such as `opl,add_metadata=false`.
#[derive(Debug, Clone, Default)]
pub struct FormatSpec {
    /// The format; `None` if only options are given.
    pub kind: Option<FormatKind>,
    /// The options as pairs of name and value.
    options: Vec<(String, String)>,
}

impl FormatSpec {
    /// Returns the format of an uncompressed change file.
    pub fn changes() -> Self {
        Self {
            kind: FormatKind::parse("osc"),
            options: Vec::new(),
        }
    }

    /// Returns the format of uncompressed OPL.
    pub fn opl() -> Self {
        Self {
            kind: FormatKind::parse("opl"),
            options: Vec::new(),
        }
    }

    /// Whether the option with this name is given.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|(found, _)| found == name)
    }

    /// Parses a format and its options. The error is a message for the user.
    pub fn parse(conventions: &Conventions, text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let kind = match name {
            "" => None,
            name if is_read_only_format(name) => return Err(read_only_format_message()),
            name => Some(FormatKind::parse(name).ok_or_else(|| {
                let known = join_words(written_formats(), "or");
                let known =
                    format!("expected {known}; all but the first also with .gz, .bz2 or .zst");
                if is_feature_format(name) {
                    format!("{known}; only `pbfhogg export` writes {name}")
                } else {
                    known
                }
            })?),
        };
        let mut options = Vec::new();
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, "true"));
            if NAMES.contains(&name) {
                options.push((name.to_owned(), value.to_owned()));
            } else if !conventions.ignores_unknown_options {
                return Err(format!(
                    "'{name}' is not an option of a format: known are {}",
                    NAMES.join(", ")
                ));
            }
        }
        Ok(Self { kind, options })
    }

    /// Returns the output format of the given kind, with the options for text formats. Fails if an option has an
    /// invalid value.
    pub fn format(&self, session: &Session, kind: FormatKind) -> Result<Format> {
        let FormatKind::Text {
            format,
            compression,
            is_history,
        } = kind
        else {
            return Ok(Format::Pbf);
        };
        let mut text = TextOptions::new(format);
        text.compression = compression;
        text.visibility = is_history.then_some(Visibility::All);
        if session.conventions.is_plain_by_default {
            text.visibility = text.visibility.or(Some(Visibility::Never));
            text.way_locations = WayLocations::Never;
            text.replication = false;
        }
        for (name, value) in &self.options {
            let flag = || parse_flag(name, value);
            match name.as_str() {
                "add_metadata" => text.without = parse_metadata(value)?,
                "locations_on_ways" => {
                    text.way_locations = if flag()? {
                        WayLocations::Always
                    } else {
                        WayLocations::Never
                    }
                }
                "force_visible_flag" => {
                    text.visibility = Some(if flag()? || is_history {
                        Visibility::All
                    } else {
                        Visibility::Never
                    });
                }
                "color" | "use_color" => text.debug.colors = flag()?,
                "add_crc32" => text.debug.checksums = flag()?,
                "columns" => text.tag_columns = Some(parse_columns(value)?),
                "xml_change_format" if flag()? && text.format == TextFormat::Osm => {
                    text.format = TextFormat::OsmChange;
                }
                _ => {}
            }
        }
        Ok(Format::Text(text))
    }

    /// Whether the format is a compressed text format.
    pub fn is_compressed(&self) -> bool {
        matches!(self.kind, Some(FormatKind::Text { compression, .. }) if compression != TextCompression::None)
    }

    /// Whether options for PBF are given.
    pub fn has_pbf_options(&self) -> bool {
        matches!(self.kind, Some(FormatKind::Pbf { .. })) && !self.options.is_empty()
    }

    /// Applies the options for PBF to an output of the given kind. Fails if an option has an invalid value.
    pub fn apply_to(
        &self,
        session: &Session,
        kind: FormatKind,
        write: &mut WriteOptions,
    ) -> Result<()> {
        if let FormatKind::Pbf { is_history, .. } = kind
            && session.conventions.is_plain_by_default
        {
            write.way_locations = BlobLocations::DropDeclared;
            write.history = if is_history {
                BlobHistory::Declare
            } else {
                BlobHistory::Drop
            };
        }
        let value_of = |wanted: &str| {
            let mut options = self.options.iter().rev();
            let found = options.find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_str())
        };
        if let Some(value) = value_of("add_metadata") {
            write.without = parse_metadata(value)?;
        }
        if let Some(value) = value_of("locations_on_ways") {
            write.way_locations = if parse_flag("locations_on_ways", value)? {
                BlobLocations::Keep
            } else {
                BlobLocations::Drop
            };
        }
        if let Some(value) = value_of("pbf_dense_nodes") {
            write.dense_nodes = parse_flag("pbf_dense_nodes", value)?;
        }
        let compression = value_of("pbf_compression");
        let level = value_of("pbf_compression_level");
        if compression.is_some() || level.is_some() {
            write.compression = parse_compression(compression, level)?;
            (write.is_compression_explicit, write.recompress) = (false, true);
        }
        Ok(())
    }
}

/// Parses the values of `pbf_compression` and `pbf_compression_level`.
fn parse_compression(kind: Option<&str>, level: Option<&str>) -> Result<Compression> {
    let kind = match kind {
        None | Some("true") => "zlib",
        Some("false") => "none",
        Some(kind) => kind,
    };
    let text = match level {
        Some(level) => format!("{kind}:{level}"),
        None => kind.to_owned(),
    };
    text.parse()
        .map_err(|error| anyhow!("pbf_compression {text}: {error}"))
}

/// The names of the options of formats.
const NAMES: [&str; 11] = [
    "add_crc32",
    "add_metadata",
    "color",
    "columns",
    "force_visible_flag",
    "locations_on_ways",
    "pbf_compression",
    "pbf_compression_level",
    "pbf_dense_nodes",
    "use_color",
    "xml_change_format",
];

fn parse_flag(name: &str, value: &str) -> Result<bool> {
    match value {
        "true" | "yes" => Ok(true),
        "false" | "no" => Ok(false),
        _ => bail!("{name}={value}: expected true or false"),
    }
}

/// Parses the metadata fields to write, such as `version+timestamp`. Returns the fields to leave out.
fn parse_metadata(value: &str) -> Result<InfoFields> {
    let all = [
        ("version", InfoFields::VERSION),
        ("timestamp", InfoFields::TIMESTAMP),
        ("changeset", InfoFields::CHANGESET),
        ("uid", InfoFields::UID),
        ("user", InfoFields::USER),
    ];
    match value {
        "true" | "yes" | "all" => return Ok(InfoFields::NONE),
        "false" | "no" | "none" => return Ok(InfoFields::ALL),
        _ => {}
    }
    let names: Vec<&str> = value.split('+').collect();
    if let Some(unknown) = names
        .iter()
        .find(|name| !all.iter().any(|(known, _)| known == *name))
    {
        bail!(
            "add_metadata={value}: '{unknown}' is not true, false, version, timestamp, changeset, uid or user"
        );
    }
    let left_out = all.iter().filter(|(name, _)| !names.contains(name));
    let fields: Vec<InfoFields> = left_out.map(|(_, field)| *field).collect();
    Ok(InfoFields::all_of(&fields))
}

/// Parses the keys of the tags to write as columns, such as `name+highway`.
fn parse_columns(value: &str) -> Result<Vec<String>> {
    let keys: Vec<_> = value.split('+').map(str::to_owned).collect();
    if value == "true" || keys.iter().any(String::is_empty) {
        bail!("columns={value}: expected keys of tags, as in columns=name+highway");
    }
    Ok(keys)
}

/// The format of the inputs.
#[derive(Debug, Clone, Copy)]
pub struct InputKind {
    pub format: InputFormat,
    /// Whether the format name is that of history files, such as `osh`.
    pub is_history: bool,
    /// Whether the format name, such as `osc.pbf` or `osc.opl`, is that of change files in a format that data files can
    /// have, too.
    pub is_change: bool,
    /// The content that the format name states; `None` for names such as `pbf`, `osm.pbf`, `opl` and `xml`.
    pub content: Option<FileContent>,
}

impl InputKind {
    /// Fails if this is a format of data or history files. `option` is the option that gives it as the format of change
    /// files. Under the conventions of osmium, every format is accepted.
    pub fn check_changes(self, session: &Session, option: &str) -> Result<()> {
        let is_other = matches!(self.content, Some(FileContent::Data | FileContent::History));
        if !is_other || session.conventions.merges_data {
            return Ok(());
        }
        let right = match self.format {
            InputFormat::O5m => TextFormat::O5c.short_name().to_owned(),
            InputFormat::Pbf => "osc.pbf".to_owned(),
            InputFormat::Text(format) if format.facts().content.is_none() => {
                format!("osc.{}", format.short_name())
            }
            _ => TextFormat::OsmChange.short_name().to_owned(),
        };
        bail!(
            "{option}: this is a format of data or of a history; the files have changes: {option} {right}"
        )
    }

    /// Fails if this is a format of change files. The option -F gives it as the format of the base to which changes are
    /// applied. `advice` tells the user what determines the format of the change files. Under the conventions of
    /// osmium, every format is accepted.
    pub fn check_data(self, session: &Session, advice: &str) -> Result<()> {
        if self.content != Some(FileContent::Changes) || session.conventions.merges_data {
            return Ok(());
        }
        bail!("-F gives the format of the base, which is not a change file: {advice}")
    }
}

impl InputKind {
    /// Whether the format name is that of a file with several versions of an object: a history or changes.
    pub fn has_versions(self) -> bool {
        let content = self.content;
        matches!(content, Some(FileContent::History | FileContent::Changes))
    }

    /// Parses the name of an input format. Options and a compression suffix, as in `osm.gz`, are accepted and have no
    /// effect.
    pub fn parse(conventions: &Conventions, text: &str) -> Result<Self, String> {
        let name = text.split(',').next().unwrap_or_default();
        let kind = FormatKind::parse(name);
        let (plain, _) = TextCompression::split_extension(name);
        let format = match (kind, TextFormat::from_name(plain)) {
            (Some(FormatKind::Pbf { .. }), _) => None,
            (_, Some(format)) if format.facts().is_read => Some(format),
            _ => {
                return Err(format!("expected {}", join_words(read_formats(), "or")));
            }
        };
        let is_change = name.starts_with("osc.") && format != Some(TextFormat::OsmChange);
        // osmium does not distinguish the names of OSM XML and OsmChange. The name `xml` always stands for both.
        let is_any_xml = conventions.reads_xml_by_any_name || name.starts_with("xml");
        Ok(Self {
            format: match format {
                None => InputFormat::Pbf,
                Some(TextFormat::O5m | TextFormat::O5c) => InputFormat::O5m,
                Some(format) if is_any_xml && !format.facts().root.is_empty() => InputFormat::Xml,
                Some(format) => InputFormat::Text(format),
            },
            is_history: !is_change && kind.is_some_and(FormatKind::is_history),
            is_change,
            content: content_of_format_name(plain, format),
        })
    }
}

/// Returns the content that the name of a format states. Names such as `osm.pbf` and `osm.opl` state no content,
/// because they are used for files with any content.
fn content_of_format_name(name: &str, format: Option<TextFormat>) -> Option<FileContent> {
    match name.split('.').next()? {
        "osc" => Some(FileContent::Changes),
        "osh" => Some(FileContent::History),
        first if first == format?.short_name() => format?.facts().content,
        _ => None,
    }
}

/// Whether `name`, which is a format name or the ending of a file name, stands for a format that is read but not
/// written. A compression suffix is ignored.
fn is_read_only_format(name: &str) -> bool {
    let (name, _) = TextCompression::split_extension(name);
    TextFormat::from_name(name).is_some_and(TextFormat::is_read_only)
}

/// Returns the error message for a format that is read but not written.
fn read_only_format_message() -> String {
    let (written, only_read): (Vec<_>, Vec<_>) =
        read_formats().partition(|name| !is_read_only_format(name));
    format!(
        "{} are read, but not written: write {}",
        join_words(only_read, "and"),
        join_words(written, "or")
    )
}

/// Returns the names of the formats that are written.
pub fn written_formats() -> impl Iterator<Item = &'static str> {
    let names = TextFormat::writable_formats().flat_map(|facts| facts.names);
    ["pbf"].into_iter().chain(names.copied())
}

/// Returns the names of the formats that are read.
pub fn read_formats() -> impl Iterator<Item = &'static str> {
    ["pbf"]
        .into_iter()
        .chain(TextFormat::readable_formats().map(|facts| facts.names[0]))
}

/// Returns words as a list in a sentence. `last` is the conjunction before the last word, such as `or`.
pub fn join_words(words: impl IntoIterator<Item = impl Into<String>>, last: &str) -> String {
    let mut words: Vec<String> = words.into_iter().map(Into::into).collect();
    match words.pop() {
        Some(end) if !words.is_empty() => format!("{} {last} {end}", words.join(", ")),
        end => end.unwrap_or_default(),
    }
}
