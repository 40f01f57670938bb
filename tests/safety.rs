//! Output appears complete or not at all, and existing files are never lost.

use crate::common::kills::names;
use crate::common::missing::allowed;
use crate::common::oracle::runs;
use crate::common::{Arg, decode, pbfhogg, run_fail, run_fail_with, run_ok, world};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

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
    // The last blob but one: damage in the last one would also be damage in the table of contents.
    let last = &frames[frames.len() - 2];
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

/// The output of a command about the access to a file, such as `getfacl`.
fn access(program: &str, args: &[&str], path: &Path) -> String {
    let output = std::process::Command::new(program)
        .args(args)
        .arg(path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_replaced_file_keeps_its_access_list_and_attributes() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path(), "1000");
    access("setfacl", &["-m", "u:1000:rw,g:1001:r"], &file);
    access("setfattr", &["-n", "user.source", "-v", "mirror"], &file);
    let list = access("getfacl", &["-pn"], &file);
    assert!(list.contains("user:1000:rw-"), "{list}");
    let input = dir.path().join("other.osm.pbf");
    std::fs::copy(&file, &input).unwrap();
    let commands: [&[Arg]; 4] = [
        &[&"sort", &file],
        &[&"export", &input, &"-f", &"geojson"],
        &[&"inspect", &input, &"--html"],
        &[&"derive-changes", &"-f", &"osc", &input, &input],
    ];
    for (number, args) in commands.into_iter().enumerate() {
        let last: &[Arg] = if number == 2 {
            &[&file, &"-O"]
        } else {
            &[&"-O", &"-o", &file]
        };
        run_ok(&[args, last].concat());
        assert_eq!(access("getfacl", &["-pn"], &file), list, "{number}");
        let source = access("getfattr", &["--only-values", "-n", "user.source"], &file);
        assert_eq!(source, "mirror", "{number}");
    }
}

#[test]
fn a_replaced_file_without_an_access_list_does_not_get_that_of_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path(), "1000");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o660)).unwrap();
    access("setfacl", &["-d", "-m", "u:1000:rw"], dir.path());
    let list = access("getfacl", &["-pn"], &file);
    run_ok(&[&"sort", &file, &"-O", &"-o", &file]);
    assert_eq!(access("getfacl", &["-pn"], &file), list);
}

/// A run of `apply-changes --in-place` that has opened the file, and waits for its change file, a named pipe.
fn waiting_update(file: &Path, pipe: &Path) -> (std::process::Child, std::fs::File) {
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    let mut command = pbfhogg();
    command
        .args(["apply-changes", "-q", "--in-place"])
        .args([file, pipe]);
    command.stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    // This returns when the other side has opened the pipe.
    let writer = std::fs::File::options().write(true).open(pipe).unwrap();
    (child, writer)
}

/// A change file with one node.
fn change(id: u64) -> String {
    format!(
        "<osmChange version='0.6'><create><node id='{id}' version='1' lat='1' lon='1'/></create></osmChange>"
    )
}

#[test]
fn a_file_that_was_replaced_while_it_was_read_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path(), "1000");
    let (other, pipe) = (
        dir.path().join("other.osm.pbf"),
        dir.path().join("changes.osc"),
    );
    run_ok(&[&"cat", &"-t", &"node", &file, &"-o", &other]);
    let (child, mut writer) = waiting_update(&file, &pipe);
    let expected = std::fs::read(&other).unwrap();
    std::fs::rename(&other, &file).unwrap();
    std::io::Write::write_all(&mut writer, change(1 << 40).as_bytes()).unwrap();
    drop(writer);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("was changed or replaced"), "{message}");
    assert_eq!(std::fs::read(&file).unwrap(), expected);
}

#[test]
fn neither_of_two_updates_in_place_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path(), "1000");
    let (pipe, changes) = (dir.path().join("pipe.osc"), dir.path().join("2.osc"));
    std::fs::write(&changes, change(1 << 41)).unwrap();
    let (child, mut writer) = waiting_update(&file, &pipe);
    let second = pbfhogg()
        .args(["apply-changes", "-q", "--in-place"])
        .args([&file, &changes])
        .status()
        .unwrap();
    std::io::Write::write_all(&mut writer, change(1 << 40).as_bytes()).unwrap();
    drop(writer);
    let first = child.wait_with_output().unwrap().status;
    let objects = decode::objects(&file);
    for (status, id) in [(first, 1 << 40), (second, 1 << 41)] {
        let is_there = objects.iter().any(|object| object.id == id);
        assert_eq!(status.success(), is_there, "{status}");
        assert!(status.success() || matches!(status.code(), Some(2 | 4)));
    }
    assert_ne!(first.success(), second.success());
}

