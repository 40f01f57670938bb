//! Scans a payload for the facts in its [`BlobEntry`]: ids, coordinates, order and hash.

use super::entry::{BlobEntry, BlobFlags};
use super::id_facts::{IdFacts, NodeRun};
use super::statistics::{ObjectCounts, ObjectStatistics};
use crate::error::{FormatError, FormatResult};
use crate::osm::{Bbox, Location, ObjectKind, ceil_e7, floor_e7};
use crate::pbf::block::delta::OVERFLOW;
use crate::pbf::block::dense::{DenseNodes, TagFacts, check_tags};
use crate::pbf::block::messages::{NodeMessage, OnlyId, RawInfo};
use crate::pbf::block::oddities::{Oddities, UsedKeys};
use crate::pbf::block::outline::{
    BlockOutline, BlockUnits, Message, check_string_count, string_index_error,
};
use crate::pbf::block::parsed::Block;
use crate::pbf::block::string_faults::{TextFault, check_strings};
use crate::pbf::wire::schema::{object, relation, string_table, way};
use crate::pbf::wire::{Field, Fields, Value, Varints, count_varints};
use twox_hash::XxHash3_64;

/// Fills in the facts in `entry` about the contents of a blob from its payload, and marks the entry as verified. Leaves
/// the offset, the sizes in the file and the number of the blob unchanged. Fails if the payload is damaged.
pub fn scan_payload(payload: &[u8], entry: &mut BlobEntry) -> Result<(), FormatError> {
    scan_counts(payload, entry).map(|_| ())
}

/// Fills in only the facts about kinds, ids, order and flags. The box and the statistics of the objects stay unknown,
/// so that most columns of nodes are not decoded.
pub fn scan_order(payload: &[u8], entry: &mut BlobEntry) -> Result<(), FormatError> {
    let block = BlockOutline::parse(payload)?;
    let mut scan = TableScan::new(block.units, StringCounts::parse(block.string_table, false)?);
    scan.measures = false;
    for group in &block.groups {
        group.try_for_each(|message| scan.scan_message(message))?;
    }
    scan.finish(entry);
    entry.payload_len = payload.len() as u32;
    Ok(())
}

/// Fills in the same facts as [`scan_order`]. Calls `visit` with the ids and the locations of successive nodes. A
/// location is `None` if the node is deleted or its location is undefined. Also fails if a string is not UTF-8, as
/// [`check_strings`] does.
pub fn scan_places(
    payload: &[u8],
    entry: &mut BlobEntry,
    mut visit: impl FnMut(&[i64], &[Option<Location>]) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let block = BlockOutline::parse(payload)?;
    let mut scan = TableScan::new(block.units, StringCounts::parse(block.string_table, true)?);
    if !scan.strings.are_utf8 {
        check_strings(payload)?;
    }
    scan.measures = false;
    for group in &block.groups {
        group.try_for_each(|message| match message {
            Message::Dense(bytes) => {
                scan.scan_dense_locations(&DenseNodes::parse(bytes)?, &mut visit)
            }
            Message::Node(bytes) => {
                let node = NodeMessage::parse(bytes)?;
                visit(&[node.id], &[node.visible_location(&block.units)])?;
                scan.scan_message(message)
            }
            message => scan.scan_message(message),
        })?;
    }
    scan.finish(entry);
    entry.payload_len = payload.len() as u32;
    Ok(())
}

