//! Places of outputs and temporary files: what is said where they cannot be, names that are not UTF-8, and what was written.

use crate::common::{pbfhogg, run_fail, run_ok, world};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

const OPL: &str =
    "n1 v1 x1 y1 Tamenity=cafe,name=A\nn2 v1 x2 y2\nw1 v1 Nn1,n2 Thighway=residential,name=B\n";

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_directory_that_cannot_be_written_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (opl, nowhere) = (at("in.opl"), at("no/where"));
    fs::write(&opl, OPL).unwrap();
    let shown = |path: &Path| path.display().to_string();
    // The directory of the output is missing, or is a file.
    let message = run_fail(&[&"cat", &opl, &"-o", &nowhere.join("x.osm.pbf")]);
    let begin = format!(
        "{}: there is no such directory, in which to write",
        shown(&nowhere)
    );
    assert!(
        message.contains(&begin) && message.contains("make it"),
        "{message}"
    );
    let message = run_fail(&[&"cat", &opl, &"-o", &opl.join("x.osm.pbf")]);
    assert!(
        message.contains(&format!("{}: this is a", shown(&opl))),
        "{message}"
    );
    for output in [Path::new("."), dir.path()] {
        let message = run_fail(&[&"cat", &opl, &"-f", &"opl", &"-o", &output]);
        assert!(message.contains("is a directory, not a file"), "{message}");
    }
    // Temporary files.
    for temporary in [&nowhere, &opl] {
        let mut cat = pbfhogg();
        cat.arg("cat")
            .arg(&opl)
            .args(["-f", "pbf", "-o"])
            .arg(at("x.osm.pbf"));
        let output = cat.env("TMPDIR", temporary).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!(
                "{}: cannot create a temporary file",
                shown(temporary)
            )),
            "{said}"
        );
        assert!(said.contains("set TMPDIR"), "{said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let opl = dir.path().join("in.opl");
    fs::write(&opl, OPL).unwrap();
    let output = pbfhogg()
        .args(["cat", "-f", "opl"])
        .arg(&opl)
        .args(["-o", "/dev/full"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("/dev/full: cannot write: No space left"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_command_for_a_format_or_an_input_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let pbf = at("in.osm.pbf");
    fs::write(at("in.opl"), OPL).unwrap();
    run_ok(&[&"cat", &"-q", &at("in.opl"), &"-o", &pbf]);
    for name in ["x.geojson", "x.geojsonseq", "x.GeoJSONL", "x.parquet"] {
        for command in ["cat", "sort", "repack"] {
            let message = run_fail(&[&command, &pbf, &"-o", &at(name)]);
            assert!(
                message.contains("only `pbfhogg export` writes"),
                "{message}"
            );
        }
    }
    let message = run_fail(&[&"cat", &pbf, &"-f", &"geojson"]);
    assert!(
        message.contains("only `pbfhogg export` writes geojson"),
        "{message}"
    );
    let message = run_fail(&[&"geocode", &pbf, &"1", &"1"]);
    assert!(
        message.contains("not the directory of an index")
            && message.contains("build-geocode-index"),
        "{message}"
    );
    let index = at("index");
    run_ok(&[&"build-geocode-index", &"-q", &pbf, &"--output-dir", &index]);
    let message = run_fail(&[
        &"build-geocode-index",
        &index,
        &"--output-dir",
        &at("other"),
    ]);
    assert!(message.contains("this is an index already"), "{message}");
    let message = run_fail(&[
        &"build-geocode-index",
        &dir.path(),
        &"--output-dir",
        &at("other"),
    ]);
    assert!(message.contains("this is a directory"), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_utf_8() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join(OsStr::from_bytes(b"\xff"));
    fs::create_dir(&odd).unwrap();
    let at = |name: &str| {
        let mut file = OsString::from(OsStr::from_bytes(b"\xff\xfe."));
        file.push(name);
        odd.join(file)
    };
    fs::write(at("opl"), OPL).unwrap();
    let pbf = at("osm.pbf");
    run_ok(&[&"cat", &"-q", &at("opl"), &"-o", &pbf]);
    for ending in ["osm", "opl.gz", "osm.bz2"] {
        run_ok(&[&"cat", &"-q", &pbf, &"-o", &at(&format!("2.{ending}"))]);
    }
    for ending in ["geojson", "geojsonseq", "parquet"] {
        run_ok(&[&"export", &"-q", &pbf, &"-o", &at(ending)]);
    }
    run_ok(&[&"derive-changes", &"-q", &pbf, &pbf, &"-o", &at("osc.gz")]);
    fs::write(at("state.txt"), "sequenceNumber=0\n").unwrap();
    run_ok(&[
        &"apply-changes",
        &"-q",
        &pbf,
        &at("osc.gz"),
        &"-o",
        &at("new.osm.pbf"),
    ]);
    run_ok(&[
        &"inspect",
        &pbf,
        &"--html",
        &at("html"),
        &"--stats",
        &at("stats"),
    ]);
    fs::write(at("ids"), "n1\n").unwrap();
    run_ok(&[
        &"getid",
        &"-q",
        &pbf,
        &"-i",
        &at("ids"),
        &"-o",
        &at("got.osm.pbf"),
    ]);
    fs::write(at("expressions"), "amenity\n").unwrap();
    run_ok(&[
        &"tags-filter",
        &"-q",
        &pbf,
        &"-e",
        &at("expressions"),
        &"-o",
        &at("tags.osm.pbf"),
    ]);
    let config = "{\"extracts\": [{\"output\": \"a.osm.pbf\", \"bbox\": [0, 0, 3, 3]}]}";
    fs::write(at("json"), config).unwrap();
    run_ok(&[&"extract", &"-q", &pbf, &"-c", &at("json"), &"-d", &odd]);
    assert!(odd.join("a.osm.pbf").exists());
    run_ok(&[
        &"build-geocode-index",
        &"-q",
        &pbf,
        &"--output-dir",
        &at("index"),
        &"--temp-dir",
        &odd,
    ]);
    run_ok(&[&"geocode", &at("index"), &"1", &"1"]);
    run_ok(&[
        &"add-locations-to-ways",
        &"-q",
        &pbf,
        &"-o",
        &at("located.osm.pbf"),
        &"--temp-dir",
        &odd,
    ]);
    run_ok(&[
        &"renumber",
        &"-q",
        &pbf,
        &"-i",
        &odd,
        &"-o",
        &at("renumbered.osm.pbf"),
    ]);
}

#[test]
fn reports_say_how_many_bytes_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (input, stats) = (world(dir.path(), "3000"), at("stats.json"));
    let written = || {
        let report: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        report["bytes_written"].as_u64().unwrap()
    };
    let len = |path: &Path| fs::metadata(path).unwrap().len();
    for name in [
        "x.osm",
        "x.opl.gz",
        "x.osm.bz2",
        "x.opl.zst",
        "x.osc",
        "x.debug",
        "force.osm.pbf",
    ] {
        let output = at(name);
        let ran = run_ok(&[
            &"cat", &"--force", &"--json", &"--stats", &stats, &input, &"-o", &output,
        ]);
        let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(report["written"]["bytes"], len(&output), "{name}");
        if name.ends_with("pbf") {
            assert!(written() > 0);
        } else {
            assert_eq!(written(), len(&output), "{name}");
        }
    }
    for name in ["x.geojson", "x.geojsonseq", "x.parquet"] {
        let output = at(name);
        run_ok(&[&"export", &"-q", &"--stats", &stats, &input, &"-o", &output]);
        assert_eq!(written(), len(&output), "{name}");
    }
    let changes = at("changes.osc.gz");
    run_ok(&[
        &"derive-changes",
        &"-q",
        &"--stats",
        &stats,
        &input,
        &input,
        &"-o",
        &changes,
    ]);
    assert_eq!(written(), len(&changes));
    let merged = at("merged.osc");
    run_ok(&[
        &"merge-changes",
        &"-q",
        &"--stats",
        &stats,
        &changes,
        &"-o",
        &merged,
    ]);
    assert_eq!(written(), len(&merged));
    let mut stream = pbfhogg();
    stream
        .args(["cat", "-f", "opl", "-q", "--stats"])
        .arg(&stats)
        .arg(&input);
    let stream = stream.stdout(Stdio::piped()).output().unwrap();
    assert_eq!(written(), stream.stdout.len() as u64);
}

/// Command lines whose output gets a format that no -f names: the words, names that are refused, and names that are not.
const IMPLIED: [(&str, &[&str], &[&str]); 11] = [
    (
        "export --theme pois",
        &[
            "p.geojson",
            "p.csv",
            "p.GPKG",
            "p.geojson.gz",
            "p.parquet.gz",
            "p.osm.pbf",
        ],
        &["p.parquet", "p.geoparquet", "p"],
    ),
    (
        "export --theme pois,roads",
        &["d.geojson"],
        &["d", "d-2026.01"],
    ),
    (
        "export --partition geometry_type",
        &["d.csv", "d.fgb"],
        &["d.parquet"],
    ),
    ("export --max-file-size 1M", &["d.geojsonseq.bz2"], &["d"]),
    (
        "export --raw",
        &["x.osm.pbf", "x.geojson", "x.zip"],
        &["x", "x.parquet"],
    ),
    (
        "split -n 2",
        &["parts.osm.pbf", "parts.geojson"],
        &["parts"],
    ),
    (
        "build-geocode-index",
        &["index.osm.pbf", "index.json"],
        &["index"],
    ),
    (
        "tags-count",
        &["c.osm.pbf", "c.json"],
        &["c.tsv", "c.txt", "c"],
    ),
    (
        "derive-changes IN",
        &["c.osm.pbf", "c.geojson", "c.osc.zip"],
        &["c.osc", "c.osc.gz", "c"],
    ),
    (
        "merge-changes",
        &[
            "c.osm",
            "c.osm.gz",
            "c.OSH",
            "c.xml",
            "c.osm.xml",
            "c.osm.pbf",
            "c.osh.opl",
        ],
        &["c.osc", "c.osc.xml.gz", "c.osc.pbf", "c.osc.opl", "c.opl"],
    ),
    ("diff IN", &["c.osm.pbf", "c.opl"], &["c.txt", "c"]),
];

fn run_on(words: &str, input: &Path, output: &Path) -> Output {
    let mut command = pbfhogg();
    for word in words.split(' ') {
        match word {
            "IN" => command.arg(input),
            word => command.arg(word),
        };
    }
    command.arg(input).arg("-o").arg(output).output().unwrap()
}

#[test]
fn no_output_gets_the_name_of_another_format() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    fs::write(&input, OPL).unwrap();
    for (words, refused, accepted) in IMPLIED {
        for name in refused {
            let output = dir.path().join(name);
            let ran = run_on(words, &input, &output);
            let said = stderr(&ran);
            assert_eq!(ran.status.code(), Some(2), "{words} {name}: {said}");
            assert!(
                said.contains("but the name ends in ."),
                "{words} {name}: {said}"
            );
            assert!(!output.exists(), "{words} {name}");
        }
        for name in accepted {
            let output = dir.path().join(name);
            let ran = run_on(words, &input, &output);
            assert_eq!(
                ran.status.code(),
                Some(0),
                "{words} {name}: {}",
                stderr(&ran)
            );
            if output.is_dir() {
                fs::remove_dir_all(output).unwrap();
            } else {
                fs::remove_file(output).unwrap();
            }
        }
    }
}

#[test]
fn no_new_directory_gets_the_name_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let data = at("data.osm.pbf");
    let synth = |days: &Path| {
        let mut command = pbfhogg();
        command.args(["synth", "-q", "-O", "--objects", "100", "--changes", "1"]);
        command.arg("--changes-dir").arg(days).arg("-o").arg(&data);
        command.output().unwrap()
    };
    assert!(synth(&at("days")).status.success());
    for name in ["days.osc", "days.osm.pbf"] {
        let path = at(name);
        let ran = synth(&path);
        let said = stderr(&ran);
        assert_eq!(ran.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains("but the name ends in ."), "{name}: {said}");
        assert!(!path.exists(), "{name}");
        for option in ["--cache", "--augmented-diff"] {
            let mut command = pbfhogg();
            command.arg("update").arg(&data).arg(option).arg(&path);
            let ran = command.output().unwrap();
            assert_eq!(ran.status.code(), Some(2), "{option} {name}");
            assert!(stderr(&ran).contains("name a directory"), "{option} {name}");
        }
        // A directory that exists is one by any name.
        fs::create_dir(&path).unwrap();
        assert!(synth(&path).status.success(), "{name}");
    }
}

#[test]
fn a_format_that_is_given_goes_with_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    fs::write(&input, OPL).unwrap();
    for (number, words) in [
        "export --theme pois -f geoparquet",
        "export --raw -f parquet",
        "export -f geojson",
        "cat -f opl",
        "derive-changes -f osc IN",
        "diff -f opl IN",
    ]
    .into_iter()
    .enumerate()
    {
        let output = dir.path().join(format!("{number}.osm.pbf"));
        let ran = run_on(words, &input, &output);
        assert_eq!(ran.status.code(), Some(0), "{words}: {}", stderr(&ran));
        assert!(output.exists(), "{words}");
    }
    let ran = run_on(
        "export --raw -f geojson",
        &input,
        &dir.path().join("tables"),
    );
    assert!(
        stderr(&ran).contains("--raw writes tables in Parquet"),
        "{}",
        stderr(&ran)
    );
}

