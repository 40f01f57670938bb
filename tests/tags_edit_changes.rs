//! `tags-edit` of change files, and `update --edit`: a file that is edited once follows its server by edited changes.

use crate::common::oracle::{opl_file_objects, real_file};
use crate::common::publisher::Publisher;
use crate::common::questions::assert_same_objects;
use crate::common::random::Random;
use crate::common::retag::{self, Rule};
use crate::common::{Arg, Kind, Object, decode, is_long, run_fail, run_ok};
use std::path::{Path, PathBuf};

/// Rules that leave each node with tags at least one tag, so that no form of files lets a node go.
const SLIM: &str = "\
# A slim file
drop source,created_by,tiger:*
w/highway: keep highway,name,ref,oneway
replace name ~(?i)street Str.
n/amenity: set checked=yes
default-kind: rename name label
rename operator op
";

/// Runs `tags-edit` with a file of rules.
fn edit(input: &Path, rules: &Path, output: &Path) {
    run_ok(&[
        &"tags-edit",
        &"-q",
        &"-O",
        &input,
        &"-e",
        &rules,
        &"-o",
        &output,
    ]);
}

/// The objects of a change file, as OPL has them. Of deletions, only what a written deletion has is left.
fn changes_of(path: &Path, dir: &Path) -> Vec<Object> {
    let opl = dir.join("changes.opl");
    run_ok(&[&"cat", &"-q", &"-O", &path, &"-o", &opl]);
    opl_file_objects(&opl)
}

