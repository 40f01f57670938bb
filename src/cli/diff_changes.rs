//! The parts of `diff` that come from the augmented diff of two files: the objects of a region or with a tag, changes
//! as features and tables, and changes by user or by changeset.

use super::args::{RegionArgs, RunArgs, Stdout, is_stdout, text_target};
use super::augmented_diff::{DiffFormArg, single_file_output};
use super::session::Session;
use super::{CommandAnswer, augmented_diff, show};
use crate::commands::augmented_diff::{
    EditGroup, EditGroupForm, FilePair, GroupBy, Selection, Summary, between, groups_between,
    ids_between, write_groups,
};
use crate::formats::TextOutput;
use crate::osm::{KindSet, ObjectExpression, ObjectId, format_timestamp};
use crate::runtime::Context;
use anyhow::{Result, bail};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The differences that count. The region and the expressions look at objects before and after.
#[derive(Debug, clap::Args)]
pub struct ScopeArgs {
    #[command(flatten)]
    region: RegionArgs,
    /// Keep only objects that match EXPRESSION before or after, as in tags-filter; repeatable
    #[arg(long, value_name = "EXPRESSION", value_parser = ObjectExpression::parse)]
    filter: Vec<ObjectExpression>,
}

impl ScopeArgs {
    /// Returns the rules that select objects of the given kinds. Areas that options name are looked up in the new file.
    fn selection(
        &self,
        session: &Session,
        files: &ComparedFiles<'_>,
        kinds: KindSet,
        ctx: &Context,
    ) -> Result<Selection> {
        Ok(Selection::default()
            .region(self.region.region(session, files.new, ctx)?)
            .filter(self.filter.clone())
            .kinds(Some(kinds))
            .whole_objects(true))
    }

    /// Whether a region or an expression is given.
    pub const fn is_given(&self) -> bool {
        self.region.is_given() || !self.filter.is_empty()
    }

    /// Returns the rules that select objects; `None` if all objects count.
    pub fn selection_if_given(
        &self,
        session: &Session,
        files: &ComparedFiles<'_>,
        ctx: &Context,
    ) -> Result<Option<Selection>> {
        let selection = || self.selection(session, files, KindSet::ALL, ctx);
        self.is_given().then(selection).transpose()
    }
}

/// The files to compare, and whether metadata is compared.
#[derive(Debug, Clone, Copy)]
pub struct ComparedFiles<'a> {
    pub old: &'a Path,
    pub new: &'a Path,
    pub metadata: bool,
    pub max_memory: Option<u64>,
}

impl ComparedFiles<'_> {
    fn pair(&self, selection: Selection) -> FilePair {
        FilePair::new(self.old, self.new)
            .metadata(self.metadata)
            .selection(selection)
            .max_memory(self.max_memory)
    }
}

/// Returns the ids of the objects that differ in any way and that the selection keeps.
pub fn selected_ids(
    files: &ComparedFiles<'_>,
    selection: &Selection,
    ctx: &Context,
) -> crate::Result<Vec<ObjectId>> {
    let pair = files.pair(selection.clone().direct_only(true));
    ids_between(&pair.metadata(true), ctx)
}

/// The output that changes are written to.
pub struct ChangesTarget<'a> {
    pub path: &'a PathBuf,
    pub overwrite: bool,
    pub exit_code: bool,
    pub run: &'a RunArgs,
}

/// Writes changes in the given form.
pub fn write_as_form(
    session: &Session,
    files: &ComparedFiles<'_>,
    (scope, kinds): (&ScopeArgs, KindSet),
    form: DiffFormArg,
    target: &ChangesTarget<'_>,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let is_xml = form == DiffFormArg::Xml;
    if is_xml && kinds != KindSet::ALL {
        bail!("an augmented diff has all kinds of objects: leave out -t");
    }
    let selection = scope.selection(session, files, kinds, ctx)?;
    // An augmented diff has all changes, and the objects that they concern indirectly. The other forms have the same
    // differences as the default output, which is lines of text.
    let pair = files.pair(selection.direct_only(!is_xml));
    let pair = pair.metadata(is_xml || files.metadata);
    let output = single_file_output(session, target.path, target.overwrite, Some(form))?;
    let summary = between(&pair, &output, ctx)?;
    let stdout = Stdout::free_if(!is_stdout(target.path));
    session.report(target.run, ctx, &summary, stdout, || {
        augmented_diff::report(&summary)
    })?;
    Ok(CommandAnswer::yes_if(
        !target.exit_code || summary.actions() == 0,
    ))
}

