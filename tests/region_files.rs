//! Files of regions for `extract`: every form of a file, and all polygons of one.

use crate::common::{decode, run_ok};

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
