//! `--force`, with which scripts ask for work on files without an index.

use crate::common::{Arg, craft, decode, node, pbfhogg, run, run_fail, run_ok, way};

/// The names of all commands, from the completions of a shell.
fn commands() -> Vec<String> {
    let script = String::from_utf8(run_ok(&[&"completions", &"bash"]).stdout).unwrap();
    let cases = script
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pbfhogg,"));
    let names = cases.filter_map(|case| case.strip_suffix(')'));
    names.map(str::to_owned).collect()
}

#[test]
fn every_command_takes_force() {
    let commands = commands();
    assert!(commands.len() > 30, "{commands:?}");
    for command in &commands {
        for args in [&[&"--force", &"--help"][..], &[&"--help", &"--force"]] {
            let done = pbfhogg()
                .arg(command)
                .args(args.iter().map(|arg| **arg))
                .output();
            let done = done.unwrap();
            assert!(done.status.success(), "{command} {args:?}: {done:?}");
        }
    }
}

#[test]
fn force_has_no_effect_but_on_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let objects = [
        node(1, 1, 1, &[]),
        node(2, 5, 5, &[]),
        way(1, &[1, 2], &[("a", "b")]),
    ];
    let input = at("in.osm.pbf");
    std::fs::write(
        &input,
        craft::plain_file(&[craft::block(&objects, &craft::Shape::USUAL)]),
    )
    .unwrap();
    let output = at("out.osm.pbf");
    let runs: [&[Arg]; 5] = [
        &[&"sort", &input],
        &[&"renumber", &input],
        &[&"getid", &input, &"w1", &"n1", &"n2"],
        &[&"tags-filter", &input, &"w/a"],
        &[&"add-locations-to-ways", &"-n", &input],
    ];
    for args in runs {
        for place in [1, args.len()] {
            let mut all = args.to_vec();
            all.insert(place, &"--force");
            all.extend([&"-o" as Arg, &output]);
            run_ok(&all);
            assert_eq!(decode::objects(&output).len(), 3);
            // It does not replace a file.
            let error = run_fail(&all);
            assert!(error.contains("--overwrite"), "{error}");
            std::fs::remove_file(&output).unwrap();
        }
    }
    let index = at("index");
    for _ in 0..2 {
        run_ok(&[&"build-geocode-index", &"--force", &input, &"-o", &index]);
    }
    run_ok(&[
        &"build-geocode-index",
        &"--force",
        &"-O",
        &input,
        &"-o",
        &index,
    ]);
}

#[test]
fn force_is_no_option_under_the_second_name() {
    for command in ["sort", "renumber", "getid"] {
        let done = run(&[&"osmium", &command, &"--force", &"x.osm.pbf", &"-f", &"opl"]);
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        let message = String::from_utf8(done.stderr).unwrap();
        assert!(message.contains("no option --force"), "{message}");
    }
}
