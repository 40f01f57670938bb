//! Tags that `&` joins, regular expressions, and the warning if nothing is kept.

use crate::common::oracle::osmium;
use crate::common::questions::{Inputs, file_of};
use crate::common::{Arg, mixed_objects, pbfhogg, run_fail, run_ok};
use std::path::{Path, PathBuf};
use std::process::Output;

const WORLD: &str = "<osm version='0.6'>
<node id='1' lat='1' lon='1' version='1'><tag k='name' v='Marks &amp; Spencer'/><tag k='shop' v='yes'/></node>
<node id='2' lat='1' lon='2' version='1'><tag k='name' v='H&amp;M'/><tag k='shop' v='clothes'/></node>
<node id='3' lat='1' lon='3' version='2'><tag k='website' v='http://a.org/?b=1&amp;c=2'/></node>
<node id='4' lat='1' lon='4' version='1'/>
<way id='5' version='1'><nd ref='4'/><nd ref='1'/><tag k='highway' v='primary'/><tag k='lanes' v='2'/></way>
<way id='6' version='2'><nd ref='4'/><nd ref='1'/><tag k='highway' v='primary'/><tag k='lanes' v='3'/>
<tag k='name' v='Avenue A'/></way>
<way id='7' version='1'><nd ref='4'/><nd ref='1'/><tag k='highway' v='service'/></way>
<relation id='8' version='1'><member type='way' ref='5' role=''/><tag k='type' v='route'/><tag k='ref' v='A81'/></relation>
</osm>";

fn world(dir: &Path) -> PathBuf {
    let path = dir.join("world.osm");
    std::fs::write(&path, WORLD).unwrap();
    path
}

/// The ids of the objects in the OPL that a run wrote.
fn ids(ran: &Output) -> String {
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    let ids = text.lines().filter_map(|line| line.split(' ').next());
    ids.collect::<Vec<_>>().join(" ")
}

/// The ids of the objects that match.
fn matching(file: &Path, expressions: &[&str]) -> String {
    let mut args: Vec<Arg> = vec![&"tags-filter", &"-R", &"-q", &"-f", &"opl", &file];
    args.extend(expressions.iter().map(|one| one as Arg));
    ids(&run_ok(&args))
}

#[test]
fn an_ampersand_asks_for_both_tags() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    for (expression, expected) in [
        ("w/highway=primary&lanes=2", "w5"),
        ("w/lanes=2&highway=primary", "w5"),
        ("w/highway=primary & lanes!=2", "w6"),
        ("highway=primary,service&lanes=2,3&name=*", "w6"),
        ("highway&name", "w6"),
        ("n/highway&name", ""),
        ("h*=primary&lanes=2,3", "w5 w6"),
        ("highway=primary&lanes=*&@version=1", "w5"),
        ("highway=primary&lanes=* @version>1", "w6"),
        ("highway=primary&shop=yes", ""),
        ("shop&name=H&M", "n2"),
        ("type=route&ref~^A[0-9]+$", "r8"),
    ] {
        assert_eq!(matching(&file, &[expression]), expected, "{expression}");
    }
    assert_eq!(
        matching(&file, &["w/highway=primary&lanes=2", "r/ref"]),
        "w5 r8"
    );
    let list = dir.path().join("list.txt");
    std::fs::write(&list, "w/highway=primary&lanes=2 # both\nn/name~^Marks\n").unwrap();
    let ran = run_ok(&[&"tags-filter", &"-R", &"-f", &"opl", &"-e", &list, &file]);
    assert_eq!(ids(&ran), "n1 w5");
    // The objects that are referred to come along, and -i turns the whole expression around.
    let ran = run_ok(&[
        &"tags-filter",
        &"-f",
        &"opl",
        &file,
        &"w/highway=primary&lanes=2",
    ]);
    assert_eq!(ids(&ran), "n1 n4 w5");
    let ran = run_ok(&[
        &"tags-filter",
        &"-iR",
        &"-f",
        &"opl",
        &file,
        &"w/highway=primary&lanes=2",
    ]);
    assert_eq!(ids(&ran), "n1 n2 n3 n4 w6 w7 r8");
}

