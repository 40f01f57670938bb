//! `repair --from`: what is lost comes from another file, and nothing else does.

use crate::common::answers::ask;
use crate::common::decode;
use crate::common::oracle::real_file;
use crate::common::publisher::{DAYS, Publisher};
use crate::common::repaired::{repair, shown, with_lost_blob};
use crate::common::web::{self, Web};
use crate::common::{Arg, is_canonical, run_ok};
use std::fs;
use std::path::Path;

#[test]
fn another_file_fills_exactly_what_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let helsinki = real_file("helsinki.osm.pbf");
    let (path, objects) = with_lost_blob(dir.path());
    let (found, report, status) = repair(&path, &[&"--from", &helsinki]);
    assert_eq!(
        (status, &report["from"]["objects"]),
        (1, &(objects.len() as u64).into())
    );
    assert!(shown(&found) == shown(&decode::objects(&helsinki)));
    assert!(is_canonical(&found));
    // Without an index, the ids between the neighbours are taken.
    let mut bytes = fs::read(&helsinki).unwrap();
    let lost = &decode::frames(&helsinki)[1];
    bytes[lost.offset as usize + lost.frame_len / 2] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    let (found, report, _) = repair(&path, &[&"--from", &helsinki]);
    assert!(
        shown(&found) == shown(&decode::objects(&helsinki)),
        "{report}"
    );
}

#[test]
fn an_older_file_and_the_changes_since_give_the_data_of_today() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let [base, today, damaged, fixed, updated] =
        ["base", "today", "damaged", "fixed", "updated"].map(|name| at(&format!("{name}.osm.pbf")));
    run_ok(&[
        &"synth",
        &"--objects",
        &"60000",
        &"--changes",
        &"3",
        &"--changes-dir",
        &dir.path(),
        &"-o",
        &base,
    ]);
    let days = ["001.osc.gz", "002.osc.gz", "003.osc.gz"].map(at);
    run_ok(&[&"apply-changes", &base, &days[0], &days[1], &"-o", &damaged]);
    run_ok(&[
        &"apply-changes",
        &base,
        &days[0],
        &days[1],
        &days[2],
        &"-o",
        &today,
    ]);
    damage_two_blobs(&damaged);
    let answer = ask(&[&"repair", &damaged, &"--from", &base, &"-o", &fixed]);
    assert!(
        answer
            .stdout
            .contains("`pbfhogg update` brings it up to date"),
        "{answer:?}"
    );
    let sequence = decode::header(&base).replication_sequence;
    assert!(sequence.is_some());
    assert_eq!(decode::header(&fixed).replication_sequence, sequence);
    run_ok(&[
        &"apply-changes",
        &fixed,
        &days[0],
        &days[1],
        &days[2],
        &"-o",
        &updated,
    ]);
    assert!(shown(&decode::objects(&updated)) == shown(&decode::objects(&today)));
}

#[test]
fn a_newer_file_without_a_url_leaves_the_state_of_the_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let [damaged, newer, fixed] =
        ["damaged", "newer", "fixed"].map(|name| at(name).with_extension("osm.pbf"));
    let synth: [Arg; 8] = [
        &"synth",
        &"--changes=1",
        &"--objects=60000",
        &"--changes-dir",
        &dir.path(),
        &"-o",
        &damaged,
        &"-q",
    ];
    run_ok(&synth);
    run_ok(&[&"apply-changes", &damaged, &at("001.osc.gz"), &"-o", &newer]);
    let state = |path: &Path| {
        let header = decode::header(path);
        assert_eq!(header.replication_url, None);
        (header.replication_sequence, header.replication_timestamp)
    };
    let of_damaged = state(&damaged);
    assert!(of_damaged.0 < state(&newer).0);
    damage_two_blobs(&damaged);
    let answer = ask(&[&"repair", &damaged, &"--from", &newer, &"-o", &fixed]);
    assert_eq!(answer.status, 1, "{answer:?}");
    assert_eq!(state(&fixed), of_damaged);
}

/// Flips a bit in the middle of two blobs.
fn damage_two_blobs(path: &Path) {
    let frames = decode::frames(path);
    let mut bytes = fs::read(path).unwrap();
    for frame in [&frames[1], &frames[frames.len() - 3]] {
        bytes[frame.offset as usize + frame.frame_len / 2] ^= 1;
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_update_after_a_repair_gives_the_data_of_today() {
    let publisher = Publisher::new();
    publisher.publish(DAYS);
    let [old, new] = [2, 9].map(|day| {
        let path = publisher.path(&format!("cut{day}.osm.pbf"));
        run_ok(&[&"repack", &"-n", &"200", &publisher.data(day), &"-o", &path]);
        path
    });
    let fixed = publisher.path("fixed.osm.pbf");
    // The other file may be older or newer than the damaged one. It may have anything else than the changes.
    for (damaged, other) in [(&new, &old), (&old, &new)] {
        let whole = fs::read(damaged).unwrap();
        damage_two_blobs(damaged);
        let args: [Arg; 7] = [&"repair", &"-O", damaged, &"--from", other, &"-o", &fixed];
        assert_eq!(ask(&args).status, 1);
        fs::write(damaged, whole).unwrap();
        let (status, report) = publisher.update(&fixed, &[]);
        assert_eq!(status, 0, "{report}");
        assert_eq!(publisher.day_of(&fixed), DAYS);
        let today = decode::objects(&publisher.data(DAYS));
        assert!(shown(&decode::objects(&fixed)) == shown(&today));
    }
}

#[test]
fn the_other_file_may_be_on_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let (path, objects) = with_lost_blob(dir.path());
    let helsinki = real_file("helsinki.osm.pbf");
    let files = dir.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::copy(&helsinki, files.join("helsinki.osm.pbf")).unwrap();
    let server = Web::new(web::directory(files), Box::new(|_| None));
    let address = format!("{}/helsinki.osm.pbf", server.url());
    let (found, report, _) = repair(&path, &[&"--from", &address]);
    assert_eq!(report["from"]["objects"], objects.len() as u64);
    assert!(shown(&found) == shown(&decode::objects(&helsinki)));
}
