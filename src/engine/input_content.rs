//! Determines the content of open files: data, a history or changes.
//!
//! OsmChange and o5c are formats of changes, OSM XML and o5m are formats of data. PBF and OPL are formats of both, and
//! changes in them look like a history. Deletions distinguish the two: a history also has the earlier versions of each
//! deleted object.

use crate::error::{Advice, Error, FormatResult, Result};
use crate::file::{BlobDecoder, BlobPlan, PbfFile, PlanNeeds};
use crate::formats::{FileContent, TextFormat};
use crate::osm::{TypeThenId, id_rank};
use crate::pbf::{BlobEntry, BlobFlags, Block, feature};
use crate::runtime::Context;
use std::cmp::Ordering;
use std::collections::HashMap;
#[cfg(feature = "cli")]
use {super::input, crate::file::WriteOptions, crate::io::Input, std::path::Path};

/// An open input.
#[cfg(feature = "cli")]
pub(crate) enum OpenedInput {
    /// Data, or a history.
    Objects(Box<PbfFile>),
    /// A change file.
    Changes(Input),
}

/// Opens an input that is data or a change file. `content` is its content; if `None`, it is determined from the input.
/// A text input with data is converted to PBF, with the compression in `write`. Does not warn of changesets in data.
#[cfg(feature = "cli")]
pub(crate) fn open_by_content(
    path: &Path,
    content: Option<FileContent>,
    write: &WriteOptions,
    ctx: &Context,
) -> Result<OpenedInput> {
    let (input, format) = input::open_in_any_format(path, ctx)?;
    let is_change = format.is_some_and(TextFormat::is_change);
    if content.map_or(is_change, |content| content == FileContent::Changes) {
        return Ok(OpenedInput::Changes(input));
    }
    let file = input::open_as_pbf(input.clone(), format, write.compression, ctx)?;
    if content.is_none() && content_of(&file, ctx)? == FileContent::Changes {
        return Ok(OpenedInput::Changes(input));
    }
    Ok(OpenedInput::Objects(Box::new(file)))
}

/// The maximum number of blobs in which deletions are counted.
const MAX_BLOBS: usize = 64;
/// The maximum number of deletions that are counted in a blob.
const MAX_DELETIONS: usize = 1 << 14;

/// Returns the content of a file. A file in a format of changes has changes. For other files, the content that the user
/// states counts. If the user states none, a file in a format of data has data or a history. PBF and OPL leave the
/// content open, because a history that lacks versions has the same bytes as changes. For these two formats, the name
/// of the file (such as `.osh.pbf`) determines the content or, if the name leaves it open, the deletions do.
///
/// Decodes blobs only if the file declares a history and its name leaves the content open: up to 64 blobs and, if
/// necessary, the blobs directly before them.
pub(crate) fn content_of(file: &PbfFile, ctx: &Context) -> Result<FileContent> {
    match evident_content(file, ctx) {
        Some(content) => Ok(content),
        None => {
            let counted = count_deletions(file, ctx)?.indicated_content();
            Ok(counted.unwrap_or(FileContent::History))
        }
    }
}

/// Returns the content of a file, if it is known without reading the objects. Returns `None` if the file declares a
/// history, and its name leaves the content open.
fn evident_content(file: &PbfFile, ctx: &Context) -> Option<FileContent> {
    let text = &file.header.text;
    if text.is_change {
        return Some(FileContent::Changes);
    }
    if let Some(stated) = FileContent::from_options(ctx) {
        return Some(stated);
    }
    let has_history = file.header.has(feature::HISTORY);
    if text.is_data {
        return Some(if has_history {
            FileContent::History
        } else {
            FileContent::Data
        });
    }
    // Of the text formats, only OPL leaves the content open.
    let format = file.header.is_converted.then_some(TextFormat::Opl);
    let named = FileContent::of_name(file.input.path(), format);
    named.or_else(|| (!has_history).then_some(FileContent::Data))
}

/// Returns the error of a command that needs current data, for a file with several versions of objects. `of_history` is
/// the cause if the file is a history. For a change file, the cause is that the command needs data.
pub(crate) fn not_current_error(file: &PbfFile, of_history: &str, ctx: &Context) -> Error {
    let path = file.input.path();
    if content_of(file, ctx).is_ok_and(|content| content == FileContent::Changes) {
        let cause = "this is a change file, and the command needs data";
        return Error::file(path, cause).advise(Advice::ApplyChanges);
    }
    Error::file(path, of_history).advise(Advice::TimeFilter)
}

/// Fails if a file has changes, for a command that needs data or a history. `cause` is the reason, as a main clause.
pub(crate) fn refuse_changes(file: &PbfFile, cause: &str, ctx: &Context) -> Result<()> {
    if content_of(file, ctx)? != FileContent::Changes {
        return Ok(());
    }
    let cause = format!("this is a change file: {cause}");
    let advice = match evident_content(file, ctx) {
        Some(_) => Advice::ApplyChanges,
        None => Advice::ApplyChangesOrStateHistory,
    };
    Err(Error::file(file.input.path(), cause).advise(advice))
}

