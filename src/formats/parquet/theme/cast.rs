//! Converts the values of tags to numbers and truth values.

/// Parses a whole number, such as `4`.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

/// Parses a finite decimal number, such as `2.5`.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

/// Whether a value means yes. All values except `no`, `false` and `0` mean yes. An example is `viaduct`, a value of the
/// key `bridge`.
pub(super) fn is_yes(text: &str) -> bool {
    !matches!(text.trim(), "no" | "false" | "0")
}

/// Divides a text into the number at its start and the unit after the number.
fn split_number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|char: char| !matches!(char, '0'..='9' | '.' | '-' | '+'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    Some((parse_float(number)?, unit.trim()))
}

/// Parses a speed, such as `50` or `30 mph`. Returns it in km/h.
pub(super) fn parse_speed(text: &str) -> Option<f64> {
    let (number, unit) = split_number_and_unit(text)?;
    let factor = match unit {
        "" | "km/h" | "kmh" | "kph" => 1.0,
        "mph" => 1.609_344,
        "knots" | "kn" => 1.852,
        _ => return None,
    };
    (number >= 0.0).then_some(number * factor)
}

/// Parses a length, such as `12`, `12.5 m`, `1.2 km`, `40 ft` or `6'4"`. Returns it in metres.
pub(super) fn parse_length(text: &str) -> Option<f64> {
    const FOOT: f64 = 0.3048;
    let (number, unit) = split_number_and_unit(text)?;
    let factor = match unit {
        "" | "m" | "metre" | "metres" | "meter" | "meters" => 1.0,
        "cm" => 0.01,
        "km" => 1000.0,
        "mi" => 1609.344,
        "nmi" => 1852.0,
        "ft" | "feet" | "'" => FOOT,
        "in" | "\"" => FOOT / 12.0,
        _ => {
            let inches = unit.strip_prefix('\'')?.trim();
            let inches = parse_float(inches.strip_suffix('"').unwrap_or(inches))?;
            let is_length = number >= 0.0 && inches >= 0.0;
            return is_length.then_some((number + inches / 12.0) * FOOT);
        }
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_numbers_in_one_unit() {
        let near = |found: Option<f64>, expected: f64| {
            found.is_some_and(|found| (found - expected).abs() < 1e-9)
        };
        for (text, expected) in [
            ("12", 12.0),
            (" 12.5 m ", 12.5),
            ("1.2km", 1200.0),
            ("10 ft", 3.048),
            ("6'4\"", 1.9304),
            ("6' 4", 1.9304),
            ("7'", 2.1336),
            ("-3", -3.0),
        ] {
            assert!(
                near(parse_length(text), expected),
                "{text}: {:?}",
                parse_length(text)
            );
        }
        for (text, expected) in [
            ("50", 50.0),
            ("30 mph", 48.28032),
            ("30mph", 48.28032),
            ("5 knots", 9.26),
        ] {
            assert!(near(parse_speed(text), expected), "{text}");
        }
        for text in ["", "none", "walk", "50;70", "-5", "50 m", "1e999"] {
            assert_eq!(parse_speed(text), None, "{text}");
        }
        for text in ["", "tall", "12 parsecs", "12;13", "6'x\""] {
            assert_eq!(parse_length(text), None, "{text}");
        }
        assert_eq!(
            (parse_int(" 4 "), parse_int("4.5"), parse_int("2;3")),
            (Some(4), None, None)
        );
        assert_eq!((parse_float("2.5"), parse_float("inf")), (Some(2.5), None));
        assert!(
            is_yes("yes") && is_yes("viaduct") && is_yes("-1") && !is_yes("no") && !is_yes("0")
        );
    }
}