#[test]
fn an_ampersand_in_a_value_stays_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    for (expression, expected) in [
        ("name=Marks & Spencer", "n1"),
        ("name=H&M", "n2"),
        ("name=Marks & Spencer,H&M", "n1 n2"),
        ("name=*&*", "n1 n2"),
        ("name=Marks & Spencer&shop=yes", "n1"),
        ("website=http://a.org/?b=1&c=2", "n3"),
        ("website=http://a.org/?b=1\\&c=2", "n3"),
    ] {
        assert_eq!(matching(&file, &[expression]), expected, "{expression}");
    }
}

#[test]
fn a_value_matches_a_regular_expression() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    for (expression, expected) in [
        ("name~^Marks", "n1"),
        ("name~(?i)h&m|AVENUE", "n2 w6"),
        ("w/name~.", "w6"),
        ("n/name!~^Marks", "n2"),
        ("lanes~^[12]$", "w5"),
        ("website~^http://a.org/", "n3"),
        ("ref,name~A", "w6 r8"),
    ] {
        assert_eq!(matching(&file, &[expression]), expected, "{expression}");
    }
    let message = run_fail(&[&"tags-filter", &file, &"name~(", &"-f", &"opl"]);
    assert!(
        message.contains("'(' is not a regular expression"),
        "{message}"
    );
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
}

#[test]
fn an_exclamation_mark_excludes_objects_with_a_tag() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    for (expression, expected) in [
        ("w/!name", "w5 w7"),
        ("w/highway=primary&!name", "w5"),
        ("w/!lanes=2,3", "w7"),
        ("w/!lanes!=2", "w5 w7"),
        ("nwr/!highway,website&!*a*", "n4 r8"),
        ("n/!*", "n4"),
        ("n/!name~^H", "n1 n3 n4"),
        ("w/highway=primary & !name @version<2", "w5"),
        ("w/!name @version>1", ""),
        ("name=Marks & Spencer&!shop", ""),
        ("a/!name", ""),
    ] {
        assert_eq!(matching(&file, &[expression]), expected, "{expression}");
    }
    let ran = run_ok(&[&"tags-filter", &"-iR", &"-f", &"opl", &file, &"!name"]);
    assert_eq!(ids(&ran), "n1 n2 w6");
    let counts = run_ok(&[&"inspect", &"tags", &"--json", &file, &"w/highway&!name"]);
    let counts: serde_json::Value = serde_json::from_slice(&counts.stdout).unwrap();
    assert_eq!(counts["tags"][0]["count"], 2, "{counts}");
    let message = run_fail(&[&"inspect", &"tags", &file, &"!name"]);
    assert!(message.contains("counts of tags need a key"), "{message}");
    let message = run_fail(&[&"tags-filter", &file, &"!@user=a", &"-f", &"opl"]);
    assert!(message.contains("'@user!=x'"), "{message}");
}

#[test]
fn conditions_on_ids_select_objects_and_pass_over_other_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    for (expression, expected) in [
        ("@id=5", "w5"),
        ("n/@id=2,4,5", "n2 n4"),
        ("nr/@id>=4", "n4 r8"),
        ("w/highway=primary @id!=5", "w6"),
        ("w/!name @id<7", "w5"),
        ("@id>1 @id<3 @version=1", "n2"),
        ("@id=-5", ""),
    ] {
        assert_eq!(matching(&file, &[expression]), expected, "{expression}");
    }
    // Of a file with an index, only the blobs that may have the id are read.
    let indexed = dir.path().join("indexed.osm.pbf");
    let objects = mixed_objects();
    let file = file_of(dir.path(), &[&objects[..2], &objects[2..]]);
    run_ok(&[&"cat", &file, &"-o", &indexed]);
    for file in [&file, &indexed] {
        assert_eq!(matching(file, &["w/@id=-5"]), "w-5");
        assert_eq!(matching(file, &["@id<0"]), "n-1 n-20 w-5 r-7");
        assert_eq!(
            matching(file, &["@id>5000000000"]),
            "n4611686018427387904 w1099511627776 r1099511627776"
        );
    }
    let stats = dir.path().join("stats.json");
    let output = dir.path().join("out.osm.pbf");
    let args: [Arg; 4] = [&"tags-filter", &"-R", &indexed, &"r/@id>2000000000000"];
    run_ok(&[&args[..], &[&"--stats", &stats, &"-o", &output]].concat());
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert_eq!(stats["blobs_decoded"], 0, "{stats}");
}

