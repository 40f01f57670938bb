//! The ids and versions of dense nodes. Most writers put them at the beginning of a payload, before the other columns.

use super::messages::version_number;
use super::parsed::Block;
use super::prefix::{PrefixFields, Unread};
use crate::error::FormatResult;
use crate::osm::Location;
use crate::pbf::wire::schema::{dense_nodes, info, primitive_block, primitive_group};
use crate::pbf::wire::{Varints, count_varints};

/// The ids and versions of the nodes in the first DenseNodes message of a block.
pub(crate) struct NodeVersions<'a> {
    ids: Vec<i64>,
    versions: Varints<'a>,
}

impl<'a> NodeVersions<'a> {
    /// Finds the ids and versions in the beginning of a payload.
    pub(crate) fn parse_prefix(prefix: &'a [u8]) -> Result<Self, Unread> {
        let [ids, run] = columns(prefix)?;
        let count = count_varints(ids);
        if count != count_varints(run) {
            return Err(Unread::Elsewhere);
        }
        let (mut sums, versions) = (vec![0; count], Varints::new(run));
        let filled = Varints::new(ids).fill_sums(&mut sums, 0);
        filled.map_err(|_| Unread::Elsewhere)?;
        Ok(Self {
            ids: sums,
            versions,
        })
    }

    /// Returns the number of bytes from the start of the payload that are needed to find the ids and versions; `None`
    /// if `prefix` is enough, or if more bytes would not help.
    pub(crate) fn needed_bytes(prefix: &[u8]) -> Option<usize> {
        Unread::needed_bytes(&columns(prefix))
    }

    /// Returns the ids in the order of the nodes.
    pub(crate) fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// Calls `visit` with the id and the version of each selected node, as [`Block::for_each_selected_version`] does.
    fn for_each_selected(
        &self,
        select: impl FnOnce(&[i64], &mut Vec<usize>),
        mut visit: impl FnMut(i64, Option<u32>),
    ) -> FormatResult<()> {
        let mut selected = Vec::new();
        select(&self.ids, &mut selected);
        let (mut versions, mut next) = (self.versions, 0);
        for at in selected {
            versions.skip(at - next)?;
            let version = versions.read()? as i32;
            visit(self.ids[at], version_number(version.into()));
            next = at + 1;
        }
        Ok(())
    }
}

/// Returns the columns of ids and versions. Fails unless the payload begins with these fields, in this order:
/// `stringtable`, `primitivegroup.dense.id`, `primitivegroup.dense.denseinfo.version`.
fn columns(prefix: &[u8]) -> Result<[&[u8]; 2], Unread> {
    let mut fields = PrefixFields::new(prefix);
    fields.read_content(primitive_block::STRINGTABLE)?;
    fields.enter_field(primitive_block::PRIMITIVEGROUP)?;
    fields.enter_field(primitive_group::DENSE)?;
    let ids = fields.read_content(dense_nodes::ID)?;
    fields.enter_field(dense_nodes::DENSEINFO)?;
    let versions = fields.read_content(info::VERSION)?;
    Ok([ids, versions])
}

/// The nodes of a blob, either with all of their data or with ids and versions alone.
pub(crate) enum VersionedNodes<'b, 'p> {
    Block(&'b Block<'p>),
    /// Ids and versions alone.
    Versions(&'b NodeVersions<'p>),
}

