use super::*;
use crate::geometry::shape::ShapeError;

fn check(outer: &[(i32, i32)], holes: &[&[(i32, i32)]]) -> Result<(), ShapeError> {
    shape(vec![polygon(outer, holes)]).check()
}

fn message(outer: &[(i32, i32)], holes: &[&[(i32, i32)]]) -> String {
    check(outer, holes).unwrap_err().to_string()
}

#[test]
fn a_bow_tie_crosses_itself() {
    assert_eq!(
        message(&[(0, 0), (20, 20), (20, 0), (0, 20)], &[]),
        "outer, vertex 1: the edge from here crosses the edge from vertex 3 of outer \
         at latitude 0.000001, longitude 0.000001"
    );
}

#[test]
fn a_pentagram_crosses_itself() {
    let corners = [(0, 100), (59, -81), (-95, 31), (95, 31), (-59, -81)];
    let message = message(&corners, &[]);
    assert!(
        message.starts_with("outer, vertex 1: the edge from here crosses"),
        "{message}"
    );
}

#[test]
fn a_ring_that_crosses_itself_at_a_vertex_is_found() {
    let eight = [(0, 0), (10, 10), (20, 20), (20, 0), (10, 10), (0, 20)];
    assert!(message(&eight, &[]).contains("crosses itself at a vertex"));
}

#[test]
fn a_ring_around_the_same_place_twice_is_found() {
    let twice = [rectangle(0, 0, 9, 9), rectangle(0, 0, 9, 9)].concat();
    assert!(message(&twice, &[]).contains("twice"));
}

#[test]
fn a_hole_outside_of_its_outer_ring_is_found() {
    let (outer, hole) = (rectangle(0, 0, 9, 9), rectangle(20, 0, 29, 9));
    assert_eq!(
        message(&outer, &[&rectangle(2, 2, 4, 4), &hole]),
        "hole 2, vertex 2: this hole lies outside of its outer ring or within another hole"
    );
    assert!(message(&outer, &[&rectangle(-9, -9, 19, 19)]).starts_with("hole 1, "));
}

#[test]
fn a_hole_that_crosses_its_outer_ring_or_another_hole_is_found() {
    let outer = rectangle(0, 0, 100, 100);
    let crossing = message(&outer, &[&rectangle(50, 40, 150, 60)]);
    assert!(
        crossing.starts_with("outer, vertex 2: the edge from here crosses the edge from vertex")
    );
    assert!(crossing.contains(" of hole 1 at "), "{crossing}");
    let holes: [&[_]; 2] = [&rectangle(10, 10, 50, 50), &rectangle(40, 40, 60, 60)];
    assert!(message(&outer, &holes).starts_with("hole 1, "));
    let holes: [&[_]; 2] = [&rectangle(10, 10, 50, 50), &rectangle(20, 20, 30, 30)];
    assert!(message(&outer, &holes).starts_with("hole 2, "));
}

#[test]
fn rings_may_touch_and_run_back_on_themselves() {
    let outer = rectangle(0, 0, 100, 100);
    let touching: [&[_]; 2] = [
        &[(0, 50), (20, 40), (20, 60)],
        &[(20, 50), (60, 40), (60, 60)],
    ];
    assert_eq!(check(&outer, &touching), Ok(()));
    assert_eq!(check(&outer, &[&rectangle(0, 0, 50, 50)]), Ok(()));
    let spiked = [
        (0, 0),
        (50, 0),
        (50, -50),
        (50, 0),
        (100, 0),
        (100, 100),
        (40, 60),
        (100, 100),
    ];
    assert_eq!(check(&spiked, &[]), Ok(()));
    let pinched = [(0, 0), (50, 50), (100, 0), (100, 100), (50, 50), (0, 100)];
    assert_eq!(check(&pinched, &[]), Ok(()));
    let repeated = [(0, 0), (0, 0), (50, 0), (50, 50), (50, 50), (0, 0)];
    assert_eq!(check(&repeated, &[]), Ok(()));
}

#[test]
fn different_polygons_may_overlap() {
    let polygons = [
        rectangle(0, 0, 9, 9),
        rectangle(0, 0, 9, 9),
        rectangle(4, 4, 15, 15),
    ];
    let polygons = polygons.map(|outer| polygon(&outer, &[]));
    assert_eq!(shape(polygons.to_vec()).check(), Ok(()));
}

