//! Files of regions for `extract`: every form of a file, and all polygons of one.

use crate::common::extracts::{Strategy, extracted};
use crate::common::questions::{assert_same_objects, file_in_blocks};
use crate::common::regions::{DEGREE, Region, box_of_degrees, feature, written};
use crate::common::{Arg, Kind, Object, decode, node, pbfhogg, relation, run_ok, way};
use crate::extract_regions::{ring, small_file};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[test]
fn closed_ways_of_a_region_file_count_beside_multipolygons() {
    let dir = tempfile::tempdir().unwrap();
    let square = |first: i64, west: i64, east: i64| {
        let corners = [(west, 0), (east, 0), (east, 10), (west, 10)];
        (first..)
            .zip(corners)
            .map(|(id, (lon, lat))| format!("<node id='{id}' lat='{lat}' lon='{lon}'/>"))
            .collect::<String>()
    };
    let way = |id: i64, first: i64| {
        let refs = [0, 1, 2, 3, 0]
            .map(|at| format!("<nd ref='{}'/>", first + at))
            .concat();
        format!("<way id='{id}'>{refs}</way>")
    };
    let relation = "<relation id='1'><member type='way' ref='1' role='outer'/><tag k='type' v='multipolygon'/></relation>";
    let xml = format!(
        "<osm version='0.6'>{}{}{}{}{relation}</osm>",
        square(1, 0, 10),
        square(11, 20, 30),
        way(1, 1),
        way(2, 11)
    );
    let [region, data, output] =
        ["region.osm", "data.osm", "out.osm.pbf"].map(|name| dir.path().join(name));
    std::fs::write(&region, xml).unwrap();
    let places = [(1, 5), (2, 25), (3, 15)];
    let places = places.map(|(id, lon)| format!("<node id='{id}' lat='5' lon='{lon}'/>"));
    std::fs::write(
        &data,
        format!("<osm version='0.6'>{}</osm>", places.concat()),
    )
    .unwrap();
    run_ok(&[&"extract", &"-p", &region, &data, &"-o", &output]);
    let ids: Vec<i64> = decode::objects(&output)
        .iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn the_features_of_a_geojson_file_are_one_region() {
    let dir = tempfile::tempdir().unwrap();
    let square = |west: i64| {
        let east = west + 2;
        format!(
            "{{\"type\":\"Feature\",\"properties\":{{}},\"geometry\":{{\"type\":\"Polygon\",\
             \"coordinates\":[[[{west},0],[{east},0],[{east},2],[{west},2],[{west},0]]]}}}}"
        )
    };
    let [region, data, output] =
        ["region.geojson", "data.osm", "out.osm.pbf"].map(|name| dir.path().join(name));
    let features = [square(0), square(10)].join(",");
    std::fs::write(
        &region,
        format!("{{\"type\":\"FeatureCollection\",\"features\":[{features}]}}"),
    )
    .unwrap();
    let nodes = [1, 5, 11].map(|lon| format!("<node id='{lon}' lat='1' lon='{lon}'/>"));
    std::fs::write(
        &data,
        format!("<osm version='0.6'>{}</osm>", nodes.concat()),
    )
    .unwrap();
    run_ok(&[&"extract", &"-p", &region, &data, &"-o", &output]);
    let ids: Vec<i64> = decode::objects(&output)
        .iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(ids, [1, 11]);
}

/// Writes a PBF file and an OSM XML file with a relation that is the square from 2,2 to 6,6.
fn square_as_osm(dir: &Path) -> [PathBuf; 2] {
    let corners = [(2, 2), (6, 2), (6, 6), (2, 6)];
    let nodes: Vec<Object> = (1..)
        .zip(corners)
        .map(|(id, (lon, lat))| node(id, lat * DEGREE, lon * DEGREE, &[]))
        .collect();
    let ways = [way(1, &[1, 2, 3], &[]), way(2, &[1, 4, 3], &[])];
    let members = [(Kind::Way, 1, "outer"), (Kind::Way, 2, "outer")];
    let area = relation(1, &members, &[("type", "boundary")]);
    let objects = [&nodes[..], &ways, &[area]].concat();
    let pbf = file_in_blocks(dir, &objects, 4);
    let renamed = dir.join("square.osm.pbf");
    std::fs::rename(pbf, &renamed).unwrap();
    let mut xml = String::from("<osm version=\"0.6\">\n");
    for (id, (lon, lat)) in (1..).zip(corners) {
        xml += &format!("<node id=\"{id}\" lat=\"{lat}\" lon=\"{lon}\"/>\n");
    }
    xml += "<way id=\"1\"><nd ref=\"1\"/><nd ref=\"2\"/><nd ref=\"3\"/></way>\n\
        <way id=\"2\"><nd ref=\"1\"/><nd ref=\"4\"/><nd ref=\"3\"/></way>\n\
        <relation id=\"1\"><member type=\"way\" ref=\"1\" role=\"outer\"/>\
        <member type=\"way\" ref=\"2\" role=\"outer\"/><tag k=\"type\" v=\"multipolygon\"/></relation>\n</osm>\n";
    [renamed, written(dir, "square.osm", &xml)]
}

/// Writes files of many formats that contain the square from 2,2 to 6,6.
pub fn square_files(dir: &Path) -> Vec<PathBuf> {
    let square = box_of_degrees(2, 2, 6, 6);
    let ring = "[[2,2],[6,2],[6,6],[2,6],[2,2]]";
    let polygon = format!("{{\"type\":\"Polygon\",\"coordinates\":[{ring}]}}");
    let halves = Region {
        polygons: [box_of_degrees(2, 2, 4, 6), box_of_degrees(4, 2, 6, 6)]
            .into_iter()
            .flat_map(|half| half.polygons)
            .collect(),
    };
    let collection = |parts: &[&str]| {
        let parts = parts.join(",");
        format!("{{\"type\":\"FeatureCollection\",\"features\":[{parts}]}}")
    };
    let [left, right] =
        [box_of_degrees(2, 2, 4, 6), box_of_degrees(3, 2, 6, 6)].map(|part| part.geojson());
    let point = feature("{\"type\":\"Point\",\"coordinates\":[9,9]}");
    let mut files = vec![
        square.geojson_file(dir, "square"),
        square.poly_file(dir, "square"),
        written(dir, "bare.geojson", &polygon),
        written(
            dir,
            "feature.json",
            &format!("\u{feff}{}", feature(&polygon)),
        ),
        written(dir, "one.geojson", &collection(&[&feature(&polygon)])),
        written(
            dir,
            "several.geojson",
            &collection(&[&left, &point, &right]),
        ),
        halves.geojson_file(dir, "halves"),
        halves.poly_file(dir, "halves"),
        written(
            dir,
            "height.geojson",
            &feature(&polygon).replace("[6,2]", "[6.0e0, 2, 517.3]"),
        ),
        written(
            dir,
            "open.poly",
            "x\r\n1\r\n\t2.0E+00\t2\r\n 6 2\r\n\r\n 6.0000000 +6\r\n 2 6\r\nEND\r\nEND\r\n",
        ),
        written(
            dir,
            "last.poly",
            &square.poly().replace("END\nEND\n", "END\n"),
        ),
    ];
    let [pbf, xml] = square_as_osm(dir);
    files.extend(located_squares(dir, &pbf));
    files.extend([pbf, xml]);
    files
}

/// Writes files with the same square whose nodes lie only where ways or members say. `plain` is the file with nodes.
fn located_squares(dir: &Path, plain: &Path) -> [PathBuf; 4] {
    let pbf = dir.join("located.osm.pbf");
    run_ok(&[&"add-locations-to-ways", &"-q", &plain, &"-o", &pbf]);
    assert!(
        decode::objects(&pbf)
            .iter()
            .all(|object| object.kind != Kind::Node)
    );
    let opl = "w1 v1 Nn1x2y2,n2x6y2,n3x6y6\nw2 v1 Nn1x2y2,n4x2y6,n3x6y6\nr1 v1 Ttype=boundary Mw1@outer,w2@outer\n";
    let ways = [(1, [(2, 2), (6, 2), (6, 6)]), (2, [(2, 2), (2, 6), (6, 6)])];
    let members = ways.map(|(id, nodes)| {
        let nodes =
            nodes.map(|(lon, lat)| format!("<nd lat=\"{lat}.0000000\" lon=\"{lon}.0000000\"/>"));
        let nodes = nodes.concat();
        format!("<member type=\"way\" ref=\"{id}\" role=\"outer\">{nodes}</member>")
    });
    let answer = format!(
        "<osm version=\"0.6\" generator=\"Overpass API\"><note>ODbL</note><relation id=\"1\"><bounds minlat=\"2\" \
         minlon=\"2\" maxlat=\"6\" maxlon=\"6\"/>{}<tag k=\"type\" v=\"boundary\"/></relation></osm>",
        members.concat()
    );
    let members = ways.map(|(id, nodes)| {
        let nodes = nodes.map(|(lon, lat)| format!("{{\"lat\":{lat},\"lon\":{lon}}}"));
        let nodes = nodes.join(",");
        format!("{{\"type\":\"way\",\"ref\":{id},\"role\":\"outer\",\"geometry\":[{nodes}]}}")
    });
    let json = format!(
        "{{\"version\":0.6,\"generator\":\"Overpass API\",\"elements\":[{{\"type\":\"relation\",\"id\":1,\
         \"members\":[{}],\"tags\":{{\"type\":\"boundary\"}}}}]}}",
        members.join(",")
    );
    [
        pbf,
        written(dir, "located.opl", opl),
        written(dir, "answer.osm", &answer),
        written(dir, "answer.json", &json),
    ]
}

pub fn cut(input: &Path, args: &[Arg], output: &Path) -> Vec<u8> {
    run_ok(&[&[&"extract" as Arg, &input], args, &[&"-O", &"-o", &output]].concat());
    std::fs::read(output).unwrap()
}

#[test]
fn a_square_in_any_form_is_the_same_square() {
    let dir = tempfile::tempdir().unwrap();
    let files = square_files(dir.path());
    let (input, objects) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let bytes = cut(&input, &[&"-b", &"2,2,6,6"], &output);
    let expected = extracted(
        &objects,
        &box_of_degrees(2, 2, 6, 6),
        Strategy::CompleteWays,
    );
    assert_same_objects(&decode::objects(&output), &expected, "box");
    for corners in ["6,6,2,2", "2,6,6,2", "2.0,2e0,6.00000000,+6"] {
        let found = cut(&input, &[&"-b", &corners], &output);
        assert!(found == bytes, "{corners}");
    }
    for file in files {
        let found = cut(&input, &[&"-p", &file], &output);
        assert!(found == bytes, "{}", file.display());
    }
}

#[test]
fn holes_find_their_ring_wherever_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let (input, objects) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let region = Region {
        polygons: vec![
            vec![ring(0, 0, 5, 5), ring(2, 2, 4, 4)],
            vec![ring(6, 6, 11, 11), ring(7, 7, 10, 10)],
            vec![ring(8, 8, 9, 9)],
        ],
    };
    let text = region.poly();
    let (first, rest) = text.split_once("END\n").unwrap();
    let (name, first) = first.split_once('\n').unwrap();
    let last = rest.strip_suffix("END\n").unwrap();
    let moved = format!("{name}\n{last}{first}END\nEND\n");
    assert!(moved.find('!') < moved.find("0-0"));
    let files = [
        region.geojson_file(dir.path(), "a"),
        region.poly_file(dir.path(), "b"),
        written(dir.path(), "c.poly", &moved),
    ];
    let expected = extracted(&objects, &region, Strategy::Simple);
    for file in files {
        cut(&input, &[&"-p", &file, &"--simple"], &output);
        let what = file.display().to_string();
        assert_same_objects(&decode::objects(&output), &expected, &what);
    }
}

