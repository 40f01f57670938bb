use super::Edges;
use super::nano::nano_of_e7;
use serde::{Serialize, Serializer};
use std::fmt;

/// The number of decimicro degrees (1e-7 degree, the unit of the program's coordinates) in a degree.
pub const DECIMICRO_PER_DEGREE: i64 = 10_000_000;

/// A bounding box in decimicro degrees (1e-7 degree). Points on the edges belong to the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bbox {
    /// Southern edge.
    pub min_lat_e7: i32,
    /// Northern edge.
    pub max_lat_e7: i32,
    /// Western edge.
    pub min_lon_e7: i32,
    /// Eastern edge.
    pub max_lon_e7: i32,
}

impl Default for Bbox {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Bbox {
    /// The box that contains no point. It is the neutral element of [`Bbox::union`].
    pub const EMPTY: Self = Self {
        min_lat_e7: i32::MAX,
        max_lat_e7: i32::MIN,
        min_lon_e7: i32::MAX,
        max_lon_e7: i32::MIN,
    };

    /// Whether the box is empty, which means that its southern edge lies north of its northern edge, as in
    /// [`Bbox::EMPTY`].
    pub const fn is_empty(&self) -> bool {
        self.min_lat_e7 > self.max_lat_e7
    }

    /// Whether an edge lies beyond the opposite edge. In this case the box contains no point.
    pub const fn is_inside_out(&self) -> bool {
        self.min_lat_e7 > self.max_lat_e7 || self.min_lon_e7 > self.max_lon_e7
    }

    /// Extends the box so that it contains a point in decimicro degrees.
    #[inline]
    pub fn add(&mut self, lat_e7: i32, lon_e7: i32) {
        self.min_lat_e7 = self.min_lat_e7.min(lat_e7);
        self.max_lat_e7 = self.max_lat_e7.max(lat_e7);
        self.min_lon_e7 = self.min_lon_e7.min(lon_e7);
        self.max_lon_e7 = self.max_lon_e7.max(lon_e7);
    }

    /// Returns the edges in decimicro degrees.
    pub const fn edges_e7(&self) -> Edges<i32> {
        Edges {
            west: self.min_lon_e7,
            south: self.min_lat_e7,
            east: self.max_lon_e7,
            north: self.max_lat_e7,
        }
    }

