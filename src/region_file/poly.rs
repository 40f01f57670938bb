//! Reads polygon filter files of Osmosis (see the OSM wiki page "Osmosis/Polygon Filter File Format").

use super::on_map::shape_on_map;
use crate::geometry::{
    Antimeridian, Point, Ring, Shape, nest_holes, parse_lon_lat, ring, shorten_for_message,
};
use std::fmt::Write;

/// Parses a polygon file. The file consists of a line with the name of the polygon, sections, and a final `END`, which
/// may be missing. Each section consists of a line with its name, a line for each point, and `END`. A section with a
/// name that starts with `!` is a hole. The outer ring around a hole may precede or follow the hole. Several
/// concatenated files describe the union of their regions. `antimeridian` tells how rings that jump across the
/// antimeridian are treated.
pub(super) fn parse(text: &[u8], antimeridian: Antimeridian) -> Result<Shape, String> {
    let text = String::from_utf8_lossy(text);
    let mut lines = (1usize..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty())
        .peekable();
    lines.next().ok_or("the file is empty")?;
    let (mut polygons, mut sections) = (Vec::new(), 0);
    loop {
        let (outers, holes) = parse_polygon(&mut sections, &mut lines)?;
        if outers.is_empty() && holes.is_empty() && polygons.is_empty() {
            return Err("holds no polygon".to_owned());
        }
        let shape = shape_on_map(outers, holes, antimeridian, |outers, holes| {
            nest_holes(outers, holes)
                .map_err(|hole| format!("{}: the hole lies outside of every outer ring", hole.name))
        })?;
        polygons.extend(shape.polygons);
        // The next line is the name of the next polygon, if there is one.
        match (lines.next(), lines.peek()) {
            (None, _) => return Ok(Shape { polygons }),
            (Some((line, name)), next) if name == "END" || next.is_none() => {
                return Err(format!("line {line}: unexpected text after the last END"));
            }
            _ => {}
        }
    }
}

/// Returns a shape as a polygon file. `name` is the name of the polygon.
pub(crate) fn to_text(name: &str, shape: &Shape) -> String {
    let mut text = format!("{}\n", name.replace(['\n', '\r'], " "));
    for (number, (ring, is_hole)) in (1..).zip(shape.rings()) {
        let mark = if is_hole { "!" } else { "" };
        let _ = writeln!(text, "{mark}{number}");
        // Closes the ring, as most files do.
        for point in ring.points.iter().chain(ring.points.first()) {
            let _ = writeln!(text, "   {:.7}   {:.7}", point.lon(), point.lat());
        }
        text.push_str("END\n");
    }
    text + "END\n"
}

/// Parses the sections of a polygon up to the `END` of the polygon. Returns the outer rings and the holes. Adds the
/// number of sections to `sections`.
fn parse_polygon<'a>(
    sections: &mut usize,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<(Vec<Ring>, Vec<Ring>), String> {
    let (mut outers, mut holes) = (Vec::new(), Vec::new());
    while let Some((line, name)) = lines.next().filter(|(_, name)| *name != "END") {
        *sections += 1;
        let section = parse_section(*sections, name, line, lines)?;
        if name.starts_with('!') {
            holes.push(section)
        } else {
            outers.push(section)
        }
    }
    Ok((outers, holes))
}

/// Parses the points of a section up to `END`.
fn parse_section<'a>(
    number: usize,
    name: &str,
    line: usize,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<Ring, String> {
    if parse_position(name).is_ok() {
        return Err(format!(
            "line {line}: expected the name of a section, found coordinates"
        ));
    }
    let name = format!("section {number} '{}'", shorten_for_message(name));
    let mut points = Vec::new();
    let mut last_line = line;
    for (line, text) in lines {
        if text == "END" {
            drop_closing_point(&mut points);
            return ring(name, points).map_err(|cause| format!("line {line}: {cause}"));
        }
        let point = parse_position(text).map_err(|cause| {
            let vertex = points.len() + 1;
            format!("line {line}: {name}, vertex {vertex}: {cause}")
        })?;
        points.push(point);
        last_line = line;
    }
    Err(format!("line {last_line}: {name}: END is missing"))
}

/// Parses a longitude and a latitude in degrees, with whitespace between them.
fn parse_position(text: &str) -> Result<Point, String> {
    let numbers: Vec<&str> = text.split_whitespace().collect();
    match numbers.as_slice() {
        [lon, lat] => parse_lon_lat(lon, lat),
        _ => Err(format!(
            "'{}' is not a longitude and a latitude, nor END",
            shorten_for_message(text)
        )),
    }
}

