//! Days of changes to a world, as change files and as the worlds after each day.

use super::worlds::World;
use crate::common::answers::in_order;
use crate::common::random::Random;
use crate::common::regions::degrees;
use crate::common::{Kind, Object};
use flate2::Compression;
use flate2::write::GzEncoder;
use pbfhogg::unstable::osm::format_timestamp;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;

/// The time of the world before the first day: 2024-01-01.
pub const START: i64 = 1_704_067_200;

/// The seconds of a day.
const DAY: i64 = 86_400;

/// The days of a world.
pub struct Days {
    /// The world after the last day.
    pub world: World,
    /// The ids of nodes that came with the changes of any day.
    pub touched: HashSet<i64>,
    random: Random,
    day: i64,
    /// The ways that no day changes.
    fixed: HashSet<i64>,
    /// New nodes that are in no way yet.
    pending: Vec<i64>,
    /// The objects that the current day has changed.
    changed: HashSet<(Kind, i64)>,
    changes: Vec<Change>,
}

/// An object that was created, modified or deleted, and the name of the action.
#[derive(Debug, Clone)]
pub struct Change {
    action: &'static str,
    object: Object,
}

impl Change {
    /// A new object.
    pub fn created(object: Object) -> Self {
        Self {
            action: "create",
            object,
        }
    }
}

impl Days {
    /// The days that follow a world. In each of them, nodes come a day before their ways.
    pub fn of(world: &World, seed: u64) -> Self {
        let ways = world.of(Kind::Way).map(|way| way.id);
        Self {
            world: world.clone(),
            touched: HashSet::new(),
            random: Random(seed),
            day: 0,
            fixed: ways.filter(|id| id % 3 == 0).collect(),
            pending: Vec::new(),
            changed: HashSet::new(),
            changes: Vec::new(),
        }
    }

    /// Changes the world by a day. Returns the changes.
    pub fn next_day(&mut self) -> Vec<Change> {
        self.day += 1;
        self.changed.clear();
        self.add_way();
        self.add_nodes();
        for _ in 0..3 {
            self.move_node();
        }
        self.change_tags();
        self.change_way();
        self.delete_way();
        self.change_relation();
        self.delete_node();
        self.world.objects = in_order(std::mem::take(&mut self.world.objects));
        std::mem::take(&mut self.changes)
    }

    /// Nodes whose location each form can know: those that came with changes or have tags, and those of ways that no
    /// day changes.
    fn is_known(&self, node: &Object) -> bool {
        let mut ways = self.world.of(Kind::Way);
        self.touched.contains(&node.id)
            || !node.tags.is_empty()
            || ways.any(|way| self.fixed.contains(&way.id) && way.refs.contains(&node.id))
    }

    /// A random object of a kind that this day has not changed yet.
    fn any(&mut self, kind: Kind, is_wanted: impl Fn(&Self, &Object) -> bool) -> Option<Object> {
        let mut random = self.random.clone();
        let found = self.world.any(&mut random, kind, |object| {
            !self.changed.contains(&(kind, object.id)) && is_wanted(self, object)
        });
        self.random = random;
        found
    }

    /// Puts the next version of an object into the world.
    fn put(&mut self, object: Object, action: &'static str) {
        let key = (object.kind, object.id);
        self.changed.insert(key);
        if object.kind == Kind::Node {
            self.touched.insert(object.id);
        }
        let object = Object {
            version: Some(object.version.unwrap_or(1) + i64::from(action != "create")),
            timestamp: Some(START + self.day * DAY - 3600 + self.changes.len() as i64),
            changeset: Some(50_000 + self.day),
            uid: Some(3),
            user: Some("editor".to_owned()),
            ..object
        };
        let objects = &mut self.world.objects;
        objects.retain(|old| (old.kind, old.id) != key);
        if action != "delete" {
            objects.push(object.clone());
        }
        self.changes.push(Change { action, object });
    }

    /// Adds two nodes near others. The second one has a tag every other day.
    fn add_nodes(&mut self) {
        for number in 0..2 {
            let Some(near) = self.any(Kind::Node, |_, _| true) else {
                return;
            };
            let id = 700_000 + self.day * 10 + number;
            let mut node = Object::new(Kind::Node, if number == 0 { id } else { -id });
            self.shift(&mut node, &near);
            if number == 1 && self.day % 2 == 0 {
                node.tags.push(("amenity".to_owned(), "bench".to_owned()));
            }
            self.pending.push(node.id);
            self.put(node, "create");
        }
    }

    /// Places a node near another one.
    fn shift(&mut self, node: &mut Object, near: &Object) {
        let mut offset = || i64::from(self.random.between(-20_000, 20_000)) * 100;
        let (lat, lon) = (near.lat_nano + offset(), near.lon_nano + offset());
        let (pole, edge) = (90_000_000_000, 180_000_000_000);
        node.lat_nano = lat.clamp(-pole, pole);
        node.lon_nano = lon.clamp(-edge, edge);
    }

    /// Adds a way with the nodes of the day before, and another node.
    fn add_way(&mut self) {
        let mut refs = std::mem::take(&mut self.pending);
        if refs.is_empty() {
            return;
        }
        if let Some(node) = self.any(Kind::Node, Self::is_known) {
            refs.push(node.id);
        }
        let mut way = Object::new(Kind::Way, 700_000 + self.day);
        way.refs = refs;
        way.tags.push(("highway".to_owned(), "service".to_owned()));
        self.put(way, "create");
    }

