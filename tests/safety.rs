//! Output appears complete or not at all, and existing files are never lost.

use crate::common::{decode, pbfhogg, run_fail, run_ok, world};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_existing_output_is_refused_without_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "1000");
    let output = dir.path().join("out.osm.pbf");
    std::fs::write(&output, "precious").unwrap();
    assert!(run_fail(&[&"cat", &input, &"-o", &output]).contains("--overwrite"));
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");
    run_ok(&[&"cat", &input, &"-O", &"-o", &output]);
    assert!(decode::objects(&output) == decode::objects(&input));
}

#[test]
fn a_failed_run_leaves_the_old_output_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "20000");
    let mut bytes = std::fs::read(&input).unwrap();
    let frames = decode::frames(&input);
    let last = frames.last().unwrap();
    bytes[last.offset as usize + last.frame_len - 200] ^= 0xff;
    std::fs::write(&input, bytes).unwrap();
    let output = dir.path().join("out.osm.pbf");
    std::fs::write(&output, "precious").unwrap();
    let before = names(dir.path());
    run_fail(&[&"cat", &"--force", &input, &"-O", &"-o", &output]);
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");
    assert_eq!(names(dir.path()), before);
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "200000");
    let output = dir.path().join("out.osm.pbf");
    let before = names(dir.path());
    // A limit on the file size simulates a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 200; exec {} sort {} -o {}",
        env!("CARGO_BIN_EXE_pbfhogg"),
        input.display(),
        output.display()
    );
    let result = std::process::Command::new("bash")
        .args(["-c", &script])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&result.stderr);
    assert_eq!(result.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("cannot write") && stderr.contains("out.osm.pbf"),
        "{stderr}"
    );
    assert_eq!(names(dir.path()), before);
}

#[test]
fn a_symbolic_link_stays_one_and_its_target_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "1000");
    let (real, link) = (
        dir.path().join("real.osm.pbf"),
        dir.path().join("link.osm.pbf"),
    );
    std::fs::write(&real, "old").unwrap();
    symlink("real.osm.pbf", &link).unwrap();
    run_ok(&[&"cat", &input, &"-O", &"-o", &link]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(decode::objects(&real) == decode::objects(&input));
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "1000");
    let output = dir.path().join("out.osm.pbf");
    std::fs::write(&output, "old").unwrap();
    std::fs::set_permissions(&output, PermissionsExt::from_mode(0o640)).unwrap();
    run_ok(&[&"cat", &input, &"-O", &"-o", &output]);
    assert_eq!(
        output.metadata().unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn a_file_can_be_replaced_by_its_own_sorted_self() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "5000");
    let objects = decode::objects(&input);
    run_ok(&[&"sort", &input, &"-O", &"-o", &input]);
    assert!(decode::objects(&input) == objects);
}

#[test]
fn a_closed_pipe_downstream_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "100000");
    let script = format!(
        "set -o pipefail; {} cat {} -o - | head -c 10 >/dev/null",
        env!("CARGO_BIN_EXE_pbfhogg"),
        input.display()
    );
    let result = std::process::Command::new("bash")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        result.status.success(),
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
    assert!(result.stderr.is_empty());
}

#[test]
fn standard_input_is_taken_for_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "5000");
    let output = dir.path().join("out.osm.pbf");
    let mut command = pbfhogg();
    command
        .args(["sort", "-", "-o"])
        .arg(&output)
        .stdin(std::fs::File::open(&input).unwrap());
    assert!(command.status().unwrap().success());
    assert!(decode::objects(&output) == decode::objects(&input));
}
