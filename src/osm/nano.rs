//! Conversions between nanodegrees, which files store, and units of 1e-7 degree (decimicro degrees), which the program
//! computes with.

/// The number of nanodegrees in 1e-7 degree.
pub const NANO_PER_DECIMICRO: i64 = 100;

/// Converts units of 1e-7 degree to nanodegrees.
pub(crate) const fn nano_of_e7(e7: i32) -> i64 {
    e7 as i64 * NANO_PER_DECIMICRO
}

/// Converts nanodegrees to units of 1e-7 degree and rounds down, for the lower edge of a box.
pub(crate) const fn floor_e7(nano: i64) -> i64 {
    nano.div_euclid(NANO_PER_DECIMICRO)
}

/// Converts nanodegrees to units of 1e-7 degree and rounds up, for the upper edge of a box.
pub(crate) const fn ceil_e7(nano: i64) -> i64 {
    nano.saturating_add(NANO_PER_DECIMICRO - 1)
        .div_euclid(NANO_PER_DECIMICRO)
}

/// Converts nanodegrees to units of 1e-7 degree, truncated and clamped to 32 bits, for the locations that the library
/// returns.
pub(crate) fn truncated_e7(nano: i64) -> i32 {
    (nano / NANO_PER_DECIMICRO).clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// Converts nanodegrees to units of 1e-7 degree, rounded to the nearest unit and clamped to 32 bits, for text output.
pub(crate) fn nearest_e7(nano: i64) -> i32 {
    let half = NANO_PER_DECIMICRO / 2;
    let is_up = nano.rem_euclid(NANO_PER_DECIMICRO) >= half;
    let rounded = floor_e7(nano) + i64::from(is_up);
    rounded.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// Whether a number of nanodegrees is a whole number of units of 1e-7 degree that fits 32 bits.
pub(crate) fn is_exact_e7(nano: i64) -> bool {
    nano % NANO_PER_DECIMICRO == 0 && i32::try_from(nano / NANO_PER_DECIMICRO).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_nanodegrees_are_rounded_by_each_rule() {
        for (nano, floor, ceil, truncated, nearest) in [
            (0, 0, 0, 0, 0),
            (149, 1, 2, 1, 1),
            (150, 1, 2, 1, 2),
            (-149, -2, -1, -1, -1),
            (-150, -2, -1, -1, -1),
            (-151, -2, -1, -1, -2),
        ] {
            let found = (floor_e7(nano), ceil_e7(nano));
            assert_eq!(found, (floor, ceil), "{nano}");
            let found = (truncated_e7(nano), nearest_e7(nano));
            assert_eq!(found, (truncated, nearest), "{nano}");
            assert_eq!(is_exact_e7(nano), nano == 0);
        }
        assert_eq!(truncated_e7(i64::MAX), i32::MAX);
        assert_eq!(nearest_e7(i64::MIN), i32::MIN);
        assert!(is_exact_e7(nano_of_e7(-1_800_000_000)));
        assert!(!is_exact_e7(nano_of_e7(i32::MAX) + NANO_PER_DECIMICRO));
    }
}
