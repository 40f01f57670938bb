//! Tests that read regions from OSM files, as XML and compressed XML. `tests/extract_regions.rs` has the tests for PBF.

use super::*;
use crate::region_file::read::{read_shape, read_shape_as};
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

/// Returns the nodes with the ids from 11 to 99, except ids with a digit 0. The digits of an id are the coordinates of
/// the node. Node 34 lies at longitude 3, latitude 4.
fn nodes() -> String {
    let ids = (1..10).flat_map(|lon| (1..10).map(move |lat| (lon, lat)));
    ids.map(|(lon, lat)| format!("<node id='{lon}{lat}' version='1' lon='{lon}' lat='{lat}'/>\n"))
        .collect()
}

fn way(id: i64, refs: &[i64]) -> String {
    let refs: String = refs.iter().map(|id| format!("<nd ref='{id}'/>")).collect();
    format!("<way id='{id}' version='1'>{refs}</way>\n")
}

fn relation(id: i64, kind: &str, ways: &[(i64, &str)], parts: &[i64]) -> String {
    let ways = ways
        .iter()
        .map(|(id, role)| format!("<member type='way' ref='{id}' role='{role}'/>"));
    let parts = parts
        .iter()
        .map(|id| format!("<member type='relation' ref='{id}' role='subarea'/>"));
    let members: String = ways.chain(parts).collect();
    format!("<relation id='{id}' version='1'>{members}<tag k='type' v='{kind}'/></relation>\n")
}

/// Returns a multipolygon that consists of a square in two ways, a hole in the square, and an island in the hole.
fn islands() -> String {
    nodes()
        + &way(1, &[11, 91, 99])
        + &way(2, &[11, 19, 99])
        + &way(3, &[22, 82, 88, 28, 22])
        + &way(4, &[33, 34, 44, 33])
        + &relation(
            5,
            "multipolygon",
            &[(3, ""), (1, "outer"), (2, "outer"), (4, "outer")],
            &[],
        )
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn write_osm(&self, body: &str) -> PathBuf {
        self.write_file(
            "a.osm",
            format!("<osm version='0.6'>{body}</osm>").as_bytes(),
        )
    }

    /// Returns the error message without the file name.
    fn error(&self, body: &str) -> String {
        let message = read_shape(&self.write_osm(body), None)
            .unwrap_err()
            .to_string();
        message.split_once("a.osm: ").unwrap().1.to_owned()
    }
}

fn ring_descriptions(shape: &Shape) -> Vec<(&str, usize, bool)> {
    let rings = shape.rings();
    rings
        .map(|(ring, is_hole)| (ring.name.as_str(), ring.points.len(), is_hole))
        .collect()
}

const ISLANDS: [(&str, usize, bool); 3] = [
    ("relation 5, ring 1", 4, false),
    ("relation 5, ring 2", 4, true),
    ("relation 5, ring 3", 3, false),
];

#[test]
fn geometry_tells_what_is_a_hole() {
    let folder = Folder::new();
    let shape = read_shape(&folder.write_osm(&islands()), None);
    let shape = shape.unwrap();
    let mut rings = ring_descriptions(&shape);
    rings.sort_unstable();
    assert_eq!(
        rings,
        [
            ("relation 5, ring 1", 4, false),
            ("relation 5, ring 2", 4, true),
            ("relation 5, ring 3", 3, false)
        ]
    );
    assert_eq!(shape.polygons.len(), 2);
}

#[test]
fn compressed_files_give_the_same_areas() {
    let folder = Folder::new();
    let plain = folder.write_osm(&islands());
    let text = std::fs::read(&plain).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    let mut bzip = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip.write_all(&text).unwrap();
    let zstd = zstd::stream::encode_all(text.as_slice(), 1).unwrap();
    let files = [
        folder.write_file("a.osm.gz", &gzip.finish().unwrap()),
        folder.write_file("a.osm.bz2", &bzip.finish().unwrap()),
        folder.write_file("a.osm.zst", &zstd),
        folder.write_file("zst-without-suffix", &zstd),
    ];
    for file in files {
        assert_eq!(
            ring_descriptions(&read_shape(&file, None).unwrap()),
            ISLANDS,
            "{file:?}"
        );
    }
}

#[test]
fn several_relations_are_united() {
    let folder = Folder::new();
    let body = islands() + &way(9, &[61, 71, 72, 61]) + &relation(8, "boundary", &[(9, "")], &[]);
    let shape = read_shape(&folder.write_osm(&body), None).unwrap();
    assert_eq!(shape.polygons.len(), 3);
    assert_eq!(shape.polygons[2].outer.name, "relation 8, ring 1");
}

