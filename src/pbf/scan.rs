//! Reading of one payload just what a [`BlobEntry`] says of it: ids, coordinates, order, hash.

use super::block::{BlockOutline, Message, Scale, string_out_of_range};
use super::messages::{NodeMessage, RawInfo};
use super::wire::{Field, Fields, Value, Varints};
use super::{BlobEntry, BlobFlags, DenseNodes, FormatError};
use crate::osm::{Bbox, KindSet, NANO_PER_DECIMICRO, ObjectKind, id_rank};
use twox_hash::XxHash3_64;

/// Fills in what an entry says of a blob's contents. Where the blob lies in the file is left alone.
pub fn scan_payload(payload: &[u8], entry: &mut BlobEntry) -> Result<(), FormatError> {
    let block = BlockOutline::parse(payload)?;
    let mut scan = Scan::new(block.scale, count_strings(block.string_table)?);
    for group in &block.groups {
        group.try_for_each(|message| scan.message(message))?;
    }
    scan.finish(entry);
    entry.payload_len = payload.len() as u32;
    entry.hash = XxHash3_64::oneshot(payload);
    entry.flags.set(BlobFlags::HASHED, true);
    Ok(())
}

/// The ids of one kind, and whether they stood in order.
#[derive(Debug, Clone, Copy)]
struct Ids {
    count: u32,
    min: u64,
    max: u64,
}

struct Scan {
    scale: Scale,
    /// How many strings the block has.
    strings: u64,
    ids: [Ids; 3],
    /// The last object's kind and rank.
    last: Option<(ObjectKind, u64)>,
    /// The last object's version, where an id came twice in a row.
    last_version: i64,
    bounds: Bounds,
    flags: BlobFlags,
}

impl Scan {
    fn new(scale: Scale, strings: u64) -> Self {
        let mut flags = BlobFlags::SCANNED;
        flags.set(BlobFlags::SORTED, true);
        flags.set(BlobFlags::STRICT, true);
        Self {
            scale,
            strings,
            ids: [Ids {
                count: 0,
                min: u64::MAX,
                max: 0,
            }; 3],
            last: None,
            last_version: 0,
            bounds: Bounds::default(),
            flags,
        }
    }

    fn message(&mut self, message: Message<'_>) -> Result<(), FormatError> {
        match message {
            Message::Dense(bytes) => self.dense(&DenseNodes::parse(bytes)?),
            Message::Node(bytes) => {
                let node = NodeMessage::parse(bytes)?;
                self.bounds.add(node.lat, node.lon, &self.scale);
                self.object(ObjectKind::Node, Some(node.id), bytes)
            }
            Message::Way(bytes) => self.object(ObjectKind::Way, None, bytes),
            Message::Relation(bytes) => self.object(ObjectKind::Relation, None, bytes),
            Message::Other => Ok(()),
        }
    }

