//! Facts that relations provide about nodes and ways, such as the street of a house and the label of a boundary.
//!
//! Relations come last in a file, but are read first to find the members of areas. The facts are kept from this first
//! pass, so that an address can be completed as soon as its object is visited.

use super::kinds::{is_short, place_kind};
use crate::error::{FormatError, FormatResult};
use crate::geocode::{CENTRE, ItemTags, LABEL, is_same_name, nonblank_tag, tag};
use crate::osm::ObjectKind;
use crate::pbf::{Block, Element, Relation};
use crate::runtime::lock;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Mutex, OnceLock};

/// A relation that assigns houses to a street.
#[derive(Debug, Default)]
pub(super) struct StreetRelation {
    /// The address tags that the relation provides for its houses. A house's own tag with the same key takes
    /// precedence.
    pub tags: Vec<(String, String)>,
    /// The id of the way that has the street name. Set only if the relation itself has no street name.
    pub way: Option<i64>,
}

/// The facts from the relations read so far, in any order.
#[derive(Debug, Default)]
struct Gathered {
    /// The kind and the id of each house, and the id of its relation.
    houses: Vec<(ObjectKind, i64, i64)>,
    streets: FxHashMap<i64, StreetRelation>,
    /// The nodes that are labels or centres of boundaries.
    labels: FxHashSet<i64>,
}

/// The facts about the members of relations.
#[derive(Debug, Default)]
pub(super) struct Relations {
    gathering: Mutex<Gathered>,
    gathered: OnceLock<Gathered>,
    /// The kind and the name of each place that is a label or a centre of a boundary, by node id.
    places: Mutex<FxHashMap<i64, (&'static str, String)>>,
}

/// Returns the key under which the index stores a boundary member with this role; `None` unless the role is that of a
/// label or a centre.
fn label_key(role: &str) -> Option<&'static str> {
    match role {
        "label" => Some(LABEL),
        "admin_centre" => Some(CENTRE),
        _ => None,
    }
}

impl Relations {
    /// Adds the facts from the relations of a block. Blocks come in any order, before any object is visited.
    pub(super) fn read_block(&self, block: &Block<'_>) -> FormatResult<()> {
        let mut found = Gathered::default();
        block.try_for_each(|element| {
            if let Element::Relation(relation) = element {
                let tags: ItemTags<'_> = relation.tags().filter(is_short).collect();
                match tag(&tags, "type") {
                    Some("associatedStreet" | "street") => found.add_street(&relation, &tags),
                    _ if tag(&tags, "boundary") == Some("administrative") => {
                        let members = relation.members();
                        let labels = members.filter(|member| {
                            member.kind == ObjectKind::Node && label_key(member.role).is_some()
                        });
                        found.labels.extend(labels.map(|member| member.id));
                    }
                    _ => {}
                }
            }
            Ok::<(), FormatError>(())
        })?;
        let mut all = lock(&self.gathering);
        all.houses.append(&mut found.houses);
        all.streets.extend(found.streets);
        all.labels.extend(found.labels);
        Ok(())
    }

    /// Returns the facts from all blocks. No block may be read after the first call.
    fn gathered_facts(&self) -> &Gathered {
        self.gathered.get_or_init(|| {
            let mut gathered = std::mem::take(&mut *lock(&self.gathering));
            gathered.houses.sort_unstable();
            gathered
        })
    }

    /// Returns the street of a house. If a house is a member of several relations, the one with the lowest id counts.
    pub(super) fn street_of(&self, kind: ObjectKind, id: i64) -> Option<&StreetRelation> {
        let Gathered {
            houses, streets, ..
        } = self.gathered_facts();
        let at = houses.partition_point(|(of, house, _)| (*of, *house) < (kind, id));
        let (_, _, relation) = houses
            .get(at)
            .filter(|(of, house, _)| (*of, *house) == (kind, id))?;
        Some(&streets[relation])
    }

    /// Adds a node that is a named place, if the node is the label or the centre of a boundary.
    pub(super) fn add_place(&self, node: i64, tags: &ItemTags<'_>) {
        if self.gathered_facts().labels.contains(&node)
            && let Some((kind, name)) = place_kind(tags).zip(tag(tags, "name"))
        {
            lock(&self.places).insert(node, (kind, name.to_owned()));
        }
    }

    /// Returns a pair for the label node and a pair for the centre node of a boundary. A pair consists of the key under
    /// which the index stores the node, and the node's kind of place. A node whose name is not that of the boundary is
    /// left out.
    pub(super) fn labels(
        &self,
        boundary: &Relation<'_>,
        tags: &ItemTags<'_>,
    ) -> Vec<(&'static str, &'static str)> {
        let mut labels: Vec<(&'static str, &'static str)> = Vec::new();
        let Some(name) = tag(tags, "name") else {
            return labels;
        };
        for member in boundary.members() {
            let key = label_key(member.role).filter(|_| member.kind == ObjectKind::Node);
            let Some(key) = key.filter(|key| labels.iter().all(|(other, _)| other != key)) else {
                continue;
            };
            if let Some((kind, place)) = lock(&self.places).get(&member.id)
                && is_same_name(place, name)
            {
                labels.push((key, kind));
            }
        }
        labels
    }
}

impl Gathered {
    fn add_street(&mut self, relation: &Relation<'_>, tags: &ItemTags<'_>) {
        let (mut way, before) = (None, self.houses.len());
        for member in relation.members() {
            match (member.role, member.kind) {
                ("house" | "address" | "addr:houselink", kind) => {
                    self.houses.push((kind, member.id, relation.id()));
                }
                ("street" | "", ObjectKind::Way) => way = way.or(Some(member.id)),
                _ => {}
            }
        }
        if self.houses.len() == before {
            return;
        }
        // A relation may list the same house several times.
        let mut own = self.houses.split_off(before);
        own.sort_unstable();
        own.dedup();
        self.houses.append(&mut own);
        let name = nonblank_tag(tags, "addr:street").or(nonblank_tag(tags, "name"));
        let mut of_address: Vec<(String, String)> = Vec::new();
        if let Some(name) = name {
            of_address.push(("addr:street".to_owned(), name.to_owned()));
        }
        let is_part = |key: &str| {
            key.starts_with("addr:") && !matches!(key, "addr:street" | "addr:housenumber")
        };
        let parts = tags.iter().filter(|(key, _)| is_part(key));
        of_address.extend(parts.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let street = StreetRelation {
            way: way.filter(|_| name.is_none()),
            tags: of_address,
        };
        self.streets.insert(relation.id(), street);
    }
}
