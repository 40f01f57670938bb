//! Runs `repair`, and reads its output.

use super::answers::ask;
use super::decode;
use super::oracle::real_file;
use super::{Arg, Object, run_ok};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Objects as text, for comparisons without their order.
pub fn shown<'a>(objects: impl IntoIterator<Item = &'a Object>) -> HashSet<String> {
    let objects = objects.into_iter();
    objects.map(|object| format!("{object:?}")).collect()
}

/// Repairs a file, and returns the objects, the report and the exit status. The output must be valid.
pub fn repair(input: &Path, more: &[Arg]) -> (Vec<Object>, Value, i32) {
    let (output, report, status) = repair_to(input, more);
    (decode::objects(&output), report, status)
}

/// Repairs a file, and returns the output, the report and the exit status. The output must be valid.
pub fn repair_to(input: &Path, more: &[Arg]) -> (PathBuf, Value, i32) {
    let output = input.with_file_name("repaired.osm.pbf");
    let args: [Arg; 6] = [&"repair", &"--json", &"-O", &input, &"-o", &output];
    let answer = ask(&[&args, more].concat());
    assert!(answer.status < 2, "{answer:?}");
    let check = ask(&[&"check", &"--index", &"--full", &output]);
    assert_eq!(check.status, 0, "{check:?}");
    let report = answer.json();
    (output, report, answer.status)
}

/// A copy of a real file with a table of contents, one of whose blobs is damaged. Returns the objects of the blob.
pub fn with_lost_blob(dir: &Path) -> (PathBuf, Vec<Object>) {
    let path = dir.join("damaged.osm.pbf");
    run_ok(&[
        &"repack",
        &"-n",
        &"1000",
        &real_file("helsinki.osm.pbf"),
        &"-O",
        &"-o",
        &path,
    ]);
    let frames = decode::frames(&path);
    let lost = &frames[frames.len() / 3];
    let mut bytes = fs::read(&path).unwrap();
    bytes[lost.offset as usize + lost.frame_len / 2] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    (path, decode::block(&lost.payload))
}
