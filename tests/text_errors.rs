//! Texts that cannot be read: errors of one line, with the place in the file.

use crate::common::{pbfhogg, run_fail, stderr};

#[test]
fn an_object_of_a_text_that_fits_no_block_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(40 << 20);
    for text in [
        format!(
            "<osm version='0.6'>\n<node id='2' lat='1' lon='1'><tag k='a' v='{long}'/></node></osm>"
        ),
        format!("n1 x1 y1\nn2 Ta={long} x1 y1\n"),
    ] {
        let input = dir.path().join("in.txt");
        std::fs::write(&input, text).unwrap();
        let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
        assert!(
            message.contains("in.txt: line 2, column 1: an object takes more than 24 MB"),
            "{message}"
        );
    }
}

#[test]
fn a_text_that_is_not_xml_is_not_osm_either() {
    let dir = tempfile::tempdir().unwrap();
    for (text, cause) in [
        (
            "<osm version='0.6'><node id='1' lat='1' lon='1' user='a<b'/></osm>",
            "there is < in its value",
        ),
        (
            "<osm version='0.6'/><![CDATA[x]]>",
            "there is text behind </osm>",
        ),
        ("<osm version='0.6'/>&amp;", "there is text behind </osm>"),
    ] {
        let input = dir.path().join("in.osm");
        std::fs::write(&input, text).unwrap();
        let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
        assert!(message.contains(cause), "{message}");
    }
    let mut damaged = b"BZh9".to_vec();
    damaged.extend([7; 100]);
    let input = dir.path().join("in.osm.bz2");
    std::fs::write(&input, damaged).unwrap();
    let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
    assert!(
        message.contains("in.osm.bz2: cannot be decompressed"),
        "{message}"
    );
}

#[test]
fn a_list_of_an_opl_line_comes_once() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.opl");
    for line in ["w1 Nn1x1y1,n2 Nn3x3y3", "r1 Mn1@ Mn2@"] {
        std::fs::write(&input, line).unwrap();
        let message = run_fail(&[&"cat", &input, &"-o", &dir.path().join("out.osm.pbf")]);
        assert!(message.contains("a second field"), "{message}");
    }
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("in.osm");
    std::fs::write(
        &text,
        "<osm version='0.6'><node id='1' lat='1' lon='1'/></osm>",
    )
    .unwrap();
    let mut command = pbfhogg();
    command
        .env("TMPDIR", "/no/such/folder")
        .arg("inspect")
        .arg(&text);
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        stderr(&ran).contains("/no/such/folder: cannot create a temporary file in this directory"),
        "{}",
        stderr(&ran)
    );
}
