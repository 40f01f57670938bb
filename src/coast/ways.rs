//! Reads the ways with `natural=coastline` and the locations of their nodes, in one pass over the ways and one over the
//! blobs that may have these nodes.

use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use crate::engine::filter::BlobDecision;
use crate::engine::geometry_pass::point_on_earth;
use crate::engine::id_search::IdSearch;
use crate::engine::input_content::not_current_error;
use crate::engine::location_form::location_of_reference;
use crate::engine::references::sort_and_dedup;
use crate::engine::repeats::context_refusing_repeats;
use crate::engine::scan::PlanningScan;
use crate::error::{FormatError, FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlannedFile};
use crate::geometry::Point;
use crate::index::{IdSet, LocationStore, NodeBatch};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Block, Element, StringTable, feature};
use crate::runtime::Context;

/// The tag of coastlines.
const TAG: (&str, &str) = ("natural", "coastline");

/// The number of nodes that are looked up at a time.
const AT_ONCE: usize = 1 << 16;

/// The ways of a coast, in file order.
#[derive(Default)]
pub(super) struct CoastWays {
    ways: Vec<CoastWayEntry>,
    nodes: Vec<i64>,
    locations: Vec<Option<Location>>,
}

#[derive(Clone, Copy)]
struct CoastWayEntry {
    id: i64,
    /// The index after the last node of the way in [`CoastWays::nodes`].
    end: usize,
    is_boundary: bool,
}

/// A way of a coast.
#[derive(Clone, Copy)]
pub(super) struct CoastWay<'w> {
    pub id: i64,
    /// Whether the way also has the key `boundary`.
    pub is_boundary: bool,
    pub nodes: &'w [i64],
    locations: &'w [Option<Location>],
}

impl CoastWay<'_> {
    /// Returns the location of a node; `None` if it is not known, or not on the earth.
    pub(super) fn point(&self, index: usize) -> Option<Point> {
        self.locations
            .get(index)
            .copied()
            .flatten()
            .and_then(point_on_earth)
    }

    /// Returns the known locations of the nodes.
    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        (0..self.nodes.len()).filter_map(|node| self.point(node))
    }
}

impl CoastWays {
    pub(super) fn len(&self) -> usize {
        self.ways.len()
    }

    pub(super) fn way(&self, index: usize) -> Option<CoastWay<'_>> {
        let CoastWayEntry {
            id,
            end,
            is_boundary,
        } = *self.ways.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.ways.get(before)?.end,
            None => 0,
        };
        Some(CoastWay {
            id,
            is_boundary,
            nodes: self.nodes.get(start..end)?,
            locations: self.locations.get(start..end)?,
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = CoastWay<'_>> {
        (0..self.len()).filter_map(|index| self.way(index))
    }

    /// Appends the ways of the next block.
    fn append(&mut self, other: Self) {
        let start = self.nodes.len();
        self.ways
            .extend(other.ways.into_iter().map(|way| CoastWayEntry {
                end: way.end + start,
                ..way
            }));
        self.nodes.extend(other.nodes);
        self.locations.extend(other.locations);
    }

    /// Adds the coastlines of a block.
    fn add_block(&mut self, block: &Block<'_>) -> FormatResult<()> {
        let [keys, values] = [TAG.0, TAG.1].map(|text| block.strings.indexes_of(&[text]));
        let is_tag = |key, value| Ok(keys.contains(&key) && values.contains(&value));
        let mut objects = block.walk();
        while let Some(kind) = objects.next()? {
            if kind == ObjectKind::Way && objects.tags()?.any(is_tag)? {
                objects.visit_message(block, &mut |element| self.add_way(&element))?;
            }
        }
        Ok(())
    }

    /// Adds an object, if it is a way.
    fn add_way(&mut self, element: &Element<'_>) -> FormatResult<()> {
        let Element::Way(way) = element else {
            return Ok(());
        };
        element.check_size()?;
        self.nodes.extend(way.refs());
        way.read_locations(&mut self.locations)?;
        self.locations.resize(self.nodes.len(), None);
        self.ways.push(CoastWayEntry {
            id: way.id(),
            end: self.nodes.len(),
            is_boundary: way.tags().any(|(key, _)| key == "boundary"),
        });
        Ok(())
    }

    /// Reads the coastlines of a file. Returns them with a plan of the file. Adds to `problems` the nodes that have the
    /// tag of coastlines, and the coastlines that are also boundaries.
    pub(super) fn read(
        file: &PbfFile,
        ctx: &Context,
        problems: &mut Vec<CoastProblem>,
    ) -> Result<(Self, BlobPlan)> {
        ctx.expect_phases(2);
        let mut coast = Self::default();
        let scan = PlanningScan {
            name: "coastlines",
            file,
            prefilter: &|strings: &StringTable<'_>| {
                BlobDecision::visit_if(has_coastline_tag(strings))
            },
            ctx,
        };
        let plan = scan.run(
            |entry| entry.kinds.contains(ObjectKind::Way),
            |_, block| {
                let mut found = Self::default();
                found.add_block(block)?;
                Ok(found)
            },
            |found| coast.append(found),
        )?;
        plan.check_is_current(file, ctx)?;
        if plan.is_history(file, ctx) {
            let cause = "this is a history file, and a coast is made of one version of each object";
            return Err(not_current_error(file, cause, ctx));
        }
        let ctx = &context_refusing_repeats(file, &plan, ctx)?;
        coast.remove_repeated_ways();
        coast.locate(PlannedFile::new(file, &plan, ctx), problems)?;
        coast.report_boundaries(problems);
        Ok((coast, plan))
    }

    fn report_boundaries(&self, problems: &mut Vec<CoastProblem>) {
        for way in self.iter().filter(|way| way.is_boundary) {
            let place = ProblemPlace::of_line(way.points().collect());
            problems.push(CoastProblem::of_ways(
                CoastProblemKind::Boundary,
                vec![way.id],
                place,
            ));
        }
    }

    /// Keeps only the last of the ways that have the same id. An unsorted file may repeat ids.
    fn remove_repeated_ways(&mut self) {
        let mut ids: Vec<i64> = self.ways.iter().map(|way| way.id).collect();
        let count = ids.len();
        ids = sort_and_dedup(ids);
        if ids.len() == count {
            return;
        }
        let mut last = rustc_hash::FxHashMap::default();
        for (index, way) in self.ways.iter().enumerate() {
            last.insert(way.id, index);
        }
        let mut kept = Self::default();
        for (index, way) in self.iter().enumerate() {
            if last.get(&way.id) == Some(&index) {
                kept.nodes.extend(way.nodes);
                kept.locations.extend(way.locations);
                kept.ways.push(CoastWayEntry {
                    id: way.id,
                    end: kept.nodes.len(),
                    is_boundary: way.is_boundary,
                });
            }
        }
        *self = kept;
    }

    /// Looks up the locations of the nodes. If the header declares that ways store locations, looks up only the nodes
    /// without a stored location.
    fn locate(&mut self, source: PlannedFile<'_>, problems: &mut Vec<CoastProblem>) -> Result<()> {
        let takes_stored = source.file.header.has(feature::LOCATIONS);
        let pairs = self.nodes.iter().zip(&self.locations);
        let wanted = pairs.filter(|(_, stored)| !takes_stored || stored.is_none());
        let wanted = sort_and_dedup(wanted.map(|(node, _)| *node).collect());
        if wanted.is_empty() {
            return Ok(());
        }
        let found = CoastNodes::read(source, wanted)?;
        let mut locations = Vec::new();
        let stored = self.locations.chunks_mut(AT_ONCE);
        for (nodes, stored) in self.nodes.chunks(AT_ONCE).zip(stored) {
            locations.clear();
            found.store.get_all(nodes, &mut locations);
            for (stored, found) in stored.iter_mut().zip(&locations) {
                *stored = location_of_reference(*found, *stored);
            }
        }
        for (node, location) in found.tagged {
            problems.push(CoastProblem {
                kind: CoastProblemKind::TaggedNode,
                ways: Vec::new(),
                node: Some(node),
                place: location
                    .and_then(point_on_earth)
                    .map_or(ProblemPlace::Unknown, ProblemPlace::Point),
            });
        }
        Ok(())
    }
}

