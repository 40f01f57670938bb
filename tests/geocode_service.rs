//! `geocode --serve`: the HTTP service and its page.

use crate::common::browser::Browser;
use crate::common::oracle::real_file;
use crate::common::service::{Service, answer, build};
use crate::common::{is_long, run_ok};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A place in Valletta.
const PLACE: &str = "lat=35.89893&lon=14.5145";

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn answers_have_the_fields_that_clients_expect() {
    let input = real_file("malta.osm.pbf");
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("index");
    build(&input, &index);
    let service = Service::start(&index);
    let v2 = service.json(&format!("/reverse?{PLACE}&format=jsonv2"));
    let mut expected = vec![
        "place_id",
        "licence",
        "osm_type",
        "osm_id",
        "lat",
        "lon",
        "category",
        "type",
        "place_rank",
        "importance",
        "addresstype",
        "name",
        "display_name",
        "address",
        "boundingbox",
    ];
    expected.sort_unstable();
    assert_eq!(keys(&v2), expected);
    assert_eq!(v2["osm_type"], "node");
    assert_eq!(
        v2["display_name"],
        "132, Archbishop Street, Valletta, Malta"
    );
    let address = json!({
        "house_number": "132", "road": "Archbishop Street", "city": "Valletta",
        "state": "Malta", "ISO3166-2-lvl4": "MT-46", "country_code": "mt",
    });
    assert_eq!(v2["address"], address);
    assert_eq!(v2["boundingbox"].as_array().unwrap().len(), 4);
    assert!(v2["lat"].as_str().unwrap().starts_with("35.898"));
    // jsonv2 is the default; `json` has another name for the category.
    assert_eq!(service.json(&format!("/reverse?{PLACE}")), v2);
    let mut v1 = service.json(&format!("/reverse?{PLACE}&format=json"));
    let category = v1.as_object_mut().unwrap().remove("class").unwrap();
    v1["category"] = category;
    assert_eq!(v1, v2);
    let collection = service.json(&format!("/reverse?{PLACE}&format=geojson"));
    assert_eq!(collection["type"], "FeatureCollection");
    let feature = &collection["features"][0];
    assert_eq!(feature["geometry"]["type"], "Point");
    assert_eq!(feature["properties"]["display_name"], v2["display_name"]);
    assert_eq!(feature["bbox"].as_array().unwrap().len(), 4);
    // Zoom.
    let at = |zoom: &str| service.json(&format!("/reverse?{PLACE}&zoom={zoom}"));
    assert_eq!(at("17")["addresstype"], "road");
    assert_eq!(at("17")["address"].get("house_number"), None);
    assert_eq!(at("12")["name"], "Valletta");
    assert_eq!(at("12")["address"].get("road"), None);
    assert_eq!(at("5")["name"], "Malta");
    assert_eq!(at("99"), v2);
    assert_eq!(at("0")["error"], "Unable to geocode");
    assert_eq!(
        service.json("/reverse?lat=0&lon=0")["error"],
        "Unable to geocode"
    );
    let bare = service.json(&format!("/reverse?{PLACE}&addressdetails=0"));
    assert_eq!(bare.get("address"), None);
    // Languages.
    let french = service.json(&format!("/reverse?{PLACE}&zoom=5&accept-language=fr"));
    assert_eq!(french["name"], "Malte");
    let mut stream = TcpStream::connect(service.address).unwrap();
    let request = format!(
        "GET /reverse?{PLACE}&zoom=5 HTTP/1.1\r\nHost: x\r\nAccept-Language: xx, fr-FR;q=0.8\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    assert!(answer(&mut stream).2.contains("\"Malte\""));
    // The answer of the command.
    let printed = run_ok(&[&"geocode", &index, &"35.89893", &"14.5145", &"--json"]).stdout;
    let served = service.get(&format!("/geocode?{PLACE}")).2;
    assert_eq!(served, String::from_utf8(printed).unwrap().trim_end());
    let health = service.json("/health");
    assert_eq!(
        (&health["status"], &health["input"]),
        (&json!("ok"), &json!("malta.osm.pbf"))
    );
    assert_eq!(service.get("/status").2, "OK");
    let map = service.json("/map?bbox=14.51,35.897,14.515,35.9");
    assert!(map["streets"].as_array().unwrap().len() > 20);
    assert!(service.stop().success());
}

