//! A name of a type stands for one type, so that a search for it finds nothing else. A public name has one path.

use crate::circles::{declarations, without_comments};
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
    "StoredWay",
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

/// Returns the module of the crate and the name behind it that a declaration of `file` re-exports.
fn exported(file: &str, path: &str) -> (String, String) {
    let (before, name) = path.rsplit_once("::").unwrap_or(("", path));
    let module = match before.strip_prefix("crate::") {
        Some(module) => module.split("::").next().unwrap_or_default().to_owned(),
        None if file == "lib.rs" => before.to_owned(),
        None => format!("{file}: {before}"),
    };
    (module, name.to_owned())
}

#[test]
fn a_public_name_has_one_path() {
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    for (file, code) in sources() {
        let is_public = file == "lib.rs"
            || ["cli/mod.rs", "commands/", "geocode/mod.rs"]
                .iter()
                .any(|start| file.starts_with(start));
        let declared = declarations(&without_comments(&code)).into_iter();
        for (_, path, _) in declared.filter(|(is_passed_on, ..)| is_public && *is_passed_on) {
            assert!(
                !path.starts_with("crate::commands::"),
                "{file}: {path} is public already"
            );
            *counts.entry(exported(&file, &path)).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count > 1);
    assert!(counts.is_empty(), "names with several paths: {counts:?}");
}
