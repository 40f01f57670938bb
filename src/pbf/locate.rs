//! Putting the places of nodes into the ways of a block on the wire: everything else is copied as it stands.

use super::FormatError;
use super::block::Scale;
use super::cursor::ParsedBlock;
use super::object::raw_location;
use super::wire::{
    Fields, put_bytes_field, put_bytes_head, put_packed_field, put_sint, varint_len,
};
use crate::osm::Place;

/// The nodes of all ways of a block.
pub(crate) struct WayNodes {
    /// Their ids, way by way.
    pub refs: Vec<i64>,
    /// The id of each way, and where its nodes end.
    pub ways: Vec<(i64, usize)>,
}

impl WayNodes {
    /// The nodes of the ways in a block.
    pub(crate) fn of(block: &ParsedBlock<'_>) -> Result<Self, FormatError> {
        let (mut refs, mut ways) = (Vec::new(), Vec::new());
        block.collect_refs(&mut refs, &mut ways)?;
        Ok(Self { refs, ways })
    }

    /// The way that a node belongs to, by the place of the node among all.
    pub(crate) fn way_at(&self, node: usize) -> i64 {
        let at = self.ways.partition_point(|(_, end)| *end <= node);
        self.ways.get(at).map_or(0, |(id, _)| *id)
    }
}

/// Appends the block in `payload` with the places of their nodes in its ways, instead of those that they have. `find`
/// is asked once, for the nodes of all ways. Whether there is any; if not, nothing is appended.
pub(crate) fn locate_ways(
    payload: &[u8],
    find: impl FnOnce(&WayNodes, &mut Vec<Place>) -> Result<(), FormatError>,
    out: &mut Vec<u8>,
) -> Result<bool, FormatError> {
    let block = ParsedBlock::parse_bare(payload)?;
    let nodes = WayNodes::of(&block)?;
    if nodes.ways.is_empty() {
        return Ok(false);
    }
    let mut places = Vec::with_capacity(nodes.refs.len());
    find(&nodes, &mut places)?;
    // Where nothing else of the block is measured in its units, they are those that can say every place.
    let is_measured = block.has_nodes();
    let scale = match is_measured {
        true => block.scale,
        false => Scale::default(),
    };
    let mut ways = Ways {
        ends: nodes.ways.iter(),
        places: &places,
        start: 0,
        scale,
        runs: Runs::default(),
    };
    let mut group = Vec::with_capacity(payload.len() + places.len() * 8);
    out.reserve(payload.len() + places.len() * 8);
    let mut fields = Fields::new(payload);
    while let Some(field) = fields.next()? {
        match field.number {
            2 => {
                group.clear();
                ways.put_group(field.bytes()?, &mut group)?;
                put_bytes_field(out, 2, &group);
            }
            17 | 19 | 20 if !is_measured => {}
            _ => out.extend_from_slice(field.raw),
        }
    }
    Ok(!places.is_empty())
}

/// The ways of a block, of which those not yet written have places.
struct Ways<'a> {
    ends: std::slice::Iter<'a, (i64, usize)>,
    places: &'a [Place],
    start: usize,
    scale: Scale,
    runs: Runs,
}

impl Ways<'_> {
    fn put_group(&mut self, group: &[u8], out: &mut Vec<u8>) -> Result<(), FormatError> {
        let mut fields = Fields::new(group);
        while let Some(field) = fields.next()? {
            if field.number == 3 {
                let end = self.ends.next().map_or(self.start, |(_, end)| *end);
                let places = self.places.get(self.start..end).unwrap_or_default();
                self.start = end;
                self.runs
                    .put_way(field.bytes()?, places, &self.scale, out)?;
            } else {
                out.extend_from_slice(field.raw);
            }
        }
        Ok(())
    }
}

/// Scratch for packed runs of coordinates.
#[derive(Default)]
pub(super) struct Runs {
    lats: Vec<u8>,
    lons: Vec<u8>,
}

impl Runs {
    /// Appends a way as a field of a group, with other places of its nodes.
    pub(super) fn put_way(
        &mut self,
        message: &[u8],
        places: &[Place],
        scale: &Scale,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        self.fill(places, scale)?;
        // What the message is without places is known when it is copied: most have none.
        let mut old = 0;
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            if matches!(field.number, 9 | 10) {
                old += field.raw.len();
            }
        }
        let new = packed_field_len(&self.lats) + packed_field_len(&self.lons);
        put_bytes_head(out, 3, message.len() - old + new);
        if old == 0 {
            out.extend_from_slice(message);
        } else {
            let mut fields = Fields::new(message);
            while let Some(field) = fields.next()? {
                if !matches!(field.number, 9 | 10) {
                    out.extend_from_slice(field.raw);
                }
            }
        }
        put_packed_field(out, 9, &self.lats);
        put_packed_field(out, 10, &self.lons);
        Ok(())
    }

    fn fill(&mut self, places: &[Place], scale: &Scale) -> Result<(), FormatError> {
        self.lats.clear();
        self.lons.clear();
        let (mut last_lat, mut last_lon) = (0i64, 0i64);
        let is_decimicro = scale.is_decimicro();
        for place in places {
            let (lat_e7, lon_e7) = place.lat_lon_e7();
            let (lat, lon) = match is_decimicro {
                true => (i64::from(lat_e7), i64::from(lon_e7)),
                false => raw_location(scale, lat_e7, lon_e7).ok_or_else(|| inexact(scale))?,
            };
            put_sint(&mut self.lats, lat.wrapping_sub(last_lat));
            put_sint(&mut self.lons, lon.wrapping_sub(last_lon));
            (last_lat, last_lon) = (lat, lon);
        }
        Ok(())
    }
}

fn inexact(scale: &Scale) -> FormatError {
    FormatError::with(format!(
        "the block holds nodes beside ways and measures in units of {} nanodegrees, which cannot say where all nodes \
         of the ways are; run `pbfhogg sort` first",
        scale.granularity
    ))
}

/// How long a packed field is whose number is below 16.
const fn packed_field_len(run: &[u8]) -> usize {
    match run.len() {
        0 => 0,
        len => 1 + varint_len(len as u64) + len,
    }
}
