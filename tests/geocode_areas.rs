//! The areas and places in the answers of `geocode`: which of them is the city, and which names what is where.

use crate::common::service::Service;
use crate::geocode_rules::{Answers, answers, boundary, one, square};
use serde_json::{Value, json};

/// The parts of an address at a place, by their keys.
fn parts<const COUNT: usize>(
    found: &Answers,
    [lat, lon]: [f64; 2],
    keys: [&str; COUNT],
) -> [Value; COUNT] {
    let address = found.address(lat, lon);
    keys.map(|key| address[key].clone())
}

/// A state with the name of a city, in a country. The state is from 13.0 to 13.8 degrees east, and a part of it is its
/// east.
fn state(name: &str) -> Vec<String> {
    let country = "admin_level=2,name=Deutschland,ISO3166-1=DE";
    [
        boundary(1, [52.0, 13.0], 5.0, country),
        boundary(11, [52.5, 13.4], 0.4, &format!("admin_level=4,{name}")),
        boundary(21, [52.5, 13.7], 0.1, "admin_level=9,name=Lichtenberg"),
        boundary(31, [52.5, 13.75], 0.05, "admin_level=10,name=Falkenberg"),
        // Neighbours, outside of the state.
        one("n41 v1 Tplace=village,name=Ahrensfelde x13.82 y52.5"),
        one("n42 v1 Tplace=hamlet,name=Hof x13.801 y52.5"),
        one("n43 v1 Tplace=town,name=Bernau x13.81 y52.51"),
    ]
    .concat()
}

#[test]
fn a_city_that_is_a_state_is_once_in_the_line_with_and_without_a_postcode() {
    let city = one("n51 v1 Tplace=city,name=Berlin x13.4 y52.5");
    for (postcode, expected) in [
        ("", "Weg 1, Falkenberg, Berlin, Deutschland"),
        (
            ",addr:postcode=13057",
            "Weg 1, Falkenberg, 13057 Berlin, Deutschland",
        ),
    ] {
        let house = "n52 v1 Taddr:housenumber=1,addr:street=Weg";
        let house = one(&format!("{house}{postcode} x13.795 y52.5"));
        let found = answers(&[state("name=Berlin"), city.clone(), house]);
        assert_eq!(found.line(52.5, 13.795), expected);
    }
}

#[test]
fn a_state_with_the_name_of_a_city_in_it_is_the_city() {
    for (name, node) in [
        ("name=Berlin", "name=Berlin"),
        ("name=Wien", "name=Vienna,name:de=Wien"),
        (
            "name=Région,name:nl=Brussel",
            "name=Bruxelles%20%-%20%Brussel",
        ),
        ("name=Koln", "name=Köln"),
        ("name=Freie%20%Stadt,short_name=Hamburg", "name=Hamburg"),
    ] {
        let city = one(&format!("n51 v1 Tplace=city,{node} x13.4 y52.5"));
        let found = answers(&[state(name), city]);
        let at = [52.5, 13.795];
        let found = parts(
            &found,
            at,
            ["suburb", "city", "state", "city_kind", "county"],
        );
        let [suburb, city, state, kind, county] = found;
        assert_eq!(city, state, "{name}");
        assert_eq!([suburb, kind], ["Falkenberg", "city"], "{name}");
        assert!(!city.is_null() && county.is_null(), "{name}");
    }
    let city = one("n51 v1 Tplace=city,name=Berlin x13.4 y52.5");
    let house = "n52 v1 Taddr:housenumber=1,addr:street=Weg,addr:city=Berlin x13.795 y52.51";
    let found = answers(&[state("name=Berlin"), city, one(house)]);
    assert_eq!(found.line(52.5, 13.795), "Falkenberg, Berlin, Deutschland");
    let line = "Weg 1, Falkenberg, Berlin, Deutschland";
    assert_eq!(found.line(52.51, 13.795), line);
}

#[test]
fn a_place_outside_of_a_boundary_names_nothing_inside() {
    // Without a city in the state, nothing says what the city is. The neighbours are not it.
    let found = answers(&[state("name=Berlin")]);
    let address = found.address(52.5, 13.795);
    assert!(address["city"].is_null(), "{address}");
    // A county, which is no city.
    let county = boundary(61, [50.0, 10.0], 0.1, "admin_level=6,name=Kreis");
    let outside = one("n71 v1 Tplace=village,name=Outside x10.103 y50");
    let inside = one("n72 v1 Tplace=village,name=Inside x9.905 y50");
    let found = answers(&[county, outside, inside]);
    assert!(found.address(50.0, 10.099)["city"].is_null());
    assert_eq!(found.address(50.0, 9.92)["city"], "Inside");
    // Outside of the county, its village is still that of the neighbourhood.
    assert_eq!(found.address(50.0, 10.11)["city"], "Outside");
}

