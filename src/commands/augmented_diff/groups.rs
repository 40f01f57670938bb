//! Augmented diffs as a directory with an XML file for each group of changes: for each changeset, or for each change
//! file. If an earlier run wrote the file of a changeset, the file is continued: it has each object once, with its
//! first old state and its last new state.

use super::action::{Action, Encoder};
use super::actions::for_each;
use super::filter::Filter;
use super::find::Findings;
use super::xml::{EPILOGUE, PROLOGUE, put_action};
use super::{Base, Selection, Summary};
use crate::engine::text_sink::warn_replaced;
use crate::error::{Error, Result};
use crate::formats::{AugmentedXml, TextCompression, TextOutput, XmlAction};
use crate::index::{KeyBits, RowBatch, RowLimits, RowSorter, SharedRows};
use crate::io::OutputDirectory;
use crate::osm::{TypeThenId, id_from_rank, id_rank};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// The memory limits for sorting actions by group.
const LIMITS: RowLimits = RowLimits {
    run: 32 << 20,
    memory: 64 << 20,
};
/// The key of a row is the rank of the group.
const KEY: KeyBits = KeyBits {
    uncounted: 0,
    below_group: 63,
};
/// The size of a batch of rows, in bytes, at which it goes to the sorter. An object has a row for each group that
/// changes it, so the rows of the objects of one blob can be any number.
const BATCH_LEN: usize = 4 << 20;
/// The maximum size in memory of the actions that are read at a time, in bytes.
const READ_MEMORY: usize = 24 << 20;

/// Encodes actions as rows. A row has the key of the object and the text of the action.
struct GroupRows<'s> {
    xml: AugmentedXml,
    rows: RowBatch,
    replaced: u64,
    sorter: &'s RowSorter,
}

impl Encoder for GroupRows<'_> {
    /// The number of characters that were replaced.
    type Part = u64;

    fn put(&mut self, action: &Action<'_>, findings: &Findings<'_>) {
        let Some(group) = action.group else {
            return;
        };
        put_action(&mut self.xml, action, findings);
        let (text, replaced) = self.xml.take();
        self.replaced += replaced;
        self.push(group, action.key(), &text);
    }

    fn put_nothing(&mut self, group: Option<i64>, key: TypeThenId) {
        if let Some(group) = group {
            let nothing = XmlAction::without_states(key.0, id_from_rank(key.1));
            self.push(group, key, nothing.text());
        }
    }

    fn take(&mut self) -> Result<u64> {
        self.end_batch();
        Ok(std::mem::take(&mut self.replaced))
    }
}

impl GroupRows<'_> {
    /// Passes the rows on to the sorter, which reports its errors later.
    fn end_batch(&mut self) {
        if self.rows.count() > 0 {
            self.sorter.add(std::mem::take(&mut self.rows));
        }
    }

    /// Adds a row.
    fn push(&mut self, group: i64, (kind, rank): TypeThenId, text: &str) {
        self.rows.push(id_rank(group), |out| {
            // Rows with equal keys are in the order of their bytes.
            out.push(kind as u8);
            out.extend_from_slice(&rank.to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        });
        if self.rows.len() >= BATCH_LEN {
            self.end_batch();
        }
    }
}

/// The number of bytes before the text of a row.
const HEAD: usize = 9;

/// The kind of groups that get files.
pub(super) enum Groups<'g> {
    /// Changesets, each with a file `CHANGESET.adiff`. Existing files are continued.
    Changesets,
    /// Change files, each with a file of the given name, and `.adiff`. Existing files are replaced. A file without
    /// actions is written, too.
    Files(&'g [String]),
}

