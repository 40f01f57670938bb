//! `/reverse` of `geocode --serve`: which object answers at each zoom, and the parameters of other geocoders.

use crate::common::service::{Service, build};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A service for a file of OPL.
fn service(lines: &[&str]) -> (TempDir, Service) {
    let directory = tempfile::tempdir().unwrap();
    let (input, index) = (
        directory.path().join("in.opl"),
        directory.path().join("index"),
    );
    std::fs::write(&input, lines.join("\n") + "\n").unwrap();
    build(&input, &index);
    let service = Service::start(&index);
    (directory, service)
}

/// The object, the name and the type of an answer.
fn subject(found: &Value) -> Value {
    let parts = [
        "osm_type",
        "osm_id",
        "category",
        "type",
        "addresstype",
        "name",
    ];
    parts.map(|key| found[key].clone()).to_vec().into()
}

#[test]
fn a_city_that_an_address_names_is_the_object_of_that_name() {
    let (_directory, service) = service(&[
        "n1 v1 T x7.9 y47.9",
        "n2 v1 T x8.1 y47.9",
        "n3 v1 T x8.1 y48.1",
        "n4 v1 T x7.9 y48.1",
        // A town whose boundary is around the house, one that is a node, and one that nothing has the name of.
        "n10 v1 Taddr:housenumber=1,addr:street=A,addr:city=SANKT%20%Florian x8.0 y48.0",
        "n11 v1 Taddr:housenumber=2,addr:street=A,addr:city=Nodeville,amenity=school x8.01 y48.0",
        "n12 v1 Taddr:housenumber=3,addr:street=A,addr:city=Nowhere x8.02 y48.0",
        "n13 v1 Taddr:housenumber=4,addr:street=A,addr:city=Far x8.03 y48.0",
        "n14 v1 Taddr:housenumber=5,addr:street=A,addr:city=Nowhere x9.0 y48.0",
        "n20 v1 Tplace=village,name=Nodeville,name:de=Knotendorf x8.02 y48.02",
        "n21 v1 Tplace=hamlet,name=Far x8.03 y48.05",
        "n22 v1 Tplace=locality,name=Nowhere x8.02 y48.0001",
        "w1 v1 Tboundary=administrative,admin_level=8,name=St.%20%Florian,place=town Nn1,n2,n3,n4,n1",
    ]);
    let at = |lon: &str, more: &str| service.json(&format!("/reverse?lat=48.0&lon={lon}{more}"));
    let town = json!([
        "way",
        1,
        "boundary",
        "administrative",
        "town",
        "St. Florian"
    ]);
    for zoom in 10..16 {
        let zoom = format!("&zoom={zoom}");
        assert_eq!(subject(&at("8.0", &zoom)), town);
        let village = json!(["node", 20, "place", "village", "village", "Nodeville"]);
        assert_eq!(subject(&at("8.01", &zoom)), village);
        // Without an object of the name, and with a hamlet far away, the area around the house is the answer.
        for lon in ["8.02", "8.03"] {
            let found = at(lon, &zoom);
            assert_eq!(subject(&found), town);
            assert_eq!(found["address"], json!({"town": "St. Florian"}));
        }
        assert_eq!(at("9.0", &zoom)["error"], "Unable to geocode");
    }
    let german = at("8.01", "&zoom=12&accept-language=de");
    assert_eq!(german["address"], json!({"village": "Knotendorf"}));
    // The house has the city that its address names.
    let house = at("8.02", "&zoom=18");
    assert_eq!(
        subject(&house),
        json!(["node", 12, "place", "house", "place", ""])
    );
    assert_eq!(house["address"]["city"], "Nowhere");
    // So does the line of `/geocode`, whose sources say that the name comes from the house.
    let line = service.json("/geocode?lat=48.0&lon=8.01");
    assert_eq!(line["address"]["city"], "Nodeville");
    assert_eq!(line["sources"]["city"]["id"], 11);
}

#[test]
fn neither_suburb_nor_state_is_the_house_that_names_it() {
    let (_directory, service) = service(&[
        "n10 v1 Taddr:housenumber=1,addr:street=A,addr:suburb=Ward,addr:state=MD x8.0 y48.0",
        "n11 v1 Taddr:housenumber=1,addr:street=A,addr:suburb=Other,addr:state=MD x9.0 y48.0",
        "n20 v1 Tplace=suburb,name=Ward x8.0 y48.01",
        "n21 v1 Tplace=city,name=Town x8.0 y48.02",
        "n22 v1 Tplace=city,name=Next x9.0 y48.02",
    ]);
    let at = |lon: &str, zoom: u8| {
        let found = service.json(&format!("/reverse?lat=48.0&lon={lon}&zoom={zoom}"));
        found["osm_id"].clone()
    };
    assert_eq!((at("8.0", 13), at("8.0", 12)), (json!(20), json!(21)));
    assert_eq!((at("9.0", 13), at("9.0", 12)), (json!(22), json!(22)));
    assert_eq!((at("8.0", 5), at("8.0", 18)), (Value::Null, json!(10)));
}

