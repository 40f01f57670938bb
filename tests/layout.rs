//! `repack --layout hilbert`: the same objects along a curve, and the same extracts from fewer blobs.

use crate::common::answers;
use crate::common::oracle::{opl_sorted, osmium, real_file};
use crate::common::{Kind, Object, craft, decode, in_turn, is_long, pbfhogg, run_fail, run_ok};
use std::path::{Path, PathBuf};

/// A real file whose ways have locations, in order; and the same in a spatial layout.
fn layouts(name: &str, dir: &Path) -> [PathBuf; 2] {
    let input = real_file(name);
    let file = |suffix: &str| dir.join(format!("{name}-{suffix}.osm.pbf"));
    let [sorted, located, spatial] = [file("sorted"), file("located"), file("spatial")];
    run_ok(&[&"sort", &input, &"-o", &sorted]);
    run_ok(&[&"add-locations-to-ways", &"-n", &sorted, &"-o", &located]);
    lay_out(&located, &spatial, "2");
    [located, spatial]
}

/// Writes the objects of a file in a spatial layout, with a number of threads.
fn lay_out(input: &Path, output: &Path, jobs: &str) {
    let layout = [
        "repack", "-O", "--layout", "hilbert", "-n", "500", "-j", jobs,
    ];
    let mut command = pbfhogg();
    let status = command
        .args(layout)
        .arg(input)
        .arg("-o")
        .arg(output)
        .status();
    assert!(status.unwrap().success());
}

fn in_order(path: &Path) -> Vec<Object> {
    answers::in_order(decode::objects(path))
}

