//! Cuts text documents into chunks that can be parsed independently.

use super::change_set::ChangeSet;
use super::encoding::utf8_reader;
use crate::error::{Error, Result};
use crate::io::{Input, count_remaining_bytes};
use crate::osm::TextFormat;
use memchr::{memchr, memchr_iter, memchr3, memmem, memrchr};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The number of bytes that must be buffered before a chunk is cut off. Fewer bytes suffice at the end of a document.
const MIN_BUFFERED: usize = 512 << 10;
/// The maximum length in bytes of a chunk. Longer text without a position where it can be cut is an error.
const MAX_CHUNK_LEN: usize = 24 << 20;

/// Damage in a chunk.
pub(super) struct TextDamage {
    /// The offset of the cause in the bytes of the chunk.
    pub at: usize,
    /// The offset at which the loss begins: the start of the damaged object or, outside objects, of the markup that was
    /// read last.
    pub lost: usize,
    pub cause: String,
    /// The objects before the damage.
    pub objects: Box<ChangeSet>,
}

/// A part of a text document: some objects, and the markup between and around them.
#[derive(Debug, Default)]
pub(super) struct TextChunk {
    /// The start tags that are needed to parse the chunk on its own, followed by the text of the chunk.
    pub bytes: Vec<u8>,
    /// The length in bytes of the start tags that precede the text of the chunk in `bytes`.
    pub prefix: usize,
    /// The position of the chunk in the file: the number of line breaks before the chunk, and the number of bytes
    /// between the last line break and the chunk.
    before: (u64, u64),
    /// The number of bytes of text before the chunk.
    start: u64,
    /// Whether the file ends with this chunk.
    pub is_last: bool,
}

impl TextChunk {
    /// Whether the file begins with this chunk.
    pub(super) fn is_first(&self) -> bool {
        self.before == (0, 0)
    }

    /// Returns the line and the column in the file for offset `at` in `bytes`. Both are counted from 1.
    pub(super) fn position(&self, at: usize) -> (u64, u64) {
        let at = at.clamp(self.prefix, self.bytes.len());
        let (lines, column) = position_after(self.before, &self.bytes[self.prefix..at]);
        (lines + 1, column + 1)
    }

    /// Returns the offset in the text of the file for offset `at` in `bytes`.
    pub(super) fn file_offset(&self, at: usize) -> u64 {
        self.start + at.saturating_sub(self.prefix) as u64
    }

    /// Returns an error at offset `at` in `bytes`. Line breaks that `cause` quotes from the text are escaped.
    pub(super) fn error(&self, path: &Path, at: usize, cause: String) -> Error {
        let cause = cause.replace('\n', "\\n").replace('\r', "\\r");
        Error::in_text(path, self.position(at), cause)
    }
}

/// Returns the position after `text`, which begins at the given position. A position is a number of line breaks, and
/// the number of bytes after the last line break.
fn position_after((lines, column): (u64, u64), text: &[u8]) -> (u64, u64) {
    match memrchr(b'\n', text) {
        Some(last) => {
            let breaks = text.iter().filter(|byte| **byte == b'\n').count();
            (lines + breaks as u64, (text.len() - last - 1) as u64)
        }
        None => (lines, column + text.len() as u64),
    }
}

/// The chunks of a text document, in file order.
pub(super) struct TextChunks {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    cutter: Cutter,
    /// Text that was read and is not in a chunk yet.
    pending: Vec<u8>,
    /// The position of `pending` in the file.
    before: (u64, u64),
    /// The number of bytes of text before `pending`.
    start: u64,
    is_done: bool,
    /// Whether the text before damage is returned as the last chunk. The damage is then stored in `failure`.
    salvages: bool,
    failure: Option<(Error, u64)>,
}

impl TextChunks {
    pub(super) fn new(input: &Input, format: TextFormat) -> Result<Self> {
        Ok(Self {
            path: input.path().to_owned(),
            reader: utf8_reader(input)?,
            cutter: match format {
                TextFormat::Osm | TextFormat::OsmChange => Cutter::Xml(XmlCutter::new(format)),
                _ => Cutter::Lines,
            },
            pending: Vec::new(),
            before: (0, 0),
            start: 0,
            is_done: false,
            salvages: false,
            failure: None,
        })
    }

