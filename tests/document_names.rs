//! Documents name only what exists, and stay short.
//!
//! Each path, type, constant, function, field and option that a document has in backquotes has to be in the repository:
//! a path as a file, an option in a source or in the help of a command, and any other name as a word of a source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The most words that all documents have together.
const MAX_WORDS: usize = 50_000;
/// The most words of `reference/pipeline.md`, which is read before anything is changed.
const MAX_PIPELINE_WORDS: usize = 1_600;

/// Names of other programs and of the system, options included.
const FOREIGN: [&str; 13] = [
    "IndexedReader",
    "O_DIRECT",
    "O_TMPFILE",
    "ST_Centroid",
    "Z_SYNC_FLUSH",
    "all_proxy",
    "archives",
    "hive_schema",
    "https_proxy",
    "no_proxy",
    "osmosis_replication_",
    "posix_fadvise",
    "python/package/pbfhogg/_pbfhogg.abi3.so",
];

/// The folders with documents and sources.
const FOLDERS: [&str; 9] = [
    ".ci",
    "benches",
    "examples",
    "fuzz",
    "notes",
    "python",
    "reference",
    "src",
    "tests",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Adds the files in a folder and in the folders within it. What is built is omitted.
pub fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let made = [
            "target",
            "corpus",
            "artifacts",
            "__pycache__",
            "node_modules",
        ];
        if !path.is_dir() {
            files.push(path)
        } else if !made.contains(&name.as_str()) && !name.starts_with('.') {
            collect(&path, files)
        }
    }
}

/// The files of the repository, relative to its root. Data and what is built are omitted.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let folder = root().join(folder);
        if folder.exists() {
            collect(&folder, &mut files)
        }
    }
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            files.push(path)
        }
    }
    let relative = |path: PathBuf| path.strip_prefix(root()).unwrap().to_path_buf();
    files.into_iter().map(relative).collect()
}

fn extension(path: &Path) -> &str {
    path.extension()
        .map_or("", |end| end.to_str().unwrap_or(""))
}

/// The documents, each with its path and its text.
fn documents() -> Vec<(PathBuf, String)> {
    let documents = files().into_iter().filter(|path| extension(path) == "md");
    let documents = documents.map(|path| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    });
    documents.collect()
}

/// A document without its blocks of code.
fn prose(document: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in document.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose += line;
            prose.push('\n');
        }
    }
    prose
}

/// The texts in backquotes.
fn quoted(document: &str) -> Vec<String> {
    let prose = prose(document);
    let paragraphs = prose.split("\n\n");
    let quoted = paragraphs.flat_map(|text| text.split('`').skip(1).step_by(2));
    quoted.map(|text| text.replace('\n', " ")).collect()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The names in the repository.
struct Inventory {
    files: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
    names: BTreeSet<String>,
    words: BTreeSet<String>,
    options: BTreeSet<String>,
}

/// Read once, since the sources are long.
static INVENTORY: LazyLock<Inventory> = LazyLock::new(Inventory::new);

/// The long options in a text, without their dashes.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let after_dashes = text.split("--").skip(1);
    let names = after_dashes.map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-');
        rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
    });
    names
        .map(|name| name.trim_end_matches('-'))
        .filter(|name| name.len() > 1)
}

impl Inventory {
    fn new() -> Self {
        let mut all = Self {
            files: files().into_iter().collect(),
            folders: BTreeSet::new(),
            names: BTreeSet::new(),
            words: BTreeSet::new(),
            options: BTreeSet::new(),
        };
        for path in all.files.clone() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            all.names.insert(name);
            all.folders
                .extend(path.ancestors().skip(1).map(PathBuf::from));
            let is_source = [
                "rs", "py", "pyi", "toml", "sh", "js", "html", "css", "txt", "",
            ];
            let is_own = path.ends_with("document_names.rs");
            if is_source.contains(&extension(&path)) && !is_own {
                all.add_source(&root().join(&path));
            }
        }
        let help = fs::read_to_string(root().join("reference/commands.md")).unwrap();
        all.options.extend(options(&help).map(str::to_owned));
        all
    }

    fn add_source(&mut self, path: &Path) {
        let Ok(text) = fs::read_to_string(path) else {
            return;
        };
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for word in line.split(|c| !is_word(c)).filter(|word| word.len() > 1) {
                if !self.words.contains(word) {
                    self.words.insert(word.to_owned());
                }
            }
            self.options.extend(options(line).map(str::to_owned));
        }
    }

    /// Whether a document may name a path: relative to the root, or to a folder that it speaks of.
    fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let from = ["", "src", "reference", "python", "notes", "tests"];
        let is_there = from.iter().any(|folder| {
            let path = Path::new(folder).join(path);
            self.files.contains(&path) || self.folders.contains(&path)
        });
        is_there || self.names.contains(path)
    }

    fn has_option(&self, name: &str) -> bool {
        // clap makes names of options of the names of fields.
        self.options.contains(name) || self.words.contains(&name.replace('-', "_"))
    }

    /// The names in a text in backquotes that do not exist.
    fn absent(&self, text: &str) -> Vec<String> {
        let mut absent = Vec::new();
        if self.is_path(text) {
            let paths = alternatives(text);
            absent.extend(paths.into_iter().filter(|path| !self.has_path(path)));
        } else if let Some(names) = identifiers(text) {
            let unknown = names.filter(|name| !self.words.contains(*name));
            absent.extend(unknown.map(str::to_owned));
        } else {
            let unknown = options(text).filter(|name| !self.has_option(name));
            absent.extend(unknown.map(str::to_owned));
        }
        absent.retain(|name| !FOREIGN.contains(&name.as_str()));
        absent
    }

    /// Whether a text is a path in the repository: a file of a kind that it has, or one in a folder of it.
    fn is_path(&self, text: &str) -> bool {
        let is_name = |c: char| is_word(c) || "./{},-".contains(c);
        let is_file = matches!(extension(Path::new(text)), "rs" | "md" | "py" | "toml");
        let first = text.split('/').next().unwrap_or_default();
        let is_folder = |folder: &str| self.folders.contains(&Path::new(folder).join(first));
        let is_within = text.contains('/') && (is_folder("") || is_folder("src"));
        text.chars().all(is_name) && !first.is_empty() && (is_file || is_within)
    }
}

