//! `update` from web servers that make trouble, and what it says about it.

use crate::common::publisher::{DAYS, Publisher, update_from};
use crate::common::run_ok;
use crate::common::web::{Decide, Files, Request, Trouble, Web, directory};
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A secret that no message may have.
const SECRET: &str = "s3cr3t-value";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn never() -> Decide {
    Box::new(|_| None)
}

/// Does the same to each request whose path ends with `end`, `times` times.
fn trouble_with(end: &'static str, mut times: usize, trouble: Trouble) -> Decide {
    Box::new(move |request: &Request| {
        let is_meant = times > 0 && request.path.ends_with(end);
        is_meant.then(|| {
            times -= 1;
            trouble.clone()
        })
    })
}

fn web(publisher: &Publisher, decide: Decide) -> Web {
    Web::new(directory(publisher.path("server")), decide)
}

/// Runs a command. Its messages may not have the secret.
fn ran(command: &mut Command) -> (i32, String) {
    let Output {
        status,
        stderr,
        stdout,
    } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(!said.contains(SECRET) && !String::from_utf8_lossy(&stdout).contains(SECRET));
    (status.code().unwrap(), said)
}

#[test]
fn trouble_that_passes_does_no_harm() {
    let publisher = Publisher::new();
    let status = |status| Trouble::Status(status, String::new());
    let troubles = [
        ("005.osc.gz", 2, status(500)),
        ("005.osc.gz", 2, status(503)),
        ("state.txt", 1, status(502)),
        (
            "005.osc.gz",
            1,
            Trouble::Status(429, "Retry-After: 1\r\n".into()),
        ),
        ("005.osc.gz", 3, Trouble::Close),
        ("005.osc.gz", 2, Trouble::Cut(100)),
        ("005.osc.gz", 1, Trouble::Short(100)),
        ("005.osc.gz", 1, Trouble::Whole),
        ("005.osc.gz", 1, Trouble::Stall(50, Duration::from_secs(3))),
    ];
    for (end, times, trouble) in troubles {
        let shown = format!("{trouble:?}");
        let web = web(&publisher, trouble_with(end, times, trouble));
        let file = publisher.copy("file.osm.pbf");
        let (status, said) = ran(update_from(&web.url(), &file).args(["--timeout", "1"]));
        assert_eq!(status, 0, "{shown}: {said}");
        assert_eq!(publisher.day_of(&file), DAYS, "{shown}");
    }
}

#[test]
fn a_broken_transfer_goes_on_where_it_broke() {
    let publisher = Publisher::new();
    let web = web(&publisher, trouble_with("005.osc.gz", 1, Trouble::Cut(100)));
    let file = publisher.copy("file.osm.pbf");
    assert_eq!(ran(&mut update_from(&web.url(), &file)).0, 0);
    let ranges = web
        .requests()
        .into_iter()
        .filter_map(|request| request.headers.get("range").cloned());
    assert_eq!(ranges.collect::<Vec<_>>(), ["bytes=100-"]);
    assert_eq!(publisher.day_of(&file), DAYS);
}

#[test]
fn trouble_that_stays_has_a_message_of_its_own() {
    let publisher = Publisher::new();
    let status = |status| Trouble::Status(status, String::new());
    let page = |title: &str| {
        let text = format!("<!DOCTYPE html><title>{title}</title>");
        Trouble::Instead(text.into_bytes())
    };
    let troubles = [
        (status(401), "sign in again"),
        (status(403), "refuses access (status 403 Forbidden)"),
        (status(407), "by a proxy"),
        (page("Sign in"), "sign in again"),
        (page("Not found"), "an HTML page instead of the file"),
        (status(500), "status 500"),
        (status(429), "come back later"),
        (status(418), "status 418"),
        (Trouble::Close, "after several attempts"),
        (Trouble::Short(100), "incomplete"),
        (
            Trouble::Instead(b"no gzip".to_vec()),
            "incomplete or damaged",
        ),
        (status(404), "no change file 1"),
        (
            Trouble::Status(301, "Location: /000/000/001.osc.gz\r\n".into()),
            "redirects",
        ),
        (
            Trouble::Status(302, "Location: ftp://other/file\r\n".into()),
            "another protocol",
        ),
    ];
    for (trouble, expected) in troubles {
        let shown = format!("{trouble:?}");
        let web = web(&publisher, trouble_with("001.osc.gz", usize::MAX, trouble));
        let file = publisher.copy("file.osm.pbf");
        let before = fs::read(&file).unwrap();
        let (status, said) = ran(&mut update_from(&web.url(), &file));
        assert_eq!(status, 2, "{shown}: {said}");
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{shown}: {said}"
        );
        assert_eq!(fs::read(&file).unwrap(), before, "{shown}");
    }
}

