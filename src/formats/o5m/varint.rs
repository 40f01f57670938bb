//! Reads the numbers, lists and strings of a dataset.

use super::DatasetError;

/// A cursor over the contents of a dataset.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatasetCursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> DatasetCursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset of the next byte.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn remaining_bytes(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Reads an unsigned varint (LEB128).
    #[inline]
    pub(super) fn read_unsigned(&mut self) -> Result<u64, DatasetError> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.read_long_unsigned(),
        }
    }

    /// Reads an unsigned varint of several bytes.
    fn read_long_unsigned(&mut self) -> Result<u64, DatasetError> {
        match parse_unsigned(self.remaining_bytes()) {
            Varint::Number(number, len) => {
                self.at += len;
                Ok(number)
            }
            Varint::Incomplete => Err(DatasetError::new(
                self.at,
                "a number goes on past its dataset",
            )),
            Varint::TooLong => Err(DatasetError::new(self.at, "a number has more than 64 bits")),
        }
    }

    /// Reads a signed varint (zigzag).
    #[inline]
    pub(super) fn read_signed(&mut self) -> Result<i64, DatasetError> {
        let number = self.read_unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads `len` bytes.
    pub(super) fn read_bytes(&mut self, len: u64) -> Result<&'a [u8], DatasetError> {
        let rest = self.remaining_bytes();
        let part = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let part = part.ok_or_else(|| {
            let cause = format!("a list of {len} bytes goes on past its dataset");
            DatasetError::new(self.at, cause)
        })?;
        self.at += part.len();
        Ok(part)
    }

    /// Reads a zero-terminated string. Returns it without the terminator.
    #[inline]
    pub(super) fn read_string(&mut self) -> Result<&'a [u8], DatasetError> {
        let rest = self.remaining_bytes();
        let end = memchr::memchr(0, rest)
            .ok_or_else(|| DatasetError::new(self.at, "a string goes on past its dataset"))?;
        self.at += end + 1;
        Ok(&rest[..end])
    }
}

/// The result of reading a varint from bytes that may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Varint {
    /// The number, and the length of the varint in bytes.
    Number(u64, usize),
    /// The bytes end within the varint.
    Incomplete,
    /// The number has more than 64 bits.
    TooLong,
}

/// Reads the unsigned varint at the start of `bytes`.
pub(super) fn parse_unsigned(bytes: &[u8]) -> Varint {
    let mut number = 0u64;
    for (place, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if place == 9 && bits > 1 {
            return Varint::TooLong;
        }
        number |= bits << (7 * place);
        if byte < 0x80 {
            return Varint::Number(number, place + 1);
        }
    }
    if bytes.len() < 10 {
        Varint::Incomplete
    } else {
        Varint::TooLong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_have_64_bits_and_not_more() {
        let mut largest = vec![0xff; 9];
        largest.push(1);
        assert_eq!(parse_unsigned(&largest), Varint::Number(u64::MAX, 10));
        assert_eq!(
            DatasetCursor::new(&largest).read_signed().unwrap(),
            i64::MIN
        );
        assert_eq!(parse_unsigned(&largest[..9]), Varint::Incomplete);
        largest[9] = 2;
        assert_eq!(parse_unsigned(&largest), Varint::TooLong);
        assert_eq!(parse_unsigned(&[0x80; 11]), Varint::TooLong);
        assert_eq!(parse_unsigned(&[0xc3, 2, 9]), Varint::Number(323, 2));
        let signed = |byte| DatasetCursor::new(&[byte]).read_signed().unwrap();
        assert_eq!([signed(0), signed(1), signed(2), signed(3)], [0, -1, 1, -2]);
    }

    #[test]
    fn reading_past_the_end_fails() {
        assert!(DatasetCursor::new(&[]).read_unsigned().is_err());
        assert!(DatasetCursor::new(&[0x80]).read_unsigned().is_err());
        assert!(DatasetCursor::new(b"abc").read_string().is_err());
        assert!(DatasetCursor::new(b"abc").read_bytes(4).is_err());
        assert!(DatasetCursor::new(b"abc").read_bytes(u64::MAX).is_err());
        assert_eq!(DatasetCursor::new(b"abc\0d").read_string().unwrap(), b"abc");
    }
}
