//! Where a node is, or that it is not known, in eight bytes.

/// A latitude and a longitude in 1e-7 degree, or none. Small enough for there to be ten thousand million of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Place(u64);

/// What stands for no place in files and in memory: a latitude that no point on earth has.
const NOWHERE: u64 = pack(i32::MAX, i32::MAX);

const fn pack(lat_e7: i32, lon_e7: i32) -> u64 {
    (lat_e7 as u32 as u64) << 32 | lon_e7 as u32 as u64
}

impl Place {
    /// No place. This is what zeroed memory holds.
    pub const NONE: Self = Self(0);

    /// A place; [`Place::NONE`] where both are the largest number, as files have it where there is none.
    #[inline]
    pub const fn new(lat_e7: i32, lon_e7: i32) -> Self {
        Self(pack(lat_e7, lon_e7) ^ NOWHERE)
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Latitude and longitude, as files have them: both the largest number where there is none.
    #[inline]
    pub const fn lat_lon_e7(self) -> (i32, i32) {
        let packed = self.0 ^ NOWHERE;
        ((packed >> 32) as i32, packed as i32)
    }

    /// Latitude and longitude.
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
