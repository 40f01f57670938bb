use super::args::{FormatSpec, OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::locations_index::{self, Options};
use crate::engine::Format;
use crate::pbf::InfoFields;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Write the locations of all nodes to an index file
///
/// The index has 8 bytes for each id up to the largest, which is more than 100 GB for a planet. osmium and osm2pgsql
/// (flatnodes) read and write the same format.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg create-locations-index -i nodes.idx berlin.osm.pbf
  pbfhogg create-locations-index --update -i nodes.idx day.osc.gz
  pbfhogg query-locations-index -i nodes.idx 17")]
pub struct CreateArgs {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Index file
    #[arg(short, long, value_name = "INDEX")]
    index_file: PathBuf,
    /// Update an existing index in place
    #[arg(short, long)]
    update: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// Print the location of a node from an index file, or write all locations
///
/// Exit status 1 if the index has no location for the node.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg query-locations-index -i nodes.idx 17
  pbfhogg query-locations-index -i nodes.idx --dump -o nodes.osm.pbf")]
pub struct QueryArgs {
    /// Id of the node
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Index file
    #[arg(short, long, value_name = "INDEX")]
    index_file: PathBuf,
    /// Write a node for each location, as OPL unless -o or -f gives another format
    #[arg(long)]
    dump: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn create(session: &Session, args: &CreateArgs) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let options = Options::new(&args.input, &args.index_file).update(args.update);
    let summary = locations_index::create(&options, &ctx)?;
    if summary.negative > 0 {
        ctx.warn(format!(
            "{} with negative ids left out: the index has no place for them",
            show::counted(summary.negative, "node")
        ));
    }
    session.report(&args.run, &ctx, &summary, super::args::Stdout::Free, || {
        format!(
            "{}: {}, {}\n",
            args.index_file.display(),
            show::counted(summary.nodes, "node"),
            show::bytes(summary.bytes)
        )
    })
}

pub fn query(session: &Session, args: &QueryArgs) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    match (&args.id, args.dump) {
        (Some(_), true) => bail!("give an id or --dump, not both"),
        (None, false) => bail!("give the id of a node, or --dump"),
        (Some(text), false) => {
            let Ok(id) = text.parse::<u64>() else {
                bail!("'{text}' is not the id of a node: expected a number that is not negative");
            };
            match locations_index::query(&args.index_file, id)? {
                Some(location) => {
                    let lon = crate::osm::format_e7(location.lon_e7());
                    let lat = crate::osm::format_e7(location.lat_e7());
                    session.answer(&format!("({lon},{lat})\n"))
                }
                None => {
                    session.print_to_stderr(&format!("id {id} not found\n"));
                    Ok(CommandAnswer::No)
                }
            }
        }
        (None, true) => dump(session, args, &ctx),
    }
}

fn dump(session: &Session, args: &QueryArgs, ctx: &crate::Context) -> Result<CommandAnswer> {
    let mut output = args.output.options_or(session, &FormatSpec::opl())?;
    // An index stores no metadata, so the output has no metadata attributes unless `add_metadata` is given.
    let is_asked = args.output.write.output_format.as_ref();
    if !is_asked.is_some_and(|spec| spec.has_option("add_metadata")) {
        match &mut output.format {
            Format::Text(text) => text.without = InfoFields::ALL,
            Format::Pbf => output.write.without = InfoFields::ALL,
        }
    }
    let target = output.target.clone();
    let written = locations_index::dump(&args.index_file, output, ctx)?;
    session.report_output(&args.run, ctx, &written, &target, || {
        show::written(&written)
    })
}
