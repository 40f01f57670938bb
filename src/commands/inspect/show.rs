//! `show`: finds objects by their ids, and returns them as they are stored.

use crate::engine::id_search::id_search_for;
use crate::engine::input;
use crate::engine::scan::Scan;
use crate::error::{FormatError, FormatResult, Result};
use crate::file::{BlobPlan, PlanNeeds};
use crate::index::IdSets;
use crate::osm::{Degrees, ObjectId, ObjectKind, format_timestamp};
use crate::pbf::{Block, Element, Info};
use crate::runtime::Context;
use serde::Serialize;
use std::path::PathBuf;

/// The options of `show`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The input file; `-` is standard input.
    pub input: PathBuf,
    /// The ids of the wanted objects.
    pub ids: Vec<ObjectId>,
}

/// A member of a relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownMember {
    /// The kind of the member.
    pub kind: ObjectKind,
    /// The id of the member.
    pub id: i64,
    /// The role of the member.
    pub role: String,
}

/// An object as it is stored in the file. Fields that the stored object does not have are `None` or empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownObject {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The version of the object.
    pub version: Option<u32>,
    /// The time of the version, such as `2026-11-20T00:00:00Z`.
    pub timestamp: Option<String>,
    /// The id of the changeset that made the version.
    pub changeset: Option<i64>,
    /// The id of the user who made the version.
    pub uid: Option<i32>,
    /// The name of the user who made the version.
    pub user: Option<String>,
    /// Whether the version is visible: false for a deleted version.
    pub visible: bool,
    /// The location of a node; `None` for a deleted node, and for ways and relations.
    pub location: Option<Degrees>,
    /// The tags: pairs of key and value.
    pub tags: Vec<(String, String)>,
    /// The ids of the nodes of a way.
    pub refs: Vec<i64>,
    /// The locations of the nodes of a way, if the way has coordinates.
    pub locations: Vec<Degrees>,
    /// The members of a relation.
    pub members: Vec<ShownMember>,
}

/// The result of `show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// All versions of the objects that were found, in file order.
    pub objects: Vec<ShownObject>,
    /// The ids that are not in the file, in canonical order and in the form `n17`.
    pub missing: Vec<String>,
}

/// Finds objects by their ids.
///
/// Reads one file, which may be unsorted or a history file. Decodes only the blobs that may contain a wanted id. These
/// are found by the blobs' id ranges and, if the file has one, by the table of ids. Writes nothing. An id that is not
/// in the file is not an error; the summary lists it.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and the objects that are found.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged ([details](crate::commands#errors)).
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let wanted: IdSets = options.ids.iter().copied().collect();
    let file = input::open(&options.input, ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Frames, ctx)?;
    let sets = [&wanted];
    let search = id_search_for(&sets, &file, ctx)?;
    let mut objects = Vec::new();
    Scan::without_strings("find objects", &file, &plan, ctx).run(
        |entry| entry.kinds.is_empty() || search.may_have_wanted(entry),
        |_, block| {
            let mut is_here = false;
            block.for_each_id(|kind, id| is_here |= wanted.contains(kind, id))?;
            if is_here {
                shown_objects(block.payload(), &wanted)
            } else {
                Ok(Vec::new())
            }
        },
        |found| objects.extend(found),
    )?;
    let is_missing = |id: &ObjectId| {
        let found = |object: &ShownObject| (object.kind, object.id) == (id.kind, id.id);
        !objects.iter().any(found)
    };
    let missing = wanted.ids().filter(is_missing).map(|id| id.to_string());
    Ok(Summary {
        missing: missing.collect(),
        objects,
    })
}

fn shown_objects(payload: &[u8], wanted: &IdSets) -> FormatResult<Vec<ShownObject>> {
    let mut shown = Vec::new();
    Block::parse(payload)?.try_for_each(|element| {
        if wanted.contains(element.kind(), element.id()) {
            shown.push(shown_object(&element));
        }
        Ok::<_, FormatError>(())
    })?;
    Ok(shown)
}

fn shown_object(element: &Element<'_>) -> ShownObject {
    let (info, tags) = match element {
        Element::Node(node) => (node.info(), node.tags()),
        Element::Way(way) => (way.info(), way.tags()),
        Element::Relation(relation) => (relation.info(), relation.tags()),
    };
    let Info {
        version,
        timestamp,
        changeset,
        uid,
        user,
        visible,
    } = info;
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let mut object = ShownObject {
        kind: element.kind(),
        id: element.id(),
        version,
        timestamp: timestamp.map(format_timestamp),
        changeset,
        uid,
        user: user.map(str::to_owned),
        visible,
        location: None,
        tags: tags.map(owned).collect(),
        refs: Vec::new(),
        locations: Vec::new(),
        members: Vec::new(),
    };
    match element {
        Element::Node(node) => {
            object.location = visible.then(|| degrees(node.nano_lat(), node.nano_lon()));
        }
        Element::Way(way) => {
            object.refs = way.refs().collect();
            let locations = way.nano_locations();
            object.locations = locations.map(|(lat, lon)| degrees(lat, lon)).collect();
        }
        Element::Relation(relation) => {
            object.members = relation
                .members()
                .map(|member| ShownMember {
                    kind: member.kind,
                    id: member.id,
                    role: member.role.to_owned(),
                })
                .collect();
        }
    }
    object
}

fn degrees(nano_lat: i64, nano_lon: i64) -> Degrees {
    Degrees {
        lat: nano_lat as f64 / 1e9,
        lon: nano_lon as f64 / 1e9,
    }
}
