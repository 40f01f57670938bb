//! Directories of output files, which appear as a whole or not at all.

use super::output::{check_directory, directory_of};
use super::{OpenOutput, OutputTarget, StreamOutput, unfinished};
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// New files in a directory, which are removed again unless they are kept at the end.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    root: PathBuf,
    /// The directories that were created, each after its parent, and the files that may have got their names.
    created: Vec<PathBuf>,
}

impl OutputDirectory {
    /// Begins a directory of files. Fails if it exists and is not empty.
    #[cfg(feature = "parquet")]
    pub(crate) fn create(root: &Path) -> Result<Self> {
        let is_empty = fs::read_dir(root).map_or(true, |mut entries| entries.next().is_none());
        match is_empty {
            true => Self::create_or_extend(root),
            false => Err(Error::file(
                root,
                "the directory is not empty: remove it, or choose another",
            )),
        }
    }

    /// Begins files in a directory, which may have other files, and is made if it does not exist.
    pub(crate) fn create_or_extend(root: &Path) -> Result<Self> {
        let mut directory = Self {
            root: root.to_owned(),
            created: Vec::new(),
        };
        if !root.is_dir() {
            check_directory(directory_of(root), root)?;
            directory.make(root.to_owned())?;
        }
        Ok(directory)
    }

    fn make(&mut self, path: PathBuf) -> Result<()> {
        unfinished::add(&path);
        let made = fs::create_dir(&path);
        made.map_err(|error| {
            unfinished::end_all(std::slice::from_ref(&path));
            Error::io(&path, "cannot create the directory", error)
        })?;
        self.created.push(path);
        Ok(())
    }

    /// Opens a new file in the directory.
    pub(crate) fn open(&mut self, name: &str) -> Result<OpenOutput> {
        self.open_at(self.root.join(name))
    }

    /// Opens a new file in a directory below, which is created with its first file.
    #[cfg(feature = "parquet")]
    pub(crate) fn open_below(&mut self, directory: &str, name: &str) -> Result<OpenOutput> {
        let directory = self.root.join(directory);
        if !directory.is_dir() {
            self.make(directory.clone())?;
        }
        self.open_at(directory.join(name))
    }

    fn open_at(&mut self, path: PathBuf) -> Result<OpenOutput> {
        let output = OpenOutput::open(OutputTarget::File {
            path: path.clone(),
            overwrite: false,
        })?;
        unfinished::add(&path);
        self.created.push(path);
        Ok(output)
    }

    /// Keeps the files. All of them must have their names.
    #[cfg(feature = "parquet")]
    pub(crate) fn complete(self) {
        unfinished::end_all(&self.created);
    }

    /// Commits `last`, a file by which readers find the others, and keeps the files from that moment on. All of them must
    /// have their names.
    pub(crate) fn complete_with(self, last: StreamOutput) -> Result<()> {
        last.commit_with(&self.created)?;
        Ok(())
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        unfinished::abandon(&self.created);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_with_the_last_of_them_only() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("index");
        for is_free in [false, true] {
            let mut directory = OutputDirectory::create_or_extend(&root).unwrap();
            let mut file = StreamOutput::new(directory.open("data").unwrap());
            file.write(b"data").unwrap();
            file.commit().unwrap();
            let manifest = root.join("manifest");
            let target = OutputTarget::File {
                path: manifest.clone(),
                overwrite: false,
            };
            let last = StreamOutput::new(OpenOutput::open(target).unwrap());
            if !is_free {
                fs::write(&manifest, "of another process").unwrap();
            }
            assert_eq!(directory.complete_with(last).is_ok(), is_free);
            assert_eq!(root.join("data").exists(), is_free);
            fs::remove_file(manifest).unwrap();
        }
    }
}