/// Fails if some of the files have current data and others have changes. Their objects together would be neither data
/// nor changes. Decodes blobs as [`content_of`] does, but only if one of the files has current data.
pub(crate) fn refuse_data_beside_changes(files: &[PbfFile], ctx: &Context) -> Result<()> {
    let is_data = |file: &&PbfFile| evident_content(file, ctx) == Some(FileContent::Data);
    let Some(data) = files.iter().find(is_data) else {
        return Ok(());
    };
    for file in files.iter().filter(|file| !is_data(file)) {
        if content_of(file, ctx)? == FileContent::Changes {
            let cause = format!(
                "this is a change file, and {} has data: together, their objects are neither",
                data.input.path().display()
            );
            return Err(Error::file(file.input.path(), cause).advise(Advice::ApplyChanges));
        }
    }
    Ok(())
}

/// Counts the deletions in blobs that are spread over the file.
fn count_deletions(file: &PbfFile, ctx: &Context) -> Result<DeletionCounts> {
    let plan = BlobPlan::open(file, PlanNeeds::Frames, ctx)?;
    let may_have = |(_, entry): &(usize, &BlobEntry)| {
        !entry.flags.has(BlobFlags::SCANNED) || entry.flags.has(BlobFlags::DELETED)
    };
    let entries: Vec<_> = plan.entries.iter().enumerate().filter(may_have).collect();
    let step = entries.len().div_ceil(MAX_BLOBS).max(1);
    let mut decoder = BlobDecoder::new(&file.input, ctx);
    let mut deletions = DeletionCounts::default();
    // The last blob is always among the counted blobs, because in changes that are sorted by action, deletions come
    // last.
    for (position, entry) in entries.into_iter().rev().step_by(step) {
        ctx.cancellation.check()?;
        let mut first = None;
        decoder.decode(entry, |payload| {
            first = deletions.count(&Block::parse_without_strings(payload)?)?;
            Ok(())
        })?;
        if let Some(key) = first
            && let Some(before) = position.checked_sub(1)
        {
            let mut last = None;
            decoder.decode(&plan.entries[before], |payload| {
                let block = Block::parse_without_strings(payload)?;
                block.for_each_id(|kind, id| last = Some((kind, id_rank(id))))
            })?;
            if last == Some(key) {
                deletions.lone -= 1;
                deletions.of_known += 1;
            }
        }
    }
    Ok(deletions)
}

/// A deletion in a block.
struct Deletion {
    /// The version; 0 if it is unknown.
    version: u32,
    /// Whether the block has an earlier version of the object.
    is_known: bool,
}

/// The numbers of deletions in some blobs.
#[derive(Debug, Clone, Copy, Default)]
struct DeletionCounts {
    /// Deletions that follow an earlier version of the object.
    of_known: u64,
    /// Deletions without an earlier version in the blob.
    lone: u64,
}

impl DeletionCounts {
    /// Adds deletions of a block, at most one for each object. Returns the first object of the block if it was counted
    /// as a lone deletion. The preceding block may have earlier versions of this object.
    fn count(&mut self, block: &Block<'_>) -> FormatResult<Option<TypeThenId>> {
        let mut deleted: HashMap<TypeThenId, Deletion> = HashMap::new();
        let (mut objects, mut first) = (block.walk(), None);
        while let Some(key) = objects.next_sort_key()? {
            let info = objects.version_info()?;
            first.get_or_insert(key);
            if info.is_deleted && deleted.len() < MAX_DELETIONS {
                deleted.entry(key).or_insert(Deletion {
                    version: info.version_number().unwrap_or(0),
                    is_known: false,
                });
            }
        }
        if deleted.is_empty() {
            return Ok(None);
        }
        let mut objects = block.walk();
        while let Some(key) = objects.next_sort_key()? {
            if let Some(deletion) = deleted.get_mut(&key) {
                let version = objects.version_info()?.version_number();
                deletion.is_known |= version.is_some_and(|version| version < deletion.version);
            }
        }
        for deletion in deleted.values() {
            let count = if deletion.is_known {
                &mut self.of_known
            } else {
                &mut self.lone
            };
            *count += 1;
        }
        let is_lone = |key: &TypeThenId| deleted.get(key).is_some_and(|first| !first.is_known);
        Ok(first.filter(is_lone))
    }

    /// Returns the content that most deletions indicate; `None` if there is no majority.
    fn indicated_content(&self) -> Option<FileContent> {
        match self.lone.cmp(&self.of_known) {
            Ordering::Less => Some(FileContent::History),
            Ordering::Equal => None,
            Ordering::Greater => Some(FileContent::Changes),
        }
    }
}
