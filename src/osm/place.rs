//! The location of a node, or its absence, in eight bytes.

/// The location of a node in units of 1e-7 degree, or no location. Eight bytes are few enough to hold the locations of
/// ten thousand million nodes in 80 GB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Place(u64);

/// The coordinates that mean "no location" in files: both `i32::MAX`, a latitude that no point on earth has. A
/// [`Place`] stores its coordinates XOR this value, so that zeroed memory means "no location", too.
const NOWHERE: u64 = pack(i32::MAX, i32::MAX);

const fn pack(lat_e7: i32, lon_e7: i32) -> u64 {
    (lat_e7 as u32 as u64) << 32 | lon_e7 as u32 as u64
}

impl Place {
    /// No location. Zeroed memory holds this value.
    pub const NONE: Self = Self(0);

    /// A location; [`Place::NONE`] if both coordinates are `i32::MAX`, which means "no location" in files.
    #[inline]
    pub const fn new(lat_e7: i32, lon_e7: i32) -> Self {
        Self(pack(lat_e7, lon_e7) ^ NOWHERE)
    }

    /// Whether the location is missing.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Latitude and longitude as files store them: both `i32::MAX` if the location is missing.
    #[inline]
    pub const fn lat_lon_e7(self) -> (i32, i32) {
        let packed = self.0 ^ NOWHERE;
        ((packed >> 32) as i32, packed as i32)
    }

    /// Latitude and longitude; `None` if the location is missing.
    pub fn get(self) -> Option<(i32, i32)> {
        (!self.is_none()).then(|| self.lat_lon_e7())
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_kept_and_null_island_is_one() {
        for lat in [0, 1, -1, 900_000_000, -900_000_000, i32::MIN, i32::MAX - 1] {
            for lon in [0, -1, 1_800_000_000, -1_800_000_000, i32::MIN, i32::MAX] {
                assert_eq!(Place::new(lat, lon).get(), Some((lat, lon)));
            }
        }
        assert_eq!(Place::default(), Place::NONE);
        assert_eq!(Place::new(i32::MAX, i32::MAX), Place::NONE);
        assert_eq!(Place::NONE.lat_lon_e7(), (i32::MAX, i32::MAX));
    }
}
