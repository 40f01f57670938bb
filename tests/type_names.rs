//! A name of a type stands for one type, so that a search for it finds nothing else.

use crate::layers::sources;
use std::collections::{BTreeMap, BTreeSet};

/// The types that each command has under the same name, and that other modules name with the module of the command.
const OF_COMMANDS: [&str; 3] = ["Args", "Options", "Summary"];

/// Names that stand for several types. Types get names of their own instead of being added here.
const AMBIGUOUS: &[&str] = &[
    "BlobLocations",
    "Change",
    "ChangesSummary",
    "Charts",
    "Compared",
    "Effects",
    "Fault",
    "Feature",
    "Findings",
    "Format",
    "Geometry",
    "Head",
    "MemberWays",
    "Members",
    "Output",
    "Parts",
    "Place",
    "Report",
    "RowInfo",
    "Selected",
    "Selection",
    "Side",
    "Sink",
    "Source",
    "Sources",
    "State",
    "StoredLocations",
    "StoredWay",
    "TableWriter",
    "TagList",
    "TagRule",
    "WayLocations",
];

/// Returns the name of the type that a line of code declares. Associated types are indented, and so are the structs that
/// `options!` declares.
fn declared_type(line: &str) -> Option<&str> {
    let is_of_macro = line.starts_with("    pub struct ");
    let line = if is_of_macro { line.trim_start() } else { line };
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (keyword, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next();
    name.filter(|_| is_type)
}

#[test]
fn the_name_of_a_type_is_unique() {
    let sources = sources();
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, code) in &sources {
        for name in code.lines().filter_map(declared_type) {
            files.entry(name).or_default().insert(file);
        }
    }
    files.retain(|name, files| files.len() > 1 && !OF_COMMANDS.contains(name));
    let new: Vec<_> = files
        .iter()
        .filter(|(name, _)| !AMBIGUOUS.contains(name))
        .collect();
    assert!(
        new.is_empty(),
        "these types need names of their own: {new:?}"
    );
    let unique: Vec<_> = AMBIGUOUS
        .iter()
        .filter(|name| !files.contains_key(*name))
        .collect();
    assert!(
        unique.is_empty(),
        "remove these names from AMBIGUOUS: {unique:?}"
    );
}

#[test]
fn declarations_of_types_are_recognised() {
    assert_eq!(declared_type("pub(crate) struct Row<'r> {"), Some("Row"));
    assert_eq!(declared_type("pub type Result<T> = X;"), Some("Result"));
    assert_eq!(declared_type("enum Kind {"), Some("Kind"));
    assert_eq!(declared_type("    pub struct Exec {"), Some("Exec"));
    assert_eq!(declared_type("    type Item = u64;"), None);
    assert_eq!(declared_type("pub fn struct_of() {"), None);
}
