//! Checks that change files are complete. A server may send an incomplete file while it is writing the file.

use crate::io::gunzip;
use crate::net::{Fault, may_be_changes};
use std::io::{self, BufRead, Read, Write};

/// The number of bytes at the end of the decompressed text that are checked.
const END_LEN: usize = 4096;

/// The maximum size in bytes of the decompressed text of a change file. The daily change file of the planet has two
/// billion bytes.
const MAX_TEXT: u64 = 32 << 30;

/// Checks that gzip data or plain text is a complete change file. Servers and proxies that decode the encoding of the
/// content send plain text under the name of a gzip file. Returns the size in bytes of the text. The error describes what
/// is wrong with the file.
pub(super) fn check_changes(mut bytes: impl BufRead) -> Result<u64, Fault> {
    let mut end = End::default();
    let is_text = bytes.fill_buf().is_ok_and(may_be_changes);
    let copied = if is_text {
        io::copy(&mut bytes.take(MAX_TEXT + 1), &mut end)
    } else {
        io::copy(&mut gunzip(bytes).take(MAX_TEXT + 1), &mut end)
    };
    let len = copied.map_err(|error| {
        Fault::Incomplete(format!(
            "the change file on the server is incomplete or damaged ({error})"
        ))
    })?;
    match (len, end.is_of_changes()) {
        (MAX_TEXT.., _) => Err(Fault::Permanent(format!(
            "the text of the change file is longer than {MAX_TEXT} bytes"
        ))),
        (_, true) => Ok(len),
        (0, false) => Err(Fault::Incomplete(
            "the change file on the server is empty".into(),
        )),
        (_, false) => Err(Fault::Incomplete(
            "the change file on the server is cut short: it does not end with </osmChange>".into(),
        )),
    }
}

/// A writer that keeps only the last bytes of its input.
#[derive(Default)]
struct End(Vec<u8>);

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * END_LEN {
            self.0.drain(..self.0.len() - END_LEN);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl End {
    /// Whether the text ends with the end tag of the root element of a change file, or with an empty root element.
    /// White space and comments may follow.
    fn is_of_changes(&self) -> bool {
        let mut text = self.0.trim_ascii_end();
        while let Some(comment) = text.strip_suffix(b"-->") {
            let Some(start) = comment.windows(4).rposition(|bytes| bytes == b"<!--") else {
                return false;
            };
            text = text.split_at(start).0.trim_ascii_end();
        }
        let start = text.iter().rposition(|byte| *byte == b'<');
        let tag = text.split_at(start.unwrap_or(text.len())).1;
        tag.starts_with(b"</osmChange") && tag.ends_with(b">")
            || tag.starts_with(b"<osmChange") && tag.ends_with(b"/>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    #[test]
    fn the_end_of_the_root_element_is_the_end_of_a_change_file() {
        let checked = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            check_changes(encoder.finish().unwrap().as_slice())
        };
        let cause = |text: &str| match checked(text) {
            Err(Fault::Incomplete(cause)) => cause,
            other => panic!("{other:?}"),
        };
        let long = format!(
            "<osmChange>{}</osmChange>\n",
            "<modify></modify>".repeat(9999)
        );
        for whole in [
            "<?xml version='1.0'?><osmChange version=\"0.6\" generator=\"x\"/>",
            "<osmChange></osmChange >\r\n",
            "<osmChange><modify/></osmChange> <!-- <node/> --> <!-- -->\n",
            &long,
        ] {
            assert_eq!(checked(whole), Ok(whole.len() as u64), "{whole}");
        }
        for cut in [
            "<?xml version='1.0'?>",
            "<osmChange>",
            "<osmChange><modify><node id='1'/>",
            "<osmChange><modify/></osmChan",
            "<osmChange><modify/></osmChange",
            "<osmChange><modify/></osmChange> -->",
            &long[..long.len() / 2],
        ] {
            assert!(cause(cut).contains("cut short"), "{cut}");
        }
        // Text that was decompressed on the way is as good.
        let plain = check_changes(long.as_bytes());
        assert_eq!(plain, Ok(long.len() as u64));
        let cut = check_changes(&long.as_bytes()[..long.len() / 2]);
        assert!(matches!(cut, Err(Fault::Incomplete(cause)) if cause.contains("cut short")));
        assert!(cause("").contains("empty"));
        assert!(check_changes(b"".as_slice()).is_err());
    }
}
