//! HTML pages that servers send instead of files.

use crate::net::Fault;

/// Whether a file that begins with `start` is an HTML page.
pub(super) fn is_html_page(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let start = start.trim_ascii_start();
    let is_element = start.starts_with(b"<");
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    is_element && (text.starts_with("<!") || text.contains("<html"))
}

/// Returns the fault of a server that sends an HTML page, which begins with `start`, instead of a file.
pub(super) fn html_page_fault(start: &[u8]) -> Fault {
    if asks_for_login(start) {
        Fault::Unauthorized("it sent a page that asks to sign in".into())
    } else {
        Fault::Page
    }
}

/// Whether an HTML page asks the user to sign in: it has a field for a password, or its title or heading says so.
fn asks_for_login(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let has_field = ["\"password\"", "'password'", "type=password"]
        .iter()
        .any(|field| text.contains(field));
    let says_so = ["title", "h1", "h2"]
        .iter()
        .filter_map(|name| content_of(&text, name))
        .any(|content| {
            let words = ["sign in", "sign-in", "signin", "log in", "log-in", "login"];
            words.iter().any(|words| content.contains(words))
        });
    has_field || says_so
}

/// Returns the content of the first element with the given name in a page.
fn content_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, after) = text.split_once(&format!("<{name}"))?;
    let (_, content) = after.split_once('>')?;
    content.split("</").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_asks_for_a_login_if_it_has_a_form_for_it_or_says_so() {
        for login in [
            "<!DOCTYPE html><title>Sign in</title>",
            "<html><head><title lang='en'>My OSM login</title>",
            "<!doctype html><form><input name=p type=\"password\">",
            "<?xml version='1.0'?><html><h1>Please log in</h1>",
        ] {
            assert!(is_html_page(login.as_bytes()), "{login}");
            assert!(
                matches!(html_page_fault(login.as_bytes()), Fault::Unauthorized(_)),
                "{login}"
            );
        }
        for other in [
            "<!DOCTYPE html><title>Not found</title><a href='/login'>Log in</a>",
            " \n<HTML><body>404</body>",
            "\u{feff}<!DOCTYPE html>",
            "<html>",
        ] {
            assert!(is_html_page(other.as_bytes()), "{other}");
            assert_eq!(html_page_fault(other.as_bytes()), Fault::Page, "{other}");
        }
        for file in ["", "sequenceNumber=1\n", "<osmChange>", "\u{1f}\u{8b}"] {
            assert!(!is_html_page(file.as_bytes()), "{file}");
        }
    }
}
