//! The parts that all requests to web servers share: those for parts of inputs, and those for change files.

use std::io::ErrorKind;
use std::ops::Range;
use std::time::Duration;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;

/// The time for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The time in which something has to come.
const READ_TIME: Duration = Duration::from_secs(60);

/// The configuration of a client. `read_time` is the time in which something has to come; a minute if `None`.
pub(crate) fn client(read_time: Option<Duration>) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("pbfhogg/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .timeout_connect(Some(CONNECT_TIME))
        .timeout_per_read(Some(read_time.unwrap_or(READ_TIME)))
        // The headers, however slowly they come.
        .timeout_recv_response(Some(read_time.unwrap_or(READ_TIME)))
}

/// Whether a request that was answered with a status may succeed later.
pub(crate) const fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..)
}

/// The cause of an error of the client, without headers, and so without secrets; and whether it may pass.
pub(crate) fn cause_of(error: &ureq::Error) -> (String, bool) {
    match error {
        ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            ("the connection was refused".into(), true)
        }
        ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl | ureq::Error::Http(_) => {
            (error.to_string(), false)
        }
        ureq::Error::HostNotFound => ("there is no such host".into(), true),
        ureq::Error::Io(error) => (cause_of_io(error), true),
        ureq::Error::Timeout(_) => ("the server did not answer in time".into(), true),
        _ => (error.to_string(), true),
    }
}

/// The cause of an error while a connection was open.
pub(crate) fn cause_of_io(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
            "the server closed the connection".into()
        }
        ErrorKind::TimedOut => "nothing came in time".into(),
        _ => error.to_string(),
    }
}

/// The part in `Content-Range: bytes 100-199/200`, and the length of the file; `None` for the length if it is not stated.
pub(crate) fn content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (part, len) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = part.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((first..last.checked_add(1)?, len.parse().ok()))
}
