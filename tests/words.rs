//! Words as people write them: ids, places, commands, options and expressions.

use crate::common::answers::ask;
use crate::common::{Arg, canonical_key, decode, run_fail, run_ok, small_world};
use crate::geoparquet::{export, field, rows, text};
use std::path::{Path, PathBuf};

/// Writes two nodes, a way and a relation. The way has a tag with the name of an attribute.
fn opl(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let objects = "n1 v1 Tname=A x9.5 y47.1\nn2 v1 Tname=B x9.6 y47.2\n\
                   w7 v2 t2024-05-01T00:00:00Z i9 uann Tboundary=administrative,name=X,user=y Nn1,n2\n\
                   r8 v1 Ttype=boundary,boundary=administrative,name=Y Mw7@outer\n";
    std::fs::write(&path, objects).unwrap();
    path
}

/// The ids that `getid` gives for words, which follow the file.
fn found(input: &Path, words: &[&str]) -> Vec<String> {
    let words: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
    let start: [Arg; 4] = [&"getid", &"-f", &"opl", &input];
    let answer = ask(&[&start[..], &words].concat());
    let id = |line: String| line.split(' ').next().unwrap().to_owned();
    answer.lines().into_iter().map(id).collect()
}

#[test]
fn ids_are_read_as_people_write_them() {
    let dir = tempfile::tempdir().unwrap();
    let input = opl(dir.path(), "in.opl");
    for (words, expected) in [
        (&["way/7"][..], &["w7"][..]),
        (&["way", "7"], &["w7"]),
        (&["nodes 1 2", "relation", "8"], &["n1", "n2", "r8"]),
        (&["https://www.openstreetmap.org/way/7"], &["w7"]),
        (
            &["https://www.openstreetmap.org/relation/8/history#map=18/47.1/9.5"],
            &["r8"],
        ),
        (&["osm.org/node/2?xhr=1", "way/7/history/1"], &["n2", "w7"]),
    ] {
        assert_eq!(found(&input, words), expected, "{words:?}");
        // The same in a file, and in the other commands that read ids.
        let list = dir.path().join("ids.txt");
        if words.len() == 1 && !words[0].contains("1 2") {
            std::fs::write(&list, words[0]).unwrap();
            let list = format!("--id-file={}", list.display());
            assert_eq!(found(&input, &[&list]), expected, "{words:?}");
        }
        let words: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
        let start: [Arg; 4] = [&"show", &"-f", &"opl", &input];
        let shown = ask(&[&start[..], &words].concat());
        assert_eq!(shown.status, 0, "{shown:?}");
        assert_eq!(shown.lines().len(), expected.len());
    }
    let list = dir.path().join("ids.txt");
    std::fs::write(
        &list,
        "way 7 # a street\nhttps://www.openstreetmap.org/node/1\n",
    )
    .unwrap();
    let list = format!("--id-file={}", list.display());
    assert_eq!(found(&input, &[&list]), ["n1", "w7"]);
    let parents = ask(&[&"getparents", &input, &"node", &"1", &"-f", &"opl"]);
    assert!(parents.stdout.starts_with("w7 "), "{parents:?}");
    for word in [
        "way",
        "https://www.openstreetmap.org/changeset/7",
        "way/x",
        "street/7",
    ] {
        let message = run_fail(&[&"getid", &input, &word, &"-f", &"opl"]);
        assert!(message.contains("is not an id like n17"), "{message}");
    }
}

