//! Encodes deflate blocks (RFC 1951) of literals and runs. A run is a match at distance 1, which repeats the byte
//! before it.
//!
//! In columns of ids and coordinates, matches at larger distances are rare and cost more than they save. Without such
//! matches, the compressed columns are up to 7 % shorter, and compressing them needs a fifth of the time
//! (`notes/codec.md`). This encoder returns the bit at which a block ends, which libdeflate does not report.

use super::huffman::{
    Code, END_OF_BLOCK, LENGTH_ORDER, MAX_CODE, Tree, assign_canonical_codes, code_len,
};

/// The number of symbols of the literal/length alphabet: literals, the end of a block, and match lengths.
const SYMBOLS: usize = 286;
/// The maximum length in bits of a code of the code length alphabet.
const MAX_LENGTH_CODE: usize = 7;
/// The code lengths of the distances 1 and 2. Distance 2 is never used, but two codes of one bit are a complete code,
/// which every decoder accepts. The code of distance 1 is a zero bit.
const DISTANCES: [u8; 2] = [1, 1];
const DISTANCE_BITS: u32 = 1;
/// The minimum length of a run that is encoded as a match. The first byte of the run is a literal and does not count.
const MIN_RUN: usize = 3;
const MAX_RUN: usize = 258;
/// The number of literals that are put into a [`BitWriter`] between two flushes. Their codes have at most 55 bits. A
/// flush leaves up to 7 bits of an incomplete byte, so there are at most 62 bits in total.
const TOGETHER: usize = 5;

/// Writes blocks of literals and runs. Its buffers are reused.
#[derive(Default)]
pub(crate) struct LiteralEncoder {
    tree: Tree,
    repeats: RepeatedSequences,
    /// The tokens of a block that has many runs. A token is a literal byte, or [`RUN`] combined with the length of a
    /// run.
    tokens: Vec<u16>,
    /// The run-length encoded lengths of all codes. Each entry is a symbol of the code length alphabet, the extra bits
    /// of the symbol, and the number of these bits.
    lengths: Vec<(u8, u8, u8)>,
}

/// Marks a token as a run.
const RUN: u16 = 1 << 15;

impl LiteralEncoder {
    /// Writes `bytes` to the start of `out` as a block that is not marked as the last block. Returns the length of the
    /// block in bits. Returns `None` if `out` is too short. Also returns `None` if many sequences of `bytes` repeat.
    /// Such bytes are likely to become shorter with matches.
    pub(crate) fn encode(&mut self, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.repeats.has_many_repeats(bytes) {
            None
        } else {
            self.encode_with(bytes, count_bytes_in_runs(bytes), out)
        }
    }

    /// Encodes as [`encode`](Self::encode) does, but only if nearly all bytes are in runs. Returns `None` if they are
    /// not.
    pub(crate) fn encode_runs(&mut self, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
        let run_len = count_bytes_in_runs(bytes);
        if bytes.len() - run_len < bytes.len() / MIN_SHARE_OF_RUNS {
            self.encode_with(bytes, run_len, out)
        } else {
            None
        }
    }

    /// Encodes `bytes`. `run_len` is the estimated number of bytes in runs.
    fn encode_with(&mut self, bytes: &[u8], run_len: usize, out: &mut [u8]) -> Option<usize> {
        let has_runs = run_len * MIN_SHARE_OF_RUNS > bytes.len();
        if has_runs {
            self.find_runs(bytes);
        }
        let counts = if has_runs {
            count_tokens(&self.tokens)
        } else {
            count_literals(bytes)
        };
        let used = counts.iter().rposition(|count| *count > 0)? + 1;
        let mut lens = [0; SYMBOLS + DISTANCES.len()];
        self.tree
            .assign_code_lengths(&counts[..used], MAX_CODE, &mut lens[..used]);
        let mut codes = [0; SYMBOLS];
        assign_canonical_codes(&lens[..used], &mut codes);
        let all = used + DISTANCES.len();
        lens[used..all].copy_from_slice(&DISTANCES);
        let mut out = BitWriter {
            out,
            at: 0,
            bits: 0,
            count: 0,
        };
        self.put_header(&lens[..all], &mut out)?;
        if has_runs {
            put_tokens(&self.tokens, &codes, &mut out)?
        } else {
            put_literals(bytes, &codes, &mut out)?
        }
        out.put_code(codes[END_OF_BLOCK]);
        out.finish()
    }

