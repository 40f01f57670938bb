//! Checks the contents of a block column by column, without creating views of its objects.

use super::delta::Delta;
use super::dense::{DenseNodes, check_tags};
use super::element::Tags;
use super::messages::{NodeMessage, RawInfo, RelationMessage, WayMessage, string_id};
use super::outline::StringTable;
use super::parsed::{Block, BlockMessage};
use super::repeated_keys::FaultyTags;
use crate::error::FormatResult;
use crate::osm::ObjectKind;
use crate::pbf::wire::{are_short_varints, check_varints};

/// Facts about the objects of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ContentFacts {
    /// The number of strings with characters that XML 1.0 does not allow.
    pub inexpressible: u64,
    /// The numbers of tags that other programs misunderstand.
    pub faulty_tags: FaultyTags,
    /// Whether an object has a version or a changeset that other programs refuse.
    pub has_refused_info: bool,
    /// Whether there are deleted versions.
    pub has_deleted: bool,
    /// Whether there are ways with nodes but without the locations of these nodes.
    pub has_bare_ways: bool,
    /// Whether there are ways with the locations of their nodes.
    pub has_locations: bool,
}

impl Block<'_> {
    /// Checks all objects of the block, and returns the facts about them. [`ContentFacts::inexpressible`] is always 0.
    /// Fails wherever [`try_for_each`](Self::try_for_each) fails, but checks dense nodes column by column, which is
    /// four times as fast as visiting each node.
    pub(in crate::pbf) fn check_contents(&self) -> FormatResult<ContentFacts> {
        let (strings, mut facts) = (&self.strings, ContentFacts::default());
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            let info = match message {
                BlockMessage::Dense(dense) => {
                    let (is_visible, has_refused) = dense.check_contents(strings)?;
                    facts.has_deleted |= !is_visible;
                    facts.has_refused_info |= has_refused;
                    facts.faulty_tags.add(dense.count_faulty_tags(strings)?);
                    continue;
                }
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    let tags = Tags::from_key_and_value_runs(strings, &node.keys, &node.values)?;
                    facts.faulty_tags.add(FaultyTags::count_in(tags));
                    node.info
                }
                BlockMessage::Single(ObjectKind::Way, bytes) => {
                    let way = WayMessage::parse(bytes)?;
                    way.check_refs()?;
                    let tags = Tags::from_key_and_value_runs(strings, &way.keys, &way.values)?;
                    facts.faulty_tags.add(FaultyTags::count_in(tags));
                    facts.has_bare_ways |= !way.refs.is_empty() && way.lats.is_empty();
                    facts.has_locations |= !way.lats.is_empty();
                    RawInfo::parse_optional(way.info)?
                }
                BlockMessage::Single(ObjectKind::Relation, bytes) => {
                    let relation = RelationMessage::parse(bytes)?;
                    relation.check_members(strings.len())?;
                    let tags =
                        Tags::from_key_and_value_runs(strings, &relation.keys, &relation.values)?;
                    facts.faulty_tags.add(FaultyTags::count_in(tags));
                    RawInfo::parse_optional(relation.info)?
                }
            };
            check_user(info.user_sid.unwrap_or(0), strings)?;
            facts.has_deleted |= info.visible == Some(false);
            facts.has_refused_info |= info.refusal().is_some();
        }
        Ok(facts)
    }
}

/// Fails if `id`, the string id of a user, is out of range. The id 0 means "no user" even in a block without strings.
fn check_user(id: u32, strings: &StringTable<'_>) -> FormatResult<()> {
    match id {
        0 => Ok(()),
        id => strings.check(u64::from(id)),
    }
}

