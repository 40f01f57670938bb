//! The replication state in headers: what follows it, and what leaves it as it is.

use crate::common::{Arg, decode, run_fail, run_ok};
use std::fs;
use std::path::{Path, PathBuf};

const DAY: &str = "https://osm.example/day";
/// A time in seconds: the hours after the first second of 2026.
const fn hour(hours: i64) -> i64 {
    1_767_225_600 + 3600 * hours
}

/// A state: URL, sequence number and hour, as far as they are known.
type State = (Option<&'static str>, Option<i64>, Option<i64>);

fn text(time: i64) -> String {
    let time = jiff::Timestamp::from_second(time).unwrap();
    time.to_string()
}

/// Options that set the state of an output.
fn options(state: State) -> Vec<String> {
    let (url, sequence, hours) = state;
    let fields = [
        url.map(|url| format!("osmosis_replication_base_url={url}")),
        sequence.map(|number| format!("osmosis_replication_sequence_number={number}")),
        hours.map(|hours| format!("osmosis_replication_timestamp={}", text(hour(hours)))),
    ];
    fields
        .into_iter()
        .flatten()
        .map(|field| format!("--output-header={field}"))
        .collect()
}

/// A file with a state.
fn file(dir: &Path, name: &str, id: i64, state: State) -> PathBuf {
    let (opl, path) = (dir.join("objects.opl"), dir.join(name));
    fs::write(&opl, format!("n{id} v1 t2025-12-31T00:00:00Z x1 y1\n")).unwrap();
    let options = options(state);
    let mut args: Vec<Arg> = vec![&"cat", &"-q", &"-O", &opl, &"-o", &path];
    args.extend(options.iter().map(|option| option as Arg));
    run_ok(&args);
    path
}

/// A change file with a state in its root element.
fn changes(dir: &Path, name: &str, id: i64, state: State) -> PathBuf {
    let (url, sequence, hours) = state;
    let url = url.map_or(String::new(), |url| {
        format!(" osmosis_replication_base_url=\"{url}\"")
    });
    let number = sequence.map_or(String::new(), |number| {
        format!(" sequence_number=\"{number}\"")
    });
    let time = hours.map_or(String::new(), |hours| {
        format!(" timestamp=\"{}\"", text(hour(hours)))
    });
    let path = dir.join(name);
    let body = format!("<create><node id=\"{id}\" version=\"1\" lat=\"1\" lon=\"1\"/></create>");
    fs::write(
        &path,
        format!("<osmChange version=\"0.6\"{url}{number}{time}>{body}</osmChange>"),
    )
    .unwrap();
    path
}

/// The state in the header of a file.
fn state_of(path: &Path) -> (Option<String>, Option<i64>, Option<i64>) {
    let header = decode::header(path);
    let hours = header
        .replication_timestamp
        .map(|time| (time - hour(0)) / 3600);
    (header.replication_url, header.replication_sequence, hours)
}

fn known(state: State) -> (Option<String>, Option<i64>, Option<i64>) {
    (state.0.map(str::to_owned), state.1, state.2)
}

#[test]
fn a_change_file_moves_the_state_on_only_where_it_continues_the_base() {
    let dir = tempfile::tempdir().unwrap();
    const NONE: State = (None, None, None);
    let base = (Some(DAY), Some(72), Some(1728));
    let minute = Some("https://osm.example/minute");
    // The base, the change files, the state of the output, and whether there is a warning.
    let rows: &[(State, &[State], State, bool)] = &[
        // The next one, or the next ones in any order.
        (
            base,
            &[(None, Some(73), Some(1752))],
            (Some(DAY), Some(73), Some(1752)),
            false,
        ),
        (
            base,
            &[
                (None, Some(74), Some(1776)),
                (Some(DAY), Some(73), Some(1752)),
            ],
            (Some(DAY), Some(74), Some(1776)),
            false,
        ),
        (
            base,
            &[(None, Some(73), None)],
            (Some(DAY), Some(73), Some(1728)),
            false,
        ),
        (
            (None, Some(4), None),
            &[(Some(DAY), Some(5), Some(120))],
            (Some(DAY), Some(5), Some(120)),
            false,
        ),
        // The base has it, or it says nothing.
        (
            base,
            &[(None, Some(72), Some(1728)), (None, Some(3), Some(72))],
            base,
            false,
        ),
        (base, &[NONE], base, false),
        // A file of hours, whose numbers are larger, smaller, or the next by chance.
        (base, &[(None, Some(1729), Some(1729))], base, true),
        (base, &[(None, Some(70), Some(1729))], base, true),
        (base, &[(None, Some(73), Some(73))], base, true),
        // A gap.
        (base, &[(None, Some(74), Some(1776))], base, true),
        (
            base,
            &[(None, Some(73), Some(1752)), (None, Some(75), Some(1800))],
            (Some(DAY), Some(73), Some(1752)),
            true,
        ),
        // Another server, which the file names.
        (base, &[(minute, Some(73), Some(1752))], base, true),
        // A time alone proves nothing.
        (base, &[(None, None, Some(1752))], base, true),
        (
            (None, None, Some(1728)),
            &[(None, Some(73), Some(1752))],
            (None, None, Some(1728)),
            true,
        ),
        // Nobody knows what a base without a state lacks.
        (NONE, &[(None, Some(73), Some(1752))], NONE, true),
        (NONE, &[NONE], NONE, false),
    ];
    for (number, (base, steps, expected, warns)) in rows.iter().enumerate() {
        let path = file(dir.path(), "base.osm.pbf", 1, *base);
        let files = (10..)
            .zip(*steps)
            .map(|(id, step)| changes(dir.path(), &format!("{id}.osc"), id, *step));
        let files: Vec<PathBuf> = files.collect();
        let output = dir.path().join("out.osm.pbf");
        let mut args: Vec<Arg> = vec![&"apply-changes", &"-O", &path, &"-o", &output];
        args.extend(files.iter().map(|file| file as Arg));
        let said = run_ok(&args).stderr;
        let said = String::from_utf8(said).unwrap();
        assert_eq!(state_of(&output), known(*expected), "{number}: {said}");
        assert_eq!(
            said.contains("--output-header sets another one"),
            *warns,
            "{number}: {said}"
        );
        assert_eq!(decode::objects(&output).len(), 1 + files.len());
        // The user knows better.
        args.extend([&"--output-header=osmosis_replication_sequence_number=9" as Arg]);
        let said = run_ok(&args).stderr;
        assert_eq!(state_of(&output).1, Some(9));
        assert!(said.is_empty(), "{number}");
    }
}

#[test]
fn a_state_file_beside_a_change_file_says_what_its_root_element_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let base = file(dir.path(), "base.osm.pbf", 1, (None, Some(4072), Some(1)));
    let output = dir.path().join("out.osm.pbf");
    let below = dir.path().join("000/004");
    fs::create_dir_all(&below).unwrap();
    for (directory, name) in [(dir.path(), "4073"), (&below, "073")] {
        let change = changes(directory, &format!("{name}.osc"), 2, (None, None, None));
        let beside = directory.join(format!("{name}.state.txt"));
        let state =
            |number: i64| format!("sequenceNumber={number}\ntimestamp=2026-01-01T02\\:00\\:00Z\n");
        for (number, expected) in [(4073, (4073, 2)), (4074, (4072, 1)), (-1, (4072, 1))] {
            fs::write(&beside, state(number)).unwrap();
            run_ok(&[
                &"apply-changes",
                &"-q",
                &"-O",
                &base,
                &change,
                &"-o",
                &output,
            ]);
            assert_eq!(
                state_of(&output),
                (None, Some(expected.0), Some(expected.1))
            );
        }
    }
}