#[test]
fn secrets_go_to_the_server_that_they_are_for() {
    let publisher = Publisher::new();
    let other = web(&publisher, never());
    let elsewhere = other.url();
    let web = web(
        &publisher,
        Box::new(move |request| {
            let location = format!("Location: {elsewhere}{}\r\n", request.path);
            let has = |name: &str, value: &str| {
                request
                    .headers
                    .get(name)
                    .is_some_and(|text| text.contains(value))
            };
            let is_known = has("authorization", SECRET) && has("cookie", "session=");
            match (is_known, request.path.ends_with("005.osc.gz")) {
                (false, _) => Some(Trouble::Status(403, String::new())),
                (true, true) => Some(Trouble::Status(302, location)),
                (true, false) => None,
            }
        }),
    );
    let [token, jar] = ["token", "cookies.txt"].map(|name| publisher.path(name));
    fs::write(&token, format!("{SECRET}\n")).unwrap();
    fs::write(
        &jar,
        format!("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t{SECRET}\n"),
    )
    .unwrap();
    let file = publisher.copy("file.osm.pbf");
    let (status, said) = ran(&mut update_from(&web.url(), &file));
    assert_eq!(status, 2);
    assert!(said.contains("403") && !said.contains("cookies"), "{said}");
    // A token or a cookie that the server does not accept may be the reason.
    let mut update = update_from(&web.url(), &file);
    let (status, said) = ran(update.arg("--token-file").arg(&token));
    assert_eq!(status, 2);
    assert!(
        said.contains("403") && said.contains("sign in again"),
        "{said}"
    );
    let mut update = update_from(&web.url(), &file);
    let update = update
        .arg("--cookies")
        .arg(&jar)
        .arg("--token-file")
        .arg(&token);
    let (status, said) = ran(update.arg("--verbose"));
    assert_eq!(status, 0, "{said}");
    assert_eq!(publisher.day_of(&file), DAYS);
    let [request] = &other.requests()[..] else {
        panic!("one request is redirected");
    };
    assert_eq!(request.headers.get("authorization"), None);
    // Expired cookies are not sent, and the message says so.
    fs::write(
        &jar,
        format!("127.0.0.1\tFALSE\t/\tFALSE\t1000\tsession\t{SECRET}\n"),
    )
    .unwrap();
    let mut update = update_from(&web.url(), &file);
    let update = update
        .arg("--cookies")
        .arg(&jar)
        .arg("--token-file")
        .arg(&token);
    let (status, said) = ran(update);
    assert_eq!(status, 2);
    assert!(
        said.contains("the cookie session expired at 1970-01-01T00:16:40Z"),
        "{said}"
    );
    // No file of cookies or of a token is quoted.
    fs::write(&jar, SECRET).unwrap();
    let (_, said) = ran(update_from(&web.url(), &file).arg("--cookies").arg(&jar));
    assert!(said.contains("line 1 is no cookie"), "{said}");
}