    /// Returns the smallest box that contains both boxes.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        if !other.is_empty() {
            self.add(other.min_lat_e7, other.min_lon_e7);
            self.add(other.max_lat_e7, other.max_lon_e7);
        }
        self
    }

    /// Returns the box with its edges moved outwards by `margin` decimicro degrees, at most to the limits of `i32`.
    #[must_use]
    pub const fn widened(&self, margin: i32) -> Self {
        Self {
            min_lat_e7: self.min_lat_e7.saturating_sub(margin),
            max_lat_e7: self.max_lat_e7.saturating_add(margin),
            min_lon_e7: self.min_lon_e7.saturating_sub(margin),
            max_lon_e7: self.max_lon_e7.saturating_add(margin),
        }
    }

    /// Returns the box as one or two boxes that do not cross the antimeridian. A box whose western edge lies east of
    /// its eastern edge crosses the antimeridian, and is cut there. If the box only ends at the antimeridian, the
    /// second box has the points of this meridian at the other edge of the map, because 180 and -180 degrees are the
    /// same longitude. If one box is enough, the second one is empty.
    #[must_use]
    pub fn on_map(&self) -> [Self; 2] {
        const EDGE: i32 = 180 * DECIMICRO_PER_DEGREE as i32;
        let lons = |min_lon_e7, max_lon_e7| Self {
            min_lon_e7,
            max_lon_e7,
            ..*self
        };
        if self.is_empty() {
            return [Self::EMPTY; 2];
        }
        match (self.min_lon_e7, self.max_lon_e7) {
            (west, east) if west > east => [lons(west, EDGE), lons(-EDGE, east)],
            (west, east) if west > -EDGE && east >= EDGE => [*self, lons(-EDGE, -EDGE)],
            (west, east) if west <= -EDGE && east < EDGE => [*self, lons(EDGE, EDGE)],
            _ => [*self, Self::EMPTY],
        }
    }

    /// Whether a point with coordinates in decimicro degrees lies in the box or on its edge.
    pub fn contains(&self, lat_e7: i32, lon_e7: i32) -> bool {
        (self.min_lat_e7..=self.max_lat_e7).contains(&lat_e7)
            && (self.min_lon_e7..=self.max_lon_e7).contains(&lon_e7)
    }

    /// Whether a point with coordinates in nanodegrees lies in the box or on its edge.
    pub fn contains_nano(&self, lat: i64, lon: i64) -> bool {
        (nano_of_e7(self.min_lat_e7)..=nano_of_e7(self.max_lat_e7)).contains(&lat)
            && (nano_of_e7(self.min_lon_e7)..=nano_of_e7(self.max_lon_e7)).contains(&lon)
    }

    /// Whether the two boxes have a point in common; a common point on an edge is enough.
    pub const fn intersects(&self, other: &Self) -> bool {
        self.min_lat_e7 <= other.max_lat_e7
            && other.min_lat_e7 <= self.max_lat_e7
            && self.min_lon_e7 <= other.max_lon_e7
            && other.min_lon_e7 <= self.max_lon_e7
    }

    /// Whether `other` lies within this box; edges may coincide.
    pub const fn encloses(&self, other: &Self) -> bool {
        self.min_lat_e7 <= other.min_lat_e7
            && self.max_lat_e7 >= other.max_lat_e7
            && self.min_lon_e7 <= other.min_lon_e7
            && self.max_lon_e7 >= other.max_lon_e7
    }
}

impl fmt::Display for Bbox {
    /// Writes `min_lon,min_lat,max_lon,max_lat` in degrees, the form in which users give boxes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{},{},{}",
            format_e7(self.min_lon_e7),
            format_e7(self.min_lat_e7),
            format_e7(self.max_lon_e7),
            format_e7(self.max_lat_e7)
        )
    }
}

/// Serializes the box as four numbers in degrees, in the order west, south, east, north, as in GeoJSON.
impl Serialize for Bbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let edges = [
            self.min_lon_e7,
            self.min_lat_e7,
            self.max_lon_e7,
            self.max_lat_e7,
        ];
        edges
            .map(|edge| f64::from(edge) / DECIMICRO_PER_DEGREE as f64)
            .serialize(serializer)
    }
}

/// A location in degrees, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Degrees {
    /// Latitude.
    pub lat: f64,
    /// Longitude.
    pub lon: f64,
}

impl fmt::Display for Degrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.lat, self.lon)
    }
}

/// Formats a coordinate in decimicro degrees as decimal degrees, without trailing zeros.
pub fn format_e7(value_e7: i32) -> String {
    let value = i64::from(value_e7);
    let sign = if value < 0 { "-" } else { "" };
    let (whole, part) = (
        value.abs() / DECIMICRO_PER_DEGREE,
        value.abs() % DECIMICRO_PER_DEGREE,
    );
    if part == 0 {
        return format!("{sign}{whole}");
    }
    let digits = format!("{part:07}");
    format!("{sign}{whole}.{}", digits.trim_end_matches('0'))
}

/// Parses decimal degrees, and returns the nearest number of decimicro degrees. Returns `None` if the text is not a
/// number. Also returns `None` if the result exceeds ±`limit_degrees`, or does not fit in an `i32`.
pub fn parse_e7(text: &str, limit_degrees: i32) -> Option<i32> {
    let limit = i64::from(limit_degrees) * DECIMICRO_PER_DEGREE;
    let value = match parse_plain_e7(text.as_bytes()) {
        Some(value) => value,
        None => {
            // Numbers with an exponent or spaces are rare, so the slower float parser is good enough.
            let degrees: f64 = text.trim().parse().ok()?;
            let scaled = (degrees * DECIMICRO_PER_DEGREE as f64).round();
            if !scaled.is_finite() || scaled.abs() > limit as f64 {
                return None;
            }
            scaled as i64
        }
    };
    if value.abs() > limit {
        None
    } else {
        i32::try_from(value).ok()
    }
}

