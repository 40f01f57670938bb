//! A directory in which fetched files are kept.

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

/// A directory in which the files of one server are kept, so that none is fetched twice.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The cache of a server below `directory`. Its name is that of the server, with characters that are safe in names.
    pub fn new(directory: impl Into<PathBuf>, base: &str) -> Self {
        let (_, server) = base.split_once("://").unwrap_or(("", base));
        let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-');
        let name: String = server
            .chars()
            .map(|char| if is_plain(char) { char } else { '_' })
            .collect();
        Self {
            directory: directory.into().join(name.trim_start_matches('.')),
        }
    }

    /// A file that was kept.
    pub(super) fn get(&self, name: &str) -> Option<File> {
        File::open(self.directory.join(name)).ok()
    }

    /// Keeps a file. It has its name when it is complete.
    pub(super) fn put(&self, name: &str, mut bytes: impl Read) -> Result<()> {
        let path = self.directory.join(name);
        let parent = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent)
            .map_err(|error| Error::io(parent, "cannot create this directory", error))?;
        let written = tempfile::NamedTempFile::new_in(parent).and_then(|mut file| {
            io::copy(&mut bytes, &mut file)?;
            file.persist(&path)?;
            Ok(())
        });
        written.map_err(|error| Error::io(&path, "cannot write", error))
    }
}