/// The paths that a path with alternatives in braces stands for.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let Some((list, after)) = rest.split_once('}') else {
        return vec![path.to_owned()];
    };
    let paths = list
        .split(',')
        .map(|name| format!("{before}{}{after}", name.trim()));
    paths.collect()
}

/// The parts of a name of the code, such as `BlobPlan::open` or `blobs_copied`. `None` for words of a language, file
/// names and everything else.
fn identifiers(text: &str) -> Option<impl Iterator<Item = &str>> {
    let name = text.strip_suffix("()").unwrap_or(text);
    let parts = move || name.split("::").flat_map(|part| part.split('.'));
    let is_part = |part: &str| {
        !part.is_empty()
            && part.chars().all(is_word)
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    let ends = [
        "pbf", "osm", "osh", "osc", "opl", "gz", "parquet", "json", "txt", "so", "idx",
    ];
    let is_file = name.contains('.') && parts().last().is_some_and(|end| ends.contains(&end));
    let has_hump = name
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let is_constant = name.len() > 3 && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_code = name.contains('_') || name.contains("::") || has_hump || is_constant;
    (is_code && !is_file && parts().all(is_part)).then(parts)
}

#[test]
fn documents_name_only_what_exists() {
    let mut absent = Vec::new();
    // The list of changes names what was there.
    let documents = documents()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("CHANGELOG.md"));
    for (path, text) in documents {
        for quoted in quoted(&text) {
            for name in INVENTORY.absent(&quoted) {
                absent.push(format!("{}: {name} in `{quoted}`", path.display()));
            }
        }
    }
    assert!(
        absent.is_empty(),
        "not in the repository:\n{}",
        absent.join("\n")
    );
}

#[test]
fn an_absent_name_is_found_whatever_its_kind() {
    for (text, absent) in [
        ("src/lib.rs", 0),
        ("pbf/block/", 0),
        ("src/{main,lib}.rs", 0),
        ("src/{main,nothing}.rs", 1),
        ("engine/nothing.rs", 1),
        ("nothing.rs", 1),
        ("BlobPlan::open", 0),
        ("BlobPlan::nothing_of_it", 1),
        ("NothingOfIt", 1),
        ("NOTHING_OF_IT", 1),
        ("nothing_of_it()", 1),
        ("cat --clean version", 0),
        ("--max-memory", 0),
        ("cat --nothing-of-it", 1),
        ("highway", 0),
        ("malta.osm.pbf", 0),
        ("addr:housenumber", 0),
    ] {
        assert_eq!(INVENTORY.absent(text).len(), absent, "{text}");
    }
}

/// The number of words: parts between white space that have a letter or a digit.
fn word_count(text: &str) -> usize {
    let words = text.split_whitespace();
    words
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
}

#[test]
fn documents_stay_short() {
    let counts: BTreeMap<PathBuf, usize> = documents()
        .into_iter()
        .map(|(path, text)| (path, word_count(&text)))
        .collect();
    let sum: usize = counts.values().sum();
    assert!(sum <= MAX_WORDS, "{sum} words: {counts:?}");
    let pipeline = counts[Path::new("reference/pipeline.md")];
    assert!(pipeline <= MAX_PIPELINE_WORDS, "{pipeline} words");
}

/// The anchors of the headings of a document, as GitHub makes them.
fn anchors(document: &str) -> BTreeSet<String> {
    let prose = prose(document);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchors = headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().replace(' ', "-")
    });
    anchors.collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents: BTreeMap<PathBuf, String> = documents().into_iter().collect();
    let mut dead = Vec::new();
    for (path, text) in &documents {
        let prose = prose(text);
        let targets = prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => normal(&path.parent().unwrap().join(file)),
            };
            let has_anchor = match documents.get(&file) {
                Some(text) => anchor.is_empty() || anchors(text).contains(anchor),
                None => root().join(&file).exists(),
            };
            if !has_anchor {
                dead.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(
        dead.is_empty(),
        "links that lead nowhere:\n{}",
        dead.join("\n")
    );
}

#[test]
fn the_readme_counts_the_programs_that_were_tried() {
    let documents: BTreeMap<PathBuf, String> = documents().into_iter().collect();
    let text = |name: &str| &documents[Path::new(name)];
    let rows = text("reference/readers.md").lines();
    let mut programs = 0;
    // The rows of the first table, below its header.
    let rows = rows
        .skip_while(|line| !line.starts_with("| language |"))
        .skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let list = row.split('|').nth(2).unwrap();
        let mut depth = 0;
        // Commas in brackets stand between versions.
        programs += 1 + list
            .chars()
            .filter(|char| {
                depth += i32::from(*char == '(') - i32::from(*char == ')');
                *char == ',' && depth == 0
            })
            .count();
    }
    let readme = text("README.md").split_whitespace().collect::<Vec<_>>();
    let claim = format!("[{programs} other readers](reference/readers.md)");
    assert!(readme.join(" ").contains(&claim), "{claim}");
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}
