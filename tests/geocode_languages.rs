//! The languages of names in the answers of `geocode`, on the command line and in the service.

use crate::common::service::Service;
use crate::geocode_rules::{Answers, answers, boundary, one};

/// A street with a house in a country.
fn street(id: i64, [lat, lon]: [f64; 2], country: &str, names: &str) -> Vec<String> {
    let written = names.split(',').next().unwrap_or_default();
    let written = written.trim_start_matches("name=");
    let (west, east) = (lon - 0.002, lon + 0.002);
    [
        boundary(id, [lat, lon], 0.5, country),
        one(&format!("n{} v1 T x{west:.7} y{lat:.7}", id + 10)),
        one(&format!("n{} v1 T x{east:.7} y{lat:.7}", id + 11)),
        one(&format!(
            "n{} v1 Taddr:housenumber=5,addr:street={written} x{lon:.7} y{lat:.7}",
            id + 12
        )),
        one(&format!(
            "w{} v1 Thighway=residential,{names} Nn{},n{}",
            id + 10,
            id + 10,
            id + 11
        )),
    ]
    .concat()
}

/// The line about a place in the languages of a list, which the command and the service have to agree about.
fn line(found: &Answers, service: &Service, [lat, lon]: [f64; 2], list: &str) -> String {
    let line = found.asked(lat, lon, &[&"--lang", &list]);
    let path = format!("/geocode?lat={lat}&lon={lon}&accept-language={list}");
    assert_eq!(service.json(&path)["label"], line, "{list}");
    line
}

#[test]
fn a_language_is_looked_up_under_shorter_tags_and_in_any_case() {
    let greece = "admin_level=2,name=Ελλάς,name:el=Ελλάδα,name:en=Greece,ISO3166-1=GR";
    let serbia = "admin_level=2,name=Србија,name:sr-Latn=Srbija,name:en=Serbia,ISO3166-1=RS";
    let taiwan =
        "admin_level=2,name=臺灣,name:zh-Hans=台湾,name:zh-Hant=臺灣,name:en=Taiwan,ISO3166-1=TW";
    let found = answers(&[
        street(100, [38.0, 23.0], greece, "name=Ερμού,name:en=Ermou"),
        street(200, [44.0, 20.0], serbia, "name=Кнез,name:sr-Latn=Knez"),
        street(
            300,
            [24.0, 121.0],
            taiwan,
            "name=路,name:zh-Hans=街,name:en=Road",
        ),
    ]);
    let service = Service::start(&found.index);
    for (at, list, expected) in [
        // The tag `name` is in the language of the country.
        (
            [38.0, 23.0],
            "el-GR,el;q=0.9,en-US;q=0.8",
            "Ερμού 5, Ελλάδα",
        ),
        ([38.0, 23.0], "el-GR", "Ερμού 5, Ελλάδα"),
        ([38.0, 23.0], "en-US,el", "Ermou 5, Greece"),
        ([38.0, 23.0], "el;q=0.3,en;q=0.7", "Ermou 5, Greece"),
        ([38.0, 23.0], "EN", "Ermou 5, Greece"),
        ([38.0, 23.0], "de-AT,en_GB", "Ermou 5, Greece"),
        ([38.0, 23.0], "de", "Ερμού 5, Ελλάς"),
        ([44.0, 20.0], "sr-Latn-RS", "Knez 5, Srbija"),
        ([44.0, 20.0], "SR-LATN,en", "Knez 5, Srbija"),
        ([44.0, 20.0], "sr-RS,en", "Кнез 5, Србија"),
        ([44.0, 20.0], "sr-Cyrl-RS,en", "Кнез 5, Србија"),
        ([24.0, 121.0], "zh-CN,en", "街 5, 台湾"),
        ([24.0, 121.0], "zh-TW,en", "路 5, 臺灣"),
    ] {
        assert_eq!(line(&found, &service, at, list), expected, "{list}");
    }
}

#[test]
fn the_language_of_a_name_is_that_of_the_region_or_is_known_by_the_other_names() {
    let belgium = "admin_level=2,name=Belgium,ISO3166-1=BE";
    let flanders = "admin_level=4,name=Vlaanderen,ISO3166-2=BE-VLG";
    let finland = "admin_level=2,name=Suomi,ISO3166-1=FI";
    let nowhere = "admin_level=8,name=Town";
    let found = answers(&[
        street(
            100,
            [50.0, 4.0],
            belgium,
            "name=Kerkstraat,name:en=Church%20%Street",
        ),
        street(
            200,
            [51.0, 4.0],
            flanders,
            "name=Kerkstraat,name:en=Church%20%Street",
        ),
        street(
            300,
            [60.0, 25.0],
            finland,
            "name=Kaivokatu,name:sv=Brunnsgatan,name:en=Well",
        ),
        street(
            400,
            [60.0, 29.0],
            finland,
            "name=Esplanadi,name:en=Esplanade",
        ),
        street(500, [10.0, 10.0], nowhere, "name=Rue,name:en=Street"),
    ]);
    let service = Service::start(&found.index);
    let street = |at: [f64; 2], list: &str| {
        let line = line(&found, &service, at, list);
        line.split(" 5").next().unwrap_or_default().to_owned()
    };
    // The country has several languages. Which of them the name is in, only its region says.
    assert_eq!(street([50.0, 4.0], "nl,en"), "Church Street");
    assert_eq!(street([51.0, 4.0], "nl,en"), "Kerkstraat");
    assert_eq!(street([51.0, 4.0], "fr,en"), "Church Street");
    // The name in the other language of the country is there, and is another one.
    assert_eq!(street([60.0, 25.0], "fi,en"), "Kaivokatu");
    assert_eq!(street([60.0, 25.0], "sv,en"), "Brunnsgatan");
    assert_eq!(street([60.0, 29.0], "fi,en"), "Esplanade");
    // Without a country, nothing is known about names.
    assert_eq!(street([10.0, 10.0], "fr,en"), "Street");
}

#[test]
fn a_city_with_names_in_several_languages_is_shown_in_the_wanted_one() {
    let tags = "admin_level=8,name=Bruxelles%20%-%20%Brussel,name:fr=Bruxelles,name:nl=Brussel,name:de=Brüssel";
    let found = answers(&[
        boundary(1, [50.8, 4.3], 0.1, tags),
        one("n11 v1 Taddr:housenumber=1,addr:city=Bruxelles x4.3 y50.8"),
        one("n12 v1 Taddr:housenumber=2,addr:city=BRUSSEL x4.35 y50.8"),
    ]);
    for lon in [4.3, 4.35] {
        for (list, city) in [("de-BE", "Brüssel"), ("nl", "Brussel"), ("fr", "Bruxelles")] {
            let line = found.asked(50.8, lon, &[&"--lang", &list]);
            assert!(line.ends_with(city), "{line}");
        }
    }
    assert_eq!(found.line(50.8, 4.35), "2, BRUSSEL");
}
