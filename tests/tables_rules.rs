//! Rules of tables of features and of feeds: closed ways, tags with a key that comes twice, columns of themes, routes of
//! routes, and the tag `type` of areas.

use crate::common::oracle::osmium;
use crate::common::{pbfhogg, run_ok};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a file in OPL.
fn input(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("in.opl");
    std::fs::write(&path, text).unwrap();
    path
}

/// The ids of the features of an export, such as `w1` for the line of way 1 and `a2` for its area.
fn feature_ids(program: &mut Command, file: &Path, options: &[&str]) -> Vec<String> {
    program.args(["export", "-f", "text", "-u", "type_id"]);
    let ran = program.arg(file).args(options).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let text = String::from_utf8(ran.stdout).unwrap();
    let ids = text.lines().filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

const SQUARE: &str = "n1 v1 x8 y49\nn2 v1 x8.001 y49\nn3 v1 x8.001 y49.001\nn4 v1 x8 y49.001\n";

#[test]
fn closed_barriers_and_tracks_are_lines_unless_they_have_area_yes() {
    let lines = "barrier=wall barrier=fence barrier=hedge barrier=ditch barrier=city_wall barrier=retaining_wall \
        barrier=spikes barrier=guard_rail barrier=kerb golf=cartpath golf=path golf=hole leisure=track leisure=slipway \
        natural=cliff natural=ridge natural=arete natural=tree_row natural=coastline natural=valley natural=earth_bank \
        man_made=embankment man_made=dyke man_made=pipeline man_made=cutline power=line power=minor_line \
        railway=rail railway=tram waterway=river waterway=stream waterway=ditch waterway=drain waterway=canal \
        aeroway=taxiway aeroway=runway highway=raceway highway=pedestrian highway=track attraction=roller_coaster \
        historic=citywalls historic=citywalls,barrier=city_wall barrier=wall,ruins=yes military=trench indoor=wall";
    let areas = "natural=wood natural=water natural=scree leisure=pitch leisure=park golf=green golf=bunker \
        man_made=pier man_made=bridge man_made=breakwater aeroway=apron aeroway=helipad power=substation \
        waterway=riverbank waterway=dam historic=castle historic=ruins military=barracks indoor=room ruins=church \
        amenity=school,barrier=fence landuse=meadow,barrier=wall building=yes,historic=citywalls highway=rest_area \
        railway=platform place=island boundary=protected_area,barrier=hedge tourism=zoo,barrier=fence";
    let mut text = SQUARE.to_owned();
    let mut expected = Vec::new();
    for (id, tags) in (1..).zip(lines.split_whitespace().chain(areas.split_whitespace())) {
        let is_line = id <= lines.split_whitespace().count();
        for (id, extra, is_line) in [
            (3 * id, "", is_line),
            (3 * id + 1, ",area=yes", false),
            (3 * id + 2, ",area=no", true),
        ] {
            text += &format!("w{id} v1 Nn1,n2,n3,n4,n1 T{tags}{extra}\n");
            expected.push(if is_line {
                format!("w{id} {tags}")
            } else {
                format!("a{} {tags}", 2 * id)
            });
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let file = input(dir.path(), &text);
    let found = feature_ids(&mut pbfhogg(), &file, &[]);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(
            Some(found.as_str()),
            expected.split(' ').next(),
            "{expected}"
        );
    }
    // A printed configuration has the same rules.
    let config = dir.path().join("config.json");
    std::fs::write(&config, run_ok(&[&"export", &"-C"]).stdout).unwrap();
    let options = ["-c", config.to_str().unwrap()];
    assert_eq!(feature_ids(&mut pbfhogg(), &file, &options), found);
    // Under the second name, tags other than `area` decide nothing, as in osmium.
    let second = feature_ids(pbfhogg().arg("osmium"), &file, &[]);
    assert_eq!(second.len(), found.len() * 4 / 3);
    if osmium() {
        let mut theirs = feature_ids(&mut Command::new("osmium"), &file, &[]);
        let mut second = second;
        second.sort();
        theirs.sort();
        assert_eq!(second, theirs);
    }
}