/// Scans a payload as [`scan_payload`] does, and looks for objects that other programs refuse or misunderstand. Also
/// fails if a string is not UTF-8, as [`check_strings`] does.
pub(crate) fn scan_for_oddities(payload: &[u8], entry: &mut BlobEntry) -> FormatResult<Oddities> {
    let scan = scan_all(payload, true)?;
    if !scan.strings.are_utf8 {
        check_strings(payload)?;
    }
    let mut odd = scan.odd;
    odd.has_inexpressible = !scan.strings.are_expressible;
    let is_key = |string: &_| scan.keys.is_used_as_key(*string);
    odd.has_empty_keys |= scan.strings.empty.iter().any(is_key);
    odd.has_repeated_keys = scan.keys.has_repeated;
    if scan
        .keys
        .has_duplicate_key_strings(BlockOutline::parse(payload)?.string_table)?
    {
        let contents = Block::parse(payload)?.check_contents()?;
        odd.has_repeated_keys = contents.faulty_tags.repeated > 0;
    }
    if scan.bounds.leaves_out {
        // Some nodes lie outside of the world, or have no location.
        let block = Block::parse(payload)?;
        block.for_each_node_outside_world(|_, _, _| odd.has_outside = true)?;
    }
    scan.finish_with_hash(payload, entry);
    Ok(odd)
}

/// Scans a payload as [`scan_payload`] does. Returns the counts for nodes, ways and relations, in this order, and the
/// number of objects that directly follow another version of the same object.
pub(crate) fn scan_counts(
    payload: &[u8],
    entry: &mut BlobEntry,
) -> FormatResult<([ObjectCounts; 3], u64)> {
    Ok(scan_all(payload, false)?.finish_with_hash(payload, entry))
}

/// Scans all objects of a payload. With `finds_odd`, also looks for [`Oddities`].
fn scan_all(payload: &[u8], finds_odd: bool) -> FormatResult<TableScan> {
    let block = BlockOutline::parse(payload)?;
    let mut scan = TableScan::new(
        block.units,
        StringCounts::parse(block.string_table, finds_odd)?,
    );
    if finds_odd {
        (scan.finds_odd, scan.keys) = (true, UsedKeys::new(scan.strings.count as usize));
    }
    for group in &block.groups {
        group.try_for_each(|message| scan.scan_message(message))?;
    }
    Ok(scan)
}

/// The facts that a scan has found so far.
struct TableScan {
    units: BlockUnits,
    strings: StringCounts,
    ids: IdFacts,
    bounds: Bounds,
    flags: BlobFlags,
    /// Whether the box and the statistics of the objects are computed.
    measures: bool,
    /// The counts for nodes, ways and relations.
    counts: [ObjectCounts; 3],
    /// Whether the scan looks for [`Oddities`].
    finds_odd: bool,
    /// The oddities that the scan itself finds. [`scan_for_oddities`] adds the others.
    odd: Oddities,
    /// The keys of tags, if `finds_odd` is set.
    keys: UsedKeys,
    /// The number of objects so far, if `finds_odd` is set.
    objects: u32,
}

impl TableScan {
    fn new(units: BlockUnits, strings: StringCounts) -> Self {
        Self {
            units,
            strings,
            ids: IdFacts::default(),
            bounds: Bounds::default(),
            flags: BlobFlags::default(),
            measures: true,
            counts: Default::default(),
            finds_odd: false,
            odd: Oddities::default(),
            keys: UsedKeys::default(),
            objects: 0,
        }
    }

    fn scan_message(&mut self, message: Message<'_>) -> FormatResult<()> {
        match message {
            Message::Dense(bytes) => self.scan_dense(&DenseNodes::parse(bytes)?),
            Message::Node(bytes) => {
                let node = NodeMessage::parse(bytes)?;
                self.bounds.add(node.lat, node.lon, &self.units);
                self.scan_object(ObjectKind::Node, bytes)
            }
            Message::Way(bytes) => self.scan_object(ObjectKind::Way, bytes),
            Message::Relation(bytes) => self.scan_object(ObjectKind::Relation, bytes),
            Message::Other => Ok(()),
        }
    }

