//! `coastline --against` refuses a coast that has lost land, and `--changes` leaves files as they are.

use crate::coastline_output::coastline;
use crate::common::islands::{IslandRing, coast_file, coast_objects, island, islands, reversed};
use crate::common::kills::content;
use crate::common::{Arg, Object, is_long, run, run_fail_with, stderr};
use std::fs;
use std::path::Path;

/// A continent in several cells, and two islands.
fn world() -> Vec<IslandRing> {
    vec![
        island([-25.0, 5.0, 25.0, 45.0]),
        island([62.0, -18.0, 63.0, -17.0]),
        island([101.0, 21.0, 104.0, 24.0]),
    ]
}

/// The arguments that replace a directory.
fn replace<'a>(
    input: &'a dyn AsRef<std::ffi::OsStr>,
    coast: &'a dyn AsRef<std::ffi::OsStr>,
) -> Vec<Arg<'a>> {
    vec![
        &"coastline",
        input,
        &"-b",
        &"-180,-90,180,90",
        &"--split",
        &"30",
        &"-O",
        &"-o",
        coast,
    ]
}

fn refused(dir: &Path, name: &str, objects: &[Object], against: &Path) -> String {
    let (input, coast) = (coast_file(dir, name, objects), dir.join("coast"));
    let before = content(&coast);
    let mut args = replace(&input, &coast);
    args.extend([&"-q" as Arg, &"--against", &against]);
    let message = run_fail_with(1, &args);
    assert!(
        content(&coast) == before,
        "{name}: the directory has changed"
    );
    message
}

#[test]
fn a_coast_that_lost_land_is_refused_and_the_cell_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (path, coast) = (dir.path(), dir.path().join("coast"));
    let input = coast_file(path, "world.osm.pbf", &coast_objects(&world()));
    coastline(&input, &replace(&"", &coast)[2..]);
    let whole = coast.join("land-polygons-complete-4326");
    for against in [&coast, &whole, &whole.join("land_polygons.shp")] {
        let lost = coast_objects(&[world()[0].clone(), world()[2].clone()]);
        let message = refused(path, "lost.osm.pbf", &lost, against);
        assert!(
            message.contains("longitude 60 to 70, latitude -20 to -10"),
            "{message}"
        );
        assert!(message.contains("100.0 %"), "{message}");

        let mut cut = coast_objects(&world());
        let way = cut
            .iter_mut()
            .find(|object| object.id == 2 && !object.refs.is_empty())
            .unwrap();
        way.refs.pop();
        let message = refused(path, "cut.osm.pbf", &cut, against);
        assert!(
            message.contains("has lost") && message.contains("% of its land"),
            "{message}"
        );

        let message = refused(path, "turned.osm.pbf", &turned(), against);
        let cell = "longitude -30 to -20, latitude 0 to 10 has lost 100.0 % of its land";
        assert!(
            message.contains(cell) && message.contains("goes the wrong way round"),
            "{message}"
        );
    }
}

/// The world with a continent whose coastline goes the wrong way round.
fn turned() -> Vec<Object> {
    let mut rings = world();
    rings[0] = reversed(rings[0].clone());
    coast_objects(&rings)
}

#[test]
fn land_of_a_coastline_that_goes_the_wrong_way_round_may_stay_so() {
    let dir = tempfile::tempdir().unwrap();
    let (path, coast) = (dir.path(), dir.path().join("coast"));
    let good = coast_file(path, "world.osm.pbf", &coast_objects(&world()));
    let turned = coast_file(path, "turned.osm.pbf", &turned());
    coastline(&good, &replace(&"", &coast)[2..]);
    let land = content(&coast.join("land-polygons-complete-4326"));
    let against = |input: &Path, max_shrink: &str| {
        let mut args = replace(&input, &coast);
        args.extend([&"-v" as Arg, &"--against", &coast]);
        args.extend([&"--max-shrink" as Arg, &max_shrink]);
        run(&args)
    };
    // The share of the land that may be lost; whether the coast is taken. Land that was turned once may stay, and may
    // be turned back.
    for (input, max_shrink, is_taken) in [
        (&turned, "99", false),
        (&turned, "100", true),
        (&turned, "0", true),
        (&good, "0", true),
    ] {
        let output = against(input, max_shrink);
        let message = stderr(&output);
        assert_eq!(output.status.success(), is_taken, "{message}");
        assert_eq!(message.contains("direction: "), input == &turned);
        assert!(content(&coast.join("land-polygons-complete-4326")) == land);
    }
}