    /// One object that has a message of its own: a single walk over its fields. `id` is given where
    /// the message does not have it as a plain varint.
    fn object(
        &mut self,
        kind: ObjectKind,
        mut id: Option<i64>,
        message: &[u8],
    ) -> Result<(), FormatError> {
        let (mut largest_string, mut version) = (0, 0);
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            match field.number {
                1 if kind != ObjectKind::Node => id = Some(field.varint()? as i64),
                // Keys, values, and the roles of members.
                2 | 3 => largest_string = largest_string.max(largest_in(&field)?),
                8 if kind == ObjectKind::Relation => {
                    largest_string = largest_string.max(largest_in(&field)?);
                }
                4 => {
                    let info = RawInfo::parse(field.bytes()?)?;
                    largest_string = largest_string.max(u64::from(info.user_sid));
                    version = info.version;
                    if info.visible == Some(false) {
                        self.flags.set(BlobFlags::DELETED, true);
                    }
                }
                9 | 10 if kind == ObjectKind::Way => self.flags.set(BlobFlags::LOCATIONS, true),
                _ => {}
            }
        }
        self.check_string(largest_string)?;
        let key = (
            kind,
            id_rank(id.ok_or(FormatError::new("object without id"))?),
        );
        self.count(kind, key.1);
        self.follow(key, version);
        Ok(())
    }

    /// Takes in the place of the next object.
    fn follow(&mut self, key: (ObjectKind, u64), version: i64) {
        match self.last.replace(key) {
            Some(last) if last > key => self.unsorted(),
            Some(last) if last == key => {
                self.flags.set(BlobFlags::STRICT, false);
                if self.last_version > version {
                    self.flags.set(BlobFlags::SORTED, false);
                }
            }
            _ => {}
        }
        self.last_version = version;
    }

    fn check_string(&self, index: u64) -> Result<(), FormatError> {
        // Index 0 is "none" even in a block without strings.
        if index < self.strings || index == 0 {
            Ok(())
        } else {
            Err(string_out_of_range(index, self.strings))
        }
    }

    fn count(&mut self, kind: ObjectKind, rank: u64) {
        let ids = &mut self.ids[kind as usize];
        ids.count += 1;
        ids.min = ids.min.min(rank);
        ids.max = ids.max.max(rank);
    }

    fn unsorted(&mut self) {
        self.flags.set(BlobFlags::SORTED, false);
        self.flags.set(BlobFlags::STRICT, false);
    }

    fn dense(&mut self, dense: &DenseNodes<'_>) -> Result<(), FormatError> {
        if dense.is_empty() {
            return Ok(());
        }
        self.flags.set(BlobFlags::DENSE, true);
        self.bounds.dense(dense, &self.scale)?;
        self.check_string(largest(dense.keys_vals.values())?)?;
        let [least, most] = extremes(dense.info.user_sids.values())?;
        if !dense.info.user_sids.is_empty() {
            // A negative index is a very large one.
            self.check_string((least as u64).max(most as u64))?;
        }
        if dense.info.visible.as_bytes().contains(&0) {
            self.flags.set(BlobFlags::DELETED, true);
        }
        if !self.ascending_ids(dense)? {
            self.any_ids(dense)?;
        }
        Ok(())
    }

    /// The usual case: positive ids, every delta positive. `false` where it is another.
    fn ascending_ids(&mut self, dense: &DenseNodes<'_>) -> Result<bool, FormatError> {
        let mut deltas = dense.ids.values();
        let first = deltas.read_sint()?;
        let (mut last, mut ascending) = (first, first > 0);
        while !deltas.is_done() {
            let delta = deltas.read_sint()?;
            let (next, overflow) = last.overflowing_add(delta);
            ascending &= delta > 0 && !overflow;
            last = next;
        }
        let continues = self
            .last
            .is_none_or(|last| last < (ObjectKind::Node, id_rank(first)));
        if !ascending || !continues {
            return Ok(false);
        }
        let ids = &mut self.ids[ObjectKind::Node as usize];
        ids.count += dense.len() as u32;
        ids.min = ids.min.min(id_rank(first));
        ids.max = ids.max.max(id_rank(last));
        self.last = Some((ObjectKind::Node, id_rank(last)));
        self.last_version = match dense.info.versions.values().last_of_all()? {
            Some(version) => i64::from(version as i32),
            None => 0,
        };
        Ok(true)
    }

    /// The general path of [`Scan::ascending_ids`].
    fn any_ids(&mut self, dense: &DenseNodes<'_>) -> Result<(), FormatError> {
        let mut nodes = dense.raw_nodes();
        while let Some(node) = nodes.next()? {
            let key = (ObjectKind::Node, id_rank(node.id));
            self.count(key.0, key.1);
            self.follow(key, node.info.version);
        }
        Ok(())
    }

    fn finish(self, entry: &mut BlobEntry) {
        let found = |kind: &ObjectKind| self.ids[*kind as usize].count > 0;
        entry.kinds = ObjectKind::ALL
            .into_iter()
            .filter(found)
            .collect::<KindSet>();
        entry.count = self.ids.iter().map(|ids| ids.count).sum();
        let rank_of = |kind: Option<ObjectKind>, rank: fn(&Ids) -> u64| {
            kind.map_or(0, |kind| {
                crate::osm::id_from_rank(rank(&self.ids[kind as usize]))
            })
        };
        entry.min_id = rank_of(entry.kinds.first(), |ids| ids.min);
        entry.max_id = rank_of(entry.kinds.last(), |ids| ids.max);
        entry.bbox = self.bounds.0;
        let hashed = entry.flags.has(BlobFlags::HASHED);
        entry.flags = self.flags;
        entry.flags.set(BlobFlags::HASHED, hashed);
    }
}