#[test]
fn polygons_that_overlap_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let (input, objects) = small_file(dir.path());
    let output = dir.path().join("out.osm.pbf");
    let regions = [
        vec![vec![ring(0, 0, 5, 5)], vec![ring(3, 3, 8, 8)]],
        vec![vec![ring(0, 0, 9, 9)], vec![ring(3, 3, 5, 5)]],
        vec![vec![ring(0, 0, 5, 5)], vec![ring(0, 0, 5, 5)]],
        vec![
            vec![ring(0, 0, 9, 9), ring(2, 2, 7, 7)],
            vec![ring(3, 3, 5, 5)],
        ],
        vec![
            vec![ring(0, 0, 9, 9), ring(2, 2, 7, 7)],
            vec![ring(1, 1, 8, 5)],
        ],
    ];
    for polygons in regions {
        let region = Region { polygons };
        let expected = extracted(&objects, &region, Strategy::CompleteWays);
        let file = region.geojson_file(dir.path(), "region");
        cut(&input, &[&"-p", &file], &output);
        let found = decode::objects(&output);
        assert_same_objects(&found, &expected, &format!("{region:?}"));
    }
}

#[test]
fn a_region_of_any_form_comes_from_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data.opl");
    std::fs::write(&data, "n1 v1 x5 y5\nn2 v1 x15 y5\n").unwrap();
    let nodes = [(1, 0, 0), (2, 10, 0), (3, 10, 10), (4, 0, 10)];
    let nodes = nodes.map(|(id, lon, lat)| format!("n{id} v1 x{lon} y{lat}\n"));
    let regions = [
        "square\n1\n0 0\n10 0\n10 10\n0 10\n0 0\nEND\nEND\n".to_owned(),
        "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}".to_owned(),
        nodes.concat() + "w1 v1 Nn1,n2,n3,n4,n1\n",
    ];
    for region in regions {
        let mut command = pbfhogg();
        command.args(["extract", "-f", "opl", "-o", "-", "-p", "/dev/stdin"]);
        command.arg(&data).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let pipe = child.stdin.take();
        pipe.unwrap().write_all(region.as_bytes()).unwrap();
        let found = child.wait_with_output().unwrap();
        let text = String::from_utf8(found.stdout).unwrap();
        assert!(
            found.status.success() && text.starts_with("n1 ") && !text.contains("n2"),
            "{region}: {text}"
        );
    }
}
