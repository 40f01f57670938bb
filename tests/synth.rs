//! `synth`: the same seed gives the same bytes, and change files have the announced effect.

use crate::common::{Kind, decode, is_canonical, run_ok};
use std::collections::BTreeSet;

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_cores() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, seed: &str, jobs: &str| {
        let path = dir.path().join(format!("{name}.osm.pbf"));
        let changes = dir.path().join(format!("{name}-days"));
        run_ok(&[
            &"synth",
            &"--objects",
            &"30000",
            &"--seed",
            &seed,
            &"-j",
            &jobs,
            &"--changes",
            &"1",
            &"--changes-dir",
            &changes,
            &"-o",
            &path,
        ]);
        (
            std::fs::read(path).unwrap(),
            std::fs::read(changes.join("001.osc.gz")).unwrap(),
        )
    };
    let first = make("a", "1", "1");
    assert!(first == make("b", "1", "8"));
    assert!(first != make("c", "2", "8"));
}

#[test]
fn change_files_lead_to_the_state_that_is_made_directly() {
    let dir = tempfile::tempdir().unwrap();
    let [world, expected, applied] =
        ["w.osm.pbf", "e.osm.pbf", "a.osm.pbf"].map(|name| dir.path().join(name));
    run_ok(&[
        &"synth",
        &"--objects",
        &"120000",
        &"--changes",
        &"3",
        &"-o",
        &world,
    ]);
    run_ok(&[
        &"synth",
        &"--objects",
        &"120000",
        &"--day",
        &"3",
        &"-o",
        &expected,
    ]);
    let days = [1, 2, 3].map(|day| dir.path().join(format!("00{day}.osc.gz")));
    run_ok(&[
        &"apply-changes",
        &world,
        &days[0],
        &days[1],
        &days[2],
        &"-o",
        &applied,
    ]);
    let (applied_objects, expected_objects) =
        (decode::objects(&applied), decode::objects(&expected));
    assert!(applied_objects == expected_objects);
    assert!(decode::objects(&world) != applied_objects);
    assert_eq!(decode::header(&applied).replication_sequence, Some(3));
}

#[test]
fn the_data_is_sorted_complete_and_has_what_real_data_has() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.osm.pbf");
    run_ok(&[&"synth", &"--objects", &"50000", &"-o", &path]);
    let objects = decode::objects(&path);
    assert!(is_canonical(&objects));
    assert!(
        (40_000..70_000).contains(&objects.len()),
        "{}",
        objects.len()
    );
    let ids: BTreeSet<_> = objects
        .iter()
        .map(|object| (object.kind, object.id))
        .collect();
    for object in &objects {
        assert!(object.version.is_some() && object.user.is_some() && object.timestamp.is_some());
        assert!(
            object
                .refs
                .iter()
                .all(|&id| ids.contains(&(Kind::Node, id)))
        );
        assert!(
            object
                .members
                .iter()
                .all(|(kind, id, _)| ids.contains(&(*kind, *id)))
        );
    }
    let has = |key: &str, value: &str| {
        objects
            .iter()
            .any(|object| object.tags.contains(&(key.into(), value.into())))
    };
    for (key, value) in [
        ("boundary", "administrative"),
        ("route", "bus"),
        ("building", "house"),
        ("highway", "residential"),
    ] {
        assert!(has(key, value), "{key}={value}");
    }
}