/// Whether a string table has the key and the value of the tag of coastlines.
fn has_coastline_tag(strings: &StringTable<'_>) -> bool {
    strings.indexes_of(&[TAG.0]).len() + strings.indexes_of(&[TAG.1]).len() > 1
}

/// Locations of nodes.
pub(super) struct CoastNodes {
    pub store: LocationStore,
    /// The nodes with the tag of coastlines.
    tagged: Vec<(i64, Option<Location>)>,
}

impl CoastNodes {
    /// Reads the locations of the nodes in `wanted`, which are in ascending order.
    pub(super) fn read(source: PlannedFile<'_>, wanted: Vec<i64>) -> Result<Self> {
        let mut ids = IdSet::default();
        ids.add(&wanted.as_slice().into());
        drop(wanted);
        let is_met = |kind, first, last| kind == ObjectKind::Node && ids.may_meet(first, last);
        let search = IdSearch::new(source.file, is_met, source.ctx)?;
        let mut found = Self {
            store: LocationStore::of_ids(ids.clone(), source.ctx.jobs),
            tagged: Vec::new(),
        };
        let preparation = found.store.preparation();
        source.scan("nodes of coastlines").with_strings().run(
            |entry| search.may_have_wanted(entry),
            |_, block| {
                let mut nodes = NodeBatch::default();
                block.for_each_selected_location(
                    |block_ids, selected| ids.append_present(block_ids, selected),
                    |id, location| nodes.push(id, location),
                )?;
                preparation.prepare(&mut nodes);
                Ok((nodes, tagged_nodes(block, &ids)?))
            },
            |(nodes, tagged)| {
                found.store.add(&nodes);
                found.tagged.extend(tagged);
            },
        )?;
        found.tagged.sort_unstable_by_key(|(id, _)| *id);
        found.tagged.dedup_by_key(|(id, _)| *id);
        Ok(found)
    }
}

/// Returns the nodes of a block that have the tag of coastlines and an id in `ids`, each with its location.
fn tagged_nodes(block: &Block<'_>, ids: &IdSet) -> FormatResult<Vec<(i64, Option<Location>)>> {
    let mut tagged = Vec::new();
    if has_coastline_tag(&block.strings) {
        block.try_for_each(|element| {
            if let Element::Node(node) = element
                && ids.contains(node.id())
                && node.tags().any(|tag| tag == TAG)
            {
                tagged.push((node.id(), node.location()));
            }
            Ok::<_, FormatError>(())
        })?;
    }
    Ok(tagged)
}
