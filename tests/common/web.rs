//! A web server on loopback that gives files, and makes trouble if it is told to.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The path with a slash before it. For CONNECT, it is a host and a port.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: HashMap<String, String>,
}

/// What the server does instead of giving a file.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// Answers with a status and further headers.
    Status(u16, String),
    /// Closes the connection after some bytes of the file, although it announced all of them.
    Cut(usize),
    /// Gives a file that ends after some bytes, as if it were whole.
    Short(usize),
    /// Gives other bytes.
    Instead(Vec<u8>),
    /// Gives some bytes and then nothing for this time.
    Stall(usize, Duration),
    /// Gives a byte of the file at a time, with this pause after each.
    Drip(Duration),
    /// Closes the connection at once.
    Close,
    /// Gives the whole file, although a part was asked for.
    Whole,
    /// Gives a part that begins so many bytes later.
    Other(usize),
    /// Gives the file with another ETag than that of its content.
    Etag(&'static str),
    /// Gives the file without an ETag.
    Unversioned,
    /// Gives the whole file, and announces so many bytes.
    Announce(u64),
    /// Gives the start of the file as a chunk, then some bytes, and then other bytes again and again with this pause
    /// before each.
    Chunks(&'static str, &'static str, Duration),
    /// Gives the file with further headers.
    With(&'static str),
}

/// Decides what happens to a request; `None` for the file.
pub type Decide = Box<dyn FnMut(&Request) -> Option<Trouble> + Send>;

/// The file of a path, which begins with a slash.
pub type Files = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

/// The files of a directory.
pub fn directory(root: PathBuf) -> Files {
    Arc::new(move |path| fs::read(root.join(path.trim_start_matches('/'))).ok())
}

/// A server, which ends with the test.
pub struct Web {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Web {
    /// Serves files.
    pub fn new(files: Files, decide: Decide) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let decide = Arc::new(Mutex::new(decide));
        let seen = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, decide, seen) = (files.clone(), decide.clone(), seen.clone());
                thread::spawn(move || {
                    // A client may go away at any time.
                    let _ = serve(stream, &files, &decide, &seen);
                });
            }
        });
        Self { address, requests }
    }

    /// The URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

fn serve(
    stream: TcpStream,
    files: &Files,
    decide: &Mutex<Decide>,
    seen: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut method, mut request) = read_request(&mut reader)?;
    if method == "CONNECT" {
        // A proxy: what follows is for the host that was named, and answered here.
        seen.lock().unwrap().push(request);
        (&stream).write_all(b"HTTP/1.1 200 connected\r\n\r\n")?;
        (method, request) = read_request(&mut reader)?;
    }
    if method.is_empty() {
        // The client has gone away.
        return Ok(());
    }
    assert_eq!(method, "GET");
    let trouble = decide.lock().unwrap()(&request);
    seen.lock().unwrap().push(request.clone());
    answer(stream, files, &request, trouble)
}

/// The method of a request, and the request.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<(String, Request)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
    }
    Ok((method, Request { path, headers }))
}

/// A number that is another one for each content of a file.
fn version_of(file: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    file.hash(&mut hasher);
    hasher.finish()
}

fn answer(
    mut stream: TcpStream,
    files: &Files,
    request: &Request,
    trouble: Option<Trouble>,
) -> std::io::Result<()> {
    let head = |status: u16, len: usize, more: &str| {
        format!("HTTP/1.1 {status} X\r\nContent-Length: {len}\r\nConnection: close\r\n{more}\r\n")
    };
    let file = files(&request.path);
    let file = match (&trouble, file) {
        (Some(Trouble::Status(status, more)), _) => {
            return stream.write_all(head(*status, 0, more).as_bytes());
        }
        (Some(Trouble::Close), _) => return Ok(()),
        (Some(Trouble::Instead(bytes)), _) => bytes.clone(),
        (_, Some(file)) => file,
        (_, None) => return stream.write_all(head(404, 0, "").as_bytes()),
    };
    let range = request.headers.get("range").and_then(|range| {
        let (start, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        let start = start
            .parse::<usize>()
            .ok()
            .filter(|start| *start < file.len())?;
        let end = last
            .parse()
            .map_or(file.len(), |last: usize| file.len().min(last + 1));
        Some(start..end)
    });
    let (status, range) = match (&trouble, range) {
        (Some(Trouble::Whole | Trouble::Announce(_)), _) | (_, None) => (200, 0..file.len()),
        (Some(Trouble::Other(by)), Some(range)) => (206, range.start + by..range.end + by),
        (_, Some(range)) => (206, range),
    };
    let own = format!("ETag: \"{:x}\"\r\n", version_of(&file));
    let etag = match &trouble {
        Some(Trouble::Etag(etag)) => format!("ETag: {etag}\r\n"),
        Some(Trouble::With(headers)) => format!("{own}{headers}"),
        Some(Trouble::Unversioned) => String::new(),
        _ => own,
    };
    let range_header = format!(
        "Content-Range: bytes {}-{}/{}\r\n{etag}",
        range.start,
        range.end.saturating_sub(1),
        file.len()
    );
    let more = if status == 206 { &range_header } else { &etag };
    let part = &file[range.start.min(file.len())..range.end.min(file.len())];
    let upto = |len: usize| &part[..len.min(part.len())];
    match trouble {
        Some(Trouble::Short(len)) => {
            stream.write_all(head(status, upto(len).len(), more).as_bytes())?;
            stream.write_all(upto(len))
        }
        Some(Trouble::Cut(len)) => {
            stream.write_all(head(status, part.len(), more).as_bytes())?;
            stream.write_all(upto(len))
        }
        Some(Trouble::Stall(len, time)) => {
            stream.write_all(head(status, part.len(), more).as_bytes())?;
            stream.write_all(upto(len))?;
            stream.flush()?;
            thread::sleep(time);
            Ok(())
        }
        Some(Trouble::Announce(len)) => {
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {len}\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            stream.write_all(part)
        }
        Some(Trouble::Chunks(frame, again, pause)) => {
            let head =
                format!("HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n{more}\r\n5\r\n");
            stream.write_all(head.as_bytes())?;
            stream.write_all(upto(5))?;
            stream.write_all(format!("\r\n{frame}").as_bytes())?;
            loop {
                thread::sleep(pause);
                stream.write_all(again.as_bytes())?;
            }
        }
        Some(Trouble::Drip(pause)) => {
            stream.write_all(head(status, part.len(), more).as_bytes())?;
            for byte in part {
                stream.write_all(&[*byte])?;
                thread::sleep(pause);
            }
            Ok(())
        }
        _ => {
            stream.write_all(head(status, part.len(), more).as_bytes())?;
            stream.write_all(part)
        }
    }
}