    /// Makes the iterator return the text before damage as the last chunk, instead of an error.
    pub(super) const fn enable_salvage(&mut self) {
        self.salvages = true;
    }

    /// Removes and returns the damage that ends the last chunk, and the offset of the end of that chunk in the text.
    /// [`enable_salvage`](Self::enable_salvage) must have been called.
    pub(super) fn take_failure(&mut self) -> Option<(Error, u64)> {
        self.failure.take()
    }

    /// Returns the number of bytes of text that were read.
    pub(super) const fn bytes_read(&self) -> u64 {
        self.start
    }

    /// Returns the pending text, which ends at `damage`, as the last chunk. Leaves out a line that the damage cuts off.
    fn last_chunk(&mut self, damage: Option<Error>) -> TextChunk {
        let mut text = std::mem::take(&mut self.pending);
        let (start, read) = (self.start, text.len() as u64);
        if damage.is_some() && matches!(self.cutter, Cutter::Lines) {
            text.truncate(memrchr(b'\n', &text).map_or(0, |at| at + 1));
        }
        self.failure = damage.map(|error| (error, start + text.len() as u64));
        let prefix = self.cutter.prefix();
        self.is_done = true;
        let chunk = self.make_chunk(text, prefix);
        self.start = start + read;
        chunk
    }

    fn read_chunk(&mut self) -> Result<TextChunk> {
        let mut ends = false;
        loop {
            if !ends {
                ends = match self.read_more() {
                    Ok(is_more) => !is_more,
                    Err(error @ Error::Text { .. }) if self.salvages => {
                        return Ok(self.last_chunk(Some(error)));
                    }
                    Err(error) => return Err(error),
                };
            }
            if ends && self.pending.len() <= MAX_CHUNK_LEN {
                return Ok(self.last_chunk(None));
            }
            let prefix = self.cutter.prefix();
            let cut = self.cutter.find_cut(&self.pending);
            if let Some(cut) = cut.filter(|cut| *cut <= MAX_CHUNK_LEN) {
                let rest = self.pending.split_off(cut);
                let text = std::mem::replace(&mut self.pending, rest);
                return Ok(self.make_chunk(text, prefix));
            }
            if self.pending.len() > MAX_CHUNK_LEN {
                let cause = format!(
                    "an object takes more than {} MB of text",
                    MAX_CHUNK_LEN >> 20
                );
                let len = self.pending.len() as u64;
                self.pending.clear();
                let failed = self.error_at_end(cause);
                if self.salvages {
                    let chunk = self.last_chunk(Some(failed));
                    self.start += len + count_remaining_bytes(&mut self.reader);
                    return Ok(chunk);
                }
                return Err(failed);
            }
        }
    }

    /// Reads until [`MIN_BUFFERED`] bytes are pending. Reads at least 64 KiB, and at least half as many bytes as are
    /// pending already. Returns `false` at the end of the file.
    fn read_more(&mut self) -> Result<bool> {
        let wanted = MIN_BUFFERED.saturating_sub(self.pending.len());
        let wanted = wanted.max(self.pending.len() / 2).max(1 << 16);
        let mut part = self.reader.by_ref().take(wanted as u64);
        match part.read_to_end(&mut self.pending) {
            Ok(count) => Ok(count == wanted),
            // If the input cannot be read, the error already is an `Error` that names the file.
            Err(error) => Err(error
                .downcast::<Error>()
                .unwrap_or_else(|error| self.error_at_end(error.to_string()))),
        }
    }

    fn make_chunk(&mut self, text: Vec<u8>, prefix: String) -> TextChunk {
        let (before, start) = (self.before, self.start);
        self.before = position_after(before, &text);
        self.start += text.len() as u64;
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
            start,
            is_last: self.is_done,
        }
    }

    /// Returns an error at the end of the text that was read so far.
    fn error_at_end(&self, cause: String) -> Error {
        let (lines, column) = position_after(self.before, &self.pending);
        Error::in_text(&self.path, (lines + 1, column + 1), cause)
    }
}

impl Iterator for TextChunks {
    type Item = Result<TextChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let chunk = self.read_chunk();
        self.is_done |= chunk.is_err();
        Some(chunk)
    }
}

