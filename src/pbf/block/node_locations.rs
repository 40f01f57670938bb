//! The locations that a block stores for its nodes and in its ways.

use super::delta::{Delta, STRIDE};
use super::dense::{DenseNodes, next_tag_run, skip_untagged};
use super::element::{Info, Tags};
use super::limits::check_parts;
use super::messages::{NodeMessage, RawInfo, WayMessage, version_number};
use super::outline::BlockUnits;
use super::parsed::{Block, BlockMessage};
use crate::error::FormatResult;
use crate::osm::{Bbox, Location, ObjectKind};
use crate::pbf::wire::Varints;

/// The data of nodes that [`Block::for_each_node_run`] reads in addition to ids and locations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisitedFields {
    /// Whether nodes with tags are visited one by one, with their tags.
    pub tags: bool,
    /// Whether nodes with tags are visited with their metadata. If `false`, the metadata is empty.
    pub info: bool,
}

/// The nodes that [`Block::for_each_node_run`] passes to its visitor, in file order.
pub(crate) enum NodeVisit<'v> {
    /// The ids of successive nodes, and their locations as in [`Block::for_each_node`].
    Run(&'v [i64], &'v [Option<Location>]),
    /// A node with tags. The node is also in the run before it.
    Tagged {
        /// The index among the nodes of the block.
        index: usize,
        id: i64,
        location: Option<Location>,
        tags: Tags<'v>,
        info: Info<'v>,
    },
}

