//! Augmented diffs as a directory with an XML file for each group of changes: for each changeset, or for each change
//! file. The actions are sorted by group.

use super::Summary;
use super::action::{Action, Encoder, SendPart};
use super::actions::{ActionSource, encode_actions};
use super::filter::Filter;
use super::find::Findings;
use super::group_files::{ActionKey, GroupFiles, Groups};
use super::xml::put_action;
use crate::engine::text_sink::warn_of_replaced_characters;
use crate::error::{Error, Result};
use crate::formats::{AugmentedXml, XmlAction};
use crate::index::{KeyBits, RowBatch, RowLimits, RowSorter};
use crate::io::OutputDirectory;
use crate::osm::{TypeThenId, id_from_rank, id_rank};
use std::path::Path;

/// The memory limits for sorting actions by group.
const LIMITS: RowLimits = RowLimits::new(32 << 20, 64 << 20);
/// The key of a row is the rank of the group.
const KEY: KeyBits = KeyBits::new(0, 63);
/// The maximum size in memory of the actions that are read at a time, in bytes.
const READ_MEMORY: usize = 24 << 20;

/// Encodes actions as rows.
struct GroupRows<'s> {
    xml: AugmentedXml,
    rows: PieceRows<'s>,
}

/// Rows with the texts of actions. A long text is divided into pieces, each in a row of its own. A row has the key of
/// the object, the number of the piece, and the piece.
struct PieceRows<'s> {
    rows: RowBatch,
    replaced: u64,
    sorter: &'s RowSorter,
}

impl Encoder for GroupRows<'_> {
    /// The number of characters that were replaced.
    type Part = u64;

    fn put(
        &mut self,
        action: &Action<'_>,
        findings: &Findings<'_>,
        _: &SendPart<'_, u64>,
    ) -> Result<()> {
        let Some(group) = action.group else {
            return Ok(());
        };
        let (rows, key, mut piece) = (&mut self.rows, action.key(), 0);
        put_action(&mut self.xml, action, findings, &mut |xml| {
            rows.push_text(group, key, piece, xml);
            piece += 1;
        });
        rows.push_text(group, key, piece, &mut self.xml);
        // Adding rows does not report errors of the sorter, so they are checked after each action.
        self.rows.sorter.check_for_error()
    }

    fn note_created_and_deleted(&mut self, group: Option<i64>, key: TypeThenId) {
        if let Some(group) = group {
            let nothing = XmlAction::comment_on_object(key.0, id_from_rank(key.1));
            self.rows.push(group, key, 0, nothing.text());
        }
    }

    fn len(&self) -> usize {
        // The rows go to the sorter, and not to the caller of `take`.
        0
    }

    fn take(&mut self) -> Result<u64> {
        self.rows.end_batch();
        Ok(std::mem::take(&mut self.rows.replaced))
    }
}

impl PieceRows<'_> {
    /// Passes the rows on to the sorter, which reports its errors later.
    fn end_batch(&mut self) {
        self.sorter.add_and_clear(&mut self.rows);
    }

    /// Adds a row with the text in `xml`, and removes the text from `xml`.
    fn push_text(&mut self, group: i64, key: TypeThenId, piece: u32, xml: &mut AugmentedXml) {
        let (text, replaced) = xml.take();
        self.replaced += replaced;
        self.push(group, key, piece, &text);
    }

    /// Adds a row.
    fn push(&mut self, group: i64, (kind, rank): TypeThenId, piece: u32, text: &str) {
        self.rows.push(id_rank(group), |out| {
            // The sorter orders the rows of a group by these bytes: by object and then by piece.
            out.push(kind as u8);
            out.extend_from_slice(&rank.to_be_bytes());
            out.extend_from_slice(&piece.to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        });
        self.sorter.add_if_full(&mut self.rows);
    }
}

/// Writes or continues the file of each group in `directory`.
pub(super) fn write(
    source: ActionSource<'_>,
    directory: &Path,
    groups: &Groups<'_>,
) -> Result<Summary> {
    let ctx = source.base.source.ctx;
    let mut update = OutputDirectory::update(directory, ctx)?;
    let sorter = RowSorter::new(LIMITS, KEY, update.scratch_directory(), ctx);
    let mut replaced = 0;
    let new_encoder = || GroupRows {
        xml: AugmentedXml::new(),
        rows: PieceRows {
            rows: RowBatch::default(),
            replaced: 0,
            sorter: &sorter,
        },
    };
    let filter = Filter::new(source.selection);
    let mut summary = encode_actions(source, &filter, new_encoder, |unknown| {
        replaced += unknown;
        sorter.check_for_error()
    })?;
    let sorted = sorter.finish()?;
    let mut files = GroupFiles::new(directory, groups, &mut update);
    for rows in sorted.all_portions(u64::MAX, READ_MEMORY) {
        for (group, row) in rows?.keys_and_rows() {
            let (key, piece, text) = split_row(row)?;
            files.add(id_from_rank(group), key, piece == 0, text)?;
        }
    }
    let (count, bytes) = files.complete()?;
    summary.files = Some(count);
    ctx.stats.bytes_written.add(bytes);
    update.complete(ctx)?;
    warn_of_replaced_characters(replaced, ctx);
    Ok(summary)
}

/// Splits a row into the key of the object, the number of the piece, and the text of the piece.
fn split_row(row: &[u8]) -> Result<(ActionKey, u32, &str)> {
    let broken = || Error::internal("a row of an augmented diff is broken");
    let (kind, row) = row.split_first().ok_or_else(broken)?;
    let (rank, row) = row.split_first_chunk().ok_or_else(broken)?;
    let (piece, text) = row.split_first_chunk().ok_or_else(broken)?;
    let text = std::str::from_utf8(text).map_err(|_| broken())?;
    let key = (*kind, u64::from_be_bytes(*rank));
    Ok((key, u32::from_be_bytes(*piece), text))
}
