//! Fetches states and change files from a replication server, and handles its faults.

use super::cache::Cache;
use super::coding::{decode_file, decode_gzip_start, decode_text};
use super::complete::check_changes;
use super::page::{html_page_fault, is_html_page};
use super::state::{LAST_SEQUENCE, State, parse_sequence_and_time, path_of};
use crate::error::{Error, Result, without_credentials};
use crate::net::Fault;
use crate::net::Fetcher;
use crate::net::{Body, GzipFile};
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The number of preceding states that are requested if a state is missing.
const STATES_BEFORE: i64 = 4;
/// The number of bytes at the start of a change file that are examined to distinguish the file from an HTML page.
const START_LEN: usize = 1024;
/// The maximum size in bytes of a state file.
const STATE_LEN: u64 = 1 << 16;
/// The maximum number of attempts to fetch a file that is incomplete on the server.
const INCOMPLETE_ATTEMPTS: u32 = 3;

/// A replication server.
pub struct Server<'s> {
    /// The URL of the directory with `state.txt`, without a slash at its end. It may contain credentials.
    address: String,
    /// `address` without credentials.
    base: String,
    fetcher: Fetcher<'s>,
    cache: Option<Cache>,
}

/// A complete change file: gzip data, PBF, or plain text if a server or a proxy has decompressed the file.
#[derive(Debug)]
pub struct ChangeFile {
    /// The sequence number.
    pub sequence: i64,
    /// The file, which is either unnamed or a file in the cache.
    pub file: File,
    /// The size in bytes of the file.
    pub len: u64,
    /// The size in bytes of the decompressed text.
    pub text_len: u64,
}

/// Returns the error for a file that could not be fetched.
pub(crate) fn fetch_error(url: &str, fault: &Fault) -> Error {
    Error::file(Path::new(url), fault.to_string())
}

impl<'s> Server<'s> {
    /// Creates the server at a URL.
    pub fn new(base: &str, fetcher: Fetcher<'s>, cache: Option<Cache>) -> Self {
        let base = base.trim_end_matches('/');
        Self {
            address: base.to_owned(),
            base: without_credentials(base).into_owned(),
            fetcher,
            cache,
        }
    }

    /// Returns the URL of the directory with `state.txt`, without credentials. It appears in messages and in headers.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the URL of the change file with a sequence number, without credentials.
    pub fn url_of(&self, sequence: i64) -> String {
        format!("{}/{}", self.base, changes_path(sequence))
    }

    /// Returns the URL of the state with a sequence number, without credentials.
    pub fn state_url(&self, sequence: i64) -> String {
        format!("{}/{}", self.base, state_path(sequence))
    }

