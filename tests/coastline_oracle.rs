//! Coasts beside those of osmcoastline.

use crate::coastline::{area, has, read};
use crate::common::coast::{CoastWorld, doubled_area, square};
use crate::common::oracle::{osmcoastline, real_file};
use crate::common::random::Random;
use crate::common::regions::{DEGREE, Place};
use pbfhogg::unstable::coast::ProblemPlace;
use pbfhogg::unstable::geometry::parse_bbox;
use std::path::Path;
use std::process::Command;

/// The rings of polygons, the error points and the error lines that osmcoastline finds.
struct Found {
    polygons: Vec<Vec<Place>>,
    rings: usize,
    points: Vec<(String, Place)>,
    lines: Vec<(String, Vec<Place>)>,
}

/// Reads coordinates of a text like `(9 9,9 11)`, in the order of the text, one list for each pair of parentheses.
fn lists_of(text: &str) -> Vec<Vec<Place>> {
    let inner = text.split(['(', ')']).filter(|part| {
        part.contains(' ') && part.starts_with(|c: char| c == '-' || c.is_ascii_digit())
    });
    let e7 = |text: &str| (text.parse::<f64>().unwrap() * DEGREE as f64).round() as i64;
    let place = |pair: &str| {
        let (lon, lat) = pair.trim().split_once(' ').unwrap();
        (e7(lon), e7(lat))
    };
    inner
        .map(|list| list.split(',').map(place).collect())
        .collect()
}

/// Reads a layer of a database as rows of a column and of a geometry in text.
fn layer(database: &Path, name: &str, column: &str) -> Vec<(String, String)> {
    let output = Command::new("ogr2ogr")
        .args([
            "-f",
            "CSV",
            "-lco",
            "GEOMETRY=AS_WKT",
            "-lco",
            "SEPARATOR=TAB",
        ])
        .args(["-select", column, "/vsistdout/"])
        .arg(database)
        .arg(name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace('"', "");
    let rows = text
        .lines()
        .skip(1)
        .map(|line| line.split_once('\t').unwrap_or((line, "")));
    rows.map(|(text, name)| (name.to_owned(), text.to_owned()))
        .collect()
}

/// Runs osmcoastline. Gaps of up to `degrees` are closed.
fn found_by_osmcoastline(input: &Path, degrees: u32, directory: &Path) -> Found {
    let database = directory.join("coast.db");
    let status = Command::new("osmcoastline")
        .args(["-f", "-m", "0", "-b", "0", "-r", "-p", "land", "-c"])
        .arg(degrees.to_string())
        .arg("-o")
        .arg(&database)
        .arg(input)
        .output()
        .unwrap()
        .status;
    assert!(status.code().is_some_and(|code| code <= 2), "{status}");
    let land = layer(&database, "land_polygons", "");
    let single = |text: &str| lists_of(text).into_iter().flatten().collect::<Vec<Place>>();
    Found {
        polygons: land.iter().flat_map(|(_, text)| lists_of(text)).collect(),
        rings: layer(&database, "rings", "osm_id").len(),
        points: layer(&database, "error_points", "error")
            .into_iter()
            .map(|(name, text)| (name, single(&text)[0]))
            .collect(),
        lines: layer(&database, "error_lines", "error")
            .into_iter()
            .map(|(name, text)| (name, single(&text)))
            .collect(),
    }
}

/// The places of a line of a problem, in order. A line that is shared is divided into its segments.
fn parts_of_line<'n>(name: &'n str, places: &[Place]) -> Vec<(&'n str, Vec<Place>)> {
    let len = if name == "overlap" { 2 } else { places.len() };
    let parts = places.windows(len.max(1)).map(|part| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part.dedup();
        (name, part)
    });
    parts.collect()
}