#[test]
fn a_proxy_of_the_environment_is_asked() {
    let publisher = Publisher::new();
    let proxy = web(&publisher, never());
    let file = publisher.copy("file.osm.pbf");
    let mut update = update_from("http://nowhere.example", &file);
    let (status, said) = ran(update.env("http_proxy", proxy.url()));
    assert_eq!(status, 0, "{said}");
    assert_eq!(publisher.day_of(&file), DAYS);
    let asked = proxy.requests().into_iter().map(|request| request.path);
    assert!(asked.into_iter().any(|path| path == "nowhere.example:80"));
}

#[test]
fn a_cache_keeps_files_from_being_fetched_twice() {
    let publisher = Publisher::new();
    let web = web(&publisher, never());
    let cache = publisher.path("cache");
    for expected in [DAYS, 0] {
        let file = publisher.copy("file.osm.pbf");
        let mut update = update_from(&web.url(), &file);
        assert_eq!(ran(update.arg("--cache").arg(&cache)).0, 0);
        assert_eq!(publisher.day_of(&file), DAYS);
        let changes = web
            .requests()
            .into_iter()
            .filter(|request| request.path.ends_with(".osc.gz"));
        assert_eq!(changes.count(), expected);
    }
}

#[test]
fn a_server_that_gives_a_byte_now_and_then_is_given_up() {
    let publisher = Publisher::new();
    let drip = || Trouble::Drip(Duration::from_millis(200));
    let started = Instant::now();
    // The files before are applied.
    let web = web(&publisher, trouble_with("005.osc.gz", usize::MAX, drip()));
    let file = publisher.copy("file.osm.pbf");
    let (status, said) = ran(update_from(&web.url(), &file).args(["--timeout", "1"]));
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("less than a thousand bytes a second"),
        "{said}"
    );
    assert_eq!(publisher.day_of(&file), 4);
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_pause_of_no_length_is_a_pause_all_the_same() {
    let publisher = Publisher::new();
    let busy = Trouble::Status(503, "Retry-After: 0\r\n".into());
    let web = web(&publisher, trouble_with("001.osc.gz", usize::MAX, busy));
    let file = publisher.copy("file.osm.pbf");
    let mut update = update_from(&web.url(), &file);
    let started = Instant::now();
    let (status, said) = ran(&mut update);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("come back later"), "{said}");
    assert!(started.elapsed() > Duration::from_millis(15));
    let asked = web.requests().into_iter();
    assert_eq!(
        asked
            .filter(|request| request.path.ends_with("001.osc.gz"))
            .count(),
        5
    );
}

#[test]
fn a_change_file_whose_text_is_cut_is_fetched_again() {
    let publisher = Publisher::new();
    let whole = fs::read(publisher.path("server/000/000/005.osc.gz")).unwrap();
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&whole[..])
        .read_to_end(&mut text)
        .unwrap();
    let end = text.len();
    for cut in [0, 50, end / 2, end - 14] {
        let instead = || Trouble::Instead(gzip(&text[..cut]));
        for (times, day) in [(2, DAYS), (usize::MAX, 4)] {
            let web = web(&publisher, trouble_with("005.osc.gz", times, instead()));
            let file = publisher.copy("file.osm.pbf");
            let (status, said) = ran(&mut update_from(&web.url(), &file));
            assert_eq!(status, i32::from(day < DAYS), "{cut}: {said}");
            assert_eq!(publisher.day_of(&file), day, "{cut}");
            let is_said = said.contains("cut short") || said.contains("is empty");
            assert_eq!(is_said, day < DAYS, "{cut}: {said}");
        }
    }
}

