//! Finds the last block of a deflate stream (RFC 1951): the positions of its header and of its end, in bits.
//!
//! libdeflate produces only complete streams. If the positions of the header and the end are known, another stream can
//! be appended after the last block. [`EndFinder::find`] walks over the codes of a stream without decompressing it.

use super::huffman::{END_OF_BLOCK, LENGTH_ORDER};

const LITERAL_SYMBOLS: usize = 288;
const DISTANCE_SYMBOLS: usize = 32;
/// The maximum length of a code in bits.
const MAX_CODE: usize = 15;
/// The number of bits that index the tables of literals and distances. Longer codes are decoded bit by bit.
const INDEX_BITS: u32 = 11;
const TABLE: usize = 1 << INDEX_BITS;
/// The number of entries in the table for the codes of code lengths.
const LENGTH_TABLE: usize = 1 << 7;

/// The position of the last block of a deflate stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeflateEnd {
    /// The index of the bit that marks the last block.
    pub last_block: usize,
    /// The number of bits up to the end of the last block.
    pub bits: usize,
}

/// Entries of the tables. An entry stands for one code, or for several successive codes. Its lowest six bits are the
/// number of bits that a walk skips: the codes, and their extra bits. The flags `STOP` and `DISTANCE` follow. The bits
/// from `CODE_SHIFT` on are the length of the code; 0 if the entry joins several codes.
mod entry {
    use super::{END_OF_BLOCK, INDEX_BITS, TABLE};

    /// Marks an entry for a code that is decoded bit by bit: the end of a block, a code that is longer than an index,
    /// or a code that skips too many bits. The entry itself skips nothing, so the next lookup in the same table returns
    /// it again.
    pub const STOP: u16 = 1 << 6;
    /// Marks an entry that is followed by the code of a distance. An entry with only this flag skips nothing.
    pub const DISTANCE: u16 = 1 << 7;
    const SKIPPED: u16 = 63;
    const CODE_SHIFT: u32 = 8;
    /// The maximum number of bits that an entry of the table of literals skips. [`Lane::advance`](super::Lane::advance)
    /// reads 57 bits and walks over three entries. The longest three are two distances of 22 bits with an entry of 13
    /// bits between them.
    const MOST_OF_LITERALS: u32 = 13;
    const MOST_OF_DISTANCE: u32 = 22;

    /// Returns the number of bits that an entry skips.
    pub const fn skipped_bits(entry: u16) -> u32 {
        (entry & SKIPPED) as u32
    }

    /// Returns the offset of the table for the next code. The table of distances follows the table of literals.
    pub const fn next_table_offset(entry: u16) -> usize {
        (entry & DISTANCE) as usize * (TABLE / DISTANCE as usize)
    }

    /// Returns the length of the code of an entry, in bits.
    const fn code_len(entry: u16) -> u32 {
        entry as u32 >> CODE_SHIFT
    }

    const fn pack_entry(skipped: u32, next: u16, code_len: u32) -> u16 {
        skipped as u16 | next | (code_len << CODE_SHIFT) as u16
    }

    /// Returns the number of extra bits of a symbol for a literal or a length. Literals and the length symbols 257 to
    /// 264 and 285 have no extra bits.
    pub const fn extra_bits_of_literal(symbol: usize) -> u32 {
        match symbol {
            265..285 => (symbol as u32 - 261) / 4,
            _ => 0,
        }
    }

    /// Returns the number of extra bits of a symbol for a distance.
    pub const fn distance_extra(symbol: usize) -> u32 {
        (symbol as u32 / 2).saturating_sub(1)
    }

    /// Returns the entry for the code of a literal or a match length. The code has `len` bits.
    pub fn literal(symbol: usize, len: u32) -> u16 {
        let skipped = len + extra_bits_of_literal(symbol);
        match symbol {
            END_OF_BLOCK => STOP,
            _ if skipped > MOST_OF_LITERALS => STOP,
            0..END_OF_BLOCK => pack_entry(skipped, 0, len),
            _ => pack_entry(skipped, DISTANCE, len),
        }
    }

    /// Returns the entry for the code of a distance. The code has `len` bits.
    pub fn distance(symbol: usize, len: u32) -> u16 {
        match len + distance_extra(symbol) {
            skipped if skipped > MOST_OF_DISTANCE => STOP | DISTANCE,
            skipped => pack_entry(skipped, 0, len),
        }
    }

    /// Joins the entries of two successive codes. Returns `None` if they cannot be joined. For example, the two codes
    /// may have more bits than an index.
    pub fn join(first: u16, second: u16) -> Option<u16> {
        let bits = skipped_bits(first) + skipped_bits(second);
        let fits = skipped_bits(first) + code_len(second) <= INDEX_BITS;
        let are_known = (first | second) & STOP == 0 && first & DISTANCE == 0;
        (are_known && fits && bits <= MOST_OF_LITERALS)
            .then(|| pack_entry(bits, second & DISTANCE, 0))
    }
}

