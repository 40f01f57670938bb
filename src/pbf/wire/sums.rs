//! Sums of zigzag-coded packed values, which are the values of a delta-coded column.

use super::packed::Varints;
use super::{CONTINUATION_BITS, FormatError, WideRegisters, word_at, zigzag_decode};

/// The number of sums that are computed at a time, before they are tested one by one. A larger number would be of
/// little use, because most ways have fewer nodes.
pub(in crate::pbf) const FEW_SUMS: usize = 32;

impl Varints<'_> {
    /// Reads a zigzag-coded value for each element of `sums`, and sets the element to the sum of `sum` and all values
    /// read so far. Returns the last sum. Sums wrap around. Fails if the run has too few values.
    #[inline]
    pub fn fill_sums(&mut self, sums: &mut [i64], sum: i64) -> Result<i64, FormatError> {
        self.fill_sums_with(WideRegisters::detect(), sums, sum)
    }

    /// Reads values as [`fill_sums`](Self::fill_sums) does, but may stop before `sums` is full. Reads at least one
    /// value, unless `sums` is empty or the run has ended. Returns the sums that were read, and sets `sum` to the last
    /// one. Fails if the first value is malformed.
    #[inline]
    pub fn read_sums<'s>(
        &mut self,
        sums: &'s mut [i64],
        sum: &mut i64,
    ) -> Result<&'s [i64], FormatError> {
        self.read_sums_with(WideRegisters::detect(), sums, sum)
    }

    /// Appends the sums of at most `most` values to `sums`. Returns the last sum. Sums wrap around. Fails at a
    /// malformed value, after it has appended the sums before this value.
    #[inline]
    pub fn push_sums(
        &mut self,
        most: usize,
        sums: &mut Vec<i64>,
        sum: i64,
    ) -> Result<i64, FormatError> {
        self.push_sums_with(WideRegisters::detect(), most, sums, sum)
    }

    /// Whether `test` returns `true` for any prefix sum of the values. The prefix sums start from `sum`. Sums wrap
    /// around. Stops at the first sum for which `test` returns `true`. Fails at a malformed value, unless it has
    /// stopped before.
    #[inline]
    pub fn any_sum(self, sum: i64, test: impl FnMut(i64) -> bool) -> Result<bool, FormatError> {
        self.any_sum_with(WideRegisters::detect(), sum, test)
    }

    /// Does the same as [`any_sum`](Self::any_sum). Uses `registers`, unless they are `None`.
    fn any_sum_with(
        mut self,
        registers: Option<WideRegisters>,
        mut sum: i64,
        mut test: impl FnMut(i64) -> bool,
    ) -> Result<bool, FormatError> {
        let mut sums = [0; FEW_SUMS];
        while !self.is_done() {
            if registers.is_some() {
                let sums = self.read_sums_with(registers, &mut sums, &mut sum)?;
                if sums.iter().any(|sum| test(*sum)) {
                    return Ok(true);
                }
                continue;
            }
            sum = sum.wrapping_add(self.read_sint()?);
            if test(sum) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls `f(sum, repeats)` for the prefix sums of the remaining zigzag-coded values. A call stands for `repeats`
    /// consecutive sums that are equal. A run of equal sums may be split into several calls. Sums wrap around. Returns
    /// whether any sum exceeded 64 bits.
    #[inline]
    pub fn for_each_sum(self, f: impl FnMut(i64, usize)) -> Result<bool, FormatError> {
        self.for_each_sum_with(WideRegisters::detect(), f)
    }

    /// Does the same as [`for_each_sum`](Self::for_each_sum). Uses `registers`, unless they are `None`.
    #[inline]
    fn for_each_sum_with(
        mut self,
        registers: Option<WideRegisters>,
        mut f: impl FnMut(i64, usize),
    ) -> Result<bool, FormatError> {
        // A value of at most eight bytes changes the sum by at most 2^55, so 64 such values change it by at most 2^61.
        const FAR_FROM_OVERFLOW: u64 = 1 << 62;
        let (mut sum, mut overflows, mut sums) = (0i64, false, [0; 64]);
        while !self.is_done() {
            // Neighbouring values in a column of metadata are often equal. Their deltas are 0, and eight of them are
            // read at once.
            if word_at(self.run, self.pos) == Some(0) {
                self.pos += 8;
                f(sum, 8);
                continue;
            }
            if let Some(registers) = registers
                && sum.unsigned_abs() < FAR_FROM_OVERFLOW
            {
                let count = self.fill_sums_in_registers(registers, &mut sums, &mut sum);
                sums[..count].iter().for_each(|sum| f(*sum, 1));
                if count > 0 {
                    continue;
                }
            } else if let Some(pair) = self.read_pair() {
                for value in pair {
                    let (next, overflow) = sum.overflowing_add(zigzag_decode(value));
                    sum = next;
                    overflows |= overflow;
                    f(sum, 1);
                }
                continue;
            }
            let (next, overflow) = sum.overflowing_add(zigzag_decode(self.read_branchless()?));
            sum = next;
            overflows |= overflow;
            f(sum, 1);
        }
        Ok(overflows)
    }

    /// Reads `count` zigzag-coded values and returns their sum, which wraps around. Fails if the run has fewer values.
    #[inline]
    pub fn sum_sints(&mut self, count: usize) -> Result<i64, FormatError> {
        self.sum_sints_with(WideRegisters::detect(), count)
    }

    /// Does the same as [`sum_sints`](Self::sum_sints). Uses `registers`, unless they are `None`.
    fn sum_sints_with(
        &mut self,
        registers: Option<WideRegisters>,
        mut count: usize,
    ) -> Result<i64, FormatError> {
        // The least number of values for which wide registers are faster.
        const MANY: usize = 16;
        let mut sum = 0i64;
        while count > 0 {
            // Neighbouring values in a column often differ little, so their deltas have one byte each. Eight such
            // deltas are added together.
            if count >= 8
                && let Some(word) = word_at(self.run, self.pos)
                && word & CONTINUATION_BITS == 0
            {
                sum = sum.wrapping_add(sum_of_zigzag_bytes(word));
                self.pos += 8;
                count -= 8;
                continue;
            }
            if let Some(registers) = registers
                && count >= MANY
            {
                let read = self.add_values_in_registers(registers, count, &mut sum);
                count -= read;
                if read > 0 {
                    continue;
                }
            } else if count >= 2
                && let Some([first, second]) = self.read_pair()
            {
                let pair = zigzag_decode(first).wrapping_add(zigzag_decode(second));
                sum = sum.wrapping_add(pair);
                count -= 2;
                continue;
            }
            sum = sum.wrapping_add(zigzag_decode(self.read_branchless()?));
            count -= 1;
        }
        Ok(sum)
    }

    /// Does the same as [`fill_sums`](Self::fill_sums). Uses `registers`, unless they are `None`.
    fn fill_sums_with(
        &mut self,
        registers: Option<WideRegisters>,
        mut sums: &mut [i64],
        mut sum: i64,
    ) -> Result<i64, FormatError> {
        loop {
            let count = self.fill_sums_of_short_values(registers, sums, &mut sum);
            let Some((place, rest)) = sums[count..].split_first_mut() else {
                return Ok(sum);
            };
            sum = sum.wrapping_add(self.read_sint()?);
            *place = sum;
            sums = rest;
        }
    }

    /// Does the same as [`read_sums`](Self::read_sums). Uses `registers`, unless they are `None`.
    fn read_sums_with<'s>(
        &mut self,
        registers: Option<WideRegisters>,
        sums: &'s mut [i64],
        sum: &mut i64,
    ) -> Result<&'s [i64], FormatError> {
        let mut count = 0;
        if let Some(registers) = registers {
            count = self.fill_sums_in_registers(registers, sums, sum);
        }
        while let Some(place) = sums.get_mut(count)
            && (count == 0 || registers.is_none())
            && !self.is_done()
        {
            // Most values have one byte. Reading such values one by one is fastest.
            let value = match self.read_sint() {
                Err(_) if count > 0 => break,
                value => value?,
            };
            *sum = sum.wrapping_add(value);
            *place = *sum;
            count += 1;
        }
        Ok(&sums[..count])
    }

    /// Does the same as [`push_sums`](Self::push_sums). Uses `registers`, unless they are `None`.
    fn push_sums_with(
        &mut self,
        registers: Option<WideRegisters>,
        most: usize,
        sums: &mut Vec<i64>,
        mut sum: i64,
    ) -> Result<i64, FormatError> {
        let end = sums.len().saturating_add(most);
        loop {
            if let Some(registers) = registers {
                let part = registers.push(self.rest(), end - sums.len(), sums, sum);
                self.pos += part.bytes;
                sum = part.last;
            } else {
                while sums.len() < end
                    && let Some(value) = self.read_short()
                {
                    sum = sum.wrapping_add(zigzag_decode(value));
                    sums.push(sum);
                }
            }
            if sums.len() == end || self.is_done() {
                return Ok(sum);
            }
            sum = sum.wrapping_add(self.read_sint()?);
            sums.push(sum);
        }
    }

    /// Reads values of at most eight bytes, and fills `sums` from its beginning with their sums. Stops at the end of
    /// `sums` or of the run, and at a value that is longer or cut off. Sets `sum` to the last sum, and returns the
    /// number of values.
    #[inline]
    fn fill_sums_of_short_values(
        &mut self,
        registers: Option<WideRegisters>,
        sums: &mut [i64],
        sum: &mut i64,
    ) -> usize {
        if let Some(registers) = registers {
            return self.fill_sums_in_registers(registers, sums, sum);
        }
        let mut count = 0;
        while let Some(places) = sums[count..].first_chunk_mut::<2>() {
            if let Some([first, second]) = self.read_pair() {
                places[0] = sum.wrapping_add(zigzag_decode(first));
                places[1] = places[0].wrapping_add(zigzag_decode(second));
                *sum = places[1];
                count += 2;
            } else if let Some(value) = self.read_short() {
                *sum = sum.wrapping_add(zigzag_decode(value));
                places[0] = *sum;
                count += 1;
            } else {
                return count;
            }
        }
        if let Some(place) = sums[count..].first_mut()
            && let Some(value) = self.read_short()
        {
            *sum = sum.wrapping_add(zigzag_decode(value));
            *place = *sum;
            count += 1;
        }
        count
    }

    /// Reads at most `count` values of at most eight bytes, and adds them to `sum`. Returns the number of values.
    #[inline(never)]
    fn add_values_in_registers(
        &mut self,
        registers: WideRegisters,
        count: usize,
        sum: &mut i64,
    ) -> usize {
        self.fill_sums_in_registers(registers, &mut [0; 64][..count.min(64)], sum)
    }

    /// Does the same as [`fill_sums_of_short_values`](Self::fill_sums_of_short_values). Always uses `registers`.
    #[inline]
    fn fill_sums_in_registers(
        &mut self,
        registers: WideRegisters,
        sums: &mut [i64],
        sum: &mut i64,
    ) -> usize {
        let part = registers.fill(self.rest(), sums, *sum);
        self.pos += part.bytes;
        *sum = part.last;
        part.count
    }
}