/// Compares the coast of a file with that of osmcoastline: the area of land, the number of rings, and the problems,
/// except those in `except`.
fn compare(input: &Path, degrees: u32, except: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let expected = found_by_osmcoastline(input, degrees, directory.path());
    let coast = read(input, |options| {
        options.region = Some(parse_bbox("-180,-90,180,90").unwrap());
        options.close_distance_m = f64::from(degrees) * 1000.0;
    });
    let twice: i128 = expected
        .polygons
        .iter()
        .map(|ring| doubled_area(ring))
        .sum();
    let (one, other) = (area(&coast.land) as f64, twice.abs() as f64);
    assert!(
        (one - other).abs() <= 1e-6 * other,
        "area {one}, osmcoastline {other}"
    );
    assert_eq!(coast.rings, expected.rings as u64, "rings");
    let mut points: Vec<(&str, Place)> = Vec::new();
    let mut lines: Vec<(&str, Vec<Place>)> = Vec::new();
    for problem in &coast.problems {
        let place = |point: &pbfhogg::areas::Point| (point.lon_e7.into(), point.lat_e7.into());
        match &problem.place {
            ProblemPlace::Point(point) => points.push((problem.kind.name(), place(point))),
            ProblemPlace::Line(points) => {
                let places: Vec<Place> = points.iter().map(place).collect();
                lines.extend(parts_of_line(problem.kind.name(), &places));
            }
            _ => {}
        }
    }
    let is_compared = |name: &str| !except.contains(&name);
    let mut expected_points: Vec<(&str, Place)> = expected
        .points
        .iter()
        .map(|(name, place)| (name.as_str(), *place))
        .collect();
    let mut expected_lines: Vec<(&str, Vec<Place>)> = expected
        .lines
        .iter()
        .flat_map(|(name, places)| parts_of_line(name, places))
        .collect();
    points.retain(|(name, _)| is_compared(name));
    lines.retain(|(name, _)| is_compared(name));
    expected_points.retain(|(name, _)| is_compared(name));
    expected_lines.retain(|(name, _)| is_compared(name));
    for list in [&mut points, &mut expected_points] {
        list.sort_unstable();
        list.dedup();
    }
    for list in [&mut lines, &mut expected_lines] {
        list.sort_unstable();
        list.dedup();
    }
    // Crossings may be rounded in another way.
    let is_near = |(one, other): (&(&str, Place), &(&str, Place))| {
        let apart = |a: i64, b: i64| (a - b).abs() <= 1;
        one.0 == other.0 && apart(one.1.0, other.1.0) && apart(one.1.1, other.1.1)
    };
    let are_near = points.iter().zip(&expected_points).all(is_near);
    assert!(
        points.len() == expected_points.len() && are_near,
        "{points:?}\n{expected_points:?}"
    );
    assert_eq!(lines, expected_lines);
}

#[test]
fn osmcoastline_finds_the_same_land_rings_and_problems() {
    if !osmcoastline() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for seed in 0..if crate::common::is_long() { 40 } else { 2 } {
        let path = CoastWorld::awkward(seed).write(directory.path(), "world.opl");
        compare(&path, 1, &[]);
    }
}

#[test]
fn osmcoastline_finds_the_same_land_and_overlaps_of_doubled_ways() {
    if !osmcoastline() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // A way of an island is doubled in its direction, or in the opposite one, by one before it or behind it. Of an opposite
    // way before it, osmcoastline makes no island.
    for (indexes, is_first) in [([0, 1, 2], false), ([0, 1, 2], true), ([2, 1, 0], false)] {
        let mut world = CoastWorld::default();
        world.add_ring(&square((10 * DEGREE, 0), DEGREE));
        let nodes = world.add_nodes(&square((0, 0), DEGREE));
        let doubled = indexes.map(|index: usize| nodes[index]);
        if is_first {
            world.add_way(&doubled);
        }
        world.add_way(&nodes[..3]);
        world.add_way(&[nodes[2], nodes[3], nodes[0]]);
        if !is_first {
            world.add_way(&doubled);
        }
        let path = world.write(directory.path(), "world.opl");
        // osmcoastline reports the doubled way as one that does not close, too.
        compare(
            &path,
            1,
            &["direction", "end_point", "not_closed", "questionable"],
        );
    }
}

#[test]
fn osmcoastline_finds_the_same_land_where_rings_cross() {
    if !osmcoastline() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut world = CoastWorld::default();
    world.add_ring(&[
        (0, 0),
        (20_000_000, 20_000_000),
        (20_000_000, 0),
        (0, 10_000_000),
    ]);
    let path = world.write(directory.path(), "world.opl");
    compare(&path, 1, &["direction", "questionable"]);
    // Of islands that cross, osmcoastline keeps both.
    let mut world = CoastWorld::default();
    world.add_ring(&square((0, 0), DEGREE));
    world.add_ring(&square((DEGREE, DEGREE), DEGREE));
    let path = world.write(directory.path(), "world.opl");
    let expected = found_by_osmcoastline(&path, 1, directory.path());
    let coast = read(&path, |_| {});
    let mut random = Random(1);
    for _ in 0..500 {
        let mut at = || i64::from(random.between(-15_000_000, 25_000_000)) + 1;
        let place = (at(), at());
        let is_land = expected
            .polygons
            .iter()
            .any(|ring| crate::common::coast::winding(ring, place) != 0);
        assert_eq!(has(&coast.land, place), is_land);
    }
    let crossed: Vec<Place> = expected.points.iter().map(|(_, place)| *place).collect();
    assert_eq!((crossed.len(), coast.problems.len()), (2, 2));
}

#[test]
fn osmcoastline_finds_the_same_coast_of_malta() {
    if !osmcoastline() {
        return;
    }
    let path = real_file("malta.osm.pbf");
    compare(&path, 1, &["questionable", "boundary"]);
}
