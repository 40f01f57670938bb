//! Files on web servers. Only the ranges that are read are fetched.
//!
//! The fetched bytes are stored in an unnamed temporary file of the same size, at the same offsets as in the file of
//! the server. The temporary file is sparse, so only the fetched bytes use disk space.

use super::{Attempts, Credentials, Fault, Pace, WebFiles, client};
use crate::error::{CANNOT_CREATE_TEMPORARY, Error, FileResult, Result};
use crate::runtime::{human_bytes, lock};
use crate::system;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ureq::Body;
use ureq::http::header::{ETAG, HeaderName, IF_MATCH, LAST_MODIFIED, RANGE};
use ureq::http::{HeaderMap, Response, Uri};

/// The minimum number of bytes of a request. Shorter requests are extended, because the bytes after them are usually
/// read next.
const MIN_REQUEST: u64 = 16 << 10;
/// The number of bytes that are written to the file at a time.
const CHUNK: usize = 256 << 10;
/// The number of requests for the same bytes before giving up.
const ATTEMPTS: u32 = 4;
/// The pause before the second request; each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// The time that a request may last in addition to one millisecond per byte that it transfers.
const PATIENCE: Duration = Duration::from_secs(60);
/// The environment variable that sets the timeout of a read in seconds.
const TIME_VARIABLE: &str = "PBFHOGG_HTTP_TIMEOUT";

/// A file on a web server.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    url: PathBuf,
    web: WebFiles,
    /// The time that a request may last in addition to one millisecond per byte that it transfers.
    patience: Duration,
    version: FileVersion,
    parts: Mutex<FetchedParts>,
    /// Notifies the waiting threads whenever a part has been fetched, or could not be fetched.
    changed: Condvar,
}

/// The states of the parts of a file.
#[derive(Debug, Default)]
struct FetchedParts {
    /// The parts that have been fetched.
    fetched: Ranges,
    /// The parts that a thread has fetched, is fetching, or has failed to fetch.
    claimed: Ranges,
    /// The first fault with which the fetch of a part failed. Once it is set, threads fail instead of waiting for
    /// missing parts.
    failure: Option<Fault>,
}

/// The version of a file. Fetching a part fails if the server sends the part from another version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileVersion {
    len: u64,
    etag: Option<String>,
    last_modified: Option<String>,
}

type FetchAttempt<T> = std::result::Result<T, Fault>;

impl RemoteFile {
    /// Opens a file and fetches its first `first` bytes. Returns the file on the server, and the unnamed temporary file
    /// that holds the fetched bytes. A server that does not support ranges sends the whole file.
    pub(crate) fn open(url: &Path, first: u64) -> Result<(Self, File)> {
        let seconds = std::env::var(TIME_VARIABLE)
            .ok()
            .and_then(|text| text.parse().ok());
        let read_time = seconds.map(Duration::from_secs);
        let patience = read_time.unwrap_or(PATIENCE);
        let web = WebFiles::new(Credentials::default(), read_time);
        let directory = std::env::temp_dir();
        let file =
            tempfile::tempfile_in(&directory).for_path(&directory, CANNOT_CREATE_TEMPORARY)?;
        let found = retry_fetch(|| fetch_first_bytes(&web, url, first, &file, patience));
        let (version, first) = found.map_err(|fault| Error::file(url, fault.to_string()))?;
        let mut parts = FetchedParts::default();
        parts.fetched.add(first.clone());
        parts.claimed.add(first);
        file.set_len(version.len)
            .for_path(url, "cannot reserve a temporary file for")?;
        let remote = Self {
            url: url.to_owned(),
            web,
            patience,
            version,
            parts: Mutex::new(parts),
            changed: Condvar::new(),
        };
        Ok((remote, file))
    }

