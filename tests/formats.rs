//! Every command writes every format, to a file or to standard output, with the options that a format has.

use crate::common::answers::{ask, ask_osmium};
use crate::common::every;
use crate::common::oracle::{osmium, real_files, small_real_files};
use crate::common::{Arg, in_turn, is_long, pbfhogg, run_fail, run_ok, small_world, world};
use std::path::{Path, PathBuf};

/// A document with what is easily lost: several boxes, a hint for an editor, negative ids, objects without metadata or
/// with some of it, a deleted object, a node without location, and characters that formats escape.
const AWKWARD: &str = r#"<?xml version='1.0' encoding='UTF-8'?>
<osm version="0.6" generator="hand" upload="false">
  <bounds minlat="1" minlon="2" maxlat="3" maxlon="4"/>
  <bounds minlat="11" minlon="12" maxlat="13" maxlon="14"/>
  <node id="-2" version="3" lat="-1.5" lon="-2.25"/>
  <node id="1" version="1" timestamp="2020-01-01T00:00:00Z" uid="1" user="a &amp; b" changeset="5" lat="1.5" lon="2">
    <tag k="a" v="ä,=@%&lt;&gt;&quot;漢😀"/><tag k="line" v="x&#10;y"/><tag k="é" v=""/>
  </node>
  <node id="3" lat="1" lon="2"/>
  <node id="4" timestamp="2021-06-30T23:59:59Z" lat="0.0000001" lon="-179.9999999"/>
  <node id="5"/>
  <way id="1" version="1" timestamp="2020-01-01T00:00:00Z" uid="1" user="a" changeset="5">
    <nd ref="1" lat="1.5" lon="2.25"/><nd ref="3"/><tag k="highway" v="y"/>
  </way>
  <way id="2" version="7"><nd ref="12345678901"/><nd ref="-2"/><nd ref="3"/><nd ref="12345678901"/></way>
  <way id="3"/>
  <relation id="1" version="2">
    <member type="node" ref="1" role="x y"/><member type="way" ref="1" role=""/>
    <member type="relation" ref="-7" role="é"/>
  </relation>
  <relation id="2"><tag k="type" v="route"/></relation>
</osm>
"#;

/// Several versions of objects, some of them deleted.
const HISTORY: &str = r#"<osm version="0.6">
  <node id="1" version="1" timestamp="2020-01-01T00:00:00Z" uid="1" user="a" changeset="5" visible="true" lat="1" lon="2"/>
  <node id="1" version="2" timestamp="2020-02-01T00:00:00Z" uid="1" user="a" changeset="6" visible="false"/>
  <way id="1" version="1" visible="false"/>
  <way id="1" version="2" visible="true"><nd ref="1"/><nd ref="2"/></way>
  <relation id="9" version="4" visible="false"><member type="way" ref="1" role="r"/></relation>
</osm>
"#;

/// Changes out of order, several of an object, and deletions with and without content.
const CHANGES: &str = r#"<osmChange version="0.6" generator="hand">
  <modify><way id="7" version="3"><nd ref="1"/><nd ref="-4"/><tag k="a" v="b"/></way></modify>
  <create>
    <node id="2" version="1" timestamp="2020-01-01T00:00:00Z" uid="1" user="a" changeset="5" lat="1" lon="2"/>
    <node id="1" version="1" lat="3" lon="4"/>
  </create>
  <delete><node id="1" version="2" lat="3" lon="4"/><node id="2" version="3"/><relation id="5" version="2"/></delete>
  <modify><node id="2" version="2" lat="5" lon="6"/></modify>
</osmChange>
"#;

fn text_files(dir: &Path) -> Vec<PathBuf> {
    [
        ("awkward.osm", AWKWARD),
        ("history.osm", HISTORY),
        ("changes.osc", CHANGES),
    ]
    .map(|(name, text)| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    })
    .to_vec()
}

