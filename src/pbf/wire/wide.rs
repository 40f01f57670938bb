//! Sums of packed values in registers of 64 bytes: a register takes 64 bytes of a run, and eight values are decoded at
//! a time. Processors with AVX-512 VBMI2 have these registers (Intel since Ice Lake, AMD since Zen 4).
#![allow(
    unsafe_code,
    reason = "wide registers are loaded and stored by pointers, in functions for processors that have them"
)]

use super::packed::{PartialSums, count_varints};
use std::arch::x86_64::{
    __m512i, _mm_cvtsi128_si64, _mm512_add_epi8, _mm512_add_epi64, _mm512_alignr_epi64,
    _mm512_and_si512, _mm512_andnot_si512, _mm512_castsi512_si128, _mm512_madd_epi16,
    _mm512_maddubs_epi16, _mm512_mask_storeu_epi64, _mm512_maskz_compress_epi8,
    _mm512_maskz_loadu_epi8, _mm512_movepi8_mask, _mm512_or_si512, _mm512_permutexvar_epi8,
    _mm512_permutexvar_epi64, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_set1_epi32,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_srli_epi64, _mm512_sub_epi64, _mm512_xor_si512,
    _pdep_u64,
};
use std::mem::MaybeUninit;
use std::sync::LazyLock;

/// Proof that the processor has the registers and the instructions of this module.
#[derive(Debug, Clone, Copy)]
pub(super) struct WideRegisters(());

impl WideRegisters {
    /// Returns the proof; `None` if the processor does not have the registers.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        static HAS_THEM: LazyLock<bool> = LazyLock::new(|| {
            is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt")
        });
        HAS_THEM.then_some(Self(()))
    }

    /// Stores running totals at the beginning of `sums`: `sum` plus the first value of `run`, this total plus the
    /// second value, and so on. Stops at the end of `sums` or `run`, and at a value that is cut off or has more than
    /// eight bytes.
    pub(super) fn fill(self, run: &[u8], sums: &mut [i64], sum: i64) -> PartialSums {
        // SAFETY: both types have the same layout, and `store_totals` stores only numbers.
        let places = unsafe { &mut *(std::ptr::from_mut(sums) as *mut [MaybeUninit<i64>]) };
        // SAFETY: the processor has the instructions, as `self` proves.
        unsafe { store_totals(run, places, sum) }
    }

    /// Appends at most `most` running totals to `sums`. Otherwise does the same as [`fill`](Self::fill).
    pub(super) fn push(
        self,
        run: &[u8],
        most: usize,
        sums: &mut Vec<i64>,
        sum: i64,
    ) -> PartialSums {
        // A value has at least one byte, so the length of a run is an upper bound of its number of values. For a short
        // run, this bound is close enough. The values of a longer run are counted, to reserve no more memory than is
        // needed.
        let values = if run.len() <= 64 {
            run.len()
        } else {
            count_varints(run)
        };
        let most = values.min(most);
        sums.reserve(most);
        // SAFETY: the processor has the instructions, as `self` proves.
        let part = unsafe { store_totals(run, &mut sums.spare_capacity_mut()[..most], sum) };
        // SAFETY: `store_totals` has stored `part.count` numbers, at most as many as there was room for.
        unsafe { sums.set_len(sums.len() + part.count) };
        part
    }
}

/// Returns the numbers from 0 to 63, shifted right by `shift`, modulo `modulus`.
const fn index_pattern(shift: u32, modulus: u8) -> [u8; 64] {
    let (mut numbers, mut at) = ([0; 64], 0);
    while at < 64 {
        numbers[at] = (at as u8 >> shift) % modulus;
        at += 1;
    }
    numbers
}

