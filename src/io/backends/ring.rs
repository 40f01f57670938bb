//! An executor that uses io_uring. Each chunk is written through a registered buffer, by a chain of reads and one
//! write. Several chunks are in flight at a time, and one system call submits several chains.
//!
//! A chain can fail because of an error, an interruption, or a short read or write. Its chunk is then copied again with
//! plain system calls instead of the ring. These calls either succeed or return the error, so the errors of single
//! operations in the ring need no handling.
#![allow(unsafe_code)]

use super::chunked::{CHUNK_LEN, Chunk, ChunkSegment, Executor, WriteJob};
use super::destination::Destination;
use crate::error::{Error, Result};
use crate::system;
use crate::system::Call;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Maximum number of chunks in flight. The buffers of all slots fit into the 8 MB of memory that an unprivileged
/// process may lock by default.
const SLOTS: usize = 6;
/// Number of entries of the submission queue.
const ENTRIES: u32 = 256;
/// The maximum number of segments of a chunk whose input ranges are read by a chain. A chunk with more segments is
/// filled by plain reads.
const MAX_SEGMENTS: usize = 16;
/// The number of chains that are submitted to the kernel together.
const BATCH: usize = 2;

/// An executor that runs jobs on an io_uring.
pub(crate) struct RingExecutor {
    destination: Arc<Destination>,
    ring: IoUring,
    slots: Vec<RingSlot>,
    /// The number of queued chains that are not submitted to the kernel yet.
    unsubmitted: usize,
}

/// A registered buffer, and the chunk that is written through this buffer.
#[derive(Default)]
struct RingSlot {
    /// A buffer of [`CHUNK_LEN`] bytes, registered with the ring. The kernel uses the buffer while `waiting` is not 0.
    /// The memory of the buffer never moves, and the process accesses it only while `waiting` is 0.
    buffer: Box<[u8]>,
    /// The chunk that is being written; `None` if the slot is free.
    chunk: Option<Chunk>,
    /// For each operation of the chain, the number of bytes that the operation must transfer.
    expected: Vec<u32>,
    /// The number of operations of the chain that are not completed.
    waiting: usize,
    /// Whether an operation failed or transferred fewer or more bytes than expected.
    incomplete: bool,
}

impl RingSlot {
    /// Copies the bytes of a chunk into the buffer, and returns the operations that read the ranges of inputs in the
    /// chunk. A chunk with too many segments is read with plain calls.
    fn prepare_reads(&mut self, chunk: &Chunk, buffer_index: u16) -> Result<Vec<squeue::Entry>> {
        self.expected.clear();
        let mut rest = &mut self.buffer[..chunk.len()];
        if chunk.segments.len() > MAX_SEGMENTS {
            chunk.fill(rest)?;
            return Ok(Vec::new());
        }
        let mut reads = Vec::new();
        for segment in &chunk.segments {
            let (part, after) = rest.split_at_mut(segment.len());
            match segment {
                ChunkSegment::Bytes(bytes) => part.copy_from_slice(bytes),
                ChunkSegment::Range(input, from, _) => {
                    let source = types::Fd(input.file().as_raw_fd());
                    let (buffer, len) = (part.as_mut_ptr(), part.len() as u32);
                    let read = opcode::ReadFixed::new(source, buffer, len, buffer_index);
                    reads.push(read.offset(*from).build().flags(squeue::Flags::IO_LINK));
                    self.expected.push(len);
                }
            }
            rest = after;
        }
        Ok(reads)
    }
}

impl RingExecutor {
    /// Sets up a ring. The error is a message with the reason why the system refuses the ring and, if known, a
    /// remedy.
    pub(crate) fn start(destination: &Arc<Destination>) -> Result<Self, String> {
        let ring = IoUring::new(ENTRIES).map_err(|error| setup_error_message(&error))?;
        let mut slots: Vec<RingSlot> = (0..SLOTS)
            .map(|_| RingSlot {
                buffer: vec![0; CHUNK_LEN].into_boxed_slice(),
                ..RingSlot::default()
            })
            .collect();
        let buffers: Vec<libc::iovec> = slots
            .iter_mut()
            .map(|slot| libc::iovec {
                iov_base: slot.buffer.as_mut_ptr().cast(),
                iov_len: slot.buffer.len(),
            })
            .collect();
        // SAFETY: the buffers are boxed slices in `slots`, and stay valid while they are registered. The registration
        // ends at the latest when `ring` is dropped, and `RingExecutor` drops `ring` before `slots`. If operations may
        // still be running then, `Drop` leaks the buffers.
        unsafe { ring.submitter().register_buffers(&buffers) }
            .map_err(|error| registration_error_message(&error))?;
        Ok(Self {
            destination: destination.clone(),
            ring,
            slots,
            unsubmitted: 0,
        })
    }

    /// Returns the index of a free slot. Waits for completions if all slots are in use.
    fn find_free_slot(&mut self) -> Result<usize> {
        loop {
            if let Some(free) = self.slots.iter().position(|slot| slot.chunk.is_none()) {
                return Ok(free);
            }
            self.reap_completions(1)?;
        }
    }

