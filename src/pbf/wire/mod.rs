//! The protobuf wire format: varints, tags, length-delimited fields and packed runs.
//!
//! Readers never move past the end of their slice and never panic. A varint that does not fit into 64 bits is an error.
//! See "Encoding" in the protobuf documentation. `packed` has packed runs, `sums` reads them as delta-coded columns,
//! `wide` does the same in wide registers, and `schema` has the field numbers of the format.

#[cfg(not(target_arch = "x86_64"))]
mod narrow;
mod packed;
pub(crate) mod schema;
mod sums;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::error::FormatError;
#[cfg(not(target_arch = "x86_64"))]
use narrow::NoRegisters as WideRegisters;
pub use packed::{Packed, Varints, are_short_varints, check_varints, count_varints};
pub(in crate::pbf) use sums::FEW_SUMS;
#[cfg(target_arch = "x86_64")]
use wide::WideRegisters;

/// The maximum length in bytes of an encoded 64-bit varint.
pub const MAX_VARINT_LEN: usize = 10;

const TRUNCATED_VARINT: FormatError = FormatError::new("varint cut off");
const OVERLONG_VARINT: FormatError = FormatError::new("varint does not fit 64 bits");
const TRUNCATED_FIELD: FormatError = FormatError::new("field runs past the end of its message");

/// Reads one varint at `*pos` and moves `*pos` to the byte after the varint. Fails if the varint is cut off or `*pos`
/// is beyond the end of `data`. On an error, `*pos` does not move.
#[inline(always)]
pub fn read_varint(data: &[u8], pos: &mut usize) -> Result<u64, FormatError> {
    match data.get(*pos..).unwrap_or_default() {
        [one, ..] if *one < 0x80 => {
            *pos += 1;
            Ok(u64::from(*one))
        }
        [one, two, ..] if *two < 0x80 => {
            *pos += 2;
            Ok(u64::from(one & 0x7f) | u64::from(*two) << 7)
        }
        _ => read_long_varint(data, pos),
    }
}

/// Reads a varint of three bytes or more, or a truncated one. If `data` has at least eight bytes from `pos` on, decodes
/// the eight bytes together. The last byte of a varint is the first one without a continuation bit.
fn read_long_varint(data: &[u8], pos: &mut usize) -> Result<u64, FormatError> {
    if let Some(word) = word_at(data, *pos) {
        let ends = !word & CONTINUATION_BITS;
        if ends != 0 {
            *pos += ends.trailing_zeros() as usize / 8 + 1;
            return Ok(join_7_bit_groups(word & (ends ^ (ends - 1))));
        }
    }
    read_varint_bytewise(data, pos)
}

/// The continuation bits of the eight bytes of a word.
const CONTINUATION_BITS: u64 = 0x8080_8080_8080_8080;

/// Returns the eight bytes at offset `pos` as a little-endian number, or `None` if fewer bytes are left.
#[inline(always)]
fn word_at(data: &[u8], pos: usize) -> Option<u64> {
    let bytes = data.get(pos..).and_then(<[u8]>::first_chunk);
    bytes.map(|bytes| u64::from_le_bytes(*bytes))
}

/// Returns the low seven bits of each of the eight bytes in `word`, joined to one number of 56 bits.
#[inline]
const fn join_7_bit_groups(word: u64) -> u64 {
    let pairs = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let quads = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
    (quads & 0x0fff_ffff) | ((quads & 0x0fff_ffff_0000_0000) >> 4)
}

/// Reads a varint byte by byte. Used for varints that have nine or ten bytes, are close to the end of the slice, or are
/// damaged.
#[cold]
fn read_varint_bytewise(data: &[u8], pos: &mut usize) -> Result<u64, FormatError> {
    let rest = data.get(*pos..).unwrap_or_default();
    let mut value = 0u64;
    for (index, &byte) in rest.iter().take(MAX_VARINT_LEN).enumerate() {
        if index == MAX_VARINT_LEN - 1 && byte > 1 {
            return Err(OVERLONG_VARINT);
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *pos += index + 1;
            return Ok(value);
        }
    }
    Err(if rest.len() >= MAX_VARINT_LEN {
        OVERLONG_VARINT
    } else {
        TRUNCATED_VARINT
    })
}

