//! Fetches whole files with pauses, repeated attempts, and resumption where a connection broke.

use super::{Attempts, Body, BodyRange, Fault, Pace, Transport};
use std::io::Read;
use std::time::Duration;

/// The number of consecutive attempts without new bytes after which a file is given up.
const ATTEMPTS: u32 = 5;
/// The default value of `Fetcher::patience`.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of bytes that are read at a time.
const READ_LEN: usize = 1 << 16;

/// A client that fetches whole files through a transport.
pub struct Fetcher<'t> {
    transport: &'t dyn Transport,
    attempts: Attempts<'t>,
    /// The base time limit of a connection. Each byte that the connection transfers extends the limit by one
    /// millisecond.
    patience: Duration,
}

impl<'t> Fetcher<'t> {
    /// Creates a fetcher that uses `transport`. `pause` waits, and fails if the user wants to stop. `first_pause` is
    /// the pause after the first failed attempt.
    pub fn new(
        transport: &'t dyn Transport,
        pause: &'t (dyn Fn(Duration) -> Result<(), Fault> + Sync),
        first_pause: Duration,
    ) -> Self {
        Self {
            transport,
            attempts: Attempts {
                pause,
                first_pause,
                most: ATTEMPTS,
            },
            patience: PATIENCE,
        }
    }