#[test]
fn each_zoom_names_the_city_by_whatever_rule_it_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("town.opl");
    let opl = "n1 v1 Tplace=town,name=Metropolis x8.0 y48.003\n\
               n2 v1 T x7.998 y48.0\n\
               n3 v1 T x8.002 y48.0\n\
               n5 v1 Taddr:housenumber=10,addr:street=Main,amenity=restaurant,name=Chez x8.0 y48.00004\n\
               w4 v1 Thighway=residential,name=Main Nn2,n3\n";
    std::fs::write(&input, opl).unwrap();
    let index = directory.path().join("index");
    build(&input, &index);
    let service = Service::start(&index);
    let at = |zoom: u8| service.json(&format!("/reverse?lat=48.0000450&lon=8&zoom={zoom}"));
    for zoom in 10..16 {
        let found = at(zoom);
        assert_eq!(
            (&found["name"], &found["addresstype"]),
            (&json!("Metropolis"), &json!("town"))
        );
        assert_eq!(found["address"]["town"], "Metropolis");
    }
    assert_eq!(at(17)["name"], "Main");
    let house = at(18);
    assert_eq!(
        (&house["category"], &house["type"]),
        (&json!("amenity"), &json!("restaurant"))
    );
    assert_eq!(
        (&house["name"], &house["display_name"]),
        (&json!("Chez"), &json!("10, Main, Metropolis"))
    );
    // Nothing is known that is larger than the city.
    assert_eq!(at(9)["error"], "Unable to geocode");
    // Values that ask for what the service answers are taken.
    let path = "/reverse?lat=48.0&lon=8&namedetails=0&extratags=0&polygon_geojson=0&layer=address";
    assert_eq!(service.json(path)["osm_id"], 5);
}

#[test]
fn xml_and_geocodejson_have_the_members_of_their_published_examples() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("town.opl");
    let opl = "n1 v1 Tplace=town,name=A%20%&%20%B x8.0 y47.997\n\
               n2 v1 T x7.998 y48.0\n\
               n3 v1 T x8.002 y48.0\n\
               n5 v1 Taddr:housenumber=10,addr:street=Main%20%<3%20%\"x\" x8.0 y48.00004\n\
               n6 v1 T x7.9 y47.9\n\
               n7 v1 T x8.1 y47.9\n\
               n8 v1 T x8.1 y48.1\n\
               w4 v1 Thighway=residential,name=Main%20%<3%20%\"x\" Nn2,n3\n\
               w9 v1 Tboundary=administrative,admin_level=4,name=State Nn6,n7,n8,n6\n";
    std::fs::write(&input, opl).unwrap();
    let index = directory.path().join("index");
    build(&input, &index);
    let service = Service::start(&index);
    let place = "lat=48.000045&lon=8.001";
    let (status, head, body) = service.get(&format!("/reverse?{place}&format=xml"));
    assert_eq!(status, 200, "{body}");
    assert!(
        head.to_lowercase().contains("content-type: text/xml"),
        "{head}"
    );
    let expected = "<result place_id=\"20\" osm_type=\"node\" osm_id=\"5\" place_rank=\"30\" address_rank=\"30\" \
                    lat=\"48.00004\" lon=\"8\" boundingbox=\"47.99999,48.00009,7.99995,8.00005\">\
                    10, Main &lt;3 &quot;x&quot;, A &amp; B, State</result>\
                    <addressparts><house_number>10</house_number><road>Main &lt;3 &quot;x&quot;</road>\
                    <town>A &amp; B</town><state>State</state></addressparts></reversegeocode>";
    assert!(body.contains(expected), "{body}");
    assert!(
        body.starts_with(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<reversegeocode timestamp=\""
        )
    );
    let query = format!(
        "querystring=\"{}&amp;format=xml\"",
        place.replace('&', "&amp;")
    );
    assert!(body.contains(&query), "{body}");
    let bare = service
        .get(&format!("/reverse?{place}&format=xml&addressdetails=0"))
        .2;
    assert!(
        !bare.contains("<addressparts>") && bare.contains("<result "),
        "{bare}"
    );
    // XML has no such character, not even as a reference.
    let odd = service
        .get(&format!("/reverse?{place}&format=xml&x=\u{ffff}"))
        .2;
    let replaced = "format=xml&amp;x=\u{fffd}\"";
    assert!(odd.contains(replaced) && !odd.contains('\u{ffff}'), "{odd}");
    let nowhere = service.get("/reverse?lat=0&lon=0&format=xml").2;
    assert!(
        nowhere.contains("<error>Unable to geocode</error>"),
        "{nowhere}"
    );
    let found = service.json(&format!("/reverse?{place}&format=geocodejson"));
    let name = "Main <3 \"x\"";
    assert_eq!(
        found,
        json!({
            "type": "FeatureCollection",
            "geocoding": {
                "version": "0.1.0",
                "attribution": "Data © OpenStreetMap contributors, ODbL 1.0. https://www.openstreetmap.org/copyright",
                "licence": "ODbL",
                "query": "48.000045,8.001",
            },
            "features": [{
                "type": "Feature",
                "properties": {"geocoding": {
                    "place_id": 20, "osm_type": "node", "osm_id": 5,
                    "osm_key": "place", "osm_value": "house", "type": "house",
                    "label": format!("10, {name}, A & B, State"),
                    "housenumber": "10", "street": name, "city": "A & B", "state": "State",
                    "admin": {"level4": "State"},
                }},
                "geometry": {"type": "Point", "coordinates": [8.0, 48.00004]},
            }],
        })
    );
    for (zoom, kind) in [(17, "street"), (12, "city"), (5, "state")] {
        let found = service.json(&format!("/reverse?{place}&format=geocodejson&zoom={zoom}"));
        let geocoding = &found["features"][0]["properties"]["geocoding"];
        assert_eq!(geocoding["type"], kind, "{found}");
        assert_eq!(geocoding.get("housenumber"), None, "{found}");
    }
}

