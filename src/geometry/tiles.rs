//! Web Mercator tiles, and the search for the tiles that lines and areas touch.
//!
//! Points are first placed on a grid of 2^32 by 2^32 cells, which is exact enough for any zoom level. From there on,
//! all numbers are integers. A tile contains its left and upper edges, but not its right and lower edges, so that each
//! point is in exactly one tile.

use super::Point;
use crate::osm::Bbox;
use rustc_hash::FxHashSet;
use std::f64::consts::PI;

/// The latitude at which the map ends, in degrees.
const EDGE: f64 = 85.051_128_779_806_59;
/// The highest zoom level.
pub(crate) const MAX_ZOOM: u8 = 22;
/// The number of bits of a grid coordinate.
const GRID_BITS: u32 = 32;
/// The maximum number of tiles in the box around a polygon whose inside is filled.
const MAX_FILLED: i64 = 1 << 16;
/// The maximum number of tiles that a line or the outline of a polygon may touch.
const MAX_TOUCHED: i64 = 1 << 22;

/// A position on the grid: x, which grows to the right, and y, which grows downwards.
type TilePosition = [i64; 2];

/// Returns the position of a point on the grid. Points beyond the edges of the map are moved to the edges.
fn position(point: Point) -> TilePosition {
    let size = (1u64 << GRID_BITS) as f64;
    let lat = point.lat().clamp(-EDGE, EDGE);
    let x = (point.lon() + 180.0) / 360.0;
    let y = (1.0 - lat.to_radians().tan().asinh() / PI) / 2.0;
    [x, y].map(|share| (share * size).floor().clamp(0.0, size - 1.0) as i64)
}

/// Returns the column and the row of the tile that contains a point.
pub(crate) fn tile_of(point: Point, zoom: u8) -> [u32; 2] {
    position(point).map(|at| (at >> (GRID_BITS - u32::from(zoom))) as u32)
}

/// Returns the box of a tile. The box of a tile at the upper or lower edge of the map extends to the pole.
pub(crate) fn box_of_tile(zoom: u8, column: u32, row: u32) -> Bbox {
    let size = f64::from(1u32 << zoom);
    let lon_e7 = |column: u32| ((f64::from(column) / size * 360.0 - 180.0) * 1e7).round() as i32;
    let lat_e7 = |row: u32| match f64::from(row) {
        0.0 => 900_000_000,
        row if row >= size => -900_000_000,
        row => ((PI * (1.0 - 2.0 * row / size)).sinh().atan().to_degrees() * 1e7).round() as i32,
    };
    let mut bbox = Bbox::EMPTY;
    bbox.add(lat_e7(row), lon_e7(column));
    bbox.add(lat_e7(row + 1), lon_e7(column + 1));
    bbox
}

/// A set of tiles of one zoom level.
#[derive(Debug)]
pub(crate) struct TileSet {
    zoom: u8,
    /// The tiles, each with its column in the upper half of the bits and its row in the lower half.
    tiles: FxHashSet<u64>,
    /// The number of lines and polygons that were too large. Such a line is left out. Such a polygon is left out, or
    /// added without its inside.
    unfilled: u64,
}

impl TileSet {
    /// Creates an empty set.
    pub(crate) fn new(zoom: u8) -> Self {
        Self {
            zoom,
            tiles: FxHashSet::default(),
            unfilled: 0,
        }
    }

    /// Returns the number of tiles.
    pub(crate) fn len(&self) -> usize {
        self.tiles.len()
    }

    /// Removes and returns the tiles as columns and rows, and the number of lines and polygons that were too large.
    pub(crate) fn take(&mut self) -> (Vec<[u32; 2]>, u64) {
        let tiles = std::mem::take(&mut self.tiles).into_iter();
        let tiles = tiles.map(|tile| [(tile >> 32) as u32, tile as u32]);
        (tiles.collect(), std::mem::take(&mut self.unfilled))
    }