    /// Adds an object with a message of its own, in a single pass over the fields of the message.
    fn scan_object(&mut self, kind: ObjectKind, message: &[u8]) -> FormatResult<()> {
        let (mut largest_string, mut columns, mut info) =
            (0u64, ColumnLengths::default(), RawInfo::default());
        let mut id = OnlyId::default();
        self.objects = self.objects.wrapping_add(1);
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            match field.number {
                object::ID => id.set(match kind {
                    ObjectKind::Node => field.sint()?,
                    ObjectKind::Way | ObjectKind::Relation => field.varint()? as i64,
                })?,
                // Keys, values and roles are string ids, so they all count for the largest id.
                object::KEYS => {
                    let add = |key| self.keys.add(key, self.objects);
                    largest_string = largest_string.max(columns.keys.add_each(&field, add)?);
                }
                object::VALS => largest_string = largest_string.max(columns.values.add(&field)?),
                relation::ROLES_SID if kind == ObjectKind::Relation => {
                    largest_string = largest_string.max(columns.roles.add(&field)?)
                }
                relation::MEMIDS if kind == ObjectKind::Relation => {
                    columns.members.count_values(&field)?
                }
                relation::TYPES if kind == ObjectKind::Relation => drop(columns.kinds.add(&field)?),
                object::INFO => {
                    info = RawInfo::parse(field.bytes()?)?;
                    largest_string = largest_string.max(u64::from(info.user_sid.unwrap_or(0)));
                    if info.visible == Some(false) {
                        self.flags.set(BlobFlags::DELETED, true);
                    }
                }
                way::REFS if kind == ObjectKind::Way => columns.refs.count_values(&field)?,
                way::LAT | way::LON if kind == ObjectKind::Way => {
                    self.flags.set(BlobFlags::LOCATIONS, true);
                    match field.number {
                        way::LAT => columns.lats.count_values(&field)?,
                        _ => columns.lons.count_values(&field)?,
                    }
                }
                _ => {}
            }
        }
        columns.check(kind)?;
        self.odd.has_empty_keys |= columns.keys.has_zero && !self.strings.begins_with_text;
        self.odd.has_refused_info |= info.refusal().is_some();
        self.odd.short_ways += u64::from(kind == ObjectKind::Way && columns.refs.values < 2);
        if kind == ObjectKind::Way && columns.refs.values > 0 && columns.lats.values == 0 {
            self.flags.set(BlobFlags::BARE_WAYS, true);
        }
        self.strings.check(largest_string)?;
        let has_name = self.strings.is_nonempty(info.user_sid.unwrap_or(0).into());
        let references = columns.refs.values + columns.members.values;
        self.counts[kind as usize].add_raw(&info, has_name, [columns.keys.values, references]);
        self.ids.add(kind, id.get()?, info.version);
        Ok(())
    }

    /// Adds the nodes of a DenseNodes message.
    fn scan_dense(&mut self, dense: &DenseNodes<'_>) -> FormatResult<()> {
        let tags = self.scan_dense_tags(dense)?;
        if dense.is_empty() {
            return Ok(());
        }
        if self.measures {
            self.bounds.add_dense(dense, &self.units)?;
            let counts = &mut self.counts[ObjectKind::Node as usize];
            counts.add_dense(dense, &tags)?;
            counts.with_user += self.strings.count_nonempty(dense.info.user_sids.values())?;
        } else {
            dense.check_coordinates()?;
        }
        let last_version = || last_version(dense);
        let is_added = self.ids.add_id_column(dense.ids.values(), last_version)?;
        self.add_missing_dense_ids(dense, is_added)
    }

    /// Adds dense nodes, and calls `visit` with their ids and locations.
    fn scan_dense_locations(
        &mut self,
        dense: &DenseNodes<'_>,
        visit: &mut impl FnMut(&[i64], &[Option<Location>]) -> FormatResult<()>,
    ) -> FormatResult<()> {
        self.scan_dense_tags(dense)?;
        if dense.is_empty() {
            return Ok(());
        }
        dense.check_coordinates()?;
        let mut run = NodeRun::default();
        dense.for_each_location_run(&self.units, &mut |ids: &[i64], locations: &[_]| {
            run.add(ids);
            visit(ids, locations)
        })?;
        let is_added = self.ids.add_node_run(&run, || last_version(dense))?;
        self.add_missing_dense_ids(dense, is_added)
    }

    /// Checks the tags of dense nodes, and sets the flags for the nodes.
    fn scan_dense_tags(&mut self, dense: &DenseNodes<'_>) -> FormatResult<TagFacts> {
        let (keys_vals, nodes) = (dense.keys_vals.values(), dense.len());
        let tags = if self.finds_odd {
            let first = self.objects.wrapping_add(1);
            self.objects = self.objects.wrapping_add(nodes as u32);
            self.odd.has_refused_info |= dense.info.has_refused_info()?;
            check_tags(keys_vals, nodes, |node, key| {
                self.keys.add(key, first.wrapping_add(node as u32));
            })?
        } else {
            check_tags(keys_vals, nodes, |_, _| ())?
        };
        self.strings.check(tags.largest_string)?;
        if !dense.is_empty() {
            self.flags.set(BlobFlags::DENSE, true);
        }
        if dense.info.visible.as_bytes().contains(&0) {
            self.flags.set(BlobFlags::DELETED, true);
        }
        Ok(tags)
    }

    /// Adds the ids of dense nodes one by one, unless they were added as a run.
    fn add_missing_dense_ids(
        &mut self,
        dense: &DenseNodes<'_>,
        are_added: bool,
    ) -> FormatResult<()> {
        if are_added {
            return Ok(());
        }
        let mut nodes = dense.raw_nodes();
        while let Some(node) = nodes.next()? {
            self.ids.add(ObjectKind::Node, node.id, node.info.version);
        }
        Ok(())
    }

    /// Ends the scan of a payload, and stores all facts in `entry`. Returns the same as [`scan_counts`].
    fn finish_with_hash(self, payload: &[u8], entry: &mut BlobEntry) -> ([ObjectCounts; 3], u64) {
        let counts = self.finish(entry);
        entry.payload_len = payload.len() as u32;
        entry.hash = XxHash3_64::oneshot(payload);
        entry.flags.set(BlobFlags::HASHED, true);
        counts
    }

    /// Stores the facts in `entry`. Marks the entry as verified if the box and the statistics are among the facts.
    /// Returns the same as [`scan_counts`].
    fn finish(mut self, entry: &mut BlobEntry) -> ([ObjectCounts; 3], u64) {
        let has_table = entry.flags.has(BlobFlags::HAS_TABLE);
        entry.flags = self.flags;
        entry.flags.set(BlobFlags::HAS_TABLE, has_table);
        entry.flags.set(BlobFlags::SCANNED, true);
        entry.flags.set(BlobFlags::VERIFIED, self.measures);
        self.ids.fill_entry(entry);
        if !self.measures {
            return (self.counts, self.ids.repeated_count());
        }
        entry.bbox = self.bounds.bbox;
        let fits = |time: i64| time.checked_mul(self.units.date_granularity).is_some();
        let mut fit = true;
        for (first, last) in self
            .counts
            .iter_mut()
            .filter_map(|counts| counts.times.as_mut())
        {
            fit &= fits(*first) && fits(*last);
            (*first, *last) = (self.units.seconds(*first), self.units.seconds(*last));
        }
        let repeated = self.ids.repeated_count();
        let kind = entry.kinds.single();
        let counts = kind.map(|kind| &self.counts[kind as usize]).filter(|_| fit);
        entry.statistics = counts.and_then(|counts| ObjectStatistics::new(counts, repeated));
        (self.counts, repeated)
    }
}

