//! Files that use each other in a circle can be understood only together. There are none in the source.
//!
//! An arrow leads from a file to the files whose names it takes: by `use`, or by a path in the code. A name that a module
//! passes on (`pub use`) counts for the file that has it. A file may use the modules around it, and a module passes on
//! names of its files: neither is an arrow.

use crate::layers::sources;
use std::collections::{BTreeMap, BTreeSet};

/// A path, by its segments.
type Path = Vec<String>;

/// The source by modules: `io::input` has the code of `io/input.rs`.
struct Tree {
    code: BTreeMap<String, String>,
    /// The names that a module passes on, and the paths that they stand for.
    passed_on: BTreeMap<String, BTreeMap<String, Path>>,
}

/// The segments of a path.
fn segments(path: &str) -> Path {
    path.split("::").map(str::to_owned).collect()
}

/// The code without comments.
pub fn without_comments(code: &str) -> String {
    let lines = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths of a use declaration without its braces, each with the name that it gets.
fn expand(tree: &str) -> Vec<(String, String)> {
    let tree = tree.trim();
    let Some((before, rest)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let last = path.rsplit("::").next().unwrap();
        let name = if name.is_empty() { last } else { name };
        return vec![(path.trim().to_owned(), name.trim().to_owned())];
    };
    let body = rest.rsplit_once('}').unwrap().0;
    let (mut paths, mut depth, mut start) = (Vec::new(), 0, 0);
    let ends = body.char_indices().chain([(body.len(), ',')]);
    for (at, character) in ends {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = body.get(start..at).unwrap();
                start = at + 1;
                if !part.trim().is_empty() {
                    paths.extend(expand(part));
                }
            }
            _ => {}
        }
    }
    let before = before.trim();
    let joined = paths.into_iter().map(|(path, name)| match path.as_str() {
        "self" => {
            let module = before.trim_end_matches(':').to_owned();
            let last = module.rsplit("::").next().unwrap().to_owned();
            (module, last)
        }
        _ => (format!("{before}{path}"), name),
    });
    joined.collect()
}

/// The use declarations of a module: what is passed on, the path, and the name.
pub fn declarations(code: &str) -> Vec<(bool, String, String)> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some(at) = statement.rfind("use ") else {
            continue;
        };
        let (before, tree) = statement.split_at(at);
        let is_word = before.is_empty() || before.ends_with([' ', '\n']);
        let tree = tree.trim_start_matches("use ");
        let first = tree.split_once("::").map(|(first, _)| first);
        let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_word && first.is_some_and(is_name) {
            let line = before.rsplit('\n').next().unwrap();
            let paths = expand(tree);
            let is_passed_on = line.trim_start().starts_with("pub");
            found.extend(
                paths
                    .into_iter()
                    .map(|(path, name)| (is_passed_on, path, name)),
            );
        }
    }
    found
}

/// Whether a statement ends with a use declaration.
fn is_declaration(statement: &str) -> bool {
    let last = statement.rsplit('\n').find(|line| !line.starts_with(' '));
    last.is_some_and(|line| line.starts_with("use ") || line.starts_with("pub"))
        && statement.contains("use ")
}

impl Tree {
    fn read() -> Self {
        let mut tree = Self {
            code: BTreeMap::new(),
            passed_on: BTreeMap::new(),
        };
        for (name, code) in sources() {
            let module = name.trim_end_matches(".rs").replace('/', "::");
            let module = module.trim_end_matches("::mod");
            if module != "lib" {
                tree.code.insert(module.to_owned(), without_comments(&code));
            }
        }
        for (module, code) in &tree.code {
            let names = tree.passed_on.entry(module.clone()).or_default();
            for (is_passed_on, path, name) in declarations(code) {
                let path = absolute(&tree.code, &path, module);
                if let Some(path) = path.filter(|_| is_passed_on) {
                    names.insert(name, path);
                }
            }
        }
        tree
    }

