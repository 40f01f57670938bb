//! Blocks that are valid, and much larger in memory than in a file: each command takes bounded memory, or refuses an
//! object that is too large to be held.

use crate::common::answers::ask;
use crate::common::every::{COPIERS, READERS};
use crate::common::hostile::{self, nodes, relations, tagged_node, ways};
use crate::common::{Arg, craft, is_long, pbfhogg, run_fail, run_ok};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The lines of a file as OPL.
fn lines(path: &Path) -> String {
    ask(&[&"cat", &path, &"-f", &"opl"]).stdout
}

#[test]
fn an_object_of_millions_of_parts_is_refused_where_it_would_be_held() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    let count = 2_000_001;
    for (group, said, taken) in [
        (ways(1, count), "way 1 has 2000001 nodes", "w1"),
        (relations(1, count), "relation 1 has 2000001 members", "r1"),
        (tagged_node(count), "node 1 has 2000001 tags", "n1"),
    ] {
        hostile::write(&input, &["", "k", "v"], &[group]);
        let _ = std::fs::remove_file(&output);
        let message = run_fail(&[&"cat", &"-f", &"opl", &input, &"-o", &output]);
        let is_said = message.contains(said) && message.contains("in.osm.pbf: blob 1");
        assert!(is_said, "{message}");
        assert!(!output.exists());
        // Commands that hold nothing of the object go on.
        run_ok(&[&"cat", &input, &"-o", &output]);
        run_ok(&[&"removeid", &input, &taken, &"-O", &"-o", &output]);
        run_ok(&[&"inspect", &input]);
    }
    hostile::write(&input, &[""], &[ways(1, count)]);
    let _ = std::fs::remove_file(&output);
    for command in [
        "renumber",
        "add-locations-to-ways",
        "degrade --unsort-intra",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let mut args: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
        args.extend([&input as Arg, &"-o", &output]);
        let message = run_fail(&args);
        assert!(message.contains("way 1 has 2000001 nodes"), "{message}");
        assert!(!output.exists());
    }
    // An object at the limit is written.
    hostile::write(&input, &[""], &[ways(1, count - 1)]);
    assert_eq!(lines(&input).matches(',').count(), count - 2);
}

/// Ways with 20 nodes each, beside bytes in a field that nobody knows.
fn padded_ways(number: u64, padding: usize) -> craft::Message {
    (1..=number).fold(craft::Message::new(), |group, id| {
        let refs: Vec<i64> = (0..20)
            .map(|at| (id as i64 * 31 + at * 7) % 900 + 1)
            .collect();
        let way = craft::Message::new()
            .varint(1, id)
            .packed_deltas(8, &refs)
            .bytes(2000, &vec![0; padding]);
        group.message(3, way)
    })
}

#[test]
fn a_block_that_is_read_in_parts_gives_what_a_small_one_gives() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let [small, long] = [0, 5000].map(|padding| {
        let path = path(&format!("in-{padding}.osm.pbf"));
        hostile::write(&path, &[""], &[nodes(800), padded_ways(2000, padding)]);
        path
    });
    let commands = [
        "renumber",
        "renumber --orphans keep",
        "add-locations-to-ways -i sparse",
        "add-locations-to-ways -n -i external",
        "getid -r w3 w7 w1999",
        "export -n -f geojsonseq -u type_id",
        "export -n -f geojsonseq -u type_id -i external",
    ];
    for command in commands {
        let made = [&small, &long].map(|input| {
            let words: Vec<&str> = command.split(' ').collect();
            let is_text = words[0] == "export";
            let output = path(if is_text { "out.json" } else { "out.osm.pbf" });
            let mut args: Vec<Arg> = vec![&words[0]];
            if words[0] == "getid" {
                args.extend([&"-r" as Arg, input, &"w3", &"w7", &"w1999"]);
            } else {
                args.extend(words[1..].iter().map(|word| word as Arg));
                args.push(input);
            }
            args.extend([&"-j" as Arg, &"2", &"-q", &"-O", &"-o", &output]);
            // Some of the nodes that getid looks for are missing.
            assert!(ask(&args).status <= 1, "{command}");
            if is_text {
                std::fs::read_to_string(&output).unwrap()
            } else {
                lines(&output)
            }
        });
        assert!(!made[0].is_empty() && made[0] == made[1], "{command}");
    }
}

#[test]
fn many_objects_of_a_block_are_put_out_of_order_in_portions() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    hostile::write(&input, &[""], &[nodes(250_000)]);
    run_ok(&[&"degrade", &"--unsort", &input, &"-o", &output]);
    let found = lines(&output);
    let ids = found.lines().map(|line| {
        let id = line.split(' ').next().unwrap();
        id[1..].parse::<u32>().unwrap()
    });
    let mut ids: Vec<u32> = ids.collect();
    assert!(!ids[..1000].is_sorted());
    ids.sort_unstable();
    assert!(ids.into_iter().eq(1..=250_000));
}

