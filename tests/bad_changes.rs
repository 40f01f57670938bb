//! Bad change files cause one clear line and exit status 2, and no output is left.

use crate::bad_input::{Bench, block};
use crate::common::craft::{self};
use crate::common::run_fail;

#[test]
fn broken_change_files_are_refused_with_line_and_column() {
    let bench = Bench::new();
    let base = bench.path("base.osm.pbf");
    std::fs::write(&base, craft::plain_file(&[block()])).unwrap();
    let gzip = |text: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text).unwrap();
        gzip.finish().unwrap()
    };
    let good = b"<osmChange version='0.6'>\n<create>\n<node id='1' lat='1' lon='1'/>\n</create>\n</osmChange>\n";
    let truncated_gzip = {
        let mut bytes = gzip(good);
        bytes.truncate(bytes.len() / 2);
        bytes
    };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty.osc", Vec::new(), "empty"),
        ("gz.osc.gz", truncated_gzip, "line"),
        ("cut.osc", good[..40].to_vec(), "line 3"),
        ("cut.osc.gz", gzip(&good[..good.len() - 20]), "line"),
        ("text.osc", b"hello\nworld\n".to_vec(), "osmChange"),
        (
            "osm.osc",
            b"<osm version='0.6'></osm>".to_vec(),
            "this is data, not a change file",
        ),
        (
            "id.osc",
            b"<osmChange version='0.6'>\n<create><node lat='1' lon='1'/></create></osmChange>".to_vec(),
            "line 2",
        ),
        (
            "lat.osc",
            b"<osmChange version='0.6'><create><node id='1' lat='215' lon='1'/></create></osmChange>".to_vec(),
            "lat",
        ),
        (
            "nowhere.osc",
            b"<osmChange version='0.6'><create><node id='1'/></create></osmChange>".to_vec(),
            "without lat and lon",
        ),
        (
            "big.osc",
            b"<osmChange version='0.6'><delete><node id='99999999999999999999'/></delete></osmChange>".to_vec(),
            "not a number",
        ),
        (
            "nesting.osc",
            b"<osmChange version='0.6'><create></osmChange>".to_vec(),
            "line 1",
        ),
        (
            "entity.osc",
            b"<osmChange version='0.6'><create><way id='1'><tag k='&nope;' v=''/></way></create></osmChange>"
                .to_vec(),
            "nope",
        ),
        (
            "before.osc",
            b"xx<osmChange version='0.6'></osmChange>".to_vec(),
            "not text",
        ),
        (
            "behind.osc",
            b"<osmChange version='0.6'></osmChange>garbage".to_vec(),
            "behind",
        ),
        (
            "twice.osc",
            b"<osmChange version='0.6'><delete><node id='1' id='2'/></delete></osmChange>".to_vec(),
            "duplicated",
        ),
        (
            "newline.osc",
            b"<osmChange version='0.6'><delete><node id='a&#10;b'/></delete></osmChange>".to_vec(),
            "a\\nb",
        ),
        (
            "version.osc",
            b"<osmChange version='0.6'><delete><node id='1' version='3000000000'/></delete></osmChange>".to_vec(),
            "version",
        ),
        ("pbf.osc", craft::plain_file(&[block()]), "this is data"),
    ];
    for (name, bytes, cause) in cases {
        let changes = bench.path(name);
        std::fs::write(&changes, bytes).unwrap();
        let output = bench.path("out.osm.pbf");
        let message = run_fail(&[&"apply-changes", &base, &changes, &"-o", &output]);
        assert!(
            message.contains(name) && message.contains(cause),
            "{name}: {message}"
        );
        bench.nothing_left(&[name]);
        std::fs::remove_file(changes).unwrap();
    }
}

#[test]
fn a_change_file_cut_at_any_byte_is_refused() {
    let bench = Bench::new();
    let base = bench.path("base.osm.pbf");
    std::fs::write(&base, craft::plain_file(&[block()])).unwrap();
    let text = b"<osmChange version='0.6'>\n<modify><way id='1'><nd ref='2'/><tag k='a' v='&lt;'/></way></modify></osmChange>";
    let changes = bench.path("a.osc");
    let output = bench.path("out.osm.pbf");
    for cut in 0..text.len() {
        std::fs::write(&changes, &text[..cut]).unwrap();
        run_fail(&[&"apply-changes", &base, &changes, &"-o", &output]);
    }
}
