mod rule_args;

use super::args::{OutputArgs, RunArgs, Stdout};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::Context;
use crate::commands::tags_edit::{
    self, Effects, Options, RegionTag, TagAction, TagEdits, TagRule, TagTable, changes,
};
use crate::engine::changesets::{can_hold_changesets, warn_of_left_out_changesets};
use crate::engine::input_content::{OpenedInput, open_by_content};
use crate::file::{PbfFile, WriteOptions};
use crate::io::Input;
use crate::region_file::read_shape;
use anyhow::{Result, anyhow, bail};
use rule_args::RuleArgs;
pub use rule_args::read_rules;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Change the tags of objects by rules
///
/// Rules apply in the order in which they are given. Ids, versions, metadata, order and locations stay. Blobs that no
/// rule concerns are copied. A change file as input gives a change file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg tags-edit berlin.osm.pbf --drop 'source,created_by,tiger:*' -o slim.osm.pbf
  pbfhogg tags-edit berlin.osm.pbf --keep-on 'w/highway=*:name,ref,highway,oneway' -o roads.osm.pbf
  pbfhogg tags-edit berlin.osm.pbf -e rules.txt --dry-run
  pbfhogg tags-edit 004.osc.gz -e rules.txt -o 004-slim.osc.gz

Rules, one per line in a file, with # for comments:
  drop KEYS                 remove the tags with these keys
  keep KEYS                 remove all other tags
  set KEY=VALUE             give the key this value, whether the object has the key or not
  default KEY=VALUE         give the key this value if the object does not have the key
  rename OLD NEW            replace a key
  copy KEY NEW              give NEW the value of KEY
  replace KEYS ~REGEX TEXT  replace each match in the values; $1 in TEXT is the first group,
                            and \"\" is no text; a tag with an empty value is removed
  EXPRESSION: RULE          the same for the objects that match, as in tags-filter

KEYS are keys with commas between them; as in tags-filter, addr:* begins with addr:, and *name
contains name. A key with a comma, * or spaces at its ends, and a text with spaces at its ends, are
written in quotation marks. An error names the object to which a
rule would give a key twice, or a value with more than 255 characters.")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    rules: RuleArgs,
    /// Give the objects in a region this tag, before all rules; repeatable
    ///
    /// FILE is GeoJSON, .poly or OSM data. In the region are nodes in it, ways with a node in it, and relations with
    /// such a node or way as a member.
    #[arg(long, value_name = "FILE:KEY=VALUE")]
    within: Vec<String>,
    /// Change the tags of single objects, after all rules: CSV with the columns type, id, key and value
    ///
    /// An empty value removes the tag.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Leave out objects without tags, unless objects with tags refer to them
    #[arg(long)]
    drop_untagged: bool,
    /// Only print how many objects each rule changes, with examples
    #[arg(long, conflicts_with_all = ["output", "drop_untagged"])]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl Args {
    fn parse_edits(&self) -> Result<TagEdits> {
        let mut edits = TagEdits::new(self.rules.parse()?);
        for text in &self.within {
            edits.regions.push(parse_region_tag(text)?);
        }
        edits.table = self.table.as_deref().map(TagTable::read).transpose()?;
        if edits.is_empty() && !self.drop_untagged {
            bail!("no rule was given: say what to change, like --drop source, or -e FILE");
        }
        Ok(edits)
    }
}

/// Parses `FILE:KEY=VALUE`, and reads the region. Both the path and the key may contain colons. The path ends at the
/// last colon that follows the path of an existing file, or at the first colon if there is no such file.
fn parse_region_tag(text: &str) -> Result<RegionTag> {
    let expected = || anyhow!("--within {text}: expected FILE:KEY=VALUE");
    let end = text.find('=').ok_or_else(expected)?;
    let colons = text[..end].match_indices(':').map(|(at, _)| at);
    let first = colons.clone().next().ok_or_else(expected)?;
    let mut colons = colons.rev();
    let colon = colons.find(|at| Path::new(&text[..*at]).exists());
    let (path, tag) = text.split_at(colon.unwrap_or(first));
    let rule = TagRule::parse(&format!("set {}", &tag[1..]));
    let rule = rule.map_err(|cause| anyhow!("--within {text}: {cause}"))?;
    let TagAction::Set(key, value) = rule.action else {
        return Err(expected());
    };
    Ok(RegionTag {
        shape: read_shape(Path::new(path), None)?,
        name: path.to_owned(),
        key,
        value,
    })
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context_for_changes(session);
    let edits = args.parse_edits()?;
    if args.dry_run {
        return preview(session, args, &edits, &ctx);
    }
    let (input, output) = args.output.open_input(session, &args.input, None, &ctx)?;
    let options = Options::new(&args.input, edits, output).drop_untagged(args.drop_untagged);
    match input {
        OpenedInput::Changes(input) => edit_changes(session, args, &input, &options, &ctx),
        OpenedInput::Objects(file) => edit_data(session, args, &file, &options, &ctx),
    }
}

fn edit_data(
    session: &Session,
    args: &Args,
    file: &PbfFile,
    options: &Options,
    ctx: &Context,
) -> Result<CommandAnswer> {
    if options.drop_untagged || !can_hold_changesets(&options.output) {
        warn_of_left_out_changesets(file, ctx);
    }
    let summary = tags_edit::edit(file, options, ctx)?;
    let target = &options.output.target;
    warn_if_no_effect(options, &summary.effects, ctx);
    session.report_output(&args.run, ctx, &summary, target, || {
        format!(
            "{} edited; {}",
            show::counted(summary.effects.edited, "object"),
            show::written(&summary.output.written),
        )
    })
}

fn edit_changes(
    session: &Session,
    args: &Args,
    input: &Input,
    options: &Options,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let summary = changes::edit(input, options, ctx)?;
    let target = &options.output.target;
    session.report_output(&args.run, ctx, &summary, target, || {
        let output = &summary.output;
        format!(
            "{} edited of {}, {}",
            show::number(summary.effects.edited),
            show::counted(output.created + output.modified + output.deleted, "change"),
            show::bytes(output.bytes),
        )
    })
}

/// Warns if the rules change no object. This is not called for a change file, because it is normal that the rules
/// concern none of its objects.
fn warn_if_no_effect(options: &Options, effects: &Effects, ctx: &Context) {
    if effects.edited == 0 && !options.edits.is_empty() {
        ctx.warn(format!(
            "{}: no rule changes any object",
            options.output.target.path().display()
        ));
    }
}

/// Prints the effect of each rule.
fn preview(
    session: &Session,
    args: &Args,
    edits: &TagEdits,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let effects = match open_by_content(&args.input, None, &WriteOptions::default(), ctx)? {
        OpenedInput::Changes(input) => changes::preview_of(&input, edits, ctx)?,
        OpenedInput::Objects(file) => tags_edit::preview_of(&file, edits, ctx)?,
    };
    session.report(&args.run, ctx, &effects, Stdout::Answer, || table(&effects))
}

/// Formats the effect of each rule as a line of a table.
fn table(effects: &Effects) -> String {
    let widest = effects
        .rules
        .iter()
        .map(|one| one.rule.chars().count())
        .max();
    let width = widest.unwrap_or(0).clamp(4, 60);
    let mut out = format!("{:>12}  {:<width$}  examples\n", "objects", "rule");
    for one in &effects.rules {
        let line = format!(
            "{:>12}  {:<width$}  {}",
            show::number(one.objects),
            one.rule,
            one.examples.join(" ")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out, "{:>12}  objects in all", show::number(effects.edited));
    out
}
