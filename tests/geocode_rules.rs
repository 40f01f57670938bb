//! The address that `geocode` composes: which object answers, and where its parts come from.

use crate::common::{Arg, run_ok};
use pbfhogg::Location;
use pbfhogg::geocode::{GeocodeIndex, MapPiece, MapWalk, QueryOptions};
use serde_json::Value;

/// The answer about a place in a file of OPL, as a line and as JSON.
pub struct Answers {
    pub index: std::path::PathBuf,
    directory: tempfile::TempDir,
}

impl Answers {
    pub fn of(lines: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (input, index) = (
            directory.path().join("in.opl"),
            directory.path().join("index"),
        );
        std::fs::write(&input, lines.join("\n") + "\n").unwrap();
        run_ok(&[&"build-geocode-index", &input, &"-o", &index]);
        Self { index, directory }
    }

    pub fn asked(&self, lat: f64, lon: f64, more: &[Arg]) -> String {
        let place = [lat.to_string(), lon.to_string()];
        let args: [Arg; 3] = [&"geocode", &self.index, &"--"];
        let [lat, lon] = &place;
        let mut all: Vec<Arg> = vec![args[0], args[1]];
        all.extend(more);
        all.extend([args[2], lat as Arg, lon as Arg]);
        let found = String::from_utf8(run_ok(&all).stdout).unwrap();
        found.trim_end().to_owned()
    }

    pub fn line(&self, lat: f64, lon: f64) -> String {
        self.asked(lat, lon, &[])
    }

    pub fn address(&self, lat: f64, lon: f64) -> Value {
        let found: Value = serde_json::from_str(&self.asked(lat, lon, &[&"--json"])).unwrap();
        found["address"].clone()
    }
}

/// A square around a place as nodes and a closed way, whose ids begin at `id`.
pub fn square(id: i64, [lat, lon]: [f64; 2], size: f64, tags: &str) -> Vec<String> {
    let corners = [[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]];
    let mut lines: Vec<String> = (id..)
        .zip(corners)
        .map(|(id, [north, east])| {
            let (lat, lon) = (lat + north * size, lon + east * size);
            format!("n{id} v1 T x{lon:.7} y{lat:.7}")
        })
        .collect();
    let refs: Vec<String> = [0, 1, 2, 3, 0].map(|at| format!("n{}", id + at)).into();
    lines.push(format!("w{id} v1 T{tags} N{}", refs.join(",")));
    lines
}

/// Lines in the order of a file: nodes, ways, relations.
fn ordered(parts: &[Vec<String>]) -> Vec<String> {
    let mut lines = parts.concat();
    lines.sort_by_key(|line| "nwr".find(&line[..1]));
    lines
}