impl DenseNodes<'_> {
    /// Fails if a coordinate is malformed or does not fit into 64 bits.
    pub(in crate::pbf) fn check_coordinates(&self) -> FormatResult<()> {
        // A short varint is below 2^49, so the sum of fewer than 2^14 short varints does not overflow. A column with so
        // few values, all of them short, needs no further check.
        let is_few = self.len() < 1 << 14;
        for column in [&self.lats, &self.lons] {
            if !(is_few && are_short_varints(column.as_bytes())) {
                Delta::new(column).check_coordinates()?;
            }
        }
        Ok(())
    }

    /// Checks all columns. Returns `(is_visible, has_refused)`: whether all nodes are visible, and whether other
    /// programs refuse the version or the changeset of a node.
    fn check_contents(&self, strings: &StringTable<'_>) -> FormatResult<(bool, bool)> {
        let info = &self.info;
        for column in [&self.ids, &info.timestamps, &info.uids] {
            check_varints(column.as_bytes()).map_err(|error| error.within("DenseNodes"))?;
        }
        let has_refused = info
            .has_refused_info()
            .map_err(|error| error.within("DenseNodes"))?;
        self.check_coordinates()?;
        let tags = check_tags(self.keys_vals.values(), self.len(), |_, _| ())?;
        if tags.tags > 0 {
            strings.check(tags.largest_string)?;
        }
        let (mut users, mut user) = (info.user_sids.values(), 0_i64);
        while !users.is_done() {
            user = user.wrapping_add(users.read_sint()?);
            check_user(string_id(user as u64)?, strings)?;
        }
        let (mut flags, mut is_visible) = (info.visible.values(), true);
        while !flags.is_done() {
            is_visible &= flags.read()? != 0;
        }
        Ok((is_visible, has_refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FormatError;
    use crate::osm::Location;
    use crate::pbf::Element;
    use crate::pbf::Info;
    use crate::pbf::Object;
    use crate::pbf::encode::builder::BlockBuilder;

    fn encode_block(objects: &[Object<'_>], has_plain_nodes: bool) -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        if has_plain_nodes {
            builder.write_plain_nodes();
        }
        for object in objects {
            builder.add(object).unwrap();
        }
        builder.end_block();
        builder.take_blocks().remove(0).payload
    }

    fn sample_blocks() -> [Vec<u8>; 4] {
        let info = |version, user| Info {
            version: Some(version),
            timestamp: Some(1_700_000_000),
            changeset: Some(7),
            uid: Some(3),
            user: Some(user),
            visible: version != 2,
        };
        let place = Location::new(535_000_000, -100_000_000);
        let tags = [("highway", "bus_stop"), ("name", "Zoo")];
        let nodes = [
            Object::node(1, place, vec![]).with_info(info(1, "Ann")),
            Object::node(2, place, vec![tags[0]]).with_info(info(2, "Ben")),
            Object::node(1 << 60, place, tags.to_vec()).with_info(info(3, "Ann")),
        ];
        let way = Object::way(5, vec![1, 2, 1 << 60], tags.to_vec()).with_info(info(1, "Ann"));
        let members = vec![crate::pbf::Member {
            kind: ObjectKind::Way,
            id: 5,
            role: "outer",
        }];
        let relation = Object::relation(6, members, tags.to_vec()).with_info(info(1, "Ann"));
        [
            encode_block(&nodes, false),
            encode_block(&nodes, true),
            encode_block(&[way], false),
            encode_block(&[relation], false),
        ]
    }

    /// Returns the facts that are found by visiting all objects.
    fn facts_by_visit(block: &Block<'_>) -> FormatResult<ContentFacts> {
        let mut facts = ContentFacts::default();
        block.try_for_each(|element| {
            facts.has_deleted |= !element.info().visible;
            facts.faulty_tags.add(FaultyTags::count_in(element.tags()));
            if let Element::Way(way) = element {
                let is_located = way.nano_locations().next().is_some();
                facts.has_bare_ways |= way.refs().next().is_some() && !is_located;
                facts.has_locations |= is_located;
            }
            Ok::<(), FormatError>(())
        })?;
        let mut walk = block.walk();
        while walk.next()?.is_some() {
            facts.has_refused_info |= walk.info()?.refusal().is_some();
        }
        Ok(facts)
    }

    /// Replaces each byte of some blocks with every possible value. [`Block::check_contents`] must find the same errors
    /// and facts as visiting all objects.
    #[test]
    fn checking_by_column_finds_the_same_as_visiting() {
        let (mut agreed, mut damaged) = (0, 0);
        for payload in sample_blocks() {
            for (at, byte) in
                (0..payload.len()).flat_map(|at| (0..=255).map(move |byte| (at, byte)))
            {
                let mut payload = payload.clone();
                payload[at] = byte;
                let Ok(block) = Block::parse(&payload) else {
                    continue;
                };
                match (facts_by_visit(&block), block.check_contents()) {
                    (Ok(facts), Ok(found)) => {
                        assert_eq!(facts, found, "byte {at} is {byte}");
                        agreed += 1;
                    }
                    (Err(_), Err(_)) => damaged += 1,
                    // Visiting the objects does not read bytes of a column that follow its last value.
                    (Ok(_), Err(_)) => assert!(byte >= 0x80, "byte {at} is {byte}"),
                    (Err(error), Ok(_)) => panic!("byte {at} is {byte}: {error}"),
                }
            }
        }
        assert!(agreed > 10_000 && damaged > 1_000, "{agreed} {damaged}");
    }
}