    /// Returns the number of bits by which a grid coordinate is shifted right to get the column or the row of its tile.
    const fn shift(&self) -> u32 {
        GRID_BITS - self.zoom as u32
    }

    fn add(&mut self, column: i64, row: i64) {
        self.tiles.insert((column as u64) << 32 | row as u64);
    }

    /// Adds the tile of a point.
    pub(crate) fn add_point(&mut self, point: Point) {
        let [column, row] = tile_of(point, self.zoom).map(i64::from);
        self.add(column, row);
    }

    /// Adds the tiles that a line touches. If there are too many, adds none and counts the line as too large.
    pub(crate) fn add_line(&mut self, points: &[Point]) {
        if self.count_if_too_large(points.windows(2).map(|pair| (pair[0], pair[1]))) {
            return;
        }
        points.iter().for_each(|point| self.add_point(*point));
        for pair in points.windows(2) {
            self.add_segment(position(pair[0]), position(pair[1]));
        }
    }

    /// Whether the segments of a line or polygon touch too many tiles. If so, counts it as too large.
    fn count_if_too_large(&mut self, segments: impl Iterator<Item = (Point, Point)>) -> bool {
        let shift = self.shift();
        let tiles = segments.map(|(from, to)| {
            let (from, to) = (position(from), position(to));
            1 + ((to[0] - from[0]).abs() >> shift) + ((to[1] - from[1]).abs() >> shift)
        });
        let is_too_long = tiles.sum::<i64>() > MAX_TOUCHED;
        self.unfilled += u64::from(is_too_long);
        is_too_long
    }

    /// Adds the tiles that a segment touches.
    fn add_segment(&mut self, one: TilePosition, other: TilePosition) {
        let shift = self.shift();
        let size = 1i64 << shift;
        let (from, to) = if one[1] <= other[1] {
            (one, other)
        } else {
            (other, one)
        };
        for row in from[1] >> shift..=to[1] >> shift {
            let (top, below) = (row * size, (row + 1) * size);
            let start = from[1].max(top);
            // In this row, the segment ends at its own end or before the next row.
            let is_open = to[1] >= below;
            let end = if is_open { below } else { to[1] };
            let (low, high) = touched_columns(from, to, (start, end), is_open, shift);
            (low..=high).for_each(|column| self.add(column, row));
        }
    }

    /// Adds the tiles that a polygon touches. If the box around the polygon has too many tiles, the inside is left out.
    /// If the outline touches too many tiles, nothing is added. Rings do not repeat their first point.
    pub(crate) fn add_polygon(&mut self, rings: &[&[Point]]) {
        let all = rings.iter().flat_map(|ring| {
            let ends = ring.iter().skip(1).chain(ring.first());
            ring.iter().copied().zip(ends.copied())
        });
        if self.count_if_too_large(all) {
            return;
        }
        let shift = self.shift();
        let (mut low, mut high) = ([i64::MAX; 2], [i64::MIN; 2]);
        let mut segments = Vec::new();
        for ring in rings {
            let positions: Vec<TilePosition> = ring.iter().map(|point| position(*point)).collect();
            for (index, from) in positions.iter().enumerate() {
                let to = positions[(index + 1) % positions.len()];
                self.add_segment(*from, to);
                segments.push((*from, to));
                for axis in 0..2 {
                    low[axis] = low[axis].min(from[axis] >> shift);
                    high[axis] = high[axis].max(from[axis] >> shift);
                }
            }
        }
        if segments.is_empty() {
            return;
        }
        if (high[0] - low[0] + 1) * (high[1] - low[1] + 1) > MAX_FILLED {
            self.unfilled += 1;
            return;
        }
        for row in low[1]..=high[1] {
            self.add_inner_tiles_of_row(row, &segments);
        }
    }

