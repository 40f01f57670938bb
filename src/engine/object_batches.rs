//! Selects objects of a file, and makes batches of them on all cores for a caller that takes them one by one.

use super::block_matcher::BlockMatcher;
use super::input;
use crate::error::{Error, FormatError, Result};
use crate::file::{BlobDecoder, BlobPass, ElementReader, FilePart, PbfFile};
use crate::formats::row_limit::{OversizedObjects, is_too_large};
use crate::index::IdSet;
use crate::osm::{Bbox, KindSet, ObjectExpression, ObjectFilter, ObjectId, ObjectKind};
use crate::pbf::{BlobEntry, Block, Element, Relation, Way, feature};
use crate::runtime::{Batches, Context, Pass, PassResults};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The objects that an [`ObjectReader`] selects: those that meet all conditions.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ObjectSelection {
    /// The kinds of objects; `None` for all kinds.
    pub kinds: Option<KindSet>,
    /// The box in which an object must lie: a node itself, a way with a node, a relation with a node or a way. Members
    /// of members do not count. A box whose western edge lies east of its eastern edge crosses the antimeridian.
    pub bbox: Option<Bbox>,
    /// The objects by their ids; `None` for all ids.
    pub ids: Option<Vec<ObjectId>>,
    /// The expressions, at least one of which an object must match; empty for all objects.
    pub filter: Vec<ObjectExpression>,
    /// The part of the file in which the objects are; `None` for the whole file.
    pub part: Option<FilePart>,
}

/// Makes batches of objects. Each thread has its own maker.
pub trait BatchMaker {
    /// A batch of objects.
    type Batch: Send + 'static;

    /// Adds an object to the current batch.
    ///
    /// # Errors
    ///
    /// The object is damaged.
    fn add(&mut self, element: &Element<'_>) -> Result<(), FormatError>;

    /// Ends the current batch and returns it. Returns `None` if it has no objects. Called at the end of each blob, and
    /// whenever [`is_full`](Self::is_full).
    fn take(&mut self) -> Option<Self::Batch>;

    /// Whether the current batch should end within a blob.
    fn is_full(&self) -> bool;
}

/// Reads the selected objects of a file in any format, as often as it is asked to.
#[derive(Debug)]
pub struct ObjectReader {
    objects: ElementReader,
    selection: ObjectSelection,
    filter: ObjectFilter,
    /// The objects within the box, which are found before the first batch.
    within: OnceLock<Within>,
}

/// What a thread gives for a blob.
enum BlobBatches<B> {
    Batch(B),
    /// The objects of the blob that are too large for a batch.
    LeftOut(OversizedObjects),
}

/// The nodes and ways in a box that other objects may refer to.
#[derive(Debug, Default)]
struct Within {
    /// The box, as [`Bbox::on_map`] returns it.
    boxes: [Bbox; 2],
    nodes: IdSet,
    ways: IdSet,
}

impl ObjectReader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or is not OSM data. Its table of contents has no blobs as those of the selected part,
    /// so that the part is one of another file.
    pub fn open(path: impl AsRef<Path>, selection: ObjectSelection, ctx: &Context) -> Result<Self> {
        let file = input::open(path.as_ref(), ctx)?;
        if let Some(part) = &selection.part
            && !file.has_part(part)
        {
            let cause = "this is not the file that was divided into parts, or it has changed since";
            return Err(Error::file(path.as_ref(), cause));
        }
        Ok(Self::of_file(file, selection, ctx))
    }

    /// Whether the file is a history, which may have several versions of an object, and deleted ones.
    pub fn is_history(&self) -> bool {
        self.objects.header().has(feature::HISTORY)
    }

    /// Creates a reader for a file that is open already.
    pub fn of_file(file: PbfFile, selection: ObjectSelection, ctx: &Context) -> Self {
        let mut objects = ElementReader::of_file(file, ctx.clone());
        if let Some(kinds) = selection.kinds {
            objects = objects.kinds(kinds);
        }
        if let Some(bbox) = selection.bbox {
            objects = objects.nodes_within(bbox);
        }
        if let Some(ids) = &selection.ids {
            objects = objects.ids(ids.iter().copied());
        }
        Self {
            objects,
            filter: ObjectFilter::new(selection.filter.iter().cloned()),
            selection,
            within: OnceLock::new(),
        }
    }

    /// Starts to read the file, and returns an iterator over the batches, in file order. `maker` creates the maker of a
    /// thread. Threads make batches ahead: up to two for each, and those of the blobs in work. They end when the
    /// iterator is dropped.
    ///
    /// Errors are items of the iterator, which ends after an error.
    pub fn batches<M: BatchMaker>(
        self: &Arc<Self>,
        maker: impl Fn() -> M + Send + Sync + 'static,
        ctx: &Context,
    ) -> Batches<M::Batch> {
        let reader = self.clone();
        Batches::start(2 * ctx.jobs, ctx, move |ctx, take| {
            reader.make(&maker, ctx, take)
        })
    }

    fn make<M: BatchMaker>(
        &self,
        maker: &(impl Fn() -> M + Sync),
        ctx: &Context,
        take: &mut dyn FnMut(M::Batch) -> Result<()>,
    ) -> Result<()> {
        let needs_some = self
            .selection
            .kinds
            .is_some_and(|kinds| kinds != KindSet::ALL);
        if self.selection.part.is_none() && (needs_some || self.selection.bbox.is_some()) {
            self.objects.find_kinds()?;
        }
        if self.within.get().is_none() {
            let within = self.find_within(ctx)?;
            let _ = self.within.set(within);
        }
        let input = &self.objects.file().input;
        let mut oversized = OversizedObjects::default();
        Pass::new("read objects", ctx)
            .counting_items()
            .run_results(
                input.len(),
                self.objects.entries_in(self.selection.part.as_ref()),
                || (BlobDecoder::new(input, ctx), maker()),
                |(decoder, maker), entry, results| self.blob(decoder, maker, &entry, results),
                |_| (),
                |found| match found {
                    BlobBatches::Batch(batch) => take(batch),
                    BlobBatches::LeftOut(objects) => {
                        oversized.extend(&objects);
                        Ok(())
                    }
                },
            )?;
        oversized.warn(ctx);
        Ok(())
    }

