//! Plain augmented diffs: both states in memory, every object compared.

use super::{Kind, Object};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

type Key = (Kind, i64);

/// The actions of an augmented diff, each as a text: its type, its key, and its states.
pub fn actions_of(xml: &str) -> Vec<String> {
    let mut reader = Reader::from_str(xml);
    let (mut actions, mut depth) = (Vec::new(), 0);
    let mut action = String::new();
    loop {
        let event = reader.read_event().unwrap();
        let (tag, is_empty) = match &event {
            Event::Start(tag) => (tag, false),
            Event::Empty(tag) => (tag, true),
            Event::End(_) => {
                depth -= 1;
                if depth == 1 && !action.is_empty() {
                    actions.push(std::mem::take(&mut action));
                }
                continue;
            }
            Event::Eof => return actions,
            _ => continue,
        };
        depth += i32::from(!is_empty);
        let name = tag.name().as_ref().to_owned();
        if name != "osm" && name != "note" {
            let _ = writeln!(action, "{name}{}", attributes(tag));
        }
    }
}

fn attributes(tag: &BytesStart<'_>) -> String {
    let mut text = String::new();
    for attribute in tag.attributes() {
        let attribute = attribute.unwrap();
        let key = attribute.key.as_ref().to_owned();
        let value = attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .unwrap();
        // Who wrote a version is not compared.
        if !["timestamp", "changeset", "uid", "user"].contains(&key.as_str()) {
            let _ = write!(text, " {key}={value}");
        }
    }
    text
}

/// One of both states, by kind and id.
struct State<'s>(BTreeMap<Key, &'s Object>);

impl<'s> State<'s> {
    fn of(objects: &'s [Object]) -> Self {
        let keyed = objects
            .iter()
            .map(|object| ((object.kind, object.id), object));
        Self(keyed.collect())
    }

    fn get(&self, kind: Kind, id: i64) -> Option<&Object> {
        self.0.get(&(kind, id)).copied()
    }

    /// The version and the place of a node, as attributes.
    fn node(&self, id: i64, with_version: bool) -> String {
        let Some(node) = self.get(Kind::Node, id) else {
            return String::new();
        };
        let mut text = String::new();
        if let Some(version) = node.version.filter(|_| with_version) {
            let _ = write!(text, " version={version}");
        }
        text + &place(node)
    }

    /// The places of the nodes of a way.
    fn places(&self, way: &Object) -> Vec<Option<[i64; 2]>> {
        let nodes = way.refs.iter();
        nodes
            .map(|id| {
                self.get(Kind::Node, *id)
                    .map(|node| [node.lat_nano, node.lon_nano])
            })
            .collect()
    }

    /// The nodes of a way. Those of a member of a relation come without versions.
    fn nds(&self, way: &Object, is_member: bool) -> String {
        let nodes = way.refs.iter();
        nodes
            .map(|id| format!("nd ref={id}{}\n", self.node(*id, !is_member)))
            .collect()
    }

    /// The text of an object in this state.
    fn text(&self, object: &Object, is_deleted: bool) -> String {
        let mut text = format!("{} id={}", name(object.kind), object.id);
        if let Some(version) = object.version {
            let _ = write!(text, " version={version}");
        }
        if is_deleted {
            text += " visible=false";
        }
        if object.kind == Kind::Node && !is_deleted {
            text += &place(object);
        }
        text.push('\n');
        if is_deleted {
            return text;
        }
        let mut places = Vec::new();
        match object.kind {
            Kind::Node => {}
            Kind::Way => places = self.places(object),
            Kind::Relation => {
                for (kind, id, _) in &object.members {
                    match (kind, self.get(*kind, *id)) {
                        (Kind::Node, Some(node)) => {
                            places.push(Some([node.lat_nano, node.lon_nano]))
                        }
                        (Kind::Way, Some(way)) => places.extend(self.places(way)),
                        _ => {}
                    }
                }
            }
        }
        let places: Vec<[i64; 2]> = places.into_iter().flatten().collect();
        if let Some(first) = places.first() {
            let (mut low, mut high) = (*first, *first);
            for place in &places {
                for axis in 0..2 {
                    low[axis] = low[axis].min(place[axis]);
                    high[axis] = high[axis].max(place[axis]);
                }
            }
            let [[south, west], [north, east]] = [low, high].map(|pair| pair.map(degrees));
            let _ = writeln!(
                text,
                "bounds minlat={south} minlon={west} maxlat={north} maxlon={east}"
            );
        }
        if object.kind == Kind::Way {
            text += &self.nds(object, false);
        }
        for (kind, id, role) in &object.members {
            let _ = write!(text, "member type={} ref={id} role={role}", name(*kind));
            match (kind, self.get(*kind, *id)) {
                (Kind::Node, _) => text += &(self.node(*id, false) + "\n"),
                (Kind::Way, Some(way)) => text += &("\n".to_owned() + &self.nds(way, true)),
                _ => text.push('\n'),
            }
        }
        for (key, value) in &object.tags {
            let _ = writeln!(text, "tag k={key} v={value}");
        }
        text
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Way => "way",
        Kind::Relation => "relation",
    }
}

fn place(node: &Object) -> String {
    format!(
        " lat={} lon={}",
        degrees(node.lat_nano),
        degrees(node.lon_nano)
    )
}

/// Nanodegrees as degrees, without zeros at the end.
fn degrees(nano: i64) -> String {
    let text = format!("{:.7}", nano as f64 / 1e9);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// The actions that lead from one state to another one.
pub fn actions_between(old: &[Object], new: &[Object]) -> Vec<String> {
    let [before, after] = [old, new].map(State::of);
    let keys: BTreeSet<Key> = before.0.keys().chain(after.0.keys()).copied().collect();
    let is_changed = |kind, id| {
        let content = |state: &State<'_>| {
            let object = state.get(kind, id)?;
            let locations = Vec::new();
            Some(Object {
                locations,
                ..object.clone()
            })
        };
        content(&before) != content(&after)
    };
    let is_reshaped = |way: &Object| before.places(way) != after.places(way);
    let mut actions = Vec::new();
    for (kind, id) in keys {
        let [one, two] = [&before, &after].map(|state| state.get(kind, id));
        match (one, two) {
            (None, Some(new)) => {
                actions.push(format!("action type=create\n{}", after.text(new, false)));
            }
            (Some(old), None) => {
                let states = format!(
                    "old\n{}new\n{}",
                    before.text(old, false),
                    after.text(old, true)
                );
                actions.push(format!("action type=delete\n{states}"));
            }
            (Some(old), Some(new)) => {
                let is_concerned = match kind {
                    Kind::Node => false,
                    Kind::Way => old.refs.iter().any(|id| is_changed(Kind::Node, *id)),
                    Kind::Relation => old.members.iter().any(|(kind, id, _)| match kind {
                        Kind::Relation => false,
                        Kind::Node => is_changed(*kind, *id),
                        Kind::Way => {
                            is_changed(*kind, *id)
                                || before.get(*kind, *id).is_some_and(is_reshaped)
                        }
                    }),
                };
                if is_changed(kind, id) || is_concerned {
                    let states = format!(
                        "old\n{}new\n{}",
                        before.text(old, false),
                        after.text(new, false)
                    );
                    actions.push(format!("action type=modify\n{states}"));
                }
            }
            (None, None) => {}
        }
    }
    actions
}
