//! Blocks that are valid, and much larger in memory than in a file: each command takes bounded memory, or refuses an
//! object that is too large to be held.

use crate::common::answers::ask;
use crate::common::every;
use crate::common::hostile::{self, nodes, relations, tagged_node, ways};
use crate::common::hostile_files::{self, HostileFile, hostile_files};
use crate::common::measured::{self, Measured, measure};
use crate::common::random::Random;
use crate::common::{Arg, craft, is_long, pbfhogg, run_fail, run_ok};
use crate::documents;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
        let checked = ask(&[&"check", &"--full", &input]);
        let (_, cause) = said.split_once(" has ").unwrap();
        let is_found = checked.status == 1 && checked.stdout.contains(cause);
        assert!(is_found, "{checked:?}");
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

#[test]
fn changes_between_two_files_take_the_memory_that_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new, output] =
        ["old.osm.pbf", "new.osm.pbf", "out.adiff"].map(|name| dir.path().join(name));
    hostile::write(&old, &[""], &[nodes(2)]);
    hostile::write(&new, &[""], &[nodes(20_000)]);
    for form in ["adiff", "geojsonseq", "csv"] {
        let args: [Arg; 7] = [&"diff", &"-f", &form, &old, &new, &"-o", &output];
        let message = run_fail(&[&args[..], &[&"--max-memory", &"1M"]].concat());
        let is_said = message.contains("new.osm.pbf: the changes take more memory than is allowed");
        assert!(is_said && message.contains("--max-memory"), "{message}");
        assert!(!output.exists());
        run_ok(&args);
        std::fs::remove_file(&output).unwrap();
    }
    if is_long() {
        // Without the option, the limit is in proportion to the files.
        hostile::write(&new, &[""], &[nodes(10_000_000)]);
        let message = run_fail(&[&"diff", &"-f", &"adiff", &old, &new, &"-o", &output]);
        assert!(message.contains("take more memory"), "{message}");
    }
}

#[test]
fn diff_names_the_file_that_has_the_object() {
    let dir = tempfile::tempdir().unwrap();
    let [small, long] = ["small.osm.pbf", "long.osm.pbf"].map(|name| dir.path().join(name));
    hostile::write(&long, &[""], &[nodes(2), ways(1, 2_000_001)]);
    // The way is in one file, or in both.
    for groups in [vec![nodes(2)], vec![nodes(2), ways(1, 2)]] {
        hostile::write(&small, &[""], &groups);
        for files in [[&small, &long], [&long, &small]] {
            let message = run_fail(&[&"diff", &"-f", &"opl", files[0], files[1]]);
            let is_named = message.contains("long.osm.pbf: blob 2");
            assert!(is_named && message.contains("2000001"), "{message}");
        }
    }
}

#[test]
fn an_object_of_text_with_millions_of_parts_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.opl", "out.osm.pbf"].map(|name| dir.path().join(name));
    let count = 2_000_001;
    for (start, part, said) in [
        ("w1 N", "n1,", "way 1 has 2000001 nodes"),
        ("r1 M", "n1@,", "relation 1 has 2000001 members"),
        ("n1 x1 y1 T", "k=v,", "node 1 has 2000001 tags"),
    ] {
        std::fs::write(&input, format!("{start}{}\n", part.repeat(count))).unwrap();
        let message = run_fail(&[&"cat", &input, &"-o", &output]);
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn a_long_value_is_quoted_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let [text, xml] = ["in.opl", "in.osm"].map(|name| dir.path().join(name));
    let long = "1".repeat(1_000_000);
    std::fs::write(&text, format!("n{long} v1\n")).unwrap();
    std::fs::write(
        &xml,
        format!("<osm version='0.6'><node id='{long}'/></osm>"),
    )
    .unwrap();
    for input in [&text, &xml] {
        let message = run_fail(&[&"inspect", input]);
        assert!(
            message.contains("line 1") && message.len() < 3000,
            "{message}"
        );
    }
}

