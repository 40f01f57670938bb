//! Inputs that are files of a web server: the same results, from the parts that are needed, and no results from a server
//! that lies, stalls, or changes the file.

use crate::common::answers::name_of;
use crate::common::oracle::real_file;
use crate::common::web::{Files, Request, Trouble, Web, directory};
use crate::common::{decode, in_turn, is_long, pbfhogg, run_fail, run_ok};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

const REGION: &str = "14.50,35.89,14.52,35.90";

/// Writes Malta in a spatial layout, which is made once for all tests.
fn spatial(dir: &Path) {
    static MADE: LazyLock<Vec<u8>> = LazyLock::new(laid_out);
    std::fs::write(dir.join("malta.osm.pbf"), &*MADE).unwrap();
}

/// The bytes of Malta in a spatial layout.
fn laid_out() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let input = real_file("malta.osm.pbf");
    let file = |name: &str| dir.path().join(name);
    run_ok(&[
        &"add-locations-to-ways",
        &"-n",
        &input,
        &"-o",
        &file("located.osm.pbf"),
    ]);
    let (located, output) = (file("located.osm.pbf"), file("malta.osm.pbf"));
    run_ok(&[
        &"repack",
        &"--layout",
        &"hilbert",
        &"-n",
        &"1000",
        &located,
        &"-o",
        &output,
    ]);
    std::fs::read(output).unwrap()
}

fn server(dir: &Path, decide: impl FnMut(&Request) -> Option<Trouble> + Send + 'static) -> Web {
    Web::new(directory(dir.to_owned()), Box::new(decide))
}

/// The number of bytes that were asked for.
fn asked(requests: &[Request]) -> u64 {
    let ranges = requests.iter().map(|request| {
        let range = request.headers["range"].strip_prefix("bytes=").unwrap();
        let (first, last) = range.split_once('-').unwrap();
        last.parse::<u64>().unwrap() + 1 - first.parse::<u64>().unwrap()
    });
    ranges.sum()
}

#[test]
fn commands_do_with_urls_what_they_do_with_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    spatial(dir);
    let web = server(dir, |_| None);
    let (local, url) = (
        dir.join("malta.osm.pbf"),
        format!("{}/malta.osm.pbf", web.url()),
    );
    let [expected, found] = ["expected.osm.pbf", "found.osm.pbf"].map(|name| dir.join(name));
    let objects = decode::objects(&local);
    let ids = [&objects[0], &objects[objects.len() - 1]].map(name_of);
    let commands = [
        &["cat", "-f", "opl"][..],
        &["cat"],
        &["cat", "--force"],
        &["getid", &ids[0], &ids[1], "-f", "opl"],
        &["tags-filter", "w/highway=primary"],
        &["inspect", "--json"],
        &["sort"],
        &["extract", "-s", "smart", "-b", REGION],
        &["extract", "-b", REGION],
    ];
    for words in in_turn(1, 2, commands) {
        let run = |input: &std::ffi::OsStr, output: &Path| {
            let mut command = pbfhogg();
            command
                .arg(words[0])
                .arg(input)
                .args(&words[1..])
                .current_dir(dir);
            match words[0] {
                "inspect" => {
                    let output = command.output().unwrap();
                    let mut json: serde_json::Value =
                        serde_json::from_slice(&output.stdout).unwrap();
                    json["path"] = serde_json::Value::Null;
                    json.to_string().into_bytes()
                }
                _ => {
                    command.args(["-q", "-O", "-o"]).arg(output);
                    assert!(command.status().unwrap().success(), "{words:?}");
                    std::fs::read(output).unwrap()
                }
            }
        };
        let one = run(local.as_os_str(), &expected);
        assert!(run(url.as_ref(), &found) == one, "{words:?}");
        let requests = web.requests();
        assert!(!requests.is_empty(), "{words:?}");
        let len = std::fs::metadata(&local).unwrap().len();
        match words {
            ["inspect", ..] => assert!(asked(&requests) * 10 < len, "{}", asked(&requests)),
            ["extract", ..] => assert!(asked(&requests) * 2 < len, "{} of {len}", asked(&requests)),
            // Nothing is fetched twice.
            _ => assert!(
                asked(&requests) <= len + 70_000,
                "{words:?} {} of {len}",
                asked(&requests)
            ),
        }
    }
    // Text, and a file without parts.
    std::fs::write(dir.join("one.opl"), "n1 v1 x1 y2\n").unwrap();
    let output = dir.join("one.osm.pbf");
    run_ok(&[&"cat", &format!("{}/one.opl", web.url()), &"-o", &output]);
    assert_eq!(decode::objects(&output).len(), 1);
    let whole = server(dir, |_| Some(Trouble::Whole));
    run_ok(&[
        &"cat",
        &"-O",
        &format!("{}/one.opl", whole.url()),
        &"-o",
        &output,
    ]);
    assert_eq!(decode::objects(&output).len(), 1);
}