/// The rule for the positions at which a text document can be cut.
enum Cutter {
    /// Cuts after a line break.
    Lines,
    /// Cuts before an object.
    Xml(XmlCutter),
}

impl Cutter {
    /// Returns the start tags that are missing in the text after the last cut. If they precede this text, it can be
    /// parsed on its own.
    fn prefix(&self) -> String {
        match self {
            Self::Lines => String::new(),
            Self::Xml(cutter) => cutter.prefix(),
        }
    }

    /// Returns the last offset at which `text` can be cut; `None` if there is none. In the next call, the text must
    /// begin with `text[offset..]` or, after `None`, with the whole of `text`.
    fn find_cut(&mut self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Lines => memrchr(b'\n', text).map(|at| at + 1),
            Self::Xml(cutter) => cutter.find_cut(text),
        }
    }
}

/// A scanner that finds the starts of objects in an XML document. It does not check that the document is well-formed,
/// because the parser does.
struct XmlCutter {
    format: TextFormat,
    /// The offset up to which the text was scanned.
    at: usize,
    /// The number of elements that are open at offset `at`.
    depth: usize,
    /// The section of a change file that is open at offset `at`.
    section: Option<&'static str>,
    /// The last offset at which the text can be cut, and the section that is open there.
    cut: Option<(usize, Option<&'static str>)>,
    /// The section that is open at the start of the text; `Some(None)` outside sections, and `None` at the start of the
    /// file.
    start: Option<Option<&'static str>>,
}

/// The names of the sections of a change file.
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
            Some(None) => format!("<{}>", self.format.facts().root),
            Some(Some(section)) => format!("<{}><{section}>", self.format.facts().root),
        }
    }

    fn find_cut(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(end) = self.find_markup_end(text) {
            self.at = end;
        }
        let (cut, section) = self.cut.take()?;
        self.start = Some(section);
        self.at -= cut;
        Some(cut)
    }

    /// Reads the next part of markup and returns the offset of its end; `None` if it is not complete yet.
    fn find_markup_end(&mut self, text: &[u8]) -> Option<usize> {
        let rest = text.get(self.at..)?;
        let Some(start) = memchr(b'<', rest) else {
            self.at = text.len();
            return None;
        };
        self.at += start;
        let rest = text.get(self.at..)?;
        // Waits for nine bytes, which is the length of `<![CDATA[`, the longest opening below.
        if rest.len() < 9 {
            return None;
        }
        // Returns the end of markup that begins with `start` and ends with `end`.
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
                    // A DOCTYPE with declarations in brackets ends with `]>`.
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
                let (name, len, is_empty) = parse_start_tag(rest)?;
                self.enter_element(name, is_empty);
                Some(self.at + len)
            }
        }
    }

    fn enter_element(&mut self, name: &[u8], is_empty: bool) {
        let is_change = self.format == TextFormat::OsmChange;
        let is_among_objects = if is_change {
            self.depth == 2 && self.section.is_some()
        } else {
            self.depth == 1
        };
        if is_among_objects
            && matches!(name, b"node" | b"way" | b"relation" | b"changeset")
            && self.at > 0
        {
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

/// Parses the start tag at the beginning of `text`. Returns the name of the element, the length of the tag in bytes,
/// and whether the tag also ends the element (`/>`). Returns `None` if the tag is not complete.
fn parse_start_tag(text: &[u8]) -> Option<(&[u8], usize, bool)> {
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

/// Returns the lines of `text` without their line breaks, each with its offset.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let ends = memchr_iter(b'\n', text).chain([text.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let line = (start, &text[start..end]);
        start = end + 1;
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the chunks of a document that is passed to the cutter in pieces of `step` bytes.
    fn text_chunks(text: &str, format: TextFormat, step: usize) -> Vec<String> {
        let mut cutter = XmlCutter::new(format);
        let (mut found, mut start, mut end) = (Vec::new(), 0, 0);
        while end < text.len() {
            end = text.len().min(end + step);
            let prefix = cutter.prefix();
            if let Some(cut) = cutter.find_cut(&text.as_bytes()[start..end]) {
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
