//! A buffer for the text of objects.

use std::fmt;
use std::ops::Range;

/// A growable string. Unlike a `String`, it can append a fixed-size array and then drop the unused bytes, which is fast
/// for digits.
#[derive(Debug, Default)]
pub(crate) struct TextBuffer {
    /// The text. It is valid UTF-8, because only strings, characters and ASCII are appended.
    bytes: Vec<u8>,
    /// The range in `bytes` of the last object's metadata; empty if that metadata may not be copied.
    last_info: Range<usize>,
}

impl TextBuffer {
    pub(super) const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            last_info: 0..0,
        }
    }

    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ..Self::new()
        }
    }

    /// Returns the text.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the length in bytes.
    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline(always)]
    pub(super) fn push(&mut self, char: char) {
        match u8::try_from(char) {
            Ok(byte) if byte.is_ascii() => self.bytes.push(byte),
            _ => self.push_str(char.encode_utf8(&mut [0; 4])),
        }
    }

    #[inline(always)]
    pub(super) fn push_str(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Appends the first `len` bytes of `text`, which must be ASCII.
    #[inline(always)]
    pub(super) fn push_ascii<const N: usize>(&mut self, text: [u8; N], len: usize) {
        debug_assert!(text.iter().take(len).all(u8::is_ascii));
        let end = self.bytes.len() + len.min(N);
        self.bytes.extend_from_slice(&text);
        self.bytes.truncate(end);
    }

    /// Appends ASCII text of at most `max` bytes. Calls `put` with a slice of `max` bytes. `put` writes the text to the
    /// start of the slice, and returns the length of the text.
    #[inline(always)]
    pub(super) fn push_ascii_with(&mut self, max: usize, put: impl FnOnce(&mut [u8]) -> usize) {
        let start = self.bytes.len();
        self.bytes.resize(start + max, 0);
        let space = &mut self.bytes[start..];
        let len = put(space).min(max);
        debug_assert!(space.iter().take(len).all(u8::is_ascii));
        self.bytes.truncate(start + len);
    }

    /// Appends the metadata of an object as text. `is_same` tells whether the metadata equals that of the previous
    /// object. If it does, and if the text of the previous object's metadata may be copied, copies that text. Otherwise
    /// calls `put`, which appends the text and returns whether it may be copied for the next object.
    #[inline]
    pub(super) fn put_info(&mut self, is_same: bool, put: impl FnOnce(&mut Self) -> bool) {
        if is_same && !self.last_info.is_empty() {
            self.bytes.extend_from_within(self.last_info.clone());
            return;
        }
        let start = self.len();
        let is_all = put(self);
        self.last_info = if is_all { start..self.len() } else { 0..0 };
    }

    /// Removes the text from byte `len` on. `len` must be a character boundary.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        if self.last_info.end > len {
            self.last_info = 0..0;
        }
    }

    /// Removes the whole text, and returns it.
    pub(super) fn take(&mut self) -> String {
        let Self { bytes, .. } = std::mem::take(self);
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl fmt::Write for TextBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

impl From<TextBuffer> for Vec<u8> {
    fn from(text: TextBuffer) -> Self {
        text.bytes
    }
}