#[test]
fn an_antarctica_that_goes_the_wrong_way_round_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, coast) = (dir.path(), dir.path().join("coast"));
    let south = [
        [180.0, -75.0],
        [90.0, -70.0],
        [0.0, -71.0],
        [-90.0, -72.0],
        [-180.0, -75.0],
    ];
    let of = |name: &str, is_turned: bool| {
        let mut objects = coast_objects(&[island([62.0, -18.0, 63.0, -17.0]), south.to_vec()]);
        // The coastline of the south is open.
        let last = objects.last_mut().unwrap();
        last.refs.pop();
        if is_turned {
            objects.iter_mut().for_each(|object| {
                if object.id > 10 && object.id < 13 && !object.refs.is_empty() {
                    object.refs.reverse();
                }
            });
        }
        coast_file(path, name, &objects)
    };
    coastline(&of("world.osm.pbf", false), &replace(&"", &coast)[2..]);
    let before = content(&coast);
    let turned = of("turned.osm.pbf", true);
    let mut args = replace(&turned, &coast);
    args.extend([&"-q" as Arg, &"--against", &coast]);
    let message = run_fail_with(1, &args);
    assert!(
        message.contains("latitude -90 to -80 has lost 100.0 %"),
        "{message}"
    );
    assert!(content(&coast) == before);
}

#[test]
fn a_coast_that_lost_less_than_allowed_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (path, coast) = (dir.path(), dir.path().join("coast"));
    let input = coast_file(path, "world.osm.pbf", &coast_objects(&world()));
    coastline(&input, &replace(&"", &coast)[2..]);
    let mut smaller = world();
    smaller[2] = island([101.0, 21.0, 104.0, 23.9]);
    let input = coast_file(path, "smaller.osm.pbf", &coast_objects(&smaller));
    let against: [Arg; 2] = [&"--against", &coast];
    let mut args = replace(&input, &coast);
    args.extend(against);
    assert_eq!(run(&args).status.code(), Some(1));
    args.extend([&"--max-shrink" as Arg, &"4"]);
    assert_eq!(run(&args).status.code(), Some(0));
    // A coast of which nothing is lost may gain land.
    let input = coast_file(path, "world.osm.pbf", &coast_objects(&world()));
    let mut args = replace(&input, &coast);
    args.extend(against);
    args.extend([&"--max-shrink" as Arg, &"0"]);
    assert_eq!(run(&args).status.code(), Some(0));
}

#[test]
fn an_old_coast_that_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (path, coast) = (dir.path(), dir.path().join("coast"));
    let input = coast_file(path, "world.osm.pbf", &coast_objects(&world()));
    let old = path.join("old");
    fs::create_dir(&old).unwrap();
    let fails = |old: &Path| {
        let mut args = replace(&input, &coast);
        args.extend([&"--against" as Arg, &old]);
        run_fail_with(2, &args)
    };
    assert!(fails(&old).contains("coastline.json"));
    fs::write(old.join("coastline.json"), "{}").unwrap();
    assert!(fails(&old).contains("no summary"));
    let land = path.join("land.shp");
    coastline(&input, &[&"--land", &land]);
    let whole = fs::read(&land).unwrap();
    for len in [0, 50, 100, 108, 130, whole.len() - 1] {
        fs::write(&land, &whole[..len]).unwrap();
        if len != 100 {
            assert!(fails(&land).contains("land.shp"), "{len}");
        }
    }
    for at in (24..whole.len()).step_by(if is_long() { 3 } else { 97 }) {
        let mut broken = whole.clone();
        broken[at] ^= 0xff;
        fs::write(&land, broken).unwrap();
        let mut args = replace(&input, &coast);
        args.extend([&"--against" as Arg, &land]);
        let output = run(&args);
        assert!(!stderr(&output).contains("panicked"), "{at}");
    }
}

const HEAD: &str = "<osmChange version='0.6'>";

#[test]
fn files_stay_if_no_change_concerns_a_coastline() {
    let dir = tempfile::tempdir().unwrap();
    let (input, coast) = (islands(dir.path()), dir.path().join("coast"));
    let day = dir.path().join("day.osc");
    let options: [Arg; 7] = [&"-O", &"-o", &coast, &"--split", &"30", &"--changes", &day];
    let node = |id: i64| format!("<node id='{id}' version='2' lat='1' lon='2'/>");
    let way = |id: i64, tag: &str| format!("<way id='{id}' version='2'><nd ref='900'/>{tag}</way>");
    let tag = "<tag k='natural' v='coastline'/>";
    for (change, is_written) in [
        // There is no directory yet.
        (String::new(), true),
        (
            format!("<modify>{}{}</modify>", node(900), way(900, "")),
            false,
        ),
        (
            format!(
                "<create>{}</create><delete>{}</delete>",
                node(901),
                way(902, "")
            ),
            false,
        ),
        (format!("<modify>{}</modify>", node(102)), true),
        (format!("<delete>{}</delete>", node(1)), true),
        (format!("<create>{}</create>", way(903, tag)), true),
        (format!("<modify>{}</modify>", way(12, "")), true),
        (format!("<delete>{}</delete>", way(41, "")), true),
    ] {
        fs::write(&day, format!("{HEAD}{change}</osmChange>")).unwrap();
        let inode = |path: &Path| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(path.join("coastline.json"))
                .map(|found| (found.ino(), found.mtime_nsec()))
                .ok()
        };
        let before = inode(&coast);
        let summary = coastline(&input, &options);
        assert_eq!(summary["is_written"], is_written, "{change}");
        assert_eq!(inode(&coast) != before, is_written, "{change}");
    }
}