#[test]
fn commands_of_other_names_point_to_the_one_that_is_meant() {
    for (word, expected) in [
        ("info", "`pbfhogg inspect "),
        ("stats", "`pbfhogg inspect "),
        ("count", "`pbfhogg inspect "),
        ("head", "`pbfhogg inspect "),
        ("convert", "`pbfhogg cat "),
        ("convert", "`pbfhogg export "),
        ("view", "`pbfhogg show "),
        ("history", "`pbfhogg show "),
        ("compare", "`pbfhogg diff "),
        ("validate", "`pbfhogg check "),
        ("filter", "`pbfhogg tags-filter "),
        ("query", "`pbfhogg tags-filter "),
        ("index", "`pbfhogg cat "),
        ("dedupe", "`pbfhogg merge "),
        ("map", "`pbfhogg inspect --html "),
        ("tiles", "`pbfhogg export "),
        ("serve", "`pbfhogg geocode "),
        ("publish", "`pbfhogg diff -f osc "),
        ("poly", "`pbfhogg extract -p "),
    ] {
        for args in [&[&word as Arg][..], &[&"help", &word]] {
            let message = run_fail(args);
            assert!(
                message.contains(&format!("there is no command '{word}': ")),
                "{message}"
            );
            assert!(message.contains(expected), "{message}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let message = run_fail(&[&world]);
    assert!(message.contains("`pbfhogg inspect "), "{message}");
    let message = run_fail(&[&"not-here.osm.pbf"]);
    assert!(message.contains("a command comes first"), "{message}");
}

#[test]
fn arguments_and_options_of_other_forms_point_to_the_one_that_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [output, page] = ["out.osm.pbf", "page.html"].map(|name| dir.path().join(name));
    let cases: [(&[Arg], &str); 9] = [
        (
            &[&"export", &world, &"--tags", &"highway"],
            "did you mean --filter?",
        ),
        (
            &[&"extract", &world, &"--tags", &"highway"],
            "`pbfhogg tags-filter FILE w/highway",
        ),
        (
            &[&"inspect", &world, &"--tags", &"highway"],
            "`pbfhogg inspect tags FILE",
        ),
        (
            &[&"inspect", &world, &"-o", &page],
            "`pbfhogg inspect --html PAGE.html FILE`",
        ),
        (
            &[&"extract", &world, &"9.5,47.1,9.6,47.2"],
            "-b 9.5,47.1,9.6,47.2 FILE`",
        ),
        (
            &[&"extract", &world, &"-1.5,50,1,51"],
            "-b -1.5,50,1,51 FILE`",
        ),
        (
            &[&"extract", &world, &"town.poly", &"-o", &output],
            "-p town.poly FILE`",
        ),
        (
            &[&"extract", &world, &output, &"-b", &"1,1,2,2"],
            "an output follows -o",
        ),
        (&[&"augmented-diff", &world, &world], "diff -f adiff "),
    ];
    for (args, expected) in cases {
        let message = run_fail(args);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn expressions_with_a_condition_or_a_second_tag_in_the_wrong_form_get_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let input = opl(dir.path(), "in.opl");
    let filter = |words: &[&str]| {
        let words: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
        let start: [Arg; 5] = [&"tags-filter", &"-R", &"-f", &"opl", &input];
        ask(&[&start[..], &words].concat())
    };
    for text in ["timestamp>=2024-05", "w/version>1", "w/highway version>1"] {
        let answer = filter(&[text]);
        assert_eq!(answer.status, 2, "{answer:?}");
        assert!(
            answer.stderr.contains("begins with @, as in '@"),
            "{answer:?}"
        );
    }
    for (text, hint) in [
        ("uid=5", "'@uid=5' is a condition on the metadata"),
        (
            "r/boundary=administrative name=Y",
            "as in 'boundary=administrative&name=Y'",
        ),
        ("r/boundary=administrative @x name=Y", "& joins tags"),
        ("w/name=X version>3", "as in 'name=X @version>3'"),
    ] {
        let answer = filter(&[text]);
        assert_eq!(answer.status, 0, "{answer:?}");
        assert!(answer.stderr.contains(hint), "{text}: {answer:?}");
    }
    // A tag with the name of an attribute is found, and nothing is said. The note about two expressions is for people.
    for words in [&["user=y"][..], &["r/boundary=administrative", "name=X"]] {
        let answer = filter(words);
        assert!(
            answer.stderr.is_empty() && !answer.stdout.is_empty(),
            "{answer:?}"
        );
    }
    let answer = filter(&["-v", "r/boundary=administrative", "name=X"]);
    assert!(
        answer.stderr.contains("'r/boundary=administrative&name=X'"),
        "{answer:?}"
    );
    assert_eq!(
        filter(&["r/boundary=administrative&name=Y"]).lines().len(),
        1
    );
    assert_eq!(filter(&["@version>1"]).lines().len(), 1);
}

#[test]
fn a_place_is_one_word_or_two_and_places_come_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    let address = "addr:housenumber=7,addr:street=Lac,addr:city=Bourg";
    std::fs::write(
        &input,
        format!("n1 v1 T{address} x6 y46\nn2 v1 T{address} x-70.6 y-33.4\n"),
    )
    .unwrap();
    let index = dir.path().join("index");
    run_ok(&[&"build-geocode-index", &input, &"-o", &index]);
    let expected = ask(&[&"geocode", &index, &"46", &"6"]);
    assert!(expected.stdout.contains("Bourg"), "{expected:?}");
    for word in ["46,6", "46;6", "46 6", "46.0, 6.0", "-33.4,-70.6"] {
        assert_eq!(ask(&[&"geocode", &index, &word]), expected, "{word}");
    }
    let [list, table] = ["places.txt", "places.csv"].map(|name| dir.path().join(name));
    std::fs::write(&list, "46 6\n46,6\n").unwrap();
    let lines = ask(&[&"geocode", &index, &list]);
    assert_eq!(lines.stdout, expected.stdout.repeat(2));
    std::fs::write(&table, "id,lat,lon\n5,46,6\n").unwrap();
    let rows = ask(&[&"geocode", &index, &table]);
    assert_eq!(rows, ask(&[&"geocode", &index, &"--csv", &table]));
    assert!(rows.stdout.starts_with("id,lat,lon,address,"), "{rows:?}");
    let json = ask(&[&"geocode", &index, &table, &"--json", &"--limit", &"1"]);
    assert!(json.stdout.starts_with('{'), "{json:?}");
    std::fs::write(&table, "id,name\n5,6\n").unwrap();
    for (words, cause) in [
        (&[&"46" as Arg][..], "the order is LAT LON"),
        (&[&"147", &"9"], "latitude 147 lies outside"),
        (&[&"nothing.csv"], "nothing.csv: cannot open"),
        (&[&"46,6", &"--csv"], "not for one place"),
        (&[&table], "places.csv: line 1: "),
    ] {
        let start: [Arg; 2] = [&"geocode", &index];
        let message = run_fail(&[&start[..], words].concat());
        assert!(message.contains(cause), "{message}");
    }
}

#[test]
fn the_order_of_coordinates_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    const ORDER: &str = "min_lon,min_lat,max_lon,max_lat";
    for value in ["1,2,3", "1,95,2,96"] {
        let message = run_fail(&[&"extract", &world, &"-b", &value, &"-f", &"opl"]);
        assert!(message.contains(ORDER), "{message}");
        let message = run_fail(&[&"cat", &world, &"--set-bbox", &value, &"-f", &"pbf"]);
        assert!(message.contains(ORDER), "{message}");
    }
    assert!(ask(&[&"inspect", &world]).stdout.contains(ORDER));
    for command in ["extract", "export", "cat", "changeset-filter"] {
        let help = ask(&[&command, &"--help"]).stdout;
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(ORDER), "{command}");
    }
}