/// The report of changes by user or by changeset.
#[derive(Serialize)]
struct GroupReport<'g> {
    groups: &'g [EditGroup],
    #[serde(flatten)]
    summary: &'g Summary,
}

/// Parses the name of a property by which changes are grouped.
pub fn parse_grouping(text: &str) -> Result<GroupBy, String> {
    match text {
        "user" => Ok(GroupBy::User),
        "changeset" => Ok(GroupBy::Changeset),
        _ => Err("expected user or changeset".to_owned()),
    }
}

/// Writes the numbers of changes by user or by changeset: as lines of text, or in the given form.
pub fn write_grouped(
    session: &Session,
    files: &ComparedFiles<'_>,
    (scope, kinds): (&ScopeArgs, KindSet),
    (by, form): (GroupBy, Option<DiffFormArg>),
    target: &ChangesTarget<'_>,
    ctx: &Context,
) -> Result<CommandAnswer> {
    let form = match form {
        None => None,
        Some(DiffFormArg::Csv) => Some(EditGroupForm::Csv),
        Some(DiffFormArg::GeoJson) => Some(EditGroupForm::GeoJson),
        Some(DiffFormArg::GeoJsonSeq) => Some(EditGroupForm::GeoJsonSeq),
        Some(DiffFormArg::Parquet) => Some(EditGroupForm::Parquet),
        Some(DiffFormArg::Xml) => bail!("--by writes text, csv, geojson, geojsonseq or parquet"),
    };
    let selection = scope.selection(session, files, kinds, ctx)?;
    let output = text_target(session, target.path, target.overwrite)?;
    output.check()?;
    let pair = files.pair(selection.direct_only(true));
    let (groups, summary) = groups_between(&pair, by, ctx)?;
    let is_unknown = |group: &EditGroup| match by {
        GroupBy::User => group.user.is_none(),
        GroupBy::Changeset => group.changeset.is_none(),
    };
    if summary.created + summary.modified > 0 && groups.iter().all(is_unknown) {
        ctx.warn("no new version has a user or a changeset: many public extracts leave them out");
    }
    let to_stdout = is_stdout(target.path);
    // The lines of text count as a report, so --quiet suppresses them, as it does in a `diff` without --by. It does not
    // suppress output in a requested file format.
    let is_quiet = target.run.quiet && form.is_none();
    let is_silent = to_stdout && (target.run.json.is_some() || is_quiet);
    match form {
        _ if is_silent => {}
        Some(form) => write_groups(&groups, form, output, ctx)?,
        None => {
            let mut lines = TextOutput::create(output, ctx)?;
            lines.write(&format_groups(&groups, by))?;
            ctx.stats.bytes_written.add(lines.finish()?);
        }
    }
    let stdout = Stdout::free_if(is_silent || !to_stdout);
    let report = GroupReport {
        groups: &groups,
        summary: &summary,
    };
    session.report(target.run, ctx, &report, stdout, || {
        augmented_diff::report(&summary)
    })?;
    Ok(CommandAnswer::yes_if(
        !target.exit_code || summary.actions() == 0,
    ))
}

/// Formats groups as a human-readable table with a line for each group.
fn format_groups(groups: &[EditGroup], by: GroupBy) -> String {
    let name = |group: &EditGroup| {
        let user = group.user.as_deref().map(show::on_one_line);
        let user = user.unwrap_or_else(|| "(unknown)".to_owned());
        match (by, group.changeset) {
            (GroupBy::User, _) => user,
            (GroupBy::Changeset, Some(changeset)) => format!("{changeset} {user}"),
            (GroupBy::Changeset, None) => "(unknown)".to_owned(),
        }
    };
    let title = match by {
        GroupBy::User => "user",
        GroupBy::Changeset => "changeset and user",
    };
    let mut out = format!(
        "{:>9} {:>9} {:>9} {:>9}  {:<20}  {title}\n",
        "changes", "created", "modified", "deleted", "last"
    );
    for group in groups {
        let last = group.last.map(format_timestamp).unwrap_or_default();
        let _ = writeln!(
            out,
            "{:>9} {:>9} {:>9} {:>9}  {last:<20}  {}",
            show::number(group.changes),
            show::number(group.created),
            show::number(group.modified),
            show::number(group.deleted),
            name(group)
        );
    }
    out
}
