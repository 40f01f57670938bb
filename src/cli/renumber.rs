use super::args::{KindArgs, OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::renumber::{self, Orphans, show_index};
use crate::osm::ObjectKind;
use anyhow::{Result, bail};
use std::fmt::Write;
use std::path::PathBuf;

/// Renumber objects without gaps, and update the references
///
/// Objects keep their order. Objects that are referred to but are not in the file get ids after all others. Never
/// upload the result to OpenStreetMap, and never apply changes to it, because the objects have different ids there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg renumber berlin.osm.pbf -o small-ids.osm.pbf
  pbfhogg renumber -s 1,1000,100000 berlin.osm.pbf -o small-ids.osm.pbf
  pbfhogg renumber -i map/ north.osm.pbf -o north-small-ids.osm.pbf
  pbfhogg renumber -i map/ south.osm.pbf -o south-small-ids.osm.pbf
  pbfhogg renumber -i map/ --show-index node")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "show_index")]
    input: Option<PathBuf>,
    /// First new id, or the first ones for nodes, ways and relations; negative ids count down [default: 1]
    #[arg(
        short,
        long,
        value_name = "ID[,ID,ID]",
        allow_negative_numbers = true,
        allow_hyphen_values = true
    )]
    start_id: Option<String>,
    /// Keep the map from old to new ids in DIR, which must exist, and continue a map that is already there
    ///
    /// The outputs of several runs with the same map fit together. A map without the file start_ids next to it is
    /// continued only with --overwrite.
    #[arg(short, long, value_name = "DIR")]
    index_directory: Option<PathBuf>,
    /// Print the old and the new ids of KIND in --index-directory, and exit
    #[arg(
        long,
        value_name = "KIND",
        requires = "index_directory",
        value_enum,
        hide_possible_values = true
    )]
    show_index: Option<ObjectKind>,
    /// How to treat references to objects that are not in the file
    ///
    /// assign gives these objects new ids. keep leaves the references unchanged, so they may then mean other objects.
    #[arg(long, value_name = "ACTION", default_value = "assign", value_enum)]
    orphans: OrphanAction,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The treatment of references to objects that are not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OrphanAction {
    Assign,
    Keep,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    if let (Some(kind), Some(directory)) = (args.show_index, &args.index_directory) {
        let mut text = String::new();
        show_index(directory, kind, |(old, new)| {
            let _ = writeln!(text, "{old} {new}");
        })?;
        return session.answer(&text);
    }
    let Some(input) = &args.input else {
        bail!("give an input file");
    };
    let ctx = args.run.context(session);
    let options = renumber::Options {
        input: input.clone(),
        output: args.output.options(session)?,
        kinds: args.kinds.kind_set(),
        start: args.start_id.as_deref().map(parse_starts).transpose()?,
        directory: args.index_directory.clone(),
        orphans: match args.orphans {
            OrphanAction::Assign => Orphans::Assign,
            OrphanAction::Keep => Orphans::Keep,
        },
        accepts_changes: session.conventions.filters_changes_as_data,
    };
    let summary = renumber::run(&options, &ctx)?;
    if summary.ambiguous > 0 {
        ctx.warn(format!(
            "{} to objects that are not in the file now mean others (--orphans assign prevents that)",
            show::counted(summary.ambiguous, "reference")
        ));
    }
    session.report_output(&args.run, &ctx, &summary, &options.output.target, || {
        format!(
            "{} numbered, {} of them not in the file; {}",
            show::kinds([summary.nodes, summary.ways, summary.relations]),
            show::number(summary.orphans),
            show::bytes(summary.written.bytes),
        )
    })
}

/// Parses `ID`, the first new id of all kinds, or `ID,ID,ID`, the first new ids of nodes, ways and relations. An id of
/// 0 is replaced with 1.
fn parse_starts(text: &str) -> Result<[i64; 3]> {
    let ids: Option<Vec<i64>> = text.split(',').map(|id| id.trim().parse().ok()).collect();
    let starts = match ids.as_deref() {
        Some([id]) => Some([*id; 3]),
        Some([nodes, ways, relations]) => Some([*nodes, *ways, *relations]),
        _ => None,
    };
    match starts {
        Some(starts) => Ok(starts.map(|id| if id == 0 { 1 } else { id })),
        None => bail!("--start-id {text}: expected an id, or three with commas between them"),
    }
}
