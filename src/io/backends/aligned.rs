//! Buffers that are aligned as `O_DIRECT` requires.

/// The alignment of direct transfers in bytes. Offsets, lengths and memory addresses are multiples of this number.
/// Disks require 512 or 4096.
pub(crate) const ALIGNMENT: usize = 4096;

/// A growable buffer that starts at an address that is a multiple of [`ALIGNMENT`].
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    /// The index of the first aligned byte of `memory`.
    start: usize,
}

impl AlignedBuffer {
    /// Returns the first `len` bytes of the buffer, which grows if necessary. The content of the bytes is unspecified.
    pub(crate) fn slice(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < self.start + len {
            self.memory = vec![0; len + ALIGNMENT];
            self.start = self.memory.as_ptr().align_offset(ALIGNMENT);
        }
        &mut self.memory[self.start..self.start + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_at_every_length() {
        let mut buffer = AlignedBuffer::default();
        for len in [1, 4096, 4097, 1 << 20, 3 << 20, 5] {
            let slice = buffer.slice(len);
            assert_eq!(slice.len(), len);
            assert_eq!(slice.as_ptr() as usize % ALIGNMENT, 0);
        }
    }
}
