//! Directories of output files, which appear as a whole or not at all.

use super::{OpenOutput, OutputTarget, unfinished};
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// A directory of output files, which is removed again unless [`complete`](Self::complete) is called.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    root: PathBuf,
    /// The directories that were created, each after its parent.
    directories: Vec<PathBuf>,
    /// The files that may have got their names.
    files: Vec<PathBuf>,
}

impl OutputDirectory {
    /// Begins a directory of files. Fails if it exists and is not empty.
    pub(crate) fn create(root: &Path) -> Result<Self> {
        let mut directory = Self {
            root: root.to_owned(),
            directories: Vec::new(),
            files: Vec::new(),
        };
        if let Ok(mut entries) = fs::read_dir(root) {
            return match entries.next() {
                None => Ok(directory),
                Some(_) => Err(Error::file(
                    root,
                    "the directory is not empty: remove it, or choose another",
                )),
            };
        }
        directory.make(root.to_owned())?;
        Ok(directory)
    }

    fn make(&mut self, path: PathBuf) -> Result<()> {
        unfinished::add(&path);
        let made = fs::create_dir(&path);
        made.map_err(|error| Error::io(&path, "cannot create the directory", error))?;
        self.directories.push(path);
        Ok(())
    }

    /// Opens a file in a directory below the root, which is created with its first file.
    pub(crate) fn open(&mut self, directory: &str, name: &str) -> Result<OpenOutput> {
        let directory = self.root.join(directory);
        if !directory.is_dir() {
            self.make(directory.clone())?;
        }
        let path = directory.join(name);
        self.files.push(path.clone());
        OpenOutput::open(OutputTarget::File {
            path,
            overwrite: false,
        })
    }

    /// Keeps the directory. All of its files must have their names.
    pub(crate) fn complete(mut self) {
        self.files.clear();
        for directory in self.directories.drain(..) {
            unfinished::end(&directory, || ());
        }
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for directory in self.directories.iter().rev() {
            unfinished::end(directory, || {
                let _ = fs::remove_dir(directory);
            });
        }
    }
}