/// Returns the version of the last dense node; 0 if it has none.
fn last_version(dense: &DenseNodes<'_>) -> FormatResult<i64> {
    let version = dense.info.versions.values().last_value()?;
    Ok(version.map_or(0, |version| i64::from(version as i32)))
}

/// The number of strings in a block, and the indices of empty strings.
#[derive(Debug)]
struct StringCounts {
    count: u64,
    /// The indices of empty strings other than index 0, ascending.
    empty: Vec<u32>,
    /// Whether the string with index 0 has at least one character.
    begins_with_text: bool,
    /// Whether all strings are UTF-8; `true` if this was not checked.
    are_utf8: bool,
    /// Whether XML 1.0 allows all characters of the strings; `true` if this was not checked.
    are_expressible: bool,
}

impl StringCounts {
    /// Reads a StringTable message. With `checks`, also checks the characters of the strings.
    fn parse(table: &[u8], checks: bool) -> FormatResult<Self> {
        let (mut count, mut empty) = (0, Vec::new());
        let (mut are_utf8, mut are_expressible) = (true, true);
        let mut begins_with_text = false;
        let mut fields = Fields::new(table);
        while let Some(field) = fields.next().map_err(|error| error.within("StringTable"))? {
            if field.number == string_table::S {
                let is_empty = matches!(field.value, Value::Bytes([]));
                if count > 0 && is_empty {
                    empty.push(count as u32);
                }
                begins_with_text |= count == 0 && !is_empty;
                if checks {
                    let fault = TextFault::find_in(field.bytes()?);
                    are_utf8 &= fault != Some(TextFault::NotUtf8);
                    are_expressible &= fault != Some(TextFault::Inexpressible);
                }
                count += 1;
            }
        }
        check_string_count(count)?;
        Ok(Self {
            count: count as u64,
            empty,
            begins_with_text,
            are_utf8,
            are_expressible,
        })
    }