/// Returns the sum of eight zigzag-coded values. Each byte of `word` is a value and must be less than 128.
#[inline]
const fn sum_of_zigzag_bytes(word: u64) -> i64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let odd = word & LOWEST;
    let halves = (word >> 1) & (LOWEST * 0x3f);
    let below = halves & (odd * 0xff);
    sum_of_bytes(halves ^ below) - sum_of_bytes(below) - odd.count_ones() as i64
}

/// Returns the sum of the eight bytes of `word`.
#[inline]
const fn sum_of_bytes(word: u64) -> i64 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (word & EVEN) + (word >> 8 & EVEN);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::pbf::wire::{put_varint, read_varint_bytewise};

    /// Reads a run byte by byte. Returns the sums of its whole values, the offset after each value, and the error at
    /// the first malformed value.
    fn read_sums_bytewise(run: &[u8], sum: i64) -> (Vec<i64>, Vec<usize>, Option<FormatError>) {
        let (mut sums, mut ends, mut pos, mut sum) = (Vec::new(), Vec::new(), 0, sum);
        while pos < run.len() {
            match read_varint_bytewise(run, &mut pos) {
                Ok(value) => sum = sum.wrapping_add(zigzag_decode(value)),
                Err(error) => return (sums, ends, Some(error)),
            }
            sums.push(sum);
            ends.push(pos);
        }
        (sums, ends, None)
    }

    /// Compares all functions that read sums with [`read_sums_bytewise`], for at most `room` values at a time.
    fn check_sums_of_run(run: &[u8], room: usize) {
        let (sums, ends, error) = read_sums_bytewise(run, -7);
        let count = room.min(sums.len());
        let at_end = read_varint_bytewise(&[], &mut 0).unwrap_err();
        let end = |count: usize| count.checked_sub(1).map_or(0, |last| ends[last]);
        for registers in [None, WideRegisters::detect()] {
            let (mut values, mut filled) = (Varints::new(run), vec![1; room]);
            let result = values.fill_sums_with(registers, &mut filled, -7);
            assert_eq!(filled[..count], sums[..count], "{run:?}");
            assert_eq!(values.position(), end(count), "{run:?}");
            if room <= sums.len() {
                assert_eq!(
                    result,
                    Ok(count.checked_sub(1).map_or(-7, |last| sums[last]))
                );
            } else {
                assert_eq!(
                    result,
                    Err(error.clone().unwrap_or(at_end.clone())),
                    "{run:?}"
                );
            }

            let (mut values, mut pushed) = (Varints::new(run), vec![5]);
            let result = values.push_sums_with(registers, room, &mut pushed, -7);
            assert_eq!(pushed[1..], sums[..count], "{run:?}");
            assert_eq!(values.position(), end(count), "{run:?}");
            assert_eq!(result.err(), error.clone().filter(|_| room > count));

            let (mut values, mut read, mut sum) = (Varints::new(run), Vec::new(), -7);
            let mut places = vec![0; room];
            let stopped = loop {
                match values.read_sums_with(registers, &mut places, &mut sum) {
                    Ok([]) => break None,
                    Ok(some) => read.extend_from_slice(some),
                    Err(error) => break Some(error),
                }
            };
            let mut summed = Varints::new(run);
            let result = summed.sum_sints_with(registers, room);
            assert_eq!(summed.position(), end(count), "{run:?}");
            if room <= sums.len() {
                let sum = count
                    .checked_sub(1)
                    .map_or(0, |last| sums[last].wrapping_add(7));
                assert_eq!(result, Ok(sum), "{run:?}");
            } else {
                assert_eq!(
                    result,
                    Err(error.clone().unwrap_or(at_end.clone())),
                    "{run:?}"
                );
            }

            let tested = |most: usize| {
                let mut tested = Vec::new();
                let found = Varints::new(run).any_sum_with(registers, -7, |sum| {
                    tested.push(sum);
                    tested.len() == most
                });
                (found, tested)
            };
            let (found, seen) = tested(room);
            assert_eq!(seen, sums[..if room == 0 { sums.len() } else { count }]);
            let is_found = room > 0 && count == room;
            let none_found = error.clone().map_or(Ok(false), Err);
            assert_eq!(found, if is_found { Ok(true) } else { none_found });
            if room > 0 {
                assert_eq!((read, stopped), (sums.clone(), error.clone()), "{run:?}");
                assert_eq!(values.position(), end(sums.len()), "{run:?}");
            }
        }
    }

    /// Compares `for_each_sum` with [`read_sums_bytewise`].
    fn check_for_each_sum(run: &[u8]) {
        let (sums, _, error) = read_sums_bytewise(run, 0);
        let (mut sum, mut overflows, mut pos) = (0i128, false, 0);
        for _ in &sums {
            sum += i128::from(zigzag_decode(read_varint_bytewise(run, &mut pos).unwrap()));
            overflows |= i64::try_from(sum).is_err();
            sum = i128::from(sum as i64);
        }
        for registers in [None, WideRegisters::detect()] {
            let mut visited = Vec::new();
            let result = Varints::new(run).for_each_sum_with(registers, |sum, times| {
                visited.extend(std::iter::repeat_n(sum, times));
            });
            assert_eq!(visited, sums, "{run:?}");
            assert_eq!(result, error.clone().map_or(Ok(overflows), Err), "{run:?}");
        }
    }

    #[test]
    fn values_of_every_length_are_added_up_as_if_read_byte_by_byte() {
        let mut random = Random(11);
        for round in 0..120 {
            let (mut run, values) = (Vec::new(), random.below(150));
            let most_bits = [7, 14, 35, 56, 57, 64][round % 6];
            for _ in 0..values {
                let bits = 1 + random.below(most_bits);
                put_varint(&mut run, random.bits(64) >> (64 - bits));
            }
            for room in [0, 1, 8, 9, 64, 65, 200] {
                check_sums_of_run(&run, room);
            }
            check_for_each_sum(&run);
        }
    }

    #[test]
    fn malformed_values_fail_as_if_read_byte_by_byte() {
        // Each run has `before` short values, one long value, and `behind` short values. The long value consists of
        // `long` bytes with continuation bits, and of the byte `last`.
        for before in [0, 1, 7, 8, 55, 56, 57, 62, 63, 64] {
            for (long, last) in (0..12).flat_map(|long| [0, 1, 2, 0x80].map(|last| (long, last))) {
                for behind in [0, 1, 70] {
                    let run = [
                        &vec![3; before][..],
                        &vec![0x81; long],
                        &[last],
                        &vec![4; behind],
                    ];
                    let run = run.concat();
                    check_sums_of_run(&run, before + 1);
                    check_sums_of_run(&run, 200);
                    check_for_each_sum(&run);
                }
            }
        }
    }

    #[test]
    fn redundant_zero_bytes_belong_to_their_value() {
        for len in 1..=10 {
            let mut run = vec![2];
            run.extend(vec![0x80; len - 1]);
            run.extend([0, 2]);
            check_sums_of_run(&run, 3);
        }
    }

    #[test]
    fn sums_wrap_around() {
        let mut run = Vec::new();
        [
            u64::MAX,
            u64::MAX - 1,
            u64::MAX - 1,
            u64::MAX,
            1 << 63,
            u64::MAX >> 8,
        ]
        .iter()
        .for_each(|value| put_varint(&mut run, *value));
        check_sums_of_run(&run, 6);
        check_for_each_sum(&run);
        check_sums_of_run(
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f].repeat(30),
            40,
        );
    }
}