#[test]
fn rules_change_the_objects_of_a_change_file_as_plain_code_does() {
    let dir = tempfile::tempdir().unwrap();
    let input = real_file("000466354.osc.gz");
    let objects = changes_of(&input, dir.path());
    let list = dir.path().join("rules.txt");
    for seed in 0..if is_long() { 200 } else { 8 } {
        let mut random = Random(seed);
        let rules: Vec<_> = (0..3).map(|_| Rule::random(&mut random)).collect();
        let lines: Vec<_> = rules.iter().map(|rule| rule.text.as_str()).collect();
        std::fs::write(&list, lines.join("\n")).unwrap();
        let output = dir.path().join("out.osc.gz");
        match retag::edited(&objects, &rules) {
            Ok((expected, _)) => {
                edit(&input, &list, &output);
                let found = changes_of(&output, dir.path());
                assert_same_objects(&found, &expected, &lines.join(" | "));
            }
            Err(fault) => {
                let object = fault.0;
                let args: [Arg; 6] = [&"tags-edit", &"-O", &input, &"-e", &list, &"-o"];
                let message = run_fail(&[&args[..], &[&output]].concat());
                let kind = format!("{:?}", object.kind).to_lowercase();
                assert!(
                    message.contains(&format!("{kind} {}: '", object.id)),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn an_edited_change_file_keeps_actions_order_and_state() {
    let dir = tempfile::tempdir().unwrap();
    let [input, output] = ["in.osc", "out.osc"].map(|name| dir.path().join(name));
    let text = "<osmChange version='0.6' osmosis_replication_sequence_number='7'>\
                <modify><way id='1' version='2'><nd ref='1'/><tag k='a' v='b'/></way></modify>\
                <create><node id='5' version='1' lat='1' lon='1'/></create>\
                <delete><node id='3' version='2'/></delete></osmChange>";
    std::fs::write(&input, text).unwrap();
    let args: [Arg; 4] = [&"tags-edit", &input, &"--default", &"a=c"];
    let report = run_ok(&[&args[..], &[&"--json", &"-o", &output]].concat()).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(
        (&report["edited"], &report["deleted"]),
        (&1.into(), &1.into())
    );
    let found = std::fs::read_to_string(&output).unwrap();
    let position = |part: &str| {
        found
            .find(part)
            .unwrap_or_else(|| panic!("no {part}: {found}"))
    };
    assert!(position("<way id=\"1\"") < position("<create>"));
    assert!(position("<create>") < position("<delete>"));
    assert!(found.contains("<tag k=\"a\" v=\"b\"/>") && found.contains("<tag k=\"a\" v=\"c\"/>"));
    assert_eq!(
        found.matches("<tag ").count(),
        2,
        "a deletion gets no tag: {found}"
    );
    assert!(found.contains("\"7\""), "{found}");
    let dry = run_ok(&[&args[..], &[&"--dry-run"]].concat()).stdout;
    assert!(String::from_utf8(dry).unwrap().contains("n5"));
    for option in ["--drop-untagged", "--within"] {
        let region = dir.path().join("a.geojson");
        let ring = "[[0,0],[1,0],[1,1],[0,0]]";
        let text = format!("{{\"type\":\"Polygon\",\"coordinates\":[{ring}]}}");
        std::fs::write(&region, text).unwrap();
        let value = format!("{}:a=b", region.display());
        let mut more: Vec<Arg> = vec![&"-O", &"-o", &output, &option];
        if option == "--within" {
            more.push(&value);
        }
        let message = run_fail(&[&args[..], &more].concat());
        assert!(message.contains("a change file does not tell"), "{message}");
    }
}

/// The forms of files whose ways may have locations: the options of `add-locations-to-ways`, or `None` for a plain file.
const FORMS: [Option<&[&str]>; 4] = [None, Some(&["-n"]), Some(&[]), Some(&["-i", "external"])];

/// Writes the file in a form.
fn in_form(input: &Path, form: Option<&[&str]>, output: &Path) {
    let mut args: Vec<Arg> = match form {
        None => vec![&"cat"],
        Some(_) => vec![&"add-locations-to-ways"],
    };
    args.extend(form.unwrap_or_default().iter().map(|option| option as Arg));
    args.extend([&"-q" as Arg, &"-O", &input, &"-o", &output]);
    run_ok(&args);
}

fn objects_in_order(path: &Path) -> Vec<Object> {
    crate::common::answers::in_order(decode::objects(path))
}

#[test]
fn an_edited_file_with_edited_changes_is_the_edited_file_with_the_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let rules = path("rules.txt");
    std::fs::write(&rules, SLIM.replace("default-kind: ", "r/type: ")).unwrap();
    let days = if is_long() { 30 } else { 4 };
    let count = days.to_string();
    let plain = path("plain.osm.pbf");
    run_ok(&[
        &"synth",
        &"-q",
        &"--objects",
        &"4000",
        &"--seed",
        &"23",
        &"--changes",
        &count,
        &"-o",
        &plain,
    ]);
    for form in FORMS {
        let [mut base, mut slim, next, edited] =
            ["base", "slim", "next", "edited"].map(|name| path(&format!("{name}.osm.pbf")));
        in_form(&plain, form, &base);
        edit(&base, &rules, &slim);
        for day in 1..=days {
            let [change, slim_change] =
                ["", "slim-"].map(|name| path(&format!("{name}{day:03}.osc.gz")));
            edit(&change, &rules, &slim_change);
            for (file, change) in [(&mut base, &change), (&mut slim, &slim_change)] {
                let mut args: Vec<Arg> = vec![&"apply-changes", &"-q", &"-O"];
                if form.is_some() {
                    args.push(&"--locations-on-ways");
                }
                args.extend([file as Arg, change, &"-o", &next]);
                run_ok(&args);
                std::fs::rename(&next, file).unwrap();
            }
            edit(&base, &rules, &edited);
            let what = format!("{form:?}, day {day}");
            let [found, expected] = [&slim, &edited].map(|file| objects_in_order(file));
            assert_same_objects(&found, &expected, &what);
        }
        assert_ne!(
            objects_in_order(&base),
            objects_in_order(&slim),
            "rules without effect"
        );
    }
}

#[test]
fn an_update_edits_its_changes() {
    let publisher = Publisher::new();
    let rules = publisher.path("rules.txt");
    std::fs::write(&rules, "drop source,note\nw/highway: keep highway,name\n").unwrap();
    let file = publisher.copy("file.osm.pbf");
    let edited = |day: usize| -> PathBuf {
        let output = publisher.path(&format!("edited{day}.osm.pbf"));
        edit(&publisher.data(day), &rules, &output);
        output
    };
    edit(&publisher.data(0), &rules, &file);
    for day in [5, 12] {
        publisher.publish(day);
        let (status, report) = publisher.update(&file, &["--edit", rules.to_str().unwrap()]);
        assert_eq!(status, 0, "{report}");
        assert!(report["edited"].is_u64(), "{report}");
        let [found, expected] = [&file, &edited(day)].map(|file| objects_in_order(file));
        assert_same_objects(&found, &expected, &format!("day {day}"));
        assert!(found.iter().all(|object| {
            let mut keys = object.tags.iter().map(|(key, _)| key.as_str());
            object.kind != Kind::Way || keys.all(|key| key != "source")
        }));
    }
    let (_, report) = publisher.update(&file, &[]);
    assert!(report["edited"].is_null(), "{report}");
    std::fs::write(&rules, "drp source\n").unwrap();
    let message = run_fail(&[&"update", &"--edit", &rules, &file]);
    assert!(
        message.contains("line 1: 'drp source', column 1: expected drop"),
        "{message}"
    );
}
