use super::args::{OutputArgs, RunArgs, data_ending};
use super::session::Session;
use super::{CommandAnswer, show, wrong_files};
use crate::Context;
use crate::commands::merge_changes::{self, Options};
use crate::commands::sort::{self, Dedupe, LastChange};
use crate::engine::Format;
use crate::engine::input::context_with_streams;
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

/// Creates the context. Fails if -F names a format of data or of a history instead of a format of changes.
fn context(session: &Session, args: &Args) -> Result<Context> {
    if let Some(kind) = args.run.input_format {
        kind.check_changes(session, "-F")?;
    }
    Ok(args.run.context_for_changes(session))
}

/// Fails if the name of the output has the ending of a data or history file, unless -f gives the format. Under the
/// conventions of osmium, every name is accepted.
fn check_name(session: &Session, output: &OutputArgs) -> Result<()> {
    let format = output.write.output_format.as_ref();
    let is_stated = format.is_some_and(|spec| spec.kind.is_some());
    let Some(path) = output.output.as_deref().filter(|_| !is_stated) else {
        return Ok(());
    };
    match data_ending(path) {
        Some(ending) if !session.conventions.merges_data => bail!(
            "{}: merge-changes writes changes, but the name ends in .{ending}: name it .osc, .osc.opl or .osc.pbf, or \
             say the format with -f",
            path.display()
        ),
        _ => Ok(()),
    }
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let mut ctx = context(session, args)?;
    let output = args.output.options_for_changes(session)?;
    if !session.conventions.merges_data && !ctx.data_as_changes {
        ctx = context_with_streams(&args.inputs, ctx)?;
        let path = match &output.target {
            OutputTarget::File { path, .. } => Some(path.as_path()),
            _ => None,
        };
        if let Some(error) = wrong_files::merge_input_error(session, &args.inputs, path, &ctx) {
            return Err(error);
        }
    }
    check_name(session, &args.output)?;
    let generator = output.header.generator.clone();
    match output.format {
        Format::Text(text)
            if text.format == TextFormat::OsmChange && !session.conventions.sorts_changes =>
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
            session.report_output(&args.run, &ctx, &summary, &options.output, || {
                format!(
                    "{}; {}",
                    show::changes([summary.created, summary.modified, summary.deleted]),
                    show::bytes(summary.bytes),
                )
            })
        }
        _ => {
            let dedupe = if args.simplify {
                Dedupe::LastChange(LastChange {
                    of_extracts: args.of_extracts,
                    unversioned: session.conventions.unversioned_changes,
                })
            } else {
                Dedupe::KeepAll
            };
            let options = sort::Options::new(args.inputs.clone(), output)
                .dedupe(dedupe)
                .accepts_mixture(true)
                .changesets(session.conventions.sorts_changesets);
            super::sort::run_with(session, &options, &args.run, &ctx)
        }
    }
}
