//! Outputs that are written to a [`Write`] of the caller.

use crate::error::{Error, FileResult, Result};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A [`Write`] of the caller, which accepts one output.
#[derive(Clone)]
pub struct WriterTarget(Arc<Mutex<Option<Box<dyn Write + Send>>>>);

impl WriterTarget {
    pub(super) fn new(writer: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(Some(writer))))
    }
}

impl std::fmt::Debug for WriterTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriterTarget")
    }
}

impl PartialEq for WriterTarget {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for WriterTarget {}

/// The name that messages use for an output that is written to a [`WriterTarget`].
pub(super) const NAME: &str = "the writer";

#[cfg(unix)]
mod pipe {
    use super::*;
    use crate::runtime::lock;
    use std::net::Shutdown;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread::JoinHandle;

    /// A thread that copies an output to the writer as it is written.
    #[derive(Debug)]
    pub(in crate::io) struct WriterPipe {
        /// The end of the socket pair to which the output is written. Its descriptors may outlive this value, so only a
        /// shutdown ends the copy.
        end: UnixStream,
        thread: JoinHandle<io::Result<()>>,
    }

    impl WriterPipe {
        /// Starts the thread. Returns the file to write to.
        pub(in crate::io) fn open(target: &WriterTarget) -> Result<(Self, File)> {
            let failed = |error| Error::io(Path::new(NAME), "cannot open", error);
            let writer = lock(&target.0).take();
            let mut writer = writer.ok_or_else(|| {
                let cause =
                    "an output has been written to it before: each needs a target of its own";
                Error::file(Path::new(NAME), cause)
            })?;
            let (end, mut source) = UnixStream::pair().map_err(failed)?;
            let file = File::from(OwnedFd::from(end.try_clone().map_err(failed)?));
            let copy = move || {
                let copied = io::copy(&mut source, &mut writer).and_then(|_| writer.flush());
                // Closes this end, so that later writes to the other end fail with a broken pipe.
                drop(source);
                copied
            };
            let thread = std::thread::Builder::new().spawn(copy).map_err(failed)?;
            Ok((Self { end, thread }, file))
        }

        /// Ends the copy, and waits until the writer has received everything.
        pub(in crate::io) fn finish(self) -> Result<()> {
            let ended = self.end.shutdown(Shutdown::Write);
            let copied = self.thread.join();
            let copied = copied.unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
            copied.and(ended).for_path(Path::new(NAME), "cannot write")
        }
    }
}

#[cfg(not(unix))]
mod pipe {
    use super::*;

    /// A thread that copies an output to a writer. Not available on this system.
    #[derive(Debug)]
    pub(in crate::io) enum WriterPipe {}

    impl WriterPipe {
        pub(in crate::io) fn open(_: &WriterTarget) -> Result<(Self, File)> {
            let cause = "on this system, outputs are files or standard output";
            Err(Error::file(Path::new(NAME), cause))
        }

        pub(in crate::io) fn finish(self) -> Result<()> {
            match self {}
        }
    }
}

pub(super) use pipe::WriterPipe;
