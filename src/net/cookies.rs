//! Cookie jars in the Netscape format, which browsers, curl and other programs write.

use crate::error::{Error, FileResult, Result};
use crate::osm::format_timestamp;
use std::fmt;
use std::path::Path;

/// A cookie.
struct Cookie {
    domain: String,
    includes_subdomains: bool,
    path: String,
    is_secure: bool,
    /// The expiry time in seconds since 1970; `None` for a session cookie.
    expires: Option<i64>,
    name: String,
    value: String,
}

/// The cookies of a file.
#[derive(Default)]
pub struct CookieJar {
    cookies: Vec<Cookie>,
}

/// Omits the values, which are secrets.
impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CookieJar({} cookies)", self.cookies.len())
    }
}

impl Cookie {
    fn parse(line: &str) -> Option<Self> {
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        let fields: Vec<&str> = line.splitn(7, '\t').collect();
        let [domain, subdomains, path, secure, expires, name, value] = fields[..] else {
            return None;
        };
        Some(Self {
            domain: domain.trim_start_matches('.').to_ascii_lowercase(),
            includes_subdomains: subdomains == "TRUE" || domain.starts_with('.'),
            path: path.to_owned(),
            is_secure: secure == "TRUE",
            expires: expires.parse().ok().filter(|expires| *expires > 0),
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }

    /// Whether the cookie applies to a request for `path` on `host`. `is_secure` says whether the request is encrypted.
    /// The expiry time is not checked.
    fn applies_to(&self, is_secure: bool, host: &str, path: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let is_below = host
            .strip_suffix(&self.domain)
            .is_some_and(|rest| rest.is_empty() || self.includes_subdomains && rest.ends_with('.'));
        let is_in = path.strip_prefix(&self.path).is_some_and(|rest| {
            rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/')
        });
        is_below && is_in && (is_secure || !self.is_secure)
    }
}

impl CookieJar {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line of it is no cookie. The message does not quote the line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).for_path(path, "cannot read")?;
        Self::parse(&text).map_err(|line| {
            let cause = format!(
                "line {line} is no cookie of a cookie jar (seven fields with tabs between them)"
            );
            Error::file(path, cause)
        })
    }

    /// Parses the content of a cookie jar. The error is the number of the first line that is no cookie, counted from 1.
    fn parse(text: &str) -> Result<Self, usize> {
        let is_cookie = |line: &str| {
            !line.trim().is_empty() && (!line.starts_with('#') || line.starts_with("#HttpOnly_"))
        };
        let lines = (1..).zip(text.lines()).filter(|(_, line)| is_cookie(line));
        let cookies = lines.map(|(number, line)| Cookie::parse(line).ok_or(number));
        Ok(Self {
            cookies: cookies.collect::<Result<_, usize>>()?,
        })
    }

    /// Returns the value of the header `Cookie` for a request at the time `now`; `None` if no cookie applies.
    pub(super) fn header(
        &self,
        is_secure: bool,
        host: &str,
        path: &str,
        now: i64,
    ) -> Option<String> {
        let fresh = self.cookies.iter().filter(|cookie| {
            cookie.applies_to(is_secure, host, path)
                && cookie.expires.is_none_or(|expires| expires > now)
        });
        let pairs: Vec<String> = fresh
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Returns a message about a cookie that applies to a request but has expired; `None` if there is none.
    pub(super) fn expired_message(
        &self,
        is_secure: bool,
        host: &str,
        path: &str,
        now: i64,
    ) -> Option<String> {
        let mut old = self.cookies.iter().filter_map(|cookie| {
            let expires = cookie.expires.filter(|expires| *expires <= now)?;
            cookie
                .applies_to(is_secure, host, path)
                .then_some((cookie, expires))
        });
        let (cookie, expires) = old.next()?;
        Some(format!(
            "the cookie {} expired at {}",
            cookie.name,
            format_timestamp(expires)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JAR: &str = "# Netscape HTTP Cookie File\n\
        \n\
        osm.example\tFALSE\t/\tFALSE\t0\tsession\ta\n\
        #HttpOnly_.osm.example\tTRUE\t/extracts\tTRUE\t2000\ttoken\tb=c d\n\
        other.example\tTRUE\t/\tFALSE\t2000\tother\tx\n";

    #[test]
    fn cookies_go_to_the_hosts_and_paths_that_they_are_for() {
        let jar = CookieJar::parse(JAR).unwrap();
        let header = |is_secure, host, path, now| jar.header(is_secure, host, path, now);
        let both = Some("session=a; token=b=c d".to_owned());
        assert_eq!(header(true, "osm.example", "/extracts/eu", 1000), both);
        assert_eq!(header(true, "OSM.example", "/extracts", 1000), both);
        let session = Some("session=a".to_owned());
        assert_eq!(header(false, "osm.example", "/extracts", 1000), session);
        assert_eq!(header(true, "osm.example", "/extracts2", 1000), session);
        assert_eq!(header(true, "osm.example", "/extracts", 2000), session);
        let token = Some("token=b=c d".to_owned());
        assert_eq!(
            header(true, "download.osm.example", "/extracts/", 1000),
            token
        );
        assert_eq!(header(true, "notosm.example", "/extracts", 1000), None);
        assert_eq!(
            jar.expired_message(true, "osm.example", "/extracts", 2000)
                .unwrap(),
            "the cookie token expired at 1970-01-01T00:33:20Z"
        );
        assert_eq!(jar.expired_message(true, "osm.example", "/", 2000), None);
        assert_eq!(CookieJar::parse("a b c\n").unwrap_err(), 1);
        assert!(!format!("{jar:?}").contains("b=c"));
    }
}
