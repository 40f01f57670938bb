//! The largest objects of a file.

use crate::engine::distinct_list::DistinctList;
use crate::engine::geometry_pass::is_area;
use crate::error::{FormatError, FormatResult, Result};
use crate::file::{BlobDecoder, PlannedFile};
use crate::index::{IdSet, RankSet};
use crate::osm::{ObjectKind, id_from_rank, id_rank};
use crate::pbf::{BlobEntry, Block, Element, Relation};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The largest objects of a file, in four lists. The largest object comes first. Objects of the same size are in
/// canonical order. An object of a history file counts once, with its largest version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct LargestObjects {
    /// The relations with the most members.
    pub relations: Vec<LargeObject>,
    /// The ways with the most nodes.
    pub ways: Vec<LargeObject>,
    /// The objects with the most tags.
    pub tag_sets: Vec<LargeObject>,
    /// The multipolygons and boundaries with the most nodes in their member ways. A way that an area lists several
    /// times counts once. A way that is not in the file does not count.
    pub areas: Vec<LargeObject>,
}

/// A large object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LargeObject {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The id of the object.
    pub id: i64,
    /// The number of its members, nodes or tags.
    pub count: u64,
}

/// Finds the largest objects of a file. Each list gets at most `most` objects.
pub(super) fn find(source: PlannedFile<'_>, most: usize) -> Result<LargestObjects> {
    source.ctx.expect_phases(3);
    let has_relations = |entry: &BlobEntry| entry.kinds.contains(ObjectKind::Relation);
    let scan = |name| source.scan(name).with_strings();
    let mut wanted = IdSet::default();
    scan("members").run(
        has_relations,
        |_, block| {
            let mut ways = DistinctList::default();
            for_each_area(block, |relation| add_member_ways(relation, &mut ways))?;
            Ok(ways.finish())
        },
        |ways| wanted.extend(ways),
    )?;
    let wanted = RankSet::from(wanted);
    let mut nodes_of_ways = vec![0_u32; wanted.len() as usize];
    let mut all = Tops::new(most);
    scan("look at objects").run(
        |_| true,
        |_, block| BlockTops::of(block, &wanted, most),
        |found: BlockTops| {
            all.merge(found.tops);
            for (rank, nodes) in found.nodes_of_ways {
                let known = &mut nodes_of_ways[rank as usize];
                *known = nodes.max(*known);
            }
        },
    )?;
    let mut areas = TopList::new(most);
    scan("areas").run(
        has_relations,
        |_, block| {
            let mut top = TopList::new(most);
            for_each_area(block, |relation| {
                let ways = distinct_ways(relation).into_iter();
                let ranks = ways.filter_map(|way| wanted.rank(way));
                let nodes = ranks.map(|rank| u64::from(nodes_of_ways[rank as usize]));
                top.add(ObjectKind::Relation, relation.id(), nodes.sum());
            })?;
            Ok(top)
        },
        |top| areas.merge(top),
    )?;
    Ok(LargestObjects {
        relations: all.relations.finish(),
        ways: all.ways.finish(),
        tag_sets: all.tag_sets.finish(),
        areas: areas.finish(),
    })
}

/// Calls `visit` with each multipolygon and boundary of a block.
fn for_each_area(block: &Block<'_>, mut visit: impl FnMut(&Relation<'_>)) -> FormatResult<()> {
    block.try_for_each(|element| {
        if let Element::Relation(relation) = element
            && is_area(relation.tags())
        {
            visit(&relation);
        }
        Ok::<(), FormatError>(())
    })
}

/// Adds the ids of the member ways of a relation to a list.
fn add_member_ways(relation: &Relation<'_>, list: &mut DistinctList<i64>) {
    let members = relation.members();
    let ways = members.filter(|member| member.kind == ObjectKind::Way);
    list.extend(ways.map(|member| member.id));
}

/// Returns the ids of the distinct member ways of a relation.
fn distinct_ways(relation: &Relation<'_>) -> Vec<i64> {
    let mut list = DistinctList::default();
    add_member_ways(relation, &mut list);
    let mut ways = list.finish();
    ways.sort_unstable();
    ways.dedup();
    ways
}

