//! The spatial layout: the objects of each kind in the order of a Hilbert curve, in blobs whose boxes are known.
//!
//! Objects become rows, which are sorted by location. Large objects have blobs of their own, so that the boxes of blobs
//! with small objects stay small.

use super::id_table::IdRows;
use super::relation_boxes::MemberBoxes;
use super::{Options, Summary};
use crate::commands::add_locations_to_ways::copy_with_way_locations;
use crate::engine::location_form::LocationForm;
use crate::engine::object_row::{put_object, read_object};
use crate::engine::sink::{BlobOutcome, Sink};
use crate::engine::{Format, input};
use crate::error::{Advice, Error, ErrorKind, FormatError, FormatResult, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, PlanNeeds, PlannedFile, WriteOptions};
use crate::geometry::Extent;
use crate::index::{KeyBits, RowBatch, RowLimits, RowSorter, SharedRows, SortedRows};
use crate::io::SizeHint;
use crate::osm::{Bbox, KindSet, Location, ObjectKind, id_rank};
use crate::pbf::wire::Varints;
use crate::pbf::{BlobEntry, Block, EncodedFrame, FrameEncoder, Object, ObjectBody, feature};
use crate::runtime::{Context, Pass};

/// The memory limits for sorting rows.
const LIMITS: RowLimits = RowLimits::new(32 << 20, 48 << 20);
/// The layout of the keys of rows: a kind, a level, and a position on the curve.
const KEY: KeyBits = KeyBits::new(6, CURVE_BITS);
const CURVE_BITS: u32 = 32;
const LEVEL_BITS: u32 = 8;
/// The maximum length of the edges of the boxes in each level, in 1e-7 degree: 1.5, 12, 93 and 750 km along a meridian.
/// Larger objects have a level of their own.
const LEVELS: [i64; 4] = [1 << 17, 1 << 20, 1 << 23, 1 << 26];
/// The level of objects without a location: deleted nodes, and ways and relations without nodes.
const NOWHERE: u64 = (1 << LEVEL_BITS) - 1;
/// The number of blobs in a range of rows that a worker processes at a time.
const BLOBS_AT_ONCE: usize = 4;
/// The size of a full batch of rows in bytes. A full batch is passed to the sorter even if the blob has more rows. In
/// real files, the rows of a blob do not fill a batch.
const MAX_BATCH: usize = 2 << 20;
/// The memory of the rows that are read at a time, in bytes.
const READ_MEMORY: usize = 24 << 20;
/// For each kind, the number of objects in a full blob of nodes, divided by the number in a full blob of the kind.
/// Blobs of ways have fewer objects, because ways are longer than nodes. Blobs of relations have even fewer objects,
/// because the members of a relation are searched for in the box of the whole blob.
const PARTS_OF_A_BLOB: [usize; 3] = [1, 4, 64];

/// The rows of a blob of any kind have at most `LEN_OF_AN_OBJECT * objects_per_blob` bytes.
const LEN_OF_AN_OBJECT: usize = 48;
/// A blob may end early at a gap in the data if each side of the gap has at least 1/16 of the objects of a full blob.
const PARTS_AT_GAPS: usize = 16;
/// The distance between two neighbours on the curve, in steps, above which there is a gap between them. A step is a
/// cell of 600 by 300 m at the equator. The cells of `GAP` steps together have the area of a square of 27 by 27 km.
const GAP: u64 = 1 << 12;
/// A distance of [`GAP`] or less is also a gap if it exceeds both this number of steps, and the distance from the first
/// to the last object divided by [`GAPS_IN_A_BLOB`].
const MIN_GAP: u64 = 16;
const GAPS_IN_A_BLOB: u64 = 4;

