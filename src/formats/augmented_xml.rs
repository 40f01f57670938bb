//! Writes augmented diffs as XML, with the state of each object before and after a change. Joins successive actions on
//! one object.

use super::change_action::ChangeAction;
use super::numbers::{TimeFormatter, put_decimal_degrees, put_number};
use super::text_buffer::TextBuffer;
use super::write_xml::{put_attribute, put_escaped_with_replacement, put_location};
use crate::osm::{Bbox, Location, ObjectKind};
use crate::pbf::{Info, Member, Object, ObjectBody};
use std::num::NonZeroU32;

/// A node of a way, before or after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedNode {
    /// The id.
    pub id: i64,
    /// The version; `None` if it is unknown. The type takes four bytes, not eight, because a way may have two million
    /// nodes.
    pub version: Option<NonZeroU32>,
    /// The location; `None` if it is unknown, or if the node is deleted.
    pub location: Option<Location>,
}

/// The geometry of a member of a relation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'p> {
    /// A node with its location.
    Node(Option<Location>),
    /// The nodes of a way.
    Way(&'p [PlacedNode]),
    /// No geometry: a relation, or an object that is not known.
    None,
}

/// Finds the geometry of a member, and calls the closure with it.
pub(crate) type FindPlace<'f> = dyn Fn(&Member<'_>, &mut dyn FnMut(Place<'_>)) + 'f;

/// An object before or after an action.
pub(crate) struct AugmentedObject<'o> {
    /// The object. If it is a way, the locations in the object itself are ignored.
    pub object: &'o Object<'o>,
    /// The nodes of a way; empty for other kinds.
    pub nodes: &'o [PlacedNode],
    /// The function that finds the geometry of members of a relation; `None` to omit the geometry.
    pub places: Option<&'o FindPlace<'o>>,
}

/// The length of the text in bytes at which [`AugmentedXml::put_action`] calls `spill`.
const LONG: usize = 1 << 20;

/// A buffer of actions as XML elements.
#[derive(Debug)]
pub(crate) struct AugmentedXml {
    text: TextBuffer,
    times: TimeFormatter,
    /// The number of characters that XML 1.0 cannot express. They are replaced by U+FFFD.
    inexpressible: u64,
}

impl AugmentedXml {
    pub(crate) const fn new() -> Self {
        Self {
            text: TextBuffer::new(),
            times: TimeFormatter::new(),
            inexpressible: 0,
        }
    }

    /// Removes and returns the text. Also returns the number of characters that were replaced because XML 1.0 cannot
    /// express them.
    pub(crate) fn take(&mut self) -> (String, u64) {
        (self.text.take(), std::mem::take(&mut self.inexpressible))
    }

    /// Returns the length of the text in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends an action. A creation has no old object. Calls `spill` whenever the text has at least [`LONG`] bytes.
    /// `spill` may take the text.
    pub(crate) fn put_action(
        &mut self,
        action: ChangeAction,
        old: Option<&AugmentedObject<'_>>,
        new: &AugmentedObject<'_>,
        spill: &mut dyn FnMut(&mut Self),
    ) {
        self.text.push_str("  <action type=\"");
        self.text.push_str(action.name());
        self.text.push_str("\">\n");
        match old {
            None => self.put_object(new, "    ", spill),
            Some(old) => {
                self.text.push_str("    <old>\n");
                self.put_object(old, "      ", spill);
                self.text.push_str("    </old>\n    <new>\n");
                self.put_object(new, "      ", spill);
                self.text.push_str("    </new>\n");
            }
        }
        self.text.push_str("  </action>\n");
    }

    fn put_object(
        &mut self,
        augmented: &AugmentedObject<'_>,
        indent: &str,
        spill: &mut dyn FnMut(&mut Self),
    ) {
        let object = augmented.object;
        let kind = object.kind().name();
        self.put_line(indent, "<");
        self.text.push_str(kind);
        put_attribute(&mut self.text, "id", object.id);
        self.put_info(&object.info);
        if let ObjectBody::Node { location } = object.body {
            put_location(&mut self.text, location);
        }
        self.text.push_str(">\n");
        self.put_bounds(augmented, indent);
        self.put_nodes(augmented.nodes, indent, "  ", spill);
        self.put_members(augmented, indent, spill);
        for (key, value) in &object.tags {
            self.put_line(indent, "  <tag k=\"");
            self.inexpressible += put_escaped_with_replacement(&mut self.text, key);
            self.text.push_str("\" v=\"");
            self.inexpressible += put_escaped_with_replacement(&mut self.text, value);
            self.text.push_str("\"/>\n");
            self.spill_if_long(spill);
        }
        self.put_line(indent, "</");
        self.text.push_str(kind);
        self.text.push_str(">\n");
    }

    fn put_line(&mut self, indent: &str, start: &str) {
        self.text.push_str(indent);
        self.text.push_str(start);
    }