/// Forms of text, with the options that make both programs write the same.
const FORMS: [&str; 16] = [
    "opl,locations_on_ways=false",
    "opl,locations_on_ways=true",
    "opl,locations_on_ways=false,add_metadata=false",
    "opl,locations_on_ways=false,add_metadata=version",
    "opl,locations_on_ways=false,add_metadata=changeset+uid",
    "osm,locations_on_ways=false,force_visible_flag=false",
    "osm,locations_on_ways=true,force_visible_flag=true",
    "osm,locations_on_ways=false,force_visible_flag=false,add_metadata=none",
    "osh,locations_on_ways=false",
    "osc,locations_on_ways=false",
    "osc,locations_on_ways=false,add_metadata=timestamp+user",
    "osm,xml_change_format=true,locations_on_ways=false",
    "debug",
    "debug,add_metadata=false",
    "debug,add_metadata=uid",
    "debug,add_metadata=version+user",
];

#[test]
fn text_has_the_bytes_that_osmium_writes() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let texts = text_files(dir.path()).into_iter().map(|path| (path, 1));
    let files = texts.chain(small_real_files().into_iter().map(|path| (path, 3)));
    for (turn, (input, turns)) in files.enumerate() {
        for form in in_turn(turn, turns, FORMS) {
            let args: [Arg; 5] = [&"cat", &"--generator=test", &input, &"-f", &form];
            let (ours, theirs) = (ask(&args), ask_osmium(&args));
            assert_eq!((ours.status, theirs.status), (0, 0), "{ours:?} {theirs:?}");
            let (ours, theirs) = (comparable(&ours.stdout), comparable(&theirs.stdout));
            let differs = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
            assert_eq!(differs, None, "{} {form}", input.display());
            assert!(ours == theirs, "{} {form}", input.display());
        }
    }
}

/// Whether a line of a text in debug format is a box of the header.
fn is_box(line: &str) -> bool {
    let rest = line.strip_prefix("    ").unwrap_or("x");
    rest.contains(' ') && rest.chars().all(|char| " -.,0123456789".contains(char))
}

