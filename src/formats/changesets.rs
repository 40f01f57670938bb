//! Reads changesets from OSM XML and OPL. PBF cannot store changesets.
//!
//! The parsers follow the OSM file formats manual of osmcode.org. A single thread parses changesets, about as fast as
//! the file is decompressed.

use super::document_header::DocumentHeader;
use super::encoding::utf8_reader;
use super::opl_fields::{self, decode_escapes, non_empty};
use super::xml_attributes::{
    check_version, for_each_attribute, parse_degrees, parse_number, parse_root_attributes,
    parse_time,
};
use super::xml_cause;
use crate::error::{Error, FileResult, Result};
use crate::io::Input;
use crate::osm::{Bbox, TextFormat};
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use std::io::{BufRead, BufReader, Read};

/// A changeset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changeset {
    /// The id of the changeset.
    pub id: i64,
    /// Time at which the changeset was opened, in seconds since 1970.
    pub created: Option<i64>,
    /// Time at which the changeset was closed, in seconds since 1970; `None` while it is open.
    pub closed: Option<i64>,
    /// Id of the user.
    pub uid: Option<i64>,
    /// Name of the user.
    pub user: String,
    /// The bounding box of the changes.
    pub bbox: Option<Bbox>,
    /// The number of changes in the changeset.
    pub changes: u64,
    /// The number of comments on the changeset, as the file declares it. The file need not contain the comments.
    pub comments_count: u64,
    /// The tags: pairs of key and value.
    pub tags: Vec<(String, String)>,
    /// The comments that the file contains. OPL files contain none.
    pub comments: Vec<Comment>,
}

/// A comment on a changeset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comment {
    /// Time of the comment in seconds since 1970.
    pub date: Option<i64>,
    /// Id of the author.
    pub uid: Option<i64>,
    /// Name of the author.
    pub user: String,
    /// The text of the comment.
    pub text: String,
}

/// The number of bytes at the start of a decompressed document that are searched for its first object.
const PROBE_LEN: u64 = 1 << 16;

/// Whether the first object of a text file is a changeset. Searches only the first [`PROBE_LEN`] bytes of the
/// decompressed document.
pub(crate) fn begins_with_changeset(input: &Input, format: TextFormat) -> Result<bool> {
    let mut start = Vec::new();
    let mut text = utf8_reader(input)?.take(PROBE_LEN);
    // Errors are ignored, because damage is reported when the whole document is read.
    let _ = text.read_to_end(&mut start);
    Ok(match format {
        TextFormat::Opl => {
            let mut lines = start.split(|byte| *byte == b'\n');
            let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
            first.is_some_and(|line| line.starts_with(b"c"))
        }
        TextFormat::Osm => {
            let at = |name: &str| memchr::memmem::find(&start, name.as_bytes());
            let first = at("<changeset").filter(|changeset| {
                let objects = ["<node", "<way", "<relation"];
                objects
                    .iter()
                    .all(|name| at(name).is_none_or(|at| at > *changeset))
            });
            first.is_some()
        }
        _ => false,
    })
}

/// Calls `take` with each changeset of a text file, in file order. Skips nodes, ways and relations, and returns whether
/// the file has any.
pub fn read_changesets(
    input: &Input,
    format: TextFormat,
    mut take: impl FnMut(&Changeset) -> Result<()>,
) -> Result<bool> {
    let text = BufReader::with_capacity(1 << 20, utf8_reader(input)?);
    match format {
        TextFormat::Opl => read_opl_changesets(text, input, &mut take),
        TextFormat::Osm | TextFormat::OsmChange => read_xml_changesets(text, input, &mut take),
        // Other formats have no changesets. `true` means that the file has other objects.
        _ => Ok(true),
    }
}

/// Reads the document header of a changeset file from the attributes of the root element. Returns the default for
/// formats other than XML.
pub(crate) fn changeset_header(input: &Input, format: TextFormat) -> Result<DocumentHeader> {
    if !matches!(format, TextFormat::Osm | TextFormat::OsmChange) {
        return Ok(DocumentHeader::default());
    }
    let text = BufReader::with_capacity(1 << 16, utf8_reader(input)?);
    let (mut reader, mut buffer) = (quick_xml::Reader::from_reader(text), Vec::new());
    loop {
        buffer.clear();
        let header = match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(root) | Event::Empty(root)) => parse_root_attributes(&root),
            Ok(Event::Eof) => Ok(DocumentHeader::default()),
            Ok(_) => continue,
            Err(error) => Err(xml_cause::markup_error_message(&error)),
        };
        return header.map_err(|cause| Error::file(input.path(), cause));
    }
}