/// A canonical prefix code.
#[derive(Default)]
struct PrefixCode {
    /// The number of codes of each length.
    counts: [u16; MAX_CODE + 1],
    /// The symbols in the order of their codes.
    symbols: Vec<u16>,
}

impl PrefixCode {
    /// Sets the lengths of the codes. Returns `None` if a length exceeds [`MAX_CODE`].
    fn set(&mut self, lengths: &[u8]) -> Option<()> {
        self.counts = [0; MAX_CODE + 1];
        for &len in lengths {
            *self.counts.get_mut(usize::from(len))? += 1;
        }
        let mut next = [0usize; MAX_CODE + 2];
        for len in 1..=MAX_CODE {
            next[len + 1] = next[len] + usize::from(self.counts[len]);
        }
        self.symbols.clear();
        self.symbols.resize(next[MAX_CODE + 1], 0);
        for (symbol, &len) in lengths.iter().enumerate().filter(|(_, len)| **len > 0) {
            let at = &mut next[usize::from(len)];
            *self.symbols.get_mut(*at)? = symbol as u16;
            *at += 1;
        }
        Some(())
    }

    /// Writes the entries of all codes that are not longer than an index of `table`. The length of `table` must be a
    /// power of two.
    fn fill(&self, table: &mut [u16], entry: impl Fn(usize, u32) -> u16) -> Option<()> {
        let (mut code, mut start) = (0u32, 0);
        for len in 1..=table.len().trailing_zeros().min(MAX_CODE as u32) {
            code <<= 1;
            let end = start + usize::from(self.counts[len as usize]);
            for &symbol in self.symbols.get(start..end)? {
                let entry = entry(usize::from(symbol), len);
                let first = code.reverse_bits() >> (32 - len);
                let same = table.get_mut(first as usize..)?.iter_mut();
                same.step_by(1 << len).for_each(|to| *to = entry);
                code += 1;
            }
            start = end;
        }
        Some(())
    }

    /// Returns the number of zero bits at the end of the code of a symbol; `None` if the code is all zeros, or if the
    /// symbol has no code.
    fn trailing_zeros(&self, symbol: usize) -> Option<u32> {
        let index = self.symbols.iter().position(|&of| of as usize == symbol)?;
        let (mut code, mut first) = (0, 0);
        for count in self.counts.get(1..)? {
            let count = usize::from(*count);
            if index < first + count {
                code += index - first;
                return (code > 0).then_some(code.trailing_zeros());
            }
            first += count;
            code = (code + count) << 1;
        }
        None
    }

