//! The files of groups of changes. If an earlier run wrote the file of a changeset, the file is continued: the result
//! has each object once, with the first old state and the last new state of the object.
//!
//! The text of an action is written in pieces. The whole text is held only if the file of an earlier run has an action
//! of the same object.

use super::xml::{EPILOGUE, PROLOGUE};
use crate::error::{Error, FileResult, Result};
use crate::formats::{TextCompression, TextOutput, XmlAction};
use crate::io::OutputDirectory;
use crate::osm::id_rank;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The kind of an object and the rank of its id. The actions in a file are in ascending order of this key.
pub(super) type ActionKey = (u8, u64);

/// The kind of groups that get files.
pub(super) enum Groups<'g> {
    /// Changesets, each with a file `CHANGESET.adiff`. Existing files are continued.
    Changesets,
    /// Change files. Each gets a file with the given name and the ending `.adiff`. Existing files are replaced. A file
    /// without actions is written, too.
    Files(&'g [String]),
}

/// A writer of the files of groups.
pub(super) struct GroupFiles<'f> {
    directory: &'f Path,
    groups: &'f Groups<'f>,
    update: &'f mut OutputDirectory,
    /// The current group and its file.
    current: Option<(i64, GroupFile)>,
    count: u64,
    bytes: u64,
}

impl<'f> GroupFiles<'f> {
    pub(super) const fn new(
        directory: &'f Path,
        groups: &'f Groups<'f>,
        update: &'f mut OutputDirectory,
    ) -> Self {
        Self {
            directory,
            groups,
            update,
            current: None,
            count: 0,
            bytes: 0,
        }
    }

    /// Adds a piece of the text of an action. Groups must come in ascending order, and the objects of a group, too.
    pub(super) fn add(
        &mut self,
        group: i64,
        key: ActionKey,
        is_first: bool,
        text: &str,
    ) -> Result<()> {
        if self
            .current
            .as_ref()
            .is_none_or(|(current, _)| *current != group)
        {
            self.end_group()?;
            self.current = Some((group, self.begin_group(group)?));
        }
        let Some((_, file)) = &mut self.current else {
            return Ok(());
        };
        if is_first {
            file.begin_action(key, text, self.update)?;
        }
        file.put(text)
    }

    /// Ends the last file, and writes empty files for the remaining groups. Returns the number of files and their size
    /// in bytes.
    pub(super) fn complete(mut self) -> Result<(u64, u64)> {
        self.end_group()?;
        if let Groups::Files(names) = self.groups {
            while (self.count as usize) < names.len() {
                self.write_empty_file(names)?;
            }
        }
        Ok((self.count, self.bytes))
    }

    fn begin_group(&mut self, group: i64) -> Result<GroupFile> {
        match self.groups {
            Groups::Changesets => {
                let name = format!("{group}.adiff");
                let earlier = EarlierActions::open(&self.directory.join(&name))?;
                let mut file = GroupFile::new(name, earlier);
                if file.earlier.is_some() {
                    file.open(self.update)?;
                }
                Ok(file)
            }
            Groups::Files(names) => {
                while (self.count as i64) < group {
                    self.write_empty_file(names)?;
                }
                let name = names.get(group as usize);
                let nameless = || Error::internal("a change file without a name");
                let mut file =
                    GroupFile::new(format!("{}.adiff", name.ok_or_else(nameless)?), None);
                file.open(self.update)?;
                Ok(file)
            }
        }
    }

    fn end_group(&mut self) -> Result<()> {
        match self.current.take() {
            Some((_, file)) => self.end(file),
            None => Ok(()),
        }
    }

    fn write_empty_file(&mut self, names: &[String]) -> Result<()> {
        let mut file = GroupFile::new(format!("{}.adiff", names[self.count as usize]), None);
        file.open(self.update)?;
        self.end(file)
    }

    /// Ends a file, and counts it if the group needed a file.
    fn end(&mut self, file: GroupFile) -> Result<()> {
        if let Some(bytes) = file.end()? {
            self.count += 1;
            self.bytes += bytes;
        }
        Ok(())
    }
}

/// The file of a group.
struct GroupFile {
    name: String,
    /// The actions in the file of an earlier run that still have to be copied to the new file; `None` if there is no
    /// earlier file.
    earlier: Option<EarlierActions>,
    /// The output; `None` until the file is opened. A new file of a changeset is opened when the first action with an
    /// effect is added. A changeset without an effect gets no new file.
    output: Option<TextOutput>,
    /// The XML comments that were added before the file was opened. They name the objects that the group creates and
    /// deletes again.
    comments: String,
    /// The action of an earlier run on the current object, and the text of the new action so far.
    joined: Option<(XmlAction, String)>,
}

impl GroupFile {
    const fn new(name: String, earlier: Option<EarlierActions>) -> Self {
        Self {
            name,
            earlier,
            output: None,
            comments: String::new(),
            joined: None,
        }
    }

