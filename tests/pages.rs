//! Pages with pictures, opened in a browser.

use crate::common::browser::Browser;
use crate::common::craft::{self, Shape};
use crate::common::oracle::{real_file, real_files};
use crate::common::{Arg, Kind, Object, node, relation, run_fail, run_ok, way};
use serde_json::Value;
use std::path::Path;

/// The JSON report of a command.
fn report(args: &[Arg]) -> Value {
    serde_json::from_slice(&run_ok(args).stdout).unwrap()
}

/// The data in a page.
fn data_of(page: &Path) -> Value {
    let text = std::fs::read_to_string(page).unwrap();
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = text.split_once(start).unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

/// The sum of all numbers below a value.
fn sum(value: &Value) -> u64 {
    match value {
        Value::Array(values) => values.iter().map(sum).sum(),
        number => number.as_u64().unwrap(),
    }
}

/// Opens a page, and waits until it is drawn.
fn show(browser: &mut Browser, page: &Path) {
    browser.open(&format!("file://{}", page.display()));
    browser.wait_for("document.body !== null && document.body.dataset.done === 'yes'");
}

/// The text of the first element that a selector finds.
fn text(browser: &mut Browser, selector: &str) -> String {
    let text = browser.evaluate(&format!("document.querySelector('{selector}').textContent"));
    text.as_str().unwrap().to_owned()
}

/// The number of colours in the map.
const COLORS: &str = "(canvas => new Set(new Uint32Array(canvas.getContext('2d')\
    .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size)(document.getElementById('map'))";

#[test]
fn the_numbers_of_the_page_are_those_of_the_reports() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    for input in real_files() {
        run_ok(&[&"inspect", &"-O", &"--html", &page, &input]);
        let data = data_of(&page);
        let mut expected = report(&[&"inspect", &"-e", &"--anomalies", &"--json", &input]);
        // The page does not name the objects of the maxima.
        for name in ["most_members_relation", "most_refs_way"] {
            expected["extended"][name].take();
        }
        assert_eq!(data["file"], expected, "{}", input.display());
        let nodes = report(&[&"inspect", &"--nodes", &"--json", &input]);
        let nodes = &nodes["node_statistics"];
        let charts = &data["charts"];
        let cells = charts["density"]["cells"].as_array().unwrap();
        let counted: u64 = cells.iter().map(|cell| cell[2].as_u64().unwrap()).sum();
        let on_earth = nodes["nodes"].as_u64().unwrap() - nodes["outside"].as_u64().unwrap();
        assert_eq!(counted, on_earth, "{}", input.display());
        assert_eq!(
            sum(&charts["months"]["counts"]),
            expected["extended"]["with_timestamp"]
        );
        if let Some(first) = charts["months"]["first"].as_str() {
            let oldest = expected["extended"]["first_timestamp"].as_str().unwrap();
            assert!(oldest.starts_with(first), "{oldest}, {first}");
        }
        let parts = charts["layout"].as_array().unwrap();
        let objects: u64 = parts
            .iter()
            .map(|part| part["objects"].as_u64().unwrap())
            .sum();
        let blobs: u64 = parts
            .iter()
            .map(|part| part["blobs"].as_u64().unwrap())
            .sum();
        assert_eq!(
            (objects, blobs),
            (sum(&expected["objects"]), sum(&expected["blobs"]))
        );
        let tags = report(&[&"inspect", &"tags", &"--json", &input]);
        assert_eq!(data["keys"]["distinct"], tags["distinct"]);
        let keys = data["keys"]["top"].as_array().unwrap();
        for (key, tag) in keys.iter().zip(tags["tags"].as_array().unwrap()) {
            assert_eq!((&key["key"], &key["count"]), (&tag["key"], &tag["count"]));
            let by_kind = ["nodes", "ways", "relations"].map(|kind| sum(&key[kind]));
            assert_eq!(by_kind.iter().sum::<u64>(), key["count"]);
        }
    }
}

