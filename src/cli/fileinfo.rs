use super::CommandAnswer;
use super::args::{ChangesetKindArgs, JsonForm, RunArgs};
use super::session::Session;
use crate::commands::fileinfo::{self, Facts, IdBounds, MetadataFields, Summary};
use crate::error::path_without_credentials;
use crate::formats::TextCompression;
use crate::osm::{Bbox, ObjectKind, format_timestamp};
use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Show the header of a file, and facts about its objects, as osmium does
///
/// The layout, the keys of --get and the JSON are those of `osmium fileinfo`, so scripts can use either. `pbfhogg
/// inspect` shows more and is faster.
#[derive(Debug, clap::Args)]
// As in osmium, `-j` means --json for this command.
#[command(
    mut_arg("jobs", |arg| arg.short(None)),
    mut_arg("json", |arg| arg.short('j')),
    after_help = "Examples:
  pbfhogg fileinfo berlin.osm.pbf
  pbfhogg fileinfo -e berlin.osm.pbf
  pbfhogg fileinfo -e -g data.timestamp.last berlin.osm.pbf
  pbfhogg fileinfo -j berlin.osm.pbf"
)]
pub struct Args {
    /// The file; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "show_variables")]
    input: Option<PathBuf>,
    /// Read all objects, and show facts about them
    #[arg(short, long)]
    extended: bool,
    /// With -e: calculate the CRC-32 of all objects (default with --json)
    #[arg(short, long)]
    crc: bool,
    /// With -e and --json: do not calculate the CRC-32
    #[arg(long, conflicts_with = "crc")]
    no_crc: bool,
    /// Print only the value of KEY
    #[arg(short, long, value_name = "KEY", conflicts_with = "json")]
    get: Option<String>,
    /// List the keys of --get
    #[arg(short = 'G', long)]
    show_variables: bool,
    #[command(flatten)]
    kinds: ChangesetKindArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    if args.show_variables {
        return session.answer(&keys().map(|key| key + "\n").collect::<String>());
    }
    let wants_json = args.run.json.is_some();
    if let Some(key) = &args.get {
        check_key(key, args.extended)?;
    }
    let path = args.input.clone().unwrap_or_default();
    let wants_sum = args.get.as_deref() == Some("data.crc32");
    let options = fileinfo::Options::new(&path)
        .extended(args.extended)
        .checksum(args.crc || wants_sum || (wants_json && !args.no_crc))
        .kinds(args.kinds.kind_set());
    let ctx = args.run.context(session);
    let summary = fileinfo::run(&options, &ctx)?;
    ctx.observer.finished();
    let info = FileSummary {
        name: path_without_credentials(&path).into_owned(),
        is_stream: path.as_os_str() == "-",
        summary: &summary,
    };
    session.print(&match &args.get {
        Some(key) => info
            .value(key)?
            .map_or_else(String::new, |value| value + "\n"),
        None if args.run.json == Some(JsonForm::Lines) => {
            // Strings in JSON contain no line breaks, so joining the lines does not change any value.
            let json = info.json_text()?;
            json.lines().map(str::trim_start).collect::<String>() + "\n"
        }
        None if wants_json => info.json_text()? + "\n",
        None => info.text(),
    })?;
    Ok(CommandAnswer::Yes)
}

const KINDS: &str = "nodes ways relations changesets";
const METADATA: &str = "version timestamp changeset uid user";
/// The keys of --get, grouped by prefix, in the order in which osmium prints them.
const KEYS: [(&str, &str); 10] = [
    ("file", "name format compression size"),
    ("header", "boxes with_history"),
    (
        "header.option",
        "generator osmosis_replication_base_url osmosis_replication_sequence_number osmosis_replication_timestamp \
         pbf_dense_nodes timestamp version",
    ),
    (
        "data",
        "bbox timestamp.first timestamp.last objects_ordered multiple_versions crc32",
    ),
    ("data.count", KINDS),
    ("data.minid", KINDS),
    ("data.maxid", KINDS),
    ("data.buffers", "count size capacity"),
    ("metadata.all_objects", METADATA),
    ("metadata.some_objects", METADATA),
];

