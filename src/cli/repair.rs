use super::args::{OutputArgs, RunArgs, Stdout, text_target};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::repair::{
    self, InvalidUtf8, Loss, LostIds, MendedBlob, Options, Report, Salvage,
};
use crate::error::display_path;
use crate::formats::TextOutput;
use crate::io::OutputTarget;
use crate::runtime::Context;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Write a valid file of all that can be saved of a damaged one
///
/// The output has every object that can still be read: sorted, each once, with a table of contents. Blobs that are
/// whole are copied. Behind damage, the next blob is looked for at every byte, so that files that were cut,
/// overwritten, joined by other programs, or compressed as a whole are read, too. Of OSM XML, OsmChange, OPL and o5m,
/// compressed or not, the output has what stands before the first damage. FILE is not changed.
///
/// The report says what was lost: the blobs, their place, and the ids that they had or can have had. With --from, the
/// objects with these ids come from another file, such as yesterday's.
///
/// The exit status is 0 if nothing was lost, 1 if something was lost, the header included, and the rest was written,
/// and 2 if nothing can be saved.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg repair damaged.osm.pbf -o saved.osm.pbf
  pbfhogg repair --dry-run damaged.osm.pbf
  pbfhogg repair damaged.osm.pbf --from yesterday.osm.pbf --report report.json -o saved.osm.pbf")]
