//! Tests of reading OSM XML and OPL files, and of files in the wrong format.

use super::*;
use crate::osm::Location;
use crate::pbf::ObjectBody;
use std::io::Write;

fn file(text: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    file
}

fn open(file: &tempfile::NamedTempFile) -> Input {
    Input::open(file.path()).unwrap()
}

fn error_message(result: Result<ChangeSet>) -> String {
    let message = result.unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn an_osm_file_gives_its_objects_in_canonical_order() {
    let text = b"<?xml version='1.0'?>\n<osm version='0.6' generator='JOSM'>
        <note>a note</note><bounds minlat='1' minlon='1' maxlat='2' maxlon='2'/>
        <relation id='7'><bounds minlat='1'/><member type='way' ref='5' role='outer'><nd lat='1' lon='2'/></member>
          <tag k='type' v='multipolygon'/></relation>
        <way id='5' version='2'><center lat='1' lon='1'/><nd ref='1'/><nd ref='-2'/></way>
        <node id='1' lat='1.5' lon='-2.25' action='modify'><tag k='a' v='&lt;b&gt;'/></node>
        <node id='-2' lat='3' lon='4'/>
        <node id='9' lat='3' lon='4' action='delete'/>
        <node id='8' visible='false'/>
        </osm>";
    let set = read_osm_file(&open(&file(text))).unwrap();
    let seen: Vec<_> = set
        .changes()
        .iter()
        .map(|c| (c.id(), c.is_deletion()))
        .collect();
    assert_eq!(
        seen,
        [(-2, false), (1, false), (8, true), (5, false), (7, false)]
    );
    // An object that the user of an editor deleted is counted, but is not in the set.
    assert_eq!(set.deleted_in_editor(), 1);
    let changes = set.changes().iter().filter(|c| !c.is_deletion());
    let objects: Vec<_> = changes.map(|change| set.object(change)).collect();
    let location = Location::new(15_000_000, -22_500_000);
    assert_eq!(objects[1].body, ObjectBody::Node { location });
    assert_eq!(*objects[1].tags, [("a", "<b>")]);
    assert_eq!(
        objects[2].body,
        ObjectBody::Way {
            refs: (&[1, -2]).into(),
            locations: (&[]).into()
        }
    );
    let ObjectBody::Relation { members } = &objects[3].body else {
        panic!("{:?}", objects[3]);
    };
    assert_eq!((members[0].id, members[0].role), (5, "outer"));
}

#[test]
fn an_opl_file_gives_its_objects_in_canonical_order() {
    let text = b"# by hand\nw5 v2 Nn1,n-2\nn1 Ta=%3c%b x-2.25 y1.5\nn9 dD x y\n";
    let set = read_osm_file(&open(&file(text))).unwrap();
    let seen: Vec<_> = set
        .changes()
        .iter()
        .map(|c| (c.id(), c.is_deletion()))
        .collect();
    assert_eq!(seen, [(1, false), (9, true), (5, false)]);
    let (_, object) = set.iter().next().unwrap();
    assert_eq!(*object.tags, [("a", "<b")]);
}

#[test]
fn an_error_names_the_actual_format_of_a_file() {
    let change = file(b"<osmChange version='0.6'><create/></osmChange>");
    let plain = file(b"<osm version='0.6'><node id='1' lat='1' lon='1'/></osm>");
    let message = error_message(read_osm_file(&open(&change)));
    assert!(
        message.ends_with("this is an OsmChange file (<osmChange>), not an OSM XML file (<osm>)"),
        "{message}"
    );
    let message = error_message(read_change_files(&[plain.path()], &Context::default()));
    assert!(
        message.ends_with("this is an OSM XML file (<osm>), not an OsmChange file (<osmChange>)"),
        "{message}"
    );
    let pbf = file(&[0, 0, 0, 13, 10, 9]);
    let message = error_message(read_osm_file(&open(&pbf)));
    assert!(
        message.ends_with("this is a PBF file, not an OSM XML file"),
        "{message}"
    );
}

#[test]
fn broken_osm_files_are_refused() {
    for (text, cause) in [
        (
            &b"<html></html>"[..],
            "line 1, column 7: expected <osm>, not <html>",
        ),
        (
            b"<osm version='0.6'>\n<node id='1' lat='1' lon='1'/>",
            "the document ends before </osm>",
        ),
        (b"<osm version='0.6'/>text", "there is text behind </osm>"),
        (
            b"<osm version='0.6'/><osm version='0.6'/>",
            "there is <osm> behind </osm>",
        ),
        (b"<!-- -->", "this is not an OSM XML file: <osm> is missing"),
    ] {
        let message = error_message(read_osm_file(&open(&file(text))));
        assert!(message.ends_with(cause), "{message}");
    }
}

#[test]
fn the_action_attribute_is_ignored_in_change_files() {
    let text =
        b"<osmChange version='0.6'><create><node id='1' lat='1' lon='1' action='delete'/></create></osmChange>";
    let set = read_change_files(&[file(text).path()], &Context::default()).unwrap();
    assert!(!set.changes()[0].is_deletion());
}
