//! Limits the work for areas. A few bytes of a file can make a long way a member of one more relation, and each
//! relation assembles the way again. So without a limit, a small file could cause almost endless work.

use super::{GeometryPass, UNDECIDED};
use crate::area::{MAX_NODES, WayStore};
use crate::engine::scan::Scan;
use crate::error::{FormatResult, Result};
use crate::osm::ObjectKind;
use crate::pbf::{Block, Element, Relation};

/// Areas are always assembled if together they have at most this many nodes, plus [`NODES_PER_BYTE`] for each byte of
/// the file. The areas of real files have at most two nodes for each byte.
const NODES: u64 = 16 << 20;
const NODES_PER_BYTE: u64 = 16;

impl GeometryPass<'_> {
    /// Sets the maximum number of nodes of an area, so that all assembled areas together do not exceed the limit for
    /// the file. `members` is the number of member ways of the relations that `areas` selects. The relations are read
    /// again only if that many ways, each as long as the longest way, would exceed the limit.
    pub(super) fn limit_areas(
        &self,
        areas: &(impl Fn(&Block<'_>) -> FormatResult<Vec<bool>> + Sync),
        ways: &mut WayStore,
        members: u64,
    ) -> Result<()> {
        let most = NODES + NODES_PER_BYTE.saturating_mul(self.file.input.user_file_len());
        if members.saturating_mul(ways.longest_way_node_count() as u64) <= most {
            return Ok(());
        }
        let (mut counts, known) = (Vec::new(), &*ways);
        let scan =
            Scan::without_strings("members", self.file, &self.plan, &self.ctx).with_strings();
        scan.collect(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |block, counts| {
                let mut areas = areas(block)?.into_iter();
                block.try_for_each(|element| {
                    let is_wanted = areas.next().ok_or(UNDECIDED)?;
                    if let Element::Relation(relation) = element
                        && is_wanted
                    {
                        counts.push(node_count(&relation, known));
                    }
                    Ok(())
                })
            },
            &mut counts,
        )?;
        ways.set_max_nodes(max_nodes_of_area(counts, most));
        Ok(())
    }
}

/// Returns the number of nodes of the member ways of a relation. A way that is a member several times counts once.
fn node_count(relation: &Relation<'_>, ways: &WayStore) -> u64 {
    let members = relation.members();
    let members = members.filter(|member| member.kind == ObjectKind::Way);
    let mut ids: Vec<i64> = members.map(|member| member.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| ways.node_count(id)).sum()
}

/// Returns the maximum number of nodes of an area. It is chosen so that all areas up to this size have at most `most`
/// nodes in total. `counts` has the number of nodes of each area.
fn max_nodes_of_area(mut counts: Vec<u64>, most: u64) -> usize {
    counts.retain(|count| *count <= MAX_NODES as u64);
    counts.sort_unstable();
    let mut total = 0;
    let beyond = counts.into_iter().find(|count| {
        total += count;
        total > most
    });
    beyond.map_or(MAX_NODES, |count| count.saturating_sub(1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_areas_are_left_out_first() {
        assert_eq!(max_nodes_of_area(vec![], 0), MAX_NODES);
        assert_eq!(max_nodes_of_area(vec![5, 90, 7], 102), MAX_NODES);
        assert_eq!(max_nodes_of_area(vec![5, 90, 7], 101), 89);
        // Areas of the same size are either all assembled, or all left out.
        assert_eq!(max_nodes_of_area(vec![8; 100], 799), 7);
        // Areas with more than `MAX_NODES` nodes are never assembled, so they do not count.
        assert_eq!(max_nodes_of_area(vec![5, u64::MAX], 100), MAX_NODES);
    }
}