pub struct Args {
    /// The damaged file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Another file; objects whose ids may be lost come from there
    ///
    /// A path or an https:// address of a file in any format. If all that was lost can come from there, and both files
    /// follow the same server, the output has the replication state of the older of both, and `pbfhogg update` brings
    /// it up to date.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Write the report as JSON to REPORT, too
    #[arg(long, value_name = "REPORT")]
    report: Option<PathBuf>,
    /// Only say what could be saved, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Rule for text that is not UTF-8 or has control characters: replace these, or drop the tag, role or user name
    #[arg(long, value_name = "RULE", default_value = "replace")]
    utf8: Utf8,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The treatment of strings that are not UTF-8, or have characters that XML does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Utf8 {
    Replace,
    Drop,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    if args.dry_run && args.output.output.is_some() {
        bail!("--dry-run writes nothing: leave -o away");
    }
    if !args.dry_run && args.output.output.is_none() {
        bail!("say where the saved objects go (-o FILE), or ask for the report alone (--dry-run)");
    }
    let options = Options::new(&args.input, args.output.options(session)?)
        .dry_run(args.dry_run)
        .from(args.from.clone())
        .invalid_utf8(match args.utf8 {
            Utf8::Replace => InvalidUtf8::Replace,
            Utf8::Drop => InvalidUtf8::Drop,
        });
    let json = args.open_report_output(session, &options, &ctx)?;
    let report = repair::run(&options, &ctx)?;
    if let Some(mut json) = json {
        json.write(&(serde_json::to_string_pretty(&report)? + "\n"))?;
        json.finish()?;
    }
    let stdout = match Stdout::from(&options.output.target) {
        Stdout::Taken if !args.dry_run => Stdout::Taken,
        _ => Stdout::Answer,
    };
    session.report(&args.run, &ctx, &report, stdout, || text(&report, &options))?;
    Ok(CommandAnswer::yes_if(report.is_complete()))
}

impl Args {
    /// Opens the file of --report, which must differ from the other files of the command. An existing file is refused
    /// without --overwrite.
    fn open_report_output(
        &self,
        session: &Session,
        options: &Options,
        ctx: &Context,
    ) -> Result<Option<TextOutput>> {
        let Some(path) = &self.report else {
            return Ok(None);
        };
        let target = text_target(session, path, self.output.write.overwrite)?;
        let others = [
            Some(&self.input),
            self.from.as_ref(),
            self.output.output.as_ref(),
        ];
        let others: Vec<&Path> = others.into_iter().flatten().map(PathBuf::as_path).collect();
        OutputTarget::check_distinct(Some(&target), &others)?;
        if target.is_stream() && options.output.target.is_stream() && !options.dry_run {
            bail!("standard output has the saved objects: give the report a file");
        }
        Ok(Some(TextOutput::create(target, ctx)?))
    }
}

/// The maximum number of losses in the text of the report, and also the maximum number of mended blobs in it.
const LISTED: usize = 20;

/// Formats the report as text for people.
fn text(report: &Report, options: &Options) -> String {
    let mut out = input_report_text(report, &display_path(&options.input).to_string());
    let mut add = |line: String| out.extend([line.as_str(), "\n"]);
    if report.short_ways > 0 {
        let ways = show::counted(report.short_ways, "way");
        add(format!("{ways} with fewer than two nodes are kept"));
    }
    match (report.was_sorted, &report.written) {
        (true, _) => {}
        (false, None) => add("the objects are not in order".into()),
        (false, Some(_)) => {
            let duplicates = show::counted(report.duplicates, "duplicate");
            add(format!(
                "the objects were not in order: sorted, {duplicates} left out"
            ));
        }
    }
    if let Some(taken) = &report.from {
        let objects = show::counted(taken.objects, "object");
        add(format!("{objects} come from {}", taken.path.display()));
    }
    if let Some(written) = &report.written {
        let path = options.output.target.path().display();
        add(format!("{path}: {}", show::written(written)));
        if !report.is_complete() {
            next_steps(report).into_iter().for_each(add);
        }
    }
    out
}

/// Returns the part of the report about the input, whose name is `name`.
fn input_report_text(report: &Report, name: &str) -> String {
    let mut out = String::new();
    let mut add = |line: String| out.extend([line.as_str(), "\n"]);
    if let Some(format) = report.text {
        add(text_input_report_text(report, format, name));
        let changed = changes_text(&report.changes);
        if !changed.is_empty() {
            add(format!("  {}", changed.join(", ")));
        }
        return out;
    }
    if let Some(compression) = report.unpacked {
        add(if report.unpacked_in_part {
            format!("{name}: {compression}, damaged or cut: unpacked as far as it goes")
        } else {
            format!("{name}: unpacked with {compression}")
        });
    }
    match report.headers {
        0 => add(format!(
            "{name}: no header can be read; the output has a new one"
        )),
        1 => {}
        count => add(format!("{name}: {} files in one", show::number(count))),
    }
    if let Some(fault) = &report.header_fault {
        add(format!(
            "{name}: the header is saved from a damaged frame: {fault}"
        ));
    }
    let lost = report.lost.iter().filter(|loss| !loss.is_without_objects());
    let lost: Vec<&Loss> = lost.collect();
    add(format!(
        "{name}: {} whole, {} mended, {} lost",
        show::counted(report.whole_blobs, "blob"),
        show::number(report.mended.len() as u64),
        show::number(lost.len() as u64)
    ));
    let losses = report.lost.iter().map(loss_text);
    let mended = report.mended.iter().map(mended_blob_text);
    for line in losses.take(LISTED).chain(mended.take(LISTED)) {
        add(format!("  {line}"));
    }
    if let Some(objects) = lost.iter().map(|loss| loss.objects).sum::<Option<u64>>()
        && lost.len() > 1
    {
        add(format!(
            "  together {} are lost",
            show::counted(objects, "object")
        ));
    }
    let hidden = |count: usize| count.saturating_sub(LISTED) as u64;
    let more = hidden(report.lost.len()) + hidden(report.mended.len());
    if more > 0 {
        let more = show::number(more);
        add(format!("  and {more} more; --report has all"));
    }
    out
}

/// Returns the part of the report about an input in the text format `format`.
fn text_input_report_text(report: &Report, format: &str, name: &str) -> String {
    let Some(loss) = report.lost.first() else {
        let line = if report.ends_within_line {
            "; the last line has no line break at its end, and may be cut"
        } else {
            ""
        };
        return format!("{name}: {format}, not damaged{line}");
    };
    let ids: Vec<String> = loss.ids.iter().map(ids_text).collect();
    format!(
        "{name}: {format}, damaged at byte {}: {}\n  what stands before is saved, the rest is lost ({}): {}",
        loss.offset,
        loss.cause,
        show::bytes(loss.bytes),
        ids.join(", ")
    )
}

/// Returns the next steps for the user: how to get back lost objects, and how to bring the output up to date.
fn next_steps(report: &Report) -> Vec<String> {
    match (&report.from, report.keeps_replication) {
        (Some(_), true) => {
            let from = report.replication_sequence;
            let from = from.map_or(String::new(), |last| {
                format!(", with the changes after number {last}")
            });
            vec![format!("`pbfhogg update` brings it up to date{from}")]
        }
        (Some(_), false) => vec!["what came from the other file may be older".into()],
        (None, _) => {
            let state =
                "the replication state is left out: an update does not bring back what is lost";
            let state = report.had_replication.then(|| state.to_owned());
            let from = "--from takes what is lost from another file".to_owned();
            state.into_iter().chain([from]).collect()
        }
    }
}

fn loss_text(loss: &Loss) -> String {
    let place = match loss.blob {
        Some(number) => format!("blob {number} at byte {}", loss.offset),
        None => format!("{} at byte {}", show::bytes(loss.bytes), loss.offset),
    };
    let objects = match loss.objects {
        Some(0) => {
            return format!(
                "{place} belongs to no blob, and nothing is lost: {}",
                loss.cause
            );
        }
        Some(count) => format!(": {}", show::counted(count, "object")),
        None => String::new(),
    };
    let ids: Vec<String> = loss.ids.iter().map(ids_text).collect();
    format!(
        "{place} is lost: {}{objects}: {}",
        loss.cause,
        ids.join(", ")
    )
}

fn ids_text(ids: &LostIds) -> String {
    let kind = ids.kind.name();
    match (ids.first, ids.last) {
        (Some(first), Some(last)) if ids.is_exact => format!("{kind}s {first} to {last}"),
        (Some(first), Some(last)) => format!("{kind}s between {first} and {last}"),
        (Some(first), None) => format!("{kind}s from {first} on"),
        (None, Some(last)) => format!("{kind}s up to {last}"),
        (None, None) => format!("any {kind}s"),
    }
}

fn mended_blob_text(mended: &MendedBlob) -> String {
    let mut parts = vec![format!(
        "{} saved",
        show::counted(mended.changes.objects, "object")
    )];
    parts.extend(changes_text(&mended.changes));
    format!(
        "blob {} at byte {} is mended: {}: {}",
        mended.blob,
        mended.offset,
        mended.cause,
        parts.join(", ")
    )
}

/// Describes the objects and parts of objects that were left out or changed.
fn changes_text(changes: &Salvage) -> Vec<String> {
    let Salvage {
        unreadable,
        more_unreadable,
        outside,
        parts_dropped,
        texts_replaced,
        ..
    } = *changes;
    let counts = [
        (unreadable, "object", "unreadable"),
        (outside, "node", "beyond the earth left out"),
        (
            parts_dropped,
            "part",
            "(tags, roles, names, metadata) left out",
        ),
        (texts_replaced, "text", "changed"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let mut parts: Vec<String> = counts
        .map(|(count, what, change)| format!("{} {change}", show::counted(count, what)))
        .collect();
    if more_unreadable {
        parts.push("others unreadable".into());
    }
    parts
}
