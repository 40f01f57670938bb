//! Partitions of a table. The rows of a partition have the same value for each key. A partition is a directory with
//! these values in its path, such as `theme=roads/quadkey=0231`.

use super::ThemeSet;
use super::geometry_type::{GeometryPartition, GeometryType};
use crate::formats::derived_columns::h3_cell;
use crate::formats::features::Geometry;
use crate::geometry::{Extent, Point, tile_of};
use std::fmt::{self, Write};
use std::str::FromStr;

/// The number of bits of a position on the Hilbert curve.
const CURVE_BITS: u32 = 32;
/// The maximum size of a partition number in bits. A sort key has 63 bits in all.
const PARTITION_BITS: u32 = u64::BITS - 1 - CURVE_BITS;

/// A key by which the rows of a table are divided among directories. The position of a row is the centre of the box
/// around its geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionKey {
    /// The type of the geometry: `geometry_type=point`, `linestring` or `polygon`. A line in several parts is in
    /// `linestring`.
    GeometryType,
    /// The theme: `theme=roads`. A feature of several themes has a row in each of them.
    Theme,
    /// The Web Mercator tile that contains the position, at a zoom level from 1 to 12, as a quadkey: `quadkey=0231`.
    Quadkey(u8),
    /// The H3 cell that contains the position, at a resolution from 0 to 6: `h3=8428347ffffffff`.
    H3(u8),
}

impl PartitionKey {
    /// Returns the name of the key, as in the names of directories.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GeometryType => "geometry_type",
            Self::Theme => "theme",
            Self::Quadkey(_) => "quadkey",
            Self::H3(_) => "h3",
        }
    }

    /// Returns the size in bits of the numbers that stand for the values of the key.
    const fn bits(self) -> u32 {
        match self {
            Self::GeometryType => 2,
            Self::Theme => 6,
            Self::Quadkey(zoom) => 2 * zoom as u32,
            // The number of a cell has 7 bits for the base cell, and 3 bits for each finer resolution.
            Self::H3(resolution) => 7 + 3 * resolution as u32,
        }
    }

    /// Returns the number that stands for the key's value in a row. `theme` is the theme of the row, and `centre` is
    /// the centre of the box around its geometry.
    fn value_number(self, theme: usize, geometry_type: GeometryType, centre: Point) -> u32 {
        match self {
            Self::GeometryType => geometry_type.partition() as u32,
            Self::Theme => theme as u32,
            Self::Quadkey(zoom) => quadkey(zoom, centre),
            Self::H3(resolution) => h3_cell_number(resolution, centre),
        }
    }

    /// Appends the name of the directory for the value with the given number.
    fn put_directory(self, out: &mut String, themes: &ThemeSet, number: u32) {
        out.push_str(self.name());
        out.push('=');
        match self {
            Self::GeometryType => out.push_str(GeometryPartition::of_number(number).name()),
            Self::Theme => out.push_str(themes.name(number as usize)),
            Self::Quadkey(zoom) => {
                for level in (0..u32::from(zoom)).rev() {
                    let digit = number >> (2 * level) & 3;
                    out.extend(char::from_digit(digit, 4));
                }
            }
            Self::H3(resolution) => {
                let below = h3_bits_below(resolution);
                let cell = 1 << 59 | u64::from(resolution) << 52 | u64::from(number) << below;
                let _ = write!(out, "{:x}", cell | ((1 << below) - 1));
            }
        }
    }
}

impl FromStr for PartitionKey {
    type Err = String;

    /// Parses `geometry_type`, `theme`, `quadkey:ZOOM` or `h3:RESOLUTION`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        match (name, level.map(str::parse)) {
            // `geometry` is another accepted name of the key `geometry_type`.
            ("geometry_type" | "geometry", None) => Ok(Self::GeometryType),
            ("theme", None) => Ok(Self::Theme),
            ("quadkey", Some(Ok(zoom @ 1..=12))) => Ok(Self::Quadkey(zoom)),
            ("quadkey", _) => Err("expected a zoom level from 1 to 12, such as quadkey:6".into()),
            ("h3", Some(Ok(resolution @ 0..=6))) => Ok(Self::H3(resolution)),
            ("h3", _) => Err("expected a resolution from 0 to 6, such as h3:3".into()),
            _ => Err("expected geometry_type, theme, quadkey:ZOOM or h3:RESOLUTION".into()),
        }
    }
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeometryType | Self::Theme => write!(f, "{}", self.name()),
            Self::Quadkey(level) | Self::H3(level) => write!(f, "{}:{level}", self.name()),
        }
    }
}