#[test]
fn bad_requests_and_bad_clients_get_an_error_and_harm_nobody() {
    let input = real_file("liechtenstein-c.osm.pbf");
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("index");
    build(&input, &index);
    let timeout: &[&str] = if is_long() { &[] } else { &["--timeout", "3"] };
    let service = Service::start_with(&index, timeout);
    for (path, cause) in [
        ("/reverse", "'lon' is missing"),
        ("/reverse?lon=1", "'lat' is missing"),
        ("/reverse?lat=x&lon=1", "'x' is not a number"),
        ("/reverse?lat=NaN&lon=1", "'NaN'"),
        ("/reverse?lat=91&lon=1", "91"),
        ("/reverse?lat=1&lon=200", "200"),
        ("/reverse?lat=1&lon=1&format=html", "'format'"),
        ("/reverse?lat=1&lon=1&zoom=near", "'zoom'"),
        ("/reverse?lat=1&lon=1&namedetails=1", "'namedetails'"),
        ("/reverse?lat=1&lon=1&extratags=1", "'extratags'"),
        (
            "/reverse?lat=1&lon=1&polygon_geojson=1",
            "'polygon_geojson'",
        ),
        ("/reverse?lat=1&lon=1&layer=poi", "'layer'"),
        ("/reverse?lat=1&lon=1&json_callback=f", "'json_callback'"),
        ("/reverse?lat=1&lon=1&addressdetails=2", "'addressdetails'"),
        ("/geocode?lat=%00&lon=1", "not a number"),
        ("/map?bbox=1,2,3", "'bbox'"),
        ("/map?bbox=3,2,1,4", "'bbox'"),
        ("/map?bbox=nan,2,1,4", "'bbox'"),
    ] {
        let (status, _, body) = service.get(path);
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (status, &error["error"]["code"]),
            (400, &json!(400)),
            "{path}"
        );
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(cause), "{path}: {message}");
    }
    for path in ["/search?q=Vaduz", "/../manifest.json", "//", "/reverse/x"] {
        assert_eq!(service.get(path).0, 404, "{path}");
    }
    let send = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(service.address).unwrap();
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).unwrap();
        // The service may close before everything is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let refused = send(
        b"POST /reverse HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
    );
    assert!(
        refused.starts_with("HTTP/1.1 405") && refused.contains("allow: GET, HEAD"),
        "{refused}"
    );
    let head = send(b"HEAD /status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(1 << 20));
    let refused = send(long.as_bytes());
    assert!(refused.starts_with("HTTP/1.1 4"), "{refused}");
    assert!(!send(b"\x16\x03\x01 what\r\n\r\n").starts_with("HTTP/1.1 200"));
    // A client that does not say what it wants is cut off, while others get answers.
    let (slow, said) = std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let start = Instant::now();
            let said = send(b"GET /status HTTP/1.1\r\nHost:");
            (start.elapsed(), said)
        });
        for _ in 0..50 {
            assert_eq!(service.get("/status").0, 200);
        }
        slow.join().unwrap()
    });
    assert!(slow < Duration::from_secs(15), "{slow:?}");
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    assert!(service.stop().success());
}

