mod hints;

use super::args::{ExpressionArgs, OutputArgs, RunArgs};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::Context;
use crate::commands::tags_filter::{self, Options, changes};
use crate::engine::changesets::warn_of_left_out_changesets;
use crate::engine::input_content::OpenedInput;
use crate::file::PbfFile;
use crate::formats::FileContent;
use crate::io::Input;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Keep objects with certain tags or metadata, and the objects they refer to
///
/// An object is kept if any of the expressions matches it. Unless -R is given, the members of kept relations and the
/// nodes of kept ways are kept, too, recursively.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg tags-filter berlin.osm.pbf w/highway -o streets.osm.pbf
  pbfhogg tags-filter -R berlin.osm.pbf n/amenity=pub,bar 'n/addr:*' -o places.osm.pbf
  pbfhogg tags-filter berlin.osm.pbf a/building -t -o buildings.osm.pbf
  pbfhogg tags-filter -i -R berlin.osm.pbf 'note*' -o without-notes.osm.pbf
  pbfhogg tags-filter -R berlin.osm.pbf 'nwr/shop @timestamp>=2024' -f opl

Expressions:
  highway               any object with the key highway
  n/amenity=pub,bar     nodes with one of these values
  wr/highway!=primary   ways and relations with another value
  w/highway=primary&lanes=2
                        both tags; in a value, & is written \\&, or just & where no operator follows
  name~^(St|Saint)      a value that matches a regular expression; !~ for one that does not
  name=*Paris           a value that contains Paris; addr:* for a key that begins with addr:
  a/building            closed ways of four nodes or more, multipolygons and boundaries
  r/type=multipolygon   relations of this type
  w/highway&!name       no tag with the key name; n/!* for nodes without tags
  @version>1            a condition on id, version, timestamp, changeset, uid or user, with = != <
                        <= > or >=; an object without the attribute does not match
  @timestamp=2024-05    a time is a year, a month, a day, a minute or a second
  @user=ann,bob         one of these users; * works as in values
  w/highway @version>1 @uid!=5
                        all of these: a tag, then conditions, separated by spaces

Of several expressions, at least one has to match. A warning is printed if nothing is kept.

What is kept:
           objects that match   others   objects that the kept ones refer to
  default  yes                  no       yes
  -t       yes                  no       yes, without tags
  -R       yes                  no       no
  -i       no                   yes      yes
  -i -R    no                   yes      no")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    expressions: ExpressionArgs,
    /// Keep the objects that no expression matches
    #[arg(short = 'i', long)]
    invert_match: bool,
    /// Do not add the objects that the kept ones refer to
    #[arg(short = 'R', long)]
    omit_referenced: bool,
    /// Remove the tags of objects that are included only because others refer to them
    #[arg(short = 't', long)]
    remove_tags: bool,
    /// Kind of the input: pbf for data, or osc for a change file [default: by the content of the input]
    ///
    /// A change file is filtered into a change file. All deletions are kept, because they lack the tags of the object.
    /// An object that loses the tag is left out: where the output is applied, it stays in the base.
    #[arg(long, value_name = "KIND", value_enum, hide_possible_values = true)]
    input_kind: Option<FilteredInput>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The kind of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FilteredInput {
    Pbf,
    Osc,
}

impl Args {
    /// Returns the content of the input if the options or the conventions determine it.
    fn content(&self, session: &Session) -> Option<FileContent> {
        match self.input_kind {
            Some(FilteredInput::Osc) => Some(FileContent::Changes),
            Some(FilteredInput::Pbf) => Some(FileContent::Data),
            None if session.conventions.filters_changes_as_data => Some(FileContent::Data),
            None => None,
        }
    }
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context_for_changes(session);
    let expressions = args.expressions.parse(session)?;
    if expressions.is_empty() && !session.conventions.filters_changes_as_data {
        bail!("no expression was given: say what to keep, like w/highway, or -e FILE");
    }
    let content = args.content(session);
    let (input, output) = args
        .output
        .open_input(session, &args.input, content, &ctx)?;
    let options = Options {
        input: args.input.clone(),
        expressions,
        invert: args.invert_match,
        omit_referenced: args.omit_referenced,
        remove_tags: args.remove_tags,
        output,
    };
    match input {
        OpenedInput::Changes(input) => filter_changes(session, args, &input, &options, &ctx),
        OpenedInput::Objects(file) => filter_data(session, args, &file, &options, &ctx),
    }
}

fn filter_data(
    session: &Session,
    args: &Args,
    file: &PbfFile,
    options: &Options,
    ctx: &Context,
) -> Result<CommandAnswer> {
    warn_of_left_out_changesets(file, ctx);
    let summary = tags_filter::filter(file, options, ctx)?;
    if summary.kept.written.objects == Some(0) {
        warn_nothing_kept(args, options, summary.has_keys, ctx);
    } else if let Some(note) = hints::hint_about_separate_tags(args.expressions.texts()) {
        ctx.info(note);
    }
    session.report_output(&args.run, ctx, &summary, &options.output.target, || {
        let written = summary.kept.written.objects.unwrap_or(0);
        let referenced = show::number(written.saturating_sub(summary.matched));
        let more = match (options.omit_referenced, summary.missing) {
            (true, _) => String::new(),
            (false, 0) => format!(" that match, {referenced} that they refer to"),
            (false, missing) => format!(
                " that match, {referenced} that they refer to ({} are missing)",
                show::number(missing)
            ),
        };
        format!(
            "{}{more}, {}",
            show::counted(summary.matched, "object"),
            show::bytes(summary.kept.written.bytes),
        )
    })
}

/// Warns that no object is kept, and gives the likely reason.
fn warn_nothing_kept(args: &Args, options: &Options, has_keys: Option<bool>, ctx: &Context) {
    let (expressions, texts) = (&options.expressions, args.expressions.texts());
    ctx.warn(format!(
        "{}: {}",
        options.output.target.path().display(),
        hints::why_nothing_is_kept(expressions, texts, options.invert, has_keys)
    ));
}

fn filter_changes(
    session: &Session,
    args: &Args,
    input: &Input,
    options: &Options,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let summary = changes::filter(input, options, ctx)?;
    if summary.matched == 0 {
        warn_nothing_kept(args, options, None, ctx);
    }
    session.report_output(&args.run, ctx, &summary, &options.output.target, || {
        format!(
            "{} that match, {} that they refer to, {}; {} left out",
            show::counted(summary.matched, "change"),
            show::number(summary.referenced),
            show::counted(summary.deleted, "deletion"),
            show::number(summary.dropped),
        )
    })
}