/// The partitions of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partitioning {
    /// The keys, from the outermost directory to the innermost.
    keys: Vec<PartitionKey>,
    pub(super) themes: ThemeSet,
}

impl Partitioning {
    /// Creates the partitions for keys and themes. If there are several themes, each is a partition, even if `keys`
    /// lacks [`PartitionKey::Theme`]. Fails if two keys have the same name, if a zoom level or a resolution is out of
    /// range, or if there would be too many partitions. Also fails if `keys` has [`PartitionKey::Theme`] but `themes`
    /// is empty.
    pub(crate) fn new(keys: &[PartitionKey], themes: ThemeSet) -> Result<Self, String> {
        let mut keys = keys.to_vec();
        if themes.len() > 1 && !keys.contains(&PartitionKey::Theme) {
            keys.insert(0, PartitionKey::Theme);
        }
        if themes.is_empty() && keys.contains(&PartitionKey::Theme) {
            return Err("partitions by theme need a theme".into());
        }
        let is_out_of_range = |key: &PartitionKey| {
            matches!(key, PartitionKey::Quadkey(0 | 13..) | PartitionKey::H3(7..))
        };
        if keys.iter().any(is_out_of_range) {
            return Err(
                "a quadkey has a zoom level from 1 to 12, h3 a resolution from 0 to 6".into(),
            );
        }
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].iter().any(|other| other.name() == key.name()) {
                return Err(format!("{} is there twice", key.name()));
            }
        }
        let bits: u32 = keys.iter().map(|key| key.bits()).sum();
        if bits > PARTITION_BITS {
            return Err("these are more than two billion partitions: use larger cells".into());
        }
        Ok(Self { keys, themes })
    }

    /// Whether there are no partitions.
    pub(crate) const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the names of the keys.
    pub(super) fn key_names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name())
    }

    /// Returns the themes of the table.
    pub(crate) const fn themes(&self) -> &ThemeSet {
        &self.themes
    }

    /// Returns the sort key of a row, which consists of the number of its partition and its position on the Hilbert
    /// curve. `extent` is the box around the geometry. `theme` is the theme of the row, or 0 without themes.
    pub(crate) fn sort_key(&self, geometry: &Geometry<'_>, extent: &Extent, theme: usize) -> u64 {
        let mut partition = 0;
        if !self.keys.is_empty() {
            let (geometry_type, centre) = (GeometryType::of(geometry), extent.centre());
            for key in &self.keys {
                let number = key.value_number(theme, geometry_type, centre);
                partition = partition << key.bits() | u64::from(number);
            }
        }
        partition << CURVE_BITS | extent.curve_position(CURVE_BITS)
    }

    /// Returns the number of the partition of the rows with the given sort key.
    pub(crate) const fn partition_of_sort_key(sort_key: u64) -> u64 {
        sort_key >> CURVE_BITS
    }

    /// Returns the directory of the partition with the given number, relative to the directory of the table. The result
    /// is empty if the table has no partitions.
    pub(crate) fn directory(&self, partition: u64) -> String {
        let mut out = String::new();
        for (key, number) in self.value_numbers(partition) {
            if !out.is_empty() {
                out.push('/');
            }
            key.put_directory(&mut out, &self.themes, number);
        }
        out
    }

    /// Returns the theme of the partition with the given number; 0 if the table has no partitions by theme.
    pub(crate) fn theme(&self, partition: u64) -> usize {
        let mut numbers = self.value_numbers(partition);
        let theme = numbers.find(|(key, _)| *key == PartitionKey::Theme);
        theme.map_or(0, |(_, number)| number as usize)
    }

    /// Returns each key, and the number of its value in a partition. `partition` is the number of the partition.
    fn value_numbers(&self, partition: u64) -> impl Iterator<Item = (PartitionKey, u32)> {
        let mut below: u32 = self.keys.iter().map(|key| key.bits()).sum();
        self.keys.iter().map(move |key| {
            below -= key.bits();
            (*key, (partition >> below & ((1 << key.bits()) - 1)) as u32)
        })
    }
}