    /// Writes the header of a block with the given code lengths of symbols and distances.
    fn put_header(&mut self, lens: &[u8], out: &mut BitWriter<'_>) -> Option<()> {
        self.lengths.clear();
        run_length_encode(lens, &mut self.lengths);
        let mut counts = [0; 19];
        for (symbol, ..) in &self.lengths {
            counts[usize::from(*symbol)] += 1;
        }
        let (mut lens_of_lengths, mut codes) = ([0; 19], [0; 19]);
        self.tree
            .assign_code_lengths(&counts, MAX_LENGTH_CODE, &mut lens_of_lengths);
        assign_canonical_codes(&lens_of_lengths, &mut codes);
        let stored = LENGTH_ORDER
            .iter()
            .rposition(|symbol| lens_of_lengths[*symbol] > 0)?
            .max(3)
            + 1;
        // The lowest bit of `0b100` is 0: this is not the last block. The other two bits are the type of the block, 2
        // (dynamic codes). The numbers of codes follow.
        out.put(0b100, 3);
        out.put(
            (lens.len() - DISTANCES.len() - (END_OF_BLOCK + 1)) as u64,
            5,
        );
        out.put(DISTANCES.len() as u64 - 1, 5);
        out.put(stored as u64 - 4, 4);
        out.flush()?;
        for symbol in &LENGTH_ORDER[..stored] {
            out.put(u64::from(lens_of_lengths[*symbol]), 3);
            out.flush()?;
        }
        for &(symbol, extra, extra_bits) in &self.lengths {
            out.put_code(codes[usize::from(symbol)]);
            out.put(u64::from(extra), u32::from(extra_bits));
            out.flush()?;
        }
        Some(())
    }

    /// Splits `bytes` into tokens, and sets `self.tokens` to them.
    fn find_runs(&mut self, bytes: &[u8]) {
        self.tokens.clear();
        for run in bytes.chunk_by(|a, b| a == b) {
            let (byte, mut left) = (run[0], run.len() - 1);
            self.tokens.push(u16::from(byte));
            while left >= MIN_RUN {
                let len = left.min(MAX_RUN);
                self.tokens.push(RUN | len as u16);
                left -= len;
            }
            self.tokens
                .extend(std::iter::repeat_n(u16::from(byte), left));
        }
    }
}

/// Runs are encoded as matches if more than one byte in 64 is in a run.
const MIN_SHARE_OF_RUNS: usize = 64;

/// Estimates the number of bytes in runs. Counts the bytes that equal the next two bytes.
fn count_bytes_in_runs(bytes: &[u8]) -> usize {
    let (Some(next), Some(second)) = (bytes.get(1..), bytes.get(2..)) else {
        return 0;
    };
    // A sum of 255 flags fits in a byte, so the compiler can add sixteen flags at a time.
    const LEN: usize = 255;
    let chunks = bytes
        .chunks(LEN)
        .zip(next.chunks(LEN))
        .zip(second.chunks(LEN));
    chunks
        .map(|((first, next), second)| {
            let threes = first.iter().zip(next).zip(second);
            let in_runs = threes.map(|((a, b), c)| u8::from((a == b) & (b == c)));
            usize::from(in_runs.sum::<u8>())
        })
        .sum()
}

/// Looks for sequences that repeat in a sample of a column.
struct RepeatedSequences {
    /// For each hash, the offset in the sample of the last sequence with this hash.
    last: [u16; Self::TABLE],
}

impl Default for RepeatedSequences {
    fn default() -> Self {
        Self {
            last: [0; Self::TABLE],
        }
    }
}

impl RepeatedSequences {
    const TABLE: usize = 1 << 9;
    const SAMPLE: usize = 1 << 11;
    /// The length of a sequence in bytes.
    const LEN: usize = size_of::<u64>();
    /// Matches pay off if more than 1 / `MIN_SHARE` of the sequences repeat.
    const MIN_SHARE: usize = 8;

    /// Whether many sequences of `bytes` repeat, judged by a sample from the middle.
    fn has_many_repeats(&mut self, bytes: &[u8]) -> bool {
        let start = bytes.len().saturating_sub(Self::SAMPLE) / 2;
        let sample = &bytes[start..bytes.len().min(start + Self::SAMPLE)];
        self.last.fill(0);
        let mut found = 0;
        for (offset, bytes) in (0u16..).zip(sample.windows(Self::LEN)) {
            let at = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            let Some(sequence) = at(bytes) else {
                continue;
            };
            // Multiplies by 2^64 divided by the golden ratio, which spreads similar sequences over the whole table.
            let hash =
                sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - Self::TABLE.ilog2());
            let last = &mut self.last[hash as usize % Self::TABLE];
            let is_run = sequence as u32 == (sequence >> 8) as u32;
            let before = &sample[usize::from(*last)..];
            found += usize::from(!is_run && *last < offset && at(before) == Some(sequence));
            *last = offset;
        }
        found * Self::MIN_SHARE > sample.len()
    }
}

