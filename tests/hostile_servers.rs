//! Web servers that mean harm: frames without end, files that are replaced between two parts, and credentials that must
//! not get out.

use crate::common::kills::content;
use crate::common::oracle::real_file;
use crate::common::publisher::{DAYS, Publisher, update_from};
use crate::common::web::{Decide, Request, Trouble, Web, directory};
use crate::common::{pbfhogg, run_ok};
use pbfhogg::commands::update::{Credentials, Transport, WebFiles};
use std::fs;
use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SECRET: &str = "s3cr3t-value";

/// A URL with a user and a password.
fn with_credentials(url: &str) -> String {
    url.replace("http://", &format!("http://me:{SECRET}@"))
}

/// Runs a command, which may not show the secret. Returns its status and what it printed.
fn discreet(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!said.contains(SECRET), "{said}");
    (output.status.code().unwrap(), said)
}

#[test]
fn a_frame_of_chunks_without_end_is_given_up() {
    std::thread::scope(|scope| {
        for (frame, again) in [("5;", "x"), ("0\r\n", "A: b\r\n")] {
            scope.spawn(move || give_up(frame, again));
        }
    });
}

/// Reads a body whose frame goes on for ever.
fn give_up(frame: &'static str, again: &'static str) {
    let pause = Duration::from_millis(5);
    let decide: Decide = Box::new(move |_| Some(Trouble::Chunks(frame, again, pause)));
    let web = Web::new(Arc::new(|_| Some(vec![b'a'; 100])), decide);
    let url = format!("{}/a", web.url());
    // A body in chunks may take ten times as long as a read.
    let files = WebFiles::new(Credentials::default(), Some(Duration::from_millis(200)));
    let begin = Instant::now();
    let mut part = files.open(&url, 0).unwrap();
    assert_eq!(part.len, None);
    let mut bytes = Vec::new();
    let broken = part.bytes.read_to_end(&mut bytes);
    assert!(broken.is_err() && bytes == [b'a'; 5], "{frame}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{frame}");
    // Only the first body in chunks is asked for twice.
    files.open(&url, 0).unwrap();
    assert_eq!(web.requests().len(), 3);
}

#[test]
fn a_state_that_is_replaced_between_two_parts_is_read_again() {
    let publisher = Publisher::new();
    let [old, new] = [9, DAYS].map(|day| {
        fs::read(publisher.path(&format!("server/000/000/{day:03}.state.txt"))).unwrap()
    });
    // Together, the start of the old state and the rest of the new one would be a state with the number 92.
    let cut = "sequenceNumber=9".len();
    assert_eq!(old[..cut], *b"sequenceNumber=9");
    for has_version in [true, false] {
        let files = directory(publisher.path("server"));
        let (count, old, new) = (AtomicUsize::new(0), old.clone(), new.clone());
        let files = move |path: &str| match path {
            "/state.txt" if count.fetch_add(1, Ordering::Relaxed) == 0 => Some(old.clone()),
            "/state.txt" => Some(new.clone()),
            _ => files(path),
        };
        let mut is_first = true;
        let decide: Decide = Box::new(move |_: &Request| {
            let is_cut = std::mem::take(&mut is_first);
            let other = (!has_version).then_some(Trouble::Unversioned);
            if is_cut {
                Some(Trouble::Cut(cut))
            } else {
                other
            }
        });
        let web = Web::new(Arc::new(files), decide);
        let file = publisher.copy("file.osm.pbf");
        let (status, said) = discreet(update_from(&web.url(), &file).arg("--json"));
        assert_eq!(status, 0, "{said}");
        assert_eq!(publisher.day_of(&file), DAYS);
        let end = said.rfind('}').unwrap();
        let report: serde_json::Value = serde_json::from_str(&said[..=end]).unwrap();
        assert_eq!(report["newest"]["sequence"], DAYS);
    }
}

