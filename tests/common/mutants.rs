//! Files that follow from a seed: mutations of small and of real files, most of them with right checksums.

use super::random::Random;
use super::{craft, decode, mixed_objects};
use std::fs;
use std::path::{Path, PathBuf};

/// Draws a part, of at most `most` elements, of a list of `len` elements.
fn part(random: &mut Random, len: usize, most: usize) -> std::ops::Range<usize> {
    let start = random.below(len);
    start..(start + 1 + random.below(most)).min(len)
}

/// A file in parts: the type and the payload of each blob.
pub type Blobs = Vec<(String, Vec<u8>)>;

fn blobs_of(path: &Path) -> Blobs {
    let frames = decode::all_frames(path).into_iter();
    let parts = frames.map(|frame| (frame.blob_type, frame.payload));
    parts.take(5).collect()
}

/// Small files of several shapes.
pub fn small_seeds() -> Vec<Blobs> {
    let dir = tempfile::tempdir().unwrap();
    let mut seeds = Vec::new();
    let mut add = |bytes: Vec<u8>| {
        let path = dir.path().join("seed.osm.pbf");
        fs::write(&path, bytes).unwrap();
        seeds.push(blobs_of(&path));
    };
    for layout in craft::Layout::ALL {
        for (dense, history) in [(true, false), (false, true)] {
            let shape = craft::Shape {
                layout,
                dense,
                history,
                ..craft::Shape::USUAL
            };
            let block = craft::block(&mixed_objects(), &shape);
            add(craft::plain_file(&[block.clone(), block]));
        }
    }
    seeds
}

/// The first blobs of real files.
pub fn real_seeds() -> Vec<Blobs> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files: Vec<PathBuf> = ["data", "fixtures"]
        .iter()
        .filter_map(|name| fs::read_dir(root.join(name)).ok())
        .flat_map(|entries| entries.map(|entry| entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "pbf"))
        .filter(|path| fs::metadata(path).is_ok_and(|facts| facts.len() < 1 << 20))
        .collect();
    files.sort();
    let first_blobs = |path: &PathBuf| {
        let mut blobs = blobs_of(path);
        blobs.retain(|(_, payload)| payload.len() < 1 << 19);
        blobs
    };
    files.iter().map(first_blobs).collect()
}

/// Changes some bytes of a message.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.bits(8) as u8,
            2 => bytes.truncate(at + 1),
            3 => drop(bytes.drain(part(random, bytes.len(), 40))),
            // A number, a length or a count becomes large.
            4 => {
                let large = craft::varint(random.bits(64) >> random.below(64));
                bytes.splice(at..(at + 1).min(bytes.len()), large);
            }
            // A part comes again, some times or very often.
            5 => {
                let range = part(random, bytes.len(), 24);
                let times = [2, 100, 1 << 16][random.below(3)];
                let again = bytes[range].repeat(times);
                bytes.splice(at..at, again);
            }
            _ => {
                let range = part(random, bytes.len(), 200);
                let part = bytes[range].to_vec();
                bytes.splice(at..at, part);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

/// A file that follows from a seed.
pub fn mutant(seeds: &[Blobs], random: &mut Random) -> Vec<u8> {
    let mut blobs = seeds[random.below(seeds.len())].clone();
    if random.below(3) == 0 {
        let other = &seeds[random.below(seeds.len())];
        let range = part(random, other.len(), 3);
        let at = random.below(blobs.len() + 1);
        blobs.splice(at..at, other[range].iter().cloned());
    }
    if random.below(6) == 0 {
        let (one, two) = (random.below(blobs.len()), random.below(blobs.len()));
        blobs.swap(one, two);
    }
    // Most mutations are in the payload of a data blob.
    if random.below(4) > 0 {
        let last = blobs.len().saturating_sub(1);
        let at = (1 + random.below(last.max(1))).min(last);
        if random.below(10) == 0 {
            mutate(&mut blobs[0].1, random);
        } else {
            mutate(&mut blobs[at].1, random);
        }
    }
    let mut file = Vec::new();
    for (kind, payload) in &blobs {
        let blob = match random.below(8) {
            0 => craft::raw_blob(payload),
            1 => craft::zstd_blob(payload),
            _ => craft::zlib_blob(payload),
        };
        file.extend(craft::frame(kind, &blob));
    }
    if random.below(4) == 0 {
        mutate(&mut file, random);
    }
    file
}
