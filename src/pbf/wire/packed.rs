//! Repeated scalars: packed runs of varints.

use super::{
    CONTINUATION_BITS, Field, FormatError, Value, join_7_bit_groups, put_varint, read_varint,
    word_at, zigzag_decode,
};
use std::borrow::Cow;

/// A repeated scalar field as one packed run.
///
/// A single packed run, as nearly all programs write it, is borrowed. The values of a field that is unpacked or occurs
/// several times are copied to an owned run.
#[derive(Debug, Clone, Default)]
pub struct Packed<'a>(Cow<'a, [u8]>);

impl<'a> Packed<'a> {
    /// Returns a field whose values are all in the packed run `run`.
    pub(in crate::pbf) const fn from_run(run: &'a [u8]) -> Self {
        Self(Cow::Borrowed(run))
    }

    /// Adds one occurrence of the field.
    #[inline]
    pub fn add(&mut self, field: &Field<'a>) -> Result<(), FormatError> {
        match field.value {
            Value::Bytes(run) if self.0.is_empty() => self.0 = Cow::Borrowed(run),
            _ => self.add_piece(field)?,
        }
        Ok(())
    }

    /// Adds an occurrence that cannot be borrowed.
    fn add_piece(&mut self, field: &Field<'a>) -> Result<(), FormatError> {
        match field.value {
            Value::Bytes(run) => self.0.to_mut().extend_from_slice(run),
            Value::Varint(value) => put_varint(self.0.to_mut(), value),
            Value::Other => {
                return Err(FormatError::with(format!(
                    "field {} is fixed-width",
                    field.number
                )));
            }
        }
        Ok(())
    }

    /// Returns the packed run.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the run has no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of values, counted without decoding them.
    #[inline]
    pub fn count(&self) -> usize {
        count_varints(&self.0)
    }

    /// Returns an iterator over the values.
    #[inline]
    pub fn values(&self) -> Varints<'_> {
        Varints::new(&self.0)
    }
}

/// Returns the number of varints that end in `run`. This is the number of bytes without a continuation bit.
#[inline]
pub fn count_varints(run: &[u8]) -> usize {
    if run.len() <= 64 {
        return count_few_varints(run);
    }
    // A sum of up to 255 flags fits in a byte, so the compiler can add sixteen or more bytes at a time.
    run.chunks(255)
        .map(|chunk| usize::from(chunk.iter().map(|&byte| u8::from(byte < 0x80)).sum::<u8>()))
        .sum()
}

/// Does the same as [`count_varints`] for at most 64 bytes, eight at a time.
#[inline]
fn count_few_varints(run: &[u8]) -> usize {
    const LOWEST: u64 = CONTINUATION_BITS >> 7;
    let ends = |word: u64| (!word & CONTINUATION_BITS) >> 7;
    let (words, rest) = run.as_chunks::<8>();
    // Byte `i` of the sum counts the ends among the bytes at index `i` of all words.
    let mut sum: u64 = words
        .iter()
        .map(|word| ends(u64::from_le_bytes(*word)))
        .sum();
    match run.last_chunk() {
        Some(_) if rest.is_empty() => {}
        Some(bytes) => sum += ends(u64::from_le_bytes(*bytes) | u64::MAX >> (8 * rest.len())),
        None => return rest.iter().filter(|byte| **byte < 0x80).count(),
    }
    (sum.wrapping_mul(LOWEST) >> 56) as usize
}

/// Checks that `run` consists of whole varints that fit into 64 bits.
pub fn check_varints(run: &[u8]) -> Result<(), FormatError> {
    if are_short_varints(run) {
        return Ok(());
    }
    let mut pos = 0;
    while pos < run.len() {
        read_varint(run, &mut pos)?;
    }
    Ok(())
}

/// Whether `run` consists of whole varints of at most seven bytes, which are less than 2^49. May return `false` even
/// for such a run, if some of its varints have six or seven bytes.
#[inline]
pub fn are_short_varints(run: &[u8]) -> bool {
    // Windows of eight bytes begin at every other byte. A varint longer than seven bytes has at least seven consecutive
    // bytes with continuation bits, so six of them fill the start of a window. If there is no such window, the varint
    // ends at the end of the run, which `is_long_at_end` checks.
    const SIX: u64 = CONTINUATION_BITS >> 16;
    let mut windows = (0..run.len()).step_by(2).map_while(|pos| word_at(run, pos));
    let continues = |byte: &u8| *byte >= 0x80;
    let is_whole = !run.last().is_some_and(continues);
    let is_long_at_end =
        || matches!(run.last_chunk::<8>(), Some([most @ .., _]) if most.iter().all(continues));
    is_whole && windows.all(|word| word & SIX != SIX) && !is_long_at_end()
}

/// The error for a run that ends within a number of eight bytes.
const TRUNCATED_FIXED: FormatError = FormatError::new("a number of eight bytes is cut off");

/// The error for bytes that end within a text or an array.
const TRUNCATED: FormatError = FormatError::new("a row is cut off");

/// Reads the values of a packed run, or the fields of a row, in order.
#[derive(Debug, Clone, Copy)]
pub struct Varints<'a> {
    pub(super) run: &'a [u8],
    pub(super) pos: usize,
}

impl<'a> Varints<'a> {
    /// Returns the values of `run`.
    pub const fn new(run: &'a [u8]) -> Self {
        Self { run, pos: 0 }
    }

    /// Whether all values have been read.
    #[inline]
    pub const fn is_done(&self) -> bool {
        self.pos >= self.run.len()
    }

    /// Returns the offset in bytes of the next value in the run.
    #[inline]
    pub const fn position(&self) -> usize {
        self.pos
    }

