//! Chooses and opens the backend of an output.

use super::{Backend, Buffered, Chunked, Destination, Pool};
use crate::error::{Error, Result};
use crate::io::output::Output;
use crate::io::size_hint::SizeHint;
use crate::runtime::{Context, IoMode, human_bytes};
use crate::system;
use std::fs::File;
use std::sync::Arc;

/// The buffer size of [`Buffered`] in bytes.
const BUFFER_LEN: u64 = 1 << 20;
/// The minimum size in bytes of an output that [`IoMode::Auto`] writes with several threads.
const MIN_PARALLEL_LEN: u64 = 256 << 20;

/// Fails if the bytes to copy exceed the free space of the output's file system. Warns if the estimated size of the
/// output exceeds the free space. Checks nothing if the file system can share blocks or does not report its free space.
pub(crate) fn check_space(
    output: &Output,
    file: &File,
    size_hint: &SizeHint,
    ctx: &Context,
) -> Result<()> {
    // A copy that shares blocks with the input needs no space, so the required space is unknown.
    if system::shares_blocks(file) {
        return Ok(());
    }
    let Some(free) = output.free_space() else {
        return Ok(());
    };
    let message = |needed: u64| {
        format!(
            "the output takes about {}, and {} are free on its file system",
            human_bytes(needed),
            human_bytes(free)
        )
    };
    if free < size_hint.copied {
        return Err(Error::file(output.path(), message(size_hint.copied)));
    }
    if free < size_hint.bytes {
        ctx.warn(format!(
            "{}: this may fail: {}",
            output.path().display(),
            message(size_hint.bytes)
        ));
    }
    Ok(())
}

/// Opens the backend of an output for the I/O mode in `ctx`. Opens a simpler backend if the system or the output does
/// not support that mode. Reserves disk space for the bytes to copy, and fails if the disk is too full. Reserves
/// nothing if the file system can share blocks.
pub(crate) fn open_backend(
    output: &Output,
    file: File,
    is_stream: bool,
    size_hint: &SizeHint,
    ctx: &Context,
) -> Result<Box<dyn Backend>> {
    let path = output.path();
    if !is_stream && size_hint.copied > 0 && !system::shares_blocks(&file) {
        match system::reserve(&file, size_hint.copied) {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                return Err(Error::io(path, "cannot reserve space", error));
            }
            // Other errors do not matter, because not every file system can reserve space.
            _ => {}
        }
    }
    let mode = match ctx.io {
        _ if is_stream => IoMode::Buffered,
        IoMode::Auto | IoMode::Parallel if size_hint.others > 0 => IoMode::Buffered,
        IoMode::Auto if size_hint.bytes >= MIN_PARALLEL_LEN => IoMode::Parallel,
        IoMode::Auto => IoMode::Buffered,
        asked => asked,
    };
    let direct = match mode {
        IoMode::Direct => output.open_direct(ctx),
        _ => None,
    };
    let destination = Destination::new(path.to_owned(), file, !is_stream, size_hint.bytes, ctx)
        .with_flushing(output.is_flushed_on_commit());
    if matches!(mode, IoMode::Auto | IoMode::Buffered) {
        let buffer_len = size_hint.buffer_share(BUFFER_LEN) as usize;
        return Ok(Box::new(Buffered::new(destination, buffer_len)));
    }
    let destination = Arc::new(destination);
    if mode == IoMode::IoUring {
        match open_ring(&destination) {
            Ok(backend) => return Ok(backend),
            Err(reason) => ctx.warn(format!("{reason}: writing with threads instead")),
        }
    }
    let pool = Pool::start(destination.clone(), direct)?;
    Ok(Box::new(Chunked::new(destination, pool)))
}

/// Opens a backend that writes with io_uring. If the system refuses the ring, the error is a message with the reason.
#[cfg(target_os = "linux")]
fn open_ring(destination: &Arc<Destination>) -> Result<Box<dyn Backend>, String> {
    let ring = super::RingExecutor::start(destination)?;
    Ok(Box::new(Chunked::new(destination.clone(), ring)))
}

/// Fails, because only Linux has io_uring.
#[cfg(not(target_os = "linux"))]
fn open_ring(_: &Arc<Destination>) -> Result<Box<dyn Backend>, String> {
    Err("io_uring is a part of Linux".into())
}