    fn put_info(&mut self, info: &Info<'_>) {
        if let Some(version) = info.version {
            put_attribute(&mut self.text, "version", version.into());
        }
        if let Some(timestamp) = info.timestamp {
            self.text.push_str(" timestamp=\"");
            self.times.put(&mut self.text, timestamp);
            self.text.push('"');
        }
        if let Some(changeset) = info.changeset {
            put_attribute(&mut self.text, "changeset", changeset);
        }
        if let Some(uid) = info.uid {
            put_attribute(&mut self.text, "uid", uid.into());
        }
        if let Some(user) = info.user {
            self.text.push_str(" user=\"");
            self.inexpressible += put_escaped_with_replacement(&mut self.text, user);
            self.text.push('"');
        }
        if !info.visible {
            self.text.push_str(" visible=\"false\"");
        }
    }

    fn put_bounds(&mut self, augmented: &AugmentedObject<'_>, indent: &str) {
        let bbox = bounds_of(augmented);
        if bbox.is_empty() {
            return;
        }
        self.put_line(indent, "  <bounds");
        let edges = [
            (" minlat=\"", bbox.min_lat_e7),
            (" minlon=\"", bbox.min_lon_e7),
            (" maxlat=\"", bbox.max_lat_e7),
            (" maxlon=\"", bbox.max_lon_e7),
        ];
        for (name, value) in edges {
            self.text.push_str(name);
            put_decimal_degrees(&mut self.text, value);
            self.text.push('"');
        }
        self.text.push_str("/>\n");
    }

    fn put_nodes(
        &mut self,
        nodes: &[PlacedNode],
        indent: &str,
        more: &str,
        spill: &mut dyn FnMut(&mut Self),
    ) {
        for node in nodes {
            self.put_line(indent, more);
            self.text.push_str("<nd");
            put_attribute(&mut self.text, "ref", node.id);
            if let Some(version) = node.version {
                put_attribute(&mut self.text, "version", version.get().into());
            }
            put_location(&mut self.text, node.location);
            self.text.push_str("/>\n");
            self.spill_if_long(spill);
        }
    }

    fn spill_if_long(&mut self, spill: &mut dyn FnMut(&mut Self)) {
        if self.text.len() >= LONG {
            spill(self);
        }
    }

    fn put_members(
        &mut self,
        augmented: &AugmentedObject<'_>,
        indent: &str,
        spill: &mut dyn FnMut(&mut Self),
    ) {
        let ObjectBody::Relation { members } = &augmented.object.body else {
            return;
        };
        for member in members {
            self.put_line(indent, "  <member type=\"");
            self.text.push_str(member.kind.name());
            self.text.push_str("\" ref=\"");
            put_number(&mut self.text, member.id);
            self.text.push_str("\" role=\"");
            self.inexpressible += put_escaped_with_replacement(&mut self.text, member.role);
            self.text.push('"');
            let mut is_open = false;
            if let Some(places) = augmented.places {
                places(member, &mut |place| match place {
                    Place::Node(location) => put_location(&mut self.text, location),
                    Place::Way(nodes) if !nodes.is_empty() => {
                        self.text.push_str(">\n");
                        self.put_nodes(nodes, indent, "    ", spill);
                        is_open = true;
                    }
                    Place::Way(_) | Place::None => {}
                });
            }
            if is_open {
                self.put_line(indent, "  </member>\n");
            } else {
                self.text.push_str("/>\n");
            }
            self.spill_if_long(spill);
        }
    }
}

/// The text of an action that [`AugmentedXml`] has written, or of a comment that takes the place of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct XmlAction(String);

/// The markup of an action. If the changes create an object and delete it again, a comment takes the place of the
/// action.
const ACTION: &str = "  <action type=\"";
const NOTHING: &str = "  <!-- created and deleted: ";
const NOTHING_END: &str = " -->\n";
const ACTION_END: &str = "  </action>\n";
const OLD: &str = "    <old>\n";
const BETWEEN: &str = "    </old>\n    <new>\n";
const NEW_END: &str = "    </new>\n";

