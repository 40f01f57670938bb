//! Small files that are kept for later runs and can be fetched again.

use super::file_lock::open_without_waiting;
use super::{OpenOutput, temporary};
use crate::error::{Error, Result};
use crate::runtime::Cancellation;
use crate::system;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file. Returns `None` if it does not exist or cannot be opened.
///
/// # Errors
///
/// Something other than a regular file is at the path, such as a named pipe, which would make the reader wait forever.
pub(crate) fn open_kept_file(path: &Path) -> Result<Option<File>> {
    let Ok(metadata) = path.metadata() else {
        return Ok(None);
    };
    if !metadata.is_file() {
        let cause = "this is no regular file, so that nothing can be kept in it: remove it, or keep files elsewhere";
        return Err(Error::file(path, cause));
    }
    Ok(open_without_waiting(path).ok())
}

/// Writes a file. The file gets its name when it is complete. First removes an existing file at `path`, because callers
/// have found it to be damaged. The data are not flushed to disk. The file may therefore be damaged after a crash of
/// the machine. The reader has to detect such damage.
pub(crate) fn write_kept_file(path: &Path, mut bytes: impl Read) -> Result<()> {
    let failed = |error| Error::io(path, "cannot write", error);
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let OpenOutput { output, file, .. } =
        OpenOutput::open_hidden(path.to_owned(), path.to_owned(), &Cancellation::default())?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let len = bytes.read(&mut buffer).map_err(failed)?;
        if len == 0 {
            break;
        }
        system::write(&file, &buffer[..len]).map_err(failed)?;
    }
    match output.commit_unflushed() {
        // Another run has written the same file in the meantime. That file is as good as this one.
        Err(_) if path.is_file() => Ok(()),
        result => result,
    }
}

/// Removes unused temporary files from a directory. A file is unused if no process has locked it. Also removes such
/// files of earlier versions of this program, which used other names.
pub(crate) fn remove_temporary_files(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary = temporary::is_temporary_name(&name) || is_old_temporary_name(&name);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_unused = |file: File| file.try_lock().is_ok();
        if is_temporary && is_file && File::open(entry.path()).is_ok_and(is_unused) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a name is `.tmp` followed by six letters or digits.
fn is_old_temporary_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let random = name.strip_prefix(b".tmp");
    random.is_some_and(|random| random.len() == 6 && random.iter().all(u8::is_ascii_alphanumeric))
}
