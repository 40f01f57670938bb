//! A service of the reverse geocoder that runs.

use super::{pbfhogg, run_ok};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Builds an index.
pub fn build(input: &Path, index: &Path) {
    run_ok(&[
        &"build-geocode-index",
        &input,
        &"-O",
        &"--output-dir",
        &index,
    ]);
}

/// A service that runs.
pub struct Service {
    pub child: Child,
    pub address: SocketAddr,
    log: Mutex<Receiver<String>>,
}

impl Service {
    pub fn start(index: &Path) -> Self {
        Self::start_with(index, &[])
    }

    pub fn start_with(index: &Path, options: &[&str]) -> Self {
        let mut command = pbfhogg();
        command.arg("geocode").arg(index);
        command.args(["--serve", "127.0.0.1:0"]).args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (send, log) = channel();
        std::thread::spawn(move || {
            for line in lines {
                let _ = send.send(line.unwrap());
            }
        });
        let first = log.recv_timeout(Duration::from_secs(10)).unwrap();
        let address = first.split("http://").nth(1).unwrap().trim_end_matches('/');
        Self {
            address: address.parse().unwrap(),
            child,
            log: Mutex::new(log),
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line of the log that contains a text.
    pub fn wait_for(&self, text: &str) {
        loop {
            let line = self
                .log
                .lock()
                .unwrap()
                .recv_timeout(Duration::from_secs(10))
                .unwrap();
            if line.contains(text) {
                return;
            }
        }
    }

    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().unwrap()
    }

    /// The status, the head and the body of an answer.
    pub fn get(&self, path: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        self.get_on(&mut stream, path)
    }

    pub fn get_on(&self, stream: &mut TcpStream, path: &str) -> (u16, String, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        answer(stream)
    }

    pub fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer: its status, its head and its body.
pub fn answer(stream: &mut TcpStream) -> (u16, String, String) {
    answer_of(&mut BufReader::new(stream))
}

/// Reads the next of several answers.
pub fn answer_of(reader: &mut impl BufRead) -> (u16, String, String) {
    let (mut head, mut length, mut is_chunked) = (String::new(), 0, false);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        let line = head[start..].to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        is_chunked |= line.trim() == "transfer-encoding: chunked";
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    while is_chunked {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        let start = body.len();
        body.resize(start + length + 2, 0);
        reader.read_exact(&mut body[start..]).unwrap();
        body.truncate(start + length);
        is_chunked = length > 0;
    }
    let status = head[9..12].parse().unwrap();
    (status, head, String::from_utf8(body).unwrap())
}