impl XmlAction {
    /// Returns a text as an action; `None` if it is not exactly one action.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (action, rest) = Self::split_first(text)?;
        rest.is_empty().then_some(action)
    }

    /// Divides a text into the first action and the rest; `None` if it does not begin with an action. Escaped text has
    /// no `<`, so the first end tag ends the action.
    pub(crate) fn split_first(text: &str) -> Option<(Self, &str)> {
        let is_action = text.starts_with(ACTION);
        let end = if is_action { ACTION_END } else { NOTHING_END };
        let (action, rest) = text.split_at(text.find(end)? + end.len());
        let action = Self(action.to_owned());
        (action.is_action() == is_action && action.object_kind_and_id().is_some())
            .then_some((action, rest))
    }

    /// Whether a text begins with an action, and not with a comment.
    pub(crate) fn begins_with_action(text: &str) -> bool {
        text.starts_with(ACTION)
    }

    /// Whether the last line of a text ends an action or a comment. The last line begins at byte `start`.
    pub(crate) fn last_line_ends_action(text: &str, start: usize) -> bool {
        let is_comment = start == 0 && text.starts_with(NOTHING);
        is_comment || &text[start..] == ACTION_END
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns the value of the type attribute, and the text after the start tag.
    fn split_start_tag(&self) -> Option<(&str, &str)> {
        self.0.strip_prefix(ACTION)?.split_once("\">\n")
    }

    /// Returns the kind of the action.
    pub(crate) fn kind(&self) -> Option<ChangeAction> {
        let (name, _) = self.split_start_tag()?;
        let mut all = [
            ChangeAction::Create,
            ChangeAction::Modify,
            ChangeAction::Delete,
        ]
        .into_iter();
        all.find(|action| action.name() == name)
    }

    /// Returns the kind and the id of the object.
    pub(crate) fn object_kind_and_id(&self) -> Option<(ObjectKind, i64)> {
        let of_name = |name: &str| ObjectKind::ALL.into_iter().find(|one| one.name() == name);
        if let Some(text) = self.0.strip_prefix(NOTHING) {
            let (kind, id) = text.strip_suffix(NOTHING_END)?.split_once(' ')?;
            return Some((of_name(kind)?, id.parse().ok()?));
        }
        let (_, body) = self.split_start_tag()?;
        let body = body.strip_prefix(OLD).unwrap_or(body).trim_start();
        let (kind, rest) = body.strip_prefix('<')?.split_once(" id=\"")?;
        Some((of_name(kind)?, rest.split_once('"')?.0.parse().ok()?))
    }

    /// Returns the texts of the old and of the new object, indented as in a modification. A creation has no old object.
    fn object_texts(&self) -> Option<(Option<&str>, String)> {
        let body = self.split_start_tag()?.1.strip_suffix(ACTION_END)?;
        match body.strip_prefix(OLD) {
            None => {
                // In a creation, the object is less indented.
                let lines = body.lines().map(|line| format!("  {line}\n"));
                Some((None, lines.collect()))
            }
            Some(states) => {
                let (old, new) = states.strip_suffix(NEW_END)?.split_once(BETWEEN)?;
                Some((Some(old), new.to_owned()))
            }
        }
    }

    /// Returns the comment for an object that is created and deleted again by the changes. Later runs learn of the
    /// object from this comment.
    pub(crate) fn comment_on_object(kind: ObjectKind, id: i64) -> Self {
        Self(format!("{NOTHING}{} {id}{NOTHING_END}", kind.name()))
    }

    /// Whether this is an action, and not a comment.
    pub(crate) fn is_action(&self) -> bool {
        self.kind().is_some()
    }

    /// Returns the joint effect of this action and of a later one on the same object.
    pub(crate) fn merge_with_later(self, later: Self) -> Self {
        let Some((kind, id)) = later.object_kind_and_id() else {
            return later;
        };
        let old = self.object_texts().and_then(|(old, _)| old);
        let is_deletion = !later.is_action() || later.kind() == Some(ChangeAction::Delete);
        let action = match (&old, is_deletion) {
            (None, true) => return Self::comment_on_object(kind, id),
            (None, false) => ChangeAction::Create,
            (Some(_), true) => ChangeAction::Delete,
            (Some(_), false) => ChangeAction::Modify,
        };
        // If the earlier action is a deletion, and later changes only create the object and delete it again, the
        // deletion stays as it is.
        let Some((_, new)) = later.object_texts() else {
            return self;
        };
        let name = action.name();
        let body = match old {
            None => {
                let lines = new.lines();
                let lines = lines.map(|line| line.strip_prefix("  ").unwrap_or(line));
                lines.map(|line| format!("{line}\n")).collect()
            }
            Some(old) => format!("{OLD}{old}{BETWEEN}{new}{NEW_END}"),
        };
        Self(format!("{ACTION}{name}\">\n{body}{ACTION_END}"))
    }
}

/// Returns the box around the nodes of a way, or around the nodes and ways that are members of a relation. The box is
/// empty for a node.
pub(crate) fn bounds_of(augmented: &AugmentedObject<'_>) -> Bbox {
    let mut bbox = Bbox::EMPTY;
    let mut add = |location: Option<Location>| {
        if let Some(location) = location {
            bbox.add(location.lat_e7(), location.lon_e7());
        }
    };
    augmented.nodes.iter().for_each(|node| add(node.location));
    if let (ObjectBody::Relation { members }, Some(places)) =
        (&augmented.object.body, augmented.places)
    {
        for member in members
            .iter()
            .filter(|member| member.kind != ObjectKind::Relation)
        {
            places(member, &mut |place| match place {
                Place::Node(location) => add(location),
                Place::Way(nodes) => nodes.iter().for_each(|node| add(node.location)),
                Place::None => {}
            });
        }
    }
    bbox
}