#[test]
fn merged_and_derived_changes_say_between_which_states_they_lead() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let day = |number: i64| (None, Some(number), Some(24 * number));
    let files =
        [3, 1, 2].map(|number| changes(dir.path(), &format!("{number}.osc"), number, day(number)));
    let (merged, output) = (at("merged.osc"), at("out.osm.pbf"));
    for simplify in [&[][..], &[&"-s" as Arg]] {
        let mut args: Vec<Arg> = vec![
            &"merge-changes",
            &"-O",
            &files[0],
            &files[1],
            &files[2],
            &"-o",
            &merged,
        ];
        args.extend(simplify);
        assert!(run_ok(&args).stderr.is_empty());
        for (number, expected) in [(0, 3), (2, 3), (3, 3), (4, 4)] {
            let base = file(dir.path(), "base.osm.pbf", 9, day(number));
            run_ok(&[
                &"apply-changes",
                &"-q",
                &"-O",
                &base,
                &merged,
                &"-o",
                &output,
            ]);
            assert_eq!(state_of(&output), known(day(expected)), "{number}");
        }
        // They do not follow each other: nobody knows the state after both.
        let mut args: Vec<Arg> = vec![
            &"merge-changes",
            &"-O",
            &files[0],
            &files[1],
            &"-o",
            &merged,
        ];
        args.extend(simplify);
        let said = String::from_utf8(run_ok(&args).stderr).unwrap();
        assert!(said.contains("do not follow each other"), "{said}");
        assert!(
            !fs::read_to_string(&merged)
                .unwrap()
                .contains("osmosis_replication")
        );
    }
    let (old, new) = (
        file(
            dir.path(),
            "old.osm.pbf",
            1,
            (Some(DAY), Some(5), Some(120)),
        ),
        file(
            dir.path(),
            "new.osm.pbf",
            2,
            (Some(DAY), Some(9), Some(216)),
        ),
    );
    let derived = at("derived.osc");
    run_ok(&[&"derive-changes", &old, &new, &"-o", &derived]);
    assert!(
        run_ok(&[&"apply-changes", &"-O", &old, &derived, &"-o", &output])
            .stderr
            .is_empty()
    );
    assert_eq!(state_of(&output), state_of(&new));
    let older = file(
        dir.path(),
        "older.osm.pbf",
        1,
        (Some(DAY), Some(4), Some(96)),
    );
    run_ok(&[
        &"apply-changes",
        &"-q",
        &"-O",
        &older,
        &derived,
        &"-o",
        &output,
    ]);
    assert_eq!(state_of(&output), state_of(&older));
}

