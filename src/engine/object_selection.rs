//! Selects objects, and the blobs that may have them.

use super::block_matcher::{self, BlockMatcher, may_select_in_blob};
use crate::error::{FormatError, Result};
use crate::file::{BlobPass, FilePart};
use crate::geometry::{AreaIndex, Point, Shape};
use crate::index::IdSet;
use crate::io::Input;
use crate::osm::{
    Bbox, KindSet, ObjectExpression, ObjectFilter, ObjectId, ObjectKind, TypeThenId, id_rank,
    nearest_e7,
};
use crate::pbf::{BlobEntry, BlobFlags, Block, Element, Relation, StringTable, Way};
use crate::runtime::Context;
use std::sync::Arc;

/// The objects that an [`ElementReader`](super::ElementReader) selects: those that meet all conditions.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ObjectSelection {
    /// The kinds of objects; `None` for all kinds.
    pub kinds: Option<KindSet>,
    /// The box in which an object must lie. A way lies in the box if at least one of its nodes does. A relation lies in
    /// the box if at least one of its member nodes or member ways does. Member relations do not count. A box whose
    /// western edge lies east of its eastern edge crosses the antimeridian.
    pub bbox: Option<Bbox>,
    /// The region in which an object must lie, by the same rules as for `bbox`. Points on the edges lie in the region.
    pub region: Option<Shape>,
    /// The ids of the objects; `None` for all ids.
    pub ids: Option<Vec<ObjectId>>,
    /// The expressions, at least one of which an object must match; empty for all objects.
    pub filter: Vec<ObjectExpression>,
    /// The part of the file in which the objects are; `None` for the whole file.
    pub part: Option<FilePart>,
}

/// An iterator over the entries of blobs, in file order.
pub(super) type Entries<'e> = Box<dyn Iterator<Item = Result<BlobEntry>> + Send + 'e>;

/// An [`ObjectSelection`], prepared for the comparison with blobs and objects.
#[derive(Debug)]
pub(super) struct PreparedSelection {
    pub kinds: KindSet,
    /// The box, or the envelope of the region, as [`Bbox::on_map`] returns it.
    pub boxes: Option<[Bbox; 2]>,
    pub region: Option<Arc<AreaIndex>>,
    /// The keys of the objects in ascending order; `None` for all objects.
    keys: Option<Vec<TypeThenId>>,
    filter: ObjectFilter,
    /// The part of the file that has the objects.
    pub part: Option<FilePart>,
}

impl Default for PreparedSelection {
    fn default() -> Self {
        Self::new(ObjectSelection::default())
    }
}

impl PreparedSelection {
    pub(super) fn new(selection: ObjectSelection) -> Self {
        let envelope = || selection.region.as_ref().map(Shape::envelope);
        let bbox = selection.bbox.or_else(envelope);
        let index = |shape| Arc::new(AreaIndex::on_map(std::slice::from_ref(&shape)));
        let mut prepared = Self {
            kinds: selection.kinds.unwrap_or(KindSet::ALL),
            boxes: bbox.map(|bbox| bbox.on_map()),
            region: selection.region.map(index),
            keys: None,
            filter: ObjectFilter::new(selection.filter),
            part: selection.part,
        };
        if let Some(ids) = selection.ids {
            prepared.set_ids(ids);
        }
        prepared
    }

    /// Restricts the selection to the objects with the given ids.
    pub(super) fn set_ids(&mut self, ids: impl IntoIterator<Item = ObjectId>) {
        let keys = ids.into_iter().map(|id| (id.kind, id_rank(id.id)));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        self.keys = Some(keys);
    }

    /// Whether it helps to know the kinds of objects in each blob. Blobs without needed kinds are then not read.
    pub(super) fn needs_kinds(&self) -> bool {
        self.part.is_none() && (self.kinds != KindSet::ALL || self.boxes.is_some())
    }

    /// Whether a blob may contain selected objects, according to its entry.
    pub(super) fn may_select(&self, entry: &BlobEntry) -> bool {
        if !may_have_kinds(entry, self.kinds) || !may_select_in_blob(&self.filter, entry) {
            return false;
        }
        if let Some(part) = &self.part
            && !part.bytes().contains(&entry.offset)
        {
            return false;
        }
        if let Some(keys) = &self.keys
            && let (true, Some(first), Some(last)) = (
                entry.is_indexed(),
                entry.first_sort_key(),
                entry.last_sort_key(),
            )
        {
            let from = keys.partition_point(|key| *key < first);
            if keys.get(from).is_none_or(|key| *key > last) {
                return false;
            }
        }
        self.boxes
            .is_none_or(|boxes| may_have_objects_in(entry, &boxes))
    }

    /// Whether the selection has expressions. If so, the strings of a block may rule out that it has selected objects.
    pub(super) fn has_expressions(&self) -> bool {
        !self.filter.expressions().is_empty()
    }

    /// Whether the strings of a block rule out that it has selected objects.
    pub(super) fn cannot_match(&self, strings: &StringTable<'_>) -> bool {
        BlockMatcher::new(&self.filter, strings).cannot_match()
    }

