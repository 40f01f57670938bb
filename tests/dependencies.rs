//! Dependencies: their licences and sources are allowed by `deny.toml`, and the README names a reason for each. `cargo
//! deny check licenses bans sources` checks the same where it is installed.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The metadata of all packages that cargo builds for this platform.
fn packages(manifest: &Path) -> Vec<Value> {
    let host = Command::new("rustc").arg("-vV").output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", host.unwrap()])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&metadata.stderr);
    assert!(metadata.status.success(), "{complaint}");
    let mut metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    match metadata["packages"].take() {
        Value::Array(packages) => packages,
        other => panic!("no packages: {other}"),
    }
}

fn manifests() -> [std::path::PathBuf; 3] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    [
        "Cargo.toml",
        "benches/kernels/Cargo.toml",
        "fuzz/Cargo.toml",
    ]
    .map(|path| root.join(path))
}

/// Whether allowed licences satisfy an SPDX expression.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let met = any_of(&mut words, allowed);
    met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut met = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all_of(words, allowed);
    }
    met
}

fn all_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &[String]) -> bool {
    if words.next_if_eq(&"(").is_some() {
        return any_of(words, allowed) && words.next() == Some(")");
    }
    let mut licence = words.next().unwrap_or_default().to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence += &format!(" WITH {}", words.next().unwrap_or_default());
    }
    allowed.contains(&licence)
}

#[test]
fn licences_are_read_as_they_are_meant() {
    let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND Unicode-3.0", true),
        ("Apache-2.0", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("", false),
    ] {
        assert_eq!(is_met(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn every_licence_and_source_is_allowed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = std::fs::read_to_string(root.join("deny.toml")).unwrap();
    let rules: toml::Table = rules.parse().unwrap();
    let strings = |table: &str, key: &str| -> Vec<String> {
        let list = rules[table][key].as_array().unwrap();
        list.iter()
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    };
    let allowed = strings("licenses", "allow");
    let registries = strings("sources", "allow-registry");
    for manifest in manifests() {
        for package in packages(&manifest) {
            let name = package["name"].as_str().unwrap();
            let licence = package["license"].as_str().unwrap_or_default();
            assert!(is_met(licence, &allowed), "{name}: {licence:?}");
            if let Some(source) = package["source"].as_str() {
                let registry = source.strip_prefix("registry+").unwrap_or_default();
                let is_known = registries.iter().any(|known| known == registry);
                assert!(is_known, "{name}: {source}");
            }
        }
    }
}

#[test]
fn the_readme_says_what_each_dependency_is_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    for manifest in manifests() {
        let packages = packages(&manifest);
        let own = packages.iter().find(|package| {
            let path = package["manifest_path"].as_str().unwrap();
            Path::new(path) == manifest
        });
        for dependency in own.unwrap()["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            let is_own = dependency["source"].is_null();
            assert!(is_own || readme.contains(&format!("`{name}`")), "{name}");
        }
    }
}

#[test]
fn the_library_alone_needs_no_crate_of_the_program() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-e", "normal", "--prefix", "none"])
        .args(["--no-default-features", "--manifest-path"])
        .arg(&manifests()[0])
        .output()
        .unwrap();
    assert!(tree.status.success(), "{tree:?}");
    let tree = String::from_utf8(tree.stdout).unwrap();
    let names: Vec<_> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.contains(&"libdeflater"), "{tree}");
    for name in [
        "anyhow",
        "clap",
        "hyper",
        "indicatif",
        "parquet",
        "signal-hook",
        "tokio",
        "ureq",
    ] {
        assert!(!names.contains(&name), "{name}");
    }
}