#[test]
fn help_has_topics_by_any_of_their_names() {
    for (words, start) in [
        (&["expressions"][..], "Expressions\n"),
        (&["expression"], "Expressions\n"),
        (&["exit-status"], "Exit status\n"),
        (&["exit", "status"], "Exit status\n"),
        (&["formats"], "File formats\n"),
        (&["file-formats"], "File formats\n"),
    ] {
        let words: Vec<Arg> = words.iter().map(|word| word as Arg).collect();
        let text = ask(&[&[&"help" as Arg][..], &words].concat()).stdout;
        assert!(text.starts_with(start), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 120));
    }
}

#[test]
fn a_header_field_is_removed_by_an_empty_value() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    let [full, bare] = ["full.osm.pbf", "bare.osm.pbf"].map(|name| dir.path().join(name));
    let fields = [
        ("source", "survey"),
        ("osmosis_replication_base_url", "https://example.org/day"),
        ("osmosis_replication_sequence_number", "5"),
        ("osmosis_replication_timestamp", "2024-05-01T00:00:00Z"),
    ];
    let written = |input: &PathBuf, output: &PathBuf, fields: &[String]| {
        let fields = fields.iter().map(|field| field as Arg);
        let start: [Arg; 5] = [&"cat", &"-q", &input, &"-o", &output];
        run_ok(&start.into_iter().chain(fields).collect::<Vec<_>>());
        let report = ask(&[&"inspect", &"--json", &output]).json();
        [
            "source",
            "replication_url",
            "replication_sequence",
            "replication_timestamp",
            "generator",
        ]
        .map(|name| report.get(name).cloned().unwrap_or_default())
    };
    let set = fields.map(|(key, value)| format!("--output-header={key}={value}"));
    let with = written(&world, &full, &set);
    assert!(
        with.iter().filter(|field| !field.is_null()).count() >= 4,
        "{with:?}"
    );
    let clear = fields.map(|(key, _)| format!("--output-header={key}="));
    let clear = [&clear[..], &["--output-header=generator=".to_owned()]].concat();
    let without = written(&full, &bare, &clear);
    assert!(
        without.iter().all(serde_json::Value::is_null),
        "{without:?}"
    );
    assert!(decode::objects(&bare) == decode::objects(&world));
}

