//! Walks over the objects of a block. `BlockWalk` decodes only the requested fields of each object. The other walks
//! decode only ids or tags.

use super::delta::{Delta, STRIDE};
use super::dense::{DenseNodes, InfoCursor, next_tag_run};
use super::element::Element;
use super::messages::{RawInfo, RelationMessage, TagIds, VersionInfo, WayRefs, object_id};
use super::parsed::{Block, BlockMessage, Messages};
use crate::error::FormatResult;
use crate::osm::{ObjectKind, TypeThenId, id_rank};
use crate::pbf::wire::Varints;

/// A walk over the objects of a [`Block`] in file order. The current object is the one that [`next`](Self::next)
/// reached last. Each method decodes only the fields of the current object that it needs.
#[derive(Debug)]
pub(crate) struct BlockWalk<'a> {
    messages: Messages<'a>,
    current: Current<'a>,
    /// The reader of the versions of the current dense nodes; `None` until a version is requested. A [`DenseWalk`]
    /// without this field needs no drop code when the walk moves to the next message.
    versions: Option<Box<InfoCursor<'a>>>,
    /// The reader of all metadata of the current dense nodes; `None` until metadata is requested.
    infos: Option<Box<InfoCursor<'a>>>,
}

/// The current object of a walk.
#[derive(Debug)]
enum Current<'a> {
    Dense(DenseWalk<'a>),
    /// The message of a single object; empty before the first object.
    Single(ObjectKind, &'a [u8]),
}

/// A walk over the nodes of a DenseNodes message. The column of tags is read only on request, up to the current node.
#[derive(Debug)]
struct DenseWalk<'a> {
    nodes: &'a DenseNodes<'a>,
    ids: Delta<'a>,
    /// The id of the current node.
    id: i64,
    /// The number of ids read so far.
    read: usize,
    tags: Varints<'a>,
    /// The number of nodes whose tags were read so far.
    tags_read: usize,
    /// The tags of the last node whose tags were read.
    last_tags: &'a [u8],
}