    /// Sets the base time limit of a connection. Each byte that the connection transfers extends the limit by one
    /// millisecond. The base limit for all attempts to fetch a file, taken together, is five times as long.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the bytes of the file at a URL.
    ///
    /// # Errors
    ///
    /// The file is missing, refused or longer than `limit` bytes; too many consecutive attempts brought nothing; or all
    /// attempts together were too slow.
    #[cfg(test)]
    pub fn fetch(&self, url: &str, limit: u64) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        self.fetch_into(&mut bytes, url, limit)?;
        Ok(bytes)
    }

    /// Appends the bytes of the file at a URL to an empty body. Fails if the file is missing, refused or longer than
    /// `limit` bytes. Also fails if too many consecutive attempts brought no bytes, or if all attempts together were
    /// too slow.
    pub(crate) fn fetch_into(
        &self,
        bytes: &mut impl Body,
        url: &str,
        limit: u64,
    ) -> Result<(), Fault> {
        let mut version = None;
        self.attempts.run(Some(self.pace_of_attempts()), || {
            let read = self.read_remaining_bytes(url, limit, bytes, &mut version);
            (read, bytes.len())
        })
    }

    /// Returns the time limit for all attempts to fetch a file, taken together.
    fn pace_of_attempts(&self) -> Pace {
        Pace::new(self.patience.saturating_mul(ATTEMPTS))
    }

    /// Returns the first `len` bytes of the file at a URL; all bytes if it is shorter. Fails if the file is missing or
    /// refused. Also fails if too many attempts failed, or if all attempts together were too slow.
    pub(crate) fn fetch_start(&self, url: &str, len: usize) -> Result<Vec<u8>, Fault> {
        let pace = Some(self.pace_of_attempts());
        self.attempts.run(pace, || (self.read_start(url, len), 0))
    }

    /// Makes one attempt to read the first `len` bytes of a file.
    fn read_start(&self, url: &str, len: usize) -> Result<Vec<u8>, Fault> {
        let pace = Pace::new(self.patience);
        let mut part = self.transport.open(url, 0)?.bytes.take(len as u64);
        let (mut start, mut buffer) = (Vec::new(), vec![0; len]);
        loop {
            let read = part.read(&mut buffer);
            let read = read.map_err(|error| Fault::Transient(error.to_string()))?;
            start.extend_from_slice(buffer.get(..read).unwrap_or_default());
            if read == 0 {
                return Ok(start);
            }
            if pace.is_too_slow(start.len() as u64) {
                return Err(Fault::too_slow());
            }
        }
    }

    /// Waits for the pause that follows `failures` consecutive failed attempts. This is for callers that count failures
    /// themselves.
    pub(crate) fn pause_before_retry(&self, failures: u32) -> Result<(), Fault> {
        self.attempts.wait_after(failures)
    }

    /// Opens the file at the first byte that is missing in `bytes`. `version` is the version of the file that `bytes`
    /// come from. If the version is unknown, opens the whole file, because the server may have replaced the file.
    fn open_remaining_range(
        &self,
        url: &str,
        bytes: &mut impl Body,
        version: &mut Option<String>,
    ) -> Result<BodyRange, Fault> {
        let unwritten = |error| Fault::write_failure(&error);
        if version.is_none() {
            bytes.clear().map_err(unwritten)?;
        }
        let part = self.transport.open(url, bytes.len())?;
        let before = std::mem::replace(version, part.version.clone());
        let is_other_part = part.start != bytes.len();
        let is_other_version = part.start > 0 && before != *version;
        if !is_other_part && !is_other_version {
            return Ok(part);
        }
        bytes.clear().map_err(unwritten)?;
        let cause = match part.start {
            // A server that does not support ranges sends the whole file again. The bytes of earlier attempts have been
            // dropped above.
            0 => return Ok(part),
            _ if is_other_part => "the server gave another part of the file than the one asked for",
            _ => "the file of the server changed while it was read",
        };
        Err(Fault::Transient(cause.into()))
    }

    /// Appends the rest of a file to `bytes`. `version` is the version of the file that `bytes` come from.
    fn read_remaining_bytes(
        &self,
        url: &str,
        limit: u64,
        bytes: &mut impl Body,
        version: &mut Option<String>,
    ) -> Result<(), Fault> {
        let pace = Pace::new(self.patience);
        let BodyRange {
            start,
            len,
            bytes: mut part,
            ..
        } = self.open_remaining_range(url, bytes, version)?;
        let end = len.map(|len| start.saturating_add(len));
        if end.is_some_and(|end| end > limit) {
            return Err(Fault::too_long(limit));
        }
        let mut buffer = vec![0; READ_LEN];
        loop {
            let read = part.read(&mut buffer);
            let read = read.map_err(|error| Fault::Transient(error.to_string()))?;
            let added = bytes.add(buffer.get(..read).unwrap_or_default());
            added.map_err(|error| Fault::write_failure(&error))?;
            if bytes.len() > limit {
                return Err(Fault::too_long(limit));
            }
            if read == 0 {
                break;
            }
            if bytes.has_wrong_start() {
                return Ok(());
            }
            if pace.is_too_slow(bytes.len().saturating_sub(start)) {
                return Err(Fault::too_slow());
            }
        }
        match end.filter(|end| *end != bytes.len()) {
            None => Ok(()),
            Some(end) => {
                let cause = format!("the connection broke after {} of {end} bytes", bytes.len());
                Err(Fault::Transient(cause))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex;

    const FILE: &[u8] = b"a file of forty bytes, which comes in part";

    /// An answer of a server: a fault, or the offset of the first byte that is sent and the number of bytes that are
    /// sent.
    type Step = Result<(usize, usize), Fault>;

    /// The answers of a server, and the version of the file in each answer. The last version also counts for all
    /// further answers.
    struct Steps(Mutex<VecDeque<Step>>, Mutex<Vec<Option<&'static str>>>);

    impl Transport for Steps {
        fn open(&self, _: &str, start: u64) -> Result<BodyRange, Fault> {
            let step = self.0.lock().unwrap().pop_front();
            let (first, count) = step.expect("no more attempts than steps")?;
            assert!(first == 0 || first as u64 == start);
            let mut versions = self.1.lock().unwrap();
            let version = if versions.len() > 1 {
                versions.remove(0)
            } else {
                versions[0]
            };
            Ok(BodyRange {
                start: first as u64,
                len: Some((FILE.len() - first) as u64),
                version: version.map(str::to_owned),
                bytes: Box::new(&FILE[first..first + count]),
            })
        }
    }

    /// Fetches from a server that gives the answers `steps`. Returns the result, and the pauses in milliseconds.
    fn fetch_with_steps(steps: Vec<Step>, limit: u64) -> (Result<Vec<u8>, Fault>, Vec<u128>) {
        fetch_versions(&[Some("\"1\"")], steps, limit)
    }

    /// Does the same as [`fetch_with_steps`], but `versions` has the version of the file in each answer.
    fn fetch_versions(
        versions: &[Option<&'static str>],
        steps: Vec<Step>,
        limit: u64,
    ) -> (Result<Vec<u8>, Fault>, Vec<u128>) {
        let transport = Steps(Mutex::new(steps.into()), Mutex::new(versions.to_vec()));
        let pauses = Mutex::new(Vec::new());
        let pause = |time: Duration| {
            pauses.lock().unwrap().push(time.as_millis());
            Ok(())
        };
        let fetcher = Fetcher::new(&transport, &pause, Duration::from_millis(100));
        let result = fetcher.fetch("http://server/file", limit);
        assert!(
            transport.0.lock().unwrap().is_empty(),
            "all steps are taken"
        );
        (result, pauses.into_inner().unwrap())
    }

    #[test]
    fn a_broken_transfer_goes_on_where_it_broke() {
        let whole = Ok(FILE.to_vec());
        let passing = || Err(Fault::Transient("time-out".into()));
        let all = FILE.len();
        assert_eq!(
            fetch_with_steps(vec![Ok((0, all))], 100),
            (whole.clone(), vec![])
        );
        let steps = vec![Ok((0, 10)), passing(), Ok((10, 5)), Ok((15, all - 15))];
        assert_eq!(
            fetch_with_steps(steps, 100),
            (whole.clone(), vec![100, 200, 100])
        );
        // The second attempt begins with the first byte, because the server does not support ranges.
        let steps = vec![Ok((0, 10)), Ok((0, all))];
        assert_eq!(fetch_with_steps(steps, 100), (whole.clone(), vec![100]));
        let busy = Err(Fault::Busy(Some(Duration::from_secs(7))));
        assert_eq!(
            fetch_with_steps(vec![busy, Ok((0, all))], 100),
            (whole, vec![7000])
        );
    }

    #[test]
    fn versions_of_a_file_are_not_mixed() {
        let all = FILE.len();
        let whole = Ok(FILE.to_vec());
        let steps = vec![Ok((0, 10)), Ok((10, all - 10)), Ok((0, all))];
        let versions = [Some("1"), Some("2")];
        let (result, pauses) = fetch_versions(&versions, steps, 100);
        assert_eq!((result, pauses.len()), (whole.clone(), 2));
        // If the server states no version, the rest of a file may belong to another version than its beginning.
        for versions in [[None, None], [None, Some("1")]] {
            let steps = vec![Ok((0, 10)), Ok((0, all))];
            let (result, pauses) = fetch_versions(&versions, steps, 100);
            assert_eq!((result, pauses.len()), (whole.clone(), 1));
        }
        let steps = vec![Ok((0, 10)), Ok((10, all - 10)), Ok((0, all))];
        let (result, pauses) = fetch_versions(&[Some("1"), None], steps, 100);
        assert_eq!((result, pauses.len()), (whole, 2));
    }

    #[test]
    fn a_permanent_fault_is_not_retried() {
        let lasting = [
            Fault::Missing,
            Fault::Refused("status 403".into()),
            Fault::Permanent("no".into()),
        ];
        for fault in lasting {
            assert_eq!(
                fetch_with_steps(vec![Err(fault.clone())], 100),
                (Err(fault), vec![])
            );
        }
        let passing = || Err(Fault::Transient("time-out".into()));
        let (result, pauses) = fetch_with_steps((0..5).map(|_| passing()).collect(), 100);
        assert_eq!(result, Err(Fault::Transient("time-out".into())));
        assert_eq!(pauses, [100, 200, 400, 800]);
        let (result, _) = fetch_with_steps(vec![Ok((0, FILE.len()))], 10);
        assert_eq!(
            result,
            Err(Fault::Permanent("the file is longer than 10 bytes".into()))
        );
    }

    #[test]
    fn a_length_near_the_limit_of_u64_is_too_long() {
        struct Liar;
        impl Transport for Liar {
            fn open(&self, _: &str, start: u64) -> Result<BodyRange, Fault> {
                Ok(BodyRange {
                    start,
                    len: Some(if start == 0 { 42 } else { u64::MAX }),
                    version: Some("1".into()),
                    bytes: Box::new(&FILE[..10]),
                })
            }
        }
        let pause = |_: Duration| Ok(());
        let fetcher = Fetcher::new(&Liar, &pause, Duration::ZERO);
        let fault = fetcher.fetch("v:/file", 100);
        assert_eq!(fault, Err(Fault::too_long(100)));
    }

    #[test]
    fn a_body_that_is_no_gzip_file_is_not_read_to_its_end() {
        struct Endless;
        impl Transport for Endless {
            fn open(&self, _: &str, start: u64) -> Result<BodyRange, Fault> {
                let bytes = Box::new(std::io::repeat(b'x'));
                Ok(BodyRange {
                    start,
                    len: None,
                    version: None,
                    bytes,
                })
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let pause = |_: Duration| Ok(());
        let fetcher = Fetcher::new(&Endless, &pause, Duration::ZERO);
        let mut body = super::super::GzipFile::new(directory.path()).unwrap();
        fetcher.fetch_into(&mut body, "v:/file", 1 << 40).unwrap();
        assert!(body.len() < 1 << 20 && body.has_wrong_start());
        let mut body = Vec::new();
        let fault = fetcher.fetch_into(&mut body, "v:/file", 1 << 16);
        assert!(matches!(fault, Err(Fault::Permanent(_))));
        assert!(body.len() < 1 << 18);
    }

    #[test]
    fn local_files_are_read_from_any_byte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.txt");
        std::fs::write(&path, FILE).unwrap();
        let local = super::super::LocalFiles;
        let url = format!("file://{}", path.display());
        let pause = |_: Duration| Ok(());
        let fetcher = Fetcher::new(&local, &pause, Duration::ZERO);
        assert_eq!(fetcher.fetch(&url, 100), Ok(FILE.to_vec()));
        assert_eq!(
            fetcher.fetch(&format!("{url}.not"), 100),
            Err(Fault::Missing)
        );
        let mut rest = String::new();
        let mut part = local.open(&url, 38).unwrap();
        part.bytes.read_to_string(&mut rest).unwrap();
        assert_eq!((part.start, part.len, rest.as_str()), (38, Some(4), "part"));
    }
}
