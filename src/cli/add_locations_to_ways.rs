use super::args::{OutputArgs, RunArgs, parse_size};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::Context;
use crate::commands::add_locations_to_ways::{self, Summary};
use crate::commands::sort;
use crate::engine::{IndexType, OutputOptions};
use crate::error::Advice;
use crate::io::{OutputTarget, ScratchDirectory};
use crate::runtime::Disorder;
use anyhow::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Add the coordinates of nodes to the ways that contain them
///
/// From the result, programs can build geometries in one pass and without nodes. Nodes without tags are left out,
/// unless they are members of relations or --keep-untagged-nodes is given: the result is located, with the needed nodes
/// only, or located, with all nodes. `apply-changes --locations-on-ways` keeps the result up to date.
///
/// The location of a reference is that of the node. If the file does not have the node, a location that the way has
/// already stays; otherwise the location is unknown, and the reference is counted. So a second run loses nothing. Nodes
/// that were left out before cannot be brought back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg add-locations-to-ways berlin.osm.pbf -o berlin-located.osm.pbf
  pbfhogg add-locations-to-ways -n berlin.osm.pbf -o berlin-located.osm.pbf
  pbfhogg add-locations-to-ways --index-type external --max-memory 4G planet.osm.pbf -o located.osm.pbf

Index types:
  dense     an array by id, in memory: for files that use nearly all ids
  sparse    an array of the nodes in the file, in memory: about 8.2 bytes a node
  external  a join on disk, one range of ids after the other: any file in little memory, with temporary files of
            4 to 7 bytes a reference
  auto      dense or sparse if it fits into memory, else external; -v prints the choice and the reason
The index types of osmium are accepted. The result does not depend on the type.")]
pub struct Args {
    /// Input files; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "show_index_types")]
    inputs: Vec<PathBuf>,
    /// Print the index types, and exit
    #[arg(short = 'I', long)]
    show_index_types: bool,
    /// Index type for the locations: auto, dense, sparse or external
    #[arg(short, long, value_name = "TYPE", default_value = "auto", value_parser = parse_index_type)]
    index_type: IndexType,
    /// Keep nodes that have no tags and that no relation refers to
    #[arg(short = 'n', long)]
    keep_untagged_nodes: bool,
    /// Fail if the location of a node of a way stays unknown
    #[arg(long, conflicts_with = "ignore_missing_nodes")]
    strict: bool,
    /// Directory for temporary files [default: the directory of the output]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Maximum memory, such as 8G [default: four fifths of the available memory, at most 7G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_memory: Option<u64>,
    /// Approximate number of id ranges of an external join [default: as few as --max-memory allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ranges: Option<u64>,
    /// Keep untagged nodes that are members of relations; the default, except under the name osmium
    #[arg(long, hide = true)]
    keep_member_nodes: bool,
    #[arg(long, hide = true)]
    ignore_missing_nodes: bool,
    #[arg(long, hide = true, value_parser = parse_index_type)]
    index_type_neg: Option<IndexType>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let conventions = session.conventions;
    if args.show_index_types {
        return session.answer(conventions.index_types);
    }
    let ctx = args.run.context(session);
    let joined = Joined::join(session, &args.inputs, args.temp_dir.as_deref(), &ctx)?;
    let options = add_locations_to_ways::Options {
        input: joined.path.clone(),
        output: args.output.options(session)?.with_way_locations(),
        index_type: args.index_type,
        keep_untagged_nodes: args.keep_untagged_nodes,
        keep_member_nodes: args.keep_member_nodes || conventions.keeps_member_nodes,
        strict: args.strict,
        needs_nodes: conventions.needs_all_nodes && !args.ignore_missing_nodes,
        temp_dir: args.temp_dir.clone(),
        max_memory: args.max_memory,
        ranges: args.ranges,
    };
    // Missing nodes are an error if `--strict` is given. Under the name osmium, they are also an error unless
    // `--ignore-missing-nodes` is given.
    let advice = if args.strict {
        Advice::NotStrict
    } else {
        Advice::IgnoreMissingNodes
    };
    let summary = add_locations_to_ways::run(&options, &ctx);
    let summary = summary.map_err(|error| error.advise_on_lack(advice))?;
    if summary.missing_references > 0 {
        ctx.warn(format!(
            "{} to {} that are not in the file or have no location",
            show::counted(summary.missing_references, "reference"),
            show::counted(summary.missing_nodes, "node"),
        ));
    }
    if args.keep_untagged_nodes && summary.stored_references > 0 {
        ctx.warn(format!(
            "{} to nodes that are not in the file keep the location that the way has: --keep-untagged-nodes cannot \
             bring these nodes back",
            show::counted(summary.stored_references, "reference"),
        ));
    }
    session.report(&args.run, &ctx, &summary, &options.output.target, || {
        report(&options.output.target, &summary)
    })
}