/// Returns the symbol for the length of a run, the extra bits of the symbol, and the number of these bits.
const fn run_symbol(len: usize) -> (usize, u64, u32) {
    match len {
        ..11 => (254 + len, 0, 0),
        MAX_RUN => (285, 0, 0),
        _ => {
            let extra_bits = (len - 3).ilog2() - 2;
            let index = (len - 3) >> extra_bits;
            let symbol = 257 + 4 * extra_bits as usize + index;
            (
                symbol,
                ((len - 3) & ((1 << extra_bits) - 1)) as u64,
                extra_bits,
            )
        }
    }
}

/// Counts the symbols of a block of literals.
fn count_literals(bytes: &[u8]) -> [u32; SYMBOLS] {
    // With a single table, an increment would wait for the one before it whenever both count the same byte. So four
    // tables are used in turn.
    let mut counts = [[0u32; 256]; 4];
    let (fours, rest) = bytes.as_chunks::<4>();
    for four in fours {
        for (counts, byte) in counts.iter_mut().zip(four) {
            counts[usize::from(*byte)] += 1;
        }
    }
    for byte in rest {
        counts[0][usize::from(*byte)] += 1;
    }
    let mut sums = [0; SYMBOLS];
    for (byte, sum) in sums.iter_mut().enumerate().take(256) {
        *sum = counts.iter().map(|counts| counts[byte]).sum();
    }
    sums[END_OF_BLOCK] = 1;
    sums
}

/// Counts the symbols of a block of tokens.
fn count_tokens(tokens: &[u16]) -> [u32; SYMBOLS] {
    let mut counts = [0; SYMBOLS];
    for &token in tokens {
        let symbol = match token & RUN {
            0 => usize::from(token),
            _ => run_symbol(usize::from(token & !RUN)).0,
        };
        counts[symbol] += 1;
    }
    counts[END_OF_BLOCK] = 1;
    counts
}

/// Writes the codes of literals.
fn put_literals(bytes: &[u8], codes: &[Code; SYMBOLS], out: &mut BitWriter<'_>) -> Option<()> {
    let (together, rest) = bytes.as_chunks::<TOGETHER>();
    for literals in together {
        for byte in literals {
            out.put_code(codes[usize::from(*byte)]);
        }
        out.flush()?;
    }
    for byte in rest {
        out.put_code(codes[usize::from(*byte)]);
        out.flush()?;
    }
    Some(())
}

/// Writes the codes of tokens.
fn put_tokens(tokens: &[u16], codes: &[Code; SYMBOLS], out: &mut BitWriter<'_>) -> Option<()> {
    for &token in tokens {
        if token & RUN == 0 {
            out.put_code(codes[usize::from(token)]);
        } else {
            let (symbol, extra, extra_bits) = run_symbol(usize::from(token & !RUN));
            out.put_code(codes[symbol]);
            out.put(extra, extra_bits);
            out.put(0, DISTANCE_BITS);
        }
        out.flush()?;
    }
    Some(())
}

/// Run-length encodes code lengths. Symbol 16 repeats the length before it; symbols 17 and 18 stand for runs of zeros.
fn run_length_encode(lens: &[u8], out: &mut Vec<(u8, u8, u8)>) {
    for run in lens.chunk_by(|a, b| a == b) {
        let (len, mut left) = (run[0], run.len());
        if len != 0 {
            out.push((len, 0, 0));
            left -= 1;
        }
        while left > 0 {
            let (symbol, count, least, extra_bits) = match (len, left) {
                (0, 11..) => (18, left.min(138), 11, 7),
                (0, 3..) => (17, left, 3, 3),
                (_, 3..) => (16, left.min(6), 3, 2),
                _ => (len, 1, 1, 0),
            };
            out.push((symbol, (count - least) as u8, extra_bits));
            left -= count;
        }
    }
}

/// Writes bits to the start of `out`. After each [`flush`](Self::flush), up to 57 bits may be added.
struct BitWriter<'o> {
    out: &'o mut [u8],
    at: usize,
    bits: u64,
    count: u32,
}

