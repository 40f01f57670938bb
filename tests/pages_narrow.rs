//! Pages in windows of every width: words, labels, buttons and cards are whole, maps are not stretched, and nothing is
//! wider than the window.

use crate::common::browser::Browser;
use crate::common::craft::{self, Shape};
use crate::common::{Arg, Kind, Object, node, run_ok, way};
use std::path::Path;

/// The widths of windows, from a phone to a desktop.
const WIDTHS: [u32; 7] = [390, 500, 640, 721, 800, 1000, 1280];

/// The words of tables, headings and legends that are broken over several lines.
const BROKEN_WORDS: &str = "(() => {
  const broken = [];
  for (const cell of document.querySelectorAll('td, th, h1, h2, .tile b, .tile span, .legend span, label')) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(({top}) => Math.round(top))).size > 1) broken.push(word[0]);
      }
    }
  }
  return broken.join(', ');
})()";

/// The pairs of labels of charts that overlap, and the labels that reach out of their chart.
const COLLISIONS: &str = "(() => {
  const wrong = [];
  for (const chart of document.querySelectorAll('svg')) {
    const around = chart.getBoundingClientRect();
    const labels = [...chart.querySelectorAll('text')].map(label => [label.textContent, label.getBoundingClientRect()]);
    labels.forEach(([text, a], index) => {
      if (a.left < around.left - 1 || a.right > around.right + 1) wrong.push(text + ' reaches out');
      for (const [other, b] of labels.slice(index + 1)) {
        if (a.left < b.right + 2 && b.left < a.right + 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2) wrong.push(text + ' and ' + other);
      }
    });
  }
  return wrong.join(', ');
})()";

/// The buttons whose text does not fit, also those that are hidden.
const CROWDED_BUTTONS: &str = "[...document.querySelectorAll('button')].filter(button => {
  const {hidden} = button;
  button.hidden = false;
  const is_crowded = button.scrollWidth > button.clientWidth + 1 || button.scrollHeight > button.clientHeight + 1;
  button.hidden = hidden;
  return is_crowded;
}).map(button => button.textContent).join(', ')";

/// The cards with more than 60 pixels of nothing below their content.
const EMPTY_CARDS: &str = "[...document.querySelectorAll('section')].filter(card => \
    Math.max(...[...card.querySelectorAll('*')].map(part => part.getBoundingClientRect().bottom)) \
    < card.getBoundingClientRect().bottom - 60).map(card => card.querySelector('h2').textContent).join(', ')";

/// Opens a page, and compares it with the rules in windows of all widths.
fn check_widths(browser: &mut Browser, page: &Path) {
    browser.open(&format!("file://{}", page.display()));
    browser.wait_for("document.body !== null && document.body.dataset.done === 'yes'");
    for width in WIDTHS {
        browser.resize(width, 2600);
        browser.wait_for(&format!("innerWidth === {width}"));
        // Charts are drawn again a moment after the window has its new size.
        browser.wait_for(
            "[...document.querySelectorAll('svg')].every(chart => \
             chart.viewBox.baseVal.width === chart.parentElement.clientWidth) \
             && [...document.querySelectorAll('canvas')].every(map => \
             map.clientWidth === 0 || map.width === Math.floor(map.clientWidth * devicePixelRatio))",
        );
        let name = page.file_stem().unwrap().display();
        browser.keep_picture(&format!("{name}-{width}.png"));
        assert_eq!(browser.evaluate(BROKEN_WORDS), "", "{name} at {width}");
        assert_eq!(browser.evaluate(COLLISIONS), "", "{name} at {width}");
        assert_eq!(browser.evaluate(EMPTY_CARDS), "", "{name} at {width}");
        assert_eq!(browser.evaluate(CROWDED_BUTTONS), "", "{name} at {width}");
        let scrolled = browser.evaluate("document.documentElement.scrollWidth");
        assert_eq!(scrolled, width, "{name} at {width}");
    }
}