    /// Calls `visit` with the selected objects of a block until `visit` fails. `within` has the objects in the box.
    pub(super) fn visit_selected<E: From<FormatError>>(
        &self,
        block: &Block<'_>,
        within: Option<&ObjectsWithin>,
        mut visit: impl FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let matches = block_matcher::selection_flags(&self.filter, block)?;
        let mut position = 0;
        block.try_for_each(|element| {
            let is_match = matches.as_ref().is_none_or(|matches| matches[position]);
            position += 1;
            let key = || (element.kind(), id_rank(element.id()));
            if is_match
                && self.kinds.contains(element.kind())
                && (self.keys.as_ref()).is_none_or(|keys| keys.binary_search(&key()).is_ok())
                && within.is_none_or(|within| within.has(&element))
            {
                visit(element)
            } else {
                Ok(())
            }
        })
    }
}

/// Whether a blob may have objects of at least one of `kinds`.
pub(super) fn may_have_kinds(entry: &BlobEntry, kinds: KindSet) -> bool {
    !entry.is_indexed() || !entry.kinds.intersection(kinds).is_empty()
}

/// Whether objects of a blob may lie in one of `boxes`. The box of a blob is compared only if the box is known, and the
/// blob is known to have only nodes. The result for other blobs is always `true`.
pub(super) fn may_have_objects_in(entry: &BlobEntry, boxes: &[Bbox]) -> bool {
    let has_only_nodes = entry.kinds.single() == Some(ObjectKind::Node);
    if !has_only_nodes || entry.bbox.is_empty() {
        return true;
    }
    // In an index that another program wrote, coordinates may have been rounded differently, by one unit of 1e-7
    // degree.
    let tolerance = i32::from(!entry.flags.has(BlobFlags::SCANNED));
    let around = entry.bbox.widened(tolerance);
    boxes.iter().any(|bbox| around.intersects(bbox))
}

/// A box and a region, with the nodes and ways in them that other objects may refer to.
#[derive(Debug, Default)]
pub(super) struct ObjectsWithin {
    /// The box, as [`Bbox::on_map`] returns it.
    boxes: [Bbox; 2],
    region: Option<Arc<AreaIndex>>,
    nodes: IdSet,
    ways: IdSet,
}

impl ObjectsWithin {
    /// Finds the nodes and ways in `boxes` that selected objects may refer to. `entries_of` returns the blobs that may
    /// have objects of a kind in the box.
    pub(super) fn find<'e>(
        boxes: [Bbox; 2],
        selection: &PreparedSelection,
        input: &Input,
        entries_of: impl Fn(ObjectKind) -> Entries<'e>,
        ctx: &Context,
    ) -> Result<Self> {
        let kinds = selection.kinds;
        let mut within = Self {
            boxes,
            region: selection.region.clone(),
            ..Self::default()
        };
        let find = |kind: ObjectKind, within: &Self| -> Result<IdSet> {
            let mut found = IdSet::default();
            BlobPass::new("find objects", input, ctx).run_stream(
                entries_of(kind),
                || (),
                |reader, (), entry: BlobEntry| {
                    reader.decode(&entry, |payload| {
                        let mut ids = Vec::new();
                        Block::parse(payload)?.try_for_each(|element| {
                            if element.kind() == kind && within.has(&element) {
                                ids.push(element.id());
                            }
                            Ok::<_, FormatError>(())
                        })?;
                        Ok(ids)
                    })
                },
                |ids| {
                    found.extend(ids);
                    Ok(())
                },
            )?;
            Ok(found)
        };
        let has_relations = kinds.contains(ObjectKind::Relation);
        // Some ways may lack locations even if the header declares locations in ways, so nodes are always searched for.
        if has_relations || kinds.contains(ObjectKind::Way) {
            within.nodes = find(ObjectKind::Node, &within)?;
        }
        if has_relations {
            within.ways = find(ObjectKind::Way, &within)?;
        }
        Ok(within)
    }

    /// Whether an object is in the box and in the region. Deleted nodes are in neither.
    fn has(&self, element: &Element<'_>) -> bool {
        match element {
            Element::Node(node) => {
                node.info().visible && self.has_location(node.nano_lat(), node.nano_lon())
            }
            Element::Way(way) => self.has_way(way),
            Element::Relation(relation) => self.has_relation(relation),
        }
    }

    /// Whether a location in nanodegrees is in the box and in the region.
    fn has_location(&self, lat: i64, lon: i64) -> bool {
        let point = || Point::new(nearest_e7(lat), nearest_e7(lon));
        let is_in = |index: &Arc<AreaIndex>| !index.regions_of(point()).is_empty();
        let mut boxes = self.boxes.iter();
        boxes.any(|bbox| bbox.contains_nano(lat, lon)) && self.region.as_ref().is_none_or(is_in)
    }

    /// Whether a node of a way is in the box and in the region. Uses the locations in the way or, if the way has none,
    /// `self.nodes`.
    fn has_way(&self, way: &Way<'_>) -> bool {
        let mut locations = way.nano_locations().peekable();
        if locations.peek().is_some() {
            locations.any(|(lat, lon)| self.has_location(lat, lon))
        } else {
            way.refs().any(|id| self.nodes.contains(id))
        }
    }

    /// Whether a node or a way that is in the box and in the region is a member of the relation.
    fn has_relation(&self, relation: &Relation<'_>) -> bool {
        relation.members().any(|member| match member.kind {
            ObjectKind::Node => self.nodes.contains(member.id),
            ObjectKind::Way => self.ways.contains(member.id),
            ObjectKind::Relation => false,
        })
    }
}
