//! Pseudo-random numbers, the same in each run. Unit tests, the test suite and the benchmarks share them.

// Each program that includes this file uses only some of its functions.
#![allow(dead_code)]

/// A linear congruential generator with the constants of Knuth's MMIX. The field is the seed, and later the state.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number of `count` bits. `count` must be from 1 to 64. Uses the upper bits of the state, which
    /// are more random than the lower ones.
    pub fn bits(&mut self, count: u32) -> u64 {
        let product = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = product.wrapping_add(1_442_695_040_888_963_407);
        self.0 >> (64 - count)
    }

    /// Returns a number from 0 to `limit` - 1. `limit` must be from 1 to 2³¹.
    pub fn below<N: TryInto<u64> + TryFrom<u64>>(&mut self, limit: N) -> N {
        let limit = limit.try_into().ok().filter(|limit| *limit <= 1 << 31);
        let number = self.bits(31) % limit.expect("a limit up to 2^31");
        N::try_from(number)
            .ok()
            .expect("a number below one of its type")
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn between(&mut self, least: i32, most: i32) -> i32 {
        least + self.below(most - least + 1)
    }

    /// Returns a floating-point number from 0 up to, but not including, `limit`.
    pub fn fraction(&mut self, limit: f64) -> f64 {
        self.bits(53) as f64 / (1u64 << 53) as f64 * limit
    }
}