#[test]
fn a_file_that_another_run_replaces_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path(), "1000");
    let changes = dir.path().join("1.osc");
    std::fs::write(&changes, change(1 << 40)).unwrap();
    let locked = std::fs::File::open(&file).unwrap();
    locked.lock().unwrap();
    let before = std::fs::read(&file).unwrap();
    let message = run_fail_with(4, &[&"apply-changes", &"--in-place", &file, &changes]);
    assert!(
        message.contains("another run is replacing this file"),
        "{message}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
    drop(locked);
    run_ok(&[&"apply-changes", &"--in-place", &file, &changes]);
}

#[test]
fn statistics_replace_nothing_but_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "1000");
    let before = std::fs::read(&input).unwrap();
    let message = run_fail(&[&"inspect", &"--stats", &input, &input]);
    assert!(
        message.contains("world.osm.pbf: the output exists"),
        "{message}"
    );
    assert_eq!(std::fs::read(&input).unwrap(), before);
    let stats = dir.path().join("stats.json");
    for _ in 0..2 {
        run_ok(&[&"inspect", &"--stats", &stats, &input]);
    }
    std::fs::write(&stats, "{\"phases\": 3}").unwrap();
    run_fail(&[&"inspect", &"--stats", &stats, &input]);
    let output = dir.path().join("out.osm.pbf");
    run_fail(&[&"cat", &"--stats", &stats, &input, &"-o", &output]);
    assert!(!output.exists());
    run_ok(&[&"cat", &"-O", &"--stats", &stats, &input, &"-o", &output]);
    // A file that cannot be written is told before the work.
    let nowhere = dir.path().join("no/such/stats.json");
    let message = run_fail(&[&"cat", &"-O", &"--stats", &nowhere, &input, &"-o", &output]);
    assert!(message.contains("there is no such directory"), "{message}");
    // The output and the statistics may not be one file, whatever it is called.
    let alias = dir.path().join("./out.osm.pbf");
    let message = run_fail(&[&"cat", &"-O", &"--stats", &alias, &input, &"-o", &output]);
    assert!(message.contains("two outputs have this file"), "{message}");
    assert_eq!(std::fs::read(&input).unwrap(), before);
}

#[test]
fn regions_with_one_output_under_two_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "1000");
    symlink(dir.path(), dir.path().join("link")).unwrap();
    for (other, cause) in [
        ("./a.osm.pbf", "two outputs have this file"),
        ("link/a.osm.pbf", "two outputs have this file"),
        ("world.osm.pbf", "this is an input, too"),
        ("link/world.osm.pbf", "this is an input, too"),
    ] {
        let config = dir.path().join("config.json");
        let text = format!(
            r#"{{"directory": {:?}, "extracts": [
                {{"output": "a.osm.pbf", "bbox": [-10, 39, -9, 41]}},
                {{"output": {other:?}, "bbox": [-9, 39, -8, 41]}}]}}"#,
            dir.path().to_str().unwrap()
        );
        std::fs::write(&config, text).unwrap();
        let message = run_fail(&[&"extract", &"-O", &"-c", &config, &input]);
        assert!(message.contains(cause), "{other}: {message}");
        assert!(!dir.path().join("a.osm.pbf").exists());
    }
}

/// Whether a test may give files to other users and run programs as one of them.
fn can_change_user(program: &Path) -> bool {
    let mut command = std::process::Command::new("setpriv");
    command
        .args(["--reuid=61234", "--regid=61234", "--clear-groups"])
        .arg(program)
        .arg("--version");
    allowed(
        runs(&mut command),
        "programs cannot be run as another user by setpriv",
    )
}

#[test]
fn a_file_of_another_group_is_open_to_those_who_could_read_it_before() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    std::fs::copy(env!("CARGO_BIN_EXE_pbfhogg"), &program).unwrap();
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode(dir.path(), 0o777);
    if !can_change_user(&program) {
        return;
    }
    let input = dir.path().join("in.opl");
    std::fs::write(&input, "n1 v1 x1 y1\n").unwrap();
    set_mode(&input, 0o644);
    for (old, new, is_told) in [
        (0o644, 0o644, false),
        (0o664, 0o644, true),
        (0o640, 0o600, true),
        (0o600, 0o600, false),
        (0o666, 0o666, false),
    ] {
        let output = dir.path().join("out.opl");
        std::fs::write(&output, "old").unwrap();
        set_mode(&output, old);
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=61234", "--regid=61234", "--clear-groups"]);
        command.arg(&program).args(["cat", "-O"]).arg(&input);
        let ran = command.arg("-o").arg(&output).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{said}");
        let metadata = output.metadata().unwrap();
        assert_eq!(metadata.gid(), 61234);
        assert_eq!(metadata.permissions().mode() & 0o777, new, "{old:o}");
        assert_eq!(
            said.contains("access is not wider"),
            is_told,
            "{old:o}: {said}"
        );
        std::fs::remove_file(&output).unwrap();
    }
}
