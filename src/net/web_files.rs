//! Files on web servers.

use super::{BodyRange, CookieJar, Fault, LocalFiles, Transport, client};
use crate::error::{Error, FileResult};
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use ureq::http::header::{AUTHORIZATION, COOKIE, LOCATION, RANGE, RETRY_AFTER, TRANSFER_ENCODING};
use ureq::http::{HeaderMap, HeaderName, Response, StatusCode, Uri};
use ureq::{Agent, Body};

/// The servers that give files only to users who have signed in, and that answer others with status 403.
const LOGIN_HOSTS: [&str; 1] = ["osm-internal.download.geofabrik.de"];

/// The maximum number of redirects.
const REDIRECTS: usize = 8;

/// The credentials that a server asks for before it gives files.
#[derive(Default)]
pub struct Credentials {
    /// The cookies, each for the hosts and paths that it applies to.
    pub cookies: CookieJar,
    /// A bearer token, which is sent only to the server of the first request.
    pub token: Option<String>,
}

impl Credentials {
    /// Reads a token from a file, without the white space around it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or contains no token. The message does not quote the file.
    pub fn read_token(path: &Path) -> Result<String, Error> {
        let text = std::fs::read_to_string(path).for_path(path, "cannot read")?;
        let token = text.trim();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token {
            Ok(token.to_owned())
        } else {
            Err(Error::file(path, "this is no file with a token"))
        }
    }
}

/// Omits the token, which is a secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = if self.token.is_some() {
            "a token"
        } else {
            "no token"
        };
        write!(f, "Credentials({:?}, {token})", self.cookies)
    }
}

/// A transport for files on web servers. The environment variables `https_proxy`, `http_proxy`, `all_proxy` and
/// `no_proxy` configure a proxy.
#[derive(Debug)]
pub struct WebFiles {
    agent: Agent,
    credentials: Credentials,
    /// The time limit of the transfer of a chunked body.
    body_time: Duration,
    /// Whether a server has sent a chunked body.
    has_sent_chunks: AtomicBool,
    /// The URL of the first request. The token is sent only to its server.
    origin: OnceLock<Uri>,
}

impl WebFiles {
    /// Creates a transport that uses `credentials`. `read_time` is the timeout of a read; `None` means one minute.
    pub fn new(credentials: Credentials, read_time: Option<Duration>) -> Self {
        let config = client::config_builder(read_time)
            // `request` follows redirects itself. It sends secrets only to the servers for which they are meant.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .build();
        Self {
            agent: config.new_agent(),
            credentials,
            body_time: client::body_time(read_time),
            has_sent_chunks: AtomicBool::new(false),
            origin: OnceLock::new(),
        }
    }