#[test]
fn credentials_in_the_url_of_a_server_are_sent_and_not_shown() {
    let publisher = Publisher::new();
    let decide: Decide = Box::new(|request| {
        let is_known = request.headers.contains_key("authorization");
        (!is_known).then(|| Trouble::Status(401, String::new()))
    });
    let web = Web::new(directory(publisher.path("server")), decide);
    let (file, url) = (publisher.copy("file.osm.pbf"), with_credentials(&web.url()));
    let cache = publisher.path("cache");
    let update = |more: &[&str]| {
        let mut update = update_from(&url, &file);
        discreet(update.arg("--cache").arg(&cache).args(more))
    };
    let (status, said) = update(&["--json", "--verbose", "--end-sequence", "5"]);
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains(&format!("\"server\": \"{}\"", web.url())),
        "{said}"
    );
    assert_eq!(publisher.day_of(&file), 5);
    // The header has the server, and the next run finds its state there.
    let (_, facts) = discreet(pbfhogg().args(["inspect", "--json"]).arg(&file));
    assert!(facts.contains(&web.url()), "{facts}");
    assert_eq!(update(&[]).0, 0);
    assert_eq!(publisher.day_of(&file), DAYS);
    for (path, _) in content(&cache).unwrap() {
        assert!(!path.to_str().unwrap().contains(SECRET), "{path:?}");
    }
    // A server that refuses, or lacks a file, is named without them.
    fs::remove_file(publisher.path("server/state.txt")).unwrap();
    let (status, said) = update(&[]);
    assert_eq!(status, 2);
    assert!(
        said.contains(&format!("{}/state.txt: ", web.url())),
        "{said}"
    );
    let (status, said) = discreet(&mut update_from(&web.url(), &file));
    assert!(status == 2 && said.contains("sign in again"), "{said}");
}

#[test]
fn a_token_is_not_sent_to_a_server_that_only_the_file_names() {
    let publisher = Publisher::new();
    let web = Web::new(
        directory(publisher.path("server")),
        Box::new(|_: &Request| None),
    );
    let (file, token) = (publisher.copy("file.osm.pbf"), publisher.path("token"));
    fs::write(&token, SECRET).unwrap();
    // The header then has the server.
    let mut first = update_from(&web.url(), &file);
    assert_eq!(discreet(first.args(["--end-sequence", "5"])).0, 0);
    assert!(!web.requests().is_empty());
    let update = |more: &[&str]| {
        let mut update = pbfhogg();
        update.args(["update", "--no-progress", "--max-age", "9999"]);
        update.args(more).arg("--token-file").arg(&token).arg(&file);
        discreet(&mut update)
    };
    for more in [&[][..], &["--check"], &["--watch", "1"]] {
        let (status, said) = update(more);
        assert_eq!((status, said.lines().count()), (2, 1), "{said}");
        assert!(said.contains("a server that --server names"), "{said}");
    }
    assert_eq!((web.requests().len(), publisher.day_of(&file)), (0, 5));
    assert_eq!(update(&["--server", &web.url()]).0, 0);
    assert_eq!(publisher.day_of(&file), DAYS);
    let has_token = |request: &Request| request.headers.contains_key("authorization");
    assert!(web.requests().iter().all(has_token));
}

#[test]
fn credentials_in_the_url_of_an_input_are_sent_and_not_shown() {
    let directory_of_output = tempfile::tempdir().unwrap();
    let path = |name: &str| directory_of_output.path().join(name);
    let input = real_file("monaco.osm.pbf");
    let files = directory(input.parent().unwrap().to_owned());
    let decide: Decide = Box::new(|request| {
        let is_known = request.headers.contains_key("authorization");
        (!is_known).then(|| Trouble::Status(401, String::new()))
    });
    let web = Web::new(files, decide);
    let url = |name: &str| with_credentials(&format!("{}/{name}", web.url()));
    let name = input.file_name().unwrap().to_str().unwrap();
    let (known, missing) = (url(name), url("missing.osm.pbf"));
    for (arguments, expected) in [
        (&["inspect", &known][..], 0),
        (&["inspect", "--json", &known], 0),
        (&["fileinfo", &known], 0),
        (&["check", &known], 0),
        (&["getid", &known, "n1", "-f", "opl"], 1),
        (&["cat", &missing, "-f", "opl"], 2),
        (&["cat", &known, "-o", &known], 2),
        (&["diff", &known, &known, "-v"], 0),
    ] {
        let (status, said) = discreet(pbfhogg().args(arguments));
        assert_eq!(status, expected, "{arguments:?}: {said}");
    }
    run_ok(&[&"cat", &known, &"-o", &path("copy.osm.pbf")]);
    assert_eq!(fs::read(path("copy.osm.pbf")).unwrap(), {
        run_ok(&[&"cat", &input, &"-o", &path("expected.osm.pbf")]);
        fs::read(path("expected.osm.pbf")).unwrap()
    });
    run_ok(&[&"inspect", &known, &"--html", &path("page.html")]);
    let page = fs::read_to_string(path("page.html")).unwrap();
    assert!(page.contains(name) && !page.contains(SECRET));
}
