//! Writes the locations of nodes into the ways of an encoded block. Everything else is copied without decoding.

use crate::error::{Advice, FormatError, FormatResult};
use crate::osm::{Location, ObjectKind};
use crate::pbf::block::delta::Delta;
use crate::pbf::block::messages::{WayMessage, WayRefs};
use crate::pbf::block::object::raw_location;
use crate::pbf::block::outline::BlockUnits;
use crate::pbf::block::parsed::{Block, PART_LEN};
use crate::pbf::wire::schema::{primitive_block, primitive_group, way};
use crate::pbf::wire::{Field, Fields, put_bytes_head, put_packed_field, put_sint, varint_len};
use std::ops::Range;

/// The node references of consecutive ways of a block.
#[derive(Default)]
pub(crate) struct WayNodes {
    /// The ids of the nodes, way by way.
    pub refs: Vec<i64>,
    /// The id of each way, and the end of its nodes in `refs` (exclusive).
    pub ways: Vec<(i64, usize)>,
}

impl WayNodes {
    /// Returns the node references of all ways in `block`.
    pub(crate) fn from_block(block: &Block<'_>) -> FormatResult<Self> {
        let (mut refs, mut ways) = (Vec::new(), Vec::new());
        block.collect_refs(|| true, |_| true, &mut refs, &mut ways)?;
        Ok(Self { refs, ways })
    }

    /// Returns the node references of all ways in `group`, which is the content of a group or a part of it.
    fn from_messages(group: &[u8]) -> FormatResult<Self> {
        let (mut nodes, mut messages) = (Self::default(), Fields::new(group));
        while let Some(message) = messages.next()? {
            if message.number == primitive_group::WAYS {
                let way = WayRefs::parse(message.bytes()?)?;
                way.check_size()?;
                Delta::new(&way.refs).append_all_to(&mut nodes.refs)?;
                nodes.ways.push((way.id, nodes.refs.len()));
            }
        }
        Ok(nodes)
    }

    /// Returns the id and the nodes of each way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &[i64])> {
        let mut start = 0;
        self.ways.iter().map(move |(id, end)| {
            let refs = &self.refs[start..*end];
            start = *end;
            (*id, refs)
        })
    }

    /// Adds a way with its nodes.
    pub(crate) fn push(&mut self, id: i64, refs: &[i64]) {
        self.refs.extend(refs);
        self.ways.push((id, self.refs.len()));
    }

    /// Adds the ways of another list.
    pub(crate) fn append(&mut self, more: &Self) {
        more.iter().for_each(|(id, refs)| self.push(id, refs));
    }

    /// Returns the index in [`WayNodes::ways`] of the way that has the node reference `refs[node]`.
    pub(crate) fn way_index_of(&self, node: usize) -> usize {
        self.ways.partition_point(|(_, end)| *end <= node)
    }

    /// Returns the id of the way that has the node reference `refs[node]`.
    pub(crate) fn way_id_of(&self, node: usize) -> i64 {
        self.ways[self.way_index_of(node)].0
    }
}

/// The locations for the node references of consecutive ways of a block.
#[derive(Default)]
pub(crate) struct WayNodeLocations {
    /// One location for each element of [`WayNodes::refs`].
    pub locations: Vec<Option<Location>>,
    /// The ascending indices of the references whose locations were not found, but are stored in their ways.
    pub stored: Vec<usize>,
}