#[test]
fn many_and_long_remarks_are_few_and_short_warnings() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.osm");
    let node = "<node id='1' version='1' lat='1' lon='1'/>";
    let long = format!("<remark>{}</remark>", "long ".repeat(100_000));
    let many = "<remark>again</remark>".repeat(100_000);
    let text = format!(
        "<osm version='0.6'>{node}{long}{many}{}{many}</osm>",
        node.replace("id='1'", "id='2'")
    );
    std::fs::write(&input, text).unwrap();
    let ran = run_ok(&[&"inspect", &input]);
    let said = String::from_utf8(ran.stderr).unwrap();
    let lines = said
        .lines()
        .filter(|line| line.contains("the server that made the file says"));
    assert_eq!(lines.count(), 3, "{said}");
    assert!(said.len() < 5000, "{} bytes", said.len());
}

#[test]
fn the_versions_of_the_last_object_may_be_more_than_a_table_can_have_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osh.pbf", "out.osh.pbf"].map(|name| dir.path().join(name));
    for count in [1000, 70_000] {
        let version_by_version = hostile_files::versions_of_a_node(count);
        std::fs::write(&input, version_by_version).unwrap();
        run_ok(&[&"cat", &input, &"-O", &"-o", &output]);
        assert_eq!(lines(&output).lines().count(), count);
        run_ok(&[&"check", &"--index", &output]);
    }
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

/// The maximum peak of resident memory in bytes.
const MOST_BYTES: u64 = 400_000_000;
/// The maximum peak in short runs, whose files have one 64th of the repetitions.
const MOST_BYTES_OF_SMALL: u64 = 150_000_000;
/// The maximum number of lines of standard error.
const MOST_LINES: usize = 6;

/// Measures the command of the environment (see `common/measured.rs`), and does nothing without it.
#[test]
fn measured() {
    measured::run_as_helper();
}

/// The directory of a hostile file, with the other files that commands need.
struct Trial {
    dir: tempfile::TempDir,
    program: PathBuf,
    most_time: Duration,
    most_bytes: u64,
}

/// A command on a file, and what it took.
struct Row {
    pair: String,
    measured: Measured,
    fault: Option<&'static str>,
}

impl Row {
    fn text(&self) -> String {
        let Measured {
            status,
            stderr,
            peak,
            wall,
            cpu,
        } = &self.measured;
        let fault = self
            .fault
            .map_or(String::new(), |fault| format!("{fault}: "));
        let start: String = stderr.chars().take(300).collect();
        let (pair, peak) = (&self.pair, *peak as f64 / 1e6);
        format!(
            "{fault}{pair}: status {status:?}, {peak:.0} MB, {wall:.1?}, processors {cpu:.1?}\n{start}"
        )
    }
}

impl Trial {
    /// `PBFHOGG_PROGRAM` is a program that was built with optimisation.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        hostile::write(&dir.path().join("other.osm.pbf"), &[""], &[nodes(3)]);
        let changes = "<osmChange version='0.6'><modify><node id='5' version='9' lat='1' lon='1'/></modify></osmChange>";
        std::fs::write(dir.path().join("day.osc"), changes).unwrap();
        let program = std::env::var_os("PBFHOGG_PROGRAM").map(PathBuf::from);
        Self {
            dir,
            // Texts of ten million features or nodes take up to twice as long.
            most_time: Duration::from_secs(if program.is_some() { 10 } else { 60 }),
            most_bytes: if is_long() {
                MOST_BYTES
            } else {
                MOST_BYTES_OF_SMALL
            },
            program: program.unwrap_or_else(|| pbfhogg().get_program().into()),
        }
    }

    fn write(&self, file: &HostileFile) {
        let bytes = file.bytes(if is_long() { 1 } else { 64 });
        assert!(
            bytes.len() < 1 << 20,
            "{}: {} bytes",
            file.name,
            bytes.len()
        );
        std::fs::write(self.dir.path().join(file.name), bytes).unwrap();
    }

    /// Runs a command on a file that was written.
    fn run(&self, file: &str, command: &str) -> Row {
        let path = |name: &str| self.dir.path().join(name);
        let output = path("out");
        let (input, other, day) = (path(file), path("other.osm.pbf"), path("day.osc"));
        let words: [(&str, &Path); 4] = [
            ("{in}", &input),
            ("{other}", &other),
            ("{day}", &day),
            ("{out}", &output),
        ];
        let mut arguments = vec![self.program.clone()];
        arguments.extend(every::arguments(command, &words));
        if !command.starts_with("fileinfo") {
            arguments.push("-j2".into());
        }
        let is_compared = command.contains("diff ") && command.contains("{out}");
        let is_text = is_compared || command.starts_with("export");
        let most_time = if is_text {
            self.most_time * 2
        } else {
            self.most_time
        };
        // Where others use the machine, the time of the processors counts.
        let measured = measure(&arguments, most_time * 4);
        let is_written = every::remove_outputs(&output);
        let fault = match measured.status {
            None | Some(137) if measured.wall >= most_time => Some("too much time"),
            Some(2) if is_written => Some("an output of a command that failed"),
            Some(0..=2) if measured.stderr.contains("panicked") => Some("a panic"),
            Some(0..=2) if measured.stderr.contains("internal error") => Some("an internal error"),
            Some(0..=2) if measured.stderr.lines().count() > MOST_LINES => Some("many lines"),
            Some(0..=2) if measured.peak > self.most_bytes => Some("too much memory"),
            Some(0..=2) if measured.wall.min(measured.cpu) > most_time => Some("too much time"),
            Some(0..=2) => None,
            _ => Some("a signal or a panic"),
        };
        Row {
            pair: format!("{file} {command}"),
            measured,
            fault,
        }
    }
}