/// Writes the objects of a file in a spatial layout.
pub(super) fn write(options: &Options, ctx: &Context) -> Result<Summary> {
    let is_pbf = options.output.format == Format::Pbf;
    ctx.expect_phases(4 + u64::from(is_pbf && options.output.write.toc));
    let file = input::open_to_copy(&options.input, &options.output.encoding(), ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    check(&file, &plan)?;
    let (file, plan) = with_locations(file, plan, options, ctx)?;
    let mut header = file.header.clone();
    header.set_optional(feature::SORTED, false);
    // If there are ways, they store locations. Without ways, the declaration is true as well.
    header.set_optional(feature::LOCATIONS, true);
    options.output.header.apply(&mut header);
    let write = options.output.write.for_header(&header);
    if is_pbf && write.changes_objects() {
        // The tables record the boxes and the ids of the blobs that are made here. If the output re-encoded these blobs
        // to leave out metadata, the tables would not fit the re-encoded blobs.
        let cause = "a spatial layout writes objects in the form that they have";
        let error = Error::file_of(file.input.path(), ErrorKind::Usage, cause);
        return Err(error.advise(Advice::LeaveMetadataOut));
    }
    let sorter = RowSorter::new(LIMITS, KEY, &options.output.target.scratch_directory(), ctx);
    let source = PlannedFile::new(&file, &plan, ctx);
    let mut boxes = MemberBoxes::find(source)?;
    let places = ObjectPlacer {
        file: &file,
        plan: &plan,
        sorter: &sorter,
        ctx,
    };
    places.add_nodes_and_ways(&mut boxes)?;
    boxes.compute_relation_boxes(source)?;
    places.add_relations(&boxes)?;
    drop(boxes);
    let sorted = sorter.finish()?;
    let blobs_repacked = plan.entries.len() as u64;
    let mut output = options.output.clone();
    output.write.has_spatial_layout = is_pbf;
    let scratch = options.output.target.scratch_directory();
    let ids = (is_pbf && write.toc).then(|| IdRows::new(&plan, &scratch, ctx));
    let mut sink = Sink::create(&output, header, SizeHint::default(), ctx)?;
    let first_blobs = write_rows(&sorted, write, options, &file, ids.as_ref(), &mut sink, ctx)?;
    drop(sorted);
    let mut closed = sink.close()?;
    if let (Some(writer), Some(ids)) = (closed.begin_id_table(), ids) {
        ids.write(&first_blobs, writer, ctx)?;
    }
    Ok(Summary {
        written: closed.finish()?.written,
        blobs_repacked,
        ..Summary::default()
    })
}

/// Fails if a file cannot have a spatial layout.
fn check(file: &PbfFile, plan: &BlobPlan) -> Result<()> {
    let failed = |cause: &str| Error::file(file.input.path(), cause);
    Err(if file.header.has(feature::HISTORY) {
        failed(
            "a history file cannot have a spatial layout, since the versions of an object lie at several places",
        )
    } else if !plan.has_each_object_once() {
        failed("a spatial layout needs a file in order in which no object occurs twice")
            .advise(Advice::Sort)
    } else if plan
        .entries
        .iter()
        .any(|entry| entry.kinds.contains(ObjectKind::Way))
        && !LocationForm::of(file, plan).has_locations()
    {
        failed("a spatial layout needs ways that carry the locations of their nodes")
            .advise(Advice::AddLocationsKeepNodes)
    } else {
        return Ok(());
    })
}

/// Returns the file whose objects are laid out, with its plan. The ways of this file store all known locations. The
/// boxes of blobs are computed from these locations. Returns `file` itself if it has no ways. Also returns `file` if
/// its header says which nodes the file has, and each blob with ways may have locations. Otherwise, returns a temporary
/// copy with all known locations.
fn with_locations(
    file: PbfFile,
    plan: BlobPlan,
    options: &Options,
    ctx: &Context,
) -> Result<(PbfFile, BlobPlan)> {
    let has_ways = |entry: &&BlobEntry| entry.kinds.contains(ObjectKind::Way);
    let mut with_ways = plan.entries.iter().filter(has_ways);
    let is_located = match LocationForm::of(&file, &plan) {
        LocationForm::AllNodes | LocationForm::NeededNodes => {
            with_ways.all(BlobEntry::may_have_locations)
        }
        LocationForm::Plain | LocationForm::Mixed => with_ways.next().is_none(),
    };
    if is_located {
        return Ok((file, plan));
    }
    ctx.expect_phases(2);
    let file = copy_with_way_locations(file, &options.output.target.scratch_directory(), ctx)?;
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    Ok((file, plan))
}

/// Adds the objects of a file to a sorter.
struct ObjectPlacer<'p> {
    file: &'p PbfFile,
    plan: &'p BlobPlan,
    sorter: &'p RowSorter,
    ctx: &'p Context,
}