#[test]
fn change_files_of_every_format_are_taken_if_they_are_complete() {
    let publisher = Publisher::new();
    let day = publisher.path("server/000/000/005.osc.gz");
    let converted = |name: &str| {
        let path = publisher.path(name);
        run_ok(&[&"cat", &"-q", &day, &"-o", &path]);
        fs::read(path).unwrap()
    };
    let (opl, pbf) = (converted("five.opl"), converted("five.osc.pbf"));
    let cut = opl.len() - 3;
    for (number, (sent, expected)) in [
        (gzip(&opl), DAYS),
        (opl.clone(), DAYS),
        (pbf.clone(), DAYS),
        (gzip(&opl[..cut]), 4),
        (opl[..cut].to_vec(), 4),
        (pbf[..pbf.len() - 3].to_vec(), 4),
    ]
    .into_iter()
    .enumerate()
    {
        let trouble = trouble_with("005.osc.gz", usize::MAX, Trouble::Instead(sent));
        let web = web(&publisher, trouble);
        let file = publisher.copy(&format!("file{number}.osm.pbf"));
        let (status, said) = ran(&mut update_from(&web.url(), &file));
        assert_eq!(status, i32::from(expected < DAYS), "{number}: {said}");
        assert_eq!(publisher.day_of(&file), expected, "{number}: {said}");
    }
}

#[test]
fn a_state_that_is_cut_is_fetched_again() {
    let publisher = Publisher::new();
    let whole = fs::read(publisher.path("server/state.txt")).unwrap();
    for cut in [0, 5, 16, whole.len() - 12] {
        for (times, expected) in [(2, 0), (usize::MAX, 2)] {
            let instead = Trouble::Instead(whole[..cut].to_vec());
            let web = web(&publisher, trouble_with("/state.txt", times, instead));
            let file = publisher.copy("file.osm.pbf");
            let (status, said) = ran(&mut update_from(&web.url(), &file));
            assert_eq!(status, expected, "{cut}: {said}");
            assert_eq!(said.contains("cut short"), expected == 2, "{cut}: {said}");
        }
    }
    // The state of a change file: the time of the one before is known.
    let instead = || Trouble::Instead(whole[..16].to_vec());
    let web = web(
        &publisher,
        trouble_with("004.state.txt", usize::MAX, instead()),
    );
    let file = publisher.copy("file.osm.pbf");
    let (status, said) = ran(update_from(&web.url(), &file).args(["--end-sequence", "4"]));
    assert_eq!(status, 0, "{said}");
    assert_eq!(publisher.day_of(&file), 4);
}

/// The files of a directory, with change files as a server or a proxy gives them that decodes the encoding of content.
fn decompressed(root: std::path::PathBuf) -> Files {
    let files = directory(root);
    Arc::new(move |path| {
        let bytes = files(path)?;
        if !path.ends_with(".osc.gz") {
            return Some(bytes);
        }
        let mut text = Vec::new();
        let read = flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text);
        read.ok().map(|_| text)
    })
}

#[test]
fn change_files_that_were_decompressed_on_the_way_are_read() {
    let publisher = Publisher::new();
    let web = Web::new(decompressed(publisher.path("server")), never());
    let cache = publisher.path("cache");
    for name in ["one.osm.pbf", "two.osm.pbf"] {
        let file = publisher.copy(name);
        let (status, said) = ran(update_from(&web.url(), &file).arg("--cache").arg(&cache));
        assert_eq!(status, 0, "{said}");
        assert_eq!(publisher.day_of(&file), DAYS);
    }
    // The second time, they come from the cache.
    let requests = web.requests();
    let fetched = requests
        .iter()
        .filter(|request| request.path.ends_with(".osc.gz"));
    assert_eq!(fetched.count(), DAYS);
}

/// The files of a directory, with an HTML page instead of each file that is missing.
fn with_pages(root: std::path::PathBuf) -> Files {
    let files = directory(root);
    let page = b"<!DOCTYPE html><title>Data</title><a href='/login'>Log in</a>".to_vec();
    Arc::new(move |path| files(path).or_else(|| Some(page.clone())))
}

