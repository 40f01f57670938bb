//! The parser of OSM XML: files of objects (`<osm>`) and of changes (`<osmChange>`).

use super::change_action::ChangeAction;
use super::change_set::{ChangeSet, Draft, MemberWay, NO_ID};
use super::text_chunks::{TextChunk, TextDamage};
use super::xml_attributes::{
    check_version, for_each_attribute, parse_degrees, parse_number, parse_root_attributes,
    parse_time,
};
use super::xml_cause;
use crate::osm::{Bbox, Location, ObjectKind, TextFormat, parse_e7};
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// The elements in which nodes of ways are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WayNodesIn {
    /// Only ways. A node without an id is an error.
    Ways,
    /// Ways, and the member ways of relations. A node needs no id. Servers write nodes in member ways, and nodes
    /// without ids, when geometry is requested.
    WaysAndMembers,
}

/// The maximum number of remarks (messages of the server) that are reported for a file, each in one line. Servers write
/// only one.
pub(super) const MAX_REMARKS: usize = 3;

/// Parses a chunk of a document.
pub(super) fn parse(
    chunk: &TextChunk,
    format: TextFormat,
    nodes: WayNodesIn,
) -> Result<ChangeSet, TextDamage> {
    let (text, damaged) = match std::str::from_utf8(&chunk.bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let mut parts = chunk.bytes.utf8_chunks();
            let sound = parts.next().map_or("", |part| part.valid());
            (sound, Some(error.valid_up_to()))
        }
    };
    // The positions of the reader do not count a byte order mark.
    let marked = text.len();
    let text = text.trim_start_matches('\u{feff}');
    let mark = marked - text.len();
    let mut reader = quick_xml::Reader::from_str(text);
    let mut parser = XmlObjectParser {
        format,
        objects: ChangeSet::default(),
        stack: Vec::new(),
        draft: None,
        nodes,
        member_way: None,
        remark: String::new(),
        whole_until: 0,
        seen_root: false,
        has_root: chunk.prefix == 0,
        is_last: chunk.is_last,
    };
    let (at, cause) = match (parser.read(&mut reader), damaged) {
        (Ok(()), None) => return Ok(parser.objects),
        (_, Some(at)) => (at, "the text is not UTF-8".to_owned()),
        (Err(cause), None) => {
            let at = next_event_offset(&reader).saturating_add(mark);
            (at.clamp(chunk.prefix, chunk.bytes.len()), cause)
        }
    };
    Err(TextDamage {
        at,
        lost: at.min(parser.whole_until.saturating_add(mark)),
        cause,
        objects: Box::new(parser.objects),
    })
}

/// Returns the offset in the text at which the next event begins.
fn next_event_offset(reader: &quick_xml::Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// Returns the error message for a document whose root element is `found`.
fn wrong_root_message(format: TextFormat, found: &str) -> String {
    let other = match format {
        TextFormat::OsmChange => TextFormat::Osm,
        _ => TextFormat::OsmChange,
    };
    let root = format.facts().root;
    if found == other.facts().root {
        let (this, wanted) = (other.name(), format.name());
        return format!("this is {this} (<{found}>), not {wanted} (<{root}>)");
    }
    format!("expected <{root}>, not <{found}>")
}

/// The type of an open element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ancestor {
    Root,
    Section(ChangeAction),
    Object(ObjectKind),
    /// A tag, or a node of a way.
    Leaf,
    Member,
    /// A message of the server that made the document.
    Remark,
    /// An unknown element, or one whose contents are ignored.
    Other,
}

impl Ancestor {
    /// Returns the name of the element in error messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Root => "the root element",
            Self::Section(_) => "<create>, <modify> or <delete>",
            Self::Object(ObjectKind::Node) => "<node>",
            Self::Object(ObjectKind::Way) => "<way>",
            Self::Object(ObjectKind::Relation) => "<relation>",
            Self::Leaf => "<tag> or <nd>",
            Self::Member => "<member>",
            Self::Remark | Self::Other => "an element that is not part of the format",
        }
    }
}