/// A text without what differs on purpose: the replication state in the root element of XML, the ends and starts of
/// sections that continue, boxes (which are rounded outwards here), and the note in debug format about several versions
/// (which osmium does not see in XML).
fn comparable(text: &str) -> String {
    let text = text.replace("  </create>\n  <create>\n", "");
    let text = text.replace("  </modify>\n  <modify>\n", "");
    let text = text.replace("  </delete>\n  <delete>\n", "");
    let lines = text.lines().map(|line| match line.strip_prefix("<osm") {
        Some(rest) => match rest.split_once(" osmosis_replication") {
            Some((attributes, _)) => format!("<osm{attributes}>\n"),
            None => format!("{line}\n"),
        },
        None if line.starts_with("  multiple object versions: ") => String::new(),
        None if line.starts_with("  <bounds ") || is_box(line) => String::new(),
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn change_files_are_inputs_as_in_osmium() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let changes = dir.path().join("changes.osc");
    std::fs::write(&changes, CHANGES).unwrap();
    let packed = dir.path().join("packed");
    run_ok(&[&"cat", &changes, &"-f", &"osc.gz", &"-o", &packed]);
    let both = |args: &[Arg]| {
        let (ours, theirs) = (ask(args), ask_osmium(args));
        assert!(
            theirs.status == 0 && !theirs.stdout.is_empty(),
            "{theirs:?}"
        );
        assert_eq!(ours.stdout, theirs.stdout, "{ours:?}");
    };
    both(&[&"cat", &changes, &"-f", &"opl"]);
    both(&[&"sort", &changes, &"-f", &"opl"]);
    both(&[&"cat", &"-t", &"node", &changes, &"-f", &"opl"]);
    both(&[&"getid", &"-H", &changes, &"n2", &"r5", &"-f", &"opl"]);
    let told = ask(&[&"cat", &packed, &"-F", &"osc.gz", &"-f", &"opl"]).stdout;
    assert_eq!(told, ask_osmium(&[&"cat", &changes, &"-f", &"opl"]).stdout);
}

/// The formats other than PBF that commands write, as the help lists them.
fn written_formats() -> Vec<String> {
    let help = ask(&[&"help", &"file-formats"]).stdout;
    let lines = help.lines().skip_while(|line| !line.starts_with("  pbf "));
    let lines = lines.skip(1).take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_command_writes_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), if is_long() { "20000" } else { "6000" });
    let other = dir.path().join("other.osm.pbf");
    run_ok(&[&"cat", &"-t", &"node", &input, &"-o", &other]);
    let day = dir.path().join("001.osc.gz");
    let out = dir.path().join("out.osm.pbf");
    let forms = written_formats();
    assert!(forms.len() >= 4, "{forms:?}");
    let mut writers = every::lines(&["reads"]);
    writers.retain(|command| command.contains("{out}"));
    for (turn, command) in writers.into_iter().enumerate() {
        // Changes, features and pages have formats of their own.
        let others = ["derive-changes", "export", "diff --html", "inspect --html"];
        if others.iter().any(|other| command.starts_with(other)) {
            continue;
        }
        // The command without output, which is written last.
        let command = command.replace("-f opl", "");
        let values: [(&str, &Path); 4] = [
            ("{in}", &input),
            ("{other}", &other),
            ("{day}", &day),
            ("{out}", &out),
        ];
        let mut words = every::arguments(&command, &values);
        words.truncate(
            words
                .iter()
                .position(|word| word == Path::new("-o"))
                .unwrap(),
        );
        let run = |more: &[&str]| {
            let output = pbfhogg()
                .args(&words)
                .arg("-q")
                .args(more)
                .output()
                .unwrap();
            let is_found = output.status.code().is_some_and(|code| code < 2);
            assert!(is_found, "{command} {more:?}: {output:?}");
            assert!(output.stderr.is_empty(), "{command} {more:?}: {output:?}");
            output.stdout
        };
        run(&["-O", "-o", out.to_str().unwrap()]);
        let jobs = (turn % 4 + 1).to_string();
        for form in in_turn(turn, 4, &forms) {
            let expected = run_ok(&[&"cat", &out, &"-f", form]).stdout;
            let found = run(&["-f", form, "--jobs", &jobs]);
            assert!(
                found == expected,
                "{command} -f {form} --jobs {jobs}: {} bytes, not {}",
                found.len(),
                expected.len()
            );
        }
        // The default format of standard output, and a compressed file by its name.
        if is_long() || turn % 2 == 0 {
            let pbf = run(&[]);
            assert_eq!(pbf.get(4..6), Some(&b"\n\t"[..]), "{command}");
        }
        if !is_long() && turn % 2 == 0 {
            continue;
        }
        let packed = dir.path().join("out.opl.zst");
        run(&["-O", "-o", packed.to_str().unwrap()]);
        let expected = run_ok(&[&"cat", &out, &"-f", &"opl"]).stdout;
        assert!(run_ok(&[&"cat", &packed, &"-f", &"opl"]).stdout == expected);
    }
}

