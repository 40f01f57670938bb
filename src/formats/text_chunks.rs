//! Cutting a text into text_chunks that can be parsed each for itself.

use super::format::{TextFormat, decompressed};
use crate::error::{Error, Result};
use crate::io::Input;
use memchr::{memchr, memchr_iter, memchr3, memmem, memrchr};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes that a chunk has at least, but for the last one of a text.
const PORTION: usize = 512 << 10;
/// Bytes of text that may pass without a place where it can be cut: what takes more does not fit a block.
const MOST: usize = 24 << 20;

/// Some objects of a text, and the markup between and around them.
#[derive(Debug, Default)]
pub(super) struct TextChunk {
    /// What has to stand before the text so that it can be parsed, and the text.
    pub bytes: Vec<u8>,
    /// How long the former is.
    pub prefix: usize,
    /// Where in the file the text begins: lines and, in the last of them, bytes before it.
    before: (u64, u64),
    /// Whether the file ends with it.
    pub is_last: bool,
}

impl TextChunk {
    /// Whether the file begins with it.
    pub(super) fn is_first(&self) -> bool {
        self.before == (0, 0)
    }

    /// Line and column, from 1, of a place in `bytes`.
    pub(super) fn position(&self, at: usize) -> (u64, u64) {
        let text = self.bytes.get(self.prefix..at).unwrap_or_default();
        let (lines, column) = moved(self.before, text);
        (lines + 1, column + 1)
    }

    /// An error at a place in `bytes`.
    pub(super) fn error(&self, path: &Path, at: usize, cause: String) -> Error {
        let (line, column) = self.position(at);
        Error::ChangeFile {
            path: path.to_owned(),
            line,
            column,
            cause,
        }
    }
}

/// Lines, and bytes in the last of them, behind some text.
fn moved((lines, column): (u64, u64), text: &[u8]) -> (u64, u64) {
    match memrchr(b'\n', text) {
        Some(last) => {
            let breaks = text.iter().filter(|byte| **byte == b'\n').count();
            (lines + breaks as u64, (text.len() - last - 1) as u64)
        }
        None => (lines, column + text.len() as u64),
    }
}

/// The text_chunks of a text, from its start to its end.
pub(super) struct TextChunks {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    cutter: Cutter,
    /// What was read and not yet cut off.
    pending: Vec<u8>,
    /// Where it begins.
    before: (u64, u64),
    is_done: bool,
}

impl TextChunks {
    pub(super) fn new(input: &Input, format: TextFormat) -> Result<Self> {
        Ok(Self {
            path: input.path().to_owned(),
            reader: decompressed(input.clone())?,
            cutter: match format {
                TextFormat::Opl => Cutter::Lines,
                TextFormat::Osm | TextFormat::OsmChange => Cutter::Xml(XmlCutter::new(format)),
            },
            pending: Vec::new(),
            before: (0, 0),
            is_done: false,
        })
    }

    fn read_portion(&mut self) -> Result<TextChunk> {
        let mut ends = false;
        loop {
            if !ends {
                ends = !self.read_more()?;
            }
            if ends && self.pending.len() <= MOST {
                let (text, prefix) = (std::mem::take(&mut self.pending), self.cutter.prefix());
                self.is_done = true;
                return Ok(self.chunk(text, prefix));
            }
            let prefix = self.cutter.prefix();
            let cut = self.cutter.cut(&self.pending);
            if let Some(cut) = cut.filter(|cut| *cut <= MOST) {
                let rest = self.pending.split_off(cut);
                let text = std::mem::replace(&mut self.pending, rest);
                return Ok(self.chunk(text, prefix));
            }
            if self.pending.len() > MOST {
                let cause = format!("an object takes more than {} MB of text", MOST >> 20);
                self.pending.clear();
                return Err(self.failed(cause));
            }
        }
    }

    /// Reads as much as a chunk has, or half as much as there is; `false` at the end of the file.
    fn read_more(&mut self) -> Result<bool> {
        let wanted = PORTION.saturating_sub(self.pending.len());
        let wanted = wanted.max(self.pending.len() / 2).max(1 << 16);
        let mut piece = self.reader.by_ref().take(wanted as u64);
        match piece.read_to_end(&mut self.pending) {
            Ok(count) => Ok(count == wanted),
            // What the input itself says names the file already.
            Err(error) => Err(error
                .downcast::<Error>()
                .unwrap_or_else(|error| self.failed(error.to_string()))),
        }
    }