/// Decodes a zigzag-coded number. 0, 1, 2, 3 become 0, -1, 1, -2.
#[inline]
pub const fn zigzag_decode(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Encodes a number with zigzag coding, which turns small absolute values into small numbers.
#[inline]
pub const fn zigzag_encode(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Iterates over the fields of one message.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    data: &'a [u8],
    pos: usize,
}

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// The field number, 1 or larger.
    pub number: u32,
    /// The value. A fixed-width value is not decoded, but represented by [`Value::Other`].
    pub value: Value<'a>,
    /// The bytes of the whole field with its tag, for copying the field.
    pub raw: &'a [u8],
}

/// The value of a [`Field`].
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A varint, not zigzag decoded.
    Varint(u64),
    /// A length-delimited value.
    Bytes(&'a [u8]),
    /// A fixed-width value. The messages of PBF files have no such values.
    Other,
}

impl<'a> Field<'a> {
    /// Returns the varint in the field. Fails if the field has another wire type.
    #[inline]
    pub fn varint(&self) -> Result<u64, FormatError> {
        match self.value {
            Value::Varint(value) => Ok(value),
            _ => Err(FormatError::with(format!(
                "field {} is not a varint",
                self.number
            ))),
        }
    }

    /// Returns the zigzag-decoded varint in the field. Fails if the field has another wire type.
    #[inline]
    pub fn sint(&self) -> Result<i64, FormatError> {
        self.varint().map(zigzag_decode)
    }

    /// Returns the length-delimited bytes in the field. Fails if the field has another wire type.
    #[inline]
    pub fn bytes(&self) -> Result<&'a [u8], FormatError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(FormatError::with(format!(
                "field {} is not length-delimited",
                self.number
            ))),
        }
    }

    /// Returns the length-delimited string in the field. Fails if the field has another wire type or is not UTF-8.
    pub fn text(&self) -> Result<&'a str, FormatError> {
        std::str::from_utf8(self.bytes()?)
            .map_err(|_| FormatError::with(format!("field {} is not UTF-8", self.number)))
    }
}

impl<'a> Fields<'a> {
    /// Returns the fields of `message`.
    pub const fn new(message: &'a [u8]) -> Self {
        Self {
            data: message,
            pos: 0,
        }
    }

    /// Returns the bytes after the last field that was read.
    pub(in crate::pbf) fn rest(&self) -> &'a [u8] {
        &self.data[self.pos..]
    }

    /// Returns the next field, or `None` at the end of the message.
    #[allow(
        clippy::should_implement_trait,
        reason = "not `Iterator::next`: callers write `while let Some(field) = fields.next()?`"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Field<'a>>, FormatError> {
        if self.pos >= self.data.len() {
            return Ok(None);
        }
        let start = self.pos;
        let tag = read_varint(self.data, &mut self.pos)?;
        let number = u32::try_from(tag >> 3).unwrap_or(0);
        if number == 0 {
            return Err(FormatError::new("field number 0 or out of range"));
        }
        let value = match tag & 7 {
            0 => Value::Varint(read_varint(self.data, &mut self.pos)?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let len = read_varint(self.data, &mut self.pos)?;
                Value::Bytes(self.take(usize::try_from(len).unwrap_or(usize::MAX))?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            other => return Err(unknown_wire_type_error(other)),
        };
        // The range is always valid. `get` lets the compiler remove the access where `raw` is unused. The compiler
        // would keep an index expression, because indexing can panic.
        let raw = self.data.get(start..self.pos).unwrap_or_default();
        Ok(Some(Field { number, value, raw }))
    }

    /// Returns the next `len` bytes, and moves to the byte after them.
    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let end = self.pos.checked_add(len).ok_or(TRUNCATED_FIELD)?;
        let bytes = self.data.get(self.pos..end).ok_or(TRUNCATED_FIELD)?;
        self.pos = end;
        Ok(bytes)
    }
}

#[cold]
fn unknown_wire_type_error(found: u64) -> FormatError {
    FormatError::with(format!("wire type {found} is not in use"))
}

/// Appends a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a zigzag-coded varint.
#[inline]
pub fn put_sint(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag_encode(value));
}

/// Appends zigzag-coded varints. Varints of at most eight bytes are encoded without a branch on their length.
#[inline]
pub fn put_sints(out: &mut Vec<u8>, values: impl IntoIterator<Item = i64>) {
    let (mut buffer, mut len) = ([0; 128], 0);
    for value in values {
        let value = zigzag_encode(value);
        if value >> 56 != 0 {
            out.extend_from_slice(&buffer[..len]);
            len = 0;
            put_varint(out, value);
            continue;
        }
        if let Some(place) = buffer[len..].first_chunk_mut() {
            let bytes = varint_len(value);
            let more = CONTINUATION_BITS & ((1 << (8 * (bytes - 1))) - 1);
            *place = (split_7_bit_groups(value) | more).to_le_bytes();
            len += bytes;
        }
        if len > buffer.len() - 8 {
            out.extend_from_slice(&buffer[..len]);
            len = 0;
        }
    }
    out.extend_from_slice(&buffer[..len]);
}