/// Removes the last point if there are more than three points and it equals the first. The format does not require
/// closed rings, but most files have them.
fn drop_closing_point(points: &mut Vec<Point>) {
    if points.len() > 3 && points.first() == points.last() {
        points.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Shape, String> {
        parse(text.as_bytes(), Antimeridian::Cut)
    }

    fn ring_descriptions(shape: &Shape) -> Vec<(&str, usize)> {
        let rings = shape.rings();
        rings
            .map(|(ring, _)| (ring.name.as_str(), ring.points.len()))
            .collect()
    }

    #[test]
    fn sections_are_rings_and_holes_find_their_outer_ring() {
        let text = "australia\n!hole\n 1 1\n 2 1\n 2 2\nEND\n\
            first\n   0.000000E+00\t0\n 1.0e1 0\n 10 10\n 0 10\n 0 0\nEND\n\
            2\n20 20\n30 20\n30 30\nEND\nEND\n";
        let shape = parse_text(text).unwrap();
        assert_eq!(
            ring_descriptions(&shape),
            [
                ("section 2 'first'", 4),
                ("section 1 '!hole'", 3),
                ("section 3 '2'", 3)
            ]
        );
        assert_eq!(shape.polygons[0].outer.points[1].lon_e7, 100_000_000);
    }

    #[test]
    fn concatenated_files_are_the_union_of_all() {
        let hole = "a\n1\n0 0\n10 0\n10 10\n0 10\nEND\n!2\n1 1\n2 1\n2 2\nEND\nEND\n";
        let text = format!("{hole}b\n1\n 20 0\n 30 0\n 30 10\nEND\nEND\n\n{hole}");
        let shape = parse_text(&text).unwrap();
        assert_eq!(
            ring_descriptions(&shape),
            [
                ("section 1 '1'", 4),
                ("section 2 '!2'", 3),
                ("section 3 '1'", 3),
                ("section 4 '1'", 4),
                ("section 5 '!2'", 3)
            ]
        );
        // A hole of one polygon is not a hole of another polygon.
        let text = "a\n1\n0 0\n9 0\n9 9\nEND\nEND\nb\n!1\n5 1\n6 1\n6 2\nEND\nEND\n";
        let cause = "section 2 '!1': the hole lies outside of every outer ring";
        assert_eq!(parse_text(text).unwrap_err(), cause);
    }

    #[test]
    fn carriage_returns_blank_lines_and_a_missing_last_end_are_fine() {
        for text in [
            "a\r\n1\r\n 1 1\r\n\r\n 2 1\r\n 2 2\r\nEND\r\nEND\r\n\r\n",
            "\n\na\n1\n1 1\n2 1\n2 2\n\nEND\n",
            "a\n1\n1 1\n2 1\n2 2\nEND",
        ] {
            assert_eq!(
                ring_descriptions(&parse_text(text).unwrap()),
                [("section 1 '1'", 3)]
            );
        }
        let latin1 = parse(
            b"K\xf6ln\nK\xf6ln\n1 1\n2 1\n2 2\nEND\nEND\n",
            Antimeridian::Cut,
        )
        .unwrap();
        assert_eq!(latin1.polygons.len(), 1);
    }

    #[test]
    fn an_error_names_line_section_and_vertex() {
        for (text, cause) in [
            ("\n \n", "the file is empty"),
            ("a\nEND\n", "holds no polygon"),
            ("a", "holds no polygon"),
            (
                "a\n1\n1 1\n181 1\n2 2\nEND\nEND",
                "line 4: section 1 '1', vertex 2: longitude 181 lies outside ±180 degrees",
            ),
            (
                "a\n1\n1 1\n\n2 x\nEND\nEND",
                "line 5: section 1 '1', vertex 2: latitude 'x' is not a number",
            ),
            (
                "a\n1\n1 1\n2 NaN\nEND\nEND",
                "line 4: section 1 '1', vertex 2: latitude 'NaN' is not a number",
            ),
            (
                "a\n1\n1 1\n2 1\n2 2\n2\n5 5\nEND\nEND",
                "line 6: section 1 '1', vertex 4: '2' is not a longitude and a latitude, nor END",
            ),
            (
                "a\n1\n1 1\n2 1\n2 2\n",
                "line 5: section 1 '1': END is missing",
            ),
            (
                "a\n1\nEND\nEND",
                "line 3: section 1 '1', vertex 1: the ring has fewer than three different points",
            ),
            (
                "a\n1\n1 1\n2 1\n1 1\nEND\nEND",
                "line 6: section 1 '1', vertex 3: the ring has fewer than three different points",
            ),
            (
                "a\n1\n1 1\n2 1\n2 2\nEND\n!h\n7 7\n8 7\n8 8\nEND\nEND",
                "section 2 '!h': the hole lies outside of every outer ring",
            ),
            (
                "a\n!h\n7 7\n8 7\n8 8\nEND\nEND",
                "section 1 '!h': the hole lies outside of every outer ring",
            ),
            (
                "1\n1 1\n2 1\n2 2\nEND\nEND",
                "line 2: expected the name of a section, found coordinates",
            ),
            (
                "a\n1\n1 1\n2 1\n2 2\nEND\nEND\nb\n",
                "line 8: unexpected text after the last END",
            ),
            (
                "a\n1\n1 1\n2 1\n2 2\nEND\nEND\nEND\nb\n",
                "line 8: unexpected text after the last END",
            ),
            (
                "a\n1\n1 1\n2 1\n2 2\nEND\nEND\nb\n1\n1 x\nEND\nEND\n",
                "line 10: section 2 '1', vertex 1: latitude 'x' is not a number",
            ),
        ] {
            assert_eq!(parse_text(text).unwrap_err(), cause);
        }
    }
}