/// The names of the elements that are parts of objects. These elements are an error outside of objects, except within
/// elements whose contents are ignored.
const PARTS: [&str; 3] = ["tag", "nd", "member"];
/// The names of the elements that are objects or contain objects.
const CONTAINERS: [&str; 8] = [
    "osm",
    "osmChange",
    "create",
    "modify",
    "delete",
    "node",
    "way",
    "relation",
];

struct XmlObjectParser {
    format: TextFormat,
    objects: ChangeSet,
    stack: Vec<Ancestor>,
    draft: Option<Draft>,
    nodes: WayNodesIn,
    /// The member way whose element is open, if the nodes of member ways are read; otherwise `None`.
    member_way: Option<MemberWay>,
    /// The text of the remark that is open.
    remark: String,
    /// The offset up to which the document is read completely. Inside of an object, it is the start of the object;
    /// elsewhere, it is the start of the event that was read last.
    whole_until: usize,
    seen_root: bool,
    /// Whether the chunk has the start tag of the root element, with its attributes.
    has_root: bool,
    /// Whether the document ends with this chunk.
    is_last: bool,
}

impl XmlObjectParser {
    fn read(&mut self, reader: &mut quick_xml::Reader<&[u8]>) -> Result<(), String> {
        loop {
            if self.draft.is_none() {
                self.whole_until = next_event_offset(reader);
            }
            match reader
                .read_event()
                .map_err(|error| xml_cause::markup_error_message(&error))?
            {
                Event::Start(element) => {
                    let element = self.open(&element)?;
                    self.stack.push(element);
                }
                Event::Empty(element) => {
                    let element = self.open(&element)?;
                    self.close(element)?;
                }
                Event::End(_) => {
                    if let Some(element) = self.stack.pop() {
                        self.close(element)?;
                    }
                }
                Event::Text(text) if self.stack.is_empty() => self.check_no_stray_text(&text)?,
                Event::CData(_) | Event::GeneralRef(_) if self.stack.is_empty() => {
                    self.check_no_stray_text("?")?;
                }
                Event::Text(text) if self.is_in_remark() => self.remark.push_str(&text),
                Event::CData(text) if self.is_in_remark() => self.remark.push_str(&text),
                Event::GeneralRef(name) if self.is_in_remark() => {
                    let char = name.resolve_char_ref().ok().flatten();
                    let text = resolve_predefined_entity(&name);
                    self.remark.extend(char);
                    self.remark.push_str(text.unwrap_or_default());
                }
                Event::DocType(text) if text.contains("<!ENTITY") => {
                    return Err("entities are declared, which OSM files must not have".into());
                }
                Event::Eof => break,
                _ => {}
            }
        }
        if !self.is_last {
            return Ok(());
        }
        let (name, root) = (self.format.name(), self.format.facts().root);
        match (self.seen_root, self.stack.is_empty()) {
            (false, _) => Err(format!("this is not {name}: <{root}> is missing")),
            (true, false) => Err(format!("the document ends before </{root}>")),
            (true, true) => Ok(()),
        }
    }

    fn is_in_remark(&self) -> bool {
        self.stack.last() == Some(&Ancestor::Remark)
    }

    /// Fails if `text`, which is outside the root element, contains anything but white space and byte order marks.
    fn check_no_stray_text(&self, text: &str) -> Result<(), String> {
        let stray = text
            .chars()
            .any(|char| !char.is_whitespace() && char != '\u{feff}');
        let root = self.format.facts().root;
        match (stray, self.seen_root) {
            (true, true) => Err(format!("there is text behind </{root}>")),
            (true, false) => Err(format!("expected <{root}>, not text")),
            (false, _) => Ok(()),
        }
    }