/// Writes or continues the file of each group in `directory`.
pub(super) fn write(
    base: &Base<'_>,
    findings: &Findings<'_>,
    selection: &Selection,
    directory: &Path,
    groups: &Groups<'_>,
) -> Result<Summary> {
    let ctx = base.ctx;
    let mut update = OutputDirectory::update(directory, ctx)?;
    let sorter = RowSorter::new(LIMITS, KEY, update.scratch_directory(), ctx);
    let mut replaced = 0;
    let new_encoder = || GroupRows {
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
        groups,
        update: &mut update,
        count: 0,
        bytes: 0,
    };
    let mut current: Option<(u64, Actions)> = None;
    for range in sorted.ranges(u64::MAX) {
        let mut portions = sorted.portions(range);
        while portions.left() > 0 {
            let rows = portions.next(READ_MEMORY)?;
            for (key, row) in keyed_rows(&rows) {
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
    files.write_remaining()?;
    summary.files = Some(files.count);
    ctx.stats.bytes_written.add(files.bytes);
    update.complete(ctx)?;
    warn_replaced(replaced, ctx);
    Ok(summary)
}

fn keyed_rows(rows: &SharedRows) -> impl Iterator<Item = (u64, &[u8])> {
    let keys = rows.keys_and_lens().map(|(key, _)| key);
    keys.zip(rows.rows(0..rows.count()))
}

/// The actions of a group, by kind and rank of the id of their objects, with comments on objects that the group creates
/// and deletes again.
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

    /// Joins these actions with those of an earlier run, which come before them and are in `text`. Returns `None` if
    /// the text is no augmented diff of this program.
    fn join_earlier(self, text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix(PROLOGUE)?.strip_suffix(EPILOGUE)?;
        let mut all = BTreeMap::new();
        while !rest.is_empty() {
            let (action, behind) = XmlAction::split_first(rest)?;
            let (kind, id) = action.object()?;
            all.insert((kind as u8, id_rank(id)), action);
            rest = behind;
        }
        for (key, action) in self.0 {
            let both = match all.remove(&key) {
                None => action,
                Some(before) => XmlAction::followed_by(before, action),
            };
            all.insert(key, both);
        }
        Some(Self(all))
    }
}

/// Writes the files of groups.
struct Files<'f> {
    directory: &'f Path,
    groups: &'f Groups<'f>,
    update: &'f mut OutputDirectory,
    count: u64,
    bytes: u64,
}

impl Files<'_> {
    /// Writes the file of a group. Groups must come in ascending order.
    fn write(&mut self, group: i64, actions: Actions) -> Result<()> {
        match self.groups {
            Groups::Changesets => {
                let name = format!("{group}.adiff");
                match self.continue_file(&name, actions)? {
                    Some(actions) => self.put(&name, &actions),
                    None => Ok(()),
                }
            }
            Groups::Files(names) => {
                while (self.count as i64) < group {
                    self.put_empty(names)?;
                }
                match names.get(group as usize) {
                    Some(name) => self.put(&format!("{name}.adiff"), &actions),
                    None => Err(Error::Internal("a change file without a name".into())),
                }
            }
        }
    }

    /// Writes the files of the groups that are left and have no actions.
    fn write_remaining(&mut self) -> Result<()> {
        if let Groups::Files(names) = self.groups {
            while (self.count as usize) < names.len() {
                self.put_empty(names)?;
            }
        }
        Ok(())
    }

    fn put_empty(&mut self, names: &[String]) -> Result<()> {
        let name = format!("{}.adiff", names[self.count as usize]);
        self.put(&name, &Actions::default())
    }

    /// Returns the actions of an existing file of a changeset, followed by the given ones. Returns `None` if there is
    /// no file and there are no actions.
    fn continue_file(&self, name: &str, actions: Actions) -> Result<Option<Actions>> {
        let path = self.directory.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => match actions.join_earlier(&text) {
                Some(both) => Ok(Some(both)),
                None => {
                    let cause = "this is not an augmented diff of pbfhogg: it cannot be continued";
                    Err(Error::file(&path, cause))
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let has_actions = actions.0.values().any(XmlAction::has_effect);
                Ok(has_actions.then_some(actions))
            }
            Err(error) => Err(Error::io(&path, "cannot read", error)),
        }
    }

    fn put(&mut self, name: &str, actions: &Actions) -> Result<()> {
        let output = self.update.open(Path::new(name))?;
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