    /// Requests a file, or a part of it, and follows redirects. Returns the response, whatever its status, and the URL
    /// that it came from. Fails if the file comes in a coding that is not decoded.
    pub(super) fn request(
        &self,
        url: &str,
        headers: &[(HeaderName, String)],
    ) -> Result<(Uri, Response<Body>), Fault> {
        let mut uri: Uri = url
            .parse()
            .map_err(|_| Fault::Permanent("this is no URL".into()))?;
        for _ in 0..=REDIRECTS {
            let response = self.send_with_limit_if_chunked(&uri, headers)?;
            let status = response.status();
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                let is_file = status.is_success();
                if let Some(fault) =
                    client::content_coding_fault(response.headers()).filter(|_| is_file)
                {
                    return Err(fault);
                }
                return Ok((uri, response));
            }
            uri = redirect_target(&uri, response.headers())?;
        }
        Err(Fault::Permanent(format!("more than {REDIRECTS} redirects")))
    }

    /// Sends a request. A chunked body (`Transfer-Encoding: chunked`) is transferred with a time limit. Without the
    /// limit, a server could send chunk extensions or trailers for ever, and no read would return. The limit is part of
    /// the request, and would also break off long transfers of known length. Therefore, the request is first sent
    /// without the limit. If the body is chunked, the request is sent again with the limit. After the first chunked
    /// body, all requests have the limit.
    fn send_with_limit_if_chunked(
        &self,
        uri: &Uri,
        headers: &[(HeaderName, String)],
    ) -> Result<Response<Body>, Fault> {
        if !self.has_sent_chunks.load(Ordering::Relaxed) {
            let response = self.send(uri, headers, None)?;
            let is_chunked = response.headers().contains_key(TRANSFER_ENCODING);
            if !is_chunked || !response.status().is_success() {
                return Ok(response);
            }
            self.has_sent_chunks.store(true, Ordering::Relaxed);
        }
        self.send(uri, headers, Some(self.body_time))
    }

    /// Sends a request. If `body_time` is set, the transfer of the body breaks off after this time.
    fn send(
        &self,
        uri: &Uri,
        headers: &[(HeaderName, String)],
        body_time: Option<Duration>,
    ) -> Result<Response<Body>, Fault> {
        let request = self.agent.get(uri).config();
        let mut request = request.timeout_recv_body(body_time).build();
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(cookies) = self.cookies(uri) {
            request = request.header(COOKIE, cookies);
        }
        if let Some(token) = self.token(uri) {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request
            .call()
            .map_err(|error| client::fault_from_error(&error))
    }

    /// Returns the cookies that are sent with a request; `None` if there are none.
    fn cookies(&self, uri: &Uri) -> Option<String> {
        let (is_secure, host, path) = https_flag_host_and_path(uri);
        let cookies = &self.credentials.cookies;
        cookies.header(is_secure, host, path, now())
    }

    /// Returns the token that is sent with a request; `None` if there is none for this server.
    fn token(&self, uri: &Uri) -> Option<&str> {
        let origin = self.origin.get_or_init(|| uri.clone());
        let is_origin = (uri.scheme(), uri.authority()) == (origin.scheme(), origin.authority());
        self.credentials.token.as_deref().filter(|_| is_origin)
    }

    /// Converts a response with an error status to a fault.
    pub(super) fn fault_of_response(&self, uri: &Uri, response: &Response<Body>) -> Fault {
        let status = response.status();
        let cause = format!("status {status}");
        match status.as_u16() {
            404 | 410 => Fault::Missing,
            status @ (401 | 403) => {
                let (is_secure, host, path) = https_flag_host_and_path(uri);
                let cookies = &self.credentials.cookies;
                let expired = cookies.expired_message(is_secure, host, path, now());
                // Servers answer with 403 for many reasons. Missing or wrong credentials count as the reason if some
                // were sent, if some have expired, or if the server is known to ask for them.
                let asks_for_login = status == 401
                    || expired.is_some()
                    || self.cookies(uri).is_some()
                    || self.token(uri).is_some()
                    || LOGIN_HOSTS
                        .iter()
                        .any(|known| host.eq_ignore_ascii_case(known));
                match expired {
                    Some(expired) => Fault::Unauthorized(format!("{cause}; {expired}")),
                    None if asks_for_login => Fault::Unauthorized(cause),
                    None => Fault::Refused(cause),
                }
            }
            407 => Fault::Refused(format!("{cause}, by a proxy on the way")),
            429 | 503 => Fault::Busy(
                client::header_text(response.headers(), &RETRY_AFTER).and_then(parse_retry_after),
            ),
            status if client::is_retryable(status) => Fault::Transient(cause),
            _ => Fault::Permanent(cause),
        }
    }
}

impl Transport for WebFiles {
    fn open(&self, url: &str, start: u64) -> Result<BodyRange, Fault> {
        let range = (RANGE, format!("bytes={start}-"));
        let headers = if start > 0 { &[range][..] } else { &[] };
        let (uri, response) = self.request(url, headers)?;
        let start = match response.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT => client::parse_content_range(response.headers())
                .map_or(start, |(part, _)| part.start),
            // The requested part begins at or beyond the end of the file, because the file became shorter or all of it
            // had already arrived.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(Fault::Transient("the file became shorter meanwhile".into()));
            }
            _ => return Err(self.fault_of_response(&uri, &response)),
        };
        let version = client::file_version(response.headers());
        let body = response.into_body();
        Ok(BodyRange {
            start,
            len: body.content_length(),
            version,
            bytes: Box::new(body.into_reader()),
        })
    }
}

/// A transport for files on web servers and on this machine. Paths, and URLs that begin with `file://`, name files on
/// this machine.
#[derive(Debug)]
pub struct AnyFiles {
    web: WebFiles,
}