    /// Handles the start of an element. Returns its type.
    fn open(&mut self, element: &BytesStart<'_>) -> Result<Ancestor, String> {
        let name = element.name();
        let name: &str = name.as_ref();
        let ancestor = self.stack.last().copied();
        match (ancestor, name) {
            (None, name) if name == self.format.facts().root && !self.seen_root => {
                self.parse_root(element)
            }
            (None, _) if self.seen_root => Err(format!(
                "there is <{name}> behind </{}>",
                self.format.facts().root
            )),
            (None, other) => Err(wrong_root_message(self.format, other)),
            (Some(Ancestor::Root), "bounds") => self.parse_bounds(element),
            (Some(Ancestor::Root), name) => match (self.format, name) {
                (TextFormat::OsmChange, "create") => Ok(Ancestor::Section(ChangeAction::Create)),
                (TextFormat::OsmChange, "modify") => Ok(Ancestor::Section(ChangeAction::Modify)),
                (TextFormat::OsmChange, "delete") => Ok(Ancestor::Section(ChangeAction::Delete)),
                (TextFormat::OsmChange, _) => skip_other_element(Ancestor::Root, name),
                (_, "changeset") => {
                    self.objects.changesets += 1;
                    Ok(Ancestor::Other)
                }
                (_, "remark") => Ok(Ancestor::Remark),
                _ => {
                    self.parse_object_or_other(element, name, Ancestor::Root, ChangeAction::Create)
                }
            },
            (Some(ancestor @ Ancestor::Section(action)), name) => {
                self.parse_object_or_other(element, name, ancestor, action)
            }
            (Some(Ancestor::Object(_)), "tag") => self.parse_tag(element),
            (Some(Ancestor::Object(ObjectKind::Way)), "nd") => self.parse_node_ref(element),
            (Some(Ancestor::Object(ObjectKind::Relation)), "member") => self.parse_member(element),
            (Some(Ancestor::Member), "nd") if self.member_way.is_some() => {
                self.parse_member_node(element)
            }
            (Some(ancestor), name) => skip_other_element(ancestor, name),
        }
    }

    /// Handles the end of an element.
    fn close(&mut self, element: Ancestor) -> Result<(), String> {
        if element == Ancestor::Remark {
            let remark = std::mem::take(&mut self.remark);
            // A remark is reported in a message of one line, so its line breaks become spaces.
            let words: Vec<&str> = remark.split_whitespace().collect();
            if !words.is_empty() && self.objects.remarks.len() < MAX_REMARKS {
                self.objects.remarks.push(words.join(" "));
            }
        }
        if element == Ancestor::Member {
            let listed = self.member_way.take();
            let listed = listed.filter(|way| !way.locations.is_empty());
            self.objects.member_ways.extend(listed);
        }
        let is_object = matches!(element, Ancestor::Object(_));
        match self.draft.take_if(|_| is_object) {
            Some(draft) => {
                // If a way has a location for some of its nodes, the list of locations has an entry for every node.
                let nodes = self.objects.refs.len() - draft.refs_start;
                let locations = &mut self.objects.locations;
                if locations.len() > draft.locations_start {
                    locations.resize(draft.locations_start + nodes, None);
                }
                self.objects.append_draft(&draft)
            }
            None => Ok(()),
        }
    }

    fn parse_root(&mut self, element: &BytesStart<'_>) -> Result<Ancestor, String> {
        self.seen_root = true;
        let document_header = parse_root_attributes(element)?;
        if self.has_root {
            check_version(self.format.facts().root, &document_header)?;
        }
        self.objects.document_header = document_header;
        Ok(Ancestor::Root)
    }

    /// Reads the bounds of the document. Ignores bounds with a missing or invalid side. Fails only if the attributes of
    /// the element cannot be parsed.
    fn parse_bounds(&mut self, element: &BytesStart<'_>) -> Result<Ancestor, String> {
        let mut sides = [None; 4];
        for_each_attribute(element, |key, value| {
            let names = ["minlat", "maxlat", "minlon", "maxlon"];
            let sides = names.into_iter().zip(&mut sides).zip([90, 90, 180, 180]);
            for ((name, side), limit) in sides {
                if name == key {
                    *side = parse_e7(value, limit);
                }
            }
            Ok(())
        })?;
        if let [
            Some(min_lat_e7),
            Some(max_lat_e7),
            Some(min_lon_e7),
            Some(max_lon_e7),
        ] = sides
        {
            self.objects.document_header.text.add_box(Bbox {
                min_lat_e7,
                max_lat_e7,
                min_lon_e7,
                max_lon_e7,
            });
        }
        Ok(Ancestor::Other)
    }