#[test]
fn differences_that_are_long_are_written_as_they_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new, output] =
        ["old.osm.pbf", "new.osm.pbf", "out.osc"].map(|name| dir.path().join(name));
    hostile::write(&old, &[""], &[nodes(2)]);
    hostile::write(&new, &[""], &[nodes(60_000), ways(2, 400_000)]);
    run_ok(&[&"derive-changes", &old, &new, &"-o", &output]);
    let text = std::fs::read_to_string(&output).unwrap();
    assert_eq!(text.matches("<node id=").count(), 59_998);
    assert_eq!(text.matches("<nd ref=").count(), 800_000);
    assert_eq!(
        text.matches("<create>").count(),
        text.matches("</create>").count()
    );
    let written = dir.path().join("again.osm.pbf");
    run_ok(&[&"apply-changes", &old, &output, &"-o", &written]);
    assert_eq!(ask(&[&"diff", &"-q", &new, &written]).status, 0);
}

/// Runs the program with a limit of memory for data. Returns its status and what it said.
fn limited(bytes: u64, args: &[Arg]) -> (Option<i32>, String) {
    let mut tool = Command::new("prlimit");
    tool.arg(format!("--data={bytes}"));
    tool.arg(pbfhogg().get_program());
    args.iter().for_each(|arg| {
        tool.arg(arg);
    });
    let ended = tool.output().unwrap();
    (
        ended.status.code(),
        String::from_utf8(ended.stderr).unwrap(),
    )
}

#[test]
fn memory_that_cannot_be_had_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osm.pbf", "out.opl"].map(|name| dir.path().join(name));
    hostile::write(&input, &[""], &[nodes(10_000_000)]);
    let args: [Arg; 5] = [&"cat", &input, &"-j1", &"-o", &output];
    let (status, said) = limited(25_000_000, &args);
    assert_eq!(status, Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("pbfhogg: error: no memory is left: "),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// The memory for data that a command may take with one job, with what it reserves and does not use.
const MOST_BYTES: u64 = 300_000_000;
/// The memory that some commands may take beside, for each distinct object: its number, its location, or the changes.
const FOR_OBJECTS: u64 = 150_000_000;

/// Commands beside those of [`READERS`] that hold objects in a form of their own.
const FORMS: [&str; 5] = [
    "export --raw {in} -o {out}",
    "export -f geoparquet -n {in} -o {out}",
    "repack --layout hilbert {in} -o {out}",
    "apply-changes --locations-on-ways {in} {day} -o {out}",
    "build-geocode-index {in} -o {out}",
];

fn holds_objects(command: &str) -> bool {
    ["apply-changes ", "add-locations-to-ways ", "renumber "]
        .iter()
        .any(|start| command.starts_with(start))
}

#[test]
fn every_command_takes_bounded_memory_for_every_hostile_file() {
    if !is_long() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let names = hostile::write_all(dir.path());
    hostile::write(&path("other.osm.pbf"), &[""], &[nodes(3)]);
    let changes = "<osmChange version='0.6'><modify><node id='5' version='9' lat='1' lon='1'/></modify></osmChange>";
    std::fs::write(path("day.osc"), changes).unwrap();
    let mut wrong = Vec::new();
    for input_name in names {
        let input = path(input_name).with_extension("osm.pbf");
        for command in READERS.iter().chain(&COPIERS).chain(&FORMS) {
            // Blobs of ten objects, of which there are millions.
            if command.starts_with("repack -n ") {
                continue;
            }
            let name_of_output = match command {
                form if form.starts_with("export --raw") || form.starts_with("build-") => "out",
                form if form.contains("geoparquet") => "out.parquet",
                _ => "out.osm.pbf",
            };
            let out = path(name_of_output);
            let words: Vec<PathBuf> = command
                .split_whitespace()
                .map(|word| match word {
                    "{in}" => input.clone(),
                    "{other}" => path("other.osm.pbf"),
                    "{day}" => path("day.osc"),
                    "{out}" => out.clone(),
                    word => PathBuf::from(word),
                })
                .collect();
            let mut args: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
            args.push(&"-j1");
            let objects = if holds_objects(command) {
                FOR_OBJECTS
            } else {
                0
            };
            let most = MOST_BYTES + objects;
            let (status, said) = limited(most, &args);
            let _ = std::fs::remove_file(&out);
            let _ = std::fs::remove_dir_all(&out);
            println!("{input_name} {command}: {status:?} {said}");
            if said.contains("no memory is left") || !matches!(status, Some(0..=2)) {
                wrong.push(format!("{input_name} {command}: {status:?} {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
