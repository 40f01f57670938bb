//! The names of tests in `.ci/long`: a filter that matches no test runs nothing, and says nothing.

use crate::document_names::collect;
use std::fs;
use std::path::Path;

/// The tests of the library and of this program, by their files and names: `pbf::table::toc::a_table_reads_back`.
fn tests() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = Vec::new();
    for folder in ["src", "tests"] {
        let folder = root.join(folder);
        let mut files = Vec::new();
        collect(&folder, &mut files);
        for file in files
            .iter()
            .filter(|file| file.extension().is_some_and(|end| end == "rs"))
        {
            let text = fs::read_to_string(file).unwrap();
            let path = file.strip_prefix(&folder).unwrap().with_extension("");
            let module = path.to_str().unwrap().replace('/', "::");
            let module = module.strip_suffix("::mod").unwrap_or(&module);
            for part in text.split("#[test]").skip(1) {
                let name = part
                    .split("fn ")
                    .nth(1)
                    .and_then(|rest| rest.split('(').next());
                tests.extend(name.map(|name| format!("{module}::{name}")));
            }
        }
    }
    tests
}

/// The filters in a script: words with `::`, and those behind `--skip` or in a list with the name `skipped`.
fn filters(script: &str) -> Vec<&str> {
    let lines = script
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let mut filters = Vec::new();
    for line in lines {
        let is_list = line.contains("skipped=(");
        let words = line.split(|c: char| c.is_whitespace() || "()\"".contains(c));
        let mut before = "";
        for word in words.filter(|word| !word.is_empty()) {
            let is_name = word
                .chars()
                .all(|c| c.is_ascii_lowercase() || "_:".contains(c));
            let is_skipped = before == "--skip" || is_list && word != "local";
            if is_name && (is_skipped || word.contains("::")) {
                filters.push(word);
            }
            before = word;
        }
    }
    filters
}

#[test]
fn each_filter_of_the_long_tests_matches_a_test() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/long");
    let script = fs::read_to_string(script).unwrap();
    let tests = tests();
    assert!(tests.len() > 1000, "{}", tests.len());
    let filters = filters(&script);
    assert!(filters.len() > 20, "{filters:?}");
    for filter in filters {
        assert!(tests.iter().any(|test| test.contains(filter)), "{filter}");
    }
}

#[test]
fn filters_are_found_in_a_script() {
    let script = "# no::comment\n  test --skip drawn --skip no_disk\n  local skipped=(geometry:: toc)\n  run -- sort:: all\n";
    assert_eq!(
        filters(script),
        ["drawn", "no_disk", "geometry::", "toc", "sort::"]
    );
}