    /// Submits the queued chains, waits for `at_least` completions and processes all completions that have arrived.
    fn reap_completions(&mut self, at_least: usize) -> Result<()> {
        self.unsubmitted = 0;
        loop {
            match self.ring.submit_and_wait(at_least) {
                Ok(_) => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.destination.write_error(error)),
            }
        }
        let completions: Vec<(u64, i32)> = self
            .ring
            .completion()
            .map(|entry| (entry.user_data(), entry.result()))
            .collect();
        let mut done = Vec::new();
        for (user_data, result) in completions {
            let (index, operation) = ((user_data >> 32) as usize, user_data as u32 as usize);
            let slot = &mut self.slots[index];
            let expected = Some(slot.expected[operation]);
            let is_write = operation + 1 == slot.expected.len();
            let call = if is_write { Call::Write } else { Call::Read };
            let admitted = system::admit(call, 2).is_ok_and(|len| len == 2);
            slot.incomplete |= u32::try_from(result).ok() != expected || !admitted;
            slot.waiting -= 1;
            if slot.waiting == 0 {
                done.push(index);
            }
        }
        done.into_iter()
            .try_for_each(|index| self.finish_slot(index))
    }

    /// Finishes a slot whose operations are all completed. Repeats an incomplete chain with plain calls, and frees the
    /// slot.
    fn finish_slot(&mut self, index: usize) -> Result<()> {
        let slot = &mut self.slots[index];
        let missing = || Error::internal("a slot of io_uring has no chunk");
        let chunk = slot.chunk.take().ok_or_else(missing)?;
        let len = chunk.len();
        if slot.incomplete {
            let buffer = &mut slot.buffer[..len];
            chunk.fill(buffer)?;
            self.destination.write_at(buffer, chunk.offset)?;
        }
        for segment in &chunk.segments {
            if let ChunkSegment::Range(input, from, len) = segment {
                input.drop_pages_behind(*from, *len as u64);
            }
        }
        self.destination
            .start_writeback_of_chunk(chunk.offset, len as u64);
        Ok(())
    }

    /// Queues the chain of operations that writes a chunk through the slot `index`, which must be free. Submits the
    /// queued chains when there are [`BATCH`] of them.
    fn queue_chain(&mut self, index: usize, chunk: Chunk) -> Result<()> {
        let fd = types::Fd(self.destination.file().as_raw_fd());
        let slot = &mut self.slots[index];
        let len = chunk.len();
        let mut chain = slot.prepare_reads(&chunk, index as u16)?;
        let write = opcode::WriteFixed::new(fd, slot.buffer.as_ptr(), len as u32, index as u16);
        chain.push(write.offset(chunk.offset).build());
        slot.expected.push(len as u32);
        slot.waiting = chain.len();
        slot.incomplete = false;
        slot.chunk = Some(chunk);
        let chain: Vec<squeue::Entry> = chain
            .into_iter()
            .enumerate()
            .map(|(operation, entry)| entry.user_data((index as u64) << 32 | operation as u64))
            .collect();
        // The queue has room for the longest chains of all slots together. SAFETY: all descriptors stay open until the
        // operations are completed: `self` keeps the destination open, and the chunk in the slot keeps its inputs open.
        // The memory is the registered buffer of the slot. No other code touches the buffer before all operations are
        // completed.
        let pushed = unsafe { self.ring.submission().push_multiple(&chain) };
        if pushed.is_err() {
            // No operation was queued, so `finish_slot` does the work with plain calls.
            (slot.waiting, slot.incomplete) = (0, true);
            return self.finish_slot(index);
        }
        self.unsubmitted += 1;
        if self.unsubmitted >= BATCH {
            self.reap_completions(0)?;
        }
        Ok(())
    }

    /// Whether any operation is not completed.
    fn has_operations_in_flight(&self) -> bool {
        self.slots.iter().any(|slot| slot.waiting > 0)
    }
}

impl Executor for RingExecutor {
    fn copies_in_kernel(&self) -> bool {
        false
    }

    fn submit(&mut self, job: WriteJob) -> Result<()> {
        match job {
            WriteJob::Write(chunk) => {
                let slot = self.find_free_slot()?;
                self.queue_chain(slot, chunk)
            }
            WriteJob::Copy(input, transfer) => self.destination.copy(&input, transfer),
        }
    }

    fn wait(&mut self) -> Result<()> {
        while self.has_operations_in_flight() {
            self.reap_completions(1)?;
        }
        Ok(())
    }
}

impl Drop for RingExecutor {
    /// Waits for the kernel to finish all operations before their buffers are freed.
    fn drop(&mut self) {
        while self.has_operations_in_flight() {
            if self.ring.submit_and_wait(1).is_err() {
                // The kernel may still use the buffers, so they are leaked and not freed.
                for slot in &mut self.slots {
                    Box::leak(std::mem::take(&mut slot.buffer));
                }
                return;
            }
            let completed: Vec<u64> = self
                .ring
                .completion()
                .map(|entry| entry.user_data())
                .collect();
            for user_data in completed {
                // Indexing could panic, and a panic in `drop` can abort the process.
                if let Some(slot) = self.slots.get_mut((user_data >> 32) as usize) {
                    slot.waiting = slot.waiting.saturating_sub(1);
                }
            }
        }
        // Without this call, the kernel would release the locked memory only some time later, and the next ring could
        // exceed the limit of locked memory.
        let _ = self.ring.submitter().unregister_buffers();
    }
}

fn setup_error_message(error: &std::io::Error) -> String {
    let cause = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSYS) => "this kernel has no io_uring; it needs Linux 5.6 or later",
        Some(Errno::PERM | Errno::ACCESS) => {
            "it is forbidden here (sysctl kernel.io_uring_disabled, or a container's seccomp profile)"
        }
        Some(Errno::NOMEM) => {
            "the limit of locked memory is too low: raise RLIMIT_MEMLOCK (ulimit -l)"
        }
        _ => return format!("io_uring cannot be set up ({error})"),
    };
    format!("io_uring cannot be set up: {cause}")
}

fn registration_error_message(error: &std::io::Error) -> String {
    let needed = SLOTS * CHUNK_LEN / 1024;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOMEM | Errno::PERM) => format!(
            "io_uring may not lock its buffers: it needs {needed} kB, raise RLIMIT_MEMLOCK (ulimit -l)"
        ),
        _ => format!("io_uring cannot register its buffers ({error})"),
    }
}
