//! The configuration of the HTTP client, and the interpretation of its errors and of response headers.

use super::Fault;
use std::io::ErrorKind;
use std::ops::Range;
use std::time::Duration;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::http::HeaderMap;
use ureq::http::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderName, LAST_MODIFIED};
use ureq::typestate::AgentScope;

/// The timeout for opening a connection.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The default timeout of a read.
const READ_TIME: Duration = Duration::from_secs(60);
/// The time limit of the transfer of a chunked body (`Transfer-Encoding: chunked`), as a multiple of the timeout of a
/// read.
const BODY_READS: u32 = 10;

/// Returns the configuration of a client, to which settings can be added. `read_time` is the timeout of a read; `None`
/// means one minute.
pub(super) fn config_builder(read_time: Option<Duration>) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("pbfhogg/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .timeout_connect(Some(CONNECT_TIME))
        .timeout_per_read(Some(read_time.unwrap_or(READ_TIME)))
        // A server may send many headers, each within the timeout of a read. So the time for all headers together is
        // limited, too.
        .timeout_recv_response(Some(read_time.unwrap_or(READ_TIME)))
}

/// Returns the time limit of the transfer of a chunked body. `read_time` is the timeout of a read; `None` means one
/// minute.
pub(super) fn body_time(read_time: Option<Duration>) -> Duration {
    read_time.unwrap_or(READ_TIME).saturating_mul(BODY_READS)
}

/// Whether a request that failed with the given HTTP status may succeed if it is tried again.
pub(super) const fn is_retryable(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..)
}

/// Converts an error of the client to a fault. The message of the fault contains no headers, and therefore no secrets.
pub(super) fn fault_from_error(error: &ureq::Error) -> Fault {
    match error {
        ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl | ureq::Error::Http(_) => {
            Fault::Permanent(error.to_string())
        }
        ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            Fault::Transient("the connection was refused".into())
        }
        ureq::Error::Io(error) => Fault::Transient(io_error_cause(error)),
        ureq::Error::HostNotFound => Fault::Transient("there is no such host".into()),
        ureq::Error::Timeout(_) => Fault::Transient("the server did not answer in time".into()),
        _ => Fault::Transient(error.to_string()),
    }
}

/// Describes the cause of an I/O error on an open connection.
pub(super) fn io_error_cause(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
            "the server closed the connection".into()
        }
        ErrorKind::TimedOut => "nothing came in time".into(),
        _ => error.to_string(),
    }
}

/// Returns the value of a header, if it is text.
pub(super) fn header_text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the version of a file: its ETag or, without one, the time of its last change.
pub(super) fn file_version(headers: &HeaderMap) -> Option<String> {
    let version = header_text(headers, &ETAG).or_else(|| header_text(headers, &LAST_MODIFIED));
    version.map(str::to_owned)
}

/// Returns a fault if a response states a content coding such as `br` or `zstd`. The client asks for no coding, and
/// does not decode such a response. Gzip is never a fault, because servers also state this coding for files that are
/// stored as gzip data. Readers recognize gzip data by its content.
pub(super) fn content_coding_fault(headers: &HeaderMap) -> Option<Fault> {
    const CODINGS: [&str; 5] = ["br", "compress", "deflate", "x-compress", "zstd"];
    let stated = header_text(headers, &CONTENT_ENCODING)?;
    let is_coded = |name: &str| {
        let name = name.trim();
        CODINGS
            .iter()
            .any(|coding| name.eq_ignore_ascii_case(coding))
    };
    stated.split(',').any(is_coded).then(|| {
        let stated = stated.trim();
        Fault::Permanent(format!(
            "the server sends this file with Content-Encoding: {stated}, although it was asked for the file as it is"
        ))
    })
}

/// Parses a header such as `Content-Range: bytes 100-199/200`. Returns the range, and the size of the file; the size is
/// `None` if the header does not state it.
pub(super) fn parse_content_range(headers: &HeaderMap) -> Option<(Range<u64>, Option<u64>)> {
    let text = header_text(headers, &CONTENT_RANGE)?;
    let (part, len) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = part.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((first..last.checked_add(1)?, len.parse().ok()))
}
