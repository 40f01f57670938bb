//! Headers that declare far more than any real one: they are refused in one line, and `repair` saves the objects.

use crate::common::answers::ask;
use crate::common::craft::{self, Message, Shape};
use crate::common::{Arg, decode, mixed_objects, run_fail, run_ok};
use std::path::Path;

/// A file whose header has further fields.
fn with_fields(path: &Path, add: impl Fn(Message) -> Message) {
    let header = Message::new()
        .bytes(4, b"OsmSchema-V0.6")
        .bytes(4, b"DenseNodes");
    let block = craft::block(&mixed_objects(), &Shape::USUAL);
    std::fs::write(path, craft::file(add(header).to_bytes(), &[block])).unwrap();
}

/// A header message with a field again and again.
fn repeated(header: Message, number: u32, text: &[u8], times: usize) -> Message {
    (0..times).fold(header, |header, _| header.bytes(number, text))
}

#[test]
fn a_header_with_far_too_much_is_refused_in_one_line_and_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    let long = vec![b'x'; 65_537];
    let cases: [(&str, &dyn Fn(Message) -> Message); 4] = [
        ("its features take more than 64 KiB", &|header| {
            repeated(header, 5, b"a", 30_000)
        }),
        ("its features take more than 64 KiB", &|header| {
            repeated(header, 4, b"OsmSchema-V0.6", 5000)
        }),
        ("a text in it is longer than 64 KiB", &|header| {
            header.bytes(16, &long)
        }),
        ("its unknown fields take more than 1 MiB", &|header| {
            repeated(header, 77, &long, 17)
        }),
    ];
    let saved = || {
        let args: [Arg; 6] = [&"repair", &"--json", &"-O", &input, &"-o", &output];
        let repaired = ask(&args);
        let objects = decode::objects(&output).len();
        std::fs::remove_file(&output).unwrap();
        (objects, repaired)
    };
    with_fields(&input, |header| header);
    let (expected, _) = saved();
    for (said, add) in cases {
        with_fields(&input, add);
        let commands: [Vec<Arg>; 3] = [
            vec![&"inspect", &input],
            vec![&"check", &"--full", &input],
            vec![&"cat", &input, &"-o", &output],
        ];
        for args in commands {
            let message = run_fail(&args);
            assert!(message.contains(said), "{message}");
        }
        let (objects, repaired) = saved();
        assert_eq!((repaired.status, objects), (1, expected), "{repaired:?}");
        assert_eq!(repaired.json()["headers"], 0);
    }
}

#[test]
fn a_header_with_much_is_read_and_copied() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    let text = vec![b'x'; 60_000];
    with_fields(&input, |header| {
        let header = repeated(header, 5, b"a feature", 5000);
        repeated(header, 77, &text, 17).bytes(17, &text)
    });
    run_ok(&[&"cat", &input, &"-o", &output]);
    let both = dir.path().join("both.osm.pbf");
    run_ok(&[&"cat", &input, &output, &"-o", &both]);
    for path in [&output, &both] {
        let features = decode::header(path).optional;
        let copied = features.iter().filter(|name| *name == "a feature");
        assert_eq!(copied.count(), 5000);
    }
}

#[test]
fn a_header_field_of_the_command_line_has_the_limit_of_a_header() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    with_fields(&input, |header| header);
    let source = format!("source={}", "x".repeat(66_000));
    let message = run_fail(&[&"cat", &input, &"--output-header", &source, &"-o", &output]);
    assert!(message.contains("64 KiB"), "{message}");
    let generator = "x".repeat(66_000);
    let message = run_fail(&[&"cat", &input, &"--generator", &generator, &"-o", &output]);
    assert!(message.contains("64 KiB"), "{message}");
    assert!(!output.exists());
}

#[test]
fn a_text_with_many_bounds_keeps_ten_thousand_boxes_around_all() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm", "out.osm"].map(|name| dir.path().join(name));
    let mut text = String::from("<osm version='0.6'>");
    for number in 0..10_100 {
        let edge = f64::from(number) / 1000.0;
        text += &format!("<bounds minlat='1' minlon='1' maxlat='2' maxlon='{edge:.3}'/>");
    }
    text += "<node id='1' lat='1' lon='1' version='1'/></osm>";
    std::fs::write(&input, &text).unwrap();
    run_ok(&[&"cat", &input, &"-o", &output]);
    let written = std::fs::read_to_string(&output).unwrap();
    assert_eq!(written.matches("<bounds ").count(), 10_000);
    assert!(written.contains("maxlon=\"10.099\""));
    let generator = format!("<osm generator='{}'/>", "x".repeat(66_000));
    std::fs::write(&input, generator).unwrap();
    let message = run_fail(&[&"inspect", &input]);
    assert!(
        message.contains("the attribute generator is longer than 64 KiB"),
        "{message}"
    );
}