    /// Returns the next value. Fails at the end of the run.
    #[inline(always)]
    pub fn read(&mut self) -> Result<u64, FormatError> {
        read_varint(self.run, &mut self.pos)
    }

    /// Returns the next value, zigzag-decoded. Fails at the end of the run.
    #[inline(always)]
    pub fn read_sint(&mut self) -> Result<i64, FormatError> {
        self.read().map(zigzag_decode)
    }

    /// Reads eight little-endian bytes as a number. Fails if fewer bytes are left.
    #[inline]
    pub fn read_fixed64(&mut self) -> Result<i64, FormatError> {
        let word = word_at(self.run, self.pos).ok_or(TRUNCATED_FIXED)?;
        self.pos += 8;
        Ok(word as i64)
    }

    /// Returns the next `len` bytes. Fails if fewer are left.
    #[inline]
    pub fn read_bytes(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let bytes = self.rest().get(..len).ok_or(TRUNCATED)?;
        self.pos += len;
        Ok(bytes)
    }

    /// Returns the next `LEN` bytes. Fails if fewer are left.
    #[inline]
    pub fn read_array<const LEN: usize>(&mut self) -> Result<[u8; LEN], FormatError> {
        let bytes = self.rest().first_chunk().ok_or(TRUNCATED)?;
        self.pos += LEN;
        Ok(*bytes)
    }

    /// Returns the bytes of a string that was written by [`put_text`](super::put_text).
    #[inline]
    pub fn read_text(&mut self) -> Result<&'a [u8], FormatError> {
        let len = usize::try_from(self.read()?).unwrap_or(usize::MAX);
        self.read_bytes(len)
    }

    /// Returns a string that was written by [`put_text`](super::put_text). Fails if it is not UTF-8.
    #[inline]
    pub fn read_str(&mut self) -> Result<&'a str, FormatError> {
        let text = std::str::from_utf8(self.read_text()?);
        text.map_err(|_| FormatError::new("a text is not UTF-8"))
    }

    /// Skips `count` values. Fails if the run has fewer values.
    pub fn skip(&mut self, mut count: usize) -> Result<(), FormatError> {
        while count >= 8
            && let Some(word) = word_at(self.run, self.pos)
        {
            // A value that begins before the word and ends in it is counted with this word.
            count -= (!word & CONTINUATION_BITS).count_ones() as usize;
            self.pos += 8;
        }
        // The position may now be inside of a value that is not counted yet. The rest of this value is then read and
        // counted as one value.
        while count > 0 {
            self.read_branchless()?;
            count -= 1;
        }
        Ok(())
    }

    /// Returns the next two values if both end within the next eight bytes. This is faster than two reads: both values
    /// come from one word, so the second value needs no load at a new position.
    #[inline(always)]
    pub(super) fn read_pair(&mut self) -> Option<[u64; 2]> {
        let word = word_at(self.run, self.pos)?;
        let ends = !word & CONTINUATION_BITS;
        let later = ends & ends.wrapping_sub(1);
        if later == 0 {
            return None;
        }
        let len = ends.trailing_zeros() + 1;
        let [first, second] = [word, word >> len];
        let [end, second_end] = [ends, later >> len];
        self.pos += later.trailing_zeros() as usize / 8 + 1;
        Some([
            join_7_bit_groups(first & (end ^ (end - 1))),
            join_7_bit_groups(second & (second_end ^ (second_end - 1))),
        ])
    }

    /// Returns the next value. A value of at most eight bytes is decoded without a branch on its length.
    #[inline(always)]
    pub(super) fn read_branchless(&mut self) -> Result<u64, FormatError> {
        match self.read_short() {
            Some(value) => Ok(value),
            None => read_varint(self.run, &mut self.pos),
        }
    }

    /// Returns the next value if it has at most eight bytes and is not cut off. It is decoded without a branch on its
    /// length.
    #[inline(always)]
    pub(super) fn read_short(&mut self) -> Option<u64> {
        let word = word_at(self.run, self.pos).unwrap_or_else(|| self.last_word());
        let ends = !word & CONTINUATION_BITS;
        let end = self.pos + ends.trailing_zeros() as usize / 8 + 1;
        if ends == 0 || end > self.run.len() {
            return None;
        }
        self.pos = end;
        Some(join_7_bit_groups(word & (ends ^ (ends - 1))))
    }

    /// Returns the remaining bytes as a little-endian number. There must be fewer than eight.
    #[inline]
    fn last_word(&self) -> u64 {
        let left = self.run.len() - self.pos;
        match self.run.last_chunk() {
            Some(bytes) => {
                let word = u64::from_le_bytes(*bytes);
                word.checked_shr(64 - 8 * left as u32).unwrap_or(0)
            }
            None => {
                let bytes = self.rest().iter().rev();
                bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
            }
        }
    }

    /// Returns the last value of the whole run, no matter how many values have been read. Returns `None` for an empty
    /// run.
    pub fn last_value(&self) -> Result<Option<u64>, FormatError> {
        let Some((_, before)) = self.run.split_last() else {
            return Ok(None);
        };
        // The bytes with a continuation bit that directly precede the last byte belong to the same value.
        let more = before
            .iter()
            .rev()
            .take_while(|byte| **byte >= 0x80)
            .count();
        let mut start = before.len() - more;
        read_varint(self.run, &mut start).map(Some)
    }

    /// Returns the bytes that have not been read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.run[self.pos..]
    }
}

/// The result of summing the values at the beginning of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartialSums {
    /// The number of bytes of these values.
    pub(super) bytes: usize,
    /// The number of values.
    pub(super) count: usize,
    /// The last sum, or the initial one if there are no values.
    pub(super) last: i64,
}