#[test]
fn files_of_different_states_together_have_the_oldest() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.osm.pbf");
    let [day, hour] = [Some(DAY), Some("https://osm.example/hour")];
    let rows: &[(State, State, State)] = &[
        (
            (day, Some(5), Some(120)),
            (day, Some(7), Some(168)),
            (day, Some(5), Some(120)),
        ),
        (
            (day, Some(7), Some(168)),
            (day, Some(5), Some(120)),
            (day, Some(5), Some(120)),
        ),
        (
            (day, Some(5), Some(120)),
            (hour, Some(5), Some(110)),
            (None, None, Some(110)),
        ),
        (
            (day, Some(5), Some(120)),
            (None, None, Some(130)),
            (None, None, Some(120)),
        ),
        (
            (day, Some(5), Some(120)),
            (None, None, None),
            (None, None, None),
        ),
        (
            (None, Some(5), Some(120)),
            (None, Some(5), Some(120)),
            (None, Some(5), Some(120)),
        ),
        (
            (None, Some(5), Some(120)),
            (None, Some(6), Some(144)),
            (None, None, Some(120)),
        ),
    ];
    for (one, other, expected) in rows {
        let files = [
            file(dir.path(), "one.osm.pbf", 1, *one),
            file(dir.path(), "other.osm.pbf", 2, *other),
        ];
        for command in ["merge", "cat", "sort"] {
            run_ok(&[&command, &"-q", &"-O", &files[0], &files[1], &"-o", &output]);
            assert_eq!(state_of(&output), known(*expected), "{command}");
        }
    }
}

#[test]
fn data_of_an_earlier_time_has_no_later_state() {
    let dir = tempfile::tempdir().unwrap();
    let input = file(dir.path(), "in.osm.pbf", 1, (Some(DAY), Some(5), Some(120)));
    let output = dir.path().join("out.osm.pbf");
    let at = |hours: i64| {
        let time = text(hour(hours));
        run_ok(&[&"time-filter", &"-q", &"-O", &input, &time, &"-o", &output]);
        state_of(&output)
    };
    assert_eq!(at(100), (Some(DAY.to_owned()), None, Some(100)));
    assert_eq!(at(120), (Some(DAY.to_owned()), Some(5), Some(120)));
}

#[test]
fn negative_numbers_and_times_are_no_state() {
    let dir = tempfile::tempdir().unwrap();
    let input = file(dir.path(), "in.osm.pbf", 1, (None, Some(7), Some(0)));
    let xml = dir.path().join("in.osm");
    fs::write(
        &xml,
        "<osm version=\"0.6\" osmosis_replication_sequence_number=\"-1\" osmosis_replication_timestamp=\"-1\"/>",
    )
    .unwrap();
    let output = dir.path().join("out.osm.pbf");
    run_ok(&[&"cat", &"-q", &xml, &"-o", &output]);
    assert_eq!(state_of(&output), (None, None, None));
    let unset = "--output-header=osmosis_replication_sequence_number=-1";
    run_ok(&[&"cat", &"-q", &"-O", &input, &unset, &"-o", &output]);
    assert_eq!(state_of(&output), (None, None, Some(0)));
    // A change file that follows -1 would be the first one.
    let first = changes(dir.path(), "0.osc", 2, (None, Some(0), Some(1)));
    run_ok(&[
        &"apply-changes",
        &"-q",
        &"-O",
        &output,
        &first,
        &"-o",
        &xml.with_extension("osm.pbf"),
    ]);
    assert_eq!(
        state_of(&xml.with_extension("osm.pbf")),
        (None, None, Some(0))
    );
    let message = run_fail(&[&"update", &"--server", &dir.path().join("nowhere"), &input]);
    assert!(
        message.contains("not the URL of a replication server"),
        "{message}"
    );
}