impl ObjectPlacer<'_> {
    fn add_nodes_and_ways(&self, boxes: &mut MemberBoxes) -> Result<()> {
        let kinds = KindSet::of(ObjectKind::Node).union(KindSet::of(ObjectKind::Way));
        let (ids, mut boxes) = boxes.node_and_way_boxes();
        self.add(
            "sort nodes and ways",
            kinds,
            |object| {
                let (bbox, kind) = (box_of(object), object.kind() as usize);
                let rank = ids[kind].rank(object.id);
                (bbox, rank.map(|rank| (kind, rank, bbox)))
            },
            |members| {
                for (kind, rank, bbox) in members {
                    boxes[kind][rank as usize] = bbox;
                }
            },
        )
    }

    fn add_relations(&self, boxes: &MemberBoxes) -> Result<()> {
        self.add(
            "sort relations",
            KindSet::of(ObjectKind::Relation),
            |object| {
                let nested = boxes.box_of_relation(object.id);
                let ObjectBody::Relation { members } = &object.body else {
                    return (nested, None::<()>);
                };
                let boxes = members
                    .iter()
                    .map(|member| boxes.get(member.kind, member.id));
                (boxes.fold(nested, |all, bbox| all.union(&bbox)), None)
            },
            |_| (),
        )
    }

    /// Adds the objects of the kinds in `kinds`. `place` returns the box of an object, and an optional value. Calls
    /// `take` for each blob, in file order, with the optional values of its objects.
    fn add<T: Send>(
        &self,
        name: &'static str,
        kinds: KindSet,
        place: impl Fn(&Object<'_>) -> (Bbox, Option<T>) + Sync,
        mut take: impl FnMut(Vec<T>),
    ) -> Result<()> {
        let has_wanted = |entry: &&BlobEntry| !entry.kinds.intersection(kinds).is_empty();
        let entries = self.plan.entries.iter().filter(has_wanted).copied();
        BlobPass::new(name, &self.file.input, self.ctx)
            .with_memory_factor(8)
            .run(
                entries.collect(),
                || (),
                |reader, (), entry| {
                    reader.decode(&entry, |payload| {
                        make_rows(payload, kinds, &place, |batch| self.sorter.add(batch))
                    })
                },
                |found| {
                    take(found);
                    self.sorter.check_for_error()
                },
            )
    }
}