#[test]
fn fifty_connections_at_once_get_their_answers_while_the_index_is_rebuilt() {
    let input = real_file("liechtenstein-c.osm.pbf");
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("index");
    build(&input, &index);
    let (service, second) = (Service::start(&index), Service::start(&index));
    let takes = Duration::from_secs(if is_long() { 60 } else { 2 });
    let expected = second.json("/geocode?lat=47.141&lon=9.5215");
    let answered: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(|| {
                    let (start, mut count) = (Instant::now(), 0);
                    let mut stream = TcpStream::connect(service.address).unwrap();
                    while start.elapsed() < takes {
                        let path = "/geocode?lat=47.141&lon=9.5215";
                        let (status, _, body) = service.get_on(&mut stream, path);
                        let body: Value = serde_json::from_str(&body).unwrap();
                        assert_eq!((status, &body), (200, &expected));
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        build(&input, &index);
        service.signal(Signal::HUP);
        build(&input, &index);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert!(answered > 1000, "{answered}");
    // Another file under the same directory is answered from at once, or after a moment without a signal.
    let other = real_file("monaco.osm.pbf");
    service.wait_for("liechtenstein");
    build(&other, &index);
    service.signal(Signal::HUP);
    service.wait_for("monaco");
    second.wait_for("monaco");
    for service in [&service, &second] {
        assert_eq!(service.json("/health")["input"], "monaco.osm.pbf");
    }
    // A damaged index does not replace the one that is there.
    std::fs::write(index.join("manifest.json"), "{}").unwrap();
    service.signal(Signal::HUP);
    assert_eq!(service.json("/health")["input"], "monaco.osm.pbf");
    assert!(service.stop().success() && second.stop().success());
}

/// Set `PBFHOGG_PICTURES=DIRECTORY` to keep a picture of the page.
#[test]
fn the_page_answers_a_click_in_a_browser() {
    let input = real_file("malta.osm.pbf");
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("index");
    build(&input, &index);
    let service = Service::start(&index);
    browser.open(&format!("http://{}/", service.address));
    browser.wait_for("typeof lines == 'object' && lines.streets.length > 100");
    assert_eq!(
        browser.evaluate("document.getElementById('title').textContent"),
        "What is here? malta.osm.pbf"
    );
    // The view moves to a town, and a click in the middle of the map says what is there.
    browser.evaluate("go(35.89893, 14.5145, 2 ** 26.2)");
    browser.wait_for(
        "lines.is_thinned === false && lines.streets.some(([name]) => name == 'Triq il-Merkanti')",
    );
    let middle = |browser: &mut Browser, side: &str| {
        let size = browser.evaluate(&format!("canvas.client{side}"));
        size.as_f64().unwrap() / 2.0
    };
    let (x, y) = (
        middle(&mut browser, "Width"),
        middle(&mut browser, "Height"),
    );
    browser.click(x, y);
    browser.wait_for("document.querySelector('#answer h2') !== null");
    let label = browser.evaluate("document.querySelector('#answer h2').textContent");
    assert_eq!(label, "132 Archbishop Street, Valletta, Malta");
    let source = browser.evaluate("document.querySelector('#answer td a').href");
    assert_eq!(source, "https://www.openstreetmap.org/node/2615551270");
    let place = browser.evaluate("form.place.value");
    assert!(place.as_str().unwrap().starts_with("35.8989"), "{place}");
    browser.keep_picture("geocode-page.png");
    // Nothing is loaded from anywhere else.
    let loaded = browser.evaluate("performance.getEntriesByType('resource').every(entry => entry.name.startsWith(location.origin))");
    assert_eq!(loaded, true);
    // Languages, and a place that is typed.
    browser.evaluate(
        "form.lang.value = 'fr'; form.place.value = '35.8989 14.5146'; form.requestSubmit()",
    );
    browser.wait_for("document.querySelector('#answer h2').textContent.includes('Malte')");
    browser.evaluate("form.place.value = 'here'; form.requestSubmit()");
    browser.wait_for("document.getElementById('answer').textContent.includes('Type a latitude')");
    assert!(service.stop().success());
}