fn count_strings(table: &[u8]) -> Result<u64, FormatError> {
    let mut count = 0;
    let mut fields = Fields::new(table);
    while let Some(field) = fields.next().map_err(|error| error.within("StringTable"))? {
        count += u64::from(field.number == 1);
    }
    Ok(count)
}

/// The largest of the values.
fn largest(mut values: Varints<'_>) -> Result<u64, FormatError> {
    let mut most = 0;
    while !values.is_done() {
        most = most.max(values.read()?);
    }
    Ok(most)
}

/// The largest value in a packed run or a single varint.
fn largest_in(field: &Field<'_>) -> Result<u64, FormatError> {
    match field.value {
        Value::Bytes(run) => largest(Varints::new(run)),
        _ => field.varint(),
    }
}

/// A box around coordinates; those that lie outside the world do not count.
#[derive(Debug)]
struct Bounds(Bbox);

impl Default for Bounds {
    fn default() -> Self {
        Self(Bbox::EMPTY)
    }
}

impl Bounds {
    fn add(&mut self, lat: i64, lon: i64, scale: &Scale) {
        self.add_box([lat, lat], [lon, lon], scale);
    }

    /// Adds smallest and largest stored values. `false`, and nothing added, where they lie outside
    /// the world.
    fn add_box(&mut self, lats: [i64; 2], lons: [i64; 2], scale: &Scale) -> bool {
        let down = |nano: i64| nano.div_euclid(NANO_PER_DECIMICRO);
        let up = |nano: i64| {
            nano.saturating_add(NANO_PER_DECIMICRO - 1)
                .div_euclid(NANO_PER_DECIMICRO)
        };
        let edges = [
            down(scale.nano_lat(lats[0])),
            up(scale.nano_lat(lats[1])),
            down(scale.nano_lon(lons[0])),
            up(scale.nano_lon(lons[1])),
        ];
        const WORLD: i64 = 1_800_000_000;
        if edges.iter().any(|edge| edge.abs() > WORLD) {
            return false;
        }
        let [south, north, west, east] = edges.map(|edge| edge as i32);
        self.0.add(south, west);
        self.0.add(north, east);
        true
    }

    fn dense(&mut self, dense: &DenseNodes<'_>, scale: &Scale) -> Result<(), FormatError> {
        let lats = extremes(dense.lats.values())?;
        let lons = extremes(dense.lons.values())?;
        if !self.add_box(lats, lons, scale) {
            let mut nodes = dense.raw_nodes();
            while let Some(node) = nodes.next()? {
                self.add(node.lat, node.lon, scale);
            }
        }
        Ok(())
    }
}

/// The smallest and the largest value of a delta-coded column.
fn extremes(mut deltas: Varints<'_>) -> Result<[i64; 2], FormatError> {
    let (mut value, mut min, mut max) = (0i64, i64::MAX, i64::MIN);
    while !deltas.is_done() {
        value = value.wrapping_add(deltas.read_sint()?);
        min = min.min(value);
        max = max.max(value);
    }
    Ok([min, max])
}