    /// Returns the size of the file in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.version.len
    }

    fn lock(&self) -> MutexGuard<'_, FetchedParts> {
        lock(&self.parts)
    }

    /// Fetches the missing parts of a range to `file`. Several threads may fetch at the same time, but a thread waits
    /// for bytes that another one is fetching.
    pub(crate) fn fetch(&self, range: Range<u64>, file: &File) -> Result<()> {
        let end = range.end.min(self.len());
        let range = range.start.min(end)..end;
        let claimed = {
            let mut parts = self.lock();
            let missing = parts.claimed.missing_ranges(range.clone(), self.len());
            missing
                .iter()
                .for_each(|part| parts.claimed.add(part.clone()));
            missing
        };
        for part in claimed {
            let fetched = retry_fetch(|| self.try_fetch(part.clone(), file));
            let mut parts = self.lock();
            match fetched {
                Ok(()) => parts.fetched.add(part),
                // The part stays claimed in spite of the failure, so that no other thread fetches it.
                Err(fault) => parts.failure = parts.failure.take().or(Some(fault)),
            }
            drop(parts);
            self.changed.notify_all();
        }
        let is_missing =
            |parts: &mut FetchedParts| !parts.fetched.has(&range) && parts.failure.is_none();
        let parts = self.changed.wait_while(self.lock(), is_missing);
        let parts = parts.unwrap_or_else(PoisonError::into_inner);
        match &parts.failure {
            Some(fault) if !parts.fetched.has(&range) => {
                Err(Error::file(&self.url, fault.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Makes one attempt to fetch a range to `file`.
    fn try_fetch(&self, range: Range<u64>, file: &File) -> FetchAttempt<()> {
        let etag = self.version.etag.as_deref();
        let (uri, response) = request_range(&self.web, &self.url, &range, etag)?;
        let changed =
            || Fault::Permanent("the file of the server changed while it was read".into());
        match response.status().as_u16() {
            206 => {}
            412 | 416 => return Err(changed()),
            200 => {
                return Err(Fault::Permanent(
                    "the server sent the whole file instead of a part".into(),
                ));
            }
            _ => return Err(self.web.fault_of_response(&uri, &response)),
        }
        let (part, version) = parse_range_and_version(response.headers())?;
        if version != self.version {
            return Err(changed());
        }
        if part != range {
            return Err(Fault::Permanent(format!(
                "the server sent bytes {} to {} instead of {} to {}",
                part.start, part.end, range.start, range.end
            )));
        }
        let body = response.into_body().into_reader();
        store_range(body, &range, file, &Pace::new(self.patience))
    }
}

/// Calls `attempt` until it succeeds, fails with a permanent fault, or has failed [`ATTEMPTS`] times.
fn retry_fetch<T>(mut attempt: impl FnMut() -> FetchAttempt<T>) -> FetchAttempt<T> {
    let attempts = Attempts {
        pause: &|pause| {
            std::thread::sleep(pause);
            Ok(())
        },
        first_pause: PAUSE,
        most: ATTEMPTS,
    };
    attempts.run(None, || (attempt(), 0))
}

/// Fetches the first `first` bytes of a file. Returns the version of the file, and the range that was fetched.
fn fetch_first_bytes(
    web: &WebFiles,
    url: &Path,
    first: u64,
    file: &File,
    patience: Duration,
) -> FetchAttempt<(FileVersion, Range<u64>)> {
    let body = |response: Response<Body>| response.into_body().into_reader();
    let (uri, response) = request_range(web, url, &(0..first), None)?;
    match response.status().as_u16() {
        206 => {
            let (part, version) = parse_range_and_version(response.headers())?;
            if part != (0..first.min(version.len)) {
                let cause = "the server sent another part than the first";
                return Err(Fault::Permanent(cause.into()));
            }
            store_range(body(response), &part, file, &Pace::new(patience))?;
            Ok((version, part))
        }
        200 => {
            let unknown = "the server does not say how long the file is";
            let len = response.body().content_length();
            let len = len.ok_or(Fault::Permanent(unknown.into()))?;
            let version = version_of(response.headers(), len);
            check_free_space(len)?;
            store_range(body(response), &(0..len), file, &Pace::new(patience))?;
            Ok((version, 0..len))
        }
        416 => Ok((version_of(response.headers(), 0), 0..0)),
        _ => Err(web.fault_of_response(&uri, &response)),
    }
}

/// Fails if the directory of temporary files has too little space for a whole file of `len` bytes.
fn check_free_space(len: u64) -> FetchAttempt<()> {
    match system::free_space(&std::env::temp_dir()) {
        Some(free) if free < len => Err(Fault::Permanent(format!(
            "the server sends no parts, the whole file takes {}, and {} are free in the directory of temporary files",
            human_bytes(len),
            human_bytes(free)
        ))),
        _ => Ok(()),
    }
}

/// Requests a range of a file. With a strong `etag`, the server refuses the request if it has another version of the
/// file.
fn request_range(
    web: &WebFiles,
    url: &Path,
    range: &Range<u64>,
    etag: Option<&str>,
) -> FetchAttempt<(Uri, Response<Body>)> {
    let no_text = "the URL is not UTF-8";
    let url = url.to_str().ok_or(Fault::Permanent(no_text.into()))?;
    let bytes = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
    let mut headers = vec![(RANGE, bytes)];
    // A weak ETag never matches in `If-Match`, so it is not sent.
    let strong = etag.filter(|etag| !etag.starts_with("W/"));
    headers.extend(strong.map(|etag| (IF_MATCH, etag.to_owned())));
    web.request(url, &headers)
}

/// Reads the range of a part, and the version of its file, from the headers of a response.
fn parse_range_and_version(headers: &HeaderMap) -> FetchAttempt<(Range<u64>, FileVersion)> {
    match client::parse_content_range(headers) {
        Some((part, Some(len))) if part.start <= part.end && part.end <= len => {
            Ok((part, version_of(headers, len)))
        }
        _ => {
            let cause = "the server does not say which part it sends";
            Err(Fault::Permanent(cause.into()))
        }
    }
}

fn version_of(headers: &HeaderMap, len: u64) -> FileVersion {
    let text = |name: &HeaderName| client::header_text(headers, name).map(str::to_owned);
    FileVersion {
        len,
        etag: text(&ETAG),
        last_modified: text(&LAST_MODIFIED),
    }
}

/// Writes the bytes of a range to a file at the same offset. Fails if bytes are missing, or arrive more slowly than
/// `pace` allows.
fn store_range(body: impl Read, range: &Range<u64>, file: &File, pace: &Pace) -> FetchAttempt<()> {
    let mut part = body.take(range.end - range.start);
    let (mut buffer, mut at) = (vec![0; CHUNK], range.start);
    while at < range.end {
        let count = part.read(&mut buffer).map_err(|error| {
            let cause = client::io_error_cause(&error);
            Fault::Transient(format!("the transfer broke off: {cause}"))
        })?;
        if count == 0 {
            return Err(Fault::Transient("the transfer ended early".into()));
        }
        system::write_at(file, &buffer[..count], at)
            .map_err(|error| Fault::write_failure(&error))?;
        at += count as u64;
        if at < range.end && pace.is_too_slow(at - range.start) {
            return Err(Fault::too_slow());
        }
    }
    Ok(())
}

/// A set of ranges of a file, which neither overlap nor adjoin. Maps the start of each range to its end.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Whether the set contains all of `range`.
    fn has(&self, range: &Range<u64>) -> bool {
        let before = self.0.range(..=range.start).next_back();
        range.is_empty() || before.is_some_and(|(_, end)| *end >= range.end)
    }

    /// Returns the parts of `range` that are not in the set. A part at the end of `range` that is shorter than
    /// [`MIN_REQUEST`] is extended to that length. The extension stops at the next range of the set and at `len`, the
    /// size of the file in bytes.
    fn missing_ranges(&self, range: Range<u64>, len: u64) -> Vec<Range<u64>> {
        let (mut missing, mut at) = (Vec::new(), range.start);
        let before = self.0.range(..=range.start).next_back();
        let within = self
            .0
            .range(range.start + 1..range.end.max(range.start + 1));
        for (&start, &end) in before.into_iter().chain(within) {
            if start > at {
                missing.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            let next = self.0.range(range.end..).next().map_or(len, |next| *next.0);
            let end = range.end.max(at.saturating_add(MIN_REQUEST)).min(next);
            missing.push(at..end.max(range.end));
        }
        missing
    }

    fn add(&mut self, range: Range<u64>) {
        let (mut start, mut end) = (range.start, range.end);
        if start >= end {
            return;
        }
        let met: Vec<(u64, u64)> = self
            .0
            .range(..=end)
            .rev()
            .take_while(|(_, of)| **of >= start)
            .map(|(start, end)| (*start, *end))
            .collect();
        for (from, to) in met {
            self.0.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.0.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn a_body_that_comes_byte_by_byte_is_given_up() {
        struct Drip;
        impl Read for Drip {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                std::thread::sleep(Duration::from_millis(5));
                buffer[0] = 7;
                Ok(1)
            }
        }
        let file = tempfile::tempfile().unwrap();
        let taken = |patience| store_range(Drip, &(0..30), &file, &Pace::new(patience));
        assert!(taken(Duration::from_secs(60)).is_ok());
        match taken(Duration::ZERO) {
            Err(Fault::Transient(cause)) => {
                assert!(cause.contains("a thousand bytes"), "{cause}")
            }
            _ => panic!("it is waited for"),
        }
    }

    #[test]
    fn ranges_are_fetched_once() {
        let len = 2_000;
        let mut random = Random(7);
        for _ in 0..200 {
            let (mut fetched, mut expected) = (Ranges::default(), vec![false; len as usize]);
            for _ in 0..30 {
                let start = random.below(len);
                let end = (start + random.below(90)).min(len);
                for part in fetched.missing_ranges(start..end, len) {
                    for at in part.clone() {
                        assert!(!std::mem::replace(&mut expected[at as usize], true), "{at}");
                    }
                    fetched.add(part);
                }
                assert!((start..end).all(|at| expected[at as usize]));
                assert!(fetched.missing_ranges(start..end, len).is_empty());
                assert!(fetched.has(&(start..end)));
                let ranges: Vec<_> = fetched.0.iter().collect();
                assert!(ranges.is_sorted_by(|a, b| a.1 < b.0), "{ranges:?}");
            }
        }
    }

    #[test]
    fn short_requests_are_extended_to_the_bytes_after_them() {
        let mut fetched = Ranges::default();
        let len = 100_000;
        let missing = |fetched: &Ranges, range| {
            let parts = fetched.missing_ranges(range, len).into_iter();
            let ends: Vec<(u64, u64)> = parts.map(|part| (part.start, part.end)).collect();
            ends
        };
        assert_eq!(missing(&fetched, 10..20), [(10, 10 + MIN_REQUEST)]);
        fetched.add(30_000..40_000);
        assert_eq!(missing(&fetched, 29_000..29_010), [(29_000, 30_000)]);
        assert_eq!(missing(&fetched, 99_990..99_995), [(99_990, len)]);
        let expected = [(0, 30_000), (40_000, 90_000)];
        assert_eq!(missing(&fetched, 0..90_000), expected);
    }
}
