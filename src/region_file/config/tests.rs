//! Tests of valid and invalid config files.

use super::*;

const BOX: &str = r#""bbox": [1, 2, 3, 4]"#;

fn read_text_as_config(text: &str) -> Result<ExtractConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("a.poly"),
        "a\n1\n1 1\n2 1\n2 2\nEND\nEND\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("bad.poly"), "a\n1\n1 1\n2 x\n").unwrap();
    let path = folder.path().join("config.json");
    std::fs::write(&path, text).unwrap();
    let prefix = format!("{}: ", path.display());
    let home = format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR);
    read_config(&path, CornerOrder::Southwest).map_err(|error| {
        let message = error.to_string();
        message.strip_prefix(&prefix).unwrap().replace(&home, "")
    })
}

#[test]
fn every_form_of_region_is_read() {
    let ring = "[[1,1],[2,1],[2,2],[1,1]]";
    let text = format!(
        r#"{{"directory": "/tmp/x", "unknown": 1, "extracts": [
        {{"output": "a.osm.pbf", "output_format": "pbf", "description": "of a", {BOX},
          "output_header": {{"generator": "me/1.0", "osmosis_replication_timestamp": null}}}},
        {{"output": "b.osm.pbf", "bbox": {{"left": 170, "right": -170, "top": 2.5, "bottom": 1}}}},
        {{"output": "c.osm.pbf", "polygon": [{ring}]}},
        {{"output": "d.osm.pbf", "multipolygon": [[{ring}], [{ring}]]}},
        {{"output": "e.osm.pbf", "polygon": {{"file_name": "a.poly"}}}},
        {{"output": "f.osm.pbf", "multipolygon": {{"file_name": "a.poly", "file_type": "poly"}}}}]}}"#
    );
    let config = read_text_as_config(&text).unwrap();
    assert_eq!(config.directory.as_deref(), Some(Path::new("/tmp/x")));
    let polygons: Vec<_> = config
        .extracts
        .iter()
        .map(|extract| extract.shape.polygons.len())
        .collect();
    assert_eq!(polygons, [1, 2, 1, 2, 1, 1]);
    let first = &config.extracts[0];
    assert_eq!(first.output, Path::new("a.osm.pbf"));
    assert_eq!(first.output_format.as_deref(), Some("pbf"));
    assert_eq!(first.description.as_deref(), Some("of a"));
    assert_eq!(
        first.output_header,
        [
            ("generator".to_owned(), Some("me/1.0".to_owned())),
            ("osmosis_replication_timestamp".to_owned(), None)
        ]
    );
    assert_eq!(config.extracts[2].shape.polygons[0].outer.name, "ring 1");
}

#[test]
fn an_error_names_extract_and_field() {
    for (extract, cause) in [
        (
            r#"{"output": "b.pbf"}"#,
            "(b.pbf): the region is missing: bbox",
        ),
        (
            r#"{"output": "b.pbf", "bbox": [1,2,3,4], "polygon": []}"#,
            "(b.pbf): bbox and polygon: give only one region per extract",
        ),
        (r#"{"bbox": [1,2,3,4]}"#, ": output: a file name is missing"),
        (
            r#"{"output": 5, "bbox": [1,2,3,4]}"#,
            ": output: a text is wanted",
        ),
        (
            r#"{"output": "", "bbox": [1,2,3,4]}"#,
            "(): output: a file name is missing",
        ),
        (
            r#"{"output": "a.pbf", "bbox": [1,2,3,4]}"#,
            "(a.pbf): output: an earlier extract writes the same file",
        ),
        (
            r#"{"output": "b.pbf", "bbox": [1,2,3]}"#,
            "(b.pbf): bbox: four numbers are wanted",
        ),
        (
            r#"{"output": "b.pbf", "bbox": [1,2,3,null]}"#,
            "(b.pbf): bbox: four numbers are wanted",
        ),
        (
            r#"{"output": "b.pbf", "bbox": {"left": 1}}"#,
            "(b.pbf): bbox: four numbers are wanted",
        ),
        (
            r#"{"output": "b.pbf", "bbox": "1,2,3,4"}"#,
            "(b.pbf): bbox: four numbers are wanted",
        ),
        (
            r#"{"output": "b.pbf", "bbox": [1,2,3,94]}"#,
            "(b.pbf): bbox: latitude 94 lies outside ±90 degrees",
        ),
        (
            r#"{"output": "b.pbf", "bbox": [1,2,1,4]}"#,
            "(b.pbf): bbox: the box is empty",
        ),
        (
            r#"{"output": "b.pbf", "polygon": [[[1,1],[2,1],[2,2]]]}"#,
            "(b.pbf): polygon: ring 1, vertex 3: the ring is not closed",
        ),
        (
            r#"{"output": "b.pbf", "multipolygon": [[[[1,1],[NaN,1]]]]}"#,
            "(b.pbf): multipolygon: polygon 1, ring 1, vertex 2: longitude is not a number",
        ),
        (
            r#"{"output": "b.pbf", "polygon": {}}"#,
            "(b.pbf): polygon: \"file_name\" is missing",
        ),
        (
            r#"{"output": "b.pbf", "polygon": {"file_name": "no.poly"}}"#,
            "(b.pbf): polygon: no.poly: cannot open",
        ),
        (
            r#"{"output": "b.pbf", "polygon": {"file_name": "bad.poly"}}"#,
            "(b.pbf): polygon: bad.poly: line 4: section 1 '1', vertex 2: latitude 'x'",
        ),
        (
            r#"{"output": "b.pbf", "polygon": {"file_name": "a.poly", "file_type": "shp"}}"#,
            "(b.pbf): polygon: file_type 'shp' is not a kind of region file",
        ),
        (
            r#"{"output": "b.pbf", "bbox": [1,2,3,4], "output_header": {"a": 1}}"#,
            "(b.pbf): output_header, a: a text or null is wanted",
        ),
        (
            r#"{"output": "b.pbf", "bbox": [1,2,3,4], "output_header": 1}"#,
            "(b.pbf): output_header: an object is wanted",
        ),
        ("7", ": is not an object"),
    ] {
        let text = format!(r#"{{"extracts": [{{"output": "a.pbf", {BOX}}}, {extract}]}}"#);
        let message = read_text_as_config(&text).unwrap_err();
        let rest = message.strip_prefix("extract 2").unwrap();
        assert!(rest.trim_start().starts_with(cause), "{message}");
        assert!(!message.contains('\n'));
    }
}

#[test]
fn a_file_that_is_no_config_is_refused() {
    for (text, cause) in [
        ("[]", "a config file is a JSON object"),
        ("{}", "\"extracts\" is missing"),
        (r#"{"extracts": {}}"#, "\"extracts\" is not an array"),
        (r#"{"extracts": []}"#, "\"extracts\" is empty"),
        ("{\"extracts\": [\n}", "line 2, column 1: this is not JSON"),
        (
            r#"{"directory": 1, "extracts": [1]}"#,
            "directory: a text is wanted",
        ),
    ] {
        let message = read_text_as_config(text).unwrap_err();
        assert!(message.starts_with(cause), "{message}");
    }
}