impl Block<'_> {
    /// Calls `visit` with the id and the location of each node. The location is `None` for a deleted node, and for a
    /// node beyond 90 degrees of latitude or 180 degrees of longitude, because some writers use coordinates out of
    /// range for missing locations.
    pub(crate) fn for_each_location(
        &self,
        mut visit: impl FnMut(i64, Option<Location>),
    ) -> FormatResult<()> {
        self.walk_nodes::<false>(|id, location, _| {
            visit(id, location.filter(|location| location.is_on_earth()));
        })
    }

    /// Calls `visit` with each selected node: its id, and its location as in
    /// [`for_each_location`](Self::for_each_location). `select` is called with a list of ids of consecutive nodes. It
    /// appends the positions of the selected ids in this list to its second argument, in ascending order.
    pub(crate) fn for_each_selected_location(
        &self,
        mut select: impl FnMut(&[i64], &mut Vec<usize>),
        mut visit: impl FnMut(i64, Option<Location>),
    ) -> FormatResult<()> {
        let mut put = |id, stored: Option<(i64, i64)>| {
            let location = stored.and_then(|(lat, lon)| self.units.location(lat, lon));
            visit(id, location.filter(|location| location.is_on_earth()));
        };
        let (mut messages, mut selected) = (self.messages(), Vec::new());
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => {
                    let has_visible = !dense.info.visible.is_empty();
                    let (mut visible, mut read) = (dense.info.visible.values(), 0);
                    dense.for_each_selected_location(
                        &mut select,
                        &mut selected,
                        &mut |_| true,
                        |index, id, stored| {
                            let mut is_visible = true;
                            if has_visible {
                                visible.skip(index - read)?;
                                is_visible = visible.read()? != 0;
                                read = index + 1;
                            }
                            put(id, stored.filter(|_| is_visible));
                            Ok(())
                        },
                    )?;
                }
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    selected.clear();
                    select(&[node.id], &mut selected);
                    if !selected.is_empty() {
                        let is_visible = node.info.visible != Some(false);
                        put(node.id, is_visible.then_some((node.lat, node.lon)));
                    }
                }
                BlockMessage::Single(..) => {}
            }
        }
        Ok(())
    }

    /// Calls `visit` with the id of each node, its location, and whether it has tags. The location is `None` if the
    /// node is deleted or its location is undefined. The location may lie outside of the world.
    pub(crate) fn for_each_node(
        &self,
        visit: impl FnMut(i64, Option<Location>, bool),
    ) -> FormatResult<()> {
        self.walk_nodes::<true>(visit)
    }

    /// Calls `visit` with each selected node: its id, its location as in [`for_each_node`](Self::for_each_node), and
    /// its version number, or `None` if the node has none. `select` is called with a list of ids of consecutive nodes.
    /// It appends the positions of the selected ids in this list to its second argument, in ascending order. The
    /// location may also be `None` if `needs_location` returns `false` for the node.
    pub(crate) fn for_each_selected_version(
        &self,
        mut select: impl FnMut(&[i64], &mut Vec<usize>),
        mut needs_location: impl FnMut(i64) -> bool,
        mut visit: impl FnMut(i64, Option<Location>, Option<u32>),
    ) -> FormatResult<()> {
        let mut selected = Vec::new();
        let mut put = |id, stored: Option<(i64, i64)>, info: &RawInfo| {
            let stored = stored.filter(|_| info.visible != Some(false));
            let location = stored.and_then(|(lat, lon)| self.units.location(lat, lon));
            visit(id, location, version_number(info.version));
        };
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => {
                    let is_needed = &mut needs_location;
                    dense.for_each_selected_version(
                        &mut select,
                        &mut selected,
                        is_needed,
                        &mut put,
                    )?;
                }
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    selected.clear();
                    select(&[node.id], &mut selected);
                    if !selected.is_empty() {
                        put(node.id, Some((node.lat, node.lon)), &node.info);
                    }
                }
                BlockMessage::Single(..) => {}
            }
        }
        Ok(())
    }

    /// Calls `visit` for each node that is not deleted. The arguments of `visit` are the id, the latitude and the
    /// longitude in the units of the block, and whether the node has tags.
    pub(crate) fn for_each_stored_location(
        &self,
        mut visit: impl FnMut(i64, (i64, i64), bool),
    ) -> FormatResult<()> {
        self.walk_stored_nodes::<true>(|id, stored, has_tags| {
            if let Some(stored) = stored {
                visit(id, stored, has_tags);
            }
        })
    }

    /// Calls `visit` with all nodes, in runs. If `parts.tags` is set, also calls `visit` with each node that has tags,
    /// after the run with this node. Fails if `parts.tags` is set and a tag refers to a missing string.
    pub(crate) fn for_each_node_run(
        &self,
        parts: VisitedFields,
        mut visit: impl FnMut(NodeVisit<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let (mut messages, mut first) = (self.messages(), 0);
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) if parts.tags => {
                    self.visit_dense_runs(dense, first, parts.info, &mut visit)?;
                    first += dense.len();
                }
                BlockMessage::Dense(dense) => {
                    dense.for_each_location_run(&self.units, &mut |ids, locations| {
                        visit(NodeVisit::Run(ids, locations))
                    })?;
                }
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    let location = node.visible_location(&self.units);
                    visit(NodeVisit::Run(&[node.id], &[location]))?;
                    if parts.tags && !node.keys.is_empty() {
                        node.check_size()?;
                        visit(NodeVisit::Tagged {
                            index: first,
                            id: node.id,
                            location,
                            tags: Tags::from_key_and_value_runs(
                                &self.strings,
                                &node.keys,
                                &node.values,
                            )?,
                            info: self.read_info_if_needed(parts.info, || Ok(node.info))?,
                        })?;
                    }
                    first += 1;
                }
                BlockMessage::Single(..) => {}
            }
        }
        Ok(())
    }

    /// Does the same as [`for_each_node_run`](Self::for_each_node_run) for the nodes of a DenseNodes message. `first`
    /// is the index in the block of the first node of the message.
    fn visit_dense_runs(
        &self,
        dense: &DenseNodes<'_>,
        first: usize,
        needs_info: bool,
        visit: &mut impl FnMut(NodeVisit<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let (mut tags, mut infos) = (dense.keys_vals.values(), dense.info_cursor());
        let mut start = 0;
        dense.for_each_location_run(&self.units, &mut |ids, locations| {
            visit(NodeVisit::Run(ids, locations))?;
            let mut at = 0;
            while at < ids.len() {
                at += skip_untagged(&mut tags, ids.len() - at)?;
                let run = match ids.get(at) {
                    Some(_) => next_tag_run(&mut tags)?,
                    None => break,
                };
                at += 1;
                if run.is_empty() {
                    continue;
                }
                let (id, location) = (ids[at - 1], locations[at - 1]);
                check_parts(run, 2, "tags", ObjectKind::Node, id)?;
                let mut strings = Varints::new(run);
                while !strings.is_done() {
                    self.strings.check(strings.read()?)?;
                }
                let index = start + at - 1;
                visit(NodeVisit::Tagged {
                    index: first + index,
                    id,
                    location,
                    tags: Tags::from_alternating_run(&self.strings, run),
                    info: self.read_info_if_needed(needs_info, || infos.info_at(index))?,
                })?;
            }
            start += ids.len();
            Ok(())
        })
    }

    /// Resolves the metadata that `read` returns. If `needs_info` is `false`, returns empty metadata without calling
    /// `read`.
    fn read_info_if_needed(
        &self,
        needs_info: bool,
        read: impl FnOnce() -> FormatResult<RawInfo>,
    ) -> FormatResult<Info<'_>> {
        if needs_info {
            Info::resolve(&read()?, &self.units, &self.strings)
        } else {
            Ok(Info::EMPTY)
        }
    }

    /// Calls `visit` for each way whose index `is_wanted` accepts. The arguments of `visit` are the index, the ids of
    /// the nodes, and their locations, or `None` if the way has nodes but no locations. The index of the first way of
    /// the block is 0.
    pub(crate) fn for_each_wanted_way(
        &self,
        is_wanted: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, &[i64], Option<&[Option<Location>]>),
    ) -> FormatResult<()> {
        let (mut ids, mut locations, mut number) = (Vec::new(), Vec::new(), 0);
        self.for_each_object_message(ObjectKind::Way, |bytes| {
            number += 1;
            if !is_wanted(number - 1) {
                return Ok(());
            }
            let way = WayMessage::parse(bytes)?;
            way.check_refs()?;
            way.check_size()?;
            ids.clear();
            locations.clear();
            Delta::new(&way.refs).append_all_to(&mut ids)?;
            let (mut lats, mut lons) = (Delta::new(&way.lats), Delta::new(&way.lons));
            while !lats.is_done() {
                locations.push(self.units.location(lats.read()?, lons.read()?));
            }
            let has_locations = !locations.is_empty() || ids.is_empty();
            visit(
                number - 1,
                &ids,
                has_locations.then_some(locations.as_slice()),
            );
            Ok(())
        })
    }

    /// Returns the bounding box of the locations that are stored in ways.
    pub(crate) fn bbox_of_way_locations(&self) -> FormatResult<Bbox> {
        let mut bbox = Bbox::EMPTY;
        self.for_each_wanted_way(
            |_| true,
            |_, _, locations| {
                let locations = locations.unwrap_or_default().iter().flatten();
                locations.for_each(|location| bbox.add(location.lat_e7(), location.lon_e7()));
            },
        )?;
        Ok(bbox)
    }

    /// Calls `visit` with the id of each node, its location, and whether it has tags. Without `TAGS`, the tags of dense
    /// nodes are not read, and count as absent.
    #[inline(always)]
    fn walk_nodes<const TAGS: bool>(
        &self,
        mut visit: impl FnMut(i64, Option<Location>, bool),
    ) -> FormatResult<()> {
        self.walk_stored_nodes::<TAGS>(|id, stored, has_tags| {
            let location = stored.and_then(|(lat, lon)| self.units.location(lat, lon));
            visit(id, location, has_tags);
        })
    }

    /// Does the same as [`walk_nodes`](Self::walk_nodes), but with the stored latitude and longitude, in the units of
    /// the block, instead of the location. The pair is `None` for a deleted node.
    #[inline(always)]
    fn walk_stored_nodes<const TAGS: bool>(
        &self,
        mut visit: impl FnMut(i64, Option<(i64, i64)>, bool),
    ) -> FormatResult<()> {
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => dense.walk_stored_nodes::<TAGS>(&mut visit)?,
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    let is_visible = node.info.visible != Some(false);
                    let stored = is_visible.then_some((node.lat, node.lon));
                    visit(node.id, stored, !node.keys.is_empty());
                }
                BlockMessage::Single(..) => {}
            }
        }
        Ok(())
    }
}

