//! Temporary directories that are removed with everything in them.

use super::unfinished;
use crate::error::{FileResult, Result};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary directory. It is removed with everything in it when the value is dropped, and when a signal ends the
/// program.
#[derive(Debug)]
pub struct ScratchDirectory {
    directory: TempDir,
    is_kept: bool,
}

impl ScratchDirectory {
    /// Creates a directory in `parent`. If `parent` is `None`, uses the system's directory for temporary files.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
    pub fn create(parent: Option<&Path>) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let directory = tempfile::Builder::new()
            .prefix("pbfhogg-")
            .tempdir_in(&parent)
            .for_path(&parent, "cannot create a temporary directory there")?;
        unfinished::register_tree(directory.path());
        Ok(Self {
            directory,
            is_kept: false,
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps the directory permanently. Returns its path.
    #[cfg(feature = "cli")]
    pub fn keep(mut self) -> PathBuf {
        self.directory.disable_cleanup(true);
        self.is_kept = true;
        self.path().to_owned()
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(self.path());
        }
        unfinished::unregister_tree(self.path());
    }
}
