//! Random numbers that are the same on every machine and in every version of this program.

/// The random number generator SplitMix64 (Steele, Lea, Flood 2014). The definition of SplitMix64 fixes the numbers
/// that follow a seed, whereas the generator of a library may change with its version.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Random(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Creates the generator for a combination of parts, for example a seed and an id. Different combinations give
    /// different numbers.
    pub(in crate::commands) fn from_seed_parts(parts: &[u64]) -> Self {
        let mut random = Self(GOLDEN);
        for part in parts {
            random.0 = random.next().wrapping_add(*part);
        }
        random.next();
        random
    }

    pub(in crate::commands) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number from `0..end`; 0 if `end` is 0.
    pub(in crate::commands) const fn draw_below(&mut self, end: u64) -> u64 {
        // The remainder favours small numbers slightly, which does not matter for test data.
        if end == 0 {
            0
        } else {
            (self.next() >> 11) % end
        }
    }

    /// Draws a number from `-reach..=reach`. `reach` must not be negative.
    pub(in crate::commands) const fn draw_around_zero(&mut self, reach: i32) -> i32 {
        self.draw_below(2 * reach.unsigned_abs() as u64 + 1) as i32 - reach
    }

    /// Draws true with a probability of `chance` percent.
    pub(in crate::commands) const fn draw_bool(&mut self, chance: u64) -> bool {
        self.draw_below(100) < chance
    }

    /// Draws one of the strings, earlier strings more often than later ones. `from` must not be empty.
    pub(in crate::commands) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let len = from.len() as u64;
        let index = self.draw_below(len).min(self.draw_below(len));
        from[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_0_gives_the_numbers_of_splitmix64() {
        let mut random = Random(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