#[test]
fn the_objects_are_the_same_and_the_order_is_honest() {
    let dir = tempfile::tempdir().unwrap();
    for name in in_turn(1, 2, ["malta.osm.pbf", "monaco.osm.pbf"]) {
        let [located, spatial] = layouts(name, dir.path());
        let expected = decode::objects(&located);
        assert!(in_order(&spatial) == expected, "{name}");
        assert!(decode::objects(&spatial) != expected);
        let header = decode::header(&spatial);
        assert!(
            !header
                .optional
                .iter()
                .any(|feature| feature.starts_with("Sort"))
        );
        if osmium() {
            assert!(opl_sorted(&spatial) == opl_sorted(&located));
        }
        let kinds: Vec<Kind> = decode::objects(&spatial)
            .iter()
            .map(|object| object.kind)
            .collect();
        assert!(kinds.is_sorted());

        let json = |args: &[&str]| -> serde_json::Value {
            let mut command = pbfhogg();
            let output = command.args(args).arg(&spatial).output().unwrap();
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let found = json(&["inspect", "--json"]);
        assert_eq!(
            (&found["spatial_layout"], &found["sorted"]),
            (&true.into(), &false.into())
        );
        assert_eq!(
            json(&["check", "--index", "--json"])["index"]["differences"],
            0
        );

        // Back in order, byte for byte what `sort` makes of the other file; a copy keeps the layout.
        let [back, again] = ["back.osm.pbf", "again.osm.pbf"].map(|name| dir.path().join(name));
        run_ok(&[&"sort", &"-O", &spatial, &"-o", &back]);
        assert!(decode::objects(&back) == expected);
        run_ok(&[&"cat", &"-O", &spatial, &"-o", &again]);
        let [copy, original] = [&again, &spatial].map(|path| std::fs::read(path).unwrap());
        assert!(copy == original);
        // The number of threads changes nothing.
        lay_out(&located, &again, "1");
        assert!(std::fs::read(&again).unwrap() == original);
    }
}

/// Boxes of all sizes around nodes of a file.
fn regions(objects: &[Object], count: usize) -> Vec<String> {
    let nodes: Vec<&Object> = objects
        .iter()
        .filter(|object| object.kind == Kind::Node)
        .collect();
    let region = |number: usize| {
        let node = nodes[number * 7919 % nodes.len()];
        let (lat, lon) = (node.lat_nano as f64 / 1e9, node.lon_nano as f64 / 1e9);
        let (height, width) = (
            0.0002 * 1.9f64.powi(number as i32 % 9),
            0.0003 * 1.7f64.powi(number as i32 % 8),
        );
        format!(
            "{},{},{},{}",
            lon - width,
            lat - height,
            lon + width,
            lat + height
        )
    };
    (0..count).map(region).collect()
}

#[test]
fn extracts_are_the_same_and_read_less() {
    let dir = tempfile::tempdir().unwrap();
    let count = if is_long() { 100 } else { 8 };
    let names = ["liechtenstein-c.osm.pbf", "malta.osm.pbf"];
    for name in &names[..if is_long() { 2 } else { 1 }] {
        let [located, spatial] = layouts(name, dir.path());
        let [expected, found] =
            ["expected.osm.pbf", "found.osm.pbf"].map(|name| dir.path().join(name));
        let (mut decoded, mut kept) = ([0, 0], 0);
        let objects = decode::objects(&located);
        for (number, region) in regions(&objects, count).iter().enumerate() {
            for strategy in in_turn(number, 3, ["simple", "complete-ways", "smart"]) {
                for (index, (input, output)) in [(&located, &expected), (&spatial, &found)]
                    .into_iter()
                    .enumerate()
                {
                    let stats = dir.path().join("stats.json");
                    run_ok(&[
                        &"extract", &"-O", &"--stats", &stats, &"-s", &strategy, &"-b", region,
                        input, &"-o", output,
                    ]);
                    let stats: serde_json::Value =
                        serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
                    decoded[index] += stats["bytes_decoded"].as_u64().unwrap();
                }
                let objects = decode::objects(&expected);
                assert!(
                    in_order(&found) == objects,
                    "{name} {number} {strategy} {region}"
                );
                kept += objects.len();
            }
        }
        assert!(kept > 1000, "{kept}");
        assert!(decoded[1] * 2 < decoded[0], "{name}: {decoded:?}");
        // Several regions at once.
        let several = dir.path().join("several");
        let regions = regions(&objects, 5);
        for (input, name) in [(&located, "a"), (&spatial, "b")] {
            let directory = several.join(name);
            std::fs::create_dir_all(&directory).unwrap();
            let extracts: Vec<_> = (0..)
                .zip(&regions)
                .map(|(number, region)| {
                    let edges: Vec<f64> = region
                        .split(',')
                        .map(|edge| edge.parse().unwrap())
                        .collect();
                    serde_json::json!({"output": format!("{number}.osm.pbf"), "bbox": edges})
                })
                .collect();
            let config = several.join("config.json");
            let text =
                serde_json::json!({"directory": directory, "extracts": extracts}).to_string();
            std::fs::write(&config, text).unwrap();
            run_ok(&[&"extract", &"-O", &"-s", &"smart", &"-c", &config, input]);
        }
        for number in 0..5 {
            let of = |name: &str| in_order(&several.join(name).join(format!("{number}.osm.pbf")));
            assert!(of("a") == of("b"), "{number}");
        }
    }
}

#[test]
fn an_object_without_a_place_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let opl = "\
n1 v1 x1.0 y1.0 Ta=b\n\
n2 v1 x1.0 y1.1\n\
n3 v1 x-179.9 y-89\n\
w1 v1 Nn1x1.0y1.0,n2x1.0y1.1\n\
w2 v1 Thighway=path\n\
w3 v1 Nn3x-179.9y-89,n1x1.0y1.0\n\
r1 v1 Mr2@,r1@inner\n\
r2 v1 Mr1@,w1@x\n\
r3 v1 Mw99@\n\
r4 v1 Ttype=multipolygon Mw3@outer,n2@\n\
r5 v1\n";
    let (input, located, spatial) = (
        file("in.opl"),
        file("located.osm.pbf"),
        file("spatial.osm.pbf"),
    );
    std::fs::write(&input, opl).unwrap();
    run_ok(&[&"add-locations-to-ways", &"-n", &input, &"-o", &located]);
    run_ok(&[
        &"repack",
        &"--layout",
        &"hilbert",
        &located,
        &"-o",
        &spatial,
    ]);
    assert!(in_order(&spatial) == decode::objects(&located));
    run_ok(&[&"check", &"--index", &spatial]);
    if osmium() {
        assert!(opl_sorted(&spatial) == opl_sorted(&located));
    }
    for region in ["0.9,0.9,1.1,1.05", "-180,-90,-179,-88", "5,5,6,6"] {
        for strategy in ["simple", "complete-ways", "smart"] {
            let of = |input: &Path| {
                let output = file("out.osm.pbf");
                run_ok(&[
                    &"extract", &"-O", &"-s", &strategy, &"-b", &region, &input, &"-o", &output,
                ]);
                in_order(&output)
            };
            assert!(of(&spatial) == of(&located), "{region} {strategy}");
        }
    }
}