/// Converts the objects of a block to rows, if their kind is in `kinds`. Calls `add` with each batch of rows. Returns
/// the optional values that `place` returned.
fn make_rows<T>(
    payload: &[u8],
    kinds: KindSet,
    place: impl Fn(&Object<'_>) -> (Bbox, Option<T>),
    add: impl Fn(RowBatch),
) -> FormatResult<Vec<T>> {
    let block = Block::parse(payload)?;
    if !block.units.is_exact_in_e7() || block.units.date_granularity % 1000 != 0 {
        return Err(FormatError::new(
            "a spatial layout does not keep places finer than 1e-7 degree or times finer than a second",
        ));
    }
    let (mut batch, mut found) = (RowBatch::default(), Vec::new());
    let mut object = Object::node(0, None, Vec::new());
    let (mut elements, mut last) = (block.cursor(), None);
    while let Some(element) = elements.next()? {
        if !kinds.contains(element.key.0) {
            continue;
        }
        object.fill_reusing_info(element, &block, &mut last)?;
        if let ObjectBody::Way { refs, locations } = &object.body
            && refs.len() != locations.len()
        {
            let cause = format!("way {} does not have the locations of its nodes", object.id);
            return Err(FormatError::lacking(cause, Some(Advice::AddLocations)));
        }
        let (bbox, noted) = place(&object);
        found.extend(noted);
        batch.push(key_of(object.kind(), object.id, &bbox), |row| {
            put_row(&object, &bbox, row)
        });
        if batch.memory_bytes() >= MAX_BATCH {
            add(std::mem::take(&mut batch));
        }
    }
    add(batch);
    Ok(found)
}

/// Appends an encoded row to `row`. The row consists of the rank of the id (which orders objects with the same key),
/// the box (only of a way or relation), and the object.
fn put_row(object: &Object<'_>, bbox: &Bbox, row: &mut Vec<u8>) {
    row.extend_from_slice(&id_rank(object.id).to_be_bytes());
    if object.kind() != ObjectKind::Node {
        row.extend_from_slice(&Extent::of_bbox(bbox).to_bytes());
    }
    put_object(object, row);
}

/// Returns the rank of the id of the object in a row.
fn rank_of_row(row: &[u8]) -> Result<u64> {
    let rank = row.first_chunk().map(|rank| u64::from_be_bytes(*rank));
    rank.ok_or_else(|| Error::internal("a row without the id of its object"))
}

/// Decodes a row that [`put_row`] has encoded. Returns the box of a way or relation, or an empty box for a node.
fn read_row<'r>(kind: ObjectKind, row: &'r [u8], object: &mut Object<'r>) -> FormatResult<Bbox> {
    let mut row = Varints::new(row);
    row.read_array::<{ size_of::<u64>() }>()?;
    let bbox = match kind {
        ObjectKind::Node => Bbox::EMPTY,
        ObjectKind::Way | ObjectKind::Relation => Extent::from_bytes(&row.read_array()?).to_bbox(),
    };
    read_object(kind, &mut row, object)?;
    Ok(bbox)
}

/// Returns the box of a node or a way; empty if the object has no location.
fn box_of(object: &Object<'_>) -> Bbox {
    let mut bbox = Bbox::EMPTY;
    let mut add = |location: &Location| bbox.add(location.lat_e7(), location.lon_e7());
    match &object.body {
        ObjectBody::Node { location } => location.iter().for_each(add),
        ObjectBody::Way { locations, .. } => locations.iter().flatten().for_each(&mut add),
        ObjectBody::Relation { .. } => {}
    }
    bbox
}

/// Returns the key of an object, which consists of its kind, the level for the size of its box, and the curve position
/// of the middle of its box.
fn key_of(kind: ObjectKind, id: i64, bbox: &Bbox) -> u64 {
    let group = |level: u64| (u64::from(kind.number()) << LEVEL_BITS | level) << CURVE_BITS;
    if bbox.is_empty() {
        // Objects without a location are ordered by id, so that they do not all have the same key.
        return group(NOWHERE) | (id_rank(id) >> 4).min((1 << CURVE_BITS) - 1);
    }
    let [west, south, east, north] = bbox.edges_e7().into_array();
    let height = i64::from(north) - i64::from(south);
    let edge = height.max(i64::from(east) - i64::from(west));
    let level = LEVELS.iter().filter(|longest| edge > **longest).count();
    group(level as u64) | Extent::of_bbox(bbox).curve_position(CURVE_BITS)
}

