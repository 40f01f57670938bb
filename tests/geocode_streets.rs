//! The streets and house numbers that `geocode` answers with: names in all spellings, missing numbers, interpolation,
//! and the nodes of houses.

use crate::common::run_ok;
use pbfhogg::Location;
use pbfhogg::geocode::{GeocodeIndex, QueryOptions};
use serde_json::Value;
use tempfile::TempDir;

/// The tags of an object.
type Tags<'t> = &'t [(&'t str, &'t str)];

/// An index of a file of OPL.
struct Index {
    index: GeocodeIndex,
    _directory: TempDir,
}

impl Index {
    fn of(lines: &[String]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [input, path] = ["in.opl", "index"].map(|name| directory.path().join(name));
        let mut lines = lines.to_vec();
        lines.sort_by_key(|line| {
            let (object, _) = line.split_once(' ').unwrap();
            (
                "nwr".find(&object[..1]),
                object[1..].parse::<i64>().unwrap(),
            )
        });
        std::fs::write(&input, lines.join("\n") + "\n").unwrap();
        run_ok(&[&"build-geocode-index", &input, &"-o", &path]);
        Self {
            index: GeocodeIndex::open(&path).unwrap(),
            _directory: directory,
        }
    }

    /// The answer about a place.
    fn answer(&self, lat: f64, lon: f64) -> Value {
        let place = Location::from_degrees(lat, lon).unwrap();
        let answer = self.index.reverse(place, &QueryOptions::default()).unwrap();
        serde_json::from_str(&answer.json()).unwrap()
    }