impl DenseNodes<'_> {
    /// Does the same as [`Block::walk_stored_nodes`], for the nodes of this message.
    #[inline(always)]
    fn walk_stored_nodes<const TAGS: bool>(
        &self,
        visit: &mut impl FnMut(i64, Option<(i64, i64)>, bool),
    ) -> FormatResult<()> {
        let mut deltas = [&self.ids, &self.lats, &self.lons].map(Delta::new);
        let mut visible = self.info.visible.values();
        let mut tags = self.keys_vals.values();
        // Decoding 256 values of each column in turn is faster than decoding node by node.
        let mut columns = [[0; STRIDE]; 3];
        let mut left = self.len();
        while left > 0 {
            let count = left.min(STRIDE);
            left -= count;
            for (column, deltas) in columns.iter_mut().zip(&mut deltas) {
                deltas.fill(&mut column[..count])?;
            }
            let [ids, lats, lons] = &columns;
            for ((&id, &lat), &lon) in ids.iter().zip(lats).zip(lons).take(count) {
                let is_visible = visible.is_done() || visible.read()? != 0;
                let stored = is_visible.then_some((lat, lon));
                let has_tags = TAGS && !next_tag_run(&mut tags)?.is_empty();
                visit(id, stored, has_tags);
            }
        }
        Ok(())
    }
}

impl NodeMessage<'_> {
    /// Returns the location; `None` if the node is deleted or its location is undefined.
    pub(in crate::pbf) fn visible_location(&self, units: &BlockUnits) -> Option<Location> {
        let is_visible = self.info.visible != Some(false);
        is_visible
            .then(|| units.location(self.lat, self.lon))
            .flatten()
    }
}