#[test]
fn regions_of_a_configuration_have_formats_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "50000");
    let region = |name: &str, format: &str| {
        format!(r#"{{"output": "{name}", {format} "bbox": [-10, 39.9, -9.9, 40.1]}}"#)
    };
    let names = [
        ("one.osm.pbf", ""),
        ("two.opl", ""),
        ("three", r#""output_format": "osm.gz","#),
        ("four.osc.zst", ""),
    ];
    let regions: Vec<String> = names.iter().map(|(name, f)| region(name, f)).collect();
    let config = dir.path().join("regions.json");
    let text = format!(r#"{{"extracts": [{}]}}"#, regions.join(","));
    std::fs::write(&config, text).unwrap();
    run_ok(&[&"extract", &"-c", &config, &"-d", &dir.path(), &input]);
    let [one, two, three, four] = names.map(|(name, _)| dir.path().join(name));
    let opl = |path: &Path| run_ok(&[&"cat", &path, &"-f", &"opl"]).stdout;
    let expected = opl(&one);
    assert!(expected.len() > 1000);
    assert!(std::fs::read(&two).unwrap() == expected);
    assert!(opl(&three) == expected);
    let changes = std::fs::read(&four).unwrap();
    assert_eq!(changes.get(..4), Some(&[0x28, 0xb5, 0x2f, 0xfd][..]));
}

#[test]
fn a_text_keeps_what_only_texts_have() {
    let dir = tempfile::tempdir().unwrap();
    let awkward = text_files(dir.path()).remove(0);
    let told = run_ok(&[&"cat", &awkward, &"-f", &"osm"]).stdout;
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains(" upload=\"false\""), "{told}");
    assert_eq!(told.matches("<bounds ").count(), 2, "{told}");
    // PBF has room for one box, and for no hint.
    let pbf = dir.path().join("awkward.osm.pbf");
    run_ok(&[&"cat", &awkward, &"-o", &pbf]);
    let told = run_ok(&[&"cat", &pbf, &"-f", &"osm"]).stdout;
    let told = String::from_utf8(told).unwrap();
    let bounds = "<bounds minlat=\"1\" minlon=\"2\" maxlat=\"13\" maxlon=\"14\"/>";
    assert!(told.contains(bounds) && !told.contains("upload"), "{told}");
}

#[test]
fn a_text_that_cannot_be_written_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let input = world(dir.path(), "20000");
    let bytes = std::fs::read(&input).unwrap();
    let cut = dir.path().join("cut.osm.pbf");
    std::fs::write(&cut, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let out = dir.path().join("out.opl");
    for command in ["cat", "sort", "renumber"] {
        run_fail(&[&command, &cut, &"-o", &out]);
        assert!(!out.exists(), "{command}");
    }
    run_ok(&[&"cat", &input, &"-o", &out]);
    let message = run_fail(&[&"cat", &input, &"-o", &out]);
    assert!(message.contains("--overwrite"), "{message}");
}

#[test]
fn show_prints_the_objects_of_a_file_in_any_text_format() {
    let dir = tempfile::tempdir().unwrap();
    let awkward = text_files(dir.path()).remove(0);
    let shown = |args: &[Arg]| {
        let shown = ask(args);
        assert!(shown.stderr.is_empty(), "{shown:?}");
        (shown.status, shown.stdout)
    };
    let keep = "--output-header=generator!";
    let told = |form: &str| (0, ask(&[&"cat", &keep, &awkward, &"-f", &form]).stdout);
    assert_eq!(shown(&[&"show", &awkward]), told("debug"));
    assert_eq!(shown(&[&"show", &"-d", &awkward]), told("debug"));
    assert_eq!(shown(&[&"show", &"-o", &awkward]), told("opl"));
    assert_eq!(shown(&[&"show", &"-x", &awkward]), told("osm"));
    assert_eq!(shown(&[&"show", &"-f", &"osc", &awkward]), told("osc"));
    let nodes = ask(&[&"cat", &"-t", &"node", &awkward, &"-f", &"opl"]).stdout;
    assert_eq!(
        shown(&[&"show", &"-o", &"-t", &"node", &awkward]),
        (0, nodes)
    );
    let some = ask(&[&"getid", &keep, &awkward, &"n1", &"r2", &"-f", &"debug"]).stdout;
    assert_eq!(shown(&[&"show", &"-d", &awkward, &"n1", &"r2"]), (0, some));
    let none = ask(&[&"show", &"-o", &awkward, &"n77"]);
    assert_eq!(none.stderr, "not found: n77\n");
    assert_eq!((none.status, none.stdout), (1, String::new()));
    let message = run_fail(&[&"show", &"-f", &"pbf", &awkward]);
    assert!(message.contains("show writes text"), "{message}");
    if osmium() {
        let theirs = ask_osmium(&[&"show", &"--no-pager", &"-o", &awkward]).stdout;
        let form = "opl,locations_on_ways=false";
        let ours = ask(&[&"show", &"--no-pager", &"-f", &form, &awkward]).stdout;
        assert_eq!(ours, theirs);
    }
}

#[test]
fn headers_keep_the_generator_and_the_hint_for_an_editor() {
    let dir = tempfile::tempdir().unwrap();
    let awkward = text_files(dir.path()).remove(0);
    let root = |options: &[&str]| {
        let mut args: Vec<Arg> = vec![&"cat", &awkward, &"-f", &"osm"];
        options.iter().for_each(|option| args.push(option));
        let text = ask(&args).stdout;
        text.lines().nth(1).unwrap_or_default().to_owned()
    };
    let set = "--output-header";
    assert!(root(&[set, "generator!"]).contains("generator=\"hand\""));
    assert!(root(&[set, "generator=me"]).contains("generator=\"me\""));
    assert!(root(&[set, "xml_josm_upload=true"]).contains("upload=\"true\""));
    assert!(root(&[set, "xml_josm_upload!"]).contains("upload=\"false\""));
    assert!(run_fail(&[&"cat", &awkward, &set, &"typo!"]).contains("'typo' is not"));
    for wrong in ["xml_josm_upload=perhaps", "generator"] {
        let message = run_fail(&[&"cat", &awkward, &"-f", &"osm", &set, &wrong]);
        assert!(message.contains("expected"), "{message}");
    }
}

#[test]
fn words_that_scripts_for_osmium_use_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let awkward = text_files(dir.path()).remove(0);
    let expected = ask(&[&"sort", &awkward, &"-f", &"opl"]);
    assert!(expected.status == 0 && !expected.stdout.is_empty());
    for words in [
        "sort -s simple -f opl",
        "sort --strategy=multipass --output-form opl",
        "sort --fsync --overw -o - -f opl",
        "merge -H -f opl",
    ] {
        let mut args: Vec<Arg> = Vec::new();
        let words: Vec<&str> = words.split(' ').collect();
        words.iter().for_each(|word| args.push(word));
        args.push(&awkward);
        assert_eq!(ask(&args), expected, "{words:?}");
    }
    let types = ask(&[&"add-locations-to-ways", &"-I"]).stdout;
    assert_eq!(
        types.lines().collect::<Vec<_>>(),
        ["auto", "dense", "external", "sparse"]
    );
    let report = ask(&[&"fileinfo", &"--json", &"-e", &awkward]).stdout;
    for args in [&["-ej"][..], &["-j", "-e"], &["-e", "-j"]] {
        let mut all: Vec<Arg> = vec![&"fileinfo"];
        args.iter().for_each(|arg| all.push(arg));
        all.push(&awkward);
        assert_eq!(ask(&all).stdout, report);
    }
    let file = ask(&[&"fileinfo", &"--", &"-j"]);
    assert!(file.stderr.contains("-j: cannot open"), "{}", file.stderr);
    let first = ask(&[&"inspect", &"--blocks=1", &awkward]).stdout;
    assert_eq!(
        ask(&[&"inspect", &"--blocks", &"1", &awkward]).stdout,
        first
    );
    let header_box = ask(&[&"inspect", &"-g", &"header.bbox", &awkward]).stdout;
    assert_eq!(
        header_box,
        ask(&[&"inspect", &"-g", &"header.boxes", &awkward]).stdout
    );
    let version = ask(&[&"version"]);
    assert_eq!(version.stdout, ask(&[&"--version"]).stdout);
    let (counts, input) = (dir.path().join("counts.tsv"), &awkward);
    run_ok(&[&"tags-count", input, &"-o", &counts]);
    let counted = ask(&[&"tags-count", input]).stdout;
    assert!(std::fs::read_to_string(&counts).unwrap() == counted && !counted.is_empty());
    assert!(run_fail(&[&"tags-count", input, &"-o", &counts]).contains("--overwrite"));
}

