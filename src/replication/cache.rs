//! A cache directory for fetched files.

use crate::error::{Advice, Error, FileResult, Result};
use crate::io::{open_kept_file, remove_temporary_files, write_kept_file};
use crate::net::ChangeForm;
use crate::osm::has_change_root;
use crate::runtime::lock;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A cache directory for the files of one server, so that no file is fetched twice.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
    /// The directories in which this run has removed the temporary files of killed runs.
    cleared: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Cache {
    /// Creates the cache of the server with the URL `base`, in a subdirectory of `directory`. The subdirectory is named
    /// after the server. Characters that are not safe in file names are replaced.
    pub fn new(directory: impl Into<PathBuf>, base: &str) -> Self {
        let (_, server) = base.split_once("://").unwrap_or(("", base));
        let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-');
        let name: String = server
            .chars()
            .map(|char| if is_plain(char) { char } else { '_' })
            .collect();
        Self {
            directory: directory.into().join(name.trim_start_matches('.')),
            cleared: Arc::default(),
        }
    }

    /// Returns a file from the cache, or `None` if the file is missing or cannot be read.
    ///
    /// # Errors
    ///
    /// The cache directory has a file with this name that cannot come from a cache and must not be overwritten.
    pub(super) fn get(&self, name: &str) -> Result<Option<File>> {
        let path = self.directory.join(name);
        self.clear_temporary_files(path.parent().unwrap_or(&self.directory));
        let Some(mut file) = open_kept_file(&path)? else {
            return Ok(None);
        };
        let mut head = Vec::new();
        let read = (&mut file).take(HEAD_LEN).read_to_end(&mut head);
        if read.and_then(|_| file.rewind()).is_err() {
            return Ok(None);
        }
        if !may_be_cached_file(name, &head) {
            let cause = "this is no file that was fetched from a server, and is not replaced";
            return Err(Error::file(&path, cause).advise(Advice::ChooseCache));
        }
        Ok(Some(file))
    }

    /// Stores a file. The file appears under `name` only when it is complete.
    pub(super) fn put(&self, name: &str, bytes: impl Read) -> Result<()> {
        let path = self.directory.join(name);
        let parent = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent).for_path(parent, "cannot create this directory")?;
        write_kept_file(&path, bytes)
    }

    /// Removes the temporary files of killed runs from a directory, unless this run has already done so.
    fn clear_temporary_files(&self, directory: &Path) {
        let mut cleared = lock(&self.cleared);
        if cleared.insert(directory.to_owned()) {
            remove_temporary_files(directory);
        }
    }
}

/// The number of bytes at the start of a file that [`may_be_cached_file`] checks.
const HEAD_LEN: u64 = 4096;

/// Whether a file that begins with `bytes` may be a complete or damaged file of a cache. The files of a cache are
/// change files, which are gzip data or not compressed, and state files. Empty files and files of zeros are accepted,
/// too, because a crash of the machine may leave them.
fn may_be_cached_file(name: &str, bytes: &[u8]) -> bool {
    let has = |words: &str| {
        bytes
            .windows(words.len())
            .any(|part| part == words.as_bytes())
    };
    let is_known = if name.ends_with(".gz") {
        let form = ChangeForm::detect(bytes);
        let is_other = form.is_some_and(|form| form != ChangeForm::Xml);
        bytes.starts_with(&[0x1f, 0x8b]) || has_change_root(bytes) || is_other
    } else {
        bytes.starts_with(b"#") || has("sequenceNumber") || has("timestamp")
    };
    is_known || bytes.iter().all(|byte| *byte == 0)
}
