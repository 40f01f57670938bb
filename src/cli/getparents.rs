use super::args::{IdArgs, OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::getparents;
use anyhow::Result;
use std::path::PathBuf;

/// Get the ways and relations that refer to certain objects
///
/// Writes the ways that contain one of the nodes, and the relations that have one of the objects as a member, but not
/// the parents of these ways and relations.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg getparents berlin.osm.pbf n1234 w42 -o parents.osm.pbf
  pbfhogg getparents --add-self -i ids.txt berlin.osm.pbf -o parents.osm.pbf")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    ids: IdArgs,
    /// Also get the objects themselves
    #[arg(short = 's', long)]
    add_self: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let options = getparents::Options {
        input: args.input.clone(),
        ids: args.ids.source()?,
        add_self: args.add_self,
        output: args.output.options(session)?,
    };
    let summary = getparents::run(&options, &ctx)?;
    args.ids.print(session, "asked for", &summary.wanted);
    session.report_output(&args.run, &ctx, &summary, &options.output.target, || {
        show::objects_and_size(&summary.kept.written)
    })
}