/// Objects of eleven years with long keys and users.
fn objects() -> Vec<Object> {
    let keys = [
        "highway",
        "addr:housenumber",
        "openGeoDB:community_identification_number",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
    ];
    let month = 30 * 86_400;
    let mut objects = Vec::new();
    for id in 1..=660 {
        let place = id * 20_000_000 / 660;
        let tags = [(keys[id as usize % 4], "yes")];
        objects.push(Object {
            version: Some(1),
            timestamp: Some(1_400_000_000 + id * month / 5),
            user: Some(format!("a user with a long name {}", id % 30)),
            ..node(id, place, place, &tags)
        });
    }
    objects.extend((1..=60).map(|id| way(id, &[id, id + 1], &[("highway", "residential")])));
    objects
}

fn write(path: &Path, objects: &[Object]) {
    let header = craft::header_payload(&["OsmSchema-V0.6", "DenseNodes"], &["Sort.Type_then_ID"]);
    let of_kind = |kind: Kind| -> Vec<Object> {
        let found = objects.iter().filter(|object| object.kind == kind);
        found.cloned().collect()
    };
    let mut blocks: Vec<_> = of_kind(Kind::Node)
        .chunks(50)
        .map(|objects| craft::block(objects, &Shape::USUAL))
        .collect();
    blocks.push(craft::block(&of_kind(Kind::Way), &Shape::USUAL));
    std::fs::write(path, craft::file(header, &blocks)).unwrap();
}

/// Set `PBFHOGG_PICTURES=DIRECTORY` to keep pictures of the pages.
#[test]
fn pages_are_whole_in_windows_of_every_width() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let new = objects();
    let mut old = new.clone();
    for (index, object) in old
        .iter_mut()
        .enumerate()
        .filter(|(index, _)| index % 3 > 0)
    {
        object.tags = vec![("other".to_owned(), index.to_string())];
    }
    write(&at("old.osm.pbf"), &old);
    write(&at("new.osm.pbf"), &new);
    let (file, changes) = (at("file.html"), at("changes.html"));
    run_ok(&[&"inspect", &"--html", &file, &at("new.osm.pbf")]);
    let (old, new) = (at("old.osm.pbf"), at("new.osm.pbf"));
    run_ok(&[&"diff", &"--html", &changes, &old, &new]);
    check_widths(&mut browser, &file);
    check_widths(&mut browser, &changes);
}

#[test]
fn pages_of_nothing_have_no_large_empty_cards() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (file, nothing, page) = (at("a.osm.pbf"), at("nothing.osm.pbf"), at("page.html"));
    write(&file, &objects());
    write(&nothing, &[]);
    let (html, again) = (&"--html", &"-O");
    let runs: [&[Arg]; 2] = [
        &[&"inspect", again, html, &page, &nothing],
        &[&"diff", again, html, &page, &file, &file],
    ];
    for args in runs {
        run_ok(args);
        check_widths(&mut browser, &page);
        // Rows and charts have a height of their own.
        let tallest = browser.evaluate(
            "Math.max(...[...document.querySelectorAll('section')].map(card => \
             card.getBoundingClientRect().height - 24 * card.querySelectorAll('tr').length \
             - 190 * card.querySelectorAll('svg').length))",
        );
        assert!(tallest.as_f64().unwrap() < 200.0, "{tallest}");
    }
}

#[test]
fn the_map_of_changes_shows_boxes_only_where_asked_and_says_what_they_are() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (old, new, page) = (at("old.osm.pbf"), at("new.osm.pbf"), at("page.html"));
    let objects = objects();
    write(&old, &objects[..600]);
    write(&new, &objects);
    run_ok(&[&"diff", &"--html", &page, &old, &new]);
    browser.open(&format!("file://{}", page.display()));
    browser.wait_for("document.body !== null && document.body.dataset.done === 'yes'");
    let picture = "document.getElementById('map').toDataURL()";
    let without = browser.evaluate(picture);
    let choice = "document.getElementById('boxes')";
    assert_eq!(browser.evaluate(&format!("{choice}.checked")), false);
    let label = browser.evaluate(&format!("{choice}.closest('label').textContent"));
    assert!(
        label.as_str().unwrap().contains("boxes of blobs"),
        "{label}"
    );
    browser.evaluate(&format!("{choice}.click()"));
    assert_ne!(browser.evaluate(picture), without);
    browser.evaluate(&format!("{choice}.click()"));
    assert_eq!(browser.evaluate(picture), without);
}
