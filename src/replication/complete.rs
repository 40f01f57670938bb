//! Checks that change files are complete. A server may send an incomplete file while it is writing the file.

use crate::file::BlobStream;
use crate::io::gunzip;
use crate::net::{ChangeForm, Fault};
use std::fmt::Display;
use std::io::{self, BufRead, Read, Write};

/// The number of bytes at the end of the decompressed text that are checked.
const END_LEN: usize = 4096;

/// The maximum size in bytes of the decompressed text of a change file. The daily change file of the planet has two
/// billion bytes.
const MAX_TEXT: u64 = 32 << 30;

/// The number of bytes at the start of the decompressed text that show the format.
const START_LEN: usize = 4096;

/// Checks that gzip data, plain text or PBF is a complete change file. Servers and proxies that remove the content
/// coding send plain text under the name of a gzip file. The content shows the format, and each format has its own mark
/// of the end. Returns the size in bytes of the decompressed file. The error describes what is wrong with the file.
pub(super) fn check_changes(mut bytes: impl BufRead) -> Result<u64, Fault> {
    let form = ChangeForm::detect(bytes.fill_buf().unwrap_or_default());
    match form {
        Some(ChangeForm::Pbf) => checked_pbf_len(bytes),
        Some(ChangeForm::Xml | ChangeForm::Opl | ChangeForm::O5c) => checked_text_len(bytes),
        None => checked_text_len(gunzip(bytes)),
    }
}

/// Checks a change file that is not PBF.
fn checked_text_len(bytes: impl Read) -> Result<u64, Fault> {
    let mut ends = FileEnds::default();
    let copied = io::copy(&mut bytes.take(MAX_TEXT + 1), &mut ends);
    let len = copied.map_err(damage_fault)?;
    if len > MAX_TEXT {
        return Err(length_fault());
    }
    let lack = match ends.missing_end_message() {
        None => return Ok(len),
        Some(_) if len == 0 => "empty".to_owned(),
        Some(lack) => format!("cut short: {lack}"),
    };
    Err(Fault::Incomplete(format!(
        "the change file on the server is {lack}"
    )))
}

/// Checks that a change file in PBF consists of whole blobs.
fn checked_pbf_len(bytes: impl Read) -> Result<u64, Fault> {
    let mut bytes = bytes.take(MAX_TEXT + 1);
    let blobs = BlobStream::new(&mut bytes).map_err(damage_fault)?;
    for blob in blobs {
        blob.map_err(damage_fault)?;
    }
    let left = bytes.limit();
    if left == 0 {
        return Err(length_fault());
    }
    Ok(MAX_TEXT + 1 - left)
}

fn damage_fault(error: impl Display) -> Fault {
    Fault::Incomplete(format!(
        "the change file on the server is incomplete or damaged ({error})"
    ))
}

fn length_fault() -> Fault {
    Fault::Permanent(format!(
        "the text of the change file is longer than {MAX_TEXT} bytes"
    ))
}

/// A writer that keeps only the first and the last bytes of its input.
#[derive(Default)]
struct FileEnds {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl Write for FileEnds {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = START_LEN.saturating_sub(self.start.len());
        self.start.extend(bytes.iter().take(room));
        self.end.extend_from_slice(bytes);
        if self.end.len() > 2 * END_LEN {
            self.end.drain(..self.end.len() - END_LEN);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileEnds {
    /// Returns a message about the missing end of the file; `None` if the file is complete. The start of the file shows
    /// the format. An unknown format counts as XML. PBF that is compressed as a whole counts as complete. If it is
    /// damaged, the damage is found when it is read.
    fn missing_end_message(&self) -> Option<&'static str> {
        let last = self.end.last().copied();
        let (is_whole, lack) = match ChangeForm::detect(&self.start) {
            None | Some(ChangeForm::Xml) => (
                self.ends_with_root_element(),
                "it does not end with </osmChange>",
            ),
            Some(ChangeForm::Opl) => (last == Some(b'\n'), "its last line does not end"),
            Some(ChangeForm::O5c) => (
                last == Some(0xfe),
                "it does not end with the mark of the end (fe)",
            ),
            Some(ChangeForm::Pbf) => (true, ""),
        };
        (!is_whole).then_some(lack)
    }

    /// Whether the text ends with the end tag of the root element of a change file, or with an empty root element.
    /// White space and comments may follow.
    fn ends_with_root_element(&self) -> bool {
        let mut text = self.end.trim_ascii_end();
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
        // A file that was decompressed on the way is accepted, too.
        let plain = check_changes(long.as_bytes());
        assert_eq!(plain, Ok(long.len() as u64));
        let cut = check_changes(&long.as_bytes()[..long.len() / 2]);
        assert!(matches!(cut, Err(Fault::Incomplete(cause)) if cause.contains("cut short")));
        assert!(cause("").contains("empty"));
        assert!(check_changes(b"".as_slice()).is_err());
    }

    #[test]
    fn each_format_of_change_files_has_an_end_of_its_own() {
        let gzip = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let opl = b"# changes\n\nn1 v2 dD\nw-2 v1 dV Nn1\n".as_slice();
        let o5c = b"\xff\xe0\x04o5c2\xff\xfe".as_slice();
        for (whole, cuts) in [
            (opl, [opl.len() - 1, opl.len() - 9, 13]),
            (o5c, [o5c.len() - 1, o5c.len() - 2, 7]),
            (b"# there are no changes\n".as_slice(), [22, 9, 1]),
        ] {
            for bytes in [whole.to_vec(), gzip(whole)] {
                let checked = check_changes(bytes.as_slice());
                assert_eq!(checked, Ok(whole.len() as u64), "{whole:?}");
            }
            for cut in cuts {
                for bytes in [whole[..cut].to_vec(), gzip(&whole[..cut])] {
                    let checked = check_changes(bytes.as_slice());
                    let is_cut = matches!(&checked, Err(Fault::Incomplete(cause)) if cause.contains("cut short"));
                    assert!(is_cut, "{whole:?} {cut}: {checked:?}");
                }
            }
        }
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/table-version-1.osm.pbf"
        );
        let pbf = std::fs::read(path).unwrap();
        assert_eq!(check_changes(pbf.as_slice()), Ok(pbf.len() as u64));
        for cut in [10, pbf.len() / 2, pbf.len() - 1] {
            let checked = check_changes(&pbf[..cut]);
            assert!(matches!(checked, Err(Fault::Incomplete(_))), "{cut}");
        }
        // A state file is not accepted as a change file.
        let state = b"#Sat\nsequenceNumber=1\ntimestamp=2020-01-01T00\\:00\\:00Z\n";
        assert!(check_changes(state.as_slice()).is_err());
        assert!(check_changes(gzip(state).as_slice()).is_err());
    }
}