#[test]
fn change_files_are_written_as_pbf() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (old, new) = (opl(dir.path(), "old.opl"), at("new.opl"));
    let text = std::fs::read_to_string(&old).unwrap();
    let text = text.replace("n1 v1 Tname=A x9.5 y47.1\n", "");
    let text = text.replace(
        "n2 v1 Tname=B x9.6 y47.2\n",
        "n2 v2 Tname=C x9.6 y47.2\nn3 v1 T x9.5 y47.1\n",
    );
    std::fs::write(&new, text).unwrap();
    let [xml, named, stated] = ["c.osc", "c.osc.pbf", "c.data"].map(at);
    run_ok(&[&"derive-changes", &old, &new, &"-o", &xml]);
    let told = run_ok(&[&"derive-changes", &old, &new, &"-o", &named]);
    assert!(told.stderr.is_empty(), "{told:?}");
    run_ok(&[&"diff", &old, &new, &"-f", &"osc.pbf", &"-o", &stated]);
    let expected = ask(&[
        &"merge-changes",
        &xml,
        &"-f",
        &"osc.pbf",
        &"-o",
        &at("m.osc.pbf"),
    ]);
    assert_eq!(expected.status, 0);
    let sorted = |path: &Path| {
        let mut objects = decode::objects(path);
        objects.sort_by_key(|object| canonical_key(object.kind, object.id));
        objects
    };
    let expected = sorted(&at("m.osc.pbf"));
    assert!(expected.len() == 3 && sorted(&named) == expected);
    assert!(sorted(&stated) == expected);
    let [one, other] = ["1.opl", "2.opl"].map(at);
    run_ok(&[&"apply-changes", &old, &xml, &"-o", &one]);
    run_ok(&[&"apply-changes", &old, &named, &"-o", &other]);
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap());
    let status = ask(&[
        &"diff",
        &"--exit-code",
        &old,
        &new,
        &"-f",
        &"osc.pbf",
        &"-o",
        &at("d.osc.pbf"),
    ]);
    assert_eq!(status.status, 1);
}

#[test]
fn cells_of_h3_are_columns() {
    let dir = tempfile::tempdir().unwrap();
    let (input, table) = (dir.path().join("in.opl"), dir.path().join("out.parquet"));
    // The examples in the documentation of H3.
    std::fs::write(&input, "n1 v1 Tname=A x-122.0553238 y37.3615593\n").unwrap();
    export(&input, &table, &["--with", "h3:15,h3:7,names,h3:0"]);
    let rows = rows(&table);
    let cell = |name: &str| text(field(&rows[0], name));
    assert_eq!(cell("h3_7"), "87283472bffffff");
    assert!(cell("h3_15").starts_with("8f28347") && cell("h3_15").len() == 15);
    assert_eq!(cell("h3_0"), "8029fffffffffff");
    for (columns, cause) in [
        ("h3:16", "a resolution from 0 to 15"),
        ("h3", "a resolution from 0 to 15"),
        (
            "places",
            "expected area, length, centroid, country, names or h3:RESOLUTION",
        ),
    ] {
        let message = run_fail(&[&"export", &input, &"--with", &columns, &"-o", &table]);
        assert!(message.contains(cause), "{message}");
    }
}