impl BitWriter<'_> {
    /// Adds the lowest `count` bits of `bits`.
    #[inline(always)]
    fn put(&mut self, bits: u64, count: u32) {
        self.bits |= bits << self.count;
        self.count += count;
    }

    #[inline(always)]
    fn put_code(&mut self, code: Code) {
        self.put(u64::from(code as u16), code_len(code));
    }

    /// Writes the bits added so far to `out`. Returns `None` if `out` is too short.
    #[inline(always)]
    fn flush(&mut self) -> Option<()> {
        let to = self.out.get_mut(self.at..)?.first_chunk_mut()?;
        *to = self.bits.to_le_bytes();
        self.at += self.count as usize / 8;
        self.bits >>= self.count & !7;
        self.count &= 7;
        Some(())
    }

    /// Flushes, and returns the number of bits that were written. Returns `None` if `out` is too short.
    fn finish(mut self) -> Option<usize> {
        self.flush()?;
        Some(self.at * 8 + self.count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deflate::end::EndFinder;
    use crate::for_tests::random::Random;

    /// Encodes bytes, and inflates the block with two libraries. Returns the length of the block in bits.
    fn round_trip(bytes: &[u8], encoder: &mut LiteralEncoder) -> Option<usize> {
        let mut out = vec![0xaa; bytes.len() * 2 + 500];
        let bits = encoder.encode(bytes, &mut out)?;
        out.truncate(bits.div_ceil(8));
        out[0] |= 1;
        let mut found = vec![0; bytes.len()];
        let mut zlib = libdeflater::Decompressor::new();
        assert_eq!(zlib.deflate_decompress(&out, &mut found), Ok(bytes.len()));
        assert!(found == bytes);
        found.clear();
        let mut other = flate2::read::DeflateDecoder::new(&out[..]);
        std::io::Read::read_to_end(&mut other, &mut found).unwrap();
        assert!(found == bytes);
        let mut ends = Vec::new();
        EndFinder::default().find(&[&out], &mut ends).unwrap();
        assert_eq!((ends[0].last_block, ends[0].bits), (0, bits));
        // If the buffer is one byte too short, encoding fails.
        let mut short = vec![0; out.len() - 1];
        assert_eq!(encoder.encode(bytes, &mut short), None);
        Some(bits)
    }

    #[test]
    fn bytes_of_every_distribution_round_trip() {
        let mut encoder = LiteralEncoder::default();
        let mut random = Random(88_172_645_463_325_252);
        for len in [1, 2, 4, 5, 6, 100, 1_001, 40_000] {
            for symbols in [1u32, 2, 3, 16, 17, 100, 255, 256] {
                for skew in [1, 2, 5, 20] {
                    let mut draw = || (0..skew).map(|_| random.below(symbols)).min().unwrap_or(0);
                    let bytes: Vec<u8> = (0..len).map(|_| draw() as u8).collect();
                    round_trip(&bytes, &mut encoder);
                }
            }
        }
        // Without a limit, Huffman codes for these counts would be longer than deflate allows.
        let fibonacci: Vec<u8> = (0..23u8)
            .scan((1usize, 1usize), |(a, b), byte| {
                (*a, *b) = (*b, *a + *b);
                Some(vec![byte; *a])
            })
            .flatten()
            .collect();
        assert!(round_trip(&fibonacci, &mut encoder).is_some());
    }

    #[test]
    fn runs_take_hardly_any_space() {
        let mut encoder = LiteralEncoder::default();
        for len in [1, 3, 4, 5, 257, 258, 259, 260, 261, 262, 520, 8_000] {
            let bytes = [vec![1; len], vec![2; 3], vec![3; len], vec![4; 30]].concat();
            let bits = round_trip(&bytes, &mut encoder).unwrap();
            assert!(bits < 8 * 120, "{bits}");
        }
        let mut out = vec![0; 20_000];
        let mut random = Random(5);
        let varied: Vec<u8> = (0..8_000).map(|_| random.bits(8) as u8).collect();
        assert_eq!(encoder.encode_runs(&varied, &mut out), None);
        let mut constant = vec![9; 8_000];
        constant[100..110].copy_from_slice(&varied[..10]);
        assert!(encoder.encode_runs(&constant, &mut out).unwrap() < 8 * 120);
        assert_eq!(encoder.encode_runs(b"", &mut out), None);
    }

    #[test]
    fn bytes_with_many_repeated_sequences_are_not_encoded() {
        let mut encoder = LiteralEncoder::default();
        let mut random = Random(9);
        let varied: Vec<u8> = (0..4_000).map(|_| random.below(200u8)).collect();
        let mut out = vec![0; 20_000];
        assert!(encoder.encode(&varied, &mut out).is_some());
        let repeated = varied[..300].repeat(20);
        assert_eq!(encoder.encode(&repeated, &mut out), None);
        let mut runs = varied.clone();
        runs.chunks_mut(40).for_each(|chunk| chunk[..30].fill(2));
        assert!(encoder.encode(&runs, &mut out).is_some());
    }

    #[test]
    fn each_length_of_a_run_has_its_symbol() {
        for (len, symbol) in [
            (3, (257, 0, 0)),
            (10, (264, 0, 0)),
            (11, (265, 0, 1)),
            (12, (265, 1, 1)),
            (18, (268, 1, 1)),
            (19, (269, 0, 2)),
            (130, (280, 15, 4)),
            (131, (281, 0, 5)),
            (257, (284, 30, 5)),
            (258, (285, 0, 0)),
        ] {
            assert_eq!(run_symbol(len), symbol, "{len}");
        }
    }
}