impl WayNodeLocations {
    /// Replaces unknown locations with those that the ways in `group` store. Ignores stored locations outside of the
    /// world. `group` is the content of a group or a part of it, `nodes` has the references of the ways in `group`, and
    /// `units` are the units of the block.
    fn fill_in_stored_locations(
        &mut self,
        group: &[u8],
        nodes: &WayNodes,
        units: &BlockUnits,
    ) -> FormatResult<()> {
        let (mut messages, mut ways, mut start) = (Fields::new(group), nodes.ways.iter(), 0);
        while let Some(message) = messages.next()? {
            if message.number != primitive_group::WAYS {
                continue;
            }
            let Some((_, end)) = ways.next() else { break };
            let first = std::mem::replace(&mut start, *end);
            if !self.locations[first..*end].contains(&None) {
                continue;
            }
            let way = WayMessage::parse(message.bytes()?)?;
            way.check_refs()?;
            let (mut lats, mut lons) = (Delta::new(&way.lats), Delta::new(&way.lons));
            for index in first..*end {
                if lats.is_done() {
                    break;
                }
                let stored = units.location(lats.read()?, lons.read()?);
                let location = &mut self.locations[index];
                if location.is_none() && stored.is_some_and(Location::is_on_earth) {
                    *location = stored;
                    self.stored.push(index);
                }
            }
        }
        Ok(())
    }
}

/// Appends the block in `payload` to `out`, with new locations in place of the old ones in all its ways. If a location
/// is not found, the way keeps the location that it stores.
///
/// Calls `find` with all ways of a group or, if the group has more than [`PART_LEN`] bytes, with consecutive parts of
/// the group. The second argument of `find` is an empty vector. For each element of [`WayNodes::refs`], `find` must
/// append its location, or `None` if the location is not found. Then calls `count` with the locations that are written.
///
/// Returns `true` if at least one way has nodes. If the block has no ways, leaves `out` unchanged and returns `false`.
/// Fails if the block has nodes and its units cannot express a location exactly.
pub(crate) fn locate_ways(
    payload: &[u8],
    mut find: impl FnMut(&WayNodes, &mut Vec<Option<Location>>) -> FormatResult<()>,
    mut count: impl FnMut(&WayNodes, &WayNodeLocations) -> FormatResult<()>,
    out: &mut Vec<u8>,
) -> FormatResult<bool> {
    let block = Block::parse_without_strings(payload)?;
    if !block.has(ObjectKind::Way) {
        return Ok(false);
    }
    let units = units_of_ways(&block);
    let (mut runs, mut found) = (CoordinateRuns::default(), WayNodeLocations::default());
    let mut has_locations = false;
    put_groups(&block, &units, out, |mut group, out| {
        while !group.is_empty() {
            let (part, rest) = group.split_at(first_part_len(group)?);
            group = rest;
            let nodes = WayNodes::from_messages(part)?;
            found.locations.clear();
            found.stored.clear();
            if !nodes.ways.is_empty() {
                find(&nodes, &mut found.locations)?;
                if found.locations.contains(&None) {
                    found.fill_in_stored_locations(part, &nodes, &block.units)?;
                }
                count(&nodes, &found)?;
            }
            has_locations |= !found.locations.is_empty();
            let (mut number, mut start) = (0, 0);
            let mut messages = Fields::new(part);
            while let Some(message) = messages.next()? {
                if message.number != primitive_group::WAYS {
                    out.extend_from_slice(message.raw);
                    continue;
                }
                let end = nodes.ways[number].1;
                runs.put_way(message.bytes()?, &found.locations[start..end], &units, out)?;
                (number, start) = (number + 1, end);
            }
        }
        Ok(())
    })?;
    Ok(has_locations)
}

/// Returns the length in bytes of the first part of a group. The part has as many whole messages as fit into
/// [`PART_LEN`] bytes, but at least one message.
fn first_part_len(group: &[u8]) -> FormatResult<usize> {
    if group.len() <= PART_LEN {
        return Ok(group.len());
    }
    let (mut messages, mut len) = (Fields::new(group), 0);
    while let Some(message) = messages.next()? {
        if len > 0 && len + message.raw.len() > PART_LEN {
            break;
        }
        len += message.raw.len();
    }
    Ok(len)
}

