//! Texts as outputs: what XML cannot hold, changesets, and histories.

use crate::common::answers::ask;
use crate::common::oracle::osmium;
use crate::common::{run_fail, run_ok};
use std::path::Path;
use std::process::Command;

#[test]
fn a_null_character_does_not_reach_xml() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    std::fs::write(&input, "n1 v1 ua%0%b x1 y1\n").unwrap();
    let answer = ask(&[&"cat", &input, &"-f", &"osm", &"-o", &"-"]);
    assert!(answer.stdout.contains("user=\"a\u{fffd}b\""), "{answer:?}");
    assert!(answer.stderr.contains("1 control character"), "{answer:?}");
    let answer = ask(&[&"cat", &input, &"-f", &"opl", &"-o", &"-"]);
    assert!(answer.stdout.contains(" ua%00%b "), "{answer:?}");
}

#[test]
fn changesets_become_what_osmium_makes_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("changesets.osm");
    let xml = "<?xml version='1.0'?>\n<osm version='0.6'>\
        <changeset id='1' created_at='2005-04-09T19:54:13Z' closed_at='2005-04-09T20:54:39Z' open='false' \
        user='S &amp; T' uid='1' min_lat='51.5288506' min_lon='-0.1465242' max_lat='51.5288620' \
        max_lon='-0.1464925' num_changes='2' comments_count='1'><tag k='comment' v='a &lt;b&gt;'/>\
        <discussion><comment uid='5' user='bob' date='2015-01-01T00:00:00Z'><text>hi &amp; &#x263a; <![CDATA[a <b>]]> end</text></comment>\
        </discussion></changeset>\
        <changeset id='2' created_at='2005-04-17T14:45:48Z' open='true' num_changes='0' comments_count='0'/></osm>";
    std::fs::write(&input, xml).unwrap();
    for ending in ["opl", "osm", "osm.bz2"] {
        let [ours, theirs, back] =
            ["ours", "theirs", "back"].map(|name| dir.path().join(format!("{name}.{ending}")));
        run_ok(&[&"cat", &input, &"--generator", &"x", &"-o", &ours]);
        run_ok(&[&"cat", &ours, &"--generator", &"x", &"-o", &back]);
        assert_eq!(std::fs::read(&ours).unwrap(), std::fs::read(&back).unwrap());
        if osmium() && ending != "osm.bz2" {
            run_osmium(&["cat", "--generator", "x", "-o"], &theirs, &input);
            let [ours, theirs] =
                [&ours, &theirs].map(|path| std::fs::read_to_string(path).unwrap());
            assert_eq!(ours, theirs);
        }
    }
    let output = dir.path().join("out.osm.pbf");
    let message = run_fail(&[&"cat", &input, &"-o", &output]);
    assert!(
        message.contains("holds changesets, which PBF cannot hold"),
        "{message}"
    );
    let message = run_fail(&[&"sort", &input, &"-o", &output]);
    assert!(
        message.contains("there is nothing but changesets in the file"),
        "{message}"
    );
}

fn run_osmium(args: &[&str], output: &Path, input: &Path) {
    let status = Command::new("osmium")
        .args(args)
        .arg(output)
        .arg(input)
        .status();
    assert!(status.unwrap().success());
}