/// Returns the low 56 bits of `value` in eight bytes, with seven bits in each byte. This is the inverse of
/// [`join_7_bit_groups`].
#[inline]
const fn split_7_bit_groups(value: u64) -> u64 {
    let quads = (value & 0x0fff_ffff) | ((value << 4) & 0x0fff_ffff_0000_0000);
    let pairs = (quads & 0x0000_3fff_0000_3fff) | ((quads << 2) & 0x3fff_0000_3fff_0000);
    (pairs & 0x007f_007f_007f_007f) | ((pairs << 1) & 0x7f00_7f00_7f00_7f00)
}

/// Appends the length of a string in bytes as a varint, and the string.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a varint field.
pub fn put_varint_field(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// Appends a zigzag-coded varint field.
pub fn put_sint_field(out: &mut Vec<u8>, number: u32, value: i64) {
    put_varint_field(out, number, zigzag_encode(value));
}

/// Appends a length-delimited field.
pub fn put_bytes_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_bytes_head(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends the tag and length of a length-delimited field whose bytes follow.
pub fn put_bytes_head(out: &mut Vec<u8>, number: u32, len: usize) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, len as u64);
}

/// Returns the length in bytes of a length-delimited field with `len` bytes of content.
pub const fn bytes_field_len(number: u32, len: usize) -> usize {
    varint_len((number as u64) << 3) + varint_len(len as u64) + len
}

/// Appends a length-delimited field, unless `run` is empty.
pub fn put_packed_field(out: &mut Vec<u8>, number: u32, run: &[u8]) {
    if !run.is_empty() {
        put_bytes_field(out, number, run);
    }
}

