//! A buffer for the text of objects.

use std::fmt;
use std::ops::Range;

/// A growable string. Unlike a `String`, it can store the digits of a number several at a time (see [`ShortText`]).
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

    /// Appends `text`, which must be ASCII.
    #[inline(always)]
    pub(super) fn push_ascii<const N: usize>(&mut self, text: [u8; N]) {
        debug_assert!(text.is_ascii());
        self.bytes.extend_from_slice(&text);
    }

    /// Appends the ASCII text that `put` writes: a few short fields of an object.
    #[inline(always)]
    pub(super) fn push_short(&mut self, put: impl FnOnce(&mut ShortText<'_>)) {
        let start = self.len();
        self.bytes.resize(start + SHORT, 0);
        let len = put_short(&mut self.bytes[start..], put);
        self.bytes.truncate(start + len);
    }

    /// Appends the ASCII text that `put` writes for each item. A text is expected to have at most `most` bytes.
    #[inline(always)]
    pub(super) fn push_shorts<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        most: usize,
        mut put: impl FnMut(&mut ShortText<'_>, T),
    ) {
        let mut start = self.len();
        self.bytes.resize(start + items.len() * most + SHORT, 0);
        for item in items {
            if self.len() < start + SHORT {
                self.bytes.resize(start + SHORT, 0);
            }
            start += put_short(&mut self.bytes[start..], |text| put(text, item));
        }
        self.bytes.truncate(start);
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

/// The size in bytes of the space of a [`ShortText`].
const SHORT: usize = 72;

/// Calls `put` with the first [`SHORT`] bytes of `space`, and returns the length of the text.
#[inline(always)]
fn put_short(space: &mut [u8], put: impl FnOnce(&mut ShortText<'_>)) -> usize {
    let space = space.first_chunk_mut();
    debug_assert!(space.is_some());
    space.map_or(0, |space| {
        let mut text = ShortText { space, len: 0 };
        put(&mut text);
        debug_assert!(text.space.iter().take(text.len).all(u8::is_ascii));
        text.len
    })
}

/// ASCII text of up to 64 bytes. Words of eight bytes are stored at once, and the text that follows overwrites the
/// unused bytes.
#[derive(Debug)]
pub(super) struct ShortText<'t> {
    space: &'t mut [u8; SHORT],
    len: usize,
}

impl ShortText<'_> {
    /// Appends up to eight characters.
    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, text: [u8; N]) {
        const { assert!(N <= 8) };
        let mut word = [0; 8];
        word[..N].copy_from_slice(&text);
        self.put_word(u64::from_le_bytes(word), N);
    }

    /// Appends the lowest `len` bytes of `word`, beginning with the lowest.
    #[inline(always)]
    pub(super) fn put_word(&mut self, word: u64, len: usize) {
        debug_assert!(len <= 8 && self.len + len <= 64, "{} + {len}", self.len);
        // The mask replaces a check of the bounds.
        let start = self.len & 63;
        self.space[start..start + 8].copy_from_slice(&word.to_le_bytes());
        self.len += len;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_may_be_longer_than_expected() {
        let mut text = TextBuffer::new();
        text.push_str("é");
        let items = (0..40).collect::<Vec<u8>>();
        text.push_shorts(items.iter(), 1, |text, item| {
            (0..*item % 8).for_each(|_| text.put([b'a' + item % 26]));
            text.put(*b"12345678");
        });
        let expected: String = (0..40_u8)
            .map(|item| {
                let letter = char::from(b'a' + item % 26);
                format!(
                    "{}12345678",
                    letter.to_string().repeat(usize::from(item) % 8)
                )
            })
            .collect();
        assert_eq!(text.take(), format!("é{expected}"));
        text.push_shorts(std::iter::empty::<u8>(), 9, |_, _| {});
        assert_eq!(text.len(), 0);
    }
}
