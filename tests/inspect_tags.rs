//! `inspect tags` and `tags-count`: counts, and their order.

use crate::common;
use crate::common::answers::{ask, ask_osmium, file_of};
use crate::common::oracle::{osmium, real_file};
use crate::common::{Object, node};
use serde_json::Value;

/// Formats counts in JSON like the output of `tags-count`.
fn as_text(tags: &Value) -> String {
    let quoted = |text: &Value| text.as_str().map(|text| text.replace('"', "\"\""));
    let line = |tag: &Value| {
        let key = quoted(&tag["key"]).unwrap();
        let value = quoted(&tag["value"]).map(|value| format!("\t\"{value}\""));
        format!("{}\t\"{key}\"{}\n", tag["count"], value.unwrap_or_default())
    };
    tags.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn tags_are_counted_as_osmium_counts_them() {
    let path = real_file("monaco.osm.pbf");
    if !osmium() {
        return;
    }
    for args in [
        &[][..],
        &["highway"],
        &["highway=*"],
        &["*=*"],
        &["-t", "way", "building=*"],
        &["-t", "relation"],
        &["name:*"],
        &["addr:*=*"],
        &["*:fr=*"],
        &["highway=primary,secondary"],
        &["highway!=primary"],
        &["name=*Monaco*"],
        &["-m", "100"],
        &["-M", "3", "*=*"],
        &["-m", "5", "-M", "50", "*=*"],
        &["no such key"],
    ] {
        let (options, expressions): (Vec<&str>, Vec<&str>) = match args {
            [option, value, option2 @ "-M", value2, rest @ ..] => {
                (vec![option, value, option2, value2], rest.to_vec())
            }
            [option, value, rest @ ..] if option.starts_with('-') => {
                (vec![option, value], rest.to_vec())
            }
            rest => (Vec::new(), rest.to_vec()),
        };
        let mut all: Vec<common::Arg> = vec![&"tags-count"];
        all.extend(options.iter().map(|arg| arg as common::Arg));
        all.push(&path);
        all.extend(expressions.iter().map(|arg| arg as common::Arg));
        let (ours, theirs) = (ask(&all), ask_osmium(&all));
        assert_eq!((ours.status, theirs.status), (0, 0), "{args:?}");
        assert!(ours.sorted_lines() == theirs.sorted_lines(), "{args:?}");
        let view = ask(&[&[&"inspect" as common::Arg, &"tags"], &all[1..]].concat());
        assert_eq!(view, ours, "{args:?}");
        let small = ask(&[&all[..], &[&"--max-memory", &"1k"]].concat());
        assert_eq!(small.stdout, ours.stdout, "{args:?}");
        let json = ask(&[&all[..], &[&"--json"]].concat()).json();
        assert!(as_text(&json["tags"]) == ours.stdout, "{args:?}");
    }
}

#[test]
fn counts_come_in_the_order_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let tags: [&[(&str, &str)]; 4] = [
        &[("b", "1"), ("a", "x\"y")],
        &[("b", "1")],
        &[("b", "2"), ("c", "1")],
        &[("c", "1")],
    ];
    let nodes: Vec<Object> = (1..)
        .zip(tags)
        .map(|(id, tags)| node(id, 1, 1, tags))
        .collect();
    let path = file_of(dir.path(), "in.osm.pbf", &[&nodes[..2], &nodes[2..]]);
    let [a, b1, b2, c] = [
        "1\t\"a\"\t\"x\"\"y\"",
        "2\t\"b\"\t\"1\"",
        "1\t\"b\"\t\"2\"",
        "2\t\"c\"\t\"1\"",
    ];
    for (order, lines) in [
        ("count-desc", [b1, c, a, b2]),
        ("count-asc", [a, b2, b1, c]),
        ("name-asc", [a, b1, b2, c]),
        ("name-desc", [c, b2, b1, a]),
    ] {
        for memory in ["1k", "1G", "1"] {
            let args: [common::Arg; 7] = [
                &"tags-count",
                &"-s",
                &order,
                &"--max-memory",
                &memory,
                &path,
                &"*=*",
            ];
            assert_eq!(ask(&args).lines(), lines, "{order} {memory}");
        }
    }
    assert_eq!(ask(&[&"tags-count", &path, &"*=*"]).lines(), [b1, c, a, b2]);
    // Expressions for one kind, which osmium does not support.
    let one_kind = ask(&[&"tags-count", &path, &"n/b=*", &"w/c"]).lines();
    assert_eq!(one_kind, [b1, b2]);
    assert_eq!(
        ask(&[&"tags-count", &path]).lines(),
        ["3\t\"b\"", "2\t\"c\"", "1\t\"a\""]
    );
    assert_eq!(
        ask(&[&"tags-count", &"-m", &"2", &"-M", &"2", &path]).lines(),
        ["2\t\"c\""]
    );
}