#[test]
fn without_relations_every_closed_way_is_an_area() {
    let folder = Folder::new();
    let body = nodes()
        + &way(1, &[11, 91, 99])
        + &way(3, &[22, 82, 88, 28, 22])
        + &way(4, &[33, 34, 44, 33])
        + "<relation id='5'><member type='way' ref='1' role=''/><tag k='type' v='route'/></relation>";
    let shape = read_shape(&folder.write_osm(&body), None).unwrap();
    assert_eq!(
        ring_descriptions(&shape),
        [("way 3, ring 1", 4, false), ("way 4, ring 1", 3, false)]
    );
}

#[test]
fn subareas_without_ways_in_a_complete_boundary_are_left_out() {
    let folder = Folder::new();
    let bare = relation(6, "boundary", &[(1000, "outer")], &[]);
    let parent = relation(7, "boundary", &[(3, "outer")], &[6]);
    let body = nodes() + &way(3, &[22, 82, 88, 28, 22]);
    let shape = read_shape(&folder.write_osm(&(body.clone() + &bare + &parent)), None).unwrap();
    assert_eq!(
        ring_descriptions(&shape),
        [("relation 7, ring 1", 4, false)]
    );
    assert_eq!(
        folder.error(&(body + &bare)),
        "relation 6, way 1000: the way is not in the file"
    );
}

#[test]
fn an_error_names_a_missing_way_and_an_open_ring() {
    let folder = Folder::new();
    let area = |way: String| nodes() + &way + &relation(5, "multipolygon", &[(1, "")], &[]);
    for (body, cause) in [
        (
            nodes(),
            "holds no multipolygon, no boundary and no closed way",
        ),
        (
            nodes() + &relation(5, "boundary", &[], &[]),
            "holds no relation with member ways",
        ),
        (
            area(String::new()),
            "relation 5, way 1: the way is not in the file",
        ),
        (
            area(way(1, &[11, 12, 7, 11])),
            "relation 5, way 1, vertex 3: node 7 is not in the file",
        ),
        (
            area(way(1, &[11])),
            "relation 5, way 1: the way has fewer than two nodes",
        ),
        (
            area(way(1, &[11, 12, 22])),
            "relation 5: a ring does not close: way 1 ends at node 11, and no other way goes on",
        ),
        (
            nodes() + &way(3, &[11, 12, 7, 11]),
            "way 3, vertex 3: node 7 is not in the file",
        ),
        (
            nodes() + &way(3, &[11, 12, 11, 11]),
            "way 3: its segments enclose no area",
        ),
        (
            nodes() + &way(3, &[11, 33, 31, 13, 11]),
            "way 3 crosses itself at 2,2",
        ),
        (
            nodes() + "<node id='11' version='2' visible='false'/>" + &way(3, &[11, 12, 22, 11]),
            "way 3, vertex 1: node 11 is not in the file",
        ),
    ] {
        assert_eq!(folder.error(&body), cause);
    }
}

#[test]
fn a_change_file_is_no_region() {
    let folder = Folder::new();
    let path = folder.write_file("a.osm", b"<osmChange version='0.6'/>");
    let message = read_shape(&path, None).unwrap_err().to_string();
    assert!(message.contains("this is an OsmChange file"), "{message}");
}

/// Returns nodes at the given longitudes and latitudes in degrees, and a closed way through them.
fn ring(places: &[(i32, i32)]) -> String {
    let nodes = (1..).zip(places).map(|(id, (lon, lat)): (i64, _)| {
        format!("<node id='{id}' version='1' lon='{lon}' lat='{lat}'/>\n")
    });
    let refs: Vec<i64> = (1..=places.len() as i64).chain([1]).collect();
    nodes.collect::<String>() + &way(1, &refs)
}

#[test]
fn an_area_across_the_antimeridian_is_on_the_smaller_side() {
    let folder = Folder::new();
    let fiji = [(179, -17), (-179, -17), (-179, -16), (179, -16)];
    let boundary = relation(1, "boundary", &[(1, "outer")], &[]);
    for body in [ring(&fiji), ring(&fiji) + &boundary] {
        let path = folder.write_osm(&body);
        let shape = read_shape(&path, None).unwrap();
        let polygons = shape.polygons.into_iter();
        let boxes: Vec<String> = polygons
            .map(|polygon| {
                let polygons = vec![polygon];
                Shape { polygons }.envelope().to_string()
            })
            .collect();
        assert_eq!(boxes, ["179,-17,180,-16", "-180,-17,-179,-16"]);
        let kept = read_shape_as(&path, None, Antimeridian::Keep).unwrap();
        assert_eq!(kept.envelope().to_string(), "-179,-17,179,-16");
    }
}