/// The ways of a block whose nodes have moved, with the new locations of their nodes.
#[derive(Debug, Default)]
pub(crate) struct MovedWays {
    /// The number of ways whose locations change.
    pub count: u64,
    /// The number of references in these ways to nodes that have lost their locations.
    pub lost: u64,
    /// The number of ways with at least one reference to a node that has lost its location.
    pub incomplete: u64,
    /// Whether `units` differ from the units of the block, because those of the block cannot express every location.
    pub(crate) changes_units: bool,
    /// The units of the new locations.
    units: BlockUnits,
    /// For each way that must be encoded again, its index among the ways of the block, and the range of its locations
    /// in `locations`.
    ways: Vec<(usize, Range<usize>)>,
    locations: Vec<Option<Location>>,
}

impl MovedWays {
    /// Finds the ways of a block whose locations change. Ways that have no locations do not get any.
    ///
    /// `nodes` has the references of the ways. `moved` has the ascending indices in [`WayNodes::refs`] of the nodes
    /// that may have moved. `location_of` must return `None` if a node has not moved, `Some(None)` if it has lost its
    /// location, and `Some(Some(location))` if it has moved to `location`.
    pub(crate) fn find(
        block: &Block<'_>,
        nodes: &WayNodes,
        mut moved: Vec<usize>,
        location_of: impl Fn(i64) -> Option<Option<Location>>,
    ) -> FormatResult<Self> {
        let mut found = Self::default();
        if moved.is_empty() {
            return Ok(found);
        }
        for node in &mut moved {
            *node = nodes.way_index_of(*node);
        }
        moved.dedup();
        // If the units of the block change, all ways with locations have to be encoded in the new units.
        found.units = units_of_ways(block);
        found.changes_units = found.units != block.units;
        let changes_units = found.changes_units;
        let may_move = |way: usize| moved.binary_search(&way).is_ok();
        block.for_each_wanted_way(
            |way| changes_units || may_move(way),
            |number, refs, old| {
                let Some(old) = old else {
                    return;
                };
                let (start, mut moves, lost) = (found.locations.len(), false, found.lost);
                let may_move = !changes_units || may_move(number);
                for (node, old) in refs.iter().zip(old) {
                    let new = location_of(*node).filter(|new| may_move && new != old);
                    moves |= new.is_some();
                    found.lost += u64::from(new == Some(None));
                    found.locations.push(new.unwrap_or(*old));
                }
                found.count += u64::from(moves);
                found.incomplete += u64::from(found.lost > lost);
                if moves || changes_units {
                    found.ways.push((number, start..found.locations.len()))
                } else {
                    found.locations.truncate(start)
                }
            },
        )?;
        if found.is_empty() {
            found = Self::default();
        }
        Ok(found)
    }

    /// Whether no locations change.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the block to `out`, with the new locations in its ways. Fails if the block has nodes and its units
    /// cannot express a location exactly.
    pub(crate) fn put_block(&self, block: &Block<'_>, out: &mut Vec<u8>) -> FormatResult<()> {
        let mut ways = MovedWayWriter::new(self);
        put_groups(block, &self.units, out, |group, out| {
            let mut messages = Fields::new(group);
            while let Some(message) = messages.next()? {
                if message.number == primitive_group::WAYS {
                    ways.put(&message, out)?;
                } else {
                    out.extend_from_slice(message.raw);
                }
            }
            Ok(())
        })
    }
}

/// Writes the ways of a block, in order, with the new locations of [`MovedWays`].
pub(super) struct MovedWayWriter<'m> {
    moved: &'m MovedWays,
    /// The index of the next way among the ways of the block.
    next: usize,
    runs: CoordinateRuns,
}

impl<'m> MovedWayWriter<'m> {
    /// Creates a writer that begins with the first way of the block.
    pub(super) fn new(moved: &'m MovedWays) -> Self {
        Self {
            moved,
            next: 0,
            runs: CoordinateRuns::default(),
        }
    }

    /// Skips ways that are not written.
    pub(super) fn skip(&mut self, count: usize) {
        self.next += count;
    }

