//! The regions that a configuration can name, for `regions` and for `extract`: tiles of a grid, boundaries of the file,
//! strategies; and real data, whose differences are days.

use crate::common::extracts::{config_of, random_world};
use crate::common::oracle::{osmium, real_file};
use crate::common::questions::file_in_blocks;
use crate::common::regions::{box_of_degrees, written};
use crate::common::{Arg, decode, is_long, run, run_fail, run_ok, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `regions`. Returns the messages.
fn regions(planet: &Path, config: &Path, server: &Path, status: i32) -> String {
    let args: [Arg; 6] = [&"regions", &planet, &"-c", &config, &"-d", &server];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn the_parishes_of_andorra_follow_the_country() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let parishes = [
        ("encamp", "Encamp", "simple"),
        ("ordino", "Ordino", "complete-ways"),
        ("canillo", "Canillo", "smart"),
        ("escaldes", "Escaldes-Engordany", "smart"),
    ];
    let extract = |(file, name, strategy): &(&str, &str, &str)| {
        format!(r#"{{"output":"{file}.osm.pbf","area":"{name}","strategy":"{strategy}"}}"#)
    };
    let parishes = &parishes[..if is_long() { 4 } else { 2 }];
    let extracts: Vec<String> = parishes.iter().map(extract).collect();
    let text = format!(r#"{{"extracts":[{}]}}"#, extracts.join(","));
    let (config, server) = (written(dir.path(), "c.json", &text), at("server"));
    let copy = |prefix: &str, file: &str| at(&format!("{prefix}-{file}.osm.pbf"));
    let days = ["a", "b", "c"];
    let days = if is_long() { &days[..] } else { &days[..2] };
    for (day, letter) in days.iter().enumerate() {
        let planet = real_file(&format!("andorra-{letter}.osm.pbf"));
        regions(&planet, &config, &server, 0);
        for &(file, name, strategy) in parishes {
            let made = server.join(format!("{file}.osm.pbf"));
            let alone = at("alone.osm.pbf");
            run_ok(&[
                &"extract", &"-q", &planet, &"--area", &name, &"-s", &strategy, &"-O", &"-o",
                &alone,
            ]);
            let expected = decode::objects(&alone);
            assert!(expected == decode::objects(&made), "{name} {letter}");
            let [ours, osmiums] = ["ours", "osmium"].map(|prefix| copy(prefix, file));
            if day == 0 {
                fs::copy(&made, &ours).unwrap();
                fs::copy(&made, &osmiums).unwrap();
                continue;
            }
            let changes = server.join(format!("{file}-updates/000/000/{day:03}.osc.gz"));
            run_ok(&[&"apply-changes", &"-q", &"--in-place", &ours, &changes]);
            assert!(expected == decode::objects(&ours), "{name} {letter}");
            if osmium() {
                let new = at("new.osm.pbf");
                let mut command = Command::new("osmium");
                command.arg("apply-changes").arg(&osmiums).arg(&changes);
                let output = command
                    .args(["--no-progress", "-O", "-o"])
                    .arg(&new)
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{}", stderr(&output));
                fs::rename(&new, &osmiums).unwrap();
                run_ok(&[&"diff", &"-q", &"--metadata", &osmiums, &made]);
            }
        }
    }
}

#[test]
fn a_boundary_that_is_broken_leaves_the_region_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let text = r#"{"extracts":[{"output":"deep/encamp.osm.pbf","area":"Encamp"},
        {"output":"ordino.osm.pbf","area":"Ordino"}]}"#;
    let (config, server) = (written(dir.path(), "c.json", text), at("server"));
    let [a, b] = ["a", "b"].map(|letter| real_file(&format!("andorra-{letter}.osm.pbf")));
    regions(&a, &config, &server, 0);
    let poly = fs::read_to_string(server.join("deep/encamp.poly")).unwrap();
    // The next day, the relation has another name.
    let (rules, broken) = (
        written(dir.path(), "rules.txt", "r/name=Encamp: drop name\n"),
        at("broken.osm.pbf"),
    );
    run_ok(&[&"tags-edit", &"-q", &b, &"-e", &rules, &"-o", &broken]);
    let message = regions(&broken, &config, &server, 0);
    assert!(
        message.contains("no boundary of the file has the name 'Encamp'"),
        "{message}"
    );
    assert_eq!(
        fs::read_to_string(server.join("deep/encamp.poly")).unwrap(),
        poly
    );
    assert!(
        server
            .join("deep/encamp-updates/000/000/001.osc.gz")
            .exists()
    );
    // A boundary that was never there is an error.
    let text = r#"{"extracts":[{"output":"x.osm.pbf","area":"Atlantis"}]}"#;
    let config = written(dir.path(), "d.json", text);
    let message = regions(&broken, &config, &server, 2);
    assert!(message.contains("Atlantis"), "{message}");
}