impl VersionedNodes<'_, '_> {
    /// Does the same as [`Block::for_each_selected_version`]. For [`Self::Versions`], all locations are `None`.
    pub(crate) fn for_each_selected_version(
        &self,
        mut select: impl FnMut(&[i64], &mut Vec<usize>),
        needs_location: impl FnMut(i64) -> bool,
        mut visit: impl FnMut(i64, Option<Location>, Option<u32>),
    ) -> FormatResult<()> {
        match self {
            Self::Block(block) => block.for_each_selected_version(select, needs_location, visit),
            Self::Versions(versions) => {
                let visit = |id, version| visit(id, None, version);
                versions.for_each_selected(&mut select, visit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::osm::Location;
    use crate::pbf::encode::builder::BlockBuilder;
    use crate::pbf::{Info, Object};

    /// A block of nodes. With `has_info`, every third node has a version.
    fn payload(random: &mut Random, has_info: bool, is_plain: bool) -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        if is_plain {
            builder.write_plain_nodes();
        }
        let mut id = random.below(1 << 30) - (1 << 29);
        for at in 0..random.below(600) + 1 {
            id += random.below(1 << (1 + at % 30));
            let version = (at % 3 == 0).then(|| random.below(500) as u32 + 1);
            let info = Info {
                version: version.filter(|_| has_info),
                visible: true,
                ..Info::default()
            };
            let place = Location::new(random.below(900_000_000), random.below(900_000_000));
            let tags = [("highway", "crossing"), ("crossing", "marked")];
            let node = Object::node(id, place, tags[..at as usize % 3].to_vec());
            builder.add(&node.with_info(info)).unwrap();
        }
        builder.end_block();
        builder.take_blocks().remove(0).payload
    }

    /// Returns the ids and versions of the nodes whose id is a multiple of `step`.
    fn selected_versions(nodes: VersionedNodes<'_, '_>, step: i64) -> Vec<(i64, Option<u32>)> {
        let mut found = Vec::new();
        let select = |ids: &[i64], selected: &mut Vec<usize>| {
            let wanted = |at: &usize| ids[*at].rem_euclid(step) == 0;
            selected.extend((0..ids.len()).filter(wanted));
        };
        let visit = |id, location: Option<Location>, version| {
            assert_eq!(location, None);
            found.push((id, version));
        };
        nodes
            .for_each_selected_version(select, |_| false, visit)
            .unwrap();
        found
    }

    #[test]
    fn the_beginning_of_a_block_has_the_versions_of_the_whole_block() {
        let mut random = Random(12);
        for _ in 0..40 {
            let payload = payload(&mut random, true, false);
            let block = Block::parse(&payload).unwrap();
            let mut len = 0;
            while let Some(needed) = NodeVersions::needed_bytes(&payload[..len]) {
                assert!(needed > len);
                len = needed.min(payload.len());
            }
            assert!(len < payload.len() || payload.len() < 300);
            let versions = NodeVersions::parse_prefix(&payload[..len]).ok().unwrap();
            let all = selected_versions(VersionedNodes::Block(&block), 1);
            assert!(all.iter().any(|(_, version)| version.is_some()));
            assert!(all.iter().map(|(id, _)| id).eq(versions.ids()));
            for step in [1, 2, 7, 300] {
                assert_eq!(
                    selected_versions(VersionedNodes::Versions(&versions), step),
                    selected_versions(VersionedNodes::Block(&block), step)
                );
            }
            for short in 0..len {
                let found = NodeVersions::parse_prefix(&payload[..short]);
                let is_found = found.is_ok_and(|found| found.ids() == versions.ids());
                let needed = NodeVersions::needed_bytes(&payload[..short]);
                assert!(is_found || needed.is_some_and(|needed| needed > short));
            }
        }
    }

    #[test]
    fn other_layouts_and_damage_need_the_whole_block() {
        let mut random = Random(13);
        for (has_info, is_plain) in [(false, false), (true, true)] {
            let payload = payload(&mut random, has_info, is_plain);
            let found = NodeVersions::parse_prefix(&payload);
            assert!(found.is_err_and(|error| error == Unread::Elsewhere));
        }
        for _ in 0..2000 {
            let mut payload = payload(&mut random, true, false);
            payload.truncate(400);
            for _ in 0..random.below(4) {
                let at = random.below(payload.len());
                payload[at] = random.below(256) as u8;
            }
            if let Ok(versions) = NodeVersions::parse_prefix(&payload) {
                let every = |ids: &[i64], selected: &mut Vec<usize>| selected.extend(0..ids.len());
                let _ = versions.for_each_selected(every, |_, _| ());
            }
        }
    }
}
