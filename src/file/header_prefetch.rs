//! Reads the headers of frames into the page cache, ahead of a walk over the frames.
//!
//! The position of a frame depends on the header of the frame before it, so a walk waits for the disk once per frame.
//! Several threads therefore walk over later parts of the file concurrently, and discard the headers that they read.
//! When the walk itself reads these headers again, they are in the page cache.

use super::frame_start::{FrameStart, find_frame_in_range};
use super::header_walker::HeaderWalker;
use crate::error::Result;
use crate::io::Input;
use crate::pbf::BlobKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// The number of parts that a file is divided into. The walk itself reads the first part. Each other part has a thread,
/// with one read in flight.
const PARTS: u64 = 16;
/// The minimum size in bytes of a range whose headers are read ahead.
const MIN_LEN: u64 = 256 << 20;
/// The number of bytes in which a thread searches for its first frame. Most frames are far shorter.
const SEARCH_LEN: u64 = 4 << 20;

/// Threads that read headers ahead. Dropping the value stops them.
#[derive(Debug)]
pub(super) struct HeaderPrefetch {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl HeaderPrefetch {
    /// Starts threads that read the headers of the frames in a range of bytes. Does nothing for short ranges, or for an
    /// input that bypasses the page cache.
    pub(super) fn start(input: &Input, range: Range<u64>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let len = range.end.saturating_sub(range.start);
        let parts = if len >= MIN_LEN && !input.is_direct() {
            1..PARTS
        } else {
            0..0
        };
        let part = |part: u64| range.start + len / PARTS * part;
        let threads = parts.map_while(|index| {
            let (input, is_over) = (input.clone(), Arc::clone(&is_over));
            let part = part(index)..part(index + 1);
            let read = move || read_headers(&input, part, &is_over);
            // If a thread cannot be started, no further ones are started. This only makes the walk slower.
            Builder::new().spawn(read).ok()
        });
        let threads = threads.collect();
        Self { is_over, threads }
    }
}

impl Drop for HeaderPrefetch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// Reads the headers of the frames that begin in a range of bytes, until `is_over` is set. Ends silently at an error,
/// because the walk itself will report it.
fn read_headers(input: &Input, part: Range<u64>, is_over: &AtomicBool) {
    if let Ok(Some(start)) = find_data_frame_near(input, part.start) {
        let mut heads = HeaderWalker::new(input, start..part.end);
        while !is_over.load(Ordering::Relaxed) && heads.next().is_some_and(|head| head.is_ok()) {}
    }
}

/// Returns the offset of the first data frame at `from` or after it; `None` if there is no frame nearby. Accepts a
/// frame only if it is followed by a data frame or by the end of the file.
fn find_data_frame_near(input: &Input, from: u64) -> Result<Option<u64>> {
    let accepts = |offset| match frame_end(input, offset)? {
        Some(end) => Ok(end == input.len() || frame_end(input, end)?.is_some()),
        None => Ok(false),
    };
    find_frame_in_range(input, from..from + SEARCH_LEN, || Ok(()), accepts)
}

/// Returns the end of the data frame at `offset`; `None` if there is no data frame.
fn frame_end(input: &Input, offset: u64) -> Result<Option<u64>> {
    let start = FrameStart::read(input, offset)?;
    let frame = start.parse().ok();
    let data = frame.filter(|frame| frame.header.kind == BlobKind::Data);
    Ok(data.map(|frame| frame.entry.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::PbfFile;
    use crate::runtime::Context;
    use std::path::Path;

    #[test]
    fn a_frame_is_found_from_any_offset_in_the_previous_frame() {
        let malta = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/malta.osm.pbf");
        let file = PbfFile::open(&malta, &Context::new(1)).unwrap();
        let heads: Vec<u64> = file
            .frames()
            .map(|head| head.unwrap().entry.offset)
            .collect();
        for pair in heads.windows(2) {
            for from in [pair[0] + 1, (pair[0] + pair[1]) / 2, pair[1] - 1, pair[1]] {
                let found = find_data_frame_near(&file.input, from).unwrap();
                assert_eq!(found, Some(pair[1]), "from {from}");
            }
        }
        for from in [heads[heads.len() - 1] + 1, file.input.len() + 5] {
            assert_eq!(find_data_frame_near(&file.input, from).unwrap(), None);
        }
    }
}
