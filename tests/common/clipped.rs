//! Extracts that are updated with `--clip`, and servers of change files for them.

use super::answers::name_of;
use super::publisher::update_from;
use super::{Arg, Kind, Object, decode, run_ok, stderr};
use pbfhogg::commands::extract::{Strategy, parse_bbox};
use pbfhogg::commands::update::{self, Goal, LocalFiles, Options, Summary};
use pbfhogg::{Context, OutputOptions, OutputTarget};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// The region of the extracts.
pub const REGION: &str = "0,0,10,10";

/// The whole data: `w1` crosses the edge of the region, `w2` and `w3` lie outside. `r1` has `w1` and `w2`.
const WHOLE: &str = "\
n1 v1 t2024-01-01T00:00:00Z x1 y1
n2 v1 t2024-01-01T00:00:00Z x9 y1
n3 v1 t2024-01-01T00:00:00Z x11 y1
n4 v1 t2024-01-01T00:00:00Z x20 y20
n5 v1 t2024-01-01T00:00:00Z x21 y21
n6 v1 t2024-01-01T00:00:00Z Tamenity=cafe x2 y2
n7 v1 t2024-01-01T00:00:00Z x30 y30
n8 v1 t2024-01-01T00:00:00Z x31 y30
w1 v1 t2024-01-01T00:00:00Z Thighway=path Nn1,n2,n3
w2 v1 t2024-01-01T00:00:00Z Tbarrier=wall Nn4,n5
w3 v1 t2024-01-01T00:00:00Z Thighway=path Nn7,n8
r1 v1 t2024-01-01T00:00:00Z Ttype=multipolygon Mw1@outer,w2@outer
r2 v1 t2024-01-01T00:00:00Z Ttype=site Mn6@
r3 v1 t2024-01-01T00:00:00Z Ttype=route Mw3@
r4 v1 t2024-01-01T00:00:00Z Ttype=network Mr1@
";

/// The form of a file with regard to the locations of its ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Plain,
    AllNodes,
    NeededNodes,
    Mixed,
}

pub const FORMS: [Form; 4] = [Form::Plain, Form::AllNodes, Form::NeededNodes, Form::Mixed];

/// An extract of [`WHOLE`], and a server of change files for it.
pub struct Place {
    dir: tempfile::TempDir,
    published: usize,
}

impl Place {
    /// Makes an extract with one of the strategies of `extract`.
    pub fn new(strategy: &str, form: Form) -> Self {
        let place = Self::empty();
        let [opl, cut, file] =
            ["whole.opl", "cut.osm.pbf", "file.osm.pbf"].map(|name| place.path(name));
        fs::write(&opl, WHOLE).unwrap();
        run_ok(&[
            &"extract",
            &"-q",
            &"-s",
            &strategy,
            &"--set-bounds",
            &"-b",
            &REGION,
            &opl,
            &"-o",
            &cut,
        ]);
        let time = "osmosis_replication_timestamp=2024-01-01T00:00:00Z";
        let command: &[&str] = match form {
            Form::Plain => &["cat"],
            Form::AllNodes => &["add-locations-to-ways", "-n"],
            Form::NeededNodes | Form::Mixed => &["add-locations-to-ways"],
        };
        let mut args: Vec<Arg> = command.iter().map(|arg| arg as Arg).collect();
        args.extend([&"-q" as Arg, &cut, &"-o", &file, &"--output-header", &time]);
        run_ok(&args);
        if form == Form::Mixed {
            fs::rename(&file, &cut).unwrap();
            run_ok(&[
                &"cat",
                &"-q",
                &"--output-header",
                &"pbfhogg.NeededNodes=false",
                &cut,
                &"-o",
                &file,
            ]);
        }
        place
    }

