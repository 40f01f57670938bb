use super::args::{OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::repack;
use anyhow::Result;
use std::path::PathBuf;

/// Rewrite a file with another blob size, object order or compression
///
/// Small blobs make it faster to read a few objects; large blobs make the file smaller. Objects do not change, and
/// their order changes only with --layout.
///
/// With --layout hilbert, objects that are close to each other on the map are stored together. extract then reads only
/// the blobs around its regions: a town takes a tenth of a second, even from a file on a web server. The input has to
/// be sorted, and its ways have to contain the locations of their nodes. The output is not sorted by id, but has a
/// table of ids for getid and show; sort restores the usual order.
///
/// With --compression, all blobs with another compression are recompressed. Blobs do not record their level, so with a
/// level other than the default, all blobs are recompressed. Hardly any program except osmium reads lz4 and zstd, and
/// osm-pbf-parser, osm-read, osm4gpd and DuckDB do not read uncompressed blobs (none).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg repack --objects-per-blob 1000 berlin.osm.pbf -o for-lookups.osm.pbf
  pbfhogg repack many-small-blobs.osm.pbf -o usual.osm.pbf
  pbfhogg add-locations-to-ways -n berlin.osm.pbf -o located.osm.pbf &&
    pbfhogg repack --layout hilbert located.osm.pbf -o for-extracts.osm.pbf
  pbfhogg repack --compression zstd:9 planet.osm.pbf -o small.osm.pbf")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Number of objects per blob; fewer if they would exceed 4 MB
    #[arg(short = 'n', long, alias = "elements-per-blob", value_name = "N", default_value_t = 8000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    objects_per_blob: u32,
    /// Order of the objects of each kind; hilbert stores objects together that are close to each other
    #[arg(long, value_name = "LAYOUT", default_value = "unchanged")]
    layout: LayoutName,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LayoutName {
    Unchanged,
    Hilbert,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let options = repack::Options {
        input: args.input.clone(),
        output: args.output.options(session)?,
        objects_per_blob: args.objects_per_blob as usize,
        layout: match args.layout {
            LayoutName::Unchanged => repack::Layout::Unchanged,
            LayoutName::Hilbert => repack::Layout::Hilbert,
        },
    };
    let summary = repack::run(&options, &ctx)?;
    session.report_output(&args.run, &ctx, &summary, &options.output.target, || {
        let recompressed = match summary.blobs_recompressed {
            0 => String::new(),
            count => format!(", {} recompressed", show::number(count)),
        };
        format!(
            "{} ({} copied{recompressed})",
            show::written(&summary.written),
            show::number(summary.blobs_copied),
        )
    })
}