    /// Adds each tile of a row whose centre is inside of a polygon. Tiles that the outline touches must have been
    /// added. Every other tile is wholly inside or wholly outside of the polygon, so its centre decides.
    fn add_inner_tiles_of_row(&mut self, row: i64, segments: &[(TilePosition, TilePosition)]) {
        let shift = self.shift();
        let half = (1i64 << shift) / 2;
        let y = (row << shift) + half;
        // The crossings of the outline with the horizontal line through the centres of the row's tiles. Each crossing
        // is stored as the first column whose centre is at the crossing or to the right of it.
        let mut crossings: Vec<i64> = Vec::new();
        for (one, other) in segments {
            let (from, to) = if one[1] <= other[1] {
                (one, other)
            } else {
                (other, one)
            };
            if from[1] <= y && y < to[1] {
                let x = rounded_x_at(*from, *to, y, true);
                crossings.push((x - half + (1 << shift) - 1) >> shift);
            }
        }
        crossings.sort_unstable();
        for pair in crossings.chunks_exact(2) {
            (pair[0]..pair[1]).for_each(|column| self.add(column, row));
        }
    }
}

/// Returns the x of a segment at a given y, rounded up or down. The segment must not be horizontal.
fn rounded_x_at(from: TilePosition, to: TilePosition, y: i64, rounds_up: bool) -> i64 {
    let [dx, dy] = [0, 1].map(|axis| i128::from(to[axis] - from[axis]));
    let product = i128::from(y - from[1]) * dx;
    let down = product.div_euclid(dy);
    let is_exact = product.rem_euclid(dy) == 0;
    from[0] + (down + i128::from(rounds_up && !is_exact)) as i64
}

