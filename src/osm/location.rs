//! The location of a node.

use std::num::NonZeroU64;

/// A latitude and a longitude in units of 1e-7 degree.
///
/// `Option<Location>` uses eight bytes, as `Location` does. Eight zero bytes represent `None`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location(NonZeroU64);

/// The latitude and longitude that files store for an undefined location. No point on earth has these coordinates.
const UNDEFINED_E7: (i32, i32) = (i32::MAX, i32::MAX);

const fn pack(lat_e7: i32, lon_e7: i32) -> u64 {
    (lat_e7 as u32 as u64) << 32 | lon_e7 as u32 as u64
}

/// The mask that is XORed with packed coordinates. The packed coordinates of an undefined location thus become 0, which
/// represents `None`.
const MASK: u64 = pack(UNDEFINED_E7.0, UNDEFINED_E7.1);

impl Location {
    /// The location with the given coordinates in units of 1e-7 degree; `None` for the coordinates of an undefined
    /// location. Accepts all other coordinates, even those outside of the world.
    #[inline]
    pub const fn new(lat_e7: i32, lon_e7: i32) -> Option<Self> {
        match NonZeroU64::new(pack(lat_e7, lon_e7) ^ MASK) {
            Some(packed) => Some(Self(packed)),
            None => None,
        }
    }

    /// The location with the given coordinates in degrees, rounded to 1e-7 degree; `None` unless the latitude is within
    /// ±90 and the longitude within ±180.
    pub fn from_degrees(lat: f64, lon: f64) -> Option<Self> {
        let is_on_earth = (-90.0..=90.0).contains(&lat) && (-180.0..=180.0).contains(&lon);
        let e7 = |degrees: f64| (degrees * 1e7).round() as i32;
        is_on_earth.then(|| Self::new(e7(lat), e7(lon))).flatten()
    }

    /// Whether the latitude is within ±90 degrees and the longitude within ±180 degrees.
    pub(crate) const fn is_on_earth(self) -> bool {
        self.lat_e7().unsigned_abs() <= 900_000_000 && self.lon_e7().unsigned_abs() <= 1_800_000_000
    }

    /// Latitude in units of 1e-7 degree.
    #[inline]
    pub const fn lat_e7(self) -> i32 {
        ((self.0.get() ^ MASK) >> 32) as i32
    }

    /// Longitude in units of 1e-7 degree.
    #[inline]
    pub const fn lon_e7(self) -> i32 {
        (self.0.get() ^ MASK) as i32
    }

    /// Latitude in degrees.
    pub fn lat(self) -> f64 {
        f64::from(self.lat_e7()) / 1e7
    }

    /// Longitude in degrees.
    pub fn lon(self) -> f64 {
        f64::from(self.lon_e7()) / 1e7
    }

    /// Latitude and longitude in units of 1e-7 degree, as files store them. Both are `i32::MAX` if there is no
    /// location.
    #[inline]
    pub(crate) const fn lat_lon_e7_or_undefined(location: Option<Self>) -> (i32, i32) {
        match location {
            Some(location) => (location.lat_e7(), location.lon_e7()),
            None => UNDEFINED_E7,
        }
    }
}

impl std::fmt::Debug for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (self.lat_e7(), self.lon_e7()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_but_the_undefined_one_is_a_location() {
        for lat in [0, 1, -1, 900_000_000, -900_000_000, i32::MIN, i32::MAX - 1] {
            for lon in [0, -1, 1_800_000_000, -1_800_000_000, i32::MIN, i32::MAX] {
                let location = Location::new(lat, lon).unwrap();
                assert_eq!((location.lat_e7(), location.lon_e7()), (lat, lon));
            }
        }
        assert_eq!(Location::new(i32::MAX, i32::MAX), None);
        assert_eq!(
            Location::lat_lon_e7_or_undefined(None),
            (i32::MAX, i32::MAX)
        );
    }

    #[test]
    fn an_optional_location_takes_eight_bytes() {
        assert_eq!(size_of::<Option<Location>>(), 8);
    }

    #[test]
    fn degrees_are_rounded_and_have_to_be_on_earth() {
        assert_eq!(
            Location::from_degrees(52.5, -13.400_000_04),
            Location::new(525_000_000, -134_000_000)
        );
        for (lat, lon) in [(90.1, 0.0), (0.0, 180.1), (f64::NAN, 0.0)] {
            assert_eq!(Location::from_degrees(lat, lon), None);
        }
    }
}