#[test]
fn an_area_around_a_pole_is_refused() {
    let folder = Folder::new();
    let path = folder.write_osm(&ring(&[(-120, -70), (0, -75), (120, -70)]));
    let message = read_shape(&path, None).unwrap_err().to_string();
    assert!(
        message.contains("way 1: it crosses the antimeridian"),
        "{message}"
    );
    // This ring goes along the antimeridian, and does not cross it.
    let path = folder.write_osm(&ring(&[
        (-180, -60),
        (0, -60),
        (180, -60),
        (180, -90),
        (-180, -90),
    ]));
    let shape = read_shape(&path, None).unwrap();
    assert_eq!(shape.envelope().to_string(), "-180,-90,180,-60");
}

/// Returns the XML of the nodes of a way or a member, with their locations and without ids.
fn places(places: &[(i32, i32)]) -> String {
    let places = places.iter();
    places
        .map(|(lon, lat)| format!("<nd lat='{lat}' lon='{lon}'/>"))
        .collect()
}

/// Returns the XML of a boundary. `ways` has the XML of the nodes of each member way.
fn boundary_of(ways: &[&str]) -> String {
    let members = (1..).zip(ways).map(|(id, nodes): (i64, _)| {
        format!("<member type='way' ref='{id}' role='outer'>{nodes}</member>")
    });
    let members: String = members.collect();
    format!("<relation id='1'>{members}<tag k='type' v='boundary'/></relation>")
}

fn envelope(path: &Path) -> String {
    read_shape(path, None).unwrap().envelope().to_string()
}

#[test]
fn nodes_in_the_file_override_the_locations_in_a_way() {
    let folder = Folder::new();
    let way = "<way id='3'><nd ref='21' lat='1' lon='1'/><nd ref='22' lat='1' lon='5'/>\
        <nd ref='23' lat='4' lon='5'/><nd ref='21' lat='1' lon='1'/></way>";
    assert_eq!(envelope(&folder.write_osm(way)), "1,1,5,4");
    // Node 23 has another location than the way stores. Node 22 is in the file, but has no location.
    let moved = "<node id='23' lat='8' lon='7'/><node id='22'/>".to_owned() + way;
    assert_eq!(envelope(&folder.write_osm(&moved)), "1,1,7,8");
    let opl = folder.write_file("a.opl", b"w3 v1 Nn1x1y1,n2x5y1,n3x5y4,n1x1y1\n");
    assert_eq!(envelope(&opl), "1,1,5,4");
    let partly = "<way id='3'><nd ref='21' lat='1' lon='1'/><nd ref='22'/><nd ref='23' lat='4' lon='5'/>\
        <nd ref='21' lat='1' lon='1'/></way>";
    assert_eq!(
        folder.error(partly),
        "way 3, vertex 2: node 22 is not in the file"
    );
    assert_eq!(
        folder.error(&("<node id='22'/>".to_owned() + partly)),
        "way 3, vertex 2: node 22 has no location"
    );
}

#[test]
fn a_way_without_node_ids_is_closed_if_its_ends_are_equal() {
    let folder = Folder::new();
    let way = |nodes: String| format!("<way id='3'>{nodes}</way>");
    let square = places(&[(1, 1), (5, 1), (5, 4), (1, 1)]);
    assert_eq!(envelope(&folder.write_osm(&way(square))), "1,1,5,4");
    let open = places(&[(1, 1), (5, 1), (5, 4), (2, 1)]);
    assert_eq!(
        folder.error(&way(open)),
        "holds no multipolygon, no boundary and no closed way"
    );
}

#[test]
fn a_relation_gives_the_locations_of_missing_member_ways() {
    let folder = Folder::new();
    let (one, other) = (
        places(&[(1, 1), (9, 1), (9, 9)]),
        places(&[(9, 9), (1, 9), (1, 1)]),
    );
    let listed = boundary_of(&[&one, &other]);
    assert_eq!(envelope(&folder.write_osm(&listed)), "1,1,9,9");
    // One member way is in the file. Its places come from its nodes or, if these are missing, from the relation.
    let in_file = nodes() + &way(2, &[99, 19, 11]) + &boundary_of(&[&one, ""]);
    assert_eq!(envelope(&folder.write_osm(&in_file)), "1,1,9,9");
    let without_nodes = way(2, &[99, 19, 11]) + &listed;
    assert_eq!(envelope(&folder.write_osm(&without_nodes)), "1,1,9,9");
    let before = nodes() + &way(2, &[99, 95, 91, 11]) + &way(1, &[11, 91, 95, 99]) + &listed;
    assert_eq!(
        folder.error(&before),
        "relation 1: its segments enclose no area"
    );
}