#[test]
fn damaged_inputs_are_errors_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let [located, _] = layouts("monaco.osm.pbf", dir.path());
    let bytes = std::fs::read(&located).unwrap();
    let [input, output] = ["damaged.osm.pbf", "out.osm.pbf"].map(|name| dir.path().join(name));
    let mut refused = 0;
    for part in 1..25 {
        let mut damaged = bytes.clone();
        let at = bytes.len() * part / 25;
        match part % 3 {
            0 => damaged.truncate(at),
            _ => damaged[at] ^= 0x55,
        }
        std::fs::write(&input, damaged).unwrap();
        let args = ["repack", "-O", "--layout", "hilbert"];
        let run = pbfhogg()
            .args(args)
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .output();
        let run = run.unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        match run.status.code() {
            Some(2) => {
                assert!(
                    message.contains("damaged.osm.pbf") && !output.exists(),
                    "{message}"
                );
                refused += 1;
            }
            status => {
                assert_eq!(status, Some(0), "{message}");
                std::fs::remove_file(&output).unwrap();
            }
        }
    }
    assert!(refused > 15, "{refused}");
}

#[test]
fn inputs_that_cannot_have_the_layout_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = real_file("malta.osm.pbf");
    let file = |name: &str| dir.path().join(name);
    let output = file("out.osm.pbf");
    let refuse = |input: &Path| {
        let message = run_fail(&[&"repack", &"--layout", &"hilbert", &input, &"-o", &output]);
        assert!(!output.exists());
        message
    };
    assert!(refuse(&input).contains("add-locations-to-ways"));
    let [located, spatial] = layouts("malta.osm.pbf", dir.path());
    assert!(refuse(&spatial).contains("sort"));
    for form in ["pbf,add_metadata=false", "pbf,pbf_dense_nodes=false"] {
        let layout = ["repack", "--layout", "hilbert", "-f", form];
        let mut command = pbfhogg();
        let run = command.args(layout).arg(&located).arg("-o").arg(&output);
        let run = run.output().unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        assert!(message.contains("pbfhogg cat"), "{message}");
        assert!(run.status.code() == Some(2) && !output.exists());
    }
    assert!(refuse(&real_file("deleted_nodes.osh.pbf")).contains("history"));

    // An entry with a box that is too small is found when the blob is read, and by `check`.
    let mut bytes = std::fs::read(&spatial).unwrap();
    let frames = decode::all_frames(&spatial);
    let table = frames.last().unwrap();
    bytes.truncate(table.offset as usize);
    // Without its table, the file is an unsorted one.
    let cut = file("cut.osm.pbf");
    std::fs::write(&cut, bytes).unwrap();
    assert!(run_fail(&[&"cat", &cut, &"-o", &output]).contains("truncated") || !output.exists());
    let plain = file("plain.osm.pbf");
    let data: Vec<Vec<u8>> = decode::frames(&spatial)
        .iter()
        .enumerate()
        .map(|(number, frame)| {
            let kind = if number == 0 { "OSMHeader" } else { "OSMData" };
            craft::frame(kind, &craft::zlib_blob(&frame.payload))
        })
        .collect();
    std::fs::write(&plain, data.concat()).unwrap();
    let region = "14.4,35.8,14.5,35.9";
    let of = |input: &Path, output: &Path| {
        run_ok(&[&"extract", &"-O", &"-b", &region, &input, &"-o", &output]);
        in_order(output)
    };
    assert!(of(&plain, &file("a.osm.pbf")) == of(&located, &file("b.osm.pbf")));
}