    fn move_node(&mut self) {
        if let Some(mut node) = self.any(Kind::Node, |_, _| true) {
            let near = node.clone();
            self.shift(&mut node, &near);
            self.put(node, "modify");
        }
    }

    /// Adds a tag to a node without tags, or removes all tags.
    fn change_tags(&mut self) {
        if let Some(mut node) = self.any(Kind::Node, |_, _| true) {
            if node.tags.is_empty() {
                node.tags.push(("barrier".to_owned(), "gate".to_owned()));
            } else {
                node.tags.clear();
            }
            self.put(node, "modify");
        }
    }

    /// Adds a node to a way, or removes one.
    fn change_way(&mut self) {
        let way = self.any(Kind::Way, |days, way| !days.fixed.contains(&way.id));
        let (Some(mut way), Some(node)) = (way, self.any(Kind::Node, Self::is_known)) else {
            return;
        };
        if self.random.below(3) == 0 && !way.refs.is_empty() {
            way.refs.remove(0);
        } else {
            let at = self.random.below(way.refs.len() + 1);
            way.refs.insert(at, node.id);
        }
        self.put(way, "modify");
    }

    fn delete_way(&mut self) {
        let way = self.any(Kind::Way, |days, way| !days.fixed.contains(&way.id));
        if let Some(way) = way.filter(|_| self.random.below(2) == 0) {
            self.put(way, "delete");
        }
    }

    /// Adds a node to a relation, or removes a member.
    fn change_relation(&mut self) {
        let node = self.any(Kind::Node, |days, node| {
            days.touched.contains(&node.id) || !node.tags.is_empty()
        });
        let relation = self.any(Kind::Relation, |_, _| true);
        let (Some(node), Some(mut relation)) = (node, relation) else {
            return;
        };
        if self.random.below(2) == 0 && !relation.members.is_empty() {
            relation.members.remove(0);
        } else {
            let member = (Kind::Node, node.id, "via".to_owned());
            relation.members.push(member);
        }
        self.put(relation, "modify");
    }

    /// Deletes a node that no object refers to.
    fn delete_node(&mut self) {
        let node = self.any(Kind::Node, |days, node| {
            let objects = &days.world.objects;
            let in_relation =
                |(kind, id, _): &(Kind, i64, String)| *kind == Kind::Node && *id == node.id;
            !days.pending.contains(&node.id)
                && !objects
                    .iter()
                    .any(|one| one.refs.contains(&node.id) || one.members.iter().any(in_relation))
        });
        if let Some(node) = node {
            let id = node.id;
            self.put(node, "delete");
            self.touched.remove(&id);
        }
    }
}

/// A change file.
pub fn osc(changes: &[Change]) -> String {
    let elements = changes
        .iter()
        .map(|Change { action, object }| format!("<{action}>{}</{action}>\n", element(object)));
    let elements: String = elements.collect();
    format!(
        "<?xml version='1.0' encoding='UTF-8'?>\n<osmChange version='0.6'>\n{elements}</osmChange>\n"
    )
}

/// An object as an XML element.
fn element(object: &Object) -> String {
    let name = ["node", "way", "relation"][object.kind as usize];
    let time = format_timestamp(object.timestamp.unwrap_or(START));
    let mut text = format!(
        "<{name} id='{}' version='{}' timestamp='{time}' changeset='{}' uid='{}' user='{}'",
        object.id,
        object.version.unwrap_or(1),
        object.changeset.unwrap_or(0),
        object.uid.unwrap_or(0),
        object.user.as_deref().unwrap_or_default(),
    );
    if object.kind == Kind::Node {
        let [lat, lon] = [object.lat_nano, object.lon_nano].map(|nano| degrees(nano / 100));
        text += &format!(" lat='{lat}' lon='{lon}'");
    }
    text.push('>');
    for id in &object.refs {
        text += &format!("<nd ref='{id}'/>");
    }
    for (kind, id, role) in &object.members {
        let kind = ["node", "way", "relation"][*kind as usize];
        text += &format!("<member type='{kind}' ref='{id}' role='{role}'/>");
    }
    for (key, value) in &object.tags {
        text += &format!("<tag k='{key}' v='{value}'/>");
    }
    text + &format!("</{name}>")
}

/// Writes a server of change files, one for each day. The data before the first day has the sequence number 0.
pub fn write_server(server: &Path, days: &[Vec<Change>]) {
    let folder = server.join("000/000");
    fs::create_dir_all(&folder).expect("the server can be written");
    for sequence in 0..=days.len() {
        let time = format_timestamp(START + sequence as i64 * DAY).replace(':', "\\:");
        let state = format!("sequenceNumber={sequence}\ntimestamp={time}\n");
        let name = folder.join(format!("{sequence:03}.state.txt"));
        fs::write(name, &state).expect("the state can be written");
        fs::write(server.join("state.txt"), &state).expect("the state can be written");
    }
    for (sequence, changes) in (1..).zip(days) {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(osc(changes).as_bytes()).expect("gzip");
        let name = folder.join(format!("{sequence:03}.osc.gz"));
        fs::write(name, gzip.finish().expect("gzip")).expect("the changes can be written");
    }
}