#[test]
fn an_error_names_a_member_without_locations() {
    let folder = Folder::new();
    let one = places(&[(1, 1), (9, 1), (9, 9)]);
    for (body, cause) in [
        (
            boundary_of(&[&one, &(places(&[(9, 9)]) + "<nd/>")]),
            "relation 1, way 2, vertex 2: the location is not in the file",
        ),
        (
            boundary_of(&[&one, &places(&[(9, 9)])]),
            "relation 1, way 2: the way has fewer than two nodes",
        ),
        (
            boundary_of(&[&one, ""]),
            "relation 1, way 2: the way is not in the file",
        ),
        (
            boundary_of(&[&one]),
            "relation 1: a ring does not close: way 1 ends at 1,1, and no other way goes on",
        ),
    ] {
        assert_eq!(folder.error(&body), cause);
    }
}

#[test]
fn an_answer_in_json_is_read_like_one_in_xml() {
    let folder = Folder::new();
    let read = |elements: &str| {
        let text = format!("{{\"version\":0.6,\"elements\":[{elements}]}}");
        read_shape(&folder.write_file("a.json", text.as_bytes()), None)
    };
    let place = |(lon, lat): &(i32, i32)| format!("{{\"lat\":{lat},\"lon\":{lon}}}");
    let geometry = |places: &[(i32, i32)]| {
        let places: Vec<String> = places.iter().map(place).collect();
        format!("\"geometry\":[{}]", places.join(","))
    };
    let member = |id: i64, geometry: &str| {
        format!("{{\"type\":\"way\",\"ref\":{id},\"role\":\"outer\",{geometry}}}")
    };
    let relation = |members: &[String]| {
        let members = members.join(",");
        format!(
            "{{\"type\":\"relation\",\"id\":1,\"members\":[{members}],\"tags\":{{\"type\":\"boundary\"}}}}"
        )
    };
    let one = member(1, &geometry(&[(1, 1), (9, 1), (9, 9)]));
    let other = member(2, &geometry(&[(9, 9), (1, 9), (1, 1)]));
    let shape = read(&relation(&[one.clone(), other])).unwrap();
    assert_eq!(shape.envelope().to_string(), "1,1,9,9");
    // The way has node ids whose nodes are in the answer, node ids and a geometry, or only a geometry.
    let node = |id: i64, lon, lat| {
        format!("{{\"type\":\"node\",\"id\":{id},\"lat\":{lat},\"lon\":{lon}}}")
    };
    let nodes = [node(11, 1, 1), node(91, 9, 1), node(99, 9, 9)].join(",");
    let square = geometry(&[(1, 1), (9, 1), (9, 9), (1, 1)]);
    let ids = "\"nodes\":[11,91,99,11]";
    for (way, more) in [
        (ids.to_owned(), format!(",{nodes}")),
        (format!("{ids},{square}"), String::new()),
        (square, String::new()),
    ] {
        let shape = read(&format!("{{\"type\":\"way\",\"id\":3,{way}}}{more}"));
        assert_eq!(shape.unwrap().envelope().to_string(), "1,1,9,9");
    }
    let cut = member(2, "\"geometry\":[{\"lat\":9,\"lon\":9},null]");
    for (elements, cause) in [
        (
            relation(&[one, cut]),
            "relation 1, way 2, vertex 2: the location is not in the file",
        ),
        (
            String::new(),
            "holds no multipolygon, no boundary and no closed way",
        ),
        ("{\"type\":\"way\"}".to_owned(), "a way has no id"),
    ] {
        let message = read(&elements).unwrap_err().to_string();
        assert!(message.ends_with(cause), "{message}");
    }
}

#[test]
fn relations_that_repeat_a_way_too_often_are_refused() {
    let folder = Folder::new();
    let body = |count: i64| {
        let relations = (1..=count).map(|id| relation(id, "boundary", &[(1, "outer")], &[]));
        nodes() + &way(1, &[11, 91, 99, 19, 11]) + &relations.collect::<String>()
    };
    let most = MIN_NODES as i64 / 5;
    assert!(read_shape(&folder.write_osm(&body(most)), None).is_ok());
    let start = format!("relation {}: the relations have more than", most + 1);
    assert!(folder.error(&body(most + 1)).starts_with(&start));
}