/// Parses decimal degrees and returns the nearest number of decimicro degrees. Accepts coordinates that are not on
/// earth. Fails if the text is not a number, or if the result does not fit in 32 bits. The error message completes a
/// sentence that begins with `text`.
pub fn parse_stored_e7(text: &str) -> Result<i32, &'static str> {
    // ±215 degrees is more than an `i32` can hold, so only the range of `i32` limits the result.
    parse_e7(text, 215).ok_or_else(|| match text.trim().parse::<f64>() {
        Ok(number) if !number.is_nan() => {
            "is beyond ±214.7483647 degrees, the limit of coordinates with 32 bits"
        }
        _ => "is not a coordinate in degrees",
    })
}

/// Parses decimal degrees without an exponent, and returns the nearest number of decimicro degrees. The text must
/// consist of digits, an optional sign, and at most one decimal point. Otherwise returns `None`. Also returns `None` if
/// the result overflows an `i64`.
fn parse_plain_e7(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let mut value = 0i64;
    let mut decimals = None;
    let mut round_up = false;
    for &byte in digits {
        match (byte, decimals) {
            (b'.', None) => decimals = Some(0),
            (b'0'..=b'9', Some(7)) => {
                round_up = byte >= b'5';
                decimals = Some(8);
            }
            (b'0'..=b'9', Some(8..)) => {}
            (b'0'..=b'9', _) => {
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                decimals = decimals.map(|count: u32| count + 1);
            }
            _ => return None,
        }
    }
    if digits.iter().all(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    let missing = 7 - decimals.unwrap_or(0).min(7);
    value = value
        .checked_mul(10i64.pow(missing))?
        .checked_add(i64::from(round_up))?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_round_trip_through_decimicro() {
        for (text, value) in [
            ("0", 0),
            ("-0.0000001", -1),
            ("48.1351253", 481_351_253),
            ("180", 1_800_000_000),
            ("-179.9999999", -1_799_999_999),
        ] {
            assert_eq!(parse_e7(text, 180), Some(value));
            assert_eq!(format_e7(value), text);
        }
    }

    #[test]
    fn more_than_seven_decimals_round_to_the_nearest() {
        assert_eq!(parse_e7("1.00000014", 180), Some(10_000_001));
        assert_eq!(parse_e7("1.00000015", 180), Some(10_000_002));
        assert_eq!(parse_e7("-1.000000159", 180), Some(-10_000_002));
        assert_eq!(parse_e7("1.9999999999", 180), Some(20_000_000));
        assert_eq!(parse_e7("1.5e1", 180), Some(150_000_000));
    }

    #[test]
    fn a_text_that_is_no_coordinate_is_refused() {
        for text in ["", "-", ".", "abc", "181", "nan", "1,5", "1e400"] {
            assert_eq!(parse_e7(text, 180), None, "{text}");
        }
        assert_eq!(parse_e7("90.0000001", 90), None);
    }

    #[test]
    fn coordinates_outside_of_the_world_are_read_if_32_bits_suffice() {
        assert_eq!(parse_stored_e7("91.5"), Ok(915_000_000));
        assert_eq!(parse_stored_e7("-214.7483648"), Ok(i32::MIN));
        assert_eq!(parse_stored_e7("214.7483647"), Ok(i32::MAX));
        for text in ["214.7483648", "-214.7483649", "1e3", "inf"] {
            assert!(parse_stored_e7(text).unwrap_err().starts_with("is beyond"));
        }
        for text in ["abc", "", "nan", "0x10"] {
            assert!(parse_stored_e7(text).unwrap_err().starts_with("is not"));
        }
    }
}