/// Stores running totals in `places`, as [`WideRegisters::fill`] does in `sums`. Stores numbers in the first
/// [`PartialSums::count`] places, and leaves the others as they are.
#[target_feature(enable = "avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn store_totals(run: &[u8], mut places: &mut [MaybeUninit<i64>], sum: i64) -> PartialSums {
    // For each byte of a register: its index, the index of its group of eight bytes, and its index within the group.
    const BYTES: [u8; 64] = index_pattern(0, 64);
    const EIGHTS: [u8; 64] = index_pattern(3, 8);
    const WITHIN: [u8; 64] = index_pattern(0, 8);
    let [bytes, eights, within] = [load(&BYTES).0, load(&EIGHTS).0, load(&WITHIN).0];
    let mut part = PartialSums {
        bytes: 0,
        count: 0,
        last: sum,
    };
    let mut last = _mm512_set1_epi64(sum);
    loop {
        let (window, filled) = load(&run[part.bytes..]);
        let continued = _mm512_movepi8_mask(window);
        let mut ends = !continued & filled;
        // Eight bytes with continuation bits begin a value of more than eight bytes. The window ends before this value.
        let two = continued & (continued >> 1);
        let four = two & (two >> 2);
        let eight = four & (four >> 4);
        if eight != 0 {
            ends &= (1 << eight.trailing_zeros()) - 1;
        }
        if ends.count_ones() as usize > places.len() {
            ends = _pdep_u64((1 << places.len()) - 1, ends);
        }
        if ends == 0 {
            break;
        }
        // For each value, the index of its first byte in the window.
        let mut starts = _mm512_maskz_compress_epi8(ends << 1 | 1, bytes);
        let count = ends.count_ones() as usize;
        let (now, later) = std::mem::take(&mut places).split_at_mut(count);
        places = later;
        for group in now.chunks_mut(8) {
            let start = _mm512_permutexvar_epi8(eights, starts);
            let encoded = _mm512_permutexvar_epi8(_mm512_add_epi8(start, within), window);
            let sums = _mm512_add_epi64(prefix_sums(decode_zigzags(decode_varints(encoded))), last);
            store(sums, group);
            last = _mm512_permutexvar_epi64(_mm512_set1_epi64(group.len() as i64 - 1), sums);
            starts = _mm512_alignr_epi64(_mm512_setzero_si512(), starts, 1);
        }
        part.bytes += 64 - ends.leading_zeros() as usize;
        part.count += count;
        if part.bytes == run.len() || places.is_empty() {
            break;
        }
    }
    part.last = _mm_cvtsi128_si64(_mm512_castsi512_si128(last));
    part
}

/// Returns the first 64 bytes of `bytes`, and a mask of the bytes that exist. Missing bytes are zeros.
#[inline]
#[target_feature(enable = "avx512bw")]
fn load(bytes: &[u8]) -> (__m512i, u64) {
    let missing = 64 - bytes.len().min(64) as u32;
    let filled = u64::MAX.checked_shr(missing).unwrap_or(0);
    // SAFETY: the mask selects only bytes of the slice, and no other byte is accessed.
    let loaded = unsafe { _mm512_maskz_loadu_epi8(filled, bytes.as_ptr().cast()) };
    (loaded, filled)
}

/// Stores one number in each of `places`, in order. Panics if `places` is empty or has more than eight elements.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(numbers: __m512i, places: &mut [MaybeUninit<i64>]) {
    let mask = 0xff_u8 >> (8 - places.len());
    // SAFETY: the mask selects as many elements as the slice has, and no other element is accessed.
    unsafe { _mm512_mask_storeu_epi64(places.as_mut_ptr().cast(), mask, numbers) };
}

/// Decodes eight varints of at most eight bytes. Each varint is at the start of a group of eight bytes. Ignores the
/// other bytes of the group.
#[inline]
#[target_feature(enable = "avx512bw")]
fn decode_varints(encoded: __m512i) -> __m512i {
    let ends = _mm512_andnot_si512(encoded, _mm512_set1_epi8(-0x80));
    let own = _mm512_xor_si512(ends, _mm512_sub_epi64(ends, _mm512_set1_epi64(1)));
    let sevens = _mm512_and_si512(_mm512_and_si512(encoded, own), _mm512_set1_epi8(0x7f));
    // Each byte with an odd index is multiplied by 2^7 and added to the byte before it. Then each pair of bytes with an
    // odd index is multiplied by 2^14 and added to the pair before it.
    let pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16.cast_signed()), sevens);
    let quads = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x4000_0001));
    const LOW: i64 = 0x0fff_ffff;
    _mm512_or_si512(
        _mm512_and_si512(quads, _mm512_set1_epi64(LOW)),
        _mm512_and_si512(_mm512_srli_epi64(quads, 4), _mm512_set1_epi64(!LOW)),
    )
}

/// Decodes eight zigzag-coded numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn decode_zigzags(values: __m512i) -> __m512i {
    let odd = _mm512_and_si512(values, _mm512_set1_epi64(1));
    let signs = _mm512_sub_epi64(_mm512_setzero_si512(), odd);
    _mm512_xor_si512(_mm512_srli_epi64(values, 1), signs)
}

/// Adds to each of eight numbers all numbers before it.
#[inline]
#[target_feature(enable = "avx512f")]
fn prefix_sums(numbers: __m512i) -> __m512i {
    let zeros = _mm512_setzero_si512();
    let sums = _mm512_add_epi64(numbers, _mm512_alignr_epi64(numbers, zeros, 7));
    let sums = _mm512_add_epi64(sums, _mm512_alignr_epi64(sums, zeros, 6));
    _mm512_add_epi64(sums, _mm512_alignr_epi64(sums, zeros, 4))
}
