//! Documents list the columns of tables as the tables have them.

use crate::common::{Arg, run_ok};
use crate::geoparquet::rows;
use pbfhogg::unstable::formats::{ACTION_COLUMNS, OBJECT_COLUMNS};
use std::collections::BTreeSet;
use std::path::Path;

/// The part of a document behind a text.
fn behind(document: &str, start: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference");
    let text = std::fs::read_to_string(path.join(document)).unwrap();
    let (_, behind) = text.split_once(start).unwrap();
    behind.to_owned()
}

/// The names of columns in backquotes, without those in parentheses.
fn names(text: &str) -> Vec<String> {
    let mut outside = String::new();
    let mut depth = 0;
    for char in text.chars() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 => outside.push(char),
            _ => {}
        }
    }
    let quoted = outside.split('`').skip(1).step_by(2);
    let names = quoted.filter(|name| !name.starts_with('-'));
    names.map(str::to_owned).collect()
}

/// The names of columns in the first column of the first table of a text.
fn names_of_table(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with('|'));
    let lines = lines.take_while(|line| line.starts_with('|'));
    let cells = lines.filter_map(|line| line.split('|').nth(1));
    cells.flat_map(names).collect()
}

/// The names of the columns of a Parquet file.
fn names_in(path: &Path) -> Vec<String> {
    let rows = rows(path);
    let columns = rows[0].get_column_iter();
    columns.map(|(name, _)| name.clone()).collect()
}

#[test]
fn documents_list_the_columns_of_tables_of_features_and_objects() {
    let dir = tempfile::tempdir().unwrap();
    let [input, features, objects] =
        ["in.opl", "out.parquet", "out"].map(|name| dir.path().join(name));
    std::fs::write(&input, "n1 v1 x8 y49 Tamenity=bench\n").unwrap();
    let with = "names,area,length,centroid,country,h3:0,h3:15";
    let args: [Arg; 6] = [&"export", &input, &"--with", &with, &"-o", &features];
    run_ok(&args);
    let listed = behind("analytics.md", "\n## Tables of features\n");
    assert_eq!(names_in(&features), names_of_table(&listed));

    let args: [Arg; 5] = [&"export", &input, &"--raw", &"-o", &objects];
    run_ok(&args);
    let listed = behind("analytics.md", "with these columns:");
    let (listed, _) = listed.split_once("History").unwrap();
    let found = names_in(&objects.join("type=node/part-0000.parquet"));
    assert_eq!(found, names(listed));
}

#[test]
fn documents_list_the_columns_of_tables_in_memory() {
    let listed = behind("python.md", "\n## Tables of objects\n");
    let mut expected = names_of_table(&listed);
    expected.insert(0, "action".to_owned());
    assert_eq!(OBJECT_COLUMNS.map(|column| column.name).to_vec(), expected);

    let listed = behind("changes.md", "A row of the other formats has");
    let (listed, _) = listed.split_once('.').unwrap();
    let found: BTreeSet<_> = ACTION_COLUMNS.map(|column| column.name.to_owned()).into();
    let listed: BTreeSet<_> = names(listed).into_iter().collect();
    assert_eq!(found, listed);
}