fn read_opl_changesets(
    mut text: impl BufRead,
    input: &Input,
    take: &mut impl FnMut(&Changeset) -> Result<()>,
) -> Result<bool> {
    let (mut line, mut number, mut has_objects) = (String::new(), 0, false);
    loop {
        line.clear();
        let read = text.read_line(&mut line);
        if read.for_path(input.path(), "cannot read")? == 0 {
            return Ok(has_objects);
        }
        number += 1;
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with(['n', 'w', 'r']) {
            has_objects = true;
            continue;
        }
        let parsed = parse_opl_changeset(line)
            .map_err(|cause| Error::in_text(input.path(), (number, 1), cause));
        take(&parsed?)?;
    }
}

pub(super) fn parse_opl_changeset(line: &str) -> Result<Changeset, String> {
    if !line.starts_with('c') {
        return Err("a line begins with n, w, r, c or #".into());
    }
    let mut found = Changeset::default();
    let mut sides = [None; 4];
    for (index, field) in line
        .split([' ', '\t'])
        .filter(|field| !field.is_empty())
        .enumerate()
    {
        let mut chars = field.chars();
        let letter = chars.next().unwrap_or_default();
        let value = chars.as_str();
        let whole = |value| opl_fields::parse_number::<i64>(field, value);
        let moment = |value: &str| parse_time(value);
        match letter {
            'c' if index == 0 => found.id = whole(value)?,
            'k' => found.changes = opl_fields::parse_number(field, value)?,
            'd' => found.comments_count = opl_fields::parse_number(field, value)?,
            's' => found.created = non_empty(value).map(moment).transpose()?,
            'e' => found.closed = non_empty(value).map(moment).transpose()?,
            'i' => {
                found.uid = non_empty(value)
                    .map(whole)
                    .transpose()?
                    .filter(|uid| *uid > 0)
            }
            'u' => decode_escapes(&mut found.user, value)?,
            'x' | 'y' | 'X' | 'Y' => {
                let side = match letter {
                    'x' => 0,
                    'y' => 1,
                    'X' => 2,
                    _ => 3,
                };
                let value = non_empty(value).map(|value| parse_degrees(field, value));
                sides[side] = value.transpose()?;
            }
            'T' => {
                for tag in value.split(',').filter(|tag| !tag.is_empty()) {
                    let pair = tag
                        .split_once('=')
                        .ok_or_else(|| format!("'{tag}' is not a tag"))?;
                    let (mut key, mut value) = (String::new(), String::new());
                    decode_escapes(&mut key, pair.0)?;
                    decode_escapes(&mut value, pair.1)?;
                    found.tags.push((key, value));
                }
            }
            _ => return Err(format!("'{field}' is no field of a changeset")),
        }
    }
    found.bbox = bbox_from_sides(sides);
    Ok(found)
}

/// Returns the bounding box with the given western, southern, eastern and northern edges; `None` if an edge is missing.
fn bbox_from_sides(sides: [Option<i32>; 4]) -> Option<Bbox> {
    let [min_lon_e7, min_lat_e7, max_lon_e7, max_lat_e7] = sides;
    Some(Bbox {
        min_lat_e7: min_lat_e7?,
        max_lat_e7: max_lat_e7?,
        min_lon_e7: min_lon_e7?,
        max_lon_e7: max_lon_e7?,
    })
}

fn read_xml_changesets(
    text: impl BufRead,
    input: &Input,
    take: &mut impl FnMut(&Changeset) -> Result<()>,
) -> Result<bool> {
    let mut reader = quick_xml::Reader::from_reader(text);
    let (mut buffer, mut parser) = (Vec::new(), XmlParser::default());
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let event = event.map_err(|error| xml_cause::markup_error_message(&error));
        let ends = matches!(event, Ok(Event::Eof));
        let parsed = event.and_then(|event| parser.handle_event(&event));
        match parsed {
            Ok(true) => {
                take(&parser.changeset)?;
                parser.changeset = Changeset::default();
            }
            Ok(false) => {}
            Err(cause) => {
                let at = reader.buffer_position();
                return Err(Error::file(input.path(), format!("byte {at}: {cause}")));
            }
        }
        if ends {
            return Ok(parser.has_objects);
        }
    }
}