/// Returns the first and the last column that a segment touches between `start` and `end`, which are values of y. If
/// `is_open`, the point at `end` is left out.
fn touched_columns(
    from: TilePosition,
    to: TilePosition,
    (start, end): (i64, i64),
    is_open: bool,
    shift: u32,
) -> (i64, i64) {
    let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
    if dy == 0 || dx == 0 {
        return (from[0].min(to[0]) >> shift, from[0].max(to[0]) >> shift);
    }
    let at = |y: i64| rounded_x_at(from, to, y, false) >> shift;
    if !is_open {
        return (at(start).min(at(end)), at(start).max(at(end)));
    }
    if dx > 0 {
        // If the segment reaches a column only at the point that is left out, it does not touch this column.
        let last = (rounded_x_at(from, to, end, true) - 1) >> shift;
        (at(start), last.max(at(start)))
    } else {
        (at(end), at(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    fn point(lon: f64, lat: f64) -> Point {
        let [lon_e7, lat_e7] = [lon, lat].map(|degrees| (degrees * 1e7) as i32);
        Point { lat_e7, lon_e7 }
    }

    /// Whether a segment touches a tile. Clips the segment at the four edges of the tile, with exact fractions.
    fn touches(from: TilePosition, to: TilePosition, [column, row]: [i64; 2], shift: u32) -> bool {
        // The segment is from + t * (to - from). Each edge of the tile limits t. The limits are fractions: pairs of a
        // numerator and a denominator.
        let scale = 1i128 << 80;
        let (mut low, mut high) = ((0i128, 1i128), (scale, scale));
        let (mut low_open, mut high_open) = (false, false);
        low.1 = scale;
        let less = |one: (i128, i128), other: (i128, i128)| {
            // Compares two fractions n / d with positive d. n and d fit into 64 bits, except in the bounds `0 / scale`
            // and `scale / scale`. These are reduced to `0 / 1` and `1 / 1`.
            let reduce = |(n, d): (i128, i128)| {
                if d == scale {
                    (i128::from(n > 0), 1)
                } else {
                    (n, d)
                }
            };
            let ((a, b), (c, d)) = (reduce(one), reduce(other));
            a * d < c * b
        };
        for axis in 0..2 {
            let start = i128::from([column, row][axis] << shift);
            let end = start + (1i128 << shift);
            let (at, d) = (i128::from(from[axis]), i128::from(to[axis] - from[axis]));
            if d == 0 {
                if at < start || at >= end {
                    return false;
                }
                continue;
            }
            let (enter, leave) = ((start - at, d), (end - at, d));
            let positive = |(n, d): (i128, i128)| if d < 0 { (-n, -d) } else { (n, d) };
            let ((first, first_open), (last, last_open)) = if d > 0 {
                ((positive(enter), false), (positive(leave), true))
            } else {
                ((positive(leave), true), (positive(enter), false))
            };
            if less(low, first) || (!less(first, low) && first_open) {
                (low, low_open) = (first, first_open);
            }
            if less(last, high) || (!less(high, last) && last_open) {
                (high, high_open) = (last, last_open);
            }
        }
        less(low, high) || (!less(high, low) && !low_open && !high_open)
    }

    fn take_sorted_tiles(set: &mut TileSet) -> Vec<[u32; 2]> {
        let mut tiles = set.take().0;
        tiles.sort_unstable();
        tiles
    }

    #[test]
    fn segments_touch_the_tiles_that_clipping_finds() {
        let mut random = Random(7);
        let zoom = 4;
        let shift = GRID_BITS - u32::from(zoom);
        for round in 0..3000 {
            let mut draw = || -> i64 {
                let at = random.bits(32) as i64;
                // Many ends lie on the corners, the middles of edges, or the centres of tiles.
                match round % 3 {
                    0 => at,
                    1 => (at >> shift) << shift,
                    _ => (at >> (shift - 1)) << (shift - 1),
                }
            };
            let (from, to) = ([draw(), draw()], [draw(), draw()]);
            let mut set = TileSet::new(zoom);
            set.add_segment(from, to);
            let mut expected = Vec::new();
            for column in 0..1 << zoom {
                for row in 0..1 << zoom {
                    if touches(from, to, [column, row], shift) {
                        expected.push([column as u32, row as u32]);
                    }
                }
            }
            assert_eq!(take_sorted_tiles(&mut set), expected, "{from:?} {to:?}");
        }
    }

    #[test]
    fn the_inside_of_areas_is_filled_unless_they_are_large() {
        let ring = [
            point(-90.0, -60.0),
            point(90.0, -60.0),
            point(90.0, 60.0),
            point(-90.0, 60.0),
        ];
        let hole = [
            point(-45.0, -40.0),
            point(-45.0, 40.0),
            point(45.0, 40.0),
            point(45.0, -40.0),
        ];
        let mut set = TileSet::new(5);
        set.add_polygon(&[&ring, &hole]);
        let tiles = take_sorted_tiles(&mut set);
        let has = |lon: f64, lat: f64| tiles.contains(&tile_of(point(lon, lat), 5));
        assert!(has(-70.0, 0.0) && has(70.0, 50.0) && has(-90.0, 0.0) && has(45.0, 0.0));
        assert!(!has(0.0, 0.0) && !has(-95.0, 0.0) && !has(0.0, 70.0));
        let mut set = TileSet::new(12);
        set.add_polygon(&[&ring, &hole]);
        let (tiles, unfilled) = set.take();
        assert_eq!(unfilled, 1);
        assert!(!tiles.contains(&tile_of(point(-70.0, 0.0), 12)));
    }

    #[test]
    fn lines_across_the_world_are_left_out_at_high_zoom_levels() {
        let line: Vec<Point> = (0..30)
            .map(|at| point(if at % 2 == 0 { -89.0 } else { 89.0 }, at.into()))
            .collect();
        for (zoom, is_left_out) in [(12, false), (20, true)] {
            let mut set = TileSet::new(zoom);
            set.add_line(&line);
            let (tiles, unfilled) = set.take();
            assert_eq!(tiles.is_empty(), is_left_out);
            assert_eq!(unfilled, u64::from(is_left_out));
        }
    }

    #[test]
    fn the_corners_of_the_world_lie_in_tiles() {
        for (lon, lat, tile) in [
            (-180.0, 90.0, [0, 0]),
            (180.0, -90.0, [7, 7]),
            (0.0, 0.0, [4, 4]),
        ] {
            assert_eq!(tile_of(point(lon, lat), 3), tile);
        }
    }
}