#[test]
fn pbf_has_the_form_that_its_options_say() {
    if !osmium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.osm.pbf");
    // osmium writes what is deleted only to files whose names are those of history files: these are left out.
    let awkward = text_files(dir.path()).remove(0);
    let unsorted: PathBuf = dir.path().join("unsorted.osm.pbf");
    run_ok(&[&"degrade", &"--unsort", &awkward, &"-o", &unsorted]);
    let told = |path: &Path, form: &str| {
        let args: [Arg; 5] = [&"cat", &"--generator=test", &path, &"-f", &form];
        ask_osmium(&args).stdout
    };
    let is_history = |path: &PathBuf| path.to_string_lossy().contains(".osh");
    let files = small_real_files();
    let files = files.into_iter().filter(|path| !is_history(path));
    for (turn, input) in [awkward, unsorted].into_iter().chain(files).enumerate() {
        for (options, form) in in_turn(
            turn,
            2,
            [
                ("pbf_dense_nodes=false", "opl,locations_on_ways=true"),
                ("add_metadata=false", "opl,locations_on_ways=true"),
                ("add_metadata=version+user", "opl,locations_on_ways=true"),
                ("locations_on_ways=false", "opl,locations_on_ways=true"),
                (
                    "pbf_dense_nodes=false,add_metadata=timestamp,locations_on_ways=false",
                    "opl,locations_on_ways=true",
                ),
            ],
        ) {
            let spec = format!("pbf,{options}");
            // The objects that osmium reads are those that it reads in its own file of this form.
            let theirs = dir.path().join("theirs.osm.pbf");
            let keep = if options.contains("locations_on_ways") {
                spec.clone()
            } else {
                format!("{spec},locations_on_ways=true")
            };
            let made = ask_osmium(&[&"cat", &input, &"-O", &"-f", &keep, &"-o", &theirs]);
            assert_eq!(made.status, 0, "{made:?}");
            for command in ["cat", "renumber"] {
                let args: [Arg; 7] = [&command, &"-q", &input, &"-O", &"-f", &spec, &"-o"];
                run_ok(&[args.as_slice(), &[&out as Arg]].concat());
                let checked = ask(&[&"check", &"--index", &"-q", &out]);
                assert_eq!(
                    checked.status,
                    0,
                    "{command} {spec} {}: {checked:?}",
                    input.display()
                );
                if command == "cat" {
                    let (ours, theirs) = (told(&out, form), told(&theirs, form));
                    let differs = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
                    assert_eq!(differs, None, "{spec} {}", input.display());
                    assert_eq!(ours.len(), theirs.len(), "{spec} {}", input.display());
                }
            }
        }
    }
    let plain = real_files().pop().expect("real files");
    run_ok(&[
        &"cat",
        &plain,
        &"-O",
        &"-f",
        &"pbf,pbf_dense_nodes=false",
        &"-o",
        &out,
    ]);
    let header = ask(&[&"inspect", &"--json", &out]).stdout;
    assert!(!header.contains("DenseNodes"), "{header}");
}

#[test]
fn an_output_whose_name_says_no_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let world = small_world(dir.path());
    for name in ["x.osm.xz", "x.zip", "x.txt", "x"] {
        for command in ["cat", "sort"] {
            let output = dir.path().join(name);
            let message = run_fail(&[&command, &world, &"-o", &output]);
            assert!(
                message.contains("the name does not show the format"),
                "{message}"
            );
            run_ok(&[&command, &world, &"-f", &"pbf", &"-o", &output]);
            std::fs::remove_file(&output).unwrap();
        }
    }
}