    /// Appends the next way. `way` is its field in the old group.
    pub(super) fn put(&mut self, way: &Field<'_>, out: &mut Vec<u8>) -> FormatResult<()> {
        let MovedWays { units, ways, .. } = self.moved;
        let at = ways.binary_search_by_key(&self.next, |(way, _)| *way);
        self.next += 1;
        if let Ok(at) = at {
            let locations = &self.moved.locations[ways[at].1.clone()];
            return self.runs.put_way(way.bytes()?, locations, units, out);
        }
        out.extend_from_slice(way.raw);
        Ok(())
    }
}

/// Returns the units for the locations in ways. If the block has nodes or already uses units of 1e-7 degree without
/// offset, returns the units of the block. Otherwise returns units of 1e-7 degree, which can express every location.
fn units_of_ways(block: &Block<'_>) -> BlockUnits {
    if block.has(ObjectKind::Node) || block.units.is_decimicro() {
        block.units
    } else {
        BlockUnits {
            date_granularity: block.units.date_granularity,
            ..BlockUnits::default()
        }
    }
}

/// Appends `block` with new groups, and with `units` as the units of coordinates. Calls `put_group` with the content of
/// each group and with `out`. `put_group` must append the new content to `out`.
fn put_groups(
    block: &Block<'_>,
    units: &BlockUnits,
    out: &mut Vec<u8>,
    mut put_group: impl FnMut(&[u8], &mut Vec<u8>) -> FormatResult<()>,
) -> FormatResult<()> {
    let payload = block.payload();
    out.reserve(payload.len() / 2 * 3);
    let mut head = Vec::new();
    let mut fields = Fields::new(payload);
    while let Some(field) = fields.next()? {
        match field.number {
            primitive_block::PRIMITIVEGROUP => {
                let start = out.len();
                put_group(field.bytes()?, out)?;
                head.clear();
                let len = out.len() - start;
                put_bytes_head(&mut head, primitive_block::PRIMITIVEGROUP, len);
                // Inserts the header of the group in front of its content. The header has the length of the content,
                // which is known only now. A separate buffer would need as much memory as the group.
                out.splice(start..start, head.iter().copied());
            }
            primitive_block::GRANULARITY
            | primitive_block::LAT_OFFSET
            | primitive_block::LON_OFFSET
                if *units != block.units => {}
            _ => out.extend_from_slice(field.raw),
        }
    }
    Ok(())
}

/// Scratch buffers for the packed coordinates of a way.
#[derive(Default)]
struct CoordinateRuns {
    lats: Vec<u8>,
    lons: Vec<u8>,
}

impl CoordinateRuns {
    /// Appends a way as a field of a group, with `locations` in place of its old ones.
    fn put_way(
        &mut self,
        message: &[u8],
        locations: &[Option<Location>],
        units: &BlockUnits,
        out: &mut Vec<u8>,
    ) -> FormatResult<()> {
        self.fill(locations, units)?;
        put_way(message, [&self.lats, &self.lons], out)
    }

    /// Encodes `locations` in `lats` and `lons`.
    fn fill(&mut self, locations: &[Option<Location>], units: &BlockUnits) -> FormatResult<()> {
        self.lats.clear();
        self.lons.clear();
        let (mut last_lat, mut last_lon) = (0i64, 0i64);
        let is_decimicro = units.is_decimicro();
        for location in locations {
            let (lat_e7, lon_e7) = Location::lat_lon_e7_or_undefined(*location);
            let (lat, lon) = if is_decimicro {
                (i64::from(lat_e7), i64::from(lon_e7))
            } else {
                raw_location(units, *location).ok_or_else(|| inexact_error(units))?
            };
            put_sint(&mut self.lats, lat.wrapping_sub(last_lat));
            put_sint(&mut self.lons, lon.wrapping_sub(last_lon));
            (last_lat, last_lon) = (lat, lon);
        }
        Ok(())
    }
}