/// Returns all keys of --get.
fn keys() -> impl Iterator<Item = String> {
    let groups = KEYS.iter();
    groups.flat_map(|(start, ends)| ends.split(' ').map(move |end| format!("{start}.{end}")))
}

/// Fails if --get does not support `key`, or if `key` needs --extended and `is_extended` is false.
fn check_key(key: &str, is_extended: bool) -> Result<()> {
    if !keys().any(|known| known == key) && !key.starts_with("header.option.") {
        bail!("'{key}' is not a key of --get; --show-variables (-G) lists them");
    }
    if !is_extended && (key.starts_with("data.") || key.starts_with("metadata.")) {
        bail!("{key}: the keys of data and metadata need --extended (-e)");
    }
    Ok(())
}

/// A summary, with the file name from the command line. Credentials in a URL are left out of the name.
struct FileSummary<'a> {
    name: String,
    is_stream: bool,
    summary: &'a Summary,
}

/// The capacity in bytes of each of osmium's buffers for objects.
const BUFFER: u64 = 1 << 20;

/// Returns the number of buffers that osmium needs for the objects.
const fn buffer_count(facts: &Facts) -> u64 {
    facts.buffer_bytes.div_ceil(BUFFER)
}

impl FileSummary<'_> {
    fn format(&self) -> &'static str {
        self.summary
            .format
            .map_or("PBF", |format| format.facts().family)
    }

    const fn compression(&self) -> &'static str {
        match self.summary.compression {
            TextCompression::None => "none",
            TextCompression::Gzip => "gzip",
            TextCompression::Bzip2 => "bzip2",
            TextCompression::Zstd => "zstd",
        }
    }

    /// Returns the value of a key of --get. If the file does not have the value, returns `None` for header options and
    /// boxes, and an empty string for other keys.
    fn value(&self, key: &str) -> Result<Option<String>> {
        let summary = self.summary;
        let of_facts =
            |text: fn(&Facts) -> String| summary.data.as_ref().map_or_else(String::new, text);
        Ok(Some(match key {
            "file.size" => summary.bytes.to_string(),
            "header.boxes" if summary.boxes.is_empty() => return Ok(None),
            "header.boxes" => {
                let boxes = summary.boxes.iter();
                boxes.map(format_box).collect::<Vec<_>>().join("\n")
            }
            "data.bbox" => of_facts(|facts| format_box(&facts.bbox)),
            "data.multiple_versions" => of_facts(|facts| {
                has_several_versions(facts)
                    .map_or("unknown", yes_or_no)
                    .into()
            }),
            _ => {
                let json = serde_json::to_value(self.json())?;
                let found = match key.strip_prefix("header.option.") {
                    Some(name) => match json["header"]["option"].get(name) {
                        None => return Ok(None),
                        found => found,
                    },
                    // In the JSON report, `metadata` is a member of `data`.
                    None if key.starts_with("metadata.") => {
                        json["data"].pointer(&json_pointer(key))
                    }
                    None => json.pointer(&json_pointer(key)),
                };
                match found {
                    Some(Value::Bool(is)) => yes_or_no(*is).into(),
                    Some(Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => String::new(),
                }
            }
        }))
    }

    fn text(&self) -> String {
        let summary = self.summary;
        let mut out = String::from("File:\n");
        let _ = writeln!(out, "  Name: {}", self.name);
        let _ = writeln!(out, "  Format: {}", self.format());
        let _ = writeln!(out, "  Compression: {}", self.compression());
        if !self.is_stream {
            let _ = writeln!(out, "  Size: {}", summary.bytes);
        }
        out.push_str("Header:\n  Bounding boxes:\n");
        for bbox in &summary.boxes {
            let _ = writeln!(out, "    {}", format_box(bbox));
        }
        let _ = writeln!(out, "  With history: {}", yes_or_no(summary.with_history));
        out.push_str("  Options:\n");
        for (name, value) in &summary.options {
            let _ = writeln!(out, "    {name}={value}");
        }
        if let Some(facts) = &summary.data {
            put_data_section(&mut out, facts, summary.with_history);
        }
        out
    }

    fn json(&self) -> Json<'_> {
        let summary = self.summary;
        Json {
            file: JsonFile {
                name: &self.name,
                format: self.format(),
                compression: self.compression(),
                size: (!self.is_stream).then_some(summary.bytes),
            },
            header: JsonHeader {
                boxes: &summary.boxes,
                with_history: summary.with_history,
                option: summary.options.iter().cloned().collect(),
            },
            data: summary.data.as_ref().map(JsonData::of),
        }
    }

    fn json_text(&self) -> Result<String> {
        let mut out = Vec::new();
        let layout = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        self.json()
            .serialize(&mut serde_json::Serializer::with_formatter(
                &mut out, layout,
            ))?;
        Ok(String::from_utf8(out)?)
    }
}