pub fn answers(parts: &[Vec<String>]) -> Answers {
    let lines = ordered(parts);
    Answers::of(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

pub fn one(line: &str) -> Vec<String> {
    vec![line.to_owned()]
}

#[test]
fn the_smallest_area_around_a_place_answers() {
    let grounds = square(
        1,
        [49.0, 8.0],
        0.005,
        "amenity=school,addr:housenumber=1,addr:street=S",
    );
    let house = square(
        11,
        [49.0, 8.0],
        0.0002,
        "building=yes,addr:housenumber=1a,addr:street=S",
    );
    let far = one("n20 v1 Taddr:housenumber=77,addr:street=Other x8.003 y49.003");
    let near = one("n21 v1 Taddr:housenumber=78,addr:street=Other x8.004 y49.004");
    let found = answers(&[grounds, house, far, near]);
    assert_eq!(found.line(49.0, 8.0), "S 1a");
    assert_eq!(found.line(49.001, 8.001), "S 1");
    // One of several numbered nodes answers beside it.
    assert_eq!(found.line(49.00301, 8.003), "Other 77");
}

#[test]
fn a_node_in_an_area_answers_if_the_number_is_the_same_or_the_area_has_none() {
    let tags = "building=yes,addr:housenumber=5,addr:street=S";
    let same = square(1, [49.0, 8.0], 0.0002, tags);
    let node = one("n10 v1 Taddr:housenumber=5,addr:postcode=99,shop=x x8.0001 y49.0001");
    let named = square(21, [49.1, 8.0], 0.0002, "addr:housename=Hall,addr:street=S");
    let in_named = one("n30 v1 Taddr:housenumber=6,addr:street=S x8.0001 y49.1001");
    let other = square(41, [49.2, 8.0], 0.0002, tags);
    let in_other = one("n50 v1 Taddr:housenumber=6,addr:street=S x8.0 y49.20001");
    let found = answers(&[same, node, named, in_named, other, in_other]);
    assert_eq!(found.line(49.0, 8.0), "S 5, 99");
    assert_eq!(found.line(49.1, 8.0), "S 6");
    assert_eq!(found.line(49.2, 8.0), "S 5");
}

#[test]
fn a_node_in_the_nearest_area_has_the_number_or_the_street_that_the_area_lacks() {
    let named = square(1, [49.0, 8.0], 0.0002, "addr:housename=Hall,addr:street=S");
    let in_named = one("n10 v1 Taddr:housenumber=6,addr:street=S x8.0 y49.0");
    let placed = square(
        21,
        [49.1, 8.0],
        0.0002,
        "addr:housenumber=4,addr:place=Parish",
    );
    let in_placed = one("n30 v1 Taddr:housenumber=4,addr:street=S x8.0 y49.1");
    let other = square(
        41,
        [49.2, 8.0],
        0.0002,
        "addr:housenumber=4,addr:place=Parish",
    );
    let in_other = one("n50 v1 Taddr:housenumber=5,addr:street=S x8.0 y49.2");
    let alone = square(61, [49.3, 8.0], 0.0002, "addr:housename=Hall,addr:street=S");
    let beside = one("n70 v1 Taddr:housenumber=6,addr:street=S x8.0 y49.3005");
    let parts = [
        named, in_named, placed, in_placed, other, in_other, alone, beside,
    ];
    let found = answers(&parts);
    assert_eq!(found.line(49.00022, 8.0), "S 6");
    assert_eq!(found.line(49.10022, 8.0), "S 4");
    // A node with another number, and one that is not in the area, are other houses.
    assert_eq!(found.line(49.20022, 8.0), "Parish 4");
    assert_eq!(found.line(49.30022, 8.0), "Hall, S");
}

#[test]
fn a_house_within_six_metres_is_not_that_of_a_side_street_or_between_numbers() {
    let found = Answers::of(&[
        "n1 v1 T x10.0 y50",
        "n2 v1 T x10.004 y50",
        // 5.6 m and 11 m to the north of the street.
        "n3 v1 Taddr:housenumber=7,addr:street=Main x10.002 y50.00005",
        "n4 v1 Taddr:housenumber=8,addr:street=Main x10.003 y50.0001",
        "n5 v1 Taddr:housenumber=1,addr:street=Long x10.0 y51",
        "n6 v1 Taddr:housenumber=9,addr:street=Long x10.01 y51",
        "n7 v1 Taddr:housenumber=40,addr:street=Long x10.005 y51.00005",
        "n8 v1 Taddr:housenumber=9,addr:street=Main x10.00104 y50.00004",
        "n9 v1 T x10.001 y50",
        "n10 v1 T x10.001 y50.01",
        "w1 v1 Thighway=residential,name=Side Nn1,n9,n2",
        "w2 v1 Taddr:interpolation=odd,addr:street=Long Nn5,n6",
        "w3 v1 Thighway=residential,name=Main Nn9,n10",
    ]);
    // Where the streets meet, the place is on both.
    assert_eq!(found.line(50.0, 10.001), "Main 9");
    assert_eq!(found.line(50.00002, 10.002), "Main 7");
    assert_eq!(found.line(50.000002, 10.002), "Main 7");
    // On the line of the street, and farther from the house, the nearer street says where the place is.
    assert_eq!(found.line(50.0, 10.002), "Side");
    assert_eq!(found.line(50.00002, 10.003), "Side");
    assert_eq!(found.line(51.00001, 10.005), "Long 40");
    assert_eq!(found.line(51.00001, 10.0048), "Long 5");
}

#[test]
fn the_street_of_an_interpolation_way_is_contradicted_as_any_other() {
    let found = Answers::of(&[
        "n1 v1 Taddr:housenumber=1 x10.0 y50",
        "n2 v1 Taddr:housenumber=9 x10.01 y50",
        "n3 v1 T x10.0 y49.9999",
        "n4 v1 T x10.01 y49.9999",
        "n5 v1 T x9.9998 y50.001",
        "n6 v1 T x9.9998 y49.999",
        "w1 v1 Taddr:interpolation=odd,addr:street=Long Nn1,n2",
        "w2 v1 Thighway=residential,name=Long Nn3,n4",
        "w3 v1 Thighway=residential,name=Side Nn5,n6",
    ]);
    assert_eq!(found.line(50.0003, 9.9998), "Side");
    assert_eq!(found.line(49.99995, 10.0), "Long 1");
}

#[test]
fn an_entrance_with_a_number_is_that_of_its_building() {
    let building = [
        "n11 v1 T x10.0018 y40.0002",
        "n12 v1 Taddr:housenumber=1,addr:street=Main x10.002 y40.0002",
        "n13 v1 T x10.0022 y40.0002",
        "n14 v1 T x10.0022 y40.0004",
        "n15 v1 T x10.0018 y40.0004",
        "n16 v1 Taddr:housenumber=99,addr:street=Main x10.002 y40.00044",
        "w2 v1 Tbuilding=yes Nn11,n12,n13,n14,n15,n11",
    ];
    let found = Answers::of(&building);
    assert_eq!(found.line(40.00038, 10.002), "Main 1");
    // Outside of the building the nearest number answers.
    assert_eq!(found.line(40.00042, 10.002), "Main 99");
}

#[test]
fn a_number_has_its_street_from_its_relation_or_its_interpolation_way() {
    let found = Answers::of(&[
        "n1 v1 Taddr:housenumber=12 x10.0 y50",
        "n2 v1 Taddr:housenumber=14,addr:street=Own x10.001 y50",
        "n3 v1 T x9.99 y49.9997",
        "n4 v1 T x10.02 y49.9997",
        "n5 v1 Taddr:housenumber=16 x10.002 y50",
        "n6 v1 Taddr:housenumber=1 x10.0 y51",
        "n7 v1 Taddr:housenumber=9 x10.01 y51",
        "n8 v1 T x9.99 y50.9995",
        "n9 v1 T x10.02 y50.9995",
        "n10 v1 Taddr:housenumber=2 x10.0 y50.9999",
        "w1 v1 Thighway=residential,name=Berg Nn3,n4",
        "w2 v1 Taddr:interpolation=odd,addr:street=Side Nn6,n7",
        "w3 v1 Thighway=residential,name=Main Nn8,n9",
        "r1 v1 Ttype=associatedStreet,name=Wald,addr:postcode=1120 Mn1@house,n2@house",
    ]);
    assert_eq!(found.line(50.0, 10.0), "Wald 12, 1120");
    assert_eq!(found.line(50.0, 10.002), "Berg 16");
    assert_eq!(found.line(50.00001, 10.001), "Own 14");
    assert_eq!(found.line(51.00001, 10.0), "Side 1");
    assert_eq!(found.line(50.9998, 10.0), "Main 2");
}

#[test]
fn a_number_without_street_takes_none_from_far_away() {
    let found = Answers::of(&[
        "n1 v1 Taddr:housenumber=4,addr:city=Hofdorf x29.0 y44.0",
        "n2 v1 T x28.998 y44.0027",
        "n3 v1 T x29.002 y44.0027",
        "w1 v1 Thighway=path,name=Jakobsweg Nn2,n3",
    ]);
    assert_eq!(found.line(44.0, 29.0), "4, Hofdorf");
    // Without a number, the nearest street says where the place is.
    assert_eq!(found.line(44.0018, 29.0), "Jakobsweg");
}

#[test]
fn another_spelling_of_a_street_is_no_other_street() {
    let found = Answers::of(&[
        "n1 v1 T x10.0 y40",
        "n2 v1 T x10.004 y40",
        "n3 v1 Taddr:housenumber=7,addr:street=main%20%st. x10.002 y40.0001",
        "n4 v1 T x10.0 y41",
        "n5 v1 T x10.004 y41",
        "n6 v1 Taddr:housenumber=8,addr:street=Main%20%Road x10.002 y41.0001",
        "n7 v1 T x10.0 y42",
        "n8 v1 T x10.004 y42",
        "n9 v1 Taddr:housenumber=9,addr:street=Lys%20%Road x10.002 y42.0001",
        "w1 v1 Thighway=residential,name=Main%20%Street Nn1,n2",
        "w2 v1 Thighway=residential,name=Main%20%Street Nn4,n5",
        "w3 v1 Thighway=residential,name=Triq%20%il-Lys,int_name=Lys%20%Road Nn7,n8",
    ]);
    assert_eq!(found.line(42.00003, 10.002), "Lys Road 9");
    assert_eq!(found.line(40.00003, 10.002), "Main Street 7");
    assert_eq!(found.line(41.00003, 10.002), "Main Street");
}

#[test]
fn streets_are_what_people_can_go_along_and_squares() {
    let kinds = [
        "razed",
        "proposed",
        "platform",
        "rest_area",
        "corridor",
        "no",
    ];
    let mut lines = vec![
        "n1 v1 T x8.0 y48".to_owned(),
        "n2 v1 T x8.01 y48".to_owned(),
        "n3 v1 T x8.0 y48.001".to_owned(),
        "n4 v1 T x8.01 y48.001".to_owned(),
    ];
    for (id, kind) in (10..).zip(kinds) {
        lines.push(format!("w{id} v1 Thighway={kind},name={kind} Nn1,n2"));
    }
    lines.push("w20 v1 Thighway=steps,name=Stairs Nn3,n4".to_owned());
    let plaza = square(
        31,
        [49.0, 8.0],
        0.002,
        "highway=pedestrian,area=yes,name=Plaza",
    );
    let place = square(41, [49.1, 8.0], 0.002, "place=square,name=Place");
    let ring = square(51, [49.2, 8.0], 0.002, "highway=pedestrian,name=Ring");
    let outer = square(61, [49.3, 8.0], 0.002, "");
    let lake = one("r1 v1 Ttype=multipolygon,highway=pedestrian,name=Piazza Mw61@outer");
    let found = answers(&[lines, plaza, place, ring, outer, lake]);
    assert_eq!(found.line(48.00001, 8.005), "Stairs");
    for (lat, name) in [(49.0, "Plaza"), (49.1, "Place"), (49.3, "Piazza")] {
        let json: Value = serde_json::from_str(&found.asked(lat, 8.0, &[&"--json"])).unwrap();
        let street = &json["nearest"]["street"];
        assert_eq!(
            (&street["name"], street["distance_m"].as_f64()),
            (&name.into(), Some(0.0))
        );
    }
    let json: Value = serde_json::from_str(&found.asked(49.2, 8.0, &[&"--json"])).unwrap();
    assert!(json["nearest"]["street"]["distance_m"].as_f64().unwrap() > 100.0);
}

/// A boundary around a place.
pub fn boundary(id: i64, at: [f64; 2], size: f64, tags: &str) -> Vec<String> {
    square(id, at, size, &format!("boundary=administrative,{tags}"))
}

#[test]
fn a_city_is_not_a_suburb_and_not_a_neighbour() {
    let at = [40.0, 29.0];
    let found = answers(&[
        boundary(1, at, 0.04, "admin_level=4,name=Istanbul,place=province"),
        boundary(11, at, 0.03, "admin_level=6,name=Kadikoy,place=town"),
        boundary(21, at, 0.02, "admin_level=8,name=Caferaga,place=suburb"),
    ]);
    let address = found.address(40.0, 29.0);
    let part = |key: &str| address[key].as_str().unwrap_or_default().to_owned();
    let parts = ["city", "city_kind", "suburb", "state"].map(part);
    assert_eq!(parts, ["Kadikoy", "town", "Caferaga", "Istanbul"]);
    // A label says that a boundary of another level is a city; a neighbour's node is in the neighbour's boundary.
    let mut city = square(31, [49.4, 8.7], 0.05, "");
    city.push("n39 v1 Tplace=city,name=Heidelberg x8.71 y49.41".to_owned());
    city.push(
        "r1 v1 Ttype=boundary,boundary=administrative,admin_level=6,name=Heidelberg Mw31@outer,n39@label"
            .to_owned(),
    );
    let neighbour = boundary(41, [49.4, 8.6], 0.05, "admin_level=8,name=Eppelheim");
    let node = one("n49 v1 Tplace=town,name=Eppelheim x8.645 y49.4");
    let plain = answers(&[city, neighbour.clone(), node.clone()]);
    assert_eq!(plain.address(49.4, 8.66)["city"], "Heidelberg");
    assert_eq!(plain.address(49.4, 8.64)["city"], "Eppelheim");
    let without = answers(&[neighbour, node]);
    assert!(without.address(49.4, 8.66)["city"].is_null());
    // A place that no boundary holds is that of its surroundings.
    let alone = Answers::of(&["n49 v1 Tplace=town,name=Eppelheim x8.645 y49.4"]);
    assert_eq!(alone.address(49.4, 8.66)["city"], "Eppelheim");
}

#[test]
fn a_city_has_the_level_of_its_country() {
    let at = |lat: f64| [lat, 10.0];
    let nested = |id: i64, lat: f64, code: &str| {
        let country = format!("admin_level=2,name=Land,ISO3166-1={code}");
        let parts = [
            boundary(id, at(lat), 0.4, &country),
            boundary(id + 10, at(lat), 0.3, "admin_level=6,name=Six"),
            boundary(id + 20, at(lat), 0.2, "admin_level=7,name=Seven"),
            boundary(id + 30, at(lat), 0.1, "admin_level=8,name=Eight"),
        ];
        parts.concat()
    };
    let found = answers(&[
        nested(100, 50.0, "DE"),
        nested(200, 51.0, "PT"),
        nested(300, 52.0, "TR"),
        nested(400, 53.0, "XX"),
        nested(500, 54.0, "KR"),
    ]);
    for (lat, name) in [
        (50.0, "Eight"),
        (51.0, "Seven"),
        (52.0, "Six"),
        (53.0, "Eight"),
        (54.0, "Six"),
    ] {
        let address = found.address(lat, 10.0);
        assert_eq!(address["city"], name, "{address}");
    }
    assert_eq!(found.address(51.0, 10.0)["suburb"], "Eight");
    assert_eq!(found.address(50.0, 10.0)["country_code"], "de");
    // A province with the name of its capital is not the city of other municipalities.
    let mut province = square(1, [45.0, 9.0], 0.3, "");
    province.push("n9 v1 Tplace=city,name=Milano x9.2 y45.0".to_owned());
    province.push(
        "r1 v1 Ttype=boundary,boundary=administrative,admin_level=6,name=Milano Mw1@outer,n9@admin_centre"
            .to_owned(),
    );
    let town = boundary(11, [45.0, 9.0], 0.1, "admin_level=8,name=Rho");
    assert_eq!(answers(&[province, town]).address(45.0, 9.0)["city"], "Rho");
}

#[test]
fn a_ward_is_no_city_where_the_levels_of_cities_are_known() {
    let at = |lat: f64| [lat, 10.0];
    let nested = |id: i64, lat: f64, code: &str, level: u8| {
        let country = format!("admin_level=2,name=Land,ISO3166-1={code}");
        let ward = format!("admin_level={level},name=Ward");
        [
            boundary(id, at(lat), 0.4, &country),
            boundary(id + 10, at(lat), 0.1, &ward),
        ]
        .concat()
    };
    let found = answers(&[
        nested(100, 50.0, "GB", 10),
        nested(200, 51.0, "KE", 8),
        nested(300, 52.0, "XX", 10),
        nested(400, 53.0, "PT", 8),
        nested(500, 54.0, "PT", 7),
        boundary(600, at(55.0), 0.1, "admin_level=10,name=Ward"),
    ]);
    for lat in [50.0, 51.0, 53.0] {
        assert!(found.address(lat, 10.0)["city"].is_null(), "{lat}");
    }
    for lat in [52.0, 54.0, 55.0] {
        assert_eq!(found.address(lat, 10.0)["city"], "Ward", "{lat}");
    }
}

#[test]
fn languages_hold_for_the_street_and_the_city_of_a_number() {
    let found = Answers::of(&[
        "n1 v1 T x24.0 y60",
        "n2 v1 T x24.004 y60",
        "n5 v1 Taddr:housenumber=12,addr:street=Kaivokatu,addr:city=Helsinki x24.002 y60.0001",
        "n6 v1 Tplace=city,name=Helsinki,name:sv=Helsingfors x24.002 y60.001",
        "w1 v1 Thighway=residential,name=Kaivokatu,name:sv=Brunnsgatan Nn1,n2",
    ]);
    let in_language = |lang: &str| found.asked(60.0001, 24.002, &[&"--lang", &lang]);
    assert_eq!(in_language("sv"), "Brunnsgatan 12, Helsingfors");
    // A language that nothing is named in changes nothing.
    assert_eq!(in_language("de"), "Kaivokatu 12, Helsinki");
    assert_eq!(found.line(60.0001, 24.002), "Kaivokatu 12, Helsinki");
}

#[test]
fn an_answer_has_every_part_of_an_address() {
    let country = boundary(
        1,
        [48.0, 2.0],
        0.5,
        "admin_level=2,name=France,ISO3166-1:alpha2=FR",
    );
    let other = boundary(
        11,
        [52.0, 13.0],
        0.5,
        "admin_level=2,name=Land,ISO3166-1:alpha2=DE",
    );
    let nodes = [
        "n20 v1 Taddr:conscriptionnumber=123,addr:place=Lhota x11 y50",
        "n21 v1 Taddr:housename=Rose%20%Cottage,addr:street=Lane x12 y50",
        "n22 v1 Taddr:housenumber=4,addr:unit=B,addr:street=Lane x13 y50",
        "n23 v1 Taddr:block_number=3,addr:housenumber=7,addr:neighbourhood=Ginza x15 y50",
        "n24 v1 Taddr:housenumber=5,addr:street=Rue%20%Haute,amenity=townhall,name=Mairie x2 y48",
        "n25 v1 Taddr:housenumber=5,addr:street=Weg x13 y52",
        "n26 v1 Taddr:housenumber=%20%,addr:street=Blank x20 y50",
        "n27 v1 Taddr:housenumber=1,addr:street=Lane,addr:postcode=9,addr:city=X,addr:country=GB x21 y50",
        "n28 v1 Taddr:housenumber=1,addr:street=Lane,addr:postcode=9,addr:city=X,addr:country=US,addr:state=MD x22 y50",
        "n29 v1 Taddr:housenumber=1,addr:street=Lane,addr:postcode=9,addr:city=X,addr:country=IT,addr:state=MI x23 y50",
    ];
    let nodes = nodes.map(str::to_owned).to_vec();
    let found = answers(&[country, other, nodes]);
    for (lat, lon, line) in [
        (50.0, 11.0, "Lhota 123"),
        (50.0, 12.0, "Rose Cottage, Lane"),
        (50.0, 13.0, "Lane 4, unit B"),
        (50.0, 15.0, "Ginza, block 3, 7"),
        (48.0, 2.0, "5 Rue Haute, France"),
        (52.0, 13.0, "Weg 5, Land"),
        (50.0, 20.0, "nothing is known here"),
        (50.0, 21.0, "1 Lane, X 9"),
        (50.0, 22.0, "1 Lane, X, MD 9"),
        (50.0, 23.0, "Lane 1, 9 X, MI"),
    ] {
        assert_eq!(found.line(lat, lon), line);
    }
    let json: Value = serde_json::from_str(&found.asked(48.0, 2.0, &[&"--json"])).unwrap();
    let object = &json["object"];
    assert_eq!(
        (&object["category"], &object["kind"], &object["name"]),
        (&"amenity".into(), &"townhall".into(), &"Mairie".into())
    );
    assert_eq!(json["address"]["country_code"], "fr");
}

#[test]
fn the_postcode_of_a_street_is_that_of_its_houses() {
    let found = Answers::of(&[
        "n1 v1 T x10.0 y40",
        "n2 v1 T x10.004 y40",
        "n3 v1 Taddr:housenumber=7,addr:street=Main x10.001 y40.0001",
        "n4 v1 Taddr:housenumber=9,addr:street=Main,addr:postcode=8 x10.003 y40.0001",
        "w1 v1 Thighway=residential,name=Main,postal_code=5 Nn1,n2",
    ]);
    assert_eq!(found.line(40.0001, 10.001), "Main 7, 5");
    assert_eq!(found.line(40.0001, 10.003), "Main 9, 8");
}

#[test]
fn an_index_of_an_older_version_is_refused_with_what_to_do() {
    let found = Answers::of(&["n1 v1 Taddr:housenumber=7,addr:street=Main x10.001 y40.0001"]);
    let manifest = found.index.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let old = text.replace("\"version\": 4", "\"version\": 3");
    assert_ne!(old, text);
    std::fs::write(&manifest, old).unwrap();
    let error = crate::common::run_fail(&[&"geocode", &found.index, &"40", &"10"]);
    assert!(error.contains("build the index again"), "{error}");
    // A new index takes the place of the old one, and of its file.
    let input = found.directory.path().join("in.opl");
    run_ok(&[&"build-geocode-index", &input, &"-O", &"-o", &found.index]);
    assert_eq!(found.line(40.0001, 10.001), "Main 7");
    assert_eq!(std::fs::read_dir(&found.index).unwrap().count(), 2);
}

#[test]
fn a_file_in_place_of_an_index_is_refused_with_the_command_that_makes_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("in.osm.pbf");
    std::fs::write(&file, "").unwrap();
    let error = crate::common::run_fail(&[&"geocode", &file, &"40", &"10"]);
    assert!(error.contains("build-geocode-index"), "{error}");
}

/// The answers about a place and the lines of a map around it, or the error of the index.
fn everything(index: &std::path::Path) -> pbfhogg::Result<String> {
    let index = GeocodeIndex::open(index)?;
    let place = Location::from_degrees(40.0, 10.0).unwrap();
    let mut found = index.reverse(place, &QueryOptions::default())?.json();
    let bbox = index.bbox()?;
    let mut walk = index.map_walk(&bbox, 100)?;
    let mut visit = |_: &MapWalk, piece: MapPiece<'_>| found += &format!("{piece:?}");
    while walk.advance(&index, 3, &mut visit)? {}
    Ok(found)
}

#[test]
fn a_damaged_index_gives_the_same_answers_or_an_error_that_names_the_file() {
    let found = answers(&[
        square(
            1,
            [40.0, 10.0],
            0.001,
            "name=Town,boundary=administrative,admin_level=8,place=town",
        ),
        one("n21 v1 Taddr:housenumber=7,addr:street=Main x10.0001 y40.0001"),
        one("n22 v1 T x9.999 y40.0002"),
        one("n23 v1 T x10.001 y40.0002"),
        one("w21 v1 Thighway=residential,name=Main Nn22,n23"),
        one("w22 v1 Thighway=service Nn22,n23"),
    ]);
    let good = everything(&found.index).unwrap();
    assert!(
        good.contains("Main") && good.contains("Town") && good.contains("Boundary"),
        "{good}"
    );
    let mut files = std::fs::read_dir(&found.index).unwrap();
    let file = files.find_map(|file| {
        let path = file.unwrap().path();
        (path.extension()? != "json").then_some(path)
    });
    let file = file.unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let check = |damaged: &[u8], at: usize, may_be_good: bool| {
        std::fs::write(&file, damaged).unwrap();
        match everything(&found.index) {
            Ok(answers) => assert!(may_be_good && answers == good, "{at}: {answers}"),
            Err(error) => assert!(error.to_string().contains(name), "{at}: {error}"),
        }
    };
    for at in (0..bytes.len()).step_by((bytes.len() / 200).max(1)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        check(&damaged, at, true);
        check(&bytes[..at], at, false);
    }
}