/// Appends a way as a field of a group, with the packed `lats` and `lons` in place of its coordinates. If both are
/// empty, the way has no coordinates.
pub(super) fn put_way(
    message: &[u8],
    [lats, lons]: [&[u8]; 2],
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    // `old` is the size of the coordinates to remove. It is 0 for most ways, which are copied whole.
    let mut old = 0;
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if matches!(field.number, way::LAT | way::LON) {
            old += field.raw.len();
        }
    }
    let new = packed_field_len(lats) + packed_field_len(lons);
    put_bytes_head(out, primitive_group::WAYS, message.len() - old + new);
    if old == 0 {
        out.extend_from_slice(message);
    } else {
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            if !matches!(field.number, way::LAT | way::LON) {
                out.extend_from_slice(field.raw);
            }
        }
    }
    put_packed_field(out, way::LAT, lats);
    put_packed_field(out, way::LON, lons);
    Ok(())
}

fn inexact_error(units: &BlockUnits) -> FormatError {
    let cause = format!(
        "the block holds nodes beside ways and measures in units of {} nanodegrees, which cannot say where all nodes \
         of the ways are",
        units.granularity
    );
    FormatError::with(cause).advise(Advice::Sort)
}

/// Returns the size in bytes of a packed field that contains `run` and whose field number is below 16. Returns 0 if
/// `run` is empty, because the field is not written then.
const fn packed_field_len(run: &[u8]) -> usize {
    match run.len() {
        0 => 0,
        len => 1 + varint_len(len as u64) + len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::pbf::encode::builder::BlockBuilder;
    use crate::pbf::{EditScript, Object, ObjectBody, SpliceOptions, splice_block};

    /// Returns a way of up to eight nodes with ids below 40. Every third way has no locations.
    fn way(id: i64, random: &mut Random) -> Object<'static> {
        let refs: Vec<i64> = (0..random.below(9)).map(|_| random.below(40)).collect();
        let place = |id: &i64| Location::new(*id as i32, -*id as i32);
        let places: Vec<_> = refs.iter().map(place).collect();
        let mut way = Object::way(id, refs, vec![("highway", "path")]);
        if let ObjectBody::Way { locations, .. } = &mut way.body
            && id % 3 != 0
        {
            *locations = places.into();
        }
        way
    }

    #[test]
    fn splicing_moved_ways_equals_splicing_the_relocated_block() {
        let mut random = Random(79);
        for _ in 0..50 {
            let (count, mut builder) = (random.below(60) + 5, BlockBuilder::default());
            for id in 1..=count {
                builder.add(&way(id, &mut random)).unwrap();
            }
            builder.end_block();
            let payload = builder.take_blocks().remove(0).payload;
            let block = Block::parse(&payload).unwrap();
            let nodes = WayNodes::from_block(&block).unwrap();
            let has_moved = |at: &usize| nodes.refs[*at] % 5 == 0;
            let moved = (0..nodes.refs.len()).filter(has_moved).collect();
            // Node 10 has lost its location, and node 15 is where it was.
            let location_of = |id: i64| match id {
                15 => Some(Location::new(15, -15)),
                10 => Some(None),
                _ => (id % 5 == 0).then(|| Location::new(7, id as i32)),
            };
            let moved = MovedWays::find(&block, &nodes, moved, location_of).unwrap();
            let mut relocated = Vec::new();
            moved.put_block(&block, &mut relocated).unwrap();
            let (new, mut script) = ([way(1000, &mut random)], EditScript::default());
            for at in 0..count {
                match random.below(3) {
                    0 => script.remove(),
                    _ => script.keep(),
                }
                if at == 2 {
                    script.insert(0);
                }
            }
            let splice = |payload: &[u8], moved| {
                let (mut out, mut options) = (Vec::new(), SpliceOptions::default());
                (options.new_locations, options.moved) = (true, moved);
                assert!(splice_block(payload, &script, &new, options, &mut out).unwrap());
                out
            };
            assert!(splice(&payload, Some(&moved)) == splice(&relocated, None));
        }
    }
}
