//! Servers that make trouble at random, and clients that send what is almost a request. `PBFHOGG_WEB_ATTACKS=N` tries N
//! servers and ten times as many requests (`.ci/long mutants`); a sample is always tried.

use crate::common::measured::measure;
use crate::common::oracle::real_file;
use crate::common::pbfhogg;
use crate::common::publisher::{Publisher, update_from};
use crate::common::random::Random;
use crate::common::service::{Service, build};
use crate::common::web::{Decide, Files, Request, Trouble, Web, directory};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// A text that only a file outside of the server has.
const CANARY: &str = "what no server may make a client read";

/// The limits of a command on one server.
const MOST_BYTES: u64 = 150_000_000;
const MOST_TIME: Duration = Duration::from_secs(60);

fn attacks(few: usize) -> usize {
    let asked = std::env::var("PBFHOGG_WEB_ATTACKS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(few)
}

/// The trouble that a server makes with a request.
fn trouble(random: &mut Random, path: &str, canary: &str) -> Trouble {
    let at = [0, 1, 7, 100, 2_000, 70_000][random.below(6)];
    let redirect = |to: &str| Trouble::Status(302, format!("Location: {to}\r\n"));
    match random.below(22) {
        0 => Trouble::Status(500, String::new()),
        1 => Trouble::Status(429, "Retry-After: 1\r\n".into()),
        2 => Trouble::Status(204, String::new()),
        3 => Trouble::Status(416, "Content-Range: bytes */5\r\n".into()),
        4 => redirect(&format!("file://{canary}")),
        5 => redirect(canary),
        6 => redirect("../../../../../../../../etc/passwd"),
        7 => redirect("/a"),
        8 => redirect("ftp://127.0.0.1/a"),
        9 => redirect("http://[::1]:1/"),
        10 => Trouble::Cut(at),
        11 => Trouble::Short(at),
        12 => Trouble::Instead(vec![b'0' + at as u8 % 10; at]),
        13 => Trouble::Instead(b"sequenceNumber=99999999999999999999\ntimestamp=x\n".to_vec()),
        // With a false time of an older state, changes can be left out, as nobody else knows the time.
        14 if path == "/state.txt" => Trouble::Instead(
            format!("timestamp=2025-12-01T00\\:00\\:00Z\nsequenceNumber={at}\n").into(),
        ),
        15 => Trouble::Stall(at, Duration::from_millis(300)),
        16 => Trouble::Close,
        17 => Trouble::Whole,
        18 => Trouble::Other(at.min(50)),
        19 => Trouble::Announce([0, 1, u64::MAX, 1 << 40][random.below(4)]),
        20 => Trouble::Chunks(
            ["5;", "0\r\n", "ffffffffffffffff\r\n", "-1\r\n", "zz"][random.below(5)],
            ["x", "A: b\r\n"][random.below(2)],
            Duration::from_millis(1),
        ),
        21 => Trouble::With(
            [
                "Content-Encoding: gzip\r\n",
                "Content-Length: 3\r\n",
                "Transfer-Encoding: chunked\r\n",
                "Content-Range: bytes 5-1/0\r\n",
                "Content-Range: bytes 0-18446744073709551615/*\r\n",
                "Last-Modified: never\r\n",
            ][random.below(6)],
        ),
        _ => Trouble::Close,
    }
}

/// A server that makes trouble with a share of the requests.
fn troubled(files: Files, seed: u64, canary: &str) -> Web {
    let (mut random, canary) = (Random(seed), canary.to_owned());
    let of = [1, 2, 4, 8][random.below(4)];
    let decide: Decide = Box::new(move |request: &Request| {
        (random.below(of) == 0).then(|| trouble(&mut random, &request.path, &canary))
    });
    Web::new(files, decide)
}

/// The words of a command line. A transfer without data ends after a second, and not after a minute.
fn words(command: &Command) -> Vec<PathBuf> {
    let limit = ["env", "PBFHOGG_HTTP_TIMEOUT=1"].map(PathBuf::from);
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    limit.into_iter().chain(words.map(PathBuf::from)).collect()
}

/// Runs a command beside a server that makes trouble. Returns what is wrong with the end of the command, or its status.
fn end_of(command: &Command) -> Result<i32, String> {
    let ended = measure(&words(command), MOST_TIME);
    let fault = |what: &str| Err(format!("{what}: {command:?}: {ended:?}"));
    match ended.status {
        _ if ended.stderr.contains(CANARY) || ended.stderr.contains("root:") => fault("a file"),
        _ if ended.peak > MOST_BYTES => fault("memory"),
        Some(status @ 0..=2) => Ok(status),
        _ => fault("status"),
    }
}

/// One command on a file of a server, and an update from one. Returns what is wrong, or the statuses.
fn try_server(seed: u64, publisher: &Publisher) -> Result<[i32; 2], String> {
    let canary = publisher.path("canary");
    let [file, whole, out] =
        ["file.osm.pbf", "day0.osm.pbf", "out.osm.pbf"].map(|name| publisher.path(name));
    let web = |root: &str| {
        troubled(
            directory(publisher.path(root)),
            seed,
            canary.to_str().unwrap(),
        )
    };
    let (server, files) = (web("server"), web(""));
    let url = format!("{}/day0.osm.pbf", files.url());
    let mut command = pbfhogg();
    match seed % 4 {
        0 => command.args(["inspect", &url]),
        1 => command.args(["inspect", "--json", "-e", &url]),
        2 => command
            .args(["getid", &url, "n1", "w2", "-O", "-o"])
            .arg(&out),
        _ => command.args(["cat", &url, "-O", "-o"]).arg(&out),
    };
    let of_file = end_of(&command)?;
    if seed % 4 == 3 && of_file == 0 {
        let same = pbfhogg().args(["diff", "-q"]).args([&whole, &out]).status();
        if !same.unwrap().success() {
            return Err(format!("{command:?}: another file"));
        }
    }
    fs::copy(&whole, &file).unwrap();
    let of_update = end_of(update_from(&server.url(), &file).args(["--timeout", "1"]))?;
    // Whatever happened, the file is that of one day.
    let day = std::panic::catch_unwind(AssertUnwindSafe(|| publisher.day_of(&file)));
    if day.is_err() {
        return Err(format!("the file of no day: {:?}", server.requests()));
    }
    Ok([of_file, of_update])
}

#[test]
fn servers_that_make_trouble_at_random_harm_nobody() {
    let (next, wrong, ends) = (
        Mutex::new(0..attacks(4)),
        Mutex::new(Vec::new()),
        Mutex::new([0; 3]),
    );
    std::thread::scope(|scope| {
        // Most of the time, clients pause.
        for _ in 0..4 {
            scope.spawn(|| {
                let publisher = Publisher::new();
                fs::write(publisher.path("canary"), CANARY).unwrap();
                loop {
                    let Some(seed) = next.lock().unwrap().next() else {
                        return;
                    };
                    match try_server(seed as u64, &publisher) {
                        Ok(statuses) => statuses
                            .iter()
                            .for_each(|status| ends.lock().unwrap()[*status as usize] += 1),
                        Err(fault) => wrong.lock().unwrap().push(format!("seed {seed}: {fault}")),
                    }
                }
            });
        }
    });
    println!(
        "ended with status 0, 1, 2: {:?}",
        ends.into_inner().unwrap()
    );
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Bytes that are almost a request.
fn request(random: &mut Random) -> Vec<u8> {
    let whole = [
        "GET /reverse?lat=35.9&lon=14.5 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /reverse?lat=35.9&lon=14.5&format=geocodejson&zoom=18 HTTP/1.0\r\n\r\n",
        "GET /map?bbox=14,35,15,36 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /../../../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /reverse HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: x\r\nOrigin: http://y\r\n\r\n",
    ];
    let mut bytes = whole[random.below(whole.len())].as_bytes().to_vec();
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.below(256) as u8),
            2 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            3 => drop(bytes.splice(at..at, vec![b'a'; [1, 300, 9_000, 70_000][random.below(4)]])),
            4 => {
                let again = bytes[at..].to_vec();
                bytes.extend(again);
            }
            _ => {
                let odd = [
                    "\r\n",
                    "\0",
                    "%00",
                    "&lat=nan",
                    "&lat=1e999&lon=-181",
                    "Content-Length: 18446744073709551615\r\n",
                    "Content-Length: -1\r\n",
                    "Transfer-Encoding: chunked\r\n",
                    "Expect: 100-continue\r\n",
                    "Range: bytes=0-\r\n",
                ];
                let odd = odd[random.below(odd.len())];
                bytes.splice(at..at, odd.bytes());
            }
        }
    }
    bytes
}

#[test]
fn requests_that_are_almost_right_harm_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join("index");
    build(&real_file("malta.osm.pbf"), &index);
    let service = Service::start_with(&index, &["--timeout", "1"]);
    let mut random = Random(23);
    let mut statuses = std::collections::BTreeMap::new();
    for number in 0..10 * attacks(20) {
        let bytes = request(&mut random);
        let mut stream = TcpStream::connect(service.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // The service may close before everything is sent.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
        // A connection may be reset while a part of the request is not read.
        let is_late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(
            !is_late && !answer.contains("root:"),
            "{number}: {shown:?}: {answer}"
        );
        if !answer.is_empty() {
            let status = answer
                .strip_prefix("HTTP/1.")
                .and_then(|rest| rest.get(2..5));
            let status = status.unwrap_or_else(|| panic!("{number}: {shown:?}: {answer}"));
            assert!(!status.starts_with('5'), "{number}: {shown:?}: {answer}");
            *statuses.entry(status.to_owned()).or_insert(0) += 1;
        }
    }
    println!("statuses: {statuses:?}");
    let found = service.json("/reverse?lat=35.9&lon=14.5");
    assert!(found["display_name"].is_string(), "{found}");
    assert!(service.stop().success());
}
