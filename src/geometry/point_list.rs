//! Lists of points in rows and indexes. The stored form of a list is the number of points, followed by the difference
//! of each point from the point before it.

use super::Point;
use crate::error::FormatResult;
use crate::pbf::wire::{Varints, put_sint, put_varint};

/// The point from which the first difference is computed.
pub(crate) const ORIGIN: Point = Point::new(0, 0);

/// Appends a list of points.
pub(crate) fn put_points(out: &mut Vec<u8>, points: &[Point]) {
    put_varint(out, points.len() as u64);
    let mut last = ORIGIN;
    for point in points {
        put_sint(out, i64::from(point.lat_e7) - i64::from(last.lat_e7));
        put_sint(out, i64::from(point.lon_e7) - i64::from(last.lon_e7));
        last = *point;
    }
}

/// Reads a list of points into `points`, and reuses its memory.
pub(crate) fn read_points(values: &mut Varints<'_>, points: &mut Vec<Point>) -> FormatResult<()> {
    let (count, mut last) = (values.read()?, ORIGIN);
    points.clear();
    // A point has at least two bytes, so the remaining bytes limit the memory that a wrong count can reserve.
    points.reserve((values.rest().len() / 2).min(count as usize));
    for _ in 0..count {
        last = next_point(values, last)?;
        points.push(last);
    }
    Ok(())
}

/// Reads the point that follows `last`.
#[inline]
pub(crate) fn next_point(values: &mut Varints<'_>, last: Point) -> FormatResult<Point> {
    let lat = i64::from(last.lat_e7).wrapping_add(values.read_sint()?);
    let lon = i64::from(last.lon_e7).wrapping_add(values.read_sint()?);
    Ok(Point::new(lat as i32, lon as i32))
}
