//! The coast of an extract: within its region, it has the land of the whole world.

use crate::coastline::{area, coast_of, has, read};
use crate::common::coast::{CoastWorld, square};
use crate::common::random::Random;
use crate::common::regions::{DEGREE, Place, Region};
use crate::common::{is_long, run_ok};
use pbfhogg::unstable::coast::{CoastProblemKind, RegionSource, Surface};
use pbfhogg::unstable::geometry::{Shape, parse_bbox};
use std::path::Path;

/// The region of a box or of a star around a place.
fn region_at(random: &mut Random) -> Region {
    let mut at = |reach: i32| i64::from(random.between(-reach, reach));
    let centre = (at(80_000_000), at(80_000_000));
    let (width, height) = (
        at(40_000_000).abs() + 9_999_999,
        at(40_000_000).abs() + 9_999_999,
    );
    if random.below(2) == 0 {
        let (west, south) = (centre.0 - width / 2, centre.1 - height / 2);
        Region::boxed(west, south, west + width, south + height)
    } else {
        Region::of(&[Region::star(centre, width, height)])
    }
}

fn shape_of(region: &Region, directory: &Path) -> Shape {
    let path = region.geojson_file(directory, "region.geojson");
    pbfhogg::commands::extract::read_shape(&path, None).unwrap()
}

/// Compares the land of an extract with that of the world at places in the region.
fn compare(world: &CoastWorld, region: &Region, extract: &Path, shape: Option<Shape>, seed: u64) {
    let coast = read(extract, |options| {
        options.region = shape;
        // The surface where no coastline meets the border.
        let place = region.polygons[0][0][0];
        let surface = if world.has_land_at(place) {
            Surface::Land
        } else {
            Surface::Water
        };
        options.inside = Some(surface);
    });
    let mut random = Random(seed);
    let [west, south, east, north] = region.envelope();
    let mut tried = 0;
    for _ in 0..2000 {
        let place: Place = (
            west + random.below(east - west + 1),
            south + random.below(north - south + 1),
        );
        if region.holds(place) {
            tried += 1;
            let found = has(&coast.land, place);
            assert_eq!(
                found,
                world.has_land_at(place),
                "{seed}: {place:?} {:?}",
                coast.problems
            );
        } else {
            assert!(
                !has(&coast.land, place),
                "{seed}: land outside of the region"
            );
        }
    }
    assert!(tried > 100);
    let errors = coast
        .problems
        .iter()
        .filter(|problem| problem.kind.is_error());
    assert_eq!(errors.count(), 0, "{seed}: {:?}", coast.problems);
}

/// Whether a way may go through a region without a node in it. An extract does not have such a way.
fn loses_ways(world: &CoastWorld, region: &Region) -> bool {
    let place = |node: &i64| world.nodes[*node as usize - 1].1;
    let goes_through = |from: Place, to: Place| {
        (0..100).any(|step| {
            let at = |from: i64, to: i64| from + (to - from) * step / 100;
            region.holds((at(from.0, to.0), at(from.1, to.1)))
        })
    };
    world.ways.iter().any(|(_, nodes)| {
        let mut pairs = nodes.windows(2);
        !nodes.iter().any(|node| region.holds(place(node)))
            && pairs.any(|pair| goes_through(place(&pair[0]), place(&pair[1])))
    })
}

#[test]
fn an_extract_has_the_land_of_the_world_within_its_region() {
    let directory = tempfile::tempdir().unwrap();
    let world = CoastWorld::generated(3, 10, 24);
    let whole = world.write(directory.path(), "world.opl");
    let whole_pbf = directory.path().join("world.osm.pbf");
    run_ok(&[&"cat", &whole, &"-o", &whole_pbf]);
    for seed in 0..if is_long() { 200 } else { 20 } {
        let region = region_at(&mut Random(seed));
        let shape = shape_of(&region, directory.path());
        // The whole world, cut at the region.
        compare(&world, &region, &whole_pbf, Some(shape.clone()), seed);
        if (seed % 4 > 0 && !is_long()) || loses_ways(&world, &region) {
            continue;
        }
        // An extract, whose ways are complete.
        let file = region.geojson_file(directory.path(), "region.geojson");
        let extract = directory.path().join("extract.osm.pbf");
        run_ok(&[&"extract", &"-O", &"-p", &file, &"-o", &extract, &whole_pbf]);
        compare(&world, &region, &extract, Some(shape), seed);
    }
}

