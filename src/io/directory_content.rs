//! Tells which files of a directory were written by this program.

use super::temporary::is_temporary_or_mark;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A function that returns whether this program has written a file. The arguments are the path of the file within its
/// directory, and the open file.
pub(crate) type IsOwn = fn(&Path, &File) -> bool;

/// The maximum depth of directories that are searched. This program never creates deeper directories.
const DEPTH: u32 = 5;

/// The content of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DirectoryContent {
    /// The directory is missing or empty.
    Nothing,
    /// This program has written all files in the directory.
    Own,
    /// The directory has entries that this program has not written. The field is the path of the first such entry,
    /// relative to the directory.
    Foreign(PathBuf),
}

impl DirectoryContent {
    /// Returns the content of a directory, ignoring its entry `staged`. Does not follow symbolic links.
    pub(super) fn scan(directory: &Path, staged: Option<&Path>, is_own: IsOwn) -> Self {
        let mut entries = entries(directory, is_own);
        entries.retain(|entry| staged != Some(&directory.join(&entry.path)));
        let is_foreign = |(index, entry): (usize, &DirectoryEntry)| match entry.kind {
            EntryKind::Own => false,
            // A directory without listed entries is empty or cannot be read. This program leaves no empty directory.
            EntryKind::Directory => !entries
                .get(index + 1)
                .is_some_and(|next| next.path.starts_with(&entry.path)),
            EntryKind::Temporary | EntryKind::Foreign => true,
        };
        match (0..).zip(&entries).position(is_foreign) {
            Some(index) => Self::Foreign(entries[index].path.clone()),
            None if entries.is_empty() => Self::Nothing,
            None => Self::Own,
        }
    }
}

/// An entry of a directory or of a directory below it.
struct DirectoryEntry {
    /// The path relative to the directory.
    path: PathBuf,
    kind: EntryKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    /// A directory, whose entries are listed, too.
    Directory,
    /// A file that this program has written.
    Own,
    /// A temporary file of this program.
    Temporary,
    /// Anything else, such as a staging directory or a symbolic link.
    Foreign,
}

/// Returns the entries of a directory and of all directories below it, sorted by path. Returns an empty list if there
/// is no directory at `root`. A file at this path is not an error here: the later attempt to create the directory fails
/// and reports the cause.
fn entries(root: &Path, is_own: IsOwn) -> Vec<DirectoryEntry> {
    let mut found = Vec::new();
    append_entries(root, Path::new(""), DEPTH, is_own, &mut found);
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Appends the entries of `root.join(below)` and of the directories below it to `found`.
fn append_entries(
    root: &Path,
    below: &Path,
    depth: u32,
    is_own: IsOwn,
    found: &mut Vec<DirectoryEntry>,
) {
    let entries = fs::read_dir(root.join(below));
    for entry in entries.into_iter().flatten().flatten() {
        let path = below.join(entry.file_name());
        let is_temporary = is_temporary_or_mark(&entry.file_name());
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 && !is_temporary => {
                append_entries(root, &path, depth - 1, is_own, found);
                EntryKind::Directory
            }
            Ok(kind) if kind.is_file() && is_temporary => EntryKind::Temporary,
            Ok(kind) if kind.is_file() => match File::open(entry.path()) {
                Ok(file) if is_own(&path, &file) => EntryKind::Own,
                _ => EntryKind::Foreign,
            },
            _ => EntryKind::Foreign,
        };
        found.push(DirectoryEntry { path, kind });
    }
}

/// Returns the paths, relative to a directory, of the files in it that this program has written. Does not follow
/// symbolic links.
pub(super) fn own_files(directory: &Path, is_own: IsOwn) -> Vec<PathBuf> {
    let own = entries(directory, is_own).into_iter();
    let own = own.filter(|entry| entry.kind == EntryKind::Own);
    own.map(|entry| entry.path).collect()
}

/// Removes from a directory all files that this program has written, including temporary files. Then removes the empty
/// directories within the directory.
pub(super) fn remove_own_files(directory: &Path, is_own: IsOwn) {
    // In the sorted list, a directory comes before its entries. So the list is processed from its end.
    for entry in entries(directory, is_own).iter().rev() {
        let path = directory.join(&entry.path);
        let _ = match entry.kind {
            EntryKind::Own | EntryKind::Temporary => fs::remove_file(path),
            EntryKind::Directory => fs::remove_dir(path),
            EntryKind::Foreign => Ok(()),
        };
    }
}

/// Removes the files that killed processes have left in a directory. A list in the directory names the file that is in
/// use. A file is removed if `is_ours` accepts its name and content, no process has locked it, and the list does not
/// name it. `listed` reads the list and returns the name, or `None` if there is no list. If `listed` fails, no file is
/// removed.
pub(crate) fn remove_unlisted_files(
    directory: &Path,
    is_ours: impl Fn(&str, &File) -> bool,
    listed: impl Fn() -> io::Result<Option<String>>,
) {
    let entries = fs::read_dir(directory);
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let Some(file) = File::open(entry.path()).ok().filter(|_| is_file) else {
            continue;
        };
        // The list is read only after the file is locked. If another process held the lock before, it has already
        // written the list.
        let is_left = is_ours(&name, &file)
            && file.try_lock().is_ok()
            && listed().is_ok_and(|listed| listed.as_ref() != Some(&name));
        if is_left {
            let _ = fs::remove_file(entry.path());
        }
    }
}