/// Writes sorted rows as blobs. Returns, for each range of rows, the index of the range's first blob.
fn write_rows(
    sorted: &SortedRows,
    write: WriteOptions,
    options: &Options,
    file: &PbfFile,
    ids: Option<&IdRows>,
    sink: &mut Sink,
    ctx: &Context,
) -> Result<Vec<u32>> {
    let most = options.objects_per_blob.max(1);
    let ranges = sorted.ranges((BLOBS_AT_ONCE * most) as u64);
    let last_range = ranges.len().saturating_sub(1) as u32;
    let (mut first_blobs, mut blobs) = (Vec::with_capacity(ranges.len()), 0);
    Pass::new("write", ctx)
        .with_budget(ctx.jobs as u64 + 1)
        .run(
            ranges.into_iter().zip(0..).collect(),
            || FrameEncoder::new(write.compression, write.blob_index),
            |encoder, (range, number)| {
                let kind = ObjectKind::from_number(range.keys.start >> (CURVE_BITS + LEVEL_BITS));
                let kind = kind.ok_or_else(|| Error::internal("a row of unknown kind"))?;
                let level = (range.keys.start >> CURVE_BITS) & NOWHERE;
                let most = BlobLimits::new(kind, level, most);
                encoder.set_max_objects(most.objects);
                let (mut portions, mut frames) = (sorted.portions(range, READ_MEMORY), Vec::new());
                while let Some(rows) = portions.next() {
                    let rows = rows?;
                    let places: Vec<_> = rows.keys_and_lens().collect();
                    let mut lens = blob_lens(&places, most);
                    if number == last_range && portions.rows_left() == 0 {
                        isolate_last_row(&mut lens);
                    }
                    let portion = encode_frames(kind, &rows, &lens, encoder).map_err(|error| {
                        Error::file(options.output.target.path(), error.to_string())
                    })?;
                    let mut first = 0;
                    for (blob, frame) in (frames.len() as u32..).zip(&portion) {
                        let last = first + frame.entry.count as usize;
                        if let Some(ids) = ids {
                            let ranks: Result<_> =
                                rows.rows(first..last).map(rank_of_row).collect();
                            ids.add(kind, ranks?, (number, blob));
                        }
                        first = last;
                    }
                    frames.extend(portion);
                }
                Ok(frames)
            },
            |frames| {
                first_blobs.push(blobs);
                blobs += frames.len() as u32;
                sink.add(&file.input, BlobOutcome::Frames(frames))?;
                ids.map_or(Ok(()), IdRows::check)
            },
        )?;
    Ok(first_blobs)
}

/// The limits of a blob.
#[derive(Clone, Copy)]
struct BlobLimits {
    objects: usize,
    /// The maximum size of the rows in bytes, unless a single row is larger.
    bytes: usize,
    /// The minimum number of objects on each side of a gap at which a blob ends.
    beside_gap: usize,
}

impl BlobLimits {
    /// Creates the limits of blobs of a kind at a level. Full blobs of nodes have `elements` objects.
    fn new(kind: ObjectKind, level: u64, elements: usize) -> Self {
        let parts = PARTS_OF_A_BLOB[kind as usize];
        let (objects, beside_gap) = if level == NOWHERE {
            (elements, usize::MAX)
        } else {
            (elements / parts, elements / parts / PARTS_AT_GAPS)
        };
        Self {
            objects: objects.max(1),
            bytes: (elements * LEN_OF_AN_OBJECT).max(1),
            beside_gap: beside_gap.max(1),
        }
    }
}

/// Returns the number of rows in each blob, in order. `rows` has the key and the length of each row. Rows are divided
/// at wide gaps, so that no box of a blob is mostly empty, and evenly elsewhere.
fn blob_lens(rows: &[(u64, usize)], most: BlobLimits) -> Vec<usize> {
    let (mut left, mut lens) = (vec![rows], Vec::new());
    while let Some(rows) = left.pop() {
        match cut_index(rows, most) {
            Some(at) => {
                let (front, back) = rows.split_at(at);
                left.extend([back, front]);
            }
            None if rows.is_empty() => {}
            None => lens.push(rows.len()),
        }
    }
    lens
}