    /// Fails if there is no string with this index.
    fn check(&self, index: u64) -> FormatResult<()> {
        // Index 0 means "no string" even in a block without strings.
        if index < self.count || index == 0 {
            Ok(())
        } else {
            Err(string_index_error(index, self.count))
        }
    }

    /// Whether the string at `index` has at least one character. `index` must be valid. Returns `false` for index 0,
    /// which means "no string".
    fn is_nonempty(&self, index: u64) -> bool {
        let is_empty = |index: u32| self.empty.binary_search(&index).is_ok();
        index != 0 && !u32::try_from(index).is_ok_and(is_empty)
    }

    /// Counts the values in a delta-coded column that are indices of strings with at least one character. Fails if an
    /// index is out of range.
    fn count_nonempty(&self, deltas: Varints<'_>) -> FormatResult<u64> {
        let (mut largest, mut count) = (0, 0);
        let mut overflows = deltas.for_each_sum(|index, times| {
            // As `u64`, a negative index is larger than any valid one, so `check` refuses it.
            largest = largest.max(index as u64);
            count += u64::from(index != 0) * times as u64;
        })?;
        self.check(largest)?;
        if !self.empty.is_empty() {
            count = 0;
            overflows |= deltas.for_each_sum(|index, times| {
                count += u64::from(self.is_nonempty(index as u64)) * times as u64;
            })?;
        }
        if overflows { Err(OVERFLOW) } else { Ok(count) }
    }
}

/// The number of values in a column of an object, the largest value, and whether one is 0.
#[derive(Debug, Clone, Copy, Default)]
struct ColumnFacts {
    values: usize,
    largest: u64,
    has_zero: bool,
}

impl ColumnFacts {
    /// Adds a packed run or a single varint. Returns the largest value so far.
    fn add(&mut self, field: &Field<'_>) -> FormatResult<u64> {
        self.add_each(field, |_| ())
    }

    /// Does the same as [`add`](Self::add), and calls `each` with each value.
    fn add_each(&mut self, field: &Field<'_>, mut each: impl FnMut(u64)) -> FormatResult<u64> {
        let mut add = |value| {
            self.add_value(value);
            each(value);
        };
        match field.value {
            Value::Bytes(run) => {
                let mut values = Varints::new(run);
                while !values.is_done() {
                    add(values.read()?);
                }
            }
            _ => add(field.varint()?),
        }
        Ok(self.largest)
    }

    fn add_value(&mut self, value: u64) {
        self.values += 1;
        self.has_zero |= value == 0;
        self.largest = self.largest.max(value);
    }

    /// Counts the values of a packed run or a single varint.
    fn count_values(&mut self, field: &Field<'_>) -> FormatResult<()> {
        self.values += match field.value {
            Value::Bytes(run) => count_varints(run),
            _ => field.varint().map(|_| 1)?,
        };
        Ok(())
    }
}