impl Block<'_> {
    /// Returns a walk over the objects in file order.
    pub(crate) fn walk(&self) -> BlockWalk<'_> {
        BlockWalk {
            messages: self.messages(),
            current: Current::Single(ObjectKind::Node, &[]),
            versions: None,
            infos: None,
        }
    }

    /// Calls `visit` with the kind and the id of each object, in file order.
    pub(crate) fn for_each_id(&self, mut visit: impl FnMut(ObjectKind, i64)) -> FormatResult<()> {
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Single(kind, message) => visit(kind, object_id(message, kind)?),
                BlockMessage::Dense(dense) => {
                    let mut deltas = Delta::new(&dense.ids);
                    let (mut ids, mut left) = ([0; STRIDE], dense.len());
                    while left > 0 {
                        let ids = &mut ids[..left.min(STRIDE)];
                        deltas.fill(ids)?;
                        ids.iter().for_each(|id| visit(ObjectKind::Node, *id));
                        left -= ids.len();
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` for each tag of the objects of one kind, with the string ids of its key and its value.
    pub(crate) fn for_each_tag(
        &self,
        kind: ObjectKind,
        mut visit: impl FnMut(u64, u64),
    ) -> FormatResult<()> {
        if !self.has(kind) {
            return Ok(());
        }
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Single(found, bytes) if found == kind => {
                    TagIds::Message(bytes).for_each(&mut visit)?;
                }
                BlockMessage::Dense(dense) if kind == ObjectKind::Node => {
                    let mut ids = dense.keys_vals.values();
                    while !ids.is_done() {
                        match ids.read()? {
                            0 => {}
                            key => visit(key, ids.read()?),
                        }
                    }
                }
                BlockMessage::Single(..) | BlockMessage::Dense(_) => {}
            }
        }
        Ok(())
    }
}

impl<'a> BlockWalk<'a> {
    /// Moves to the next object and returns its kind; `None` after the last one.
    #[inline]
    pub(crate) fn next(&mut self) -> FormatResult<Option<ObjectKind>> {
        if let Current::Dense(nodes) = &mut self.current
            && nodes.next()?
        {
            return Ok(Some(ObjectKind::Node));
        }
        match self.messages.next()? {
            None => Ok(None),
            Some(BlockMessage::Single(kind, message)) => {
                self.current = Current::Single(kind, message);
                Ok(Some(kind))
            }
            Some(BlockMessage::Dense(dense)) => {
                let mut nodes = DenseWalk::new(dense);
                nodes.next()?;
                self.current = Current::Dense(nodes);
                (self.versions, self.infos) = (None, None);
                Ok(Some(ObjectKind::Node))
            }
        }
    }

    /// Moves to the next object and returns its sort key; `None` after the last one.
    #[inline]
    pub(crate) fn next_sort_key(&mut self) -> FormatResult<Option<TypeThenId>> {
        match self.next()? {
            Some(kind) => Ok(Some((kind, id_rank(self.id()?)))),
            None => Ok(None),
        }
    }

    /// The kind of the current object.
    pub(crate) const fn kind(&self) -> ObjectKind {
        match self.current {
            Current::Dense(_) => ObjectKind::Node,
            Current::Single(kind, _) => kind,
        }
    }

    /// The id of the current object. Fails if its message has no id.
    #[inline]
    pub(crate) fn id(&self) -> FormatResult<i64> {
        match &self.current {
            Current::Dense(nodes) => Ok(nodes.id),
            Current::Single(kind, message) => object_id(message, *kind),
        }
    }

    /// The tags of the current object.
    #[inline]
    pub(crate) fn tags(&mut self) -> FormatResult<TagIds<'a>> {
        match &mut self.current {
            Current::Dense(nodes) => nodes.tags(),
            Current::Single(_, message) => Ok(TagIds::Message(message)),
        }
    }

    /// The version of the current object, its time in the units of the block, and whether it is a deleted version.
    pub(crate) fn version_info(&mut self) -> FormatResult<VersionInfo> {
        let info = match &self.current {
            Current::Dense(nodes) => {
                let versions = (self.versions)
                    .get_or_insert_with(|| Box::new(nodes.nodes.version_info_cursor()));
                versions.info_at(nodes.read - 1)?
            }
            Current::Single(_, message) => RawInfo::of_object(message)?,
        };
        Ok(info.version_info())
    }

    /// The metadata of the current object, in the units of the block.
    pub(crate) fn info(&mut self) -> FormatResult<RawInfo> {
        match &self.current {
            Current::Dense(nodes) => {
                let infos = (self.infos).get_or_insert_with(|| Box::new(nodes.nodes.info_cursor()));
                infos.info_at(nodes.read - 1)
            }
            Current::Single(_, message) => RawInfo::of_object(message),
        }
    }

    /// Whether `test` returns `true` for the id of any node of the current object. The object must be a way.
    pub(crate) fn any_ref(&self, test: impl FnMut(i64) -> bool) -> FormatResult<bool> {
        WayRefs::parse(self.message())?.any_ref(test)
    }

    /// Whether the current object ends at its first node and has at least `least` nodes. The object must be a way.
    pub(crate) fn is_closed(&self, least: usize) -> FormatResult<bool> {
        let (mut first, mut last, mut count) = (None, None, 0);
        self.any_ref(|id| {
            first.get_or_insert(id);
            last = Some(id);
            count += 1;
            false
        })?;
        Ok(count >= least && first == last)
    }

    /// Whether `test` returns `true` for the kind and the id of any member of the current object. The object must be a
    /// relation.
    pub(crate) fn any_member(
        &self,
        test: impl FnMut(ObjectKind, i64) -> bool,
    ) -> FormatResult<bool> {
        RelationMessage::parse(self.message())?.any_member(test)
    }

    /// Calls `visit` with the current object, without the metadata of a way. Does nothing for a dense node.
    pub(crate) fn visit_message(
        &self,
        block: &Block<'_>,
        visit: &mut dyn FnMut(Element<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        match self.current {
            Current::Dense(_) => Ok(()),
            Current::Single(kind, message) => block.visit_single(kind, message, false, visit),
        }
    }

    /// The message of the current object; empty for a dense node.
    const fn message(&self) -> &'a [u8] {
        match self.current {
            Current::Dense(_) => &[],
            Current::Single(_, message) => message,
        }
    }
}

impl<'a> DenseWalk<'a> {
    fn new(nodes: &'a DenseNodes<'a>) -> Self {
        Self {
            nodes,
            ids: Delta::new(&nodes.ids),
            id: 0,
            read: 0,
            tags: nodes.keys_vals.values(),
            tags_read: 0,
            last_tags: &[],
        }
    }

    /// Moves to the next node. Returns `false` after the last one.
    #[inline(always)]
    fn next(&mut self) -> FormatResult<bool> {
        let has_next = self.read < self.nodes.len();
        if has_next {
            self.read += 1;
            self.id = self.ids.read()?;
        }
        Ok(has_next)
    }

    /// Returns the tags of the current node.
    #[inline]
    fn tags(&mut self) -> FormatResult<TagIds<'a>> {
        while self.tags_read < self.read {
            self.last_tags = next_tag_run(&mut self.tags)?;
            self.tags_read += 1;
        }
        Ok(TagIds::Dense(self.last_tags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FormatError;
    use crate::pbf::block::samples::block_of_nodes;
    use crate::pbf::encode::builder::BlockBuilder;
    use crate::pbf::wire::Packed;
    use crate::pbf::{Element, Info, Object};

    /// The tags of the current object, as strings.
    fn current_tags(walk: &mut BlockWalk<'_>, block: &Block<'_>) -> Vec<[String; 2]> {
        let (mut tags, ids) = (Vec::new(), walk.tags().unwrap());
        let string = |id| block.strings.get(id).unwrap().to_owned();
        ids.for_each(|key, value| tags.push([string(key), string(value)]))
            .unwrap();
        tags
    }

    #[test]
    fn a_walk_reads_the_same_data_as_views() {
        for has_plain_nodes in [false, true] {
            let payload = block_of_nodes(1..40, has_plain_nodes);
            let block = Block::parse(&payload).unwrap();
            let mut expected = Vec::new();
            let visited = block.try_for_each(|element| {
                let Element::Node(node) = element else {
                    panic!("not a node");
                };
                let tags: Vec<_> = node
                    .tags()
                    .map(|(key, value)| [key, value].map(str::to_owned))
                    .collect();
                let info = node.info();
                let user = info.user.unwrap().to_owned();
                expected.push((
                    node.id(),
                    tags,
                    (info.version, info.timestamp, info.visible),
                    user,
                ));
                Ok::<_, FormatError>(())
            });
            visited.unwrap();
            for step in 1..=expected.len() {
                let (mut walk, mut index) = (block.walk(), 0);
                while let Some(key) = walk.next_sort_key().unwrap() {
                    let (id, tags, version, user) = &expected[index];
                    assert_eq!(key, (ObjectKind::Node, id_rank(*id)));
                    for _ in 0..2 {
                        if index % step == 0 {
                            assert_eq!(current_tags(&mut walk, &block), *tags);
                        }
                        if index % step == step / 2 {
                            let found = walk.version_info().unwrap();
                            let found = (
                                found.version_number(),
                                Some(found.timestamp),
                                !found.is_deleted,
                            );
                            assert_eq!(found, *version);
                        }
                        if index % step == step / 3 {
                            let info = walk.info().unwrap();
                            let info = Info::resolve(&info, &block.units, &block.strings).unwrap();
                            assert_eq!(info.user, Some(user.as_str()));
                            assert_eq!((info.version, info.timestamp, info.visible), *version);
                        }
                    }
                    index += 1;
                }
                assert_eq!(index, expected.len());
            }
        }
    }

    #[test]
    fn a_search_in_refs_ends_at_the_first_match() {
        let mut builder = BlockBuilder::default();
        for refs in [vec![1, 2, 3, 1], vec![4, 5], vec![]] {
            builder.add(&Object::way(7, refs, vec![])).unwrap();
        }
        builder.end_block();
        let payload = builder.take_blocks().remove(0).payload;
        let block = Block::parse_without_strings(&payload).unwrap();
        let (mut walk, mut found) = (block.walk(), Vec::new());
        while walk.next().unwrap().is_some() {
            let mut read = Vec::new();
            let has_two = walk.any_ref(|id| {
                read.push(id);
                id == 2
            });
            found.push((has_two.unwrap(), read, walk.is_closed(4).unwrap()));
        }
        let expected = [
            (true, vec![1, 2], true),
            (false, vec![4, 5], false),
            (false, vec![], false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn searches_report_damage_as_if_reading_one_by_one() {
        const COUNT: usize = 100;
        let overlong = [&[0x81; 10][..], &[1]].concat();
        for bad_id in [0, 1, 63, 64, 99, 200] {
            let ids: Vec<u8> = (0..COUNT)
                .flat_map(|at| match at {
                    _ if at == bad_id => overlong.clone(),
                    _ => vec![2],
                })
                .collect();
            let refs = WayRefs {
                refs: Packed::from_run(&ids),
                ..WayRefs::default()
            };
            for wanted in [1, 2, 64, 65, 100, 300] {
                let found = refs.any_ref(|id| id == wanted as i64);
                let is_reached = wanted <= bad_id.min(COUNT);
                assert_eq!(found.is_err(), !is_reached && bad_id < COUNT);
                assert_eq!(found.is_ok_and(|found| found), is_reached);
            }
            for bad_kind in [0, 1, 63, 64, 99, 200] {
                let kinds: Vec<u8> = (0..COUNT)
                    .map(|at| if at == bad_kind { 3 } else { 1 })
                    .collect();
                let relation = RelationMessage {
                    roles: Packed::from_run(&kinds),
                    member_ids: Packed::from_run(&ids),
                    member_kinds: Packed::from_run(&kinds),
                    ..RelationMessage::default()
                };
                let mut seen = 0;
                let found = relation.any_member(|_, _| {
                    seen += 1;
                    false
                });
                assert_eq!(seen, bad_id.min(bad_kind).min(COUNT));
                let error = found.err().map(|error| error.to_string());
                let is_kind = error.as_deref() == Some("a member of unknown kind");
                assert_eq!(error.is_some(), bad_id.min(bad_kind) < COUNT);
                assert_eq!(is_kind, bad_kind < COUNT && bad_kind <= bad_id);
            }
        }
    }
}