#[test]
fn the_box_in_the_header_is_the_region_unless_one_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let world = CoastWorld::generated(5, 10, 10);
    let whole = world.write(directory.path(), "world.opl");
    let extract = directory.path().join("extract.osm.pbf");
    run_ok(&[
        &"extract",
        &"--set-bounds",
        &"-b",
        &"-4,-4,4,4",
        &"-o",
        &extract,
        &whole,
    ]);
    let coast = read(&extract, |_| {});
    assert_eq!(coast.source, RegionSource::Header);
    let given = read(&extract, |options| {
        options.region = Some(parse_bbox("-4,-4,4,4").unwrap());
    });
    assert_eq!(given.source, RegionSource::Given);
    assert_eq!(coast.land, given.land);
}

#[test]
fn a_region_within_an_island_or_a_lake_is_all_land_or_all_water() {
    let mut world = CoastWorld::default();
    world.add_ring(&square((0, 0), 10 * DEGREE));
    let boxed = |text: &str| Some(parse_bbox(text).unwrap());
    // The ring around the region shows what it is.
    for (surface, expected) in [(Some(Surface::Water), 0), (None, 2)] {
        let coast = coast_of(&world, |options| {
            options.region = boxed("1,1,2,2");
            options.inside = surface;
        });
        let unit = i128::from(DEGREE) * i128::from(DEGREE);
        assert_eq!(area(&coast.land), expected * unit);
    }
    // A lake shows that the region is land, and an island that it is water.
    for (is_lake, expected) in [(true, 200 - 8), (false, 8)] {
        let mut world = CoastWorld::default();
        let mut ring = square((0, 0), DEGREE);
        if is_lake {
            ring.reverse();
        }
        world.add_ring(&ring);
        let coast = coast_of(&world, |options| options.region = boxed("-5,-5,5,5"));
        let unit = i128::from(DEGREE) * i128::from(DEGREE);
        assert_eq!(area(&coast.land), expected * unit);
    }
}

#[test]
fn a_coast_that_ends_within_the_region_is_continued_to_its_border() {
    // A coast from the east to the west, with land in the south. It ends 0.3 degrees before the western border.
    let mut world = CoastWorld::default();
    let nodes = world.add_nodes(&[(60_000_000, 0), (0, 1_000), (-47_000_000, 0)]);
    world.add_way(&nodes);
    let coast = coast_of(&world, |options| {
        options.region = Some(parse_bbox("-5,-5,5,5").unwrap())
    });
    assert!(has(&coast.land, (-49_000_000, -1_000_000)));
    assert!(!has(&coast.land, (-49_000_000, 1_000_000)));
    let kinds: Vec<_> = coast.problems.iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, [CoastProblemKind::EndPoint]);
}

#[test]
fn the_region_may_have_several_parts_and_holes() {
    let mut world = CoastWorld::default();
    world.add_ring(&square((0, 0), 3 * DEGREE));
    let parts = Region {
        polygons: vec![
            vec![square((0, 0), 2 * DEGREE), square((0, 0), DEGREE)],
            vec![square((4 * DEGREE, 0), DEGREE)],
            vec![square((0, 10 * DEGREE), DEGREE)],
        ],
    };
    let directory = tempfile::tempdir().unwrap();
    let shape = shape_of(&parts, directory.path());
    // The first part is in the island, and the western edge of the second lies on the coast.
    let unit = i128::from(DEGREE) * i128::from(DEGREE);
    let coast = coast_of(&world, |options| options.region = Some(shape));
    assert_eq!(area(&coast.land), 2 * 12 * unit);
    // Half of the second part is in a wider island.
    let mut wider = CoastWorld::default();
    wider.add_ring(&square((0, 0), 4 * DEGREE));
    let shape = shape_of(&parts, directory.path());
    let coast = coast_of(&wider, |options| options.region = Some(shape));
    assert_eq!(area(&coast.land), 2 * (12 + 2) * unit);
}
