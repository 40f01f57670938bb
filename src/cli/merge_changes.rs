use super::args::{OutputArgs, RunArgs, data_ending};
use super::conventions::Conventions;
use super::{Answer, show, wrong_files};
use crate::Context;
use crate::commands::merge_changes::{self, Options};
use crate::commands::sort::{self, Dedupe, LastChange};
use crate::engine::Format;
use crate::engine::input::with_streams;
use crate::formats::TextFormat;
use crate::io::OutputTarget;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Merge change files into one
///
/// Change files are OsmChange, o5c, OPL or PBF. Changes are written in the order of the files, so applying the result
/// is the same as applying the files one after the other. With --simplify, only the last change of each object is
/// written, in canonical order. The result has the replication state of the last file. In a format other than
/// OsmChange, all changes are written in canonical order.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg merge-changes -s monday.osc.gz tuesday.osc.gz -o two-days.osc.gz
  pbfhogg merge-changes minutes/*.osc.gz -o hour.osc.zst")]
pub struct Args {
    /// Change files, oldest first; - is standard input
    #[arg(required = true, value_name = "CHANGES")]
    inputs: Vec<PathBuf>,
    /// Keep only the last change of each object
    ///
    /// This is the change with the highest version. If versions are equal, it is the one with the latest timestamp, and
    /// if timestamps are equal, too, the last one in the order of the files.
    #[arg(short, long)]
    simplify: bool,
    /// With -s: the change files cover the same period for several extracts, so their order is ignored
    ///
    /// An object that left one extract and entered another with the same version still exists.
    #[arg(long, requires = "simplify")]
    of_extracts: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Creates the context. Fails if -F is a format of data or of a history.
fn context(args: &Args) -> Result<Context> {
    if let Some(kind) = args.run.input_format {
        kind.check_changes("-F")?;
    }
    let mut ctx = args.run.context();
    ctx.change_format = ctx.input_format;
    ctx.data_as_changes = ctx.input_is_change;
    Ok(ctx)
}

/// Fails if the name of the output, without -f, stands for data or a history. Under the conventions of osmium, every
/// name is accepted.
fn check_name(output: &OutputArgs) -> Result<()> {
    let format = output.write.output_format.as_ref();
    let is_stated = format.is_some_and(|spec| spec.kind.is_some());
    let Some(path) = output.output.as_deref().filter(|_| !is_stated) else {
        return Ok(());
    };
    match data_ending(path) {
        Some(ending) if !Conventions::current().merges_data => bail!(
            "{}: merge-changes writes changes, but the name ends in .{ending}: name it .osc, .osc.opl or .osc.pbf, or \
             say the format with -f",
            path.display()
        ),
        _ => Ok(()),
    }
}

pub fn run(args: &Args) -> Result<Answer> {
    let mut ctx = context(args)?;
    let output = args.output.changes()?;
    if !Conventions::current().merges_data && !ctx.data_as_changes {
        ctx = with_streams(&args.inputs, ctx)?;
        let path = match &output.target {
            OutputTarget::File { path, .. } => Some(path.as_path()),
            _ => None,
        };
        if let Some(error) = wrong_files::of_merge(&args.inputs, path, &ctx) {
            return Err(error);
        }
    }
    check_name(&args.output)?;
    let generator = output.header.generator.clone();
    match output.format {
        Format::Text(text)
            if text.format == TextFormat::OsmChange && !Conventions::current().sorts_changes =>
        {
            let options = Options {
                inputs: args.inputs.clone(),
                output: output.target,
                compression: text.compression,
                simplify: args.simplify,
                of_extracts: args.of_extracts,
                generator,
            };
            let summary = merge_changes::run(&options, &ctx)?;
            args.run.report(&ctx, &summary, &options.output, || {
                format!(
                    "{}: {} created, {} modified, {} deleted; {}\n",
                    options.output.path().display(),
                    show::number(summary.created),
                    show::number(summary.modified),
                    show::number(summary.deleted),
                    show::bytes(summary.bytes),
                )
            })
        }
        _ => {
            let dedupe = if args.simplify {
                Dedupe::LastChange(LastChange {
                    of_extracts: args.of_extracts,
                    unversioned: Conventions::current().unversioned_changes,
                })
            } else {
                Dedupe::KeepAll
            };
            let options = sort::Options::new(args.inputs.clone(), output)
                .dedupe(dedupe)
                .accepts_mixture(true)
                .changesets(Conventions::current().sorts_changesets);
            super::sort::run_with(&options, &args.run, &ctx)
        }
    }
}