#[test]
fn a_city_names_its_parts_though_its_node_is_in_one_of_them() {
    let country = boundary(1, [51.5, 0.0], 2.0, "admin_level=2,name=UK,ISO3166-1=GB");
    let wards = [
        boundary(11, [51.5, 0.0], 0.02, "admin_level=8,name=West"),
        boundary(21, [51.5, 0.04], 0.02, "admin_level=8,name=East"),
    ];
    let city = one("n31 v1 Tplace=city,name=London x0.01 y51.5");
    let found = answers(&[country, wards.concat(), city]);
    for lon in [0.0, 0.04] {
        assert_eq!(found.address(51.5, lon)["city"], "London");
    }
}

#[test]
fn a_province_with_the_name_of_its_capital_is_not_the_city() {
    // The capital has a boundary of its own.
    let italy = [
        boundary(
            1,
            [45.4, 9.2],
            3.0,
            "admin_level=2,name=Italia,ISO3166-1=IT",
        ),
        boundary(11, [45.4, 9.2], 0.5, "admin_level=6,name=Milano"),
        boundary(21, [45.4, 9.2], 0.1, "admin_level=8,name=Milano"),
        boundary(31, [45.4, 9.5], 0.1, "admin_level=8,name=Rho"),
        one("n41 v1 Tplace=city,name=Milano x9.2 y45.4"),
    ];
    let found = answers(&italy);
    let keys = ["city", "county"];
    assert_eq!(parts(&found, [45.4, 9.5], keys), ["Rho", "Milano"]);
    assert_eq!(parts(&found, [45.4, 9.25], keys), ["Milano", "Milano"]);
    assert!(found.address(45.8, 9.6)["city"].is_null());
    // The capital has none, but there are other towns.
    let argentina = [
        boundary(
            1,
            [-31.0, -64.0],
            5.0,
            "admin_level=2,name=Argentina,ISO3166-1=AR",
        ),
        boundary(11, [-31.0, -64.0], 1.0, "admin_level=4,name=Córdoba"),
        one("n21 v1 Tplace=city,name=Córdoba x-64.2 y-31.4"),
        one("n22 v1 Tplace=town,name=Dolores x-64.5 y-30.9"),
        one("n23 v1 Tplace=village,name=Cosquín x-64.0 y-31.0"),
    ];
    let found = answers(&argentina);
    assert_eq!(found.address(-31.01, -64.0)["city"], "Cosquín");
    assert_eq!(found.address(-31.4, -64.2)["city"], "Córdoba");
    assert!(found.address(-30.2, -63.2)["city"].is_null());
}

#[test]
fn a_district_with_the_name_of_its_town_is_the_city_where_no_place_is_near() {
    let found = answers(&[
        boundary(1, [54.5, -1.5], 2.0, "admin_level=2,name=UK,ISO3166-1=GB"),
        boundary(11, [54.5, -1.5], 0.2, "admin_level=6,name=Darlington"),
        one("n21 v1 Tplace=town,name=Darlington x-1.55 y54.52"),
        one("n22 v1 Tplace=village,name=Hurworth x-1.5 y54.45"),
    ]);
    // A country whose municipalities have no boundaries: a district is not only its town.
    assert_eq!(found.address(54.451, -1.5)["city"], "Hurworth");
    let keys = ["city", "city_kind"];
    assert_eq!(parts(&found, [54.68, -1.31], keys), ["Darlington", "town"]);
}

#[test]
fn a_city_whose_parts_have_the_level_of_municipalities_is_the_city() {
    let boundaries = |tags: &str| {
        let city = format!("admin_level=6,name=Košice{tags}");
        [
            boundary(
                1,
                [48.7, 21.2],
                3.0,
                "admin_level=2,name=Slovensko,ISO3166-1=SK",
            ),
            boundary(11, [48.7, 21.2], 0.2, &city),
            boundary(21, [48.7, 21.15], 0.05, "admin_level=9,name=Mesto"),
            boundary(31, [48.7, 21.3], 0.05, "admin_level=9,name=Sever"),
            one("n41 v1 Taddr:housenumber=1,addr:street=S,addr:city=Kosice x21.3 y48.73"),
        ]
        .concat()
    };
    let keys = ["city", "suburb", "county"];
    let node = one("n51 v1 Tplace=city,name=Kosice x21.15 y48.7");
    for parts_of_file in [vec![boundaries(",place=city")], vec![boundaries(""), node]] {
        let found = answers(&parts_of_file);
        let expected = [json!("Košice"), json!("Sever"), Value::Null];
        assert_eq!(parts(&found, [48.7, 21.3], keys), expected);
        // A house that names the city is in the same boundaries.
        let expected = [json!("Kosice"), json!("Sever"), Value::Null];
        assert_eq!(parts(&found, [48.73, 21.3], keys), expected);
    }
    // If only the address names the city, the boundary of this name is the municipality.
    let found = answers(&[boundaries("")]);
    assert_eq!(found.address(48.7, 21.3)["city"], "Sever");
    let expected = [json!("Kosice"), json!("Sever"), Value::Null];
    assert_eq!(parts(&found, [48.73, 21.3], keys), expected);
}

