//! The properties that `tests/properties.rs` tries on drawn bytes, for a fuzzer that looks at what bytes reach.

#![allow(dead_code, unused_imports, reason = "the rest is for the tests")]

#[path = "../../tests/common/craft.rs"]
pub mod craft;
#[path = "../../tests/common/decode.rs"]
pub mod decode;
#[path = "../../tests/common/objects.rs"]
pub mod objects;
#[path = "../../tests/common/properties.rs"]
pub mod properties;

pub use objects::*;
use properties::{ALL, Property};
use std::path::{Path, PathBuf};

fn property(name: &str) -> &'static Property {
    static PROPERTIES: [Property; ALL.len()] = ALL;
    let found = PROPERTIES.iter().find(|property| property.name == name);
    found.expect("a property of that name")
}

/// Panics where the property of that name does not hold for the bytes.
pub fn holds(name: &str, bytes: &[u8]) {
    (property(name).holds)(bytes);
}

/// Puts bytes to start from into `$PBFHOGG_FUZZ_SEEDS`, where that is set: those of the property, and parts of the PBF files
/// in `$PBFHOGG_FUZZ_FILES`.
pub fn put_seeds(name: &str) {
    let Some(folder) = std::env::var_os("PBFHOGG_FUZZ_SEEDS").map(PathBuf::from) else {
        return;
    };
    std::fs::create_dir_all(&folder).expect("the folder is made");
    let put = |seed: String, bytes: &[u8]| {
        std::fs::write(folder.join(seed), bytes).expect("a seed is written");
    };
    for (number, seed) in (property(name).seeds)().iter().enumerate() {
        put(format!("seed-{number}"), seed);
    }
    let files = std::env::var_os("PBFHOGG_FUZZ_FILES").map(PathBuf::from);
    let files = files.and_then(|folder| std::fs::read_dir(folder).ok());
    for path in files
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
    {
        if path.extension().is_some_and(|suffix| suffix == "pbf") {
            let stem = path.file_name().unwrap_or_default().to_string_lossy();
            let parts = parts_of(&path)
                .into_iter()
                .filter(|(target, ..)| *target == name);
            parts.for_each(|(_, number, bytes)| put(format!("{stem}-{number}"), &bytes));
        }
    }
}

/// What there is in a real file for the fuzzer to start from: the target, a number, and bytes.
fn parts_of(path: &Path) -> Vec<(&'static str, usize, Vec<u8>)> {
    let mut parts = Vec::new();
    for (number, frame) in decode::frames(path).into_iter().enumerate().take(40) {
        let target = if frame.blob_type == "OSMHeader" {
            "header"
        } else {
            "block"
        };
        // Large inputs make the fuzzer slow.
        if frame.payload.len() < 100_000 {
            parts.push((target, number, frame.payload));
        }
    }
    if let Ok(bytes) = std::fs::read(path)
        && bytes.len() < 10_000
    {
        parts.push(("whole_file", 0, bytes));
    }
    parts
}