    fn line(&self, lat: f64, lon: f64) -> String {
        self.answer(lat, lon)["label"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// A text as the value of a tag in OPL.
fn escaped(text: &str) -> String {
    let escaped = |char: char| match char {
        char if char.is_ascii_alphanumeric() => char.to_string(),
        char => format!("%{:x}%", u32::from(char)),
    };
    text.chars().map(escaped).collect()
}

/// A street to the east, and a house 11 m to the north of it. Ids begin at `id`.
fn street_and_house(id: i64, lat: f64, names: Tags<'_>, house: Tags<'_>) -> Vec<String> {
    let tags = |tags: Tags<'_>| -> String {
        let tags = tags
            .iter()
            .map(|(key, value)| format!(",{key}={}", escaped(value)));
        tags.collect()
    };
    let [second, third] = [id + 1, id + 2];
    vec![
        format!("n{id} v1 T x10.0 y{lat:.7}"),
        format!("n{second} v1 T x10.004 y{lat:.7}"),
        format!(
            "n{third} v1 Tsource=a{} x10.002 y{:.7}",
            tags(house),
            lat + 0.0001
        ),
        format!(
            "w{id} v1 Thighway=residential{} Nn{id},n{second}",
            tags(names)
        ),
    ]
}

/// The line at a place beside a street with names, 3 m from it, and 8 m from a house of a street called `written`.
fn lines_beside(cases: &[(Tags<'_>, &str)]) -> Vec<String> {
    let lat = |number: usize| 40.0 + number as f64 * 0.1;
    let parts = cases.iter().enumerate().map(|(number, (names, written))| {
        let house = [("addr:housenumber", "7"), ("addr:street", *written)];
        street_and_house(1 + 10 * number as i64, lat(number), names, &house)
    });
    let index = Index::of(&parts.flatten().collect::<Vec<_>>());
    let numbers = 0..cases.len();
    numbers
        .map(|number| index.line(lat(number) + 0.00003, 10.002))
        .collect()
}

#[test]
fn a_house_is_on_a_street_that_has_its_name_in_a_list_or_in_another_spelling() {
    let cases: [(Tags<'_>, &str); 12] = [
        (
            &[
                ("name", "High Street"),
                ("alt_name", "Market Place;Old Road"),
            ],
            "Old Road",
        ),
        (
            &[("name", "High Street"), ("alt_name", "A; Market Place ")],
            "Market Pl.",
        ),
        (&[("name", "High Street"), ("name_1", "Route 5")], "Route 5"),
        (&[("name", "High Street;Low Street")], "Low St"),
        (&[("name", "High Street")], "Low Street;High Street"),
        (&[("name", "Невский проспект")], "Невскии\u{306} пр."),
        (&[("name", "вулиця Шевченка")], "вул. Шевченка"),
        (&[("name", "проспект Перемоги")], "пр-т Перемоги"),
        (&[("name", "ガード通り")], "カ\u{3099}ート\u{3099}通り"),
        (&[("name", "Mount Pleasant Road")], "Mt Pleasant Rd"),
        (&[("name", "Strasse"), ("alt_name:de", "Berg;Tal")], "Tal"),
        (&[("name", "Évora"), ("old_name", "Alt")], "E\u{301}vora"),
    ];
    let found = lines_beside(&cases);
    let with_number = |line: &String| line.ends_with(" 7");
    assert!(found.iter().all(with_number), "{found:#?}");
    assert_eq!(found[4], "High Street 7");
    assert_eq!(found[9], "Mount Pleasant Road 7");
}

#[test]
fn another_street_stays_another_street_in_lists_and_other_scripts() {
    let cases: [(Tags<'_>, &str); 6] = [
        (
            &[
                ("name", "High Street"),
                ("alt_name", "Market Place;Old Road"),
            ],
            "Market Place Old Road",
        ),
        (&[("name", "вулиця Шевченка")], "провулок Шевченка"),
        (&[("name", "пр-т Ленина")], "пр-д Ленина"),
        (&[("name", "かき通り")], "がぎ通り"),
        (&[("name", "Mount Street")], "Mountain Street"),
        (&[("name", "A"), ("name:etymology", "Goethe")], "Goethe"),
    ];
    let found = lines_beside(&cases);
    for (line, (names, _)) in found.iter().zip(&cases) {
        assert_eq!(line, names[0].1);
    }
}

#[test]
fn a_street_with_a_name_in_a_language_or_of_a_side_has_this_name() {
    let names: [(Tags<'_>, &str); 8] = [
        (&[("name:fr", "Rue")], "Rue"),
        (&[("name:sv", "Gatan"), ("name:fi", "Katu")], "Katu"),
        (&[("name", " "), ("name:sr-Latn", "Ulica")], "Ulica"),
        (&[("name:left", "Links")], "Links"),
        (&[("alt_name", "Erste;Zweite")], "Erste"),
        (&[("name:etymology:wikidata", "Q1")], ""),
        (&[("noname", "yes")], ""),
        (&[("old_name", "Alt")], ""),
    ];
    let lat = |number: usize| 50.0 + number as f64 * 0.1;
    let parts = names.iter().enumerate().map(|(number, (names, _))| {
        street_and_house(1 + 10 * number as i64, lat(number), names, &[])
    });
    let index = Index::of(&parts.flatten().collect::<Vec<_>>());
    for (number, (_, name)) in names.iter().enumerate() {
        let found = index.answer(lat(number) + 0.00003, 10.002);
        let street = &found["nearest"]["street"]["name"];
        assert_eq!(street.as_str().unwrap_or_default(), *name, "{found}");
        assert_eq!(found["nearest"]["road"].is_object(), name.is_empty());
    }
}

#[test]
fn a_place_beside_a_street_with_two_names_is_on_its_own_side() {
    let sides = [("name:left", "Links"), ("name:right", "Rechts")];
    let both = [&sides[..], &[("name", "Links / Rechts")]].concat();
    let own = [&sides[..], &[("name", "Grenze")]].concat();
    let mut lines = street_and_house(1, 48.0, &sides, &[]);
    lines.extend(street_and_house(11, 48.1, &both, &[]));
    lines.extend(street_and_house(21, 48.2, &own, &[]));
    let house = [("addr:housenumber", "5"), ("addr:street", "Links")];
    lines.extend(street_and_house(31, 48.3, &sides, &house));
    let index = Index::of(&lines);
    // The streets lead to the east, so their left is in the north.
    for lat in [48.0, 48.1] {
        assert_eq!(index.line(lat + 0.0002, 10.002), "Links");
        assert_eq!(index.line(lat - 0.0002, 10.002), "Rechts");
    }
    assert_eq!(index.line(48.2002, 10.002), "Grenze");
    assert_eq!(index.line(48.30008, 10.002), "Links 5");
}

#[test]
fn a_value_that_says_no_is_no_house_number() {
    let values = [
        "no", "None", "NO ", "", " ", "-", "?", "s/n", "б/н", "unknown",
    ];
    let lat = |number: usize| 45.0 + number as f64 * 0.1;
    let parts = values.iter().enumerate().map(|(number, value)| {
        let house = [("addr:housenumber", *value), ("addr:street", "Main")];
        street_and_house(
            1 + 10 * number as i64,
            lat(number),
            &[("name", "Main")],
            &house,
        )
    });
    let mut lines: Vec<String> = parts.flatten().collect();
    // The nearest house with a number answers, and a house with a name has none.
    lines.push("n901 v1 Taddr:housenumber=3,addr:street=Main x10.0021 y45.0001".to_owned());
    lines.push(
        "n902 v1 Taddr:housenumber=no,addr:housename=Mill,addr:street=Lane x10.0 y44.0".to_owned(),
    );
    let index = Index::of(&lines);
    for (number, value) in values.iter().enumerate() {
        let found = index.answer(lat(number) + 0.0001, 10.002);
        let expected = if number == 0 { "Main 3" } else { "Main" };
        assert_eq!(found["label"], expected, "{value:?}");
        assert_eq!(
            found["nearest"]["address"].is_object(),
            number == 0,
            "{value:?}"
        );
    }
    let named = index.answer(44.0, 10.0);
    assert_eq!(named["label"], "Mill, Lane");
    assert!(named["address"]["house_number"].is_null());
    // Words that only begin like these are numbers.
    let own = street_and_house(
        1,
        45.0,
        &[],
        &[("addr:housenumber", "No 5"), ("addr:street", "X")],
    );
    assert_eq!(Index::of(&own).line(45.0001, 10.002), "X No 5");
}

/// The numbers of places along an interpolation way from one number to another.
fn along(cases: &[(&str, &str, &str)]) -> Vec<Vec<String>> {
    let lat = |number: usize| 50.0 + number as f64 * 0.1;
    let mut lines = Vec::new();
    for (number, (from, to, rule)) in cases.iter().enumerate() {
        let (id, lat) = (1 + 10 * number as i64, lat(number));
        for (id, lon, value) in [(id, "10.0", from), (id + 1, "10.006", to)] {
            let value = escaped(value);
            lines.push(format!(
                "n{id} v1 Taddr:housenumber={value} x{lon} y{lat:.7}"
            ));
        }
        let rule = escaped(rule);
        lines.push(format!(
            "w{id} v1 Taddr:interpolation={rule},addr:street=Long Nn{id},n{}",
            id + 1
        ));
    }
    let index = Index::of(&lines);
    let of_case = |number: usize| {
        let numbers = [0.001, 0.002, 0.003, 0.004, 0.005].map(|east| {
            let answer = index.answer(lat(number) + 0.00001, 10.0 + east);
            let found = answer["address"]["house_number"].as_str();
            found.unwrap_or_default().to_owned()
        });
        let mut numbers = numbers.to_vec();
        numbers.dedup();
        numbers
    };
    (0..cases.len()).map(of_case).collect()
}

#[test]
fn numbers_are_interpolated_as_the_tag_and_the_ends_have_them() {
    let cases = [
        ("2", "14", "Even ", "4 6 8 10 12"),
        ("A", "G", "alphabetic", "B C D E F"),
        ("94-01", "94-13", "odd", "94-03 94-05 94-07 94-09 94-11"),
        ("1", "13", "even", "3 5 7 9 11"),
        ("12", "12f", "Alphabetic", "12a 12b 12c 12d 12e"),
    ];
    let found = along(&cases.map(|(from, to, rule, _)| (from, to, rule)));
    for (found, (from, to, _, expected)) in found.iter().zip(cases) {
        assert_eq!(found.join(" "), expected, "{from} {to}");
    }
}

#[test]
fn no_number_is_interpolated_where_the_ends_contradict_each_other() {
    let cases = [
        ("1", "10", "even"),
        ("94-01", "96-21", "odd"),
        ("12a", "12f", "all"),
        ("2", "8", "some"),
        ("2", "s/n", "even"),
        ("12,14", "20", "even"),
        ("1", "2000000001", "odd"),
        ("N2000000000", "N2", "all"),
    ];
    for (found, case) in along(&cases).iter().zip(cases) {
        assert_eq!(found.as_slice(), [""], "{case:?}");
    }
}

/// The report of the build of an index of a file of OPL.
fn build_report(lines: &[String]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let [input, path] = ["in.opl", "index"].map(|name| directory.path().join(name));
    std::fs::write(&input, lines.join("\n") + "\n").unwrap();
    let built = run_ok(&[&"build-geocode-index", &"--json", &input, &"-o", &path]);
    serde_json::from_slice(&built.stdout).unwrap()
}

#[test]
fn a_build_counts_the_ways_and_tags_that_are_too_long() {
    let list: Vec<String> = (1..100).map(|number| number.to_string()).collect();
    let (short, long) = (list[..80].join(";"), list.join(";"));
    assert!(short.len() < 255 && long.len() > 255);
    // Characters count, not bytes.
    let street = "\u{3042}".repeat(255);
    let refs = |count: usize| ["n1", "n2"].repeat(count / 2).join(",");
    let lines = [
        format!("n1 v1 Taddr:housenumber=1,addr:street={street} x10 y50"),
        "n2 v1 Taddr:housenumber=2000000001 x10.001 y50".to_owned(),
        "n3 v1 Taddr:housenumber=9 x10.002 y50".to_owned(),
        format!("n4 v1 Taddr:housenumber={short} x10 y50.1"),
        format!("n5 v1 Taddr:housenumber={long},addr:street=A x10 y50.2"),
        format!("n6 v1 Taddr:housenumber=5,addr:street=A{street} x10 y50.2"),
        "w1 v1 Taddr:interpolation=odd Nn1,n2".to_owned(),
        "w2 v1 Taddr:interpolation=odd Nn1,n3".to_owned(),
        "w3 v1 Taddr:interpolation=even Nn3,n4".to_owned(),
        format!("w4 v1 Taddr:interpolation=odd Nn1,{}", refs(2000)),
        format!("w5 v1 Taddr:interpolation=2000000000 N{}", refs(2000)),
    ];
    let report = build_report(&lines);
    assert_eq!(report["not_interpolated"], 2, "{report}");
    assert_eq!(report["long_tags"], 2, "{report}");
    assert_eq!(report["counts"]["interpolations"], 4, "{report}");
    assert_eq!(report["counts"]["addresses"], 5, "{report}");
}

#[test]
fn the_tags_of_the_nodes_of_a_way_are_read_once() {
    // A node with many tags of an address, which a way has again and again.
    let tags: Vec<String> = (0..2000)
        .map(|number| format!("addr:x{number}=1"))
        .collect();
    let tags = tags.join(",");
    let mut lines = vec![
        format!("n1 v1 Taddr:housenumber=1,addr:city=B,{tags} x10 y50"),
        format!("n2 v1 Taddr:housenumber=9,addr:street=A,{tags} x10.001 y50"),
    ];
    let refs = ["n1", "n2"].repeat(1000).join(",");
    lines.extend((1..6).map(|id| format!("w{id} v1 Taddr:interpolation=odd N{refs}")));
    let begin = std::time::Instant::now();
    let report = build_report(&lines);
    assert_eq!(report["counts"]["interpolations"], 5, "{report}");
    assert!(begin.elapsed().as_secs() < 10);
    let index = Index::of(&lines);
    let answer = index.answer(50.00001, 10.0005);
    let address = &answer["address"];
    assert_eq!(
        (&address["street"], &address["city"]),
        (&"A".into(), &"B".into()),
        "{address}"
    );
}

/// A square around a place as nodes and a closed way, whose ids begin at `id`.
fn square(id: i64, [lat, lon]: [f64; 2], tags: &str) -> Vec<String> {
    let corners = [[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]];
    let nodes = (id..).zip(corners).map(|(id, [north, east])| {
        let (lat, lon) = (lat + north * 0.0002, lon + east * 0.0002);
        format!("n{id} v1 T x{lon:.7} y{lat:.7}")
    });
    let mut lines: Vec<String> = nodes.collect();
    let refs = [0, 1, 2, 3, 0].map(|at| format!("n{}", id + at));
    lines.push(format!("w{id} v1 T{tags} N{}", refs.join(",")));
    lines
}

#[test]
fn at_a_node_in_a_building_the_node_answers_and_elsewhere_in_it_the_building() {
    let building = "building=yes,addr:housenumber=5,addr:street=Main,addr:postcode=99";
    let mut lines = square(1, [49.0, 8.0], building);
    lines.extend(square(11, [49.1, 8.0], building));
    lines.extend(square(21, [49.2, 8.0], building));
    lines.extend(
        [
            "n6 v1 Taddr:housenumber=6 x8.0001 y49.0001",
            "n16 v1 Taddr:housename=Mill,addr:street=Main x8.0001 y49.1001",
            "n26 v1 Taddr:housename=Mill,addr:street=Side x8.0001 y49.2001",
        ]
        .map(str::to_owned),
    );
    let index = Index::of(&lines);
    // Parts that the node lacks are those of the building. Coordinates of five decimals are near enough.
    assert_eq!(index.line(49.0001, 8.0001), "Main 6, 99");
    assert_eq!(index.line(49.000_105, 8.000_105), "Main 6, 99");
    assert_eq!(index.line(49.1001, 8.0001), "Mill, Main 5, 99");
    assert_eq!(index.line(49.2001, 8.0001), "Mill, Side, 99");
    for lat in [49.0, 49.1, 49.2] {
        assert_eq!(index.line(lat, 8.0), "Main 5, 99");
        assert_eq!(index.line(lat + 0.00012, 8.0001), "Main 5, 99");
    }
}