    /// The module that has the name at the end of a path.
    fn module_of(&self, path: &[String], depth: usize) -> String {
        let mut module = String::new();
        for (at, name) in path.iter().enumerate() {
            let inner = if module.is_empty() {
                name.clone()
            } else {
                format!("{module}::{name}")
            };
            if self.code.contains_key(&inner) {
                module = inner;
                continue;
            }
            let passed_on = self
                .passed_on
                .get(&module)
                .and_then(|names| names.get(name));
            return match passed_on.filter(|_| depth < 8) {
                Some(other) => {
                    let rest = path.get(at + 1..).unwrap();
                    self.module_of(&[other.as_slice(), rest].concat(), depth + 1)
                }
                None => module,
            };
        }
        module
    }

    /// The modules that a module takes names of.
    fn arrows(&self, module: &str) -> BTreeSet<String> {
        let code = &self.code[module];
        let declared = declarations(code).into_iter();
        let mut paths: Vec<String> = declared
            .filter(|(is_passed_on, ..)| !is_passed_on)
            .map(|(_, path, _)| path)
            .collect();
        let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let statements = code.split(';').filter(|text| !is_declaration(text));
        let words = statements.flat_map(|text| text.split(|c| !is_of_path(c)));
        paths.extend(words.filter(|word| word.contains("::")).map(str::to_owned));
        let paths = paths
            .iter()
            .filter_map(|path| absolute(&self.code, path, module));
        let modules = paths.map(|path| self.module_of(&path, 0));
        let is_arrow = |other: &String| {
            !other.is_empty() && other != module && !module.starts_with(&format!("{other}::"))
        };
        modules.filter(is_arrow).collect()
    }
}

/// A path from the root of the library; `None` if it leads into another crate.
fn absolute(modules: &BTreeMap<String, String>, path: &str, module: &str) -> Option<Path> {
    let (path, mut base) = (segments(path.trim_end_matches(':')), segments(module));
    let rest = match path.first()?.as_str() {
        "crate" => return Some(path.get(1..)?.to_vec()),
        "self" => path.get(1..)?,
        "super" => {
            let count = path.iter().take_while(|name| *name == "super").count();
            base.truncate(base.len().saturating_sub(count));
            path.get(count..)?
        }
        first => {
            modules.get(&format!("{module}::{first}"))?;
            path.as_slice()
        }
    };
    base.extend_from_slice(rest);
    Some(base)
}

/// The modules to which arrows lead from `module`, directly or through others.
fn reached<'a>(
    arrows: &'a BTreeMap<&String, BTreeSet<String>>,
    module: &'a String,
) -> BTreeSet<&'a String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![module]);
    while let Some(next) = open.pop() {
        for other in arrows.get(next).into_iter().flatten() {
            if found.insert(other) {
                open.push(other);
            }
        }
    }
    found
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let tree = Tree::read();
    let modules = tree.code.keys().map(|module| (module, tree.arrows(module)));
    let arrows: BTreeMap<_, _> = modules.collect();
    // The test would pass on nothing if it read nothing.
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > 1000);
    let modules = arrows.keys().copied();
    let all: BTreeMap<_, _> = modules
        .map(|module| (module, reached(&arrows, module)))
        .collect();
    // The modules from which arrows lead to a module and back.
    let circle = |module: &&String| -> BTreeSet<&String> {
        let leads_back = |other: &&String| all.get(other).is_some_and(|all| all.contains(*module));
        all[*module].iter().copied().filter(leads_back).collect()
    };
    let circles: BTreeSet<_> = all.keys().map(circle).collect();
    let circles: Vec<String> = circles
        .into_iter()
        .filter(|circle| !circle.is_empty())
        .map(|circle| circle.into_iter().cloned().collect::<Vec<_>>().join(", "))
        .collect();
    assert!(
        circles.is_empty(),
        "files use each other; give what both use a file of its own:\n{}",
        circles.join("\n")
    );
}