#[test]
fn errors_about_standard_input_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let [history, data, garbage] = ["h.osm.pbf", "in.opl", "garbage.txt"].map(at);
    fs::write(&garbage, "garbage\n").unwrap();
    fs::write(
        at("h.osh.opl"),
        "n1 v1 x1 y1\nn1 v2 x1 y2\nw1 v1 Nn1 Thighway=path\n",
    )
    .unwrap();
    run_ok(&[&"cat", &at("h.osh.opl"), &"-o", &history]);
    fs::write(&data, OPL).unwrap();
    for (words, input) in [
        ("export - -f geojson", &history),
        ("add-locations-to-ways - -f opl", &history),
        ("apply-changes - /dev/null -f opl", &history),
        ("changeset-filter - -f opl", &data),
        ("getid -i - in.opl -f opl", &garbage),
        ("check --refs -", &data),
        ("merge-changes - -f osc", &garbage),
    ] {
        let mut command = pbfhogg();
        command.args(words.split(' ')).current_dir(dir.path());
        let ran = command
            .stdin(fs::File::open(input).unwrap())
            .output()
            .unwrap();
        let said = stderr(&ran) + &String::from_utf8_lossy(&ran.stdout);
        assert!(said.contains("standard input"), "{words}: {said}");
        assert!(
            !said.contains(" -: ") && !said.starts_with("-: "),
            "{words}: {said}"
        );
    }
}