/// Puts the last row into a blob of its own. The table of contents is stored in the blob of the last row, and must be
/// found in the last bytes of the file, so this blob has few objects.
fn isolate_last_row(lens: &mut Vec<usize>) {
    if let Some(last) = lens.last_mut().filter(|last| **last > 1) {
        *last -= 1;
        lens.push(1);
    }
}

/// Returns the index at which rows are divided in two; `None` if they become one blob.
fn cut_index(rows: &[(u64, usize)], most: BlobLimits) -> Option<usize> {
    let ((first, _), (last, _)) = (rows.first()?, rows.last()?);
    let smaller_side = |at: usize| at.min(rows.len() - at);
    let gaps = rows.windows(2).zip(1..).filter_map(|(pair, at)| {
        let gap = pair[1].0 - pair[0].0;
        (smaller_side(at) >= most.beside_gap).then_some((gap, at))
    });
    let widest = gaps.max_by_key(|(gap, at)| (*gap, smaller_side(*at)));
    if let Some((gap, at)) = widest
        && (gap > GAP || gap > MIN_GAP.max((last - first) / GAPS_IN_A_BLOB))
    {
        return Some(at);
    }
    let bytes = rows.iter().map(|(_, len)| len).sum::<usize>();
    let blobs = rows
        .len()
        .div_ceil(most.objects)
        .max(bytes.div_ceil(most.bytes));
    let blobs = blobs.min(rows.len());
    (blobs > 1).then(|| rows.len() * (blobs / 2) / blobs)
}

/// Encodes rows as blobs. `lens` has the number of rows in each blob.
fn encode_frames(
    kind: ObjectKind,
    rows: &SharedRows,
    lens: &[usize],
    encoder: &mut FrameEncoder,
) -> FormatResult<Vec<EncodedFrame>> {
    let mut boxes = Vec::with_capacity(rows.count());
    let mut object = Object::node(0, None, Vec::new());
    let mut first = 0;
    for len in lens {
        if first > 0 {
            encoder.end_block()?;
        }
        for row in rows.rows(first..first + len) {
            boxes.push(read_row(kind, row, &mut object)?);
            encoder.add(&object)?;
        }
        first += len;
    }
    let mut frames = encoder.finish()?;
    if kind != ObjectKind::Node {
        let mut first = 0;
        for frame in &mut frames {
            let end = first + frame.entry.count as usize;
            let of_frame = boxes[first..end].iter();
            frame.entry.bbox = of_frame.fold(Bbox::EMPTY, |all, bbox| all.union(bbox));
            first = end;
        }
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_end_at_gaps_and_have_equal_sizes_elsewhere() {
        let lens = |keys: &[u64], objects| {
            let rows: Vec<_> = keys.iter().map(|key| (*key, 10)).collect();
            let limits = BlobLimits {
                objects,
                bytes: 5000,
                beside_gap: objects / PARTS_AT_GAPS,
            };
            blob_lens(&rows, limits)
        };
        let even: Vec<u64> = (0..500).map(|key| key * 7).collect();
        assert_eq!(lens(&even, 1000), [500]);
        assert_eq!(lens(&even, 200), [166, 167, 167]);
        let twice: Vec<u64> = (0..1000).map(|key| key * 7).collect();
        assert_eq!(lens(&twice, 1000), [500, 500]);
        // Two towns, and one house far from both. One object is too few for a blob of its own.
        let towns = (0..300).chain(1_000_000..1_000_100).chain([9_000_000]);
        let towns: Vec<u64> = towns.collect();
        assert_eq!(lens(&towns, 400), [300, 101]);
        assert_eq!(lens(&towns, 4000), [401]);
        assert!(lens(&[], 400).is_empty());
        assert_eq!(lens(&[5; 401], 200), [133, 134, 134]);
        // A row that is longer than `bytes` becomes a blob of its own.
        let limits = BlobLimits {
            objects: 8,
            bytes: 100,
            beside_gap: 1,
        };
        assert_eq!(blob_lens(&[(1, 10), (2, 500), (3, 10)], limits), [1, 1, 1]);
    }
}