/// Returns the JSON pointer to the value of a key.
fn json_pointer(key: &str) -> String {
    format!("/{}", key.replace('.', "/"))
}

const fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Formats a box in parentheses, as osmium does.
fn format_box(bbox: &Bbox) -> String {
    if bbox.is_empty() {
        "(undefined)".into()
    } else {
        format!("({bbox})")
    }
}

/// Formats a timestamp. Returns an empty string for 0, which stands for no timestamp.
fn format_time(seconds: i64) -> String {
    match seconds {
        0 => String::new(),
        _ => format_timestamp(seconds),
    }
}

/// Whether the file has several versions of an object; `None` if this is unknown because the file is not ordered.
fn has_several_versions(facts: &Facts) -> Option<bool> {
    facts.is_ordered().then_some(facts.has_versions())
}

/// Returns the name, the plural, the number of objects and the range of ids of each kind of object. Changesets come
/// first.
fn facts_by_kind(facts: &Facts) -> [(&'static str, &'static str, u64, IdBounds); 4] {
    let counts = facts.counts();
    let of = |kind: ObjectKind| {
        let index = kind as usize;
        let (count, ids) = (counts[index], facts.ids[index]);
        (kind.name(), kind.plural(), count, ids)
    };
    let [nodes, ways, relations] = ObjectKind::ALL.map(of);
    let changesets = (
        "changeset",
        "changesets",
        facts.changesets,
        facts.changeset_ids,
    );
    [changesets, nodes, ways, relations]
}

fn put_data_section(out: &mut String, facts: &Facts, with_history: bool) {
    let _ = writeln!(out, "Data:\n  Bounding box: {}", format_box(&facts.bbox));
    if let Some((first, last)) = facts.timestamps() {
        let _ = writeln!(out, "  Timestamps:\n    First: {}", format_time(first));
        let _ = writeln!(out, "    Last: {}", format_time(last));
    }
    let ordered = yes_or_no(facts.is_ordered());
    let _ = writeln!(out, "  Objects ordered (by type and id): {ordered}");
    out.push_str("  Multiple versions of same object: ");
    match has_several_versions(facts) {
        None => out.push_str("unknown (because objects in file are unordered)\n"),
        Some(has) => {
            let _ = writeln!(out, "{}", yes_or_no(has));
            if has != with_history {
                out.push_str("    WARNING! This is different from the setting in the header.\n");
            }
        }
    }
    out.push_str("  CRC32: ");
    match facts.checksum() {
        Some(sum) => {
            let _ = writeln!(out, "{sum:x}");
        }
        None => out.push_str("not calculated (use --crc/-c to enable)\n"),
    }
    let kinds = facts_by_kind(facts);
    for (_, plural, count, _) in kinds {
        let _ = writeln!(out, "  Number of {plural}: {count}");
    }
    for (name, _, _, ids) in kinds {
        let _ = writeln!(out, "  Smallest {name} ID: {}", ids.min());
    }
    for (name, _, _, ids) in kinds {
        let _ = writeln!(out, "  Largest {name} ID: {}", ids.max());
    }
    put_buffers(out, facts);
    let _ = writeln!(
        out,
        "Metadata:\n  All objects have following metadata attributes: {}\n  \
         Some objects have following metadata attributes: {}",
        format_metadata(&facts.in_all()),
        format_metadata(&facts.in_some())
    );
}

