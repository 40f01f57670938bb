use super::args::{RunArgs, names_changes, text_target};
use super::{Answer, show};
use crate::commands::merge_changes::{self, Options};
use crate::formats::TextCompression;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Merge change files into one
///
/// Changes are written in the order of the files, so the result can be applied like the files one after the other. With
/// --simplify only the last change of each object is written, in canonical order. The result has the replication state
/// of the last file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg merge-changes -s monday.osc.gz tuesday.osc.gz -o two-days.osc.gz
  pbfhogg merge-changes minutes/*.osc.gz -o hour.osc.zst")]
pub struct Args {
    /// Change files, the oldest first; - is standard input
    #[arg(required = true, value_name = "CHANGES")]
    inputs: Vec<PathBuf>,
    /// Keep only the last change of each object: the highest version, or the latest time of equal versions
    #[arg(short, long)]
    simplify: bool,
    /// Output file, compressed where its name ends in .gz, .bz2 or .zst; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(short = 'O', long)]
    overwrite: bool,
    /// Format of the output if its name does not show it
    #[arg(short = 'f', long, value_name = "FORMAT", value_enum)]
    output_format: Option<OutputFormat>,
    /// Name of the writing program
    #[arg(long, value_name = "TEXT")]
    generator: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

/// The name of a format of change files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    Osc,
    #[value(name = "osc.gz")]
    OscGz,
    #[value(name = "osc.bz2")]
    OscBz2,
    #[value(name = "osc.zst")]
    OscZst,
}

pub fn run(args: &Args) -> Result<Answer> {
    let ctx = args.run.context();
    let options = Options {
        inputs: args.inputs.clone(),
        output: text_target(&args.output, args.overwrite),
        compression: compression(args)?,
        simplify: args.simplify,
        generator: args.generator.clone(),
    };
    let summary = merge_changes::run(&options, &ctx)?;
    args.run.report(&ctx, &summary, &options.output, || {
        format!(
            "{}: {} created, {} modified, {} deleted; {}\n",
            args.output.display(),
            show::number(summary.created),
            show::number(summary.modified),
            show::number(summary.deleted),
            show::bytes(summary.bytes),
        )
    })
}

fn compression(args: &Args) -> Result<TextCompression> {
    match &args.output_format {
        Some(format) => Ok(match format {
            OutputFormat::Osc => TextCompression::None,
            OutputFormat::OscGz => TextCompression::Gzip,
            OutputFormat::OscBz2 => TextCompression::Bzip2,
            OutputFormat::OscZst => TextCompression::Zstd,
        }),
        None if args.output == Path::new("-") || names_changes(&args.output) => {
            Ok(TextCompression::of_name(&args.output))
        }
        None => bail!(
            "{}: the output is a change file: name it .osc, .osc.gz, .osc.bz2 or .osc.zst, or say so with -f",
            args.output.display()
        ),
    }
}