    fn chunk(&mut self, text: Vec<u8>, prefix: String) -> TextChunk {
        let before = self.before;
        self.before = moved(before, &text);
        let mut bytes = prefix.into_bytes();
        let prefix = bytes.len();
        match prefix {
            0 => bytes = text,
            _ => bytes.extend_from_slice(&text),
        }
        TextChunk {
            bytes,
            prefix,
            before,
            is_last: self.is_done,
        }
    }

    /// An error at the end of what was read.
    fn failed(&self, cause: String) -> Error {
        let (lines, column) = moved(self.before, &self.pending);
        Error::ChangeFile {
            path: self.path.clone(),
            line: lines + 1,
            column: column + 1,
            cause,
        }
    }
}

impl Iterator for TextChunks {
    type Item = Result<TextChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let chunk = self.read_portion();
        self.is_done |= chunk.is_err();
        Some(chunk)
    }
}

/// Finds places where a text can be cut.
enum Cutter {
    /// Behind every line.
    Lines,
    /// Before every object.
    Xml(XmlCutter),
}

impl Cutter {
    /// What has to stand before the text that comes next.
    fn prefix(&self) -> String {
        match self {
            Self::Lines => String::new(),
            Self::Xml(cutter) => cutter.prefix(),
        }
    }

    /// Where to cut a text; what is behind is the start of the next.
    fn cut(&mut self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Lines => memrchr(b'\n', text).map(|at| at + 1),
            Self::Xml(cutter) => cutter.cut(text),
        }
    }
}

/// Follows the markup of a document as far as it takes to tell where an object begins. Whether a document
/// is well-formed is for the parser to say.
struct XmlCutter {
    format: TextFormat,
    /// How far the text was looked at.
    at: usize,
    /// Elements that are open there.
    depth: usize,
    /// The section of a change file that is open there.
    section: Option<&'static str>,
    /// The last place where the text can be cut, and the section there.
    cut: Option<(usize, Option<&'static str>)>,
    /// The section where the text begins, unless it is the start of the file.
    start: Option<Option<&'static str>>,
}

/// The sections of a change file.
const SECTIONS: [&str; 3] = ["create", "modify", "delete"];

impl XmlCutter {
    const fn new(format: TextFormat) -> Self {
        Self {
            format,
            at: 0,
            depth: 0,
            section: None,
            cut: None,
            start: None,
        }
    }

    fn prefix(&self) -> String {
        match self.start {
            None => String::new(),
            Some(None) => format!("<{}>", self.format.root()),
            Some(Some(section)) => format!("<{}><{section}>", self.format.root()),
        }
    }

    fn cut(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(end) = self.markup(text) {
            self.at = end;
        }
        let (cut, section) = self.cut.take()?;
        self.start = Some(section);
        self.at -= cut;
        Some(cut)
    }

    /// Takes in the next piece of markup; returns where it ends, where all of it is there.
    fn markup(&mut self, text: &[u8]) -> Option<usize> {
        let rest = text.get(self.at..)?;
        let Some(start) = memchr(b'<', rest) else {
            self.at = text.len();
            return None;
        };
        self.at += start;
        let rest = text.get(self.at..)?;
        // What may begin one of these has to be there as a whole.
        if rest.len() < 9 {
            return None;
        }
        // Where the end is, behind what begins it.
        let until = |start: &[u8], end: &[u8]| {
            let behind = rest.get(start.len()..)?;
            Some(self.at + start.len() + memmem::find(behind, end)? + end.len())
        };
        match rest {
            [b'<', b'!', b'-', b'-', ..] => until(b"<!--", b"-->"),
            [b'<', b'?', ..] => until(b"<?", b"?>"),
            _ if rest.starts_with(b"<![CDATA[") => until(b"<![CDATA[", b"]]>"),
            [b'<', b'!', ..] => {
                let end = memchr(b'>', rest)?;
                match memchr(b'[', rest).filter(|subset| *subset < end) {
                    // The declarations of a DOCTYPE.
                    Some(_) => until(b"<!", b"]>"),
                    None => Some(self.at + end + 1),
                }
            }
            [b'<', b'/', ..] => {
                let end = until(b"</", b">")?;
                self.depth = self.depth.saturating_sub(1);
                if self.depth <= 1 {
                    self.section = None;
                }
                Some(end)
            }
            _ => {
                let (name, len, is_empty) = start_tag(rest)?;
                self.element(name, is_empty);
                Some(self.at + len)
            }
        }
    }

