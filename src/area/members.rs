//! The member ways of a relation.

use super::way_store::{StoredWay, WayStore};
use super::{
    AreaNode, AreaWay, Assembly, OpenRings, Role, assemble_with_antimeridian,
    assembly_with_too_many_nodes,
};
use crate::geometry::Antimeridian;
use crate::osm::ObjectKind;
use crate::pbf::Member;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The member ways of a relation.
#[derive(Default)]
pub(crate) struct MemberWays {
    /// The ways that were found with all their nodes. Each has its id, its role, and the range of its nodes in the list
    /// that [`read`](Self::read) fills. A way that is a member several times is listed twice, and its second range is
    /// empty.
    ways: Vec<(i64, Role, Range<usize>)>,
    /// The first way or node that is missing; `None` if all member ways and their nodes were found.
    pub missing: Option<MissingMember>,
    /// Whether the ways have more nodes than the store allows for an area. If so, their nodes are not kept.
    is_too_large: bool,
}

/// The reason why a member way is incomplete: the way is not in the file, or one of its nodes is missing or has no
/// location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingMember {
    /// The id of a way that is not in the file.
    Way(i64),
    /// The id of a way, and the id of its first node that is missing or has no location.
    NodeOf(i64, i64),
}

impl MemberWays {
    /// Reads the member ways from a store. Replaces the contents of `nodes` with the nodes of all complete member ways.
    /// Each way is read once, however often it is a member.
    pub(crate) fn read<'m>(
        members: impl Iterator<Item = Member<'m>>,
        ways: &WayStore,
        nodes: &mut Vec<AreaNode>,
    ) -> Self {
        nodes.clear();
        let mut found = Self::default();
        // Maps the id of each way in `found.ways` to whether the way is listed there a second time.
        let mut known: FxHashMap<i64, bool> = FxHashMap::default();
        for member in members.filter(|member| member.kind == ObjectKind::Way) {
            let (start, role) = (nodes.len(), Role::of(member.role));
            if let Some(is_repeated) = known.get_mut(&member.id) {
                if !std::mem::replace(is_repeated, true) {
                    found.ways.push((member.id, role, start..start));
                }
                continue;
            }
            let missing = match ways.read(member.id, nodes) {
                StoredWay::Located => {
                    known.insert(member.id, false);
                    found.ways.push((member.id, role, start..nodes.len()));
                    if nodes.len() > ways.max_nodes {
                        found.is_too_large = true;
                        *nodes = Vec::new();
                        break;
                    }
                    continue;
                }
                StoredWay::Missing => MissingMember::Way(member.id),
                StoredWay::Unlocated(node) => MissingMember::NodeOf(member.id, node),
            };
            found.missing.get_or_insert(missing);
        }
        found
    }

    /// Whether no complete member way was found.
    pub(crate) const fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Assembles the area, as [`assemble_with_antimeridian`](super::assemble_with_antimeridian) does. `nodes` is
    /// the list that [`read`](Self::read) has filled.
    pub(crate) fn assemble(
        &self,
        nodes: &[AreaNode],
        antimeridian: Antimeridian,
        open_rings: OpenRings,
    ) -> Assembly {
        if self.is_too_large {
            return assembly_with_too_many_nodes();
        }
        let ways = self.ways.iter().map(|(id, role, range)| AreaWay {
            id: *id,
            role: *role,
            nodes: &nodes[range.clone()],
        });
        assemble_with_antimeridian(&ways.collect::<Vec<_>>(), antimeridian, open_rings)
    }
}
