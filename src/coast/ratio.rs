//! Exact comparison of fractions.

use std::cmp::Ordering;

/// A fraction with a positive denominator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    pub(super) const ZERO: Self = Self {
        numerator: 0,
        denominator: 1,
    };

    /// Creates a fraction. The denominator must not be 0.
    pub(super) const fn new(numerator: i128, denominator: i128) -> Self {
        if denominator < 0 {
            Self {
                numerator: -numerator,
                denominator: -denominator,
            }
        } else {
            Self {
                numerator,
                denominator,
            }
        }
    }

    /// Compares two fractions by their continued fractions, because cross products could overflow.
    pub(super) fn compare(self, other: Self) -> Ordering {
        let (mut a, mut b) = (self.numerator, self.denominator);
        let (mut c, mut d) = (other.numerator, other.denominator);
        let mut is_reversed = false;
        loop {
            let (one, two) = (a.div_euclid(b), c.div_euclid(d));
            let (rest_one, rest_two) = (a.rem_euclid(b), c.rem_euclid(d));
            let order = match one.cmp(&two) {
                Ordering::Equal if rest_one == 0 || rest_two == 0 => rest_one.cmp(&rest_two),
                Ordering::Equal => {
                    // The integer parts are equal. The fractional parts are compared by their reciprocals, which
                    // reverses the order.
                    (a, b, c, d) = (b, rest_one, d, rest_two);
                    is_reversed = !is_reversed;
                    continue;
                }
                order => order,
            };
            return if is_reversed { order.reverse() } else { order };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn fractions_are_compared_as_their_cross_products() {
        let mut random = Random(5);
        for _ in 0..20_000 {
            let mut number = || random.below(40) as i128 - 20;
            let (a, b, c, d) = (number(), number(), number(), number());
            if b == 0 || d == 0 {
                continue;
            }
            let expected = (a * d * (b * d).signum()).cmp(&(c * b * (b * d).signum()));
            assert_eq!(
                Ratio::new(a, b).compare(Ratio::new(c, d)),
                expected,
                "{a}/{b} {c}/{d}"
            );
        }
        let huge = 1i128 << 100;
        let one = Ratio::new(huge, huge + 1);
        assert_eq!(one.compare(Ratio::new(huge - 1, huge)), Ordering::Greater);
    }
}
