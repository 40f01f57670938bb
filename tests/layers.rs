//! The layers of the source: a module uses only modules of its own layer and of lower layers.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, from the lowest to the highest. `reference/pipeline.md` has a diagram of them.
const LAYERS: [&str; 20] = [
    "error",
    "deflate",
    "osm",
    "pbf",
    "system",
    "runtime",
    "net",
    "io",
    "file",
    "index",
    "geometry",
    "area",
    "geocode",
    "replication",
    "formats",
    "engine",
    "region_file",
    "coast",
    "commands",
    "cli",
];

fn layer_of(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

fn source_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, found)
        } else {
            found.push(path)
        }
    }
}

/// The source files, each with its path relative to `src`. Unit tests are omitted: they may use whole commands.
pub fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    source_files(&root, &mut paths);
    let is_test = |name: &str| name.split(['/', '.']).any(|part| part.ends_with("tests"));
    let mut sources = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        if name.ends_with(".rs") && !is_test(&name) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            sources.push((name, code.to_owned()));
        }
    }
    sources
}

/// The line numbers and names of top-level modules in code: those after `crate::` or `pbfhogg::`, also in braces.
fn named_modules(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, path) in code
        .match_indices("crate::")
        .chain(code.match_indices("pbfhogg::"))
    {
        let line = code.get(..at).unwrap().lines().count();
        let rest = code.get(at + path.len()..).unwrap();
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap(),
            None => rest,
        };
        let is_list = rest.starts_with('{');
        for name in names.split(',').take(if is_list { usize::MAX } else { 1 }) {
            let word = name
                .trim()
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            found.push((line, word.unwrap().to_owned()));
        }
    }
    found
}

#[test]
fn arrows_between_layers_point_down() {
    let mut upward = Vec::new();
    for (name, code) in sources() {
        let top = name.split(['/', '.']).next().unwrap();
        if matches!(top, "lib" | "main" | "allocator" | "unstable") {
            continue;
        }
        let own =
            layer_of(top).unwrap_or_else(|| panic!("src/{name} is in no layer: add it to LAYERS"));
        for (line, module) in named_modules(&code) {
            let text = code.lines().nth(line - 1).unwrap().trim_start();
            // Examples in documentation are the code of users.
            let is_example = text.starts_with("///");
            if !is_example && layer_of(&module).is_some_and(|layer| layer > own) {
                upward.push(format!(
                    "src/{name}:{line} uses {module}, which is above {top}"
                ));
            }
            // The root exports types of any layer. The highest two layers may use them as users of the library do.
            let is_type = module.starts_with(char::is_uppercase) && !text.starts_with("//");
            if own < layer_of("commands").unwrap() && is_type {
                upward.push(format!(
                    "src/{name}:{line} uses {module} of the root of the library: name its layer"
                ));
            }
        }
    }
    assert!(upward.is_empty(), "arrows point up:\n{}", upward.join("\n"));
}

#[test]
fn warnings_of_the_library_name_no_options() {
    for (name, code) in sources() {
        let calls = code.split(".warn(").skip(1);
        for call in calls.filter(|_| !name.starts_with("cli/")) {
            let text = call.split(");").next().unwrap();
            let mut options = text.split("--").skip(1);
            let named =
                options.any(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()));
            assert!(!named, "{name}: {text}");
        }
    }
}

#[test]
fn files_have_at_most_600_lines() {
    let long = sources()
        .into_iter()
        .filter(|(_, code)| code.lines().count() > 600);
    let long: Vec<_> = long.map(|(name, _)| name).collect();
    assert!(long.is_empty(), "two ideas in one file? {long:?}");
}

/// The functions of a file with more than 60 lines, given its code as rustfmt formats it.
fn long_functions(code: &str) -> Vec<String> {
    let lines: Vec<&str> = code.lines().collect();
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let mut words = line.split_whitespace();
        let Some(name) = words.by_ref().skip_while(|word| *word != "fn").nth(1) else {
            continue;
        };
        // A declaration in a trait has no body.
        let is_code = !line.trim_start().starts_with("//") && !line.ends_with(';');
        let end = format!("{:indent$}}}", "");
        let len = lines.iter().skip(start).position(|line| **line == end);
        if let Some(len) = len.filter(|len| is_code && *len >= 60) {
            long.push(format!("{name}: {} lines", len + 1));
        }
    }
    long
}

#[test]
fn functions_have_at_most_60_lines() {
    let long = sources().into_iter().flat_map(|(name, code)| {
        let functions = long_functions(&code).into_iter();
        functions.map(move |function| format!("src/{name}: {function}"))
    });
    let long: Vec<String> = long.collect();
    assert!(
        long.is_empty(),
        "longer than a screen:\n{}",
        long.join("\n")
    );
}
