//! Augmented diffs as a directory with an XML file for each changeset. The files of changesets that go on are
//! continued: each object comes once, with its first old state and its last new state.

use super::actions::{Action, Encoder, for_each};
use super::filter::Filter;
use super::find::Findings;
use super::xml::{EPILOGUE, PROLOGUE, put_action};
use super::{Base, Selection, Summary};
use crate::engine::text_sink::warn_replaced;
use crate::error::{Error, Result};
use crate::formats::{AugmentedXml, TextCompression, TextOutput, XmlAction};
use crate::index::{KeyBits, RowBatch, RowLimits, RowSorter, SharedRows};
use crate::io::DirectoryUpdate;
use crate::osm::{id_from_rank, id_rank};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The memory limits for sorting actions by changeset.
const LIMITS: RowLimits = RowLimits {
    run: 32 << 20,
    memory: 64 << 20,
};
/// The key of a row is the rank of the changeset.
const KEY: KeyBits = KeyBits {
    uncounted: 0,
    below_group: 63,
};
/// The maximum size in memory of the actions that are read at a time, in bytes.
const READ_MEMORY: usize = 24 << 20;

/// Actions as rows, which are the key of the object and the text of the action.
struct ChangesetRows<'s> {
    xml: AugmentedXml,
    rows: RowBatch,
    replaced: u64,
    sorter: &'s RowSorter,
}

impl Encoder for ChangesetRows<'_> {
    /// The number of characters that were replaced.
    type Part = u64;

    fn put(&mut self, action: &Action<'_>, findings: &Findings<'_>) {
        let Some(changeset) = action.changeset else {
            return;
        };
        put_action(&mut self.xml, action, findings);
        let (text, replaced) = self.xml.take();
        self.replaced += replaced;
        let (kind, rank) = action.key();
        self.rows.push(id_rank(changeset), |out| {
            // Rows with equal keys are in the order of their bytes.
            out.push(kind as u8);
            out.extend_from_slice(&rank.to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        });
    }

    fn take(&mut self) -> Result<u64> {
        if self.rows.count() > 0 {
            self.sorter.add(std::mem::take(&mut self.rows));
        }
        Ok(std::mem::take(&mut self.replaced))
    }
}

/// The number of bytes before the text of a row.
const HEAD: usize = 9;

/// Writes or continues the file of each changeset in `directory`.
pub(super) fn write(
    base: &Base<'_>,
    findings: &Findings<'_>,
    selection: &Selection,
    directory: &Path,
) -> Result<Summary> {
    let ctx = base.ctx;
    let mut update = DirectoryUpdate::begin(directory)?;
    let sorter = RowSorter::new(LIMITS, KEY, update.scratch_directory());
    let mut replaced = 0;
    let new_encoder = || ChangesetRows {
        xml: AugmentedXml::new(),
        rows: RowBatch::default(),
        replaced: 0,
        sorter: &sorter,
    };
    let filter = Filter::new(selection);
    let mut summary = for_each(base, findings, &filter, new_encoder, |unknown| {
        replaced += unknown;
        sorter.check()
    })?;
    let sorted = sorter.finish()?;
    let mut files = Files {
        directory,
        update: &mut update,
        count: 0,
        bytes: 0,
    };
    let mut current: Option<(u64, Actions)> = None;
    for range in sorted.ranges(u64::MAX) {
        let mut portions = sorted.portions(range);
        while portions.left() > 0 {
            let rows = portions.next(READ_MEMORY)?;
            for (key, row) in keyed(&rows) {
                if let Some((done, actions)) = current.take_if(|(last, _)| *last != key) {
                    files.write(id_from_rank(done), actions)?;
                }
                let (_, actions) = current.get_or_insert_with(|| (key, Actions::default()));
                actions.add(row)?;
            }
        }
    }
    if let Some((done, actions)) = current {
        files.write(id_from_rank(done), actions)?;
    }
    summary.changesets = Some(files.count);
    ctx.stats.bytes_written.add(files.bytes);
    update.complete()?;
    warn_replaced(replaced, ctx);
    Ok(summary)
}

fn keyed(rows: &SharedRows) -> impl Iterator<Item = (u64, &[u8])> {
    let keys = rows.keys_and_lens().map(|(key, _)| key);
    keys.zip(rows.rows(0..rows.count()))
}

/// The actions of a changeset, by kind and rank of the id of their objects.
#[derive(Default)]
struct Actions(BTreeMap<(u8, u64), XmlAction>);

impl Actions {
    /// Adds an action of this run.
    fn add(&mut self, row: &[u8]) -> Result<()> {
        let broken = || Error::Internal("a row of an augmented diff is broken".into());
        let (head, text) = row.split_first_chunk::<HEAD>().ok_or_else(broken)?;
        let [kind, rank @ ..] = *head;
        let text = std::str::from_utf8(text).map_err(|_| broken())?;
        let action = XmlAction::parse(text).ok_or_else(broken)?;
        self.0.insert((kind, u64::from_be_bytes(rank)), action);
        Ok(())
    }

    /// Appends these actions to those of an earlier run, which wrote `text`. Returns `None` if the text is no augmented
    /// diff of this program.
    fn behind(self, text: &str, changeset: i64) -> Option<Self> {
        let mut rest = text.strip_prefix(PROLOGUE)?.strip_suffix(EPILOGUE)?;
        let mut all = BTreeMap::new();
        while !rest.is_empty() {
            let (action, behind) = XmlAction::split_first(rest)?;
            let (kind, id) = action.object()?;
            all.insert((kind as u8, id_rank(id)), action);
            rest = behind;
        }
        for (key, action) in self.0 {
            match all.remove(&key) {
                Some(before) => {
                    if let Some(both) = before.followed_by(action) {
                        all.insert(key, both);
                    }
                }
                // The changeset has also made the version that it deletes, and its file knows nothing of the object:
                // the same run has written the file before.
                None if action.deletes_object_of(changeset) => {}
                None => drop(all.insert(key, action)),
            }
        }
        Some(Self(all))
    }
}

/// Writes the files of changesets.
struct Files<'f> {
    directory: &'f Path,
    update: &'f mut DirectoryUpdate,
    count: u64,
    bytes: u64,
}

impl Files<'_> {
    fn write(&mut self, changeset: i64, actions: Actions) -> Result<()> {
        let name = PathBuf::from(format!("{changeset}.adiff"));
        let path = self.directory.join(&name);
        let actions = match fs::read_to_string(&path) {
            Ok(text) => actions.behind(&text, changeset).ok_or_else(|| {
                let cause = "this is not an augmented diff of pbfhogg: it cannot be continued";
                Error::file(&path, cause)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => actions,
            Err(error) => return Err(Error::io(&path, "cannot read", error)),
        };
        let output = self.update.open(&name)?;
        let mut output = TextOutput::in_output(output, TextCompression::None);
        output.write(PROLOGUE)?;
        for action in actions.0.values() {
            output.write(action.text())?;
        }
        output.write(EPILOGUE)?;
        self.count += 1;
        self.bytes += output.finish_unflushed()?;
        Ok(())
    }
}
