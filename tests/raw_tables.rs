//! `export --raw`: objects come back from their tables.

use crate::common::oracle::real_files;
use crate::common::{Kind, Object, decode, is_long};
use crate::geoparquet::{export, field, rows, text};
use parquet::record::{Field, Row};

#[test]
fn objects_come_back_from_their_tables() {
    let dir = tempfile::tempdir().unwrap();
    for input in real_files()
        .into_iter()
        .take(if is_long() { usize::MAX } else { 3 })
    {
        let name = input.file_name().unwrap().to_string_lossy();
        let output = dir.path().join(name.split('.').next().unwrap());
        let summary = export(&input, &output, &["--raw"]);
        let mut lines = Vec::new();
        for (kind, letter) in [("node", 'n'), ("way", 'w'), ("relation", 'r')] {
            let path = output.join(format!("type={kind}/part-0000.parquet"));
            if path.exists() {
                lines.extend(rows(&path).iter().map(|row| line_of(letter, row)));
            }
        }
        assert_eq!(lines.len() as u64, summary["features"].as_u64().unwrap());
        let mut expected: Vec<String> =
            decode::objects(&input).iter().map(line_of_object).collect();
        lines.sort_unstable();
        expected.sort_unstable();
        let first = lines
            .iter()
            .zip(&expected)
            .find(|(found, expected)| found != expected);
        assert_eq!(first, None, "{}", input.display());
        assert_eq!(lines.len(), expected.len());
    }
}

/// A row of a table of objects as text.
fn line_of(letter: char, row: &Row) -> String {
    let list = |name: &str| match field(row, name) {
        Field::ListInternal(list) => list.elements().to_vec(),
        other => panic!("{other:?}"),
    };
    let inner = |element: &Field, name: &str| match element {
        Field::Group(row) => field(row, name).to_string(),
        other => panic!("{other:?}"),
    };
    let optional = |name: &str| match field(row, name) {
        Field::Null => "-".to_owned(),
        Field::TimestampMillis(value) => (value / 1000).to_string(),
        Field::Str(text) => text.clone(),
        Field::Double(value) => format!("{:.7}", value),
        other => other.to_string(),
    };
    let Field::MapInternal(tags) = field(row, "tags") else {
        panic!("tags are no map");
    };
    let tags = tags.entries().iter();
    let tags: Vec<String> = tags
        .map(|(key, value)| format!("{}={}", text(key), text(value)))
        .collect();
    let refs: Vec<String> = list("nds").iter().map(|node| inner(node, "ref")).collect();
    let members = list("members");
    let members = members.iter().map(|member| {
        let [kind, id, role] = ["type", "ref", "role"].map(|name| inner(member, name));
        format!("{kind} {id} {role}")
    });
    let members: Vec<String> = members.collect();
    let columns = [
        "lat",
        "lon",
        "changeset",
        "timestamp",
        "uid",
        "user",
        "version",
    ]
    .map(optional);
    format!(
        "{letter}{} {columns:?} {} {tags:?} {refs:?} {members:?}",
        field(row, "id"),
        field(row, "visible")
    )
}

/// The same of an object.
fn line_of_object(object: &Object) -> String {
    let (letter, has_location) = match object.kind {
        Kind::Node => ('n', object.visible),
        Kind::Way => ('w', false),
        Kind::Relation => ('r', false),
    };
    let degrees = |nano: i64| {
        if has_location {
            format!("{:.7}", (nano / 100) as f64 / 1e7)
        } else {
            "-".to_owned()
        }
    };
    let optional = |value: Option<String>| value.unwrap_or("-".to_owned());
    let columns = [
        degrees(object.lat_nano),
        degrees(object.lon_nano),
        optional(object.changeset.map(|value| value.to_string())),
        optional(object.timestamp.map(|value| value.to_string())),
        optional(object.uid.map(|value| value.to_string())),
        optional(object.user.clone()),
        optional(object.version.map(|value| value.to_string())),
    ];
    let tags: Vec<String> = object
        .tags
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let refs: Vec<String> = object.refs.iter().map(ToString::to_string).collect();
    let members = object.members.iter().map(|(kind, id, role)| {
        let kind = match kind {
            Kind::Node => "node",
            Kind::Way => "way",
            Kind::Relation => "relation",
        };
        format!("{kind:?} {id} {role:?}")
    });
    let members: Vec<String> = members.collect();
    format!(
        "{letter}{} {columns:?} {} {tags:?} {refs:?} {members:?}",
        object.id, object.visible
    )
}