#[test]
fn a_server_without_states_of_its_change_files_is_told_from_one_without_old_ones() {
    let publisher = Publisher::new();
    let path = |day: usize, end: &str| publisher.path(&format!("server/000/000/{day:03}.{end}"));
    let remove = |days: std::ops::Range<usize>, end: &str| {
        days.for_each(|day| fs::remove_file(path(day, end)).unwrap());
    };
    remove(0..DAYS, "state.txt");
    let web = web(&publisher, never());
    let paged = Web::new(with_pages(publisher.path("server")), never());
    let file = publisher.copy("file.osm.pbf");
    let refused = |web: &Web| {
        let (status, said) = ran(&mut update_from(&web.url(), &file));
        assert!(status == 2 && said.lines().count() == 1, "{said}");
        assert!(!said.contains("cookies"), "{said}");
        said
    };
    let page = "an HTML page comes instead";
    for (web, is_paged) in [(&web, false), (&paged, true)] {
        let said = refused(web);
        let expected = format!(
            "no states beside some of its change files, such as {}/000/000/001.state.txt",
            web.url()
        );
        assert!(said.contains(&expected), "{said}");
        assert_eq!(said.contains(page), is_paged, "{said}");
    }
    remove(1..DAYS, "osc.gz");
    for web in [&web, &paged] {
        let said = refused(web);
        assert!(
            said.contains("the oldest change file of the server"),
            "{said}"
        );
    }
    remove(DAYS..DAYS + 1, "state.txt");
    for (web, is_paged) in [(&web, false), (&paged, true)] {
        let said = refused(web);
        let expected = format!(
            "no states beside its change files, such as {}/000/000/{DAYS:03}.state.txt",
            web.url()
        );
        assert!(said.contains(&expected), "{said}");
        assert_eq!(said.contains(page), is_paged, "{said}");
    }
}

#[test]
fn an_end_by_number_needs_no_states_and_one_by_time_does() {
    let publisher = Publisher::new();
    let web = web(&publisher, never());
    let file = publisher.copy("file.osm.pbf");
    let update = |more: [&str; 2]| ran(update_from(&web.url(), &file).args(more));
    assert_eq!(update(["--end-sequence", "2"]).0, 0);
    for day in 0..=DAYS {
        fs::remove_file(publisher.path(&format!("server/000/000/{day:03}.state.txt"))).unwrap();
    }
    let (status, said) = update(["--end-date", "2026-01-08T00:00:00Z"]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("end with --end-sequence instead"), "{said}");
    // Nothing has to be known of an end that the file has reached.
    for reached in [
        ["--end-date", "2025-06-01T00:00:00Z"],
        ["--end-sequence", "1"],
    ] {
        assert_eq!(update(reached).0, 0);
    }
    assert_eq!(publisher.day_of(&file), 2);
    assert_eq!(update(["--end-sequence", "5"]).0, 0);
    assert_eq!(publisher.day_of(&file), 5);
}

#[test]
fn files_that_were_coded_on_the_way_are_decoded() {
    let publisher = Publisher::new();
    let files = directory(publisher.path("server"));
    let coded: Files = Arc::new(move |path: &str| files(path).map(|bytes| gzip(&bytes)));
    let with =
        |headers: &'static str| -> Decide { Box::new(move |_| Some(Trouble::With(headers))) };
    let plain = directory(publisher.path("server"));
    // The header may be missing, and may be set for files that are not coded.
    let cases = [
        (&coded, "Content-Encoding: gzip\r\n"),
        (&coded, ""),
        (&plain, "Content-Encoding: gzip\r\n"),
    ];
    for (number, (files, headers)) in cases.into_iter().enumerate() {
        let web = Web::new(files.clone(), with(headers));
        let cache = publisher.path(&format!("cache{number}"));
        let file = publisher.copy("file.osm.pbf");
        let (status, said) = ran(update_from(&web.url(), &file).arg("--cache").arg(&cache));
        assert_eq!(status, 0, "{number}: {said}");
        assert_eq!(publisher.day_of(&file), DAYS, "{number}");
    }
    let web = Web::new(plain, with("Content-Encoding: br\r\n"));
    let file = publisher.copy("file.osm.pbf");
    let (status, said) = ran(&mut update_from(&web.url(), &file));
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("Content-Encoding: br"), "{said}");
}