    fn element(&mut self, name: &[u8], is_empty: bool) {
        let is_change = self.format == TextFormat::OsmChange;
        let is_among_objects = match is_change {
            true => self.depth == 2 && self.section.is_some(),
            false => self.depth == 1,
        };
        if is_among_objects && matches!(name, b"node" | b"way" | b"relation") && self.at > 0 {
            self.cut = Some((self.at, self.section));
        }
        if is_empty {
            return;
        }
        if is_change && self.depth == 1 {
            let mut sections = SECTIONS.into_iter();
            self.section = sections.find(|section| section.as_bytes() == name);
        }
        self.depth += 1;
    }
}

/// The name of the element whose start tag a text begins with, the length of the tag, and whether it is the
/// end of the element, too.
fn start_tag(text: &[u8]) -> Option<(&[u8], usize, bool)> {
    let name_end = text.iter().position(|byte| b" \t\r\n/>".contains(byte))?;
    let name = text.get(1..name_end)?;
    let mut at = name_end;
    loop {
        let rest = text.get(at..)?;
        let found = memchr3(b'>', b'"', b'\'', rest)?;
        let byte = *rest.get(found)?;
        at += found + 1;
        if byte == b'>' {
            let is_empty = text.get(at.checked_sub(2)?) == Some(&b'/');
            return Some((name, at, is_empty));
        }
        at += memchr(byte, text.get(at..)?)? + 1;
    }
}

/// Lines of a text, each with the place where it begins.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let ends = memchr_iter(b'\n', text).chain([text.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let line = (start, text.get(start..end).unwrap_or_default());
        start = end + 1;
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text_chunks of a text of which the cutter sees `step` bytes more at a time.
    fn text_chunks(text: &str, format: TextFormat, step: usize) -> Vec<String> {
        let mut cutter = XmlCutter::new(format);
        let (mut found, mut start, mut end) = (Vec::new(), 0, 0);
        while end < text.len() {
            end = text.len().min(end + step);
            let prefix = cutter.prefix();
            if let Some(cut) = cutter.cut(&text.as_bytes()[start..end]) {
                found.push(prefix + &text[start..start + cut]);
                start += cut;
            }
        }
        found.push(cutter.prefix() + &text[start..]);
        found
    }

    #[test]
    fn text_is_cut_before_objects_and_nowhere_else() {
        let text = "<?xml version='1.0'?><!-- <node/> --><osmChange x='>'><create>\
            <node id='1' lat='>/>'/><![CDATA[<node/>]]><way id='2'><nd ref='1'/><node/></way>\
            </create><bounds/><other><node/></other><delete><relation id=\"'>\"/></delete></osmChange>";
        for step in 1..text.len() {
            let text_chunks = text_chunks(text, TextFormat::OsmChange, step);
            for chunk in text_chunks.iter().skip(1) {
                let rest = chunk.strip_prefix("<osmChange>").unwrap();
                let begins = [
                    "<create><node id",
                    "<create><way id",
                    "<delete><relation id",
                ];
                assert!(
                    begins.iter().any(|start| rest.starts_with(start)),
                    "{step}: {chunk}"
                );
            }
        }
        assert_eq!(text_chunks(text, TextFormat::OsmChange, 1).len(), 4);
        let text = "<osm><node id='1'/><way id='2'><nd/></way><foo><node/></foo></osm>";
        assert_eq!(
            text_chunks(text, TextFormat::Osm, 1),
            [
                "<osm>",
                "<osm><node id='1'/>",
                "<osm><way id='2'><nd/></way><foo><node/></foo></osm>"
            ]
        );
    }
}