/// Extracts from a server in trouble. Returns the message; nothing must have been written.
fn refused(dir: &Path, decide: impl FnMut(&Request) -> Option<Trouble> + Send + 'static) -> String {
    let web = server(dir, decide);
    fails(dir, &format!("{}/malta.osm.pbf", web.url()))
}

fn fails(dir: &Path, url: &str) -> String {
    // Several threads may use the directory.
    let own = tempfile::tempdir_in(dir).unwrap();
    let output = own.path().join("out.osm.pbf");
    let mut command = pbfhogg();
    command
        .args(["extract", "-b", REGION, url, "-o"])
        .arg(&output);
    let output_of = command.env("PBFHOGG_HTTP_TIMEOUT", "1").output().unwrap();
    let message = String::from_utf8(output_of.stderr).unwrap();
    assert_eq!(output_of.status.code(), Some(2), "{message}");
    assert!(!output.exists());
    assert!(
        message.contains(url) && message.lines().count() == 1,
        "{message}"
    );
    message
}

#[test]
fn a_server_that_lies_or_stalls_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    spatial(dir);
    // The third request asks for a blob.
    let later = |trouble: fn() -> Trouble| {
        let mut count = 0;
        move |_: &Request| {
            count += 1;
            (count > 2).then(trouble)
        }
    };
    assert!(refused(dir, later(|| Trouble::Other(1))).contains("the server sent bytes"));
    assert!(refused(dir, later(|| Trouble::Whole)).contains("whole file"));
    assert!(refused(dir, later(|| Trouble::Etag("\"new\""))).contains("changed"));
    assert!(refused(dir, later(|| Trouble::Status(412, String::new()))).contains("changed"));
    assert!(refused(dir, later(|| Trouble::Status(404, String::new()))).contains("no such file"));
    assert!(refused(dir, |_| Some(Trouble::Status(404, String::new()))).contains("no such file"));
    let said = refused(dir, |_| Some(Trouble::Status(403, String::new())));
    assert!(said.contains("403") && !said.contains("cookies"), "{said}");
    // A server without parts announces more than the disk has room for.
    assert!(refused(dir, |_| Some(Trouble::Announce(1 << 60))).contains("are free"));
    // The attempts, with their pauses, take seconds: those of three servers at the same time.
    let begin = Instant::now();
    let stall = || Trouble::Stall(10, Duration::from_secs(30));
    std::thread::scope(|scope| {
        let nobody = || fails(dir, "http://127.0.0.1:9/malta.osm.pbf");
        let messages = [
            scope.spawn(|| refused(dir, later(|| Trouble::Cut(10)))),
            scope.spawn(|| refused(dir, later(stall))),
            scope.spawn(nobody),
        ];
        for message in messages {
            let message = message.join().unwrap();
            assert!(message.contains("attempts"), "{message}");
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(25));
    // Bytes of another file.
    let other = |_: &Request| Some(Trouble::Instead(vec![7; 300_000]));
    assert!(refused(dir, other).contains("malta.osm.pbf"));
    // An output is a file.
    let web = server(dir, |_| None);
    let url = format!("{}/malta.osm.pbf", web.url());
    assert!(run_fail(&[&"cat", &url, &"-o", &url]).contains("the output is a URL"));
}

#[test]
fn a_transfer_that_breaks_off_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    spatial(dir);
    // Each part is cut short at first, and then refused once. In short runs that is so for five parts: the start of the
    // file, its table of contents, and blobs.
    let most = if is_long() { usize::MAX } else { 5 };
    let mut tries = HashMap::<String, usize>::new();
    let web = server(dir, move |request| {
        let range = request.headers["range"].clone();
        if tries.len() >= most && !tries.contains_key(&range) {
            return None;
        }
        let tries = tries.entry(range).or_default();
        *tries += 1;
        match *tries {
            1 => Some(Trouble::Cut(100)),
            2 => Some(Trouble::Status(503, String::new())),
            _ => None,
        }
    });
    let [expected, found] = ["expected.osm.pbf", "found.osm.pbf"].map(|name| dir.join(name));
    run_ok(&[
        &"extract",
        &"-b",
        &"14.50,35.89,14.505,35.895",
        &dir.join("malta.osm.pbf"),
        &"-o",
        &expected,
    ]);
    let url = format!("{}/malta.osm.pbf", web.url());
    run_ok(&[
        &"extract",
        &"-b",
        &"14.50,35.89,14.505,35.895",
        &url,
        &"-o",
        &found,
    ]);
    assert!(decode::objects(&found) == decode::objects(&expected));
}

#[test]
fn a_file_that_changes_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    spatial(dir);
    // From the third request on, the file is longer.
    let bytes = std::fs::read(dir.join("malta.osm.pbf")).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let files: Files = Arc::new(move |_| {
        let mut bytes = bytes.clone();
        if count.fetch_add(1, Ordering::Relaxed) > 1 {
            bytes.push(0);
        }
        Some(bytes)
    });
    let web = Web::new(files, Box::new(|_| None));
    let message = fails(dir, &format!("{}/malta.osm.pbf", web.url()));
    assert!(message.contains("changed"), "{message}");
}