/// The input of the command: the only file given, or a temporary file with the objects of all files.
struct Joined {
    path: PathBuf,
    /// The directory of the temporary file. Dropping this field removes the directory.
    _directory: Option<ScratchDirectory>,
}

impl Joined {
    /// Returns the only input, or joins all inputs in a temporary file.
    fn join(
        session: &Session,
        inputs: &[PathBuf],
        temp_dir: Option<&Path>,
        ctx: &Context,
    ) -> Result<Self> {
        if let [path] = inputs {
            return Ok(Self {
                path: path.clone(),
                _directory: None,
            });
        }
        let directory = ScratchDirectory::create(temp_dir)?;
        let path = directory.path().join("joined.osm.pbf");
        let output = OutputOptions::file(&path);
        // Files of neighbouring regions share objects. Under the conventions of osmium, all copies of such an object
        // are kept.
        let dedupe = match ctx.disorder {
            Disorder::Refuse => sort::Dedupe::KeepAll,
            Disorder::Accept | Disorder::Tell { .. } => sort::Dedupe::HighestVersion,
        };
        let options = sort::Options::new(inputs.to_owned(), output)
            .dedupe(dedupe)
            .accepts_mixture(session.conventions.merges_data);
        sort::run(&options, ctx)?;
        Ok(Self {
            path,
            _directory: Some(directory),
        })
    }
}

fn report(output: &OutputTarget, summary: &Summary) -> String {
    let written = &summary.kept.written;
    let mut out = format!(
        "{}: {} with {}, {}; {}\n",
        output.path().display(),
        show::counted(summary.ways, "way"),
        show::counted(summary.references, "reference"),
        show::objects(written.objects),
        show::bytes(written.bytes),
    );
    if summary.stored_references > 0 {
        let _ = writeln!(
            out,
            "  {} to nodes that are not in the file: the locations that the ways had stay",
            show::counted(summary.stored_references, "reference"),
        );
    }
    if let Some(scratch) = &summary.scratch {
        let _ = writeln!(
            out,
            "  joined in {}: {} of temporary files, {:.1} bytes a reference",
            show::counted(scratch.partitions, "range"),
            show::bytes(scratch.bytes),
            scratch.bytes_per_reference,
        );
    }
    out
}

/// Parses the name of an index type. Also accepts the names that osmium uses, and ignores a file name after a comma.
pub fn parse_index_type(text: &str) -> Result<IndexType, String> {
    let (name, _) = text.split_once(',').unwrap_or((text, ""));
    match name {
        "auto" | "flex_mem" => Ok(IndexType::Auto),
        "dense" => Ok(IndexType::Dense),
        "sparse" => Ok(IndexType::Sparse),
        "external" => Ok(IndexType::External),
        _ if name.starts_with("dense_") => Ok(IndexType::Dense),
        _ if name.starts_with("sparse_") => Ok(IndexType::Sparse),
        _ => Err("expected auto, dense, sparse or external".into()),
    }
}