    /// Returns the URL for requests of a file, with credentials.
    fn request_url(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// Fetches the newest state.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, refuses access, or has no state.
    pub fn newest_state(&self) -> Result<State> {
        let url = self.request_url("state.txt");
        let state = self.fetch_state(&url);
        state.map_err(|fault| match fault {
            Fault::Missing => {
                let cause =
                    "the server has no such file: this is not the URL of a replication server";
                Error::file(Path::new(&url), cause)
            }
            Fault::Page => {
                let cause = "the server sent an HTML page instead of a state file: this is not the URL of a \
                             replication server, or something on the way answers in its place";
                Error::file(Path::new(&url), cause)
            }
            fault => fetch_error(&url, &fault),
        })
    }

    /// Returns the state with a sequence number. Returns `None` if the server does not have the state, or sends an HTML
    /// page instead. Also returns `None` if the state file is still truncated after some attempts.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or refuses access.
    pub fn state(&self, sequence: i64) -> Result<Option<State>> {
        let name = state_path(sequence);
        if let Some(cache) = &self.cache
            && let Some(file) = cache.get(&name)?
            && let Some(state) = read_state(file)
        {
            return Ok(Some(state));
        }
        let url = self.request_url(&name);
        match self.fetch_state(&url) {
            Ok(state) => {
                if let Some(cache) = &self.cache {
                    cache.put(&name, state.to_text().as_bytes())?;
                }
                // Some servers store a copy of another state under this number, so the number in the file is ignored.
                Ok(Some(State { sequence, ..state }))
            }
            Err(Fault::Missing | Fault::Page | Fault::Incomplete(_)) => Ok(None),
            Err(fault) => Err(fetch_error(&url, &fault)),
        }
    }

    /// Returns the time of the state with a sequence number. A server may publish a change file before its state. If
    /// the state is missing, returns the time of the nearest earlier state, at most four sequence numbers before.
    /// Returns `None` if all these states are missing.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or refuses access.
    pub fn time_of(&self, sequence: i64) -> Result<Option<i64>> {
        for near in (0.max(sequence - STATES_BEFORE)..=sequence).rev() {
            if let Some(state) = self.state(near)? {
                return Ok(Some(state.timestamp));
            }
        }
        Ok(None)
    }

    /// Whether the server sends an HTML page instead of the state with a sequence number.
    pub(super) fn sends_page_for_state(&self, sequence: i64) -> bool {
        matches!(
            self.fetch_state(&self.request_url(&state_path(sequence))),
            Err(Fault::Page)
        )
    }

    /// Whether the cache or the server has a change file with a sequence number. Requests only the start of the file.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or refuses access.
    pub(super) fn has_changes(&self, sequence: i64) -> Result<bool> {
        let name = changes_path(sequence);
        if let Some(cache) = &self.cache
            && cache.get(&name)?.is_some()
        {
            return Ok(true);
        }
        let url = self.request_url(&name);
        match self.fetcher.fetch_start(&url, START_LEN) {
            Ok(start) => {
                let is_page = is_html_page(&start) || is_html_page(&decode_gzip_start(&start));
                Ok(!start.is_empty() && !is_page)
            }
            Err(Fault::Missing) => Ok(false),
            Err(fault) => Err(fetch_error(&url, &fault)),
        }
    }

    /// Fetches a state file, and parses it.
    fn fetch_state(&self, url: &str) -> Result<State, Fault> {
        let before = RefCell::new(Vec::new());
        let read = |bytes: &mut Vec<u8>| {
            decode_text(bytes, STATE_LEN);
            let bytes = bytes.as_slice();
            let text = String::from_utf8_lossy(bytes);
            // A sequence number at the very end of the file may be truncated. It is accepted if a second attempt yields
            // the same bytes.
            let is_open = text.lines().last().is_some_and(|line| {
                line.trim_start().starts_with("sequenceNumber") && !text.ends_with(['\n', '\r'])
            });
            if is_open && before.replace(bytes.to_vec()) != bytes {
                let cause = "this state file is cut short: its last line does not end";
                return Err(Fault::Incomplete(cause.into()));
            }
            let sequence = parse_sequence_and_time(&text).0;
            if let Some(sequence) = sequence.filter(|sequence| *sequence > LAST_SEQUENCE) {
                return Err(Fault::Permanent(format!(
                    "the sequence number {sequence} is larger than those of servers, which have nine digits at most"
                )));
            }
            let incomplete =
                || Fault::Incomplete("this is no state file, or it is cut short".into());
            State::parse(&text).ok_or_else(incomplete)
        };
        Ok(self
            .fetch_until_complete(url, STATE_LEN, || Ok(Vec::new()), read)?
            .1)
    }

    /// Fetches a file. Returns the file and the result of `check`. If `check` reports the file as incomplete, fetches
    /// it again after a pause. The server may still be writing the file.
    fn fetch_until_complete<B: Body, T>(
        &self,
        url: &str,
        limit: u64,
        new: impl Fn() -> Result<B, Fault>,
        check: impl Fn(&mut B) -> Result<T, Fault>,
    ) -> Result<(B, T), Fault> {
        let mut failures = 0;
        loop {
            let mut bytes = new()?;
            self.fetcher.fetch_into(&mut bytes, url, limit)?;
            match check(&mut bytes) {
                Ok(checked) => return Ok((bytes, checked)),
                Err(_) if is_html_page(bytes.head()) => return Err(html_page_fault(bytes.head())),
                Err(Fault::Incomplete(cause)) => {
                    failures += 1;
                    if failures == INCOMPLETE_ATTEMPTS {
                        return Err(Fault::Incomplete(cause));
                    }
                    self.fetcher.pause_before_retry(failures)?;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Returns the change file with a sequence number, from the cache or fetched to a temporary file in `directory`.
    /// Returns `None` if the server does not have the file.
    ///
    /// # Errors
    ///
    /// The server cannot be reached or refuses access, the file is larger than `limit` bytes, or the file is still
    /// damaged or incomplete after some attempts.
    pub fn changes(
        &self,
        sequence: i64,
        limit: u64,
        directory: &Path,
    ) -> Result<Option<ChangeFile>> {
        let name = changes_path(sequence);
        let complete = |mut file: File, text_len| {
            let len = file.seek(SeekFrom::End(0)).ok()?;
            file.seek(SeekFrom::Start(0)).ok()?;
            Some(ChangeFile {
                sequence,
                file,
                len,
                text_len,
            })
        };
        if let Some(cache) = &self.cache
            && let Some(file) = cache.get(&name)?
            && let Ok(text_len) = check_changes(BufReader::new(&file))
            && let Some(found) = complete(file, text_len)
        {
            return Ok(Some(found));
        }
        let url = self.request_url(&name);
        let new = || GzipFile::new(directory).map_err(|error| Fault::write_failure(&error));
        let check = |body: &mut GzipFile| {
            decode_file(body, directory, limit)?;
            let file = body
                .rewind_file()
                .map_err(|error| Fault::write_failure(&error))?;
            check_changes(BufReader::new(file))
        };
        match self.fetch_until_complete(&url, limit, new, check) {
            Ok((mut body, text_len)) => {
                let lost = |error| Error::io(directory, "cannot read a temporary file in", error);
                if let Some(cache) = &self.cache {
                    cache.put(&name, body.rewind_file().map_err(lost)?)?;
                }
                Ok(complete(body.into_file(), text_len))
            }
            Err(Fault::Missing) => Ok(None),
            Err(fault) => Err(fetch_error(&url, &fault)),
        }
    }
}

/// Returns the state in a file of the cache, or `None` if the file is not a state file.
fn read_state(file: File) -> Option<State> {
    let mut bytes = Vec::new();
    file.take(STATE_LEN).read_to_end(&mut bytes).ok()?;
    State::parse(&String::from_utf8_lossy(&bytes))
}

/// Returns the path of the change file with a sequence number, relative to the URL of the server.
fn changes_path(sequence: i64) -> String {
    format!("{}.osc.gz", path_of(sequence))
}

/// Returns the path of the state with a sequence number, relative to the URL of the server.
fn state_path(sequence: i64) -> String {
    format!("{}.state.txt", path_of(sequence))
}

/// Whether two URLs refer to the same server. A path and the `file://` URL of the path are equivalent. Credentials in
/// URLs do not matter.
pub fn is_same_server(one: &str, other: &str) -> bool {
    let plain = |url: &str| {
        let url = without_credentials(url);
        let url = url.trim_end_matches('/');
        url.strip_prefix("file://").unwrap_or(url).to_owned()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::LocalFiles;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write;
    use std::time::Duration;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_state_that_is_being_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.txt");
        let whole = State {
            sequence: 4,
            timestamp: 0,
        };
        fs::write(&path, "").unwrap();
        let base = format!("file://{}", directory.path().display());
        let pause = |_: Duration| {
            fs::write(&path, whole.to_text()).unwrap();
            Ok(())
        };
        let fetcher = Fetcher::new(&LocalFiles, &pause, Duration::ZERO);
        let server = Server::new(&base, fetcher, None);
        assert_eq!(server.newest_state().unwrap(), whole);
        // A file that ends with a number is read twice, because the number may be truncated.
        let turned =
            |number| format!("timestamp=1970-01-01T00\\:00\\:00Z\nsequenceNumber={number}");
        let whole = State {
            sequence: 4711,
            timestamp: 0,
        };
        let pause = |_: Duration| {
            fs::write(&path, turned(4711)).unwrap();
            Ok(())
        };
        let fetcher = Fetcher::new(&LocalFiles, &pause, Duration::ZERO);
        let server = Server::new(&base, fetcher, None);
        for number in [47, 4711] {
            fs::write(&path, turned(number)).unwrap();
            assert_eq!(server.newest_state().unwrap(), whole);
        }
    }

    #[test]
    fn a_too_large_sequence_number_fails_without_a_retry() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.txt");
        let base = format!("file://{}", directory.path().display());
        let pause = |_: Duration| panic!("nothing to wait for");
        let fetcher = Fetcher::new(&LocalFiles, &pause, Duration::ZERO);
        let server = Server::new(&base, fetcher, None);
        for sequence in [LAST_SEQUENCE + 1, i64::MAX] {
            let text = State {
                sequence,
                timestamp: 0,
            };
            fs::write(&path, text.to_text()).unwrap();
            let message = server.newest_state().unwrap_err().to_string();
            assert!(message.contains("nine digits"), "{message}");
        }
    }

    #[test]
    fn files_are_checked_and_cached() {
        #[cfg(unix)]
        let _faults = crate::system::faults::Faults::none();
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = directory.path().join("server").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let state = |sequence| State {
            sequence,
            timestamp: 1_000_000 + sequence * 60,
        };
        let whole = gzip("<osmChange/>");
        put("state.txt", state(1003).to_text().as_bytes());
        put("000/001/001.state.txt", state(1001).to_text().as_bytes());
        put("000/001/001.osc.gz", &whole);
        put("000/001/002.osc.gz", &whole[..whole.len() - 3]);
        put(
            "000/001/003.osc.gz",
            b"<!DOCTYPE html><title>Sign in</title>",
        );
        put("000/001/003.state.txt", b" <html>");
        let base = format!("file://{}/", directory.path().join("server").display());
        let cache = Cache::new(directory.path().join("cache"), &base);
        let pause = |_: Duration| Ok(());
        let fetcher = Fetcher::new(&LocalFiles, &pause, Duration::ZERO);
        let server = Server::new(&base, fetcher, Some(cache));
        assert_eq!(server.newest_state().unwrap(), state(1003));
        put("000/001/000.state.txt", b"sequenceNumber=1000\n");
        // A state that remains truncated is treated as missing.
        assert_eq!(server.state(1000).unwrap(), None);
        for _ in 0..2 {
            // In the second iteration, both files come from the cache.
            assert_eq!(server.state(1001).unwrap(), Some(state(1001)));
            let mut changes = server.changes(1001, 1000, directory.path());
            let changes = changes.as_mut().unwrap().as_mut().unwrap();
            let mut bytes = Vec::new();
            changes.file.read_to_end(&mut bytes).unwrap();
            assert_eq!((&bytes, changes.text_len), (&whole, 12));
            fs::remove_dir_all(directory.path().join("server/000/001")).ok();
            put("000/001/002.osc.gz", &whole[..whole.len() - 3]);
            put(
                "000/001/003.osc.gz",
                b"<!DOCTYPE html><title>Sign in</title>",
            );
            put("000/001/003.state.txt", b" <html>");
        }
        assert_eq!(server.state(1002).unwrap(), None);
        let changes = |sequence| server.changes(sequence, 1000, directory.path());
        assert!(changes(1004).unwrap().is_none());
        let message = |result: Result<Option<ChangeFile>>| result.unwrap_err().to_string();
        let incomplete = message(changes(1002));
        assert!(incomplete.contains("002.osc.gz: the change file on the server is incomplete"));
        assert!(message(changes(1003)).contains("sign in again"));
        // If a page does not ask for a login, `state` and `has_changes` treat the file as missing.
        assert_eq!(server.state(1003).unwrap(), None);
        assert!(server.sends_page_for_state(1003));
        put("000/001/003.osc.gz", b"<!DOCTYPE html><p>nothing here");
        assert!(message(changes(1003)).contains("an HTML page instead of the file"));
        assert!(!server.has_changes(1003).unwrap() && !server.has_changes(1004).unwrap());
        assert!(server.has_changes(1002).unwrap());
    }
}