/// The columns of an object, for checking that their lengths agree.
#[derive(Debug, Default)]
struct ColumnLengths {
    keys: ColumnFacts,
    values: ColumnFacts,
    roles: ColumnFacts,
    members: ColumnFacts,
    kinds: ColumnFacts,
    refs: ColumnFacts,
    lats: ColumnFacts,
    lons: ColumnFacts,
}

impl ColumnLengths {
    /// Fails if the lengths of the columns do not agree, or if a member has an unknown kind.
    fn check(&self, kind: ObjectKind) -> FormatResult<()> {
        let (keys, values) = (self.keys.values, self.values.values);
        if keys != values {
            return Err(FormatError::with(format!(
                "a {kind}: {keys} keys but {values} values"
            )));
        }
        let [refs, lats, lons] = [&self.refs, &self.lats, &self.lons].map(|column| column.values);
        if lats + lons > 0 && (refs != lats || refs != lons) {
            return Err(FormatError::with(format!(
                "a way: {refs} refs but {lats} latitudes and {lons} longitudes"
            )));
        }
        let [members, roles, kinds] =
            [&self.members, &self.roles, &self.kinds].map(|column| column.values);
        if members != roles || members != kinds {
            return Err(FormatError::with(format!(
                "a relation: {members} members but {roles} roles and {kinds} types"
            )));
        }
        match ObjectKind::from_number(self.kinds.largest) {
            Some(_) => Ok(()),
            None => Err(FormatError::with(format!(
                "a member of unknown type {}",
                self.kinds.largest
            ))),
        }
    }
}

/// The bounding box of all nodes within the world, which extends to 90 degrees of latitude and 180 degrees of
/// longitude.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(in crate::pbf) bbox: Bbox,
    /// Whether any node lies outside of the world or has no location.
    pub(super) leaves_out: bool,
}

impl Bounds {
    /// Adds a node with the given stored coordinates.
    pub(in crate::pbf) fn add(&mut self, lat: i64, lon: i64, units: &BlockUnits) {
        self.leaves_out |= !self.add_box([lat, lat], [lon, lon], units);
    }

    /// Adds the box with the given smallest and largest stored latitudes and longitudes. If an edge lies outside of the
    /// world, returns `false` and adds nothing.
    fn add_box(&mut self, lats: [i64; 2], lons: [i64; 2], units: &BlockUnits) -> bool {
        let edges = [
            floor_e7(units.nano_lat(lats[0])),
            ceil_e7(units.nano_lat(lats[1])),
            floor_e7(units.nano_lon(lons[0])),
            ceil_e7(units.nano_lon(lons[1])),
        ];
        const LIMITS: [i64; 4] = [900_000_000, 900_000_000, 1_800_000_000, 1_800_000_000];
        let mut pairs = edges.iter().zip(LIMITS);
        if pairs.any(|(edge, limit)| edge.abs() > limit) {
            return false;
        }
        let [south, north, west, east] = edges.map(|edge| edge as i32);
        self.bbox.add(south, west);
        self.bbox.add(north, east);
        true
    }

    /// Adds the nodes of a DenseNodes message.
    pub(in crate::pbf) fn add_dense(
        &mut self,
        dense: &DenseNodes<'_>,
        units: &BlockUnits,
    ) -> FormatResult<()> {
        let lats = min_max_of_deltas(dense.lats.values())?;
        let lons = min_max_of_deltas(dense.lons.values())?;
        if !self.add_box(lats, lons, units) {
            let mut nodes = dense.raw_nodes();
            while let Some(node) = nodes.next()? {
                self.add(node.lat, node.lon, units);
            }
        }
        Ok(())
    }
}

/// Returns the smallest and the largest value in a delta-coded column. Fails if a value does not fit into 64 bits.
fn min_max_of_deltas(deltas: Varints<'_>) -> FormatResult<[i64; 2]> {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    let overflows =
        deltas.for_each_sum(|value, _| (min, max) = (min.min(value), max.max(value)))?;
    if overflows {
        Err(OVERFLOW)
    } else {
        Ok([min, max])
    }
}