/// Set `PBFHOGG_PICTURES=DIRECTORY` to keep pictures of the page.
#[test]
fn the_page_of_a_file_is_drawn_in_a_browser() {
    let input = real_file("malta.osm.pbf");
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let (indexed, page) = (
        directory.path().join("malta.osm.pbf"),
        directory.path().join("malta.html"),
    );
    run_ok(&[&"cat", &input, &"-o", &indexed]);
    run_ok(&[&"inspect", &"--html", &page, &indexed]);
    let expected = report(&[&"inspect", &"-e", &"--json", &indexed]);
    show(&mut browser, &page);
    browser.resize(1100, 3300);
    browser.wait_for("document.getElementById('map').width > 900");
    assert_eq!(text(&mut browser, "#name"), "malta.osm.pbf");
    for (index, kind) in (1..).zip(["objects", "nodes", "ways", "relations"]) {
        let tile = text(&mut browser, &format!(".tile:nth-child({}) b", index + 1));
        assert_eq!(tile.replace(',', ""), expected[kind].to_string(), "{kind}");
    }
    let colors = browser.evaluate(COLORS).as_u64().unwrap();
    assert!(colors > 20, "{colors}");
    let columns = browser.evaluate("document.querySelectorAll('#months rect').length");
    assert!(columns.as_u64().unwrap() > 50, "{columns}");
    browser.keep_picture("inspect-page.png");
    // The boxes of blobs change the map.
    browser.evaluate("document.getElementById('boxes').click()");
    let with_boxes = browser.evaluate(COLORS).as_u64().unwrap();
    assert!(with_boxes > colors, "{with_boxes}, {colors}");
    // A pointer on the map says what is there.
    let (x, y) = ("Width", "Height");
    let mut middle = |side: &str| {
        let size = browser
            .evaluate(&format!("map.canvas.client{side}"))
            .as_f64();
        size.unwrap() / 2.0
    };
    let (x, y) = (middle(x), middle(y));
    let top = browser
        .evaluate("map.canvas.getBoundingClientRect().top")
        .as_f64()
        .unwrap();
    let left = browser
        .evaluate("map.canvas.getBoundingClientRect().left")
        .as_f64()
        .unwrap();
    let (x, y) = (left + x, top + y);
    browser.tell(
        "Input.dispatchMouseEvent",
        serde_json::json!({"type": "mouseMoved", "x": x, "y": y}),
    );
    let note = text(&mut browser, "#map-note");
    assert!(note.contains("° N") && note.ends_with("nodes"), "{note}");
    // The buttons zoom.
    let before = browser.evaluate("map.size").as_f64().unwrap();
    browser.evaluate("document.getElementById('in').click()");
    assert_eq!(browser.evaluate("map.size").as_f64().unwrap(), before * 2.0);
    browser.evaluate("document.getElementById('all').click()");
    assert!(browser.evaluate("map.size").as_f64().unwrap() < before);
    // On a phone, nothing is wider than the window.
    browser.resize(390, 3600);
    browser.wait_for("document.getElementById('map').width < 400");
    let wide = browser.evaluate("document.documentElement.scrollWidth");
    assert_eq!(wide, 390);
    browser.keep_picture("inspect-page-phone.png");
    // The page is complete in itself.
    let loaded = browser.evaluate("performance.getEntriesByType('resource').length");
    assert_eq!(loaded, 0);
}

#[test]
fn awkward_files_have_pages_too() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let evil = [
        ("</script><script>document.title = 'evil'</script>", "x"),
        ("<b>", "y"),
    ];
    let plain = |id: i64, lat: i64, lon: i64| Object {
        timestamp: None,
        ..node(id, lat, lon, &[])
    };
    let files = [
        ("empty", vec![]),
        ("no-times", vec![plain(1, 5, 5)]),
        (
            "ends",
            vec![
                plain(1, 900_000_000, 1_800_000_000),
                plain(2, -900_000_000, -1_800_000_000),
            ],
        ),
        ("evil", vec![node(1, 10, 10, &evil)]),
    ];
    for (name, objects) in files {
        let path = directory.path().join(format!("{name}.osm.pbf"));
        let blocks = if objects.is_empty() {
            vec![]
        } else {
            vec![craft::block(&objects, &Shape::USUAL)]
        };
        let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &[]);
        std::fs::write(&path, craft::file(header, &blocks)).unwrap();
        run_ok(&[&"inspect", &"-O", &"--html", &page, &path]);
        show(&mut browser, &page);
        assert_eq!(
            browser.evaluate("document.title"),
            format!("{name}.osm.pbf")
        );
        let nodes = text(&mut browser, ".tile:nth-child(3) b");
        assert_eq!(nodes, objects.len().to_string());
    }
}

#[test]
fn a_page_replaces_nothing_unasked_and_is_complete_or_not_there() {
    let input = real_file("monaco.osm.pbf");
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    std::fs::write(&page, "mine").unwrap();
    let message = run_fail(&[&"inspect", &"--html", &page, &input]);
    assert!(message.contains("--overwrite"), "{message}");
    assert_eq!(std::fs::read(&page).unwrap(), b"mine");
    // A file that is damaged in the middle.
    let mut bytes = std::fs::read(&input).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 50].fill(7);
    let damaged = directory.path().join("damaged.osm.pbf");
    std::fs::write(&damaged, bytes).unwrap();
    let other = directory.path().join("other.html");
    run_fail(&[&"inspect", &"--html", &other, &damaged]);
    assert!(!other.exists());
    let message = run_fail(&[&"inspect", &"--html", &other, &"-"]);
    assert!(message.contains("standard input"), "{message}");
    let to_stdout = run_ok(&[&"inspect", &"--html", &"-", &input]).stdout;
    assert!(to_stdout.starts_with(b"<!doctype html>") && to_stdout.ends_with(b"</html>\n"));
}