#[test]
fn a_street_is_the_way_of_its_name_with_its_class() {
    let (_directory, service) = service(&[
        "n1 v1 T x7.998 y48.0002",
        "n2 v1 T x8.002 y48.0002",
        "n3 v1 T x7.998 y48.001",
        "n4 v1 T x8.002 y48.001",
        "n5 v1 T x7.998 y48.1",
        "n6 v1 T x8.002 y48.1",
        "n7 v1 T x8.002 y48.102",
        // A house of the farther street, and one whose street is not there.
        "n10 v1 Taddr:housenumber=1,addr:street=Long%20%Rd x8.0 y48.0001",
        "n11 v1 Taddr:housenumber=2,addr:street=Gone x8.001 y48.0001",
        "n12 v1 Taddr:block_number=7,addr:neighbourhood=Ginza x8.0 y48.15",
        "n21 v1 T x7.998 y48.2",
        "n22 v1 T x8.002 y48.2",
        "w1 v1 Thighway=footway,name=Alley Nn1,n2",
        "w2 v1 Thighway=secondary,name=Long%20%Road,ref=B%20%3 Nn3,n4",
        "w3 v1 Tplace=square,name=Plaza Nn5,n6,n7,n5",
        "w4 v1 Thighway=trunk,ref=A%20%1 Nn21,n22",
    ]);
    let at = |lat: &str, lon: &str, zoom: u8| {
        service.json(&format!("/reverse?lat={lat}&lon={lon}&zoom={zoom}"))
    };
    for zoom in [16, 17] {
        let long = at("48.00005", "8.0", zoom);
        let expected = json!(["way", 2, "highway", "secondary", "road", "Long Road"]);
        assert_eq!(subject(&long), expected);
        assert_eq!(long["address"], json!({"road": "Long Road"}));
        let alley = json!(["way", 1, "highway", "footway", "road", "Alley"]);
        assert_eq!(subject(&at("48.00005", "8.001", zoom)), alley);
        let plaza = json!(["way", 3, "place", "square", "road", "Plaza"]);
        assert_eq!(subject(&at("48.1005", "8.0015", zoom)), plaza);
        let road = json!(["way", 4, "highway", "trunk", "road", "A 1"]);
        assert_eq!(subject(&at("48.2001", "8.0", zoom)), road);
    }
    // A house is a house.
    let house = at("48.00005", "8.001", 18);
    assert_eq!(
        (&house["osm_id"], &house["address"]["road"]),
        (&json!(11), &json!("Gone"))
    );
    assert_eq!(at("48.15", "8.0", 18)["osm_id"], 12);
    // Where there is none, so is the street.
    assert_eq!(at("48.1005", "8.0015", 18)["osm_id"], 3);
    let xml = |lat: &str| {
        service
            .get(&format!("/reverse?lat={lat}&lon=8.0&zoom=17&format=xml"))
            .2
    };
    let found = xml("48.00005");
    assert!(
        found.contains(" osm_id=\"2\" ref=\"B 3\" place_rank"),
        "{found}"
    );
    assert!(!xml("48.1005").contains(" ref="));
}