    /// Returns the symbol whose code is at the beginning of `bits`, and the length of the code.
    fn decode(&self, bits: u64) -> Option<(usize, u32)> {
        let (mut code, mut first, mut index) = (0i32, 0i32, 0i32);
        for len in 1..=MAX_CODE {
            code |= (bits >> (len - 1) & 1) as i32;
            let count = i32::from(self.counts[len]);
            if code - count < first {
                let symbol = self.symbols.get((index + (code - first)) as usize)?;
                return Some((usize::from(*symbol), len as u32));
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

/// The codes of a block, and the tables built from them.
struct Tables {
    literals: PrefixCode,
    distances: PrefixCode,
    lengths: PrefixCode,
    /// The entries of single literals and lengths, from which the entries of `table` are joined.
    singles: Box<[u16; TABLE]>,
    /// The table of literals, followed by the table of distances. An entry of the table of literals may join several
    /// literals and the match length after them.
    table: Box<[u16; 2 * TABLE]>,
    length_table: [u16; LENGTH_TABLE],
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            literals: PrefixCode::default(),
            distances: PrefixCode::default(),
            lengths: PrefixCode::default(),
            singles: Box::new([0; TABLE]),
            table: Box::new([0; 2 * TABLE]),
            length_table: [0; LENGTH_TABLE],
        }
    }
}

impl Tables {
    /// Sets the fixed codes of deflate.
    fn set_fixed(&mut self) -> Option<()> {
        let mut lengths = [8u8; LITERAL_SYMBOLS];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        self.literals.set(&lengths)?;
        self.distances.set(&[5; 30])
    }

    /// Reads the codes of a block.
    fn read(&mut self, bits: &mut Bits<'_>) -> Option<()> {
        let literals = bits.take(5)? as usize + 257;
        let distances = bits.take(5)? as usize + 1;
        let count = bits.take(4)? as usize + 4;
        let mut of_lengths = [0u8; 19];
        for &symbol in LENGTH_ORDER.get(..count)? {
            of_lengths[symbol] = bits.take(3)? as u8;
        }
        self.lengths.set(&of_lengths)?;
        // The table is indexed by 7 bits, the maximum length of the codes of code lengths. If the code is incomplete,
        // the entries that it does not use stay 0.
        self.length_table.fill(0);
        self.lengths.fill(&mut self.length_table, |symbol, len| {
            len as u16 | (symbol as u16) << 8
        })?;
        let mut lengths = [0u8; LITERAL_SYMBOLS + DISTANCE_SYMBOLS + 138];
        let mut at = 0;
        while at < literals + distances {
            let entry = self.length_table[bits.peek() as usize % LENGTH_TABLE];
            if entry == 0 {
                return None;
            }
            bits.position += (entry & 0xff) as usize;
            let (len, count) = match entry >> 8 {
                16 => (
                    *lengths.get(at.checked_sub(1)?)?,
                    3 + bits.take(2)? as usize,
                ),
                17 => (0, 3 + bits.take(3)? as usize),
                18 => (0, 11 + bits.take(7)? as usize),
                len => (len as u8, 1),
            };
            lengths.get_mut(at..at + count)?.fill(len);
            at += count;
        }
        self.literals.set(lengths.get(..literals)?)?;
        self.distances
            .set(lengths.get(literals..literals + distances)?)
    }

    /// Builds the tables from the codes.
    fn build(&mut self) -> Option<()> {
        let (literals, distances) = self.table.split_at_mut(TABLE);
        distances.fill(entry::STOP | entry::DISTANCE);
        self.distances.fill(distances, entry::distance)?;
        self.singles.fill(entry::STOP);
        self.literals.fill(&mut self.singles[..], entry::literal)?;
        for (index, joined) in literals.iter_mut().enumerate() {
            *joined = self.singles[index];
            // The shift fills the upper bits of the index with zeros. The bits that follow in the stream are unknown.
            // `join` refuses a code that includes one of them, because such a code does not fit into the index.
            while let Some(longer) = entry::join(
                *joined,
                self.singles[index >> entry::skipped_bits(*joined).min(INDEX_BITS)],
            ) {
                *joined = longer;
            }
        }
        Some(())
    }
}

/// Finds the ends of deflate streams. The tables are reused for one stream after another.
#[derive(Default)]
pub(crate) struct EndFinder([Tables; 2]);

impl EndFinder {
    /// Finds the ends of `streams`, and appends them to `ends`. The last byte of each slice must belong to the last
    /// block of its stream. Returns `None` if a stream is damaged or incomplete.
    ///
    /// The codes of the last block are walked over only if its end-of-block code is all zeros. Otherwise, the last set
    /// bit of the stream belongs to the end-of-block code, because only zeros fill the last byte. The end of the block
    /// follows from the position of this bit.
    ///
    /// Two streams are walked over alternately, so that the processor works on both at once. Within one stream, the
    /// position of a code is known only after the code before it has been decoded.
    pub(crate) fn find(&mut self, streams: &[&[u8]], ends: &mut Vec<DeflateEnd>) -> Option<()> {
        let start = ends.len();
        let unknown = DeflateEnd {
            last_block: 0,
            bits: 0,
        };
        ends.resize(start + streams.len(), unknown);
        let ends = ends.get_mut(start..)?;
        let mut queue = streams.iter().enumerate();
        let [first, second] = &mut self.0;
        let mut lanes = [Lane::new(first), Lane::new(second)];
        let mut ended = lanes
            .each_mut()
            .map(|lane| lane.begin_stream(&mut queue, ends));
        while ended == [Some(false); 2] {
            let [first, second] = &mut lanes;
            while (first.entry | second.entry) & entry::STOP == 0 {
                first.advance();
                second.advance();
            }
            ended = lanes.each_mut().map(|lane| lane.resume(&mut queue, ends));
        }
        for (lane, ended) in lanes.iter_mut().zip(ended) {
            let mut ended = ended?;
            while !ended {
                while lane.entry & entry::STOP == 0 {
                    lane.advance();
                }
                ended = lane.resume(&mut queue, ends)?;
            }
        }
        Some(())
    }
}

/// A walk over streams, one after the other.
struct Lane<'t, 'd> {
    tables: &'t mut Tables,
    bits: Bits<'d>,
    /// The index of the current stream.
    number: usize,
    /// The entry of the last code, which determines the table for the next one.
    entry: u16,
    /// The index of the first bit of the current block.
    block: usize,
    is_last_block: bool,
}

type Streams<'s, 'd> = std::iter::Enumerate<std::slice::Iter<'s, &'d [u8]>>;

impl<'t, 'd> Lane<'t, 'd> {
    const fn new(tables: &'t mut Tables) -> Self {
        Self {
            tables,
            bits: Bits::new(&[]),
            number: 0,
            entry: entry::STOP,
            block: 0,
            is_last_block: false,
        }
    }

    /// Begins the next stream that has codes to walk over. Returns `true` if no such stream is left.
    fn begin_stream(
        &mut self,
        queue: &mut Streams<'_, 'd>,
        ends: &mut [DeflateEnd],
    ) -> Option<bool> {
        for (number, stream) in queue {
            self.number = number;
            self.bits = Bits::new(stream);
            self.is_last_block = false;
            if !self.next_block(ends)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Reads blocks up to the header of the next block that has codes to walk over. Returns `true` if the stream has
    /// ended and its end is stored in `ends`.
    fn next_block(&mut self, ends: &mut [DeflateEnd]) -> Option<bool> {
        loop {
            if self.bits.position > self.bits.data.len() * 8 {
                return None;
            }
            if self.is_last_block {
                *ends.get_mut(self.number)? = DeflateEnd {
                    last_block: self.block,
                    bits: self.bits.position,
                };
                return Some(true);
            }
            self.block = self.bits.position;
            let head = self.bits.take(3)?;
            self.is_last_block = head & 1 != 0;
            self.entry = 0;
            match head >> 1 {
                0 => {
                    let start = self.bits.position.div_ceil(8);
                    let len = self.bits.data.get(start..start + 2)?;
                    let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
                    self.bits.position = (start + 4 + len) * 8;
                    continue;
                }
                1 => self.tables.set_fixed()?,
                2 => self.tables.read(&mut self.bits)?,
                _ => return None,
            }
            if self.is_last_block
                && let Some(zeros) = self.tables.literals.trailing_zeros(END_OF_BLOCK)
            {
                self.bits.position = self.bits.last_set_bit()? + 1 + zeros as usize;
                continue;
            }
            self.tables.build()?;
            return Some(false);
        }
    }

    /// Walks over three entries, or up to the next entry with the flag [`entry::STOP`].
    #[inline(always)]
    fn advance(&mut self) {
        let mut buffer = self.bits.peek();
        for _ in 0..3 {
            let index = entry::next_table_offset(self.entry) | (buffer as usize % TABLE);
            self.entry = self.tables.table[index % (2 * TABLE)];
            buffer >>= entry::skipped_bits(self.entry);
            self.bits.position += entry::skipped_bits(self.entry) as usize;
        }
        if self.bits.position > self.bits.data.len() * 8 {
            self.entry = entry::STOP;
        }
    }

    /// If the walk stopped at a code, decodes this code. If the code is the end of a block, begins the next block or
    /// stream. Returns `true` if no stream with codes to walk over is left.
    fn resume(&mut self, queue: &mut Streams<'_, 'd>, ends: &mut [DeflateEnd]) -> Option<bool> {
        if self.entry & entry::STOP == 0 {
            return Some(false);
        }
        if self.bits.position > self.bits.data.len() * 8 {
            return None;
        }
        let buffer = self.bits.peek();
        if self.entry & entry::DISTANCE != 0 {
            let (symbol, len) = self.tables.distances.decode(buffer)?;
            self.bits.position += (len + entry::distance_extra(symbol)) as usize;
            self.entry = 0;
            return Some(false);
        }
        let (symbol, len) = self.tables.literals.decode(buffer)?;
        self.bits.position += (len + entry::extra_bits_of_literal(symbol)) as usize;
        self.entry = match symbol {
            END_OF_BLOCK if self.next_block(ends)? => return self.begin_stream(queue, ends),
            0..=END_OF_BLOCK => 0,
            _ => entry::DISTANCE,
        };
        Some(false)
    }
}

/// A reader for the bits of a stream.
struct Bits<'d> {
    data: &'d [u8],
    position: usize,
}

impl<'d> Bits<'d> {
    const fn new(data: &'d [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Returns at least 57 bits from the position on. Bits after the end of the stream are zeros.
    fn peek(&self) -> u64 {
        let byte = self.position / 8;
        let word = match self
            .data
            .get(byte..)
            .and_then(|rest| rest.first_chunk::<8>())
        {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                if let Some(rest) = self.data.get(byte..) {
                    bytes[..rest.len()].copy_from_slice(rest);
                }
                u64::from_le_bytes(bytes)
            }
        };
        word >> (self.position % 8)
    }

    /// Returns the index of the last bit that is set.
    fn last_set_bit(&self) -> Option<usize> {
        let byte = self.data.iter().rposition(|byte| *byte != 0)?;
        Some(byte * 8 + self.data[byte].ilog2() as usize)
    }

    /// Reads `count` bits; `None` at the end of the stream.
    fn take(&mut self, count: u32) -> Option<u32> {
        let bits = self.peek() & ((1 << count) - 1);
        self.position += count as usize;
        (self.position <= self.data.len() * 8).then_some(bits as u32)
    }
}