/// An old and a new file whose differences are known.
fn old_and_new(directory: &Path) -> [std::path::PathBuf; 2] {
    let at = |time: &str| Some(time.parse::<jiff::Timestamp>().unwrap().as_second());
    let by = |object: Object, version: i64, time: &str, user: &str| Object {
        version: Some(version),
        timestamp: at(time),
        user: Some(user.to_owned()),
        ..object
    };
    let place = |id: i64| id * 10_000_000;
    let plain = |id: i64, tags: &[(&str, &str)]| node(id, place(id), place(id), tags);
    let first = |object: Object| by(object, 1, "2020-01-01T00:00:00Z", "old");
    let old = vec![
        first(plain(1, &[])),
        first(plain(2, &[("shop", "bakery")])),
        first(plain(3, &[("amenity", "bench")])),
        first(plain(4, &[])),
        first(plain(5, &[])),
        first(way(1, &[1, 2, 4], &[("highway", "path")])),
        first(way(2, &[1, 5, 4], &[])),
        first(way(3, &[99, 99, 99], &[])),
        first(relation(1, &[(Kind::Way, 1, "")], &[])),
    ];
    let second = |object: Object| by(object, 2, "2026-11-24T10:30:00Z", "new");
    let mut new = old.clone();
    new.retain(|object| (object.kind, object.id) != (Kind::Node, 3));
    new.retain(|object| (object.kind, object.id) != (Kind::Way, 2));
    for object in &mut new {
        let changed = match (object.kind, object.id) {
            (Kind::Node, 1) => node(1, place(1) + 7, place(1), &[]),
            (Kind::Node, 2) => plain(2, &[("name", "Backhaus"), ("shop", "cafe")]),
            (Kind::Way, 1) => way(1, &[1, 4, 2], &[("highway", "path")]),
            (Kind::Way, 3) => way(3, &[99, 99], &[]),
            (Kind::Relation, 1) => relation(1, &[(Kind::Way, 1, "x")], &[]),
            _ => continue,
        };
        *object = second(changed);
    }
    new.insert(
        4,
        by(
            plain(6, &[("shop", "kiosk")]),
            1,
            "2026-11-24T12:00:00Z",
            "third",
        ),
    );
    [("old.osm.pbf", old), ("new.osm.pbf", new)].map(|(name, objects)| {
        let path = directory.join(name);
        let header =
            craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
        let kinds = [Kind::Node, Kind::Way, Kind::Relation].map(|kind| {
            let of_kind = objects.iter().filter(|object| object.kind == kind);
            craft::block(&of_kind.cloned().collect::<Vec<_>>(), &Shape::USUAL)
        });
        std::fs::write(&path, craft::file(header, &kinds)).unwrap();
        path
    })
}

#[test]
fn the_page_of_a_comparison_says_what_changed_where_when_and_by_whom() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = old_and_new(directory.path());
    let page = directory.path().join("changes.html");
    run_ok(&[&"diff", &"--html", &page, &old, &new]);
    let data = data_of(&page);
    let charts = &data["charts"];
    let counted = crate::common::run(&[&"diff", &"--json", &old, &new]);
    assert_eq!(counted.status.code(), Some(1));
    let expected: Value = serde_json::from_slice(&counted.stdout).unwrap();
    assert_eq!(data["summary"], expected);
    // Nodes 1, 2, 3 and 6, way 1 at node 4, way 2 at node 5; way 3 has no place.
    let cells = charts["places"]["cells"].as_array().unwrap();
    let edge = 360.0 / 2f64.powi(charts["places"]["level"].as_i64().unwrap() as i32);
    let mut places: Vec<(i64, [u64; 3])> = Vec::new();
    for cell in cells {
        let cell: Vec<u64> = cell.as_array().unwrap().iter().map(sum).collect();
        let lat = (cell[1] as f64 + 0.5) * edge - 90.0;
        let lon = (cell[0] as f64 + 0.5) * edge - 180.0;
        assert!((lat - lon).abs() < 1e-4, "{lat}, {lon}");
        places.push((lat.round() as i64, [cell[2], cell[3], cell[4]]));
    }
    places.sort_unstable();
    let expected = [
        (1, [0, 1, 0]),
        (2, [0, 1, 0]),
        (3, [0, 0, 1]),
        (4, [0, 1, 0]),
        (5, [0, 0, 1]),
        (6, [1, 0, 0]),
    ];
    assert_eq!(places, expected);
    assert_eq!(charts["ways_without_place"], serde_json::json!([0, 1, 0]));
    let edits = serde_json::json!({
        "moved": 1, "retagged": 1, "nodes_of_ways": 2, "members": 1, "relocated": 0,
        "metadata_only": 0
    });
    assert_eq!(charts["edits"], edits);
    let compared = |metadata: bool, ways: bool| {
        serde_json::json!({
            "nodes": true, "ways": ways, "relations": ways, "metadata": metadata
        })
    };
    assert_eq!(data["compared"], compared(false, true));
    let other = directory.path().join("other.html");
    run_ok(&[
        &"diff",
        &"--html",
        &other,
        &"-t",
        &"node",
        &"--metadata",
        &old,
        &new,
    ]);
    assert_eq!(data_of(&other)["compared"], compared(true, false));
    let times = serde_json::json!({
        "unit": "hour", "first": "2026-11-24T10", "counts": [[0, 5], [0, 0], [1, 0]]
    });
    assert_eq!(charts["times"], times);
    let names = |list: &Value| -> Vec<(String, [u64; 3])> {
        let top = list["top"].as_array().unwrap().iter();
        let counts =
            |name: &Value| ["created", "modified", "deleted"].map(|change| sum(&name[change]));
        top.map(|name| (name["key"].as_str().unwrap().to_owned(), counts(name)))
            .collect()
    };
    let name = |text: &str, counts: [u64; 3]| (text.to_owned(), counts);
    let keys = [
        name("shop", [1, 1, 0]),
        name("amenity", [0, 0, 1]),
        name("name", [0, 1, 0]),
    ];
    assert_eq!(names(&charts["keys"]), keys);
    assert_eq!(
        names(&charts["users"]),
        [name("new", [0, 5, 0]), name("third", [1, 0, 0])]
    );
}