impl DenseNodes<'_> {
    /// Calls `visit` with all nodes, in runs of at most [`STRIDE`] successive nodes. The arguments of `visit` are the
    /// ids and the locations of a run. The location is `None` if the node is deleted or its location is undefined.
    pub(in crate::pbf) fn for_each_location_run(
        &self,
        units: &BlockUnits,
        visit: &mut impl FnMut(&[i64], &[Option<Location>]) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let mut columns = [&self.ids, &self.lats, &self.lons].map(Delta::new);
        let mut visible = self.info.visible.values();
        let (mut runs, mut locations) = ([[0; STRIDE]; 3], [None; STRIDE]);
        let mut left = self.len();
        while left > 0 {
            let count = left.min(STRIDE);
            left -= count;
            for (run, column) in runs.iter_mut().zip(&mut columns) {
                column.fill(&mut run[..count])?;
            }
            let [ids, lats, lons] = &runs;
            for ((location, lat), lon) in locations.iter_mut().zip(lats).zip(lons).take(count) {
                *location = units.location(*lat, *lon);
            }
            if !visible.is_done() {
                for location in &mut locations[..count] {
                    if visible.read()? == 0 {
                        *location = None;
                    }
                }
            }
            visit(&ids[..count], &locations[..count])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FormatError;
    use crate::pbf::encode::builder::BlockBuilder;
    use crate::pbf::{Element, Object};

    /// Returns a block of nodes. `has_tags` says which of them have tags.
    fn payload(is_plain: bool, has_tags: impl Fn(i64) -> bool) -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        if is_plain {
            builder.write_plain_nodes();
        }
        for id in 1..700 {
            let info = Info {
                version: Some(id as u32 % 5 + 1),
                visible: id % 11 != 0,
                ..Info::EMPTY
            };
            let tags = [("natural", "tree"), ("species", "Tilia")];
            let tags = if has_tags(id) {
                tags.to_vec()
            } else {
                Vec::new()
            };
            let place = Location::new(id as i32 * 1000, id as i32 * -70);
            let node = Object::node(id * 3, place, tags);
            builder.add(&node.with_info(info)).unwrap();
        }
        builder.end_block();
        builder.take_blocks().remove(0).payload
    }

    #[test]
    fn selected_locations_are_those_of_a_walk_over_all_nodes() {
        let patterns: [fn(i64) -> bool; 5] = [
            |_| false,
            |_| true,
            |id| id % 7 == 0,
            |id| id / 3 % 256 < 2,
            |id| id == 3 * 699,
        ];
        for (is_plain, is_wanted) in patterns.iter().flat_map(|one| [(false, one), (true, one)]) {
            let payload = payload(is_plain, |id| id % 3 == 0);
            let block = Block::parse(&payload).unwrap();
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            let add = |id, location| {
                if is_wanted(id) {
                    expected.push((id, location));
                }
            };
            block.for_each_location(add).unwrap();
            let select = |ids: &[i64], selected: &mut Vec<usize>| {
                selected.extend((0..ids.len()).filter(|index| is_wanted(ids[*index])));
            };
            let add = |id, location| found.push((id, location));
            block.for_each_selected_location(select, add).unwrap();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn node_runs_and_tagged_nodes_equal_those_of_views() {
        let patterns: [fn(i64) -> bool; 5] = [
            |_| false,
            |_| true,
            |id| id % 3 == 0,
            |id| id % 256 < 2,
            |id| id == 699,
        ];
        for (is_plain, has_tags) in patterns.iter().flat_map(|one| [(false, one), (true, one)]) {
            let payload = payload(is_plain, has_tags);
            let block = Block::parse(&payload).unwrap();
            let (mut nodes, mut tagged) = (Vec::new(), Vec::new());
            let visited = block.try_for_each(|element| {
                let Element::Node(node) = element else {
                    panic!("not a node");
                };
                let info = node.info();
                let location = node.location().filter(|_| info.visible);
                if node.tags().next().is_some() {
                    let (index, tags) = (nodes.len(), node.tags().count());
                    tagged.push((index, node.id(), location, tags, info.version));
                }
                nodes.push((node.id(), location));
                Ok::<_, FormatError>(())
            });
            visited.unwrap();
            let (mut runs, mut found) = (Vec::new(), Vec::new());
            let visit = |nodes: NodeVisit<'_>| {
                match nodes {
                    NodeVisit::Run(ids, locations) => {
                        runs.extend(ids.iter().copied().zip(locations.iter().copied()));
                    }
                    NodeVisit::Tagged {
                        index,
                        id,
                        location,
                        tags,
                        info,
                    } => found.push((index, id, location, tags.count(), info.version)),
                }
                Ok(())
            };
            let parts = VisitedFields {
                tags: true,
                info: true,
            };
            block.for_each_node_run(parts, visit).unwrap();
            assert_eq!((runs, found), (nodes, tagged));
        }
    }
}