fn put_buffers(out: &mut String, facts: &Facts) {
    let count = buffer_count(facts);
    let _ = write!(out, "  Number of buffers: {count}");
    if let Some(average) = facts.total().checked_div(count) {
        let _ = write!(out, " (avg {average} objects per buffer)");
    }
    let gigabytes = |bytes: u64| (bytes / (1 << 20)) as f64 / 1000.0;
    let (size, capacity) = (facts.buffer_bytes, count * BUFFER);
    let _ = writeln!(
        out,
        "\n  Sum of buffer sizes: {size} ({} GB)",
        gigabytes(size)
    );
    let _ = write!(
        out,
        "  Sum of buffer capacities: {capacity} ({} GB",
        gigabytes(capacity)
    );
    match capacity {
        0 => out.push_str(")\n"),
        capacity => {
            let percent = (size as f64 * 100.0 / capacity as f64).round();
            let _ = writeln!(out, ", {percent}% full)");
        }
    }
}

/// Returns the names of the metadata fields that are set, joined by `+`, or `all` or `none`.
fn format_metadata(fields: &MetadataFields) -> String {
    let named = fields.named();
    let names: Vec<&str> = named
        .iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| *name)
        .collect();
    match names.len() {
        0 => "none".into(),
        5 => "all".into(),
        _ => names.join("+"),
    }
}

#[derive(Serialize)]
struct Json<'a> {
    file: JsonFile<'a>,
    header: JsonHeader<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<JsonData>,
}

#[derive(Serialize)]
struct JsonFile<'a> {
    name: &'a str,
    format: &'static str,
    compression: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

#[derive(Serialize)]
struct JsonHeader<'a> {
    boxes: &'a [Bbox],
    with_history: bool,
    option: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct JsonData {
    #[serde(skip_serializing_if = "Option::is_none")]
    bbox: Option<Bbox>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<JsonTimes>,
    objects_ordered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    multiple_versions: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc32: Option<String>,
    count: JsonKinds<u64>,
    minid: JsonKinds<i64>,
    maxid: JsonKinds<i64>,
    buffers: JsonBuffers,
    metadata: JsonMetadata,
}

#[derive(Serialize)]
struct JsonTimes {
    first: String,
    last: String,
}

#[derive(Serialize)]
struct JsonKinds<T> {
    changesets: T,
    nodes: T,
    ways: T,
    relations: T,
}

impl<T> JsonKinds<T> {
    fn of(facts: &Facts, value: impl Fn(u64, IdBounds) -> T) -> Self {
        let [changesets, nodes, ways, relations] =
            facts_by_kind(facts).map(|(_, _, count, ids)| value(count, ids));
        Self {
            changesets,
            nodes,
            ways,
            relations,
        }
    }
}

#[derive(Serialize)]
struct JsonBuffers {
    count: u64,
    size: u64,
    capacity: u64,
}

#[derive(Serialize)]
struct JsonMetadata {
    all_objects: MetadataFields,
    some_objects: MetadataFields,
}

impl JsonData {
    fn of(facts: &Facts) -> Self {
        let buffers = buffer_count(facts);
        Self {
            bbox: (!facts.bbox.is_empty()).then_some(facts.bbox),
            timestamp: facts.timestamps().map(|(first, last)| JsonTimes {
                first: format_time(first),
                last: format_time(last),
            }),
            objects_ordered: facts.is_ordered(),
            multiple_versions: has_several_versions(facts),
            crc32: facts.checksum().map(|sum| format!("{sum:x}")),
            count: JsonKinds::of(facts, |count, _| count),
            minid: JsonKinds::of(facts, |_, ids| ids.min()),
            maxid: JsonKinds::of(facts, |_, ids| ids.max()),
            buffers: JsonBuffers {
                count: buffers,
                size: facts.buffer_bytes,
                capacity: buffers * BUFFER,
            },
            metadata: JsonMetadata {
                all_objects: facts.in_all(),
                some_objects: facts.in_some(),
            },
        }
    }
}