/// Set `PBFHOGG_PICTURES=DIRECTORY` to keep pictures of the page.
#[test]
fn the_page_of_a_comparison_is_drawn_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = old_and_new(directory.path());
    let page = directory.path().join("changes.html");
    run_ok(&[&"diff", &"--html", &page, &old, &new]);
    show(&mut browser, &page);
    browser.resize(1100, 2400);
    browser.wait_for("document.getElementById('map').width > 900");
    for (index, value) in (1..).zip(["1", "5", "2", "2"]) {
        let tile = text(&mut browser, &format!(".tile:nth-child({index}) b"));
        assert_eq!(tile, value);
    }
    browser.keep_picture("diff-page.png");
    // Objects one by one: the modified way is shown first, and those that are searched for are selected.
    assert!(text(&mut browser, "#single-tags").contains("way 1, modified"));
    let picture = COLORS.replace("'map'", "'single-map'");
    assert!(browser.evaluate(&picture).as_u64().unwrap() > 2);
    let listed = "document.querySelectorAll('#single-list div').length";
    // All objects that changed, those with tags first.
    let all = browser.evaluate("objects.total").as_u64().unwrap();
    assert!(all >= 8, "{all}");
    assert_eq!(browser.evaluate(listed), all);
    let link = "document.querySelector('#single-tags a').href";
    assert_eq!(
        browser.evaluate(link),
        "https://www.openstreetmap.org/way/1"
    );
    let user = "document.querySelector('#users a').href";
    assert_eq!(
        browser.evaluate(user),
        "https://www.openstreetmap.org/user/new"
    );
    browser.evaluate(
        "by_id('single-search').value = 'SHOP created'; by_id('single-search').dispatchEvent(new Event('input'))",
    );
    assert_eq!(browser.evaluate(listed), 1);
    assert!(text(&mut browser, "#single-tags").contains("node 6, created"));
    browser.evaluate(
        "by_id('single-search').value = ''; by_id('single-search').dispatchEvent(new Event('input')); \
         by_id('single-list').firstChild.click()",
    );
    assert!(text(&mut browser, "#single-tags").contains("node 2, modified"));
    assert_eq!(text(&mut browser, "#single-tags del"), "bakery");
    assert_eq!(text(&mut browser, "#single-tags ins"), "Backhaus");
    browser.evaluate(
        "by_id('single-list').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}))",
    );
    assert!(text(&mut browser, "#single-tags").contains("node 3, deleted"));
    // Without created, modified and deleted objects, the map is that of no changes.
    let with = browser.evaluate(COLORS).as_u64().unwrap();
    for change in ["created", "modified", "deleted"] {
        browser.evaluate(&format!("document.getElementById('show-{change}').click()"));
    }
    let without = browser.evaluate(COLORS).as_u64().unwrap();
    assert!(without < with, "{without}, {with}");
    // Two files that are equal.
    run_ok(&[&"diff", &"-O", &"--html", &page, &old, &old]);
    show(&mut browser, &page);
    assert!(text(&mut browser, "#map-about").contains("No node and no way changed"));
    assert_eq!(text(&mut browser, ".tile:nth-child(4) b"), "9");
    assert_eq!(browser.evaluate("by_id('single').hidden"), true);
}
