//! The locations that a block stores for its nodes and in its ways.

use super::delta::{Delta, STRIDE};
use super::dense::{DenseNodes, InfoCursor, next_tag_run};
use super::element::{Info, Tags};
use super::limits::check_parts;
use super::messages::{NodeMessage, RawInfo, WayMessage, version_number};
use super::outline::BlockUnits;
use super::parsed::{Block, BlockMessage};
use crate::error::FormatError;
use crate::osm::{Bbox, Location, ObjectKind};
use crate::pbf::wire::Varints;

/// The metadata of a node, which is decoded only if it is needed.
enum NodeInfo<'c, 'a> {
    /// The metadata of the dense node with this index.
    Dense(&'c mut InfoCursor<'a>, usize),
    Message(RawInfo),
}

impl NodeInfo<'_, '_> {
    fn read(self) -> Result<RawInfo, FormatError> {
        match self {
            Self::Dense(infos, index) => infos.at(index),
            Self::Message(info) => Ok(info),
        }
    }
}

/// The tags of a node as they are stored.
enum NodeTags<'a> {
    None,
    /// String ids of keys and values, which alternate.
    Run(&'a [u8]),
    Message(&'a NodeMessage<'a>),
}

impl Block<'_> {
    /// Calls `visit` with the id and the location of each node. The location is `None` for a deleted node, and for a
    /// node beyond 90 degrees of latitude or 180 degrees of longitude, because some writers mark missing locations by
    /// coordinates out of range.
    pub(crate) fn for_each_location(
        &self,
        mut visit: impl FnMut(i64, Option<Location>),
    ) -> Result<(), FormatError> {
        self.walk_nodes::<false>(|id, location, _, _| {
            visit(id, location.filter(|location| location.is_on_earth()));
            Ok(())
        })
    }

    /// Calls `visit` with the ids of successive nodes, and with their locations as in
    /// [`for_each_node`](Self::for_each_node).
    pub(crate) fn for_each_place_run(
        &self,
        mut visit: impl FnMut(&[i64], &[Option<Location>]) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => dense.for_each_place_run(&self.units, &mut visit)?,
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    visit(&[node.id], &[node.place(&self.units)])?;
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
        mut visit: impl FnMut(i64, Option<Location>, bool),
    ) -> Result<(), FormatError> {
        self.walk_nodes::<true>(|id, location, tags, _| {
            visit(id, location, !matches!(tags, NodeTags::None));
            Ok(())
        })
    }

    /// Calls `visit` with each selected node: its id, its location as in [`for_each_node`](Self::for_each_node), and its
    /// version number, or `None` if it has none. `select` is called with the ids of consecutive nodes, and appends the
    /// indices of the selected ones in ascending order. A node has a location only if `needs_location` says so of it or
    /// of a neighbour.
    pub(crate) fn for_each_version(
        &self,
        mut select: impl FnMut(&[i64], &mut Vec<usize>),
        mut needs_location: impl FnMut(i64) -> bool,
        mut visit: impl FnMut(i64, Option<Location>, Option<u32>),
    ) -> Result<(), FormatError> {
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
                    dense.visit_selected(&mut select, &mut selected, is_needed, &mut put)?;
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

    /// Calls `visit` with the id of each node that is not deleted, its latitude and longitude in the units of the
    /// block, and whether it has tags.
    pub(crate) fn for_each_stored_location(
        &self,
        mut visit: impl FnMut(i64, (i64, i64), bool),
    ) -> Result<(), FormatError> {
        self.walk_stored_nodes::<true>(|id, stored, tags, _| {
            if let Some(stored) = stored {
                visit(id, stored, !matches!(tags, NodeTags::None));
            }
            Ok(())
        })
    }

    /// Calls `visit` with the id of each node, and its location as in [`for_each_node`](Self::for_each_node). The third
    /// argument of `visit` is the tags and the metadata of a node with tags, and `None` for a node without tags.
    /// Without `needs_info`, the metadata is empty. Fails if a tag refers to a string that the block does not have.
    pub(crate) fn for_each_tagged_node(
        &self,
        needs_info: bool,
        mut visit: impl FnMut(
            i64,
            Option<Location>,
            Option<(Tags<'_>, Info<'_>)>,
        ) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        self.walk_nodes::<true>(|id, location, tags, info| {
            let tags = match tags {
                NodeTags::None => return visit(id, location, None),
                NodeTags::Run(run) => {
                    check_parts(run, 2, "tags", ObjectKind::Node, id)?;
                    let mut ids = Varints::new(run);
                    while !ids.is_done() {
                        self.strings.check(ids.read()?)?;
                    }
                    Tags::alternating(&self.strings, run)
                }
                NodeTags::Message(node) => {
                    node.check_size()?;
                    Tags::beside(&self.strings, &node.keys, &node.values)?
                }
            };
            let info = if needs_info {
                Info::resolve(&info.read()?, &self.units, &self.strings)?
            } else {
                Info::EMPTY
            };
            visit(id, location, Some((tags, info)))
        })
    }

    /// Calls `visit` for each way whose index `is_wanted` accepts. The arguments of `visit` are the index, the ids of
    /// the nodes, and their locations, or `None` if the way has nodes but no locations. The index of the first way of
    /// the block is 0.
    pub(crate) fn for_each_way_location(
        &self,
        is_wanted: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, &[i64], Option<&[Option<Location>]>),
    ) -> Result<(), FormatError> {
        let (mut ids, mut locations, mut number) = (Vec::new(), Vec::new(), 0);
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            let BlockMessage::Single(ObjectKind::Way, bytes) = message else {
                continue;
            };
            number += 1;
            if !is_wanted(number - 1) {
                continue;
            }
            let way = WayMessage::parse(bytes)?;
            way.check()?;
            way.check_size()?;
            ids.clear();
            locations.clear();
            Delta::new(&way.refs).push_all(&mut ids)?;
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
        }
        Ok(())
    }

    /// The bounding box of the locations that are stored in ways.
    pub(crate) fn box_of_ways(&self) -> Result<Bbox, FormatError> {
        let mut bbox = Bbox::EMPTY;
        self.for_each_way_location(
            |_| true,
            |_, _, locations| {
                let locations = locations.unwrap_or_default().iter().flatten();
                locations.for_each(|location| bbox.add(location.lat_e7(), location.lon_e7()));
            },
        )?;
        Ok(bbox)
    }

    /// Calls `visit` with the id of each node, its location, its tags, and its metadata. Without `TAGS`, the tags of
    /// dense nodes are not read.
    #[inline(always)]
    fn walk_nodes<const TAGS: bool>(
        &self,
        mut visit: impl FnMut(
            i64,
            Option<Location>,
            NodeTags<'_>,
            NodeInfo<'_, '_>,
        ) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        self.walk_stored_nodes::<TAGS>(|id, stored, tags, info| {
            let location = stored.and_then(|(lat, lon)| self.units.location(lat, lon));
            visit(id, location, tags, info)
        })
    }

    /// Does the same as [`walk_nodes`](Self::walk_nodes), but with the stored latitude and longitude, in the units of
    /// the block, instead of the location. The pair is `None` for a deleted node.
    #[inline(always)]
    fn walk_stored_nodes<const TAGS: bool>(
        &self,
        mut visit: impl FnMut(
            i64,
            Option<(i64, i64)>,
            NodeTags<'_>,
            NodeInfo<'_, '_>,
        ) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => self.walk_dense::<TAGS>(dense, &mut visit)?,
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    let is_visible = node.info.visible != Some(false);
                    let stored = is_visible.then_some((node.lat, node.lon));
                    let tags = if node.keys.is_empty() {
                        NodeTags::None
                    } else {
                        NodeTags::Message(&node)
                    };
                    visit(node.id, stored, tags, NodeInfo::Message(node.info))?;
                }
                BlockMessage::Single(..) => {}
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn walk_dense<const TAGS: bool>(
        &self,
        dense: &DenseNodes<'_>,
        visit: &mut impl FnMut(
            i64,
            Option<(i64, i64)>,
            NodeTags<'_>,
            NodeInfo<'_, '_>,
        ) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut ids = Delta::new(&dense.ids);
        let (mut lats, mut lons) = (Delta::new(&dense.lats), Delta::new(&dense.lons));
        let mut visible = dense.info.visible.values();
        let mut tags = dense.keys_vals.values();
        // Decoding 256 values of each column in turn is faster than decoding node by node.
        let mut columns = [[0; STRIDE]; 3];
        let (mut infos, mut index) = (dense.infos(), 0);
        let mut left = dense.len();
        while left > 0 {
            let count = left.min(STRIDE);
            left -= count;
            for (column, deltas) in columns.iter_mut().zip([&mut ids, &mut lats, &mut lons]) {
                deltas.fill(&mut column[..count])?;
            }
            let [ids, lats, lons] = &columns;
            for ((&id, &lat), &lon) in ids.iter().zip(lats).zip(lons).take(count) {
                let is_visible = visible.is_done() || visible.read()? != 0;
                let stored = is_visible.then_some((lat, lon));
                let tags = if TAGS {
                    match next_tag_run(&mut tags)? {
                        [] => NodeTags::None,
                        run => NodeTags::Run(run),
                    }
                } else {
                    NodeTags::None
                };
                visit(id, stored, tags, NodeInfo::Dense(&mut infos, index))?;
                index += 1;
            }
        }
        Ok(())
    }
}

impl NodeMessage<'_> {
    /// The location; `None` if the node is deleted or its location is undefined.
    pub(in crate::pbf) fn place(&self, units: &BlockUnits) -> Option<Location> {
        let is_visible = self.info.visible != Some(false);
        is_visible
            .then(|| units.location(self.lat, self.lon))
            .flatten()
    }
}

impl DenseNodes<'_> {
    /// Calls `visit` with the ids of at most [`STRIDE`] successive nodes, and with their locations, which are `None` for
    /// nodes that are deleted or whose location is undefined.
    pub(in crate::pbf) fn for_each_place_run(
        &self,
        units: &BlockUnits,
        visit: &mut impl FnMut(&[i64], &[Option<Location>]) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
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