/// Returns the id of the first object of a kind that has `most` references; `None` if `most` is 0 or no object has that
/// many. Decodes only blobs that may contain such an object according to their entries, and stops once it is found.
pub(super) fn first_id_with_references(
    source: PlannedFile<'_>,
    (kind, most): (ObjectKind, u64),
) -> Result<Option<i64>> {
    let may_have = |entry: &&BlobEntry| {
        let known = entry.statistics.as_ref();
        let most_here = known.map(|known| u64::from(known.most_references));
        entry.kinds.contains(kind) && most_here.is_none_or(|most_here| most_here == most)
    };
    if most == 0 {
        return Ok(None);
    }
    let mut reader = BlobDecoder::new(&source.file.input, source.ctx);
    for entry in source.plan.entries.iter().filter(may_have) {
        let found = reader.decode(entry, |payload| {
            let mut found = None;
            Block::parse(payload)?.try_for_each(|element| {
                if found.is_none() && element.kind() == kind && reference_count(&element) == most {
                    found = Some(element.id());
                }
                Ok::<(), FormatError>(())
            })?;
            Ok(found)
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the number of nodes of a way, or of members of a relation.
fn reference_count(element: &Element<'_>) -> u64 {
    match element {
        Element::Node(_) => 0,
        Element::Way(way) => way.ref_count() as u64,
        Element::Relation(relation) => relation.members().count() as u64,
    }
}

/// The largest objects of a block.
struct BlockTops {
    tops: Tops,
    /// The ranks of the ways that are members of areas, each with the number of nodes of the way.
    nodes_of_ways: Vec<(u64, u32)>,
}

impl BlockTops {
    fn of(block: &Block<'_>, wanted: &RankSet, most: usize) -> FormatResult<Self> {
        let (mut tops, mut nodes_of_ways) = (Tops::new(most), Vec::new());
        block.try_for_each(|element| {
            let (kind, id, count) = (element.kind(), element.id(), reference_count(&element));
            match kind {
                ObjectKind::Node => {}
                ObjectKind::Way => {
                    tops.ways.add(kind, id, count);
                    let nodes = u32::try_from(count).unwrap_or(u32::MAX);
                    nodes_of_ways.extend(wanted.rank(id).map(|rank| (rank, nodes)));
                }
                ObjectKind::Relation => tops.relations.add(kind, id, count),
            }
            tops.tag_sets.add(kind, id, element.tags().count() as u64);
            Ok::<(), FormatError>(())
        })?;
        Ok(Self {
            tops,
            nodes_of_ways,
        })
    }
}

/// The lists of the largest objects that are found in one pass over all objects.
struct Tops {
    relations: TopList,
    ways: TopList,
    tag_sets: TopList,
}

impl Tops {
    fn new(most: usize) -> Self {
        Self {
            relations: TopList::new(most),
            ways: TopList::new(most),
            tag_sets: TopList::new(most),
        }
    }

    fn merge(&mut self, more: Self) {
        self.relations.merge(more.relations);
        self.ways.merge(more.ways);
        self.tag_sets.merge(more.tag_sets);
    }
}

/// The largest of the objects that were added.
struct TopList {
    /// The maximum number of objects.
    most: usize,
    /// The size, the kind and the rank of the id of each object, the largest object first.
    by_size: BTreeSet<(Reverse<u64>, ObjectKind, u64)>,
    /// The sizes of the same objects.
    sizes: FxHashMap<(ObjectKind, u64), u64>,
}

impl TopList {
    fn new(most: usize) -> Self {
        Self {
            most,
            by_size: BTreeSet::new(),
            sizes: FxHashMap::default(),
        }
    }

    /// Adds an object, unless its size is 0. An object that is added again counts with its larger size.
    fn add(&mut self, kind: ObjectKind, id: i64, size: u64) {
        let rank = id_rank(id);
        let new = (Reverse(size), kind, rank);
        let is_full = self.by_size.len() >= self.most;
        if size == 0 || is_full && self.by_size.last().is_none_or(|last| *last < new) {
            return;
        }
        if let Some(known) = self.sizes.get(&(kind, rank)) {
            if *known >= size {
                return;
            }
            self.by_size.remove(&(Reverse(*known), kind, rank));
        }
        self.by_size.insert(new);
        self.sizes.insert((kind, rank), size);
        if self.by_size.len() > self.most
            && let Some((_, kind, rank)) = self.by_size.pop_last()
        {
            self.sizes.remove(&(kind, rank));
        }
    }

    fn merge(&mut self, more: Self) {
        for (Reverse(size), kind, rank) in more.by_size {
            self.add(kind, id_from_rank(rank), size);
        }
    }

    /// Returns the objects, the largest first.
    fn finish(self) -> Vec<LargeObject> {
        let objects = self.by_size.into_iter();
        let objects = objects.map(|(Reverse(count), kind, rank)| LargeObject {
            kind,
            id: id_from_rank(rank),
            count,
        });
        objects.collect()
    }
}
