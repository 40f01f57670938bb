use super::args::{IdArgs, OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::getid;
use crate::error::display_path;
use crate::index::IdSets;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Get the objects with certain ids, or all others
///
/// Writes all versions of each object, in the order of the file. Exit status 1 if some objects were not found.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg getid berlin.osm.pbf n17 w42 r111 -o some.osm.pbf
  pbfhogg getid -r berlin.osm.pbf r62422 -o boundary.osm.pbf
  pbfhogg getid -i ids.txt berlin.osm.pbf -o some.osm.pbf
  pbfhogg getid -r --add-parents berlin.osm.pbf w42 -o way-and-routes.osm.pbf
  pbfhogg getid -i table.csv berlin.osm.pbf -o some.osm.pbf
  pbfhogg getid --invert berlin.osm.pbf n17 -o without.osm.pbf")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    ids: IdArgs,
    /// Keep everything except these objects (same as the command removeid)
    #[arg(long, conflicts_with_all = ["add_referenced", "add_parents", "remove_tags"])]
    invert: bool,
    /// Also get the objects that these refer to, recursively: members of relations, nodes of ways
    #[arg(short = 'r', long)]
    add_referenced: bool,
    /// Also get the ways and relations that refer to these objects, recursively
    #[arg(long)]
    add_parents: bool,
    /// Remove the tags of objects that are included only because others refer to them
    #[arg(short = 't', long)]
    remove_tags: bool,
    /// Accept a history file: keep all versions, and exit with status 0 even if ids are not found
    #[arg(short = 'H', long, visible_alias = "with-history")]
    history: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args, invert: bool) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let invert = invert || args.invert;
    if invert && (args.add_referenced || args.add_parents) {
        bail!(
            "--add-referenced and --add-parents cannot be combined with --invert: they add to the objects that are kept"
        );
    }
    let options = getid::Options {
        input: args.input.clone(),
        ids: args.ids.source()?,
        invert,
        add_referenced: args.add_referenced,
        add_parents: args.add_parents,
        remove_tags: args.remove_tags,
        needs_nodes: session.conventions.needs_all_nodes,
        output: args.output.options(session)?,
    };
    if args.remove_tags && !args.add_referenced {
        session.print_to_stderr(
            "warning: --remove-tags (-t) has no effect without --add-referenced (-r)\n",
        );
    }
    let summary = getid::run(&options, &ctx)?;
    args.ids.print(session, "asked for", &summary.wanted);
    args.ids.print(session, "not found:", &summary.missing);
    let complete = summary.missing.is_empty() || invert || args.history;
    if !complete && !args.ids.verbose_ids {
        let missing = missing_ids_message(&summary.missing);
        ctx.warn(format!("{}: {missing}", display_path(&args.input)));
    }
    session.report_output(&args.run, &ctx, &summary, &options.output.target, || {
        show::objects_and_size(&summary.kept.written)
    })?;
    Ok(CommandAnswer::yes_if(complete))
}

/// Returns a message with the number of objects that were not found, and the first few of their ids.
fn missing_ids_message(ids: &IdSets) -> String {
    const SHOWN: usize = 5;
    let first: Vec<String> = ids.ids().take(SHOWN).map(|id| id.to_string()).collect();
    let more = if ids.len() > SHOWN as u64 { " …" } else { "" };
    format!(
        "{} not found: {}{more}",
        show::number(ids.len()),
        first.join(" ")
    )
}