    /// Makes a server with the state before the first change file, and no file.
    pub fn empty() -> Self {
        let place = Self {
            dir: tempfile::tempdir().unwrap(),
            published: 0,
        };
        fs::create_dir_all(place.path("server/000/000")).unwrap();
        place.write_state();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn file(&self) -> PathBuf {
        self.path("file.osm.pbf")
    }

    pub fn server(&self) -> String {
        format!("file://{}", self.path("server").display())
    }

    fn write_state(&self) {
        let number = self.published;
        let day = number + 1;
        let state = format!("sequenceNumber={number}\ntimestamp=2024-01-{day:02}T00\\:00\\:00Z\n");
        fs::write(
            self.path(&format!("server/000/000/{number:03}.state.txt")),
            &state,
        )
        .unwrap();
        fs::write(self.path("server/state.txt"), state).unwrap();
    }

    /// Publishes the change file of a day.
    pub fn publish(&mut self, changes: &[String]) {
        self.published += 1;
        let text = format!("<osmChange version='0.6'>{}</osmChange>", changes.concat());
        let name = format!("server/000/000/{:03}.osc.gz", self.published);
        fs::write(self.path(&name), text).unwrap();
        self.write_state();
    }

    /// Runs an update with the region. Returns the report, and what was said.
    pub fn update_with(&self, region: &str, more: &[&str]) -> (Value, String) {
        let mut update = update_from(&self.server(), &self.file());
        let output = update
            .args(["--json", "--clip", region])
            .args(more)
            .output()
            .unwrap();
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        (serde_json::from_slice(&output.stdout).unwrap(), said)
    }

    pub fn update(&self) -> (Value, String) {
        self.update_with(REGION, &[])
    }

    /// Publishes changes and applies them. Returns the report, and what was said.
    pub fn apply(&mut self, changes: &[String]) -> (Value, String) {
        self.publish(changes);
        self.update()
    }

    /// Applies changes by a call of the library, with a strategy.
    pub fn apply_with(&mut self, changes: &[String], strategy: Strategy) -> Summary {
        self.publish(changes);
        let target = OutputTarget::File {
            path: self.file(),
            overwrite: true,
        };
        let options = Options::new(self.file(), Goal::File(OutputOptions::new(target)))
            .servers(vec![self.server()])
            .max_age(i64::MAX)
            .clip(Some((parse_bbox(REGION).unwrap(), strategy)));
        update::run(&options, &LocalFiles, &Context::default()).unwrap()
    }

    pub fn objects(&self) -> Vec<Object> {
        decode::objects(&self.file())
    }

    /// The names of all objects of the file.
    pub fn names(&self) -> String {
        let names: Vec<String> = self.objects().iter().map(name_of).collect();
        names.join(" ")
    }

    pub fn has(&self, name: &str) -> bool {
        self.objects().iter().any(|object| name_of(object) == name)
    }

    /// The longitudes and latitudes that a way stores, in degrees.
    pub fn places(&self, way: i64) -> Vec<(i64, i64)> {
        let objects = self.objects();
        let is_way = |object: &&Object| object.kind == Kind::Way && object.id == way;
        let way = objects.iter().find(is_way).expect("a way of the file");
        let degrees = |(lat, lon): &(i64, i64)| (lon / 1_000_000_000, lat / 1_000_000_000);
        way.locations.iter().map(degrees).collect()
    }
}

const TIME: &str = "timestamp='2024-01-01T00:00:00Z'";

pub fn node(id: i64, version: u32, lon: i64, lat: i64) -> String {
    format!("<node id='{id}' version='{version}' {TIME} lat='{lat}' lon='{lon}'/>")
}

pub fn tagged_node(id: i64, version: u32, lon: i64, lat: i64) -> String {
    let tag = "<tag k='natural' v='tree'/>";
    format!("<node id='{id}' version='{version}' {TIME} lat='{lat}' lon='{lon}'>{tag}</node>")
}

pub fn way(id: i64, version: u32, refs: &[i64]) -> String {
    let refs: String = refs.iter().map(|id| format!("<nd ref='{id}'/>")).collect();
    format!("<way id='{id}' version='{version}' {TIME}>{refs}<tag k='highway' v='path'/></way>")
}

pub fn relation(id: i64, version: u32, kind: &str, members: &[(&str, i64)]) -> String {
    let member = |(kind, id): &(&str, i64)| format!("<member type='{kind}' ref='{id}' role=''/>");
    let members: String = members.iter().map(member).collect();
    let tag = format!("<tag k='type' v='{kind}'/>");
    format!("<relation id='{id}' version='{version}' {TIME}>{members}{tag}</relation>")
}

pub fn modify(objects: &[String]) -> String {
    format!("<modify>{}</modify>", objects.concat())
}

pub fn delete(objects: &[String]) -> String {
    format!("<delete>{}</delete>", objects.concat())
}
