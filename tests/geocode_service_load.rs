//! `geocode --serve`: clients that do not read, do not write, are too many, or send what is no request.

use crate::common::is_long;
use crate::common::oracle::real_file;
use crate::common::service::{Service, answer, answer_of, build};
use rustix::process::Signal;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A request whose answer is large.
const MAP: &str = "GET /map?bbox=-180,-90,180,90 HTTP/1.1\r\nHost: x\r\n\r\n";

fn index(input: &str) -> (TempDir, PathBuf) {
    let input = real_file(input);
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("index");
    build(&input, &index);
    (directory, index)
}

fn connect(service: &Service, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    // The service may close before everything is sent.
    let _ = stream.write_all(bytes);
    stream
}

/// The answer to bytes, up to the end of the connection.
fn all_of(service: &Service, bytes: &[u8]) -> String {
    let mut answer = Vec::new();
    let _ = connect(service, bytes).read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn answers_to_a_thousand_connections_that_do_not_read_are_not_held() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_directory, index) = index("malta.osm.pbf");
    let (_, maximum) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, maximum, maximum).unwrap();
    let service = Service::start(&index);
    let status = |key: &str| {
        let path = format!("/proc/{}/status", service.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse::<u64>().unwrap() / 1024
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().build().unwrap();
    let requests = MAP.repeat(3);
    let connections: Vec<TcpStream> = (0..1000)
        .map(|_| {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            // The kernel of the client takes little, so that the service soon has to wait.
            socket.set_recv_buffer_size(4096).unwrap();
            let stream = runtime.block_on(socket.connect(service.address)).unwrap();
            let mut stream = stream.into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            stream.write_all(requests.as_bytes()).unwrap();
            stream
        })
        .collect();
    // A new client is answered, and the service does nothing more when all of them wait.
    assert_eq!(service.get("/status").0, 200);
    let waited = Instant::now();
    let time = || {
        let path = format!("/proc/{}/stat", service.child.id());
        let stat = std::fs::read_to_string(path).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
        (fields[12].to_owned(), fields[13].to_owned())
    };
    let mut before = time();
    while waited.elapsed() < Duration::from_secs(8) {
        std::thread::sleep(Duration::from_millis(150));
        let now = time();
        if now == before {
            break;
        }
        before = now;
    }
    assert!(status("VmHWM") < 100, "{} MB", status("VmHWM"));
    drop(connections);
    assert_eq!(service.get("/status").0, 200);
    assert!(status("VmRSS") < 60, "{} MB", status("VmRSS"));
    assert!(service.stop().success());
}

#[test]
fn pipelined_requests_are_answered_in_order_as_they_are_read() {
    let (_directory, index) = index("liechtenstein-c.osm.pbf");
    let service = Service::start(&index);
    let whole = service.get("/map?bbox=-180,-90,180,90");
    assert!(whole.2.len() > 100_000, "{}", whole.2.len());
    serde_json::from_str::<serde_json::Value>(&whole.2).unwrap();
    let mut requests = String::new();
    for number in 0..40 {
        requests += &match number % 8 {
            5 => MAP.to_owned(),
            _ => format!("GET /missing/{number} HTTP/1.1\r\nHost: x\r\n\r\n"),
        };
    }
    let mut reader = BufReader::new(connect(&service, requests.as_bytes()));
    for number in 0..40 {
        let (status, _, body) = answer_of(&mut reader);
        match number % 8 {
            5 => assert!(status == 200 && body == whole.2),
            _ => assert!(
                status == 404 && body.contains(&format!("/missing/{number};")),
                "{body}"
            ),
        }
    }
    // A client that has nothing more to say gets all of its answer.
    let mut stream = connect(&service, MAP.as_bytes());
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(answer(&mut stream).2, whole.2);
}

#[test]
fn a_connection_beyond_the_maximum_is_told_so() {
    let (_directory, index) = index("monaco.osm.pbf");
    let service = Service::start_with(&index, &["--max-connections", "2", "--cors"]);
    let ask = "GET /status HTTP/1.1\r\nHost: x\r\n\r\n".as_bytes();
    let mut open = [connect(&service, ask), connect(&service, ask)];
    assert!(open.iter_mut().all(|stream| answer(stream).0 == 200));
    for _ in 0..2 {
        let (status, head, body) = answer(&mut connect(&service, ask));
        assert_eq!(status, 503);
        assert!(head.contains("retry-after: 1\r\n") && head.contains("connection: close"));
        assert!(head.contains("access-control-allow-origin: *"), "{head}");
        assert!(body.contains("too many connections"), "{body}");
    }
    service.wait_for("2 connections are open");
    // One that ends makes room.
    drop(open);
    let start = Instant::now();
    while service.get("/status").0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_client_that_neither_reads_nor_writes_is_cut_off() {
    let (_directory, index) = index("malta.osm.pbf");
    let options = ["--timeout", "1", "--max-connections", "1"];
    let service = Service::start_with(&index, &options);
    for bytes in [MAP.repeat(3).as_str(), "", "GET /stat"] {
        let stalled = connect(&service, bytes.as_bytes());
        let start = Instant::now();
        while service.get("/status").0 != 200 {
            assert!(start.elapsed() < Duration::from_secs(10), "{bytes}");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(stalled);
    }
    let said = all_of(&service, b"GET /status HTTP/1.1\r\nHost:");
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    assert_eq!(all_of(&service, b""), "");
}

#[test]
fn a_service_ends_soon_while_clients_do_not_read() {
    let (_directory, index) = index("malta.osm.pbf");
    let mut service = Service::start(&index);
    let mut stalled = connect(&service, MAP.repeat(3).as_bytes());
    assert_eq!(stalled.read(&mut [0]).unwrap(), 1);
    let start = Instant::now();
    service.signal(Signal::TERM);
    assert!(service.child.wait().unwrap().success());
    assert!(
        start.elapsed() < Duration::from_secs(6),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn pages_of_other_origins_are_allowed_only_if_the_options_say_so() {
    let (_directory, index) = index("monaco.osm.pbf");
    let preflight = b"OPTIONS /reverse HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n\
        Access-Control-Request-Method: GET\r\nConnection: close\r\n\r\n";
    let plain = Service::start(&index);
    for path in ["/status", "/reverse?lat=43.73&lon=7.42", "/nowhere"] {
        assert!(!plain.get(path).1.contains("access-control"), "{path}");
    }
    let refused = all_of(&plain, preflight);
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
    assert!(refused.contains("allow: GET, HEAD\r\n"), "{refused}");
    let mine = "https://maps.example.com";
    for (options, origin) in [(&["--cors"][..], "*"), (&["--cors", mine], mine)] {
        let service = Service::start_with(&index, options);
        let allowed = format!("access-control-allow-origin: {origin}\r\n");
        for path in [
            "/status",
            "/reverse?lat=43.73&lon=7.42",
            "/nowhere",
            "/map?bbox=7,43,8,44",
        ] {
            assert!(service.get(path).1.contains(&allowed), "{path}");
        }
        let answer = all_of(&service, preflight);
        assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
        assert!(answer.contains(&allowed), "{answer}");
        let methods = "access-control-allow-methods: GET, HEAD, OPTIONS\r\n";
        assert!(answer.contains(methods), "{answer}");
    }
    let mut command = crate::common::pbfhogg();
    command
        .arg("geocode")
        .arg(&index)
        .args(["--serve", "127.0.0.1:0"]);
    let output = command.args(["--cors", "index"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected *, null or an origin"));
}

#[test]
fn a_request_is_not_hidden_in_another_one() {
    let (_directory, index) = index("monaco.osm.pbf");
    let timeout: &[&str] = if is_long() { &[] } else { &["--timeout", "2"] };
    let service = Service::start_with(&index, timeout);
    let hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    // Headers whose ends of the body differ between readers, and what an answer begins with.
    for (headers, body, status) in [
        (
            format!("Content-Length: 4\r\n{chunked}"),
            "0\r\n\r\n",
            "200",
        ),
        (
            format!("{chunked}Transfer-Encoding: x\r\n"),
            "0\r\n\r\n",
            "400",
        ),
        (
            "Transfer-Encoding : chunked\r\n".to_owned(),
            "0\r\n\r\n",
            "400",
        ),
        ("Transfer-Encoding: \u{b}chunked\r\n".to_owned(), "", "400"),
        ("Content-Length: +5\r\n".to_owned(), "abcde", "400"),
        ("Content-Length: 5, 5\r\n".to_owned(), "abcde", "400"),
        (
            "Content-Length: 99999999999999999999\r\n".to_owned(),
            "",
            "400",
        ),
        ("A: b\r\n c\r\n".to_owned(), "", "400"),
        ("A: b\0c\r\n".to_owned(), "", "400"),
        (format!("Content-Length: {}\r\n", hidden.len()), "", "200"),
        (chunked.to_owned(), "5;extension", "200"),
        (chunked.to_owned(), "0\r\nA: b\r\n", "200"),
    ] {
        let request = format!("GET /status HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{hidden}");
        let answer = all_of(&service, request.as_bytes());
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{headers:?}: {answer}");
        assert!(!answer.contains("hidden"), "{headers:?}: {answer}");
    }
    let blank = "\r\n".repeat(20_000);
    let answer = all_of(&service, blank.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(service.get("/status").0, 200);
}

#[test]
fn a_client_that_sends_a_body_bit_by_bit_is_cut_off() {
    let (_directory, index) = index("monaco.osm.pbf");
    let service = Service::start_with(&index, &["--timeout", "1"]);
    let length = "Content-Length: 100000\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let begins = [
        format!("GET /status HTTP/1.1\r\nHost: x\r\n{length}"),
        format!("POST /status HTTP/1.1\r\nHost: x\r\n{length}"),
        format!("GET /status HTTP/1.1\r\nHost: x\r\n{chunked}5;"),
        format!("GET /status HTTP/1.1\r\nHost: x\r\n{chunked}0\r\nA: "),
        "GET /status HTTP/1.1\r\nA: ".to_owned(),
    ];
    let start = Instant::now();
    std::thread::scope(|scope| {
        for begin in &begins {
            let service = &service;
            scope.spawn(move || {
                let mut stream = connect(service, begin.as_bytes());
                while stream.write_all(b"a").is_ok() {
                    assert!(start.elapsed() < Duration::from_secs(15), "{begin}");
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    assert_eq!(service.get("/status").0, 200);
}

#[test]
fn each_form_of_a_request_has_one_status() {
    let (_directory, index) = index("monaco.osm.pbf");
    let service = Service::start(&index);
    let long = "x".repeat(17 << 10);
    let many = "A: b\r\n".repeat(200);
    for (request, status) in [
        ("GET /status HTTP/1.0\r\n\r\n".to_owned(), "HTTP/1.0 200 "),
        (
            "GET http://x/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_owned(),
            "HTTP/1.1 200 ",
        ),
        (
            "GET /status HTTP/1.1\r\nConnection: close\r\nContent-Length: 5\r\n\r\nabcde"
                .to_owned(),
            "HTTP/1.1 200 ",
        ),
        (
            "GET /status HTTP/1.1\r\nContent-Length: 50000000000\r\n\r\nabcde".to_owned(),
            "HTTP/1.1 200 ",
        ),
        (
            format!(
                "GET /status HTTP/1.1\r\nContent-Length: 170000\r\n\r\n{}",
                long.repeat(10)
            ),
            "HTTP/1.1 200 ",
        ),
        (
            "DELETE / HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
            "HTTP/1.1 405 ",
        ),
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), "HTTP/1.1 4"),
        (
            format!("GET / HTTP/1.1\r\nA: {long}\r\n\r\n"),
            "HTTP/1.1 431 ",
        ),
        (format!("GET / HTTP/1.1\r\n{many}\r\n"), "HTTP/1.1 431 "),
        ("GET / HTTP/3.7\r\n\r\n".to_owned(), "HTTP/1.1 400 "),
        ("GET\r\n\r\n".to_owned(), "HTTP/1.1 400 "),
        (
            "GET / HTTP/1.1\r\nbad header\r\n\r\n".to_owned(),
            "HTTP/1.1 400 ",
        ),
        (
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(),
            "HTTP/1.1 400 ",
        ),
        (
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
            "HTTP/1.1 400 ",
        ),
        ("\0\x16\x03\r\n\r\n".to_owned(), "HTTP/1.1 400 "),
    ] {
        let answer = all_of(&service, request.as_bytes());
        let start = &request[..request.len().min(70)];
        assert!(answer.starts_with(status), "{start}: {answer}");
        assert_eq!(answer.matches("HTTP/1.").count(), 1, "{start}: {answer}");
    }
    // Without chunks, the end of the connection is the end of the map.
    let map = all_of(&service, MAP.replace("1.1", "1.0").as_bytes());
    let (head, body) = map.split_once("\r\n\r\n").unwrap();
    assert!(!head.contains("chunked"), "{head}");
    serde_json::from_str::<serde_json::Value>(body).unwrap();
    let head = MAP
        .replace("GET", "HEAD")
        .replace("Host: x", "Connection: close");
    let head = all_of(&service, head.as_bytes());
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    assert_eq!(service.get("/status").0, 200);
}