#[test]
fn a_grid_is_the_tiles_that_touch_a_region() {
    let dir = tempfile::tempdir().unwrap();
    let objects = random_world(5, 140, false);
    let input = file_in_blocks(dir.path(), &objects, 60);
    let config = |grid: &str, more: &str| {
        let text = format!(r#"{{"extracts":[{{"grid":{grid}{more}}}]}}"#);
        written(dir.path(), "grid.json", &text)
    };
    let extract = |config: &Path, name: &str| {
        let out = dir.path().join(name);
        fs::create_dir(&out).unwrap();
        run_ok(&[&"extract", &"-q", &input, &"-c", &config, &"-d", &out]);
        let mut names: Vec<String> = fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        (out, names)
    };
    // At zoom 4, a tile has 22.5 degrees.
    let (out, names) = extract(&config(r#"{"zoom":4,"bbox":[1,1,30,5]}"#, ""), "one");
    assert_eq!(names, ["4-8-7.osm.pbf", "4-9-7.osm.pbf"]);
    let alone = dir.path().join("alone.osm.pbf");
    let north = 21.943_045_5;
    let edges = format!("0,0,22.5,{north}");
    run_ok(&[&"extract", &"-q", &input, &"-b", &edges, &"-o", &alone]);
    let (found, expected) = (
        decode::objects(&out.join("4-8-7.osm.pbf")),
        decode::objects(&alone),
    );
    assert!(!found.is_empty() && found == expected);
    let (_, names) = extract(
        &config(
            r#"{"zoom":5,"multipolygon":[[[[1,1],[3,1],[3,3],[1,1]]],[[[30,40],[31,40],[31,41],[30,40]]]]}"#,
            r#","output":"t-{tile}.pbf","strategy":"simple""#,
        ),
        "two",
    );
    // The edge between the last two tiles is at 40.98 degrees.
    let tiles = ["t-5-16-15.pbf", "t-5-18-11.pbf", "t-5-18-12.pbf"];
    assert_eq!(names, tiles);
    for (grid, more, cause) in [
        ("{}", "", "\"zoom\""),
        (r#"{"zoom":40,"bbox":[1,1,2,2]}"#, "", "\"zoom\""),
        (r#"{"zoom":4}"#, "", "the region is missing"),
        (
            r#"{"zoom":20,"bbox":[-180,-80,180,80]}"#,
            "",
            "too many tiles",
        ),
        (
            r#"{"zoom":4,"bbox":[1,1,2,2]}"#,
            r#","output":"a.osm.pbf""#,
            "{tile}",
        ),
        (
            r#"{"zoom":4,"bbox":[1,1,2,2]}"#,
            r#","bbox":[1,1,2,2]"#,
            "only one region",
        ),
    ] {
        let message = run_fail(&[&"extract", &input, &"-c", &config(grid, more)]);
        assert!(message.contains(cause), "{message}");
    }
}

#[test]
fn extracts_of_one_run_have_strategies_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let input = file_in_blocks(dir.path(), &random_world(6, 140, false), 60);
    let boxes = [
        box_of_degrees(1, 1, 5, 5),
        box_of_degrees(3, 2, 8, 9),
        box_of_degrees(0, 0, 4, 7),
    ];
    let (config, outputs) = config_of(dir.path(), &boxes, "osm.pbf");
    let plain = fs::read_to_string(&config).unwrap();
    let strategies = [
        r#""smart""#,
        r#"{"name":"complete_ways","relations":false}"#,
        r#"{"name":"smart","types":"any"}"#,
    ];
    let mut text = String::new();
    for (number, line) in plain.lines().enumerate() {
        let with = line.replacen(
            "{\"output\"",
            &format!(
                "{{\"strategy\":{},\"output\"",
                strategies[number.clamp(1, 3) - 1]
            ),
            1,
        );
        text += &with;
    }
    fs::write(&config, text).unwrap();
    run_ok(&[&"extract", &"-q", &input, &"-c", &config, &"--simple"]);
    let alone = dir.path().join("alone.osm.pbf");
    let expected: [&[&str]; 3] = [
        &["-s", "smart"],
        &["-S", "relations=false"],
        &["--smart", "-S", "types=any"],
    ];
    for ((region, output), strategy) in boxes.iter().zip(&outputs).zip(expected) {
        let bbox = region.bbox();
        let mut args: Vec<Arg> = vec![
            &"extract", &"-q", &input, &"-b", &bbox, &"-O", &"-o", &alone,
        ];
        args.extend(strategy.iter().map(|arg| arg as Arg));
        run_ok(&args);
        assert!(
            fs::read(&alone).unwrap() == fs::read(output).unwrap(),
            "{strategy:?}"
        );
    }
    for (strategy, cause) in [
        (r#""wide""#, "'wide' is no strategy"),
        (r#"{"types":"any"}"#, "a name is wanted"),
        (
            r#"{"name":"simple","types":"any"}"#,
            "an option of the strategy smart",
        ),
    ] {
        let text = format!(
            r#"{{"extracts":[{{"output":"x.osm.pbf","bbox":[1,1,2,2],"strategy":{strategy}}}]}}"#
        );
        let config = written(dir.path(), "bad.json", &text);
        let message = run_fail(&[&"extract", &input, &"-c", &config]);
        assert!(message.contains(cause), "{message}");
    }
}

#[test]
fn an_output_that_is_much_smaller_does_not_replace_a_file_if_asked() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let world = crate::common::small_world(dir.path());
    let file = at("file.osm.pbf");
    let small: [Arg; 8] = [
        &"tags-filter",
        &"-q",
        &world,
        &"n/amenity",
        &"-O",
        &"-o",
        &file,
        &"--max-shrink",
    ];
    let shrink = |percent: &str| {
        fs::copy(&world, &file).unwrap();
        run(&[&small[..], &[&percent as Arg]].concat())
    };
    let output = shrink("50");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("--max-shrink 100 replaces it"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read(&world).unwrap(), fs::read(&file).unwrap());
    assert!(shrink("100").status.success());
    assert!(fs::read(&file).unwrap().len() < fs::read(&world).unwrap().len() / 2);
    // Where nothing is replaced, nothing shrinks.
    fs::remove_file(&file).unwrap();
    run_ok(&[&small[..], &[&"0" as Arg]].concat());
    // In place.
    let all: PathBuf = at("all.osc");
    let objects = decode::objects(&world);
    let deleted = objects.iter().map(|object| {
        let kind = format!("{:?}", object.kind).to_lowercase();
        format!("<{kind} id=\"{}\" version=\"99\"/>", object.id)
    });
    let deleted: String = deleted.collect();
    fs::write(
        &all,
        format!("<osmChange version=\"0.6\"><delete>{deleted}</delete></osmChange>"),
    )
    .unwrap();
    fs::copy(&world, &file).unwrap();
    let output = run(&[
        &"apply-changes",
        &"--in-place",
        &file,
        &all,
        &"--max-shrink",
        &"20",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(fs::read(&world).unwrap(), fs::read(&file).unwrap());
}
