//! `tags-edit` of a change file. The rules change an object in a change file exactly as they change it in a file with
//! data. So `apply(edit(file), edit(changes))` and `edit(apply(file, changes))` are the same.

use super::{Effects, Options, TagEdits};
use crate::commands::merge_changes;
use crate::engine::tag_editor::{EditCounts, TagEditor};
use crate::error::{Error, FormatResult, Result};
use crate::formats::{ChangeSet, change_source, read_sources};
use crate::io::Input;
use crate::runtime::Context;
use serde::Serialize;
use std::path::Path;

/// The result of `tags-edit` for a change file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChangesSummary {
    /// The numbers of changes in the output, and its size.
    #[serde(flatten)]
    pub output: merge_changes::Summary,
    /// The effect of the rules.
    #[serde(flatten)]
    pub effects: Effects,
}

/// Changes the tags of the objects of a change file. All changes are kept, in their order.
///
/// Reads one change file: OsmChange, o5c, OPL or PBF, with any compression, and the state file beside it. Writes one
/// change file. If the output has a text format, the compression is that of the format. Otherwise, the file is
/// compressed if its name ends in `.gz`, `.bz2` or `.zst`.
///
/// # Memory
///
/// About 5 MB for the program and 24 MB for text and changes in flight. About 150 bytes for each tag of a table.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - The input is not a change file.
/// - There are regions, or [`Options::drop_untagged`] is set: a change file tells neither where ways are nor to which
///   objects other objects refer.
/// - A rule would give an object a key twice, or a value with more than 255 characters. The error names the object.
pub fn run(options: &Options, ctx: &Context) -> Result<ChangesSummary> {
    edit(&Input::open_in(&options.input, ctx)?, options, ctx)
}

/// Does the same as [`run`], with an input that is open already. Ignores [`Options::input`].
pub(crate) fn edit(input: &Input, options: &Options, ctx: &Context) -> Result<ChangesSummary> {
    let editor = editor(&options.edits)?;
    if options.drop_untagged {
        let cause = "a change file does not tell which objects without tags others refer to";
        return Err(Error::Usage(cause.into()));
    }
    let target = options.output.target.clone();
    let to = merge_changes::Options::new(Vec::new(), target)
        .compression(options.output.text_compression())
        .generator(options.output.header.generator.clone());
    let mut counts = EditCounts::default();
    let edit = |changes: &mut ChangeSet| edit_changes(&editor, changes);
    let output = merge_changes::write_with_edits(&to, input, edit, |more| counts.merge(more), ctx)?;
    Ok(ChangesSummary {
        output,
        effects: Effects::of(&editor, &counts),
    })
}

/// Counts the changes whose tags the rules would change, and writes nothing.
///
/// # Errors
///
/// As [`run`], except for errors of the output.
pub fn preview(input: impl AsRef<Path>, edits: &TagEdits, ctx: &Context) -> Result<Effects> {
    preview_of(&Input::open_in(input.as_ref(), ctx)?, edits, ctx)
}

/// Does the same as [`preview`], with an input that is open already.
pub(crate) fn preview_of(input: &Input, edits: &TagEdits, ctx: &Context) -> Result<Effects> {
    let (editor, mut counts) = (editor(edits)?, EditCounts::default());
    let phase = ctx.phase("find tags", 0);
    read_sources(
        &[change_source(input, ctx)?],
        ctx,
        || (),
        |(), _, mut changes| {
            let counts = edit_changes(&editor, &mut changes);
            counts.map_err(|error| Error::file(input.path(), error.to_string()))
        },
        |more| {
            counts.merge(more);
            Ok(())
        },
    )?;
    drop(phase);
    Ok(Effects::of(&editor, &counts))
}

/// Changes the tags of all objects in `changes`.
pub(crate) fn edit_changes(
    editor: &TagEditor,
    changes: &mut ChangeSet,
) -> FormatResult<EditCounts> {
    let mut counts = EditCounts::default();
    changes.edit_tags(|object| editor.new_tags(object, &mut counts))?;
    Ok(counts)
}

/// Returns the editor for changes. Fails if there are regions.
fn editor(edits: &TagEdits) -> Result<TagEditor> {
    if edits.regions.is_empty() {
        Ok(edits.add_steps_to(TagEditor::default()))
    } else {
        let cause = "a change file does not tell where ways and relations are";
        Err(Error::Usage(cause.into()))
    }
}
