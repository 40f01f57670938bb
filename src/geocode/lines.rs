//! The encoding of the lines of items.
//!
//! A line is encoded as the number of its points, the first point, and the other points. If the differences between
//! consecutive points fit in two bytes per coordinate (less than 360 m), the other points are stored as these
//! differences. Otherwise, they are stored as absolute coordinates. The encoding is designed for fast reading rather
//! than for a small size.

use super::item::{BROKEN, Lines};
use crate::error::FormatResult;
use crate::geometry::Point;
use crate::pbf::wire::{Varints, put_varint};

/// Appends encoded lines to `out`.
pub(super) fn put_lines(out: &mut Vec<u8>, lines: Lines<'_>) {
    let lines = lines.iter();
    put_varint(out, lines.len() as u64);
    for line in lines {
        let steps = || line.iter().zip(line.iter().skip(1)).map(step);
        let is_wide = steps().any(|step| step.is_none());
        put_varint(out, (line.len() as u64) << 1 | u64::from(is_wide));
        let wide = line.iter().take(if is_wide { line.len() } else { 1 });
        for point in wide {
            out.extend_from_slice(&point.lat_e7.to_le_bytes());
            out.extend_from_slice(&point.lon_e7.to_le_bytes());
        }
        if !is_wide {
            let numbers = steps().flatten().flatten();
            numbers.for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        }
    }
}

/// Returns the differences in latitude and longitude between two points; `None` if a difference does not fit in two
/// bytes.
fn step((from, to): (&Point, &Point)) -> Option<[i16; 2]> {
    let difference = |from: i32, to: i32| i16::try_from(i64::from(to) - i64::from(from)).ok();
    let lat = difference(from.lat_e7, to.lat_e7)?;
    Some([lat, difference(from.lon_e7, to.lon_e7)?])
}

/// Calls `visit` with each point of each line. The second argument tells whether the point is the first one of its
/// line.
#[inline]
pub(super) fn for_each_point(bytes: &[u8], mut visit: impl FnMut(Point, bool)) -> FormatResult<()> {
    let mut values = Varints::new(bytes);
    for _ in 0..values.read()? {
        let number = values.read()?;
        let points = usize::try_from(number >> 1).map_err(|_| BROKEN)?;
        let (wide, steps) = match (points, number & 1 == 1) {
            (0, _) => (0, 0),
            (_, true) => (points, 0),
            (_, false) => (1, points - 1),
        };
        let mut take = |count: usize, len| values.read_bytes(count.checked_mul(len).ok_or(BROKEN)?);
        let (wide, steps) = (take(wide, 8)?, take(steps, 4)?);
        let (mut last, mut is_first) = (Point::new(0, 0), true);
        for bytes in wide.as_chunks::<8>().0 {
            let both = u64::from_le_bytes(*bytes);
            last = Point::new(both as i32, (both >> 32) as i32);
            visit(last, is_first);
            is_first = false;
        }
        for bytes in steps.as_chunks::<4>().0 {
            let both = u32::from_le_bytes(*bytes);
            last = Point::new(
                last.lat_e7.wrapping_add((both as i16).into()),
                last.lon_e7.wrapping_add(((both >> 16) as i16).into()),
            );
            visit(last, false);
        }
    }
    Ok(())
}