/// Returns the number of the Web Mercator tile that contains a point. It has two bits for each zoom level.
fn quadkey(zoom: u8, point: Point) -> u32 {
    let [x, y] = tile_of(point, zoom);
    (0..u32::from(zoom)).rev().fold(0, |key, level| {
        key << 2 | (y >> level & 1) << 1 | x >> level & 1
    })
}

/// Returns the number of low bits of an H3 index that are not used at a resolution.
const fn h3_bits_below(resolution: u8) -> u32 {
    45 - 3 * resolution as u32
}

/// Returns the number of the H3 cell that contains a point. It consists of the base cell and the digits of the H3
/// index.
fn h3_cell_number(resolution: u8, point: Point) -> u32 {
    let bits = PartitionKey::H3(resolution).bits();
    // The cell exists, because the coordinates and the resolution are always within their ranges.
    let cell = h3_cell(resolution, point).map_or(0, u64::from);
    (cell >> h3_bits_below(resolution) & ((1 << bits) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(keys: &[PartitionKey], lat: f64, lon: f64) -> String {
        let partitioning = Partitioning::new(keys, ThemeSet::default()).unwrap();
        let point = Point::new((lat * 1e7) as i32, (lon * 1e7) as i32);
        let key = partitioning.sort_key(&Geometry::Point(point), &Extent::at(point), 0);
        partitioning.directory(Partitioning::partition_of_sort_key(key))
    }

    #[test]
    fn directories_are_named_after_cells() {
        use PartitionKey::{GeometryType, H3, Quadkey};
        // The example of the documentation of Bing Maps: tile 3, 5 of level 3.
        assert_eq!(directory(&[Quadkey(3)], -41.0, -40.0), "quadkey=213");
        // The example of the documentation of H3.
        assert_eq!(
            directory(&[H3(5)], 37.775_938_728_915_946, -122.417_953_638_179_86),
            "h3=85283083fffffff"
        );
        assert_eq!(
            directory(&[GeometryType, Quadkey(1), H3(0)], 89.9, 179.9),
            "geometry_type=point/quadkey=1/h3=8003fffffffffff"
        );
        assert_eq!(
            directory(&[Quadkey(12)], -90.0, 180.0),
            "quadkey=333333333333"
        );
        assert_eq!(directory(&[], 0.0, 0.0), "");
    }

    #[test]
    fn h3_cells_match_h3o() {
        for (lat, lon) in [(35.9, 14.5), (-89.0, 12.0), (1e-7, -179.999), (64.1, -21.9)] {
            for resolution in 0..=6 {
                let cell = h3o::LatLng::new(lat, lon)
                    .unwrap()
                    .to_cell(h3o::Resolution::try_from(resolution).unwrap());
                assert_eq!(
                    directory(&[PartitionKey::H3(resolution)], lat, lon),
                    format!("h3={cell}")
                );
            }
        }
    }

    #[test]
    fn keys_that_do_not_fit_together_are_refused() {
        use PartitionKey::{H3, Quadkey};
        let fits = |keys: &[PartitionKey]| Partitioning::new(keys, ThemeSet::default()).is_ok();
        assert!(!fits(&[Quadkey(3), Quadkey(4)]));
        assert!(!fits(&[Quadkey(12), H3(5)]));
        assert!(fits(&[Quadkey(2), H3(5)]));
        for bad in [
            "h3",
            "h3:7",
            "quadkey:0",
            "quadkey:13",
            "tile",
            "geometry:1",
        ] {
            assert!(bad.parse::<PartitionKey>().is_err(), "{bad}");
        }
        assert_eq!("geometry".parse(), Ok(PartitionKey::GeometryType));
    }
}
