//! The streaming parser of OSM XML: change files (`<osmChange>`) and plain files (`<osm>`).

use super::change_set::{ChangeSet, Draft, Replication};
use super::source::{LineReader, open};
use crate::error::{Error, Result};
use crate::osm::{ObjectKind, parse_e7, parse_timestamp};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;

/// The kinds of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Document {
    /// `<osmChange>`: objects stand in sections that say whether they are deleted.
    OsmChange,
    /// `<osm>`: objects stand directly under the root.
    Osm,
}

impl Document {
    /// The root element.
    const fn root(self) -> &'static str {
        match self {
            Self::OsmChange => "osmChange",
            Self::Osm => "osm",
        }
    }

    /// What messages call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OsmChange => "an OsmChange file",
            Self::Osm => "an OSM XML file",
        }
    }

    /// What to say of a document that begins with another element.
    fn other_root(self, found: &str) -> String {
        let other = match self {
            Self::OsmChange => Self::Osm,
            Self::Osm => Self::OsmChange,
        };
        if found == other.root() {
            return format!(
                "this is {} (<{found}>), not {} (<{}>)",
                other.name(),
                self.name(),
                self.root()
            );
        }
        format!("expected <{}>, not <{found}>", self.root())
    }
}

/// Reads a file and adds what it says to `changes`, in document order.
pub(super) fn read_into(path: &Path, document: Document, changes: &mut ChangeSet) -> Result<()> {
    let mut reader = quick_xml::Reader::from_reader(open(path, document)?);
    let mut parser = Parser {
        document,
        changes,
        stack: Vec::new(),
        draft: None,
        seen_root: false,
    };
    parser.read(&mut reader).map_err(|cause| {
        let (line, column) = reader.get_ref().position();
        Error::ChangeFile {
            path: path.to_owned(),
            line,
            column,
            cause,
        }
    })
}

/// Where in the document the parser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// In `create` or `modify` (`false`), or in `delete` (`true`).
    Section(bool),
    Object,
    /// An element that is not known, or one that has no contents of interest.
    Other,
}

struct Parser<'a> {
    document: Document,
    changes: &'a mut ChangeSet,
    stack: Vec<Place>,
    draft: Option<Draft>,
    seen_root: bool,
}

