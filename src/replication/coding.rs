//! Removes the gzip coding (`Content-Encoding: gzip`) in which some servers send files, although the request did not
//! ask for it.
//!
//! The content of a file decides whether it is coded. The header `Content-Encoding` cannot decide this, because servers
//! also send it with files that are stored as gzip data.

use super::page::is_html_page;
use crate::io::gunzip;
use crate::net::{Body, Fault, GzipFile};
use std::io::{BufReader, Read};
use std::path::Path;

/// The maximum number of nested codings that are removed.
const CODINGS: usize = 2;
/// The number of decoded bytes that are examined.
const START_LEN: u64 = 1024;

fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Decodes a text that is gzip data. A text that is damaged or longer than `limit` bytes stays as it is.
pub(super) fn decode_text(bytes: &mut Vec<u8>, limit: u64) {
    for _ in 0..CODINGS {
        if !is_gzip(bytes) {
            return;
        }
        let mut text = Vec::new();
        let read = gunzip(bytes.as_slice())
            .take(limit + 1)
            .read_to_end(&mut text);
        match read {
            Ok(len) if len as u64 <= limit => *bytes = text,
            _ => return,
        }
    }
}

/// Returns the first [`START_LEN`] bytes of the content of gzip data, or as many as can be decoded. `data` is the
/// beginning of the gzip data. Returns no bytes for other data.
pub(super) fn decode_gzip_start(data: &[u8]) -> Vec<u8> {
    let mut start = Vec::new();
    if is_gzip(data) {
        // Decoding truncated data ends with an error, after the bytes that can be decoded.
        let _ = gunzip(data).take(START_LEN).read_to_end(&mut start);
    }
    start
}

/// Decodes a file of gzip data if the decoded content is also gzip data, or an HTML page. In both cases, the server has
/// coded the file only to send it. A damaged file stays as it is. Uses temporary files in `directory`. Fails if the
/// result is longer than `limit` bytes.
pub(super) fn decode_file(body: &mut GzipFile, directory: &Path, limit: u64) -> Result<(), Fault> {
    for _ in 0..CODINGS {
        let content = decode_gzip_start(body.head());
        if !is_gzip(&content) && !is_html_page(&content) {
            return Ok(());
        }
        match decode_body(body, directory, limit)? {
            Some(inner) => *body = inner,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Returns the content of a file of gzip data, or `None` if the data is damaged.
fn decode_body(
    body: &mut GzipFile,
    directory: &Path,
    limit: u64,
) -> Result<Option<GzipFile>, Fault> {
    let unwritten = |error: std::io::Error| Fault::write_failure(&error);
    let mut inner = GzipFile::new(directory).map_err(unwritten)?;
    let mut content = gunzip(BufReader::new(body.rewind_file().map_err(unwritten)?));
    let mut buffer = vec![0; 1 << 16];
    loop {
        let Ok(len) = content.read(&mut buffer) else {
            return Ok(None);
        };
        if len == 0 {
            return Ok(Some(inner));
        }
        let added = inner.add(buffer.get(..len).unwrap_or_default());
        added.map_err(unwritten)?;
        if inner.len() > limit {
            return Err(Fault::too_long(limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_coded_text_is_decoded_and_a_damaged_one_is_not() {
        let decoded = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            decode_text(&mut bytes, 100);
            bytes
        };
        let coded = gzip(b"text");
        assert_eq!(decoded(b"text"), b"text");
        assert_eq!(decoded(&coded), b"text");
        assert_eq!(decoded(&gzip(&coded)), b"text");
        let cut = coded.split_at(coded.len() - 3).0;
        assert_eq!(decoded(cut), cut);
        let long = gzip(&[b'x'; 101]);
        assert_eq!(decoded(&long), long);
    }

    #[test]
    fn a_file_that_was_coded_on_the_way_is_decoded() {
        let directory = tempfile::tempdir().unwrap();
        let decoded = |bytes: &[u8], limit: u64| {
            let mut body = GzipFile::new(directory.path()).unwrap();
            body.add(bytes).unwrap();
            decode_file(&mut body, directory.path(), limit)?;
            let mut found = Vec::new();
            body.rewind_file().unwrap().read_to_end(&mut found).unwrap();
            Ok::<_, Fault>(found)
        };
        let file = gzip(b"<osmChange/>");
        let page = b"<!DOCTYPE html>".to_vec();
        let cut = gzip(&file);
        let cut = cut.split_at(cut.len() - 3).0;
        let (once, twice) = (gzip(&file), gzip(&gzip(&file)));
        let (coded_page, plain) = (gzip(&page), b"<osmChange/>".to_vec());
        let cases: [(&[u8], &[u8]); 6] = [
            (&file, &file),
            (&once, &file),
            (&twice, &file),
            (&coded_page, &page),
            (&plain, &plain),
            (cut, cut),
        ];
        for (sent, expected) in cases {
            assert_eq!(decoded(sent, 1000).unwrap(), expected);
        }
        assert!(matches!(
            decoded(&gzip(&file), 10),
            Err(Fault::Permanent(_))
        ));
    }
}