    fn parse_object_or_other(
        &mut self,
        element: &BytesStart<'_>,
        name: &str,
        ancestor: Ancestor,
        action: ChangeAction,
    ) -> Result<Ancestor, String> {
        let mut kinds = ObjectKind::ALL.into_iter();
        match kinds.find(|kind| kind.name() == name) {
            Some(kind) => self.parse_object(element, kind, action),
            None => skip_other_element(ancestor, name),
        }
    }

    fn parse_object(
        &mut self,
        element: &BytesStart<'_>,
        kind: ObjectKind,
        action: ChangeAction,
    ) -> Result<Ancestor, String> {
        let mut draft = Draft::new(&mut self.objects, kind, action);
        let (mut id, mut lat, mut lon) = (None, None, None);
        for_each_attribute(element, |key, value| {
            match key {
                "id" => id = Some(parse_number::<i64>(key, value)?),
                // Some editors write version 0 for objects without a version, so 0 counts as no version.
                "version" => {
                    let version = parse_number::<i32>(key, value)?;
                    draft.version = u32::try_from(version).ok().filter(|&version| version > 0);
                }
                "timestamp" => draft.timestamp = Some(parse_time(value)?),
                "changeset" => draft.changeset = Some(parse_number(key, value)?),
                "uid" => draft.uid = Some(parse_number(key, value)?).filter(|&uid| uid > 0),
                "user" => draft.user = self.objects.strings.add(value),
                "lat" => lat = Some(parse_degrees(key, value)?),
                "lon" => lon = Some(parse_degrees(key, value)?),
                // Servers and editors also write visible="true" for current data, so the value "true" is no sign of
                // history.
                "visible" => match value {
                    "true" => {}
                    "false" => {
                        self.objects.is_history = true;
                        draft.action = ChangeAction::Delete;
                    }
                    _ => return Err(format!("visible=\"{value}\" is neither true nor false")),
                },
                // Editors set this attribute on objects that the user has deleted without uploading the deletion yet.
                // The OSM database has no deleted version of these objects, so they are left out.
                "action" if self.format == TextFormat::Osm && value == "delete" => {
                    draft.is_left_out = true;
                }
                _ => {}
            }
            Ok(())
        })?;
        draft.id = id.ok_or_else(|| format!("{kind} without id"))?;
        draft.location = match (kind, lat, lon) {
            (ObjectKind::Node, Some(lat), Some(lon)) => Location::new(lat, lon),
            // In a change file, a node must have a location. In OSM XML, the location is optional, because some servers
            // leave it out.
            (ObjectKind::Node, _, _)
                if draft.action != ChangeAction::Delete && self.format == TextFormat::OsmChange =>
            {
                return Err(format!("node {} without lat and lon", draft.id));
            }
            _ => None,
        };
        self.draft = Some(draft);
        Ok(Ancestor::Object(kind))
    }

    fn parse_tag(&mut self, element: &BytesStart<'_>) -> Result<Ancestor, String> {
        let (mut tag_key, mut tag_value) = (None, None);
        for_each_attribute(element, |key, value| {
            match key {
                "k" => tag_key = Some(self.objects.strings.add(value)),
                "v" => tag_value = Some(self.objects.strings.add(value)),
                _ => {}
            }
            Ok(())
        })?;
        match (tag_key, tag_value) {
            (Some(key), Some(value)) => self.objects.tags.extend([key, value]),
            _ => return Err("tag without k or v".into()),
        }
        Ok(Ancestor::Leaf)
    }