/// Returns the length in bytes of `value` encoded as a varint.
pub const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn the_check_of_a_run_agrees_with_reading_its_varints() {
        let reads = |run: &[u8]| {
            let mut pos = 0;
            while pos < run.len() {
                read_varint(run, &mut pos)?;
            }
            Ok::<(), FormatError>(())
        };
        // Each run consists of `before` short varints, one long varint, and `behind` short varints. The long varint has
        // `long` bytes with continuation bits, and then the byte `last`.
        for before in 0..10 {
            for (long, last, behind) in (0..14)
                .flat_map(|long| [0, 1, 2, 0x7f, 0x80].map(|last| (long, last)))
                .flat_map(|(long, last)| (0..10).map(move |behind| (long, last, behind)))
            {
                let run = [
                    &vec![1; before][..],
                    &vec![0x81; long],
                    &[last],
                    &vec![2; behind],
                ];
                let run = run.concat();
                assert_eq!(check_varints(&run).is_ok(), reads(&run).is_ok(), "{run:?}");
            }
        }
        assert!(check_varints(&[]).is_ok());
    }

    #[test]
    fn varints_are_counted_by_their_last_bytes() {
        let mut random = Random(9);
        for len in (0..140).chain([600, 1000]) {
            let run: Vec<u8> = (0..len).map(|_| random.bits(8) as u8).collect();
            let ends = run.iter().filter(|byte| **byte < 0x80).count();
            assert_eq!(count_varints(&run), ends, "{run:?}");
        }
        assert_eq!([64, 65].map(|len| count_varints(&vec![1; len])), [64, 65]);
    }

    #[test]
    fn varints_survive_a_round_trip() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            let mut pos = 0;
            assert_eq!(read_varint(&out, &mut pos), Ok(value));
            assert_eq!(pos, out.len());
        }
    }

    #[test]
    fn sums_and_skips_equal_those_of_values_read_one_by_one() {
        let mut random = Random(7);
        for most_bits in [7, 9, 20, 64] {
            let mut run = Vec::new();
            for _ in 0..200 {
                // Most values are small, so eight of them fill a word.
                let bits = if random.below(12) < 10 { 7 } else { most_bits };
                let value = random.bits(64);
                put_varint(&mut run, value >> (64 - bits));
            }
            for count in (0..20).chain([100, 200]) {
                let mut plain = Varints::new(&run);
                let mut sums = Vec::new();
                let mut sum = 0i64;
                for _ in 0..count {
                    sum = sum.wrapping_add(plain.read_sint().unwrap());
                    sums.push(sum);
                }
                let mut runs = [Varints::new(&run); 3];
                let mut filled = vec![0; count];
                assert_eq!(runs[0].sum_sints(count), Ok(sum));
                assert_eq!(runs[1].fill_sums(&mut filled, 0), Ok(sum));
                assert_eq!(filled, sums);
                runs[2].skip(count).unwrap();
                assert!(runs.iter().all(|run| run.position() == plain.position()));
            }
            let mut whole = Varints::new(&run);
            assert!(whole.sum_sints(201).is_err());
        }
    }

    #[test]
    fn varints_read_the_same_whatever_bytes_follow() {
        for bits in 0..=64u32 {
            let value = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            for behind in 0..12 {
                let mut run = Vec::new();
                put_varint(&mut run, value);
                let len = run.len();
                run.resize(len + behind, 0x85);
                let mut pos = 0;
                assert_eq!(read_varint(&run, &mut pos), Ok(value), "{bits} bits");
                assert_eq!(pos, len, "{bits} bits, {behind} bytes behind");
                let mut bytewise = 0;
                assert_eq!(read_varint_bytewise(&run, &mut bytewise), Ok(value));
                for cut in 0..len {
                    let mut pos = 0;
                    let read = read_varint(run.get(..cut).unwrap(), &mut pos);
                    assert_eq!((read, pos), (Err(TRUNCATED_VARINT), 0));
                }
            }
        }
    }

    #[test]
    fn batched_varints_equal_single_varints() {
        let mut random = Random(8);
        for most_bits in [6, 7, 13, 30, 55, 57, 64] {
            let values: Vec<i64> = (0..500)
                .map(|_| zigzag_decode(random.bits(64) >> (64 - 1 - random.below(most_bits))))
                .chain([0, -1, i64::MIN, i64::MAX])
                .collect();
            let (mut one_by_one, mut together) = (vec![7], vec![7]);
            values
                .iter()
                .for_each(|value| put_sint(&mut one_by_one, *value));
            put_sints(&mut together, values.iter().copied());
            assert_eq!(together, one_by_one, "{most_bits} bits");
        }
        for bits in 0..=56 {
            let value = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            assert_eq!(join_7_bit_groups(split_7_bit_groups(value)), value);
        }
    }

    #[test]
    fn zigzag_covers_the_ends_of_the_range() {
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(zigzag_decode(zigzag_encode(value)), value);
        }
        assert_eq!(zigzag_encode(-1), 1);
    }

    #[test]
    fn a_malformed_varint_is_an_error_and_keeps_the_position() {
        let mut pos = 0;
        assert_eq!(read_varint(&[0xff; 11], &mut pos), Err(OVERLONG_VARINT));
        let mut too_big = [0xff; 10];
        too_big[9] = 2;
        assert_eq!(read_varint(&too_big, &mut pos), Err(OVERLONG_VARINT));
        assert_eq!(read_varint(&[0x80], &mut pos), Err(TRUNCATED_VARINT));
        assert_eq!(pos, 0);
    }

    #[test]
    fn packed_unpacked_and_split_runs_read_alike() {
        let mut packed = Vec::new();
        put_bytes_field(&mut packed, 1, &[1, 2, 3, 4]);
        let mut mixed = Vec::new();
        put_varint_field(&mut mixed, 1, 1);
        put_bytes_field(&mut mixed, 1, &[2, 3]);
        put_varint_field(&mut mixed, 1, 4);
        for message in [packed, mixed] {
            let mut run = Packed::default();
            let mut fields = Fields::new(&message);
            while let Some(field) = fields.next().unwrap() {
                run.add(&field).unwrap();
            }
            assert_eq!(run.as_bytes(), [1, 2, 3, 4]);
            assert_eq!(run.count(), 4);
        }
    }

    #[test]
    fn a_field_that_runs_past_its_message_is_an_error() {
        assert!(Fields::new(&[0x0a, 5, 1]).next().is_err());
        assert!(
            Fields::new(&[
                0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1
            ])
            .next()
            .is_err()
        );
        assert!(Fields::new(&[0x09, 1, 2]).next().is_err());
        assert!(Fields::new(&[0x0b]).next().is_err());
        assert!(Fields::new(&[0x00, 1]).next().is_err());
    }
}
