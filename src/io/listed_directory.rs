//! Directories with a list file, which names the other files to readers.

use super::directory_content::IsOwn;
use super::output::Directory;
use super::output_target::real_path;
use super::replaced_files::ReplacedFiles;
use super::staging::{self, Staging};
use super::{OpenOutput, OutputTarget, StreamOutput, unfinished};
use crate::error::{Error, Result};
use crate::runtime::{Cancellation, Context};
use crate::system::{self, Call};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A set of new files in a directory, which may already contain older files. One of the new files is the list, which
/// names the other new files to readers. All new files are removed unless [`complete`](Self::complete) succeeds.
///
/// If the directory does not exist, the files are written to a staging directory, which is renamed at the end. If the
/// directory exists, the list is replaced after all other new files have got their names.
#[derive(Debug)]
pub(crate) struct ListedDirectory {
    root: PathBuf,
    real: PathBuf,
    /// The staging directory; `None` if the target directory existed before.
    staging: Option<Staging>,
    /// The new files, if the target directory existed before; otherwise empty.
    created: Vec<PathBuf>,
    /// The files of an earlier run, whose access the new files get.
    replaced: ReplacedFiles,
    /// The warning that the new files cannot have all attributes of those that they replace.
    warning: Option<String>,
    cancellation: Cancellation,
}

impl ListedDirectory {
    /// Begins a set of files in a directory. A directory that does not exist is created by
    /// [`complete`](Self::complete). The new files replace those that `is_own` recognises, and get their access.
    pub(crate) fn create_or_extend(root: &Path, is_own: IsOwn, ctx: &Context) -> Result<Self> {
        let real = real_path(root);
        staging::clear(&real, |directory| {
            let _ = fs::remove_dir_all(directory);
        });
        let staging = if real.is_dir() {
            None
        } else {
            Some(Staging::begin(root, &real)?)
        };
        Ok(Self {
            root: root.to_owned(),
            replaced: ReplacedFiles::of(&real, is_own),
            warning: None,
            real,
            staging,
            created: Vec::new(),
            cancellation: ctx.cancellation.clone(),
        })
    }

    /// The directory in which the files are written.
    pub(crate) fn place(&self) -> &Path {
        self.staging.as_ref().map_or(&self.real, Staging::path)
    }

    /// Opens a new file in the directory.
    pub(crate) fn open(&mut self, name: &str) -> Result<OpenOutput> {
        let (place, shown) = (self.place().join(name), self.root.join(name));
        let output = OpenOutput::hidden(place.clone(), shown, &self.cancellation)?;
        let warning = self.replaced.pass_to_file(Path::new(name), &output.file);
        self.warning = self.warning.take().or(warning);
        match &mut self.staging {
            Some(staging) => staging.add(place),
            None => {
                unfinished::add(&place);
                self.created.push(place);
            }
        }
        Ok(output)
    }

    /// Flushes the files to disk, gives them their names, and writes the list, which is called `name`.
    pub(crate) fn complete(
        self,
        files: Vec<StreamOutput>,
        name: &str,
        list: &[u8],
        ctx: &Context,
    ) -> Result<()> {
        if let Some(warning) = &self.warning {
            ctx.warn(warning.clone());
        }
        let Some(staging) = &self.staging else {
            // The locks keep other runs from mistaking the new files for those that a killed process left.
            let held: Vec<_> = files.iter().map(StreamOutput::hold).collect();
            commit_all(files)?;
            let target = OutputTarget::File {
                path: self.root.join(name),
                overwrite: true,
            };
            let output = OpenOutput::open(target, ctx)?;
            let _ = self.replaced.pass_to_file(Path::new(name), &output.file);
            let mut output = StreamOutput::new(output);
            output.write(list)?;
            output.commit_with(&self.created)?;
            drop(held);
            return Ok(());
        };
        commit_all(files)?;
        let place = staging.path().join(name);
        let mut output = StreamOutput::new(OpenOutput::hidden(
            place.clone(),
            self.root.join(name),
            &self.cancellation,
        )?);
        unfinished::add(&place);
        output.write(list)?;
        let committed = output.commit();
        let mut created = staging.created.clone();
        created.push(place);
        let parent = Directory::of(&self.real);
        let placed = committed.and_then(|_| {
            let renamed = unfinished::end(None, &created, || {
                system::admit(Call::Rename, 0)?;
                fs::rename(staging.path(), &self.real)
            });
            let renamed = renamed.and_then(|()| parent.sync());
            renamed.map_err(|error| {
                Error::io(
                    &self.root,
                    "cannot give the finished output its name",
                    error,
                )
            })
        });
        if placed.is_err() {
            unfinished::abandon(&created);
        }
        placed
    }
}

impl Drop for ListedDirectory {
    fn drop(&mut self) {
        unfinished::abandon(&self.created);
    }
}

fn commit_all(files: Vec<StreamOutput>) -> Result<()> {
    files
        .into_iter()
        .try_for_each(|file| file.commit().map(drop))
}

/// Removes the files that killed processes have left in a directory. A file is removed if `is_ours` accepts its name
/// and content, no process has locked it, and the list does not name it. `listed` returns the name in the list, or
/// `None` if there is no list. If `listed` fails, no file is removed.
pub(crate) fn remove_unlisted(
    directory: &Path,
    is_ours: impl Fn(&str, &File) -> bool,
    listed: impl Fn() -> io::Result<Option<String>>,
) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let Some(file) = File::open(entry.path()).ok().filter(|_| is_file) else {
            continue;
        };
        // The list is read only after the file is locked. If another process held the lock before, that process has
        // already written its list.
        let is_left = is_ours(&name, &file)
            && file.try_lock().is_ok()
            && listed().is_ok_and(|listed| listed.as_ref() != Some(&name));
        if is_left {
            let _ = fs::remove_file(entry.path());
        }
    }
}