    fn parse_node_ref(&mut self, element: &BytesStart<'_>) -> Result<Ancestor, String> {
        let (node, coordinates) = parse_way_node(element)?;
        if let (Some((lat, lon)), Some(draft)) = (coordinates, &self.draft) {
            let before = self.objects.refs.len() - draft.refs_start;
            let locations = &mut self.objects.locations;
            locations.resize(draft.locations_start + before, None);
            locations.push(Location::new(lat, lon));
        }
        let node = match self.nodes {
            WayNodesIn::Ways => node.ok_or("nd without ref")?,
            WayNodesIn::WaysAndMembers => node.unwrap_or(NO_ID),
        };
        self.push_ref(ObjectKind::Node, node, 0);
        Ok(Ancestor::Leaf)
    }

    /// Reads a node of the member way whose element is open.
    fn parse_member_node(&mut self, element: &BytesStart<'_>) -> Result<Ancestor, String> {
        let (_, coordinates) = parse_way_node(element)?;
        if let Some(way) = &mut self.member_way {
            let location = coordinates.and_then(|(lat, lon)| Location::new(lat, lon));
            way.locations.push(location);
        }
        Ok(Ancestor::Leaf)
    }

    fn parse_member(&mut self, element: &BytesStart<'_>) -> Result<Ancestor, String> {
        let (mut kind, mut id) = (None, None);
        let mut role = self.objects.strings.add("");
        for_each_attribute(element, |key, value| {
            match key {
                "type" => {
                    kind = ObjectKind::ALL
                        .into_iter()
                        .find(|kind| kind.name() == value);
                    if kind.is_none() {
                        return Err(format!("'{value}' is not a member type"));
                    }
                }
                "ref" => id = Some(parse_number(key, value)?),
                "role" => role = self.objects.strings.add(value),
                _ => {}
            }
            Ok(())
        })?;
        match (kind, id) {
            (Some(kind), Some(id)) => {
                let has_nodes = kind == ObjectKind::Way && self.nodes == WayNodesIn::WaysAndMembers;
                let locations = Vec::new();
                self.member_way = has_nodes.then_some(MemberWay { id, locations });
                self.push_ref(kind, id, role);
            }
            _ => return Err("member without type or ref".into()),
        }
        Ok(Ancestor::Member)
    }

    fn push_ref(&mut self, kind: ObjectKind, id: i64, role: u32) {
        self.objects.refs.push(id);
        self.objects.roles.push((kind, role));
    }
}

/// The id and the coordinates of a node of a way. Each is `None` if the element of the node lacks it.
type NodeOfWay = (Option<i64>, Option<(i32, i32)>);

/// Reads a node of a way: its id, and its latitude and longitude in 1e-7 degree.
fn parse_way_node(element: &BytesStart<'_>) -> Result<NodeOfWay, String> {
    let (mut node, mut lat, mut lon) = (None, None, None);
    for_each_attribute(element, |key, value| {
        match key {
            "ref" => node = Some(parse_number(key, value)?),
            "lat" => lat = Some(parse_degrees(key, value)?),
            "lon" => lon = Some(parse_degrees(key, value)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok((node, lat.zip(lon)))
}

/// Skips an element that has no meaning in `ancestor`. Fails if the element has a meaning elsewhere, because skipping
/// it would lose its data.
fn skip_other_element(ancestor: Ancestor, name: &str) -> Result<Ancestor, String> {
    let is_misplaced = match ancestor {
        // Servers write tags and nodes of ways into elements that are not part of the format. They also write nodes of
        // ways into members. Neither is an error.
        Ancestor::Remark | Ancestor::Other => CONTAINERS.contains(&name),
        Ancestor::Member => name != "nd" && (PARTS.contains(&name) || CONTAINERS.contains(&name)),
        Ancestor::Root | Ancestor::Section(_) | Ancestor::Object(_) | Ancestor::Leaf => {
            PARTS.contains(&name) || CONTAINERS.contains(&name)
        }
    };
    if is_misplaced {
        return Err(format!("<{name}> has no place in {}", ancestor.name()));
    }
    Ok(Ancestor::Other)
}
