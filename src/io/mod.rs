//! Input and output files. Input files are read at any offset. Output files appear under their name only when they are
//! complete.

mod access;
#[cfg(target_os = "linux")]
mod access_list;
mod backends;
mod decompress;
mod direct;
mod directory_content;
mod file_identity;
mod file_lock;
mod input;
mod kept_file;
mod mapped_file;
mod output;
mod output_directory;
mod output_target;
mod published;
mod replaced;
mod replaced_files;
mod scratch_directory;
mod size_hint;
mod spool;
mod staging;
mod stream_output;
mod temporary;
mod unfinished;
mod writer_target;

pub(crate) use backends::{Backend, check_space, open_backend};
pub(crate) use decompress::{FileCompression, count_remaining_bytes, decompressed_reader, gunzip};
pub(crate) use directory_content::remove_unlisted_files;
pub(crate) use file_lock::FileLock;
pub use input::Input;
pub(crate) use kept_file::{open_kept_file, remove_temporary_files, write_kept_file};
pub(crate) use mapped_file::MappedFile;
pub use output::{OpenOutput, Output};
pub(crate) use output_directory::OutputDirectory;
pub use output_target::{OutputTarget, ScratchFile};
pub(crate) use published::{create_directories, publish};
pub(crate) use replaced::check_shrink;
pub(crate) use replaced_files::ReplacedFiles;
pub use scratch_directory::ScratchDirectory;
pub use size_hint::SizeHint;
pub(crate) use spool::Spool;
pub(crate) use stream_output::{StreamOutput, commit_together};
pub use unfinished::abandon_unfinished;
pub use writer_target::WriterTarget;

/// The number of bytes of the first read of a file, and of the read that searches its end for the table of contents.
pub(crate) const FIRST_READ: usize = 64 * 1024;