    /// Creates the file, and writes the text that precedes the actions.
    fn open(&mut self, update: &mut OutputDirectory) -> Result<()> {
        let output = update.open(Path::new(&self.name))?;
        let mut output = TextOutput::from_open_output(output, TextCompression::None);
        output.write(PROLOGUE)?;
        output.write(&std::mem::take(&mut self.comments))?;
        self.output = Some(output);
        Ok(())
    }

    /// Begins the action of an object. `text` is the first piece of the action; it is a comment if the action has no
    /// effect.
    fn begin_action(
        &mut self,
        key: ActionKey,
        text: &str,
        update: &mut OutputDirectory,
    ) -> Result<()> {
        self.end_action()?;
        if self.output.is_none() && XmlAction::begins_with_action(text) {
            self.open(update)?;
        }
        if let (Some(earlier), Some(output)) = (&mut self.earlier, &mut self.output) {
            while let Some(action) = earlier.next_if(|next| next < key)? {
                output.write(action.text())?;
            }
            let same = earlier.next_if(|next| next == key)?;
            self.joined = same.map(|before| (before, String::new()));
        }
        Ok(())
    }

    /// Adds a piece of the current action.
    fn put(&mut self, text: &str) -> Result<()> {
        match (&mut self.joined, &mut self.output) {
            (Some((_, whole)), _) => whole.push_str(text),
            (None, Some(output)) => return output.write(text),
            (None, None) => self.comments.push_str(text),
        }
        Ok(())
    }

    fn end_action(&mut self) -> Result<()> {
        let (Some((before, text)), Some(output)) = (self.joined.take(), &mut self.output) else {
            return Ok(());
        };
        let broken = || Error::internal("a row of an augmented diff is broken");
        let action = XmlAction::parse(&text).ok_or_else(broken)?;
        output.write(before.merge_with_later(action).text())
    }

    /// Ends the file. Returns its size in bytes; `None` if no file was needed.
    fn end(mut self) -> Result<Option<u64>> {
        self.end_action()?;
        let Some(mut output) = self.output else {
            return Ok(None);
        };
        if let Some(mut earlier) = self.earlier {
            while let Some(action) = earlier.next_if(|_| true)? {
                output.write(action.text())?;
            }
        }
        output.write(EPILOGUE)?;
        output.finish_unflushed().map(Some)
    }
}

/// A reader of the actions in the file of an earlier run, one after another.
struct EarlierActions {
    path: PathBuf,
    lines: BufReader<File>,
    /// The next action; `None` at the end.
    next: Option<(ActionKey, XmlAction)>,
}

impl EarlierActions {
    /// Opens a file. Returns `None` if it does not exist.
    fn open(path: &Path) -> Result<Option<Self>> {
        let failed = |error| Error::io(path, "cannot read", error);
        let Some(file) = File::open(path).if_exists().map_err(failed)? else {
            return Ok(None);
        };
        let mut earlier = Self {
            path: path.to_owned(),
            lines: BufReader::new(file),
            next: None,
        };
        let mut head = Vec::new();
        let mut start = (&mut earlier.lines).take(PROLOGUE.len() as u64);
        start.read_to_end(&mut head).map_err(failed)?;
        if head != PROLOGUE.as_bytes() {
            return Err(earlier.foreign_file_error());
        }
        earlier.next = earlier.read_next(None)?;
        Ok(Some(earlier))
    }

    /// Returns the error for a file that this program did not write.
    fn foreign_file_error(&self) -> Error {
        let cause = "this is not an augmented diff of pbfhogg: it cannot be continued";
        Error::file(&self.path, cause)
    }

    /// Returns the next action if its key meets a condition.
    fn next_if(&mut self, condition: impl FnOnce(ActionKey) -> bool) -> Result<Option<XmlAction>> {
        let Some((key, action)) = self.next.take_if(|(key, _)| condition(*key)) else {
            return Ok(None);
        };
        self.next = self.read_next(Some(key))?;
        Ok(Some(action))
    }

    /// Reads the next action, whose key must be greater than `last`. Returns `None` at the end of the file.
    fn read_next(&mut self, last: Option<ActionKey>) -> Result<Option<(ActionKey, XmlAction)>> {
        let mut text = String::new();
        loop {
            let start = text.len();
            let read = self
                .lines
                .read_line(&mut text)
                .for_path(&self.path, "cannot read")?;
            if read == 0 {
                return Err(self.foreign_file_error());
            }
            if start == 0 && text == EPILOGUE {
                let rest = self.lines.fill_buf().for_path(&self.path, "cannot read")?;
                return if rest.is_empty() {
                    Ok(None)
                } else {
                    Err(self.foreign_file_error())
                };
            }
            if XmlAction::last_line_ends_action(&text, start) {
                break;
            }
        }
        let action = XmlAction::parse(&text);
        let key = action.as_ref().and_then(XmlAction::object_kind_and_id);
        let key = key.map(|(kind, id)| (kind as u8, id_rank(id)));
        match (key, action) {
            (Some(key), Some(action)) if last < Some(key) => Ok(Some((key, action))),
            _ => Err(self.foreign_file_error()),
        }
    }
}