#[test]
fn joined_tags_and_regular_expressions_select_features_and_changes() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    let ran = run_ok(&[
        &"export",
        &file,
        &"-f",
        &"geojsonseq",
        &"--filter",
        &"w/highway=primary&lanes~^3$",
        &"-o",
        &"-",
    ]);
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(
        text.contains("Avenue A") && text.lines().count() == 1,
        "{text}"
    );
    let changes = dir.path().join("x.osc");
    let text = WORLD.replace("<osm version='0.6'>", "<osmChange version='0.6'><modify>");
    std::fs::write(&changes, text.replace("</osm>", "</modify></osmChange>")).unwrap();
    let out = dir.path().join("y.osc");
    run_ok(&[
        &"tags-filter",
        &"-R",
        &changes,
        &"w/highway=primary&lanes=2",
        &"-o",
        &out,
    ]);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.contains("<way id=\"5\"") && !text.contains("<way id=\"6\""),
        "{text}"
    );
    let counts = run_ok(&[&"inspect", &"tags", &file, &"name~^A"]);
    let text = String::from_utf8(counts.stdout).unwrap();
    assert!(
        text.contains("Avenue A") && !text.contains("Marks"),
        "{text}"
    );
    let both = "w/name&highway=primary&lanes=*";
    let counts = run_ok(&[&"inspect", &"tags", &"--json", &file, &both]);
    let counts: serde_json::Value = serde_json::from_slice(&counts.stdout).unwrap();
    let counts = counts["tags"].as_array().unwrap().iter();
    let counts = counts.map(|tag| format!("{} {} {}", tag["count"], tag["key"], tag["value"]));
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [
            "1 \"highway\" \"primary\"",
            "1 \"lanes\" \"3\"",
            "1 \"name\" null"
        ]
    );
}

#[test]
fn the_second_name_knows_no_joined_tags() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    for expression in ["w/highway=primary&lanes=2", "name~^Marks"] {
        let mut command = pbfhogg();
        command
            .args(["osmium", "tags-filter", "-R", "-f", "opl"])
            .arg(&file)
            .arg(expression);
        let ran = command.output().unwrap();
        assert!(ran.status.success() && ran.stdout.is_empty(), "{ran:?}");
        assert!(
            !String::from_utf8_lossy(&ran.stderr).contains("no object"),
            "{ran:?}"
        );
    }
}

/// The warning of a run that keeps nothing.
fn warning(file: &Path, args: &[&str]) -> String {
    let mut command = pbfhogg();
    command
        .args(["tags-filter", "-f", "opl"])
        .arg(file)
        .args(args);
    command.current_dir(file.parent().unwrap());
    let ran = command.output().unwrap();
    assert!(ran.status.success() && ran.stdout.is_empty(), "{ran:?}");
    String::from_utf8(ran.stderr).unwrap()
}

#[test]
fn a_filter_that_keeps_nothing_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = world(dir.path());
    for (args, reason) in [
        (
            &["w/highway=motorway,lanes=2"][..],
            "'highway=motorway&lanes=2'",
        ),
        (&["highway=primary&bridge"], "'highway=primary&bridge=*'"),
        (
            &["highway=primry"],
            "the key highway seems to have other values",
        ),
        (
            &["hihgway"],
            "none of the objects that were looked at has the key hihgway",
        ),
        (&["n/highway=primary"], "none of the nodes"),
        (&["highway=primary&shop=yes"], "at the same time"),
        (&["world.osm"], "in quotes"),
        (&["x", "and", "y"], "'and' is taken for a key"),
        (&["highway=a AND lanes=2"], "by a single &"),
        (&["-i", "*", "@version>0"], "-i leaves those out"),
    ] {
        let said = warning(&file, args);
        assert!(
            said.contains("warning: ") && said.contains(reason),
            "{args:?}: {said}"
        );
        assert_eq!(
            said.trim_end()
                .lines()
                .filter(|line| line.contains("warning"))
                .count(),
            1,
            "{said}"
        );
        let mut quiet = args.to_vec();
        quiet.push("-q");
        assert_eq!(warning(&file, &quiet), "", "{args:?}");
    }
    let ran = run_ok(&[&"tags-filter", &"-f", &"opl", &file, &"highway"]);
    assert!(!String::from_utf8_lossy(&ran.stderr).contains("no object"));
}