impl Parser<'_> {
    fn read<R: BufRead>(
        &mut self,
        reader: &mut quick_xml::Reader<LineReader<R>>,
    ) -> Result<(), String> {
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            match reader
                .read_event_into(&mut buffer)
                .map_err(|error| error.to_string())?
            {
                Event::Start(element) => {
                    let place = self.open(&element)?;
                    self.stack.push(place);
                }
                Event::Empty(element) => {
                    let place = self.open(&element)?;
                    self.close(place)?;
                }
                Event::End(_) => {
                    if let Some(place) = self.stack.pop() {
                        self.close(place)?;
                    }
                }
                Event::Text(text) if self.stack.is_empty() => self.only_space(&text)?,
                Event::Eof => break,
                _ => {}
            }
        }
        let root = self.document.root();
        match (self.seen_root, self.stack.is_empty()) {
            (false, _) => Err(format!(
                "this is not {}: <{root}> is missing",
                self.document.name()
            )),
            (true, false) => Err(format!("the document ends before </{root}>")),
            (true, true) => Ok(()),
        }
    }

    /// Outside of the document there is nothing but space.
    fn only_space(&self, text: &str) -> Result<(), String> {
        let stray = text
            .chars()
            .any(|char| !char.is_whitespace() && char != '\u{feff}');
        let root = self.document.root();
        match (stray, self.seen_root) {
            (true, true) => Err(format!("there is text behind </{root}>")),
            (true, false) => Err(format!("expected <{root}>, not text")),
            (false, _) => Ok(()),
        }
    }

    fn open(&mut self, element: &BytesStart<'_>) -> Result<Place, String> {
        let name = element.name();
        let name: &str = name.as_ref();
        match (self.stack.last().copied(), name) {
            (None, name) if name == self.document.root() && !self.seen_root => self.root(element),
            (None, _) if self.seen_root => Err(format!(
                "there is <{name}> behind </{}>",
                self.document.root()
            )),
            (None, other) => Err(self.document.other_root(other)),
            (Some(Place::Root), name) => match (self.document, name) {
                (Document::OsmChange, "create" | "modify") => Ok(Place::Section(false)),
                (Document::OsmChange, "delete") => Ok(Place::Section(true)),
                (Document::OsmChange, _) => Ok(Place::Other),
                (Document::Osm, _) => self.object_or_other(element, name, false),
            },
            (Some(Place::Section(deleted)), name) => self.object_or_other(element, name, deleted),
            (Some(Place::Object), "tag") => self.tag(element),
            (Some(Place::Object), "nd") => self.node_ref(element),
            (Some(Place::Object), "member") => self.member(element),
            _ => Ok(Place::Other),
        }
    }

    fn close(&mut self, place: Place) -> Result<(), String> {
        match (place, self.draft.take_if(|_| place == Place::Object)) {
            (Place::Object, Some(draft)) => self.changes.finish(&draft),
            _ => Ok(()),
        }
    }

    fn root(&mut self, element: &BytesStart<'_>) -> Result<Place, String> {
        self.seen_root = true;
        let mut state = Replication::default();
        for_each_attribute(element, |key, value| {
            match key {
                "sequence" | "sequence_number" | "osmosis_replication_sequence_number" => {
                    state.sequence = value.parse().ok();
                }
                "timestamp" | "osmosis_replication_timestamp" => {
                    state.timestamp = parse_timestamp(value);
                }
                _ => {}
            }
            Ok(())
        })?;
        self.changes.note_replication(state);
        Ok(Place::Root)
    }

    fn object_or_other(
        &mut self,
        element: &BytesStart<'_>,
        name: &str,
        deleted: bool,
    ) -> Result<Place, String> {
        let mut kinds = ObjectKind::ALL.into_iter();
        match kinds.find(|kind| kind.name() == name) {
            Some(kind) => self.object(element, kind, deleted),
            None => Ok(Place::Other),
        }
    }

    fn object(
        &mut self,
        element: &BytesStart<'_>,
        kind: ObjectKind,
        deleted: bool,
    ) -> Result<Place, String> {
        let mut draft = Draft {
            kind,
            id: 0,
            deleted,
            version: None,
            timestamp: None,
            changeset: None,
            uid: None,
            user: self.changes.strings.add(""),
            location_e7: (0, 0),
            tags_start: self.changes.tags.len(),
            refs_start: self.changes.refs.len(),
        };
        let (mut id, mut lat, mut lon) = (None, None, None);
        for_each_attribute(element, |key, value| {
            match key {
                "id" => id = Some(number::<i64>(key, value)?),
                // Version 0 is how some editors say that there is none.
                "version" => {
                    let version = number::<i32>(key, value)?;
                    draft.version = u32::try_from(version).ok().filter(|&version| version > 0);
                }
                "timestamp" => draft.timestamp = Some(time(value)?),
                "changeset" => draft.changeset = Some(number(key, value)?),
                "uid" => draft.uid = Some(number(key, value)?).filter(|&uid| uid > 0),
                "user" => draft.user = self.changes.strings.add(value),
                "lat" => lat = Some(degrees(key, value, 90)?),
                "lon" => lon = Some(degrees(key, value, 180)?),
                "visible" => draft.deleted |= value == "false",
                // How editors mark what the user deleted.
                "action" if self.document == Document::Osm => draft.deleted |= value == "delete",
                _ => {}
            }
            Ok(())
        })?;
        draft.id = id.ok_or_else(|| format!("{kind} without id"))?;
        draft.location_e7 = match (kind, lat, lon) {
            (ObjectKind::Node, Some(lat), Some(lon)) => (lat, lon),
            (ObjectKind::Node, _, _) if !draft.deleted => {
                return Err(format!("node {} without lat and lon", draft.id));
            }
            _ => (0, 0),
        };
        self.draft = Some(draft);
        Ok(Place::Object)
    }

    fn tag(&mut self, element: &BytesStart<'_>) -> Result<Place, String> {
        let (mut tag_key, mut tag_value) = (None, None);
        for_each_attribute(element, |key, value| {
            match key {
                "k" => tag_key = Some(self.changes.strings.add(value)),
                "v" => tag_value = Some(self.changes.strings.add(value)),
                _ => {}
            }
            Ok(())
        })?;
        match (tag_key, tag_value) {
            (Some(key), Some(value)) => self.changes.tags.extend([key, value]),
            _ => return Err("tag without k or v".into()),
        }
        Ok(Place::Other)
    }

    fn node_ref(&mut self, element: &BytesStart<'_>) -> Result<Place, String> {
        let mut node = None;
        for_each_attribute(element, |key, value| {
            if key == "ref" {
                node = Some(number(key, value)?);
            }
            Ok(())
        })?;
        self.push_ref(ObjectKind::Node, node.ok_or("nd without ref")?, 0);
        Ok(Place::Other)
    }

    fn member(&mut self, element: &BytesStart<'_>) -> Result<Place, String> {
        let (mut kind, mut id) = (None, None);
        let mut role = self.changes.strings.add("");
        for_each_attribute(element, |key, value| {
            match key {
                "type" => {
                    kind = ObjectKind::ALL
                        .into_iter()
                        .find(|kind| kind.name() == value);
                    if kind.is_none() {
                        return Err(format!("'{value}' is not a type of member"));
                    }
                }
                "ref" => id = Some(number(key, value)?),
                "role" => role = self.changes.strings.add(value),
                _ => {}
            }
            Ok(())
        })?;
        match (kind, id) {
            (Some(kind), Some(id)) => self.push_ref(kind, id, role),
            _ => return Err("member without type or ref".into()),
        }
        Ok(Place::Other)
    }

    fn push_ref(&mut self, kind: ObjectKind, id: i64, role: u32) {
        self.changes.refs.push(id);
        self.changes.roles.push((kind, role));
    }
}

/// Calls `visit` with name and value of each attribute, entities and references decoded.
fn for_each_attribute(
    element: &BytesStart<'_>,
    mut visit: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let key: &str = attribute.key.as_ref();
        let value: Cow<'_, str> = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| format!("attribute {key}: {error}"))?;
        visit(key, &value)?;
    }
    Ok(())
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{key}=\"{value}\" is not a number in range"))
}

fn degrees(key: &str, value: &str, limit: i32) -> Result<i32, String> {
    parse_e7(value, limit)
        .ok_or_else(|| format!("{key}=\"{value}\" is not a coordinate within ±{limit} degrees"))
}

fn time(value: &str) -> Result<i64, String> {
    parse_timestamp(value).ok_or_else(|| format!("timestamp=\"{value}\" is not a time"))
}