#[test]
fn the_boundary_that_an_address_names_as_its_city_is_no_county() {
    let named = |name: &str, written: &str| {
        let county = format!("admin_level=6,{name}");
        let house = format!("n31 v1 Taddr:housenumber=1,addr:city={written} x10 y50");
        answers(&[
            boundary(1, [50.0, 10.0], 2.0, "admin_level=2,name=Land,ISO3166-1=DE"),
            boundary(11, [50.0, 10.0], 0.2, &county),
            boundary(21, [50.0, 10.0], 0.1, "admin_level=10,name=Mitte"),
            one(&house),
        ])
    };
    for (name, written) in [
        ("name=Bautzen%20%-%20%Budyšin", "Bautzen"),
        ("name=Biel/Bienne", "Bienne"),
        ("name=Bruxelles,name:nl=Brussel", "Brussel"),
        (
            "name=Frankfurt%20%am%20%Main,short_name=Frankfurt",
            "Frankfurt",
        ),
        (
            "name=Plauen,official_name=Stadt%20%Plauen",
            "STADT%20%PLAUEN",
        ),
    ] {
        let found = named(name, written);
        let [county, suburb, city] = parts(&found, [50.0, 10.0], ["county", "suburb", "city"]);
        assert!(county.is_null(), "{name}: {county}");
        assert_eq!(suburb, "Mitte");
        assert_eq!(city, written.replace("%20%", " "));
    }
    // The prefix of a name is no name.
    let found = named("name=Main-Tauber-Kreis,name:prefix=Landkreis", "Landkreis");
    assert_eq!(found.address(50.0, 10.0)["county"], "Main-Tauber-Kreis");
}

#[test]
fn a_city_that_is_named_is_shown_once_and_is_around_the_place() {
    let found = answers(&[
        boundary(
            1,
            [48.7, 21.2],
            3.0,
            "admin_level=2,name=Slovensko,ISO3166-1=SK",
        ),
        boundary(
            11,
            [48.7, 21.2],
            0.2,
            "admin_level=6,name=Kosice,place=city",
        ),
        boundary(21, [48.7, 21.2], 0.1, "admin_level=9,name=Mesto"),
        one("n31 v1 Taddr:housenumber=1,addr:street=S,addr:city=Kosice x21.2 y48.7"),
        one("n32 v1 Taddr:housenumber=2,addr:street=S,addr:city=Dorf x21.39 y48.7"),
        one("n33 v1 Tplace=village,name=Dorf x21.41 y48.7"),
    ]);
    let service = Service::start(&found.index);
    let at = |lon: f64| service.json(&format!("/reverse?lat=48.7&lon={lon}&zoom=10"));
    assert_eq!(at(21.2)["display_name"], "Kosice, Slovensko");
    assert_eq!(at(21.2)["osm_id"], 11);
    // The village that the address names is outside of the city.
    assert_eq!(at(21.39)["osm_id"], 11);
    assert_eq!(found.address(48.7, 21.39)["city"], "Dorf");
}

#[test]
fn the_smaller_one_of_nested_areas_answers() {
    let at = [4.5, 4.5];
    let nested = |id: i64, sizes: [f64; 2], of: &dyn Fn(i64, f64) -> Vec<String>| {
        let [first, second] = sizes;
        [of(id, first), of(id + 10, second)].concat()
    };
    let name = |size: f64| if size < 0.2 { "Small" } else { "Large" };
    let postal = |id, size: f64| {
        let code = if size < 0.2 { "10001" } else { "10" };
        let tags = format!("boundary=postal_code,postal_code={code}");
        square(id, at, size, &tags)
    };
    let suburb = |id, size| square(id, at, size, &format!("place=suburb,name={}", name(size)));
    let county = |id, size| boundary(id, at, size, &format!("admin_level=6,name={}", name(size)));
    // Whichever has the lower id.
    for sizes in [[0.1, 0.5], [0.5, 0.1]] {
        let found = answers(&[
            nested(1, sizes, &postal),
            nested(21, sizes, &suburb),
            nested(41, sizes, &county),
        ]);
        let keys = ["postcode", "suburb", "county"];
        assert_eq!(parts(&found, at, keys), ["10001", "Small", "Small"]);
        assert_eq!(parts(&found, [4.9, 4.5], keys), ["10", "Large", "Large"]);
    }
}