#[test]
fn a_file_of_expressions_has_comments_and_empty_lines() {
    let dir = tempfile::tempdir().unwrap();
    let objects = mixed_objects();
    let path = file_of(dir.path(), &[&objects]);
    let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
    std::fs::write(
        &one,
        "# nothing\n\n  n/id = zero # the first\r\nw/highway #=path\n\t\n",
    )
    .unwrap();
    std::fs::write(&other, "a/name").unwrap();
    let (one, other) = (one.to_str().unwrap(), other.to_str().unwrap());
    let input = Inputs::of(&path);
    let names = |args: &[&str]| {
        let answer = input.ask(&[&["tags-filter", "-R"], args].concat());
        answer
            .objects
            .iter()
            .map(|object| object.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["-e", one]), [0, -5, 1 << 40]);
    assert_eq!(names(&["-e", one, "-e", other]), [0, -5, 1, 1 << 40, 7]);
    assert_eq!(names(&["-e", one, "r/type=site"]), [0, -5, 1 << 40, -7]);
}

/// Runs `tags-filter` with a file of expressions, and returns the ids that it finds.
fn matching_file(program: &mut std::process::Command, file: &Path, list: &Path) -> String {
    program.args(["tags-filter", "-R", "-f", "opl"]).arg(file);
    let ran = program.arg("-e").arg(list).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    ids(&ran)
}

#[test]
fn a_hash_in_a_word_of_a_file_of_expressions_is_no_comment() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.opl");
    let text = "n1 x1 y1 Tcolour=#ff0000\nn2 x1 y1 Tcolour=red\nn3 x1 y1 Tcolour=\n\
                n4 x1 y1 Tref=A#1\nn5 x1 y1 Tref=A\n";
    std::fs::write(&file, text).unwrap();
    let list = dir.path().join("list.txt");
    // The ids under both names. Under the second name, every hash begins a comment, as in osmium.
    for (expressions, own, second) in [
        ("n/colour=#ff0000\n", "n1", "n3"),
        ("n/colour=#ff0000 # the colour #1\n", "n1", "n3"),
        ("colour=#ff0000,red\t# two\n", "n1 n2", "n3"),
        ("ref=A#1\n", "n4", "n5"),
        ("ref=A # 1\n", "n5", "n5"),
        ("#colour\n # colour\nref=*#*\n", "n4", "n4 n5"),
    ] {
        std::fs::write(&list, expressions).unwrap();
        assert_eq!(
            matching_file(&mut pbfhogg(), &file, &list),
            own,
            "{expressions}"
        );
        let found = matching_file(pbfhogg().arg("osmium"), &file, &list);
        assert_eq!(found, second, "{expressions}");
        if osmium() {
            let theirs = matching_file(&mut std::process::Command::new("osmium"), &file, &list);
            assert_eq!(theirs, second, "{expressions}");
        }
    }
    std::fs::write(&list, "\u{feff}ref=A#1\n").unwrap();
    assert_eq!(matching_file(&mut pbfhogg(), &file, &list), "n4");
    let output = run_ok(&[
        &"export",
        &"-f",
        &"geojsonseq",
        &file,
        &"--expressions",
        &list,
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("A#1").count(), 1, "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn an_expression_that_is_none_is_an_error_of_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = file_of(dir.path(), &[&mixed_objects()]);
    let (list, output) = (dir.path().join("list.txt"), dir.path().join("out.osm.pbf"));
    let fails = |args: &[Arg], cause: &str| {
        let message = run_fail(&[args, &[&"-o", &output]].concat());
        assert!(message.contains(cause), "{cause}: {message}");
    };
    let wrong = "; /; n/; =x; !=x; x/a; N/a; area/a; n w/a; a*,b; k=a,b*; k=*,b";
    for wrong in wrong.split("; ") {
        fails(&[&"tags-filter", &path, &wrong], &format!("'{wrong}'"));
        if !wrong.is_empty() {
            std::fs::write(&list, format!("highway\n# fine\n{wrong}\n")).unwrap();
            fails(&[&"tags-filter", &path, &"-e", &list], "list.txt: line 3");
        }
    }
    fails(&[&"tags-filter", &path], "no expression");
    std::fs::write(&list, "# nothing\n\n").unwrap();
    fails(&[&"tags-filter", &path, &"-e", &list], "no expression");
    std::fs::write(&list, b"highway\n\xff\n").unwrap();
    fails(&[&"tags-filter", &path, &"-e", &list], "list.txt");
    fails(
        &[&"tags-filter", &path, &"-e", &"/nowhere/list"],
        "/nowhere/list",
    );
    assert!(!output.exists());
}