#[test]
fn rings_without_an_area_are_found() {
    assert_eq!(message(&[], &[]), "outer: is empty");
    let few = "outer: has fewer than three different points";
    assert_eq!(message(&[(0, 0)], &[]), few);
    assert_eq!(message(&[(0, 0), (0, 0), (0, 0)], &[]), few);
    assert_eq!(message(&[(0, 0), (5, 5), (0, 0), (5, 5)], &[]), few);
    let line = "outer: has no area: its points lie on one line";
    assert_eq!(message(&[(0, 0), (5, 5), (9, 9)], &[]), line);
    let holes: [&[_]; 1] = [&[(1, 1), (2, 1), (3, 1), (1, 1)]];
    let hole = message(&rectangle(0, 0, 9, 9), &holes);
    assert_eq!(hole, "hole 1: has no area: its points lie on one line");
}

#[test]
fn points_out_of_the_world_are_found() {
    let (east, north) = (1_800_000_000, 900_000_000);
    assert_eq!(check(&rectangle(-east, -north, east, north), &[]), Ok(()));
    assert_eq!(
        message(&rectangle(0, 0, east + 1, north), &[]),
        "outer, vertex 2: longitude 180.0000001 is beyond 180 degrees"
    );
    assert_eq!(
        message(&[(0, 0), (1, 0), (1, i32::MIN)], &[]),
        "outer, vertex 3: latitude -214.7483648 is beyond 90 degrees"
    );
}

/// Whether two edges cross at a point that is an end of neither.
fn is_crossing(a: (Point, Point), b: (Point, Point)) -> bool {
    let parts = |a: (Point, Point), b: (Point, Point)| {
        side_of_line(a.0, a.1, b.0).signum() * side_of_line(a.0, a.1, b.1).signum() < 0
    };
    parts(a, b) && parts(b, a)
}

/// Whether a polygon with vertices on multiples of three is valid. If no edges cross, every face
/// has its corners on multiples of three, so the face contains a point with integer coordinates that
/// is on no edge. The winding number at that point is that of the whole face.
fn is_valid_by_winding(polygon: &Polygon, limit: i32) -> bool {
    let rings: Vec<&Ring> = std::iter::once(&polygon.outer)
        .chain(&polygon.holes)
        .collect();
    let edges: Vec<_> = rings.iter().flat_map(|ring| ring_edges(ring)).collect();
    let crosses = |a: &(Point, Point)| edges.iter().any(|&b| is_crossing(*a, b));
    let mut points = (0..limit).flat_map(|y| (0..limit).map(move |x| point((x, y))));
    !edges.iter().any(crosses)
        && points.all(|p| {
            rings.iter().any(|ring| is_on_ring(ring, p))
                || (0..=1).contains(&polygon_winding(polygon, p))
        })
}

#[test]
fn scribbles_are_valid_if_their_winding_numbers_are_0_or_1() {
    let random = &mut Random(21);
    let (mut sound, mut broken) = (0, 0);
    while sound < 400 || broken < 400 {
        let grid = random.between(3, 5);
        let scribble = scribble(random, grid, 3);
        let result = scribble.check();
        let flat = result.as_ref().is_err_and(|error| error.vertex.is_none());
        if flat {
            continue;
        }
        let expected = scribble
            .polygons
            .iter()
            .all(|polygon| is_valid_by_winding(polygon, 15));
        assert_eq!(result.is_ok(), expected, "{result:?} {scribble:?}");
        if expected {
            sound += 1;
        } else {
            broken += 1;
        }
    }
}

#[test]
fn a_large_ring_is_checked_edge_by_edge() {
    let random = &mut Random(22);
    let mut corners = star(random, (0, 0), (90_000_000, 90_000_000), 20_000);
    assert_eq!(check(&corners, &[]), Ok(()));
    corners.swap(7_000, 7_001);
    let error = check(&corners, &[]).unwrap_err();
    let vertex = error.vertex.unwrap_or(0);
    assert!((6_998..=7_002).contains(&vertex), "{error}");
}