impl AnyFiles {
    /// Creates a transport that uses `web` for files on web servers.
    pub fn new(web: WebFiles) -> Self {
        Self { web }
    }
}

impl Transport for AnyFiles {
    fn open(&self, url: &str, start: u64) -> Result<BodyRange, Fault> {
        if url.starts_with("http://") || url.starts_with("https://") {
            self.web.open(url, start)
        } else {
            LocalFiles.open(url, start)
        }
    }
}

/// Returns the number of seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

/// Splits a URL into `(is_https, host, path)`.
fn https_flag_host_and_path(uri: &Uri) -> (bool, &str, &str) {
    (
        uri.scheme_str() == Some("https"),
        uri.host().unwrap_or_default(),
        uri.path(),
    )
}

/// Parses the value of `Retry-After` as a number of seconds; `None` for any other value, such as a date.
fn parse_retry_after(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Whether the target of a redirect begins with a scheme, and so is an absolute URL. A scheme elsewhere does not count,
/// because a query may contain another URL.
fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        !scheme.is_empty() && scheme.bytes().all(is_scheme)
    })
}

/// Returns the URL that a redirect leads to.
fn redirect_target(from: &Uri, headers: &HeaderMap) -> Result<Uri, Fault> {
    let to = client::header_text(headers, &LOCATION);
    let to = to.ok_or_else(|| Fault::Permanent("a redirect that leads nowhere".into()))?;
    let (scheme, authority) = (from.scheme_str().unwrap_or("http"), from.authority());
    let authority = authority.map_or("", |authority| authority.as_str());
    let text = match to {
        _ if has_scheme(to) => to.to_owned(),
        _ if to.starts_with("//") => format!("{scheme}:{to}"),
        _ if to.starts_with('/') => format!("{scheme}://{authority}{to}"),
        _ if to.starts_with('?') => format!("{scheme}://{authority}{}{to}", from.path()),
        _ => {
            let directory = from
                .path()
                .rsplit_once('/')
                .map_or("", |(directory, _)| directory);
            format!("{scheme}://{authority}{directory}/{to}")
        }
    };
    let uri: Uri = text
        .parse()
        .map_err(|_| Fault::Permanent("a redirect to what is no URL".into()))?;
    match (scheme, uri.scheme_str()) {
        ("https", Some("http")) => Err(Fault::Refused(
            "a redirect from https to http, which is not followed".into(),
        )),
        (_, Some("http" | "https")) => Ok(uri),
        _ => Err(Fault::Permanent("a redirect to another protocol".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_relative_to_the_file_and_stays_on_the_web() {
        let from: Uri = "https://osm.example:1/a/b.pbf?c".parse().unwrap();
        let to = |location: &str| {
            let headers = [(LOCATION, location.parse().unwrap())];
            redirect_target(&from, &HeaderMap::from_iter(headers)).map(|uri| uri.to_string())
        };
        for (location, expected) in [
            ("https://other.example/x", "https://other.example/x"),
            ("//other.example/x", "https://other.example/x"),
            (
                "/x?back=http://a/b",
                "https://osm.example:1/x?back=http://a/b",
            ),
            (
                "x?back=http://a/b",
                "https://osm.example:1/a/x?back=http://a/b",
            ),
            ("?d", "https://osm.example:1/a/b.pbf?d"),
            ("x:y/z", ""),
            ("http://osm.example/x", ""),
            ("file:///etc/passwd", ""),
            ("ftp://osm.example/x", ""),
            ("data:text/plain,x", ""),
        ] {
            assert_eq!(to(location).unwrap_or_default(), expected, "{location}");
        }
        // A redirect to another host drops the credentials that a URL contains.
        let from: Uri = "http://me:secret@osm.example/a".parse().unwrap();
        let to = |location: &str| {
            let headers = [(LOCATION, location.parse().unwrap())];
            redirect_target(&from, &HeaderMap::from_iter(headers))
                .unwrap()
                .to_string()
        };
        assert_eq!(to("/b"), "http://me:secret@osm.example/b");
        assert_eq!(to("//other.example/b"), "http://other.example/b");
    }
}
