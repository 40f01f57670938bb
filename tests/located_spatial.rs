//! `repack --layout hilbert` of files whose ways store some of the locations.

use crate::common::answers::{ask, in_order};
use crate::common::{decode, run_fail, run_ok};

const PLAIN: &str = "n1 v1 x1 y1\nn2 v1 Ta=b x2 y2\nn3 v1 x30 y30\nn4 v1 x31 y30\n\
                     w1 v1 Ta=b Nn1,n2\nw2 v1 Ta=b Nn2,n3,n9\nw3 v1 Ta=b Nn3,n4\nr1 v1 T Mw3@\n";

#[test]
fn a_mixed_file_gets_the_locations_that_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    // Way 1 stores a wrong location, way 2 the location of a node that is not in the file, and way 3 none.
    let mixed = "n1 v1 x1 y1\nn2 v1 Ta=b x2 y2\nn3 v1 x30 y30\nn4 v1 x31 y30\n\
                 w1 v1 Ta=b Nn1x7y7,n2x2y2\nw2 v1 Ta=b Nn2xy,n3x30y30,n9x50y50\nw3 v1 Ta=b Nn3,n4\nr1 v1 T Mw3@\n";
    let (input, layout) = (path("mixed.opl"), path("layout.osm.pbf"));
    std::fs::write(&input, mixed).unwrap();
    run_ok(&[
        &"repack",
        &"-q",
        &"--layout",
        &"hilbert",
        &input,
        &"-o",
        &layout,
    ]);
    let located = path("located.osm.pbf");
    run_ok(&[
        &"add-locations-to-ways",
        &"-q",
        &"-n",
        &input,
        &"-o",
        &located,
    ]);
    let [found, expected] = [&layout, &located].map(|path| in_order(decode::objects(path)));
    assert_eq!(found, expected);
    let checked = ask(&[&"check", &"--index", &"--full", &layout]);
    assert_eq!(checked.status, 0, "{checked:?}");
    // The boxes of the blobs are those of the ways.
    let ways = |bbox: &str| {
        let lines = ask(&[
            &"extract", &"-q", &"-s", &"simple", &"-b", &bbox, &layout, &"-f", &"opl",
        ])
        .lines();
        let mut ids: Vec<String> = lines
            .iter()
            .filter(|line| line.starts_with('w'))
            .filter_map(|line| line.split(' ').next().map(str::to_owned))
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ways("29,29,32,31"), ["w2", "w3"]);
    assert_eq!(ways("0.5,0.5,1.5,1.5"), ["w1"]);
    assert!(ways("6,6,8,8").is_empty());
}

#[test]
fn a_plain_file_is_refused_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("plain.opl"), dir.path().join("out.osm.pbf"));
    std::fs::write(&input, PLAIN).unwrap();
    let message = run_fail(&[
        &"repack",
        &"-q",
        &"--layout",
        &"hilbert",
        &input,
        &"-o",
        &output,
    ]);
    assert!(message.contains("add-locations-to-ways"), "{message}");
}