/// Parses the events of an XML document into changesets.
#[derive(Default)]
struct XmlParser {
    changeset: Changeset,
    depth: usize,
    is_open: bool,
    /// Whether the document had a node, way or relation so far.
    has_objects: bool,
    /// Whether the parser is inside the `<text>` element of a comment.
    in_text: bool,
}

impl XmlParser {
    /// Handles an event. Returns whether the event completes the changeset in `changeset`.
    fn handle_event(&mut self, event: &Event<'_>) -> Result<bool, String> {
        match event {
            Event::Start(element) => {
                self.handle_start(element)?;
                self.depth += 1;
                Ok(false)
            }
            Event::Empty(element) => {
                self.handle_start(element)?;
                Ok(self.handle_end(element.name().as_ref()))
            }
            Event::End(element) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(self.handle_end(element.name().as_ref()))
            }
            Event::Text(text) if self.in_text => {
                self.add_text(text);
                Ok(false)
            }
            Event::CData(text) if self.in_text => {
                self.add_text(text);
                Ok(false)
            }
            Event::GeneralRef(name) if self.in_text => {
                let char = name.resolve_char_ref();
                let char = char.map_err(|error| xml_cause::markup_error_message(&error))?;
                match (char, resolve_predefined_entity(name)) {
                    (Some(char), _) => self.add_text(char.encode_utf8(&mut [0; 4])),
                    (None, Some(text)) => self.add_text(text),
                    (None, None) => return Err(format!("&{}; is not known", &**name)),
                }
                Ok(false)
            }
            Event::Eof if self.depth > 0 => Err("the document ends before </osm>".into()),
            _ => Ok(false),
        }
    }

    fn add_text(&mut self, text: &str) {
        if let Some(comment) = self.changeset.comments.last_mut() {
            comment.text.push_str(text);
        }
    }

    /// Handles the start of an element.
    fn handle_start(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        let name = element.name();
        if self.depth == 0 {
            check_version(name.as_ref(), &parse_root_attributes(element)?)?;
        }
        match name.as_ref() {
            "changeset" => self.parse_changeset(element),
            "node" | "way" | "relation" => {
                self.has_objects = true;
                Ok(())
            }
            "tag" if self.is_open => {
                let mut tag = (String::new(), String::new());
                for_each_attribute(element, |key, value| {
                    match key {
                        "k" => tag.0.push_str(value),
                        "v" => tag.1.push_str(value),
                        _ => {}
                    }
                    Ok(())
                })?;
                self.changeset.tags.push(tag);
                Ok(())
            }
            "comment" if self.is_open => {
                let mut comment = Comment::default();
                for_each_attribute(element, |key, value| {
                    match key {
                        "date" => comment.date = Some(parse_time(value)?),
                        "uid" => comment.uid = Some(parse_number(key, value)?),
                        "user" => comment.user.push_str(value),
                        _ => {}
                    }
                    Ok(())
                })?;
                self.changeset.comments.push(comment);
                Ok(())
            }
            "text" => {
                self.in_text = self.is_open;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn parse_changeset(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        let (found, mut id, mut sides) = (&mut self.changeset, None, [None; 4]);
        for_each_attribute(element, |key, value| {
            match key {
                "id" => id = Some(parse_number(key, value)?),
                "created_at" => found.created = Some(parse_time(value)?),
                "closed_at" => found.closed = Some(parse_time(value)?),
                "uid" => found.uid = Some(parse_number(key, value)?).filter(|uid| *uid > 0),
                "user" => found.user.push_str(value),
                "num_changes" => found.changes = parse_number(key, value)?,
                "comments_count" => found.comments_count = parse_number(key, value)?,
                "min_lon" => sides[0] = Some(parse_degrees(key, value)?),
                "min_lat" => sides[1] = Some(parse_degrees(key, value)?),
                "max_lon" => sides[2] = Some(parse_degrees(key, value)?),
                "max_lat" => sides[3] = Some(parse_degrees(key, value)?),
                _ => {}
            }
            Ok(())
        })?;
        found.id = id.ok_or("changeset without id")?;
        found.bbox = bbox_from_sides(sides);
        self.is_open = true;
        Ok(())
    }

    /// Handles the end of an element. Returns whether the element was a changeset.
    fn handle_end(&mut self, name: &str) -> bool {
        match name {
            "text" => self.in_text = false,
            "changeset" => return std::mem::take(&mut self.is_open),
            _ => {}
        }
        false
    }
}