/// Prints the ten rows that took most.
fn print_worst(rows: &mut [Row], by: &str, key: fn(&Measured) -> u64) {
    rows.sort_by_key(|row| std::cmp::Reverse(key(&row.measured)));
    println!("\nThe ten pairs with {by}:");
    rows.iter()
        .take(10)
        .for_each(|row| println!("{}", row.text()));
}

/// Tries one command of `of` on each file, in turns that a seed gives; in long runs every command on every file, one at
/// a time. `PBFHOGG_HOSTILE=TEXT` tries only the pairs that have the text, such as the name of a file and a command.
#[test]
fn every_command_ends_well_on_every_hostile_file() {
    let commands = every::lines(&["reads", "copies", "hostile"]);
    let wanted = std::env::var("PBFHOGG_HOSTILE").unwrap_or_default();
    let files = hostile_files();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        let trial = Trial::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            trial.write(file);
            let tried: Vec<&str> = if is_long() {
                commands.clone()
            } else {
                // The seed is the name, so that a further file does not change the commands of the others.
                let seed = file.name.bytes().fold(1u64, |seed, byte| {
                    seed.wrapping_mul(31).wrapping_add(byte.into())
                });
                vec![commands[Random(seed).below(commands.len())]]
            };
            for command in tried {
                // Blobs of ten objects, of which there are millions.
                if is_long() && command.starts_with("repack -n ") {
                    continue;
                }
                if !format!("{} {command}", file.name).contains(&wanted) {
                    continue;
                }
                let row = trial.run(file.name, command);
                if row.fault.is_some() {
                    println!("{}", row.text());
                }
                rows.lock().unwrap().push(row);
            }
            std::fs::remove_file(trial.dir.path().join(file.name)).unwrap();
        }
    };
    // In long runs, one command at a time is measured.
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let threads = if is_long() { 1 } else { threads };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
    let mut rows = rows.into_inner().unwrap();
    print_worst(&mut rows, "most memory", |row| row.peak);
    print_worst(&mut rows, "most time", |row| row.cpu.as_millis() as u64);
    let wrong = rows.iter().filter(|row| row.fault.is_some());
    let wrong: Vec<String> = wrong.map(Row::text).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

/// The commands that read no file of objects, or whose files are no hostile ones.
const WITHOUT_FILE: [&str; 9] = [
    "help",
    "completions",
    "man",
    "demo",
    "synth",
    "update",
    // The files of `extract` and `diff`, which have lines.
    "regions",
    "geocode",
    "query-locations-index",
];

#[test]
fn the_table_has_every_command_that_reads_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let listed = documents::commands(dir.path()).into_iter();
    let mut listed: Vec<String> = listed.map(|command| command.name).collect();
    let mut in_table = every::command_names();
    // `tags-count` is the same as `inspect tags`.
    in_table.retain(|name| *name != "tags-count");
    in_table.sort_unstable();
    listed.sort_unstable();
    assert_eq!(in_table, listed);
    let table = every::table();
    for name in in_table {
        let mut lines = table.iter().filter(|line| line.command == name);
        let is_there = lines.any(|line| line.has(&["reads", "copies", "hostile"]));
        assert_eq!(is_there, !WITHOUT_FILE.contains(&name), "{name}");
    }
}