#[test]
fn codes_have_the_level_of_their_area_and_give_the_country() {
    let square = |id: i64, lon: f64| {
        [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
            .into_iter()
            .zip(id..)
            .map(|((east, north), id)| {
                format!("n{id} v1 T x{:.3} y{:.3}", lon + east, 48.0 + north)
            })
            .collect::<Vec<_>>()
    };
    let way = |id: i64, node: i64, tags: &str| {
        let nodes = [0, 1, 2, 3, 0].map(|at| format!("n{}", node + at));
        format!(
            "w{id} v1 Tboundary=administrative,{tags} N{}",
            nodes.join(",")
        )
    };
    let nodes = [
        square(1, 0.0),
        square(11, 2.0),
        square(21, 4.0),
        square(31, 6.0),
    ]
    .concat();
    let ways = [
        way(1, 1, "admin_level=4,name=State,ISO3166-2=IT-25"),
        way(2, 1, "admin_level=6,name=County,ISO3166-2=IT-MI"),
        way(3, 1, "admin_level=8,name=Town"),
        way(4, 11, "admin_level=2,name=Land,ISO3166-1=XK"),
        way(5, 11, "admin_level=3,name=State,ISO3166-2=RS-25"),
        way(6, 21, "admin_level=4,name=State,ISO3166-2=BW"),
        way(7, 21, "admin_level=5,name=Part,ISO3166-2=de-bw"),
        way(8, 31, "admin_level=4,name=State"),
    ];
    let lines: Vec<&str> = nodes.iter().chain(&ways).map(String::as_str).collect();
    let (_directory, service) = service(&lines);
    let address = |lon: &str, zoom: u8| {
        service.json(&format!("/reverse?lat=48.5&lon={lon}&zoom={zoom}"))["address"].clone()
    };
    let expected = json!({
        "city": "Town", "county": "County", "ISO3166-2-lvl6": "IT-MI", "state": "State",
        "ISO3166-2-lvl4": "IT-25", "country_code": "it",
    });
    assert_eq!(address("0.5", 18), expected);
    let expected = json!({"state": "State", "ISO3166-2-lvl4": "IT-25", "country_code": "it"});
    assert_eq!(address("0.5", 5), expected);
    // A country has its own code, and what is no code says nothing.
    assert_eq!(address("2.5", 5)["country_code"], "xk");
    assert_eq!(address("2.5", 5)["ISO3166-2-lvl3"], "RS-25");
    assert_eq!(address("4.5", 5).get("country_code"), None);
    assert_eq!(address("6.5", 5), json!({"state": "State"}));
    // Italian addresses begin with the street, and those of the United States with the number.
    let display = service.json("/reverse?lat=48.5&lon=0.5")["display_name"].clone();
    assert_eq!(display, "Town, County, State");
}

#[test]
fn parameters_of_other_geocoders_are_taken_or_refused_by_name() {
    let (_directory, service) =
        service(&["n10 v1 Taddr:housenumber=1,addr:street=A,amenity=bar x8.0 y48.0"]);
    for more in [
        "layer=address,poi",
        "layer=poi,address",
        "layer=address",
        "layer=",
        "addressdetails=true",
        "addressdetails=1",
        "namedetails=false&extratags=no&debug=0",
        "polygon_threshold=0.0&polygon_svg=0",
        "json_callback=&callback=",
        "email=me@example.com&dedupe=1&_=1730000000",
    ] {
        let found = service.json(&format!("/reverse?lat=48.0&lon=8.0&{more}"));
        assert_eq!(found["address"]["house_number"], "1", "{more}");
    }
    let bare = service.json("/reverse?lat=48.0&lon=8.0&addressdetails=false");
    assert_eq!(bare.get("address"), None);
    for (more, name) in [
        ("layer=poi", "'layer'"),
        ("layer=address,railway", "'railway'"),
        ("addressdetails=maybe", "'addressdetails'"),
        ("namedetails=true", "'namedetails'"),
        ("extratags=2", "'extratags'"),
        ("debug=1", "'debug'"),
        ("polygon_threshold=0.1", "'polygon_threshold'"),
        ("polygon_threshold=x", "'polygon_threshold'"),
        ("json_callback=f", "'json_callback'"),
        ("callback=f", "'callback'"),
    ] {
        let (status, _, body) = service.get(&format!("/reverse?lat=48.0&lon=8.0&{more}"));
        assert_eq!(status, 400, "{more}");
        assert!(body.contains(name), "{more}: {body}");
    }
}

#[test]
fn the_box_of_a_node_has_the_size_of_its_sort() {
    let (_directory, service) = service(&[
        "n1 v1 T x8.0 y47.999",
        "n2 v1 T x8.001 y47.999",
        "n10 v1 Taddr:housenumber=1,addr:street=A x8.0 y48.0",
        "n11 v1 Taddr:housenumber=1,addr:street=A x180.0 y89.99998",
        "n20 v1 Tplace=city,name=City x8.0 y48.0",
        "n21 v1 Tplace=village,name=Village x20.0 y48.0",
        "w1 v1 Thighway=residential,name=A Nn1,n2",
    ]);
    let at = |place: &str| service.json(&format!("/reverse?{place}"));
    let house = at("lat=48.0&lon=8.0");
    assert_eq!(
        house["boundingbox"],
        json!(["47.99995", "48.00005", "7.99995", "8.00005"])
    );
    assert_eq!((&house["lat"], &house["lon"]), (&json!("48"), &json!("8")));
    let city = at("lat=48.0&lon=8.0&zoom=10");
    assert_eq!(
        city["boundingbox"],
        json!(["47.84", "48.16", "7.84", "8.16"])
    );
    let village = at("lat=48.0&lon=20.0&zoom=10&format=geojson");
    let bbox = json!([19.98, 47.98, 20.02, 48.02]);
    assert_eq!(village["features"][0]["bbox"], bbox);
    // A way has its own box, and no box leaves the earth.
    let street = at("lat=47.999&lon=8.0&zoom=17");
    assert_eq!(
        street["boundingbox"],
        json!(["47.999", "47.999", "8", "8.001"])
    );
    let edge = at("lat=89.99998&lon=180.0");
    assert_eq!(
        edge["boundingbox"],
        json!(["89.99993", "90", "179.99995", "180"])
    );
    assert_eq!(
        (&edge["lat"], &edge["lon"]),
        (&json!("89.99998"), &json!("180"))
    );
}