    /// Makes the batches of a blob.
    fn blob<M: BatchMaker>(
        &self,
        decoder: &mut BlobDecoder,
        maker: &mut M,
        entry: &BlobEntry,
        results: &PassResults<'_, BlobBatches<M::Batch>>,
    ) -> Result<()> {
        let send = |batch: Option<M::Batch>| match batch
            .map(|batch| results.send(BlobBatches::Batch(batch)))
        {
            Some(Err(error)) => Err(FormatError::with(error.to_string())),
            Some(Ok(())) | None => Ok(()),
        };
        let mut stored = decoder.read(entry)?;
        if !self.filter.expressions().is_empty() {
            let is_excluded = stored.decide(|strings| {
                let matcher = BlockMatcher::new(&self.filter, strings);
                matcher.cannot_match().then_some(())
            })?;
            if is_excluded.is_some() {
                return Ok(());
            }
        }
        let mut oversized = OversizedObjects::default();
        stored.decode_in_segments(|payload, _| {
            self.visit(&Block::parse(payload)?, |element| {
                if is_too_large(element, payload.len()) {
                    oversized.add(element.kind(), element.id());
                    return Ok(());
                }
                maker.add(element)?;
                if maker.is_full() {
                    send(maker.take())?;
                }
                Ok(())
            })?;
            send(maker.take())
        })?;
        if oversized.is_empty() {
            return Ok(());
        }
        results.send(BlobBatches::LeftOut(oversized))
    }

    /// Calls `visit` with the selected objects of a block.
    fn visit(
        &self,
        block: &Block<'_>,
        mut visit: impl FnMut(&Element<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let matches = super::block_matcher::select(&self.filter, block)?;
        let mut position = 0;
        block.try_for_each(|element| {
            let is_match = matches.as_ref().is_none_or(|matches| matches[position]);
            position += 1;
            if is_match && self.objects.selects(&element) && self.is_within(&element) {
                element.check_size()?;
                visit(&element)?;
            }
            Ok(())
        })
    }

    /// Whether a way or a relation is in the box. `true` for nodes.
    fn is_within(&self, element: &Element<'_>) -> bool {
        let (Some(_), Some(within)) = (&self.selection.bbox, self.within.get()) else {
            return true;
        };
        match element {
            Element::Node(_) => true,
            Element::Way(way) => within.has_way(way),
            Element::Relation(relation) => within.has_relation(relation),
        }
    }

    /// Finds the nodes and ways in the box that selected objects may refer to.
    fn find_within(&self, ctx: &Context) -> Result<Within> {
        let mut within = Within::default();
        let kinds = self.selection.kinds.unwrap_or(KindSet::ALL);
        let Some(bbox) = self.selection.bbox else {
            return Ok(within);
        };
        within.boxes = bbox.on_map();
        let has_relations = kinds.contains(ObjectKind::Relation);
        // Some ways may lack locations although the file declares them, so the nodes are always found.
        if has_relations || kinds.contains(ObjectKind::Way) {
            within.nodes = self.find_ids(ObjectKind::Node, bbox, ctx, |element| match element {
                Element::Node(node) => {
                    node.info().visible && within.has(node.nano_lat(), node.nano_lon())
                }
                Element::Way(_) | Element::Relation(_) => false,
            })?;
        }
        if has_relations {
            let ways = self.find_ids(ObjectKind::Way, bbox, ctx, |element| match element {
                Element::Way(way) => within.has_way(way),
                Element::Node(_) | Element::Relation(_) => false,
            })?;
            within.ways = ways;
        }
        Ok(within)
    }

    /// Returns the ids of the objects of a kind that `test` accepts. Does not read blobs of nodes outside of the box.
    fn find_ids(
        &self,
        kind: ObjectKind,
        bbox: Bbox,
        ctx: &Context,
        test: impl Fn(&Element<'_>) -> bool + Sync,
    ) -> Result<IdSet> {
        let mut found = IdSet::default();
        BlobPass::new("find objects", &self.objects.file().input, ctx).run_stream(
            self.objects.entries_of(KindSet::of(kind), bbox),
            || (),
            |reader, (), entry: BlobEntry| {
                reader.decode(&entry, |payload| {
                    let mut ids = Vec::new();
                    Block::parse(payload)?.try_for_each(|element| {
                        if element.kind() == kind && test(&element) {
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
    }
}

impl Within {
    /// Whether a location in nanodegrees is in the box.
    fn has(&self, lat: i64, lon: i64) -> bool {
        self.boxes.iter().any(|bbox| bbox.contains_nano(lat, lon))
    }

    /// Whether a node of a way is in the box. Nodes whose location the way has are looked up there.
    fn has_way(&self, way: &Way<'_>) -> bool {
        let mut locations = way.nano_locations().peekable();
        if locations.peek().is_some() {
            locations.any(|(lat, lon)| self.has(lat, lon))
        } else {
            way.refs().any(|id| self.nodes.contains(id))
        }
    }

    fn has_relation(&self, relation: &Relation<'_>) -> bool {
        relation.members().any(|member| match member.kind {
            ObjectKind::Node => self.nodes.contains(member.id),
            ObjectKind::Way => self.ways.contains(member.id),
            ObjectKind::Relation => false,
        })
    }
}
