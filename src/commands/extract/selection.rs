//! Which objects of a file each of many regions keeps.

use super::strategy::{RelationTypes, Strategy};
use crate::Context;
use crate::commands::held::Held;
use crate::commands::keep::{Class, Fates, Marks};
use crate::commands::scan::Scan;
use crate::error::Result;
use crate::index::{EMPTY_SET, IdMap, IdSet, SetAlgebra, SetNumber, SetTable};
use crate::osm::ObjectKind;
use crate::pbf::splice::EditScript;
use crate::pbf::{BlobEntry, BlobFlags, FormatError, ObjectView, ParsedBlock, feature};
use crate::read::{BlobPlan, PbfFile};
use crate::region::AreaIndex;
use rustc_hash::FxHashMap;

/// Objects with the sets of regions that keep them.
type Found = Vec<(i64, SetNumber)>;

/// For each object the set of regions that keep it.
pub(super) struct Selection<'a> {
    areas: &'a AreaIndex,
    sets: SetTable,
    /// Whether no object comes twice.
    each_once: bool,
    /// Blobs with nodes that regions reach into by their boxes, by where they are in the file; for each, the
    /// regions that hold all of the box, unless others hold a part of it.
    near: FxHashMap<u64, Option<Vec<u32>>>,
    /// Whether blobs that lie within a region by their box can be told to hold nothing else.
    trusts_boxes: bool,
    /// Nodes in the regions, and in the end all that are kept.
    nodes: IdMap,
    /// Nodes for the sake of ways and relations.
    more_nodes: IdMap,
    /// Ways with a node in a region, and in the end all that are kept.
    ways: IdMap,
    /// Ways for the sake of relations.
    more_ways: IdMap,
    relations: IdMap,
    /// Those among them without a member that is kept, but for another relation.
    parents: IdSet,
    /// What is kept of blobs, as far as there was room for it.
    held: Held,
}

/// A file on its way through the phases.
struct Source<'a> {
    file: &'a PbfFile,
    plan: &'a mut BlobPlan,
    ctx: &'a Context,
}

impl Source<'_> {
    fn scan(&mut self, name: &'static str) -> Scan<'_> {
        Scan::bare(name, self.file, self.plan, self.ctx)
    }
}

impl<'a> Selection<'a> {
    /// Finds out in one pass over nodes, ways, relations, and over a few ways again. `None` where that takes
    /// more memory than `is_exceeded` allows.
    pub(super) fn find(
        areas: &'a AreaIndex,
        strategy: &Strategy,
        file: &PbfFile,
        plan: &mut BlobPlan,
        held: u64,
        mut is_exceeded: impl FnMut(&Self) -> Result<bool>,
        ctx: &Context,
    ) -> Result<Option<Self>> {
        let each_once = plan.has_each_object_once();
        let mut selection = Self {
            areas,
            sets: SetTable::default(),
            each_once,
            near: FxHashMap::default(),
            // Deleted nodes are nowhere. Where their number is not known the header tells of them.
            trusts_boxes: !file.header.has(feature::HISTORY),
            nodes: IdMap::default(),
            more_nodes: IdMap::default(),
            ways: IdMap::default(),
            more_ways: IdMap::default(),
            relations: IdMap::default(),
            parents: IdSet::default(),
            // Of an object that comes again every version is kept, also where another one was found.
            held: Held::new(if each_once { held } else { 0 }),
        };
        let mut source = Source { file, plan, ctx };
        selection.find_nodes(!strategy.completes_ways(), &mut source)?;
        if is_exceeded(&selection)? {
            return Ok(None);
        }
        if selection.nodes.is_empty() {
            return Ok(Some(selection));
        }
        selection.find_ways(strategy.completes_ways(), &mut source)?;
        if is_exceeded(&selection)? {
            return Ok(None);
        }
        if strategy.keeps_relations() {
            selection.find_relations(strategy, &mut source)?;
        }
        if strategy.completes_ways() {
            selection.complete_ways(each_once, &mut source)?;
        }
        selection.let_go();
        selection.join();
        Ok(Some(selection))
    }

    /// Lets go of blobs of which more is kept than was known when they were held.
    fn let_go(&mut self) {
        let (more_ways, parents) = (&self.more_ways, &self.parents);
        let is_complete = |entry: &BlobEntry| match entry.kinds.single() {
            Some(ObjectKind::Node) => true,
            Some(ObjectKind::Way) => !more_ways.may_meet(entry.min_id, entry.max_id),
            Some(ObjectKind::Relation) => !parents.may_meet(entry.min_id, entry.max_id),
            None => false,
        };
        self.held.retain(is_complete);
    }

    /// Joins what came along to what was found, so that what keeps an object is one lookup.
    fn join(&mut self) {
        let mut algebra = SetAlgebra::new(&self.sets);
        let (nodes, ways) = (&mut self.nodes, &mut self.ways);
        let more = |id, set| add(nodes, id, set, &mut algebra);
        self.more_nodes.for_each(more);
        let more = |id, set| add(ways, id, set, &mut algebra);
        self.more_ways.for_each(more);
        self.more_ways = IdMap::default();
    }

    /// The memory that the ids take.
    pub(super) fn bytes(&self) -> u64 {
        let nodes = [&self.nodes, &self.more_nodes];
        let others = [&self.ways, &self.more_ways, &self.relations];
        nodes.into_iter().chain(others).map(IdMap::bytes).sum()
    }

    /// Finds the nodes in the regions. Unless others join them, they are held.
    fn find_nodes(&mut self, hold: bool, source: &mut Source<'_>) -> Result<()> {
        let mut nodes = IdMap::default();
        let mut algebra = SetAlgebra::new(&self.sets);
        let has_nodes = |entry: &BlobEntry| entry.kinds.contains(ObjectKind::Node);
        let is_read = |entry: &BlobEntry| {
            has_nodes(entry) && (entry.bbox.is_empty() || self.areas.meets(&entry.bbox))
        };
        source
            .plan
            .resolve_shared(source.file, source.ctx, is_read)?;
        for entry in source.plan.entries.iter().filter(|entry| has_nodes(entry)) {
            let cover = self.areas.cover(&entry.bbox);
            let around = cover.touched.is_empty().then_some(cover.inside);
            if around.as_ref().is_none_or(|around| !around.is_empty()) {
                self.near.insert(entry.offset, around);
            }
        }
        source.scan("find nodes").run(
            |entry| {
                let may_be_near = entry.bbox.is_empty() || self.near.contains_key(&entry.offset);
                has_nodes(entry) && may_be_near
            },
            |entry, block| self.nodes_in_regions(hold, entry, block),
            |found| add_all(&mut nodes, &found, &mut algebra),
        )?;
        self.nodes = nodes;
        Ok(())
    }

    /// The regions that hold all nodes of a blob, by its index; `None` where there may be others that hold
    /// some.
    fn regions_around(&self, entry: &BlobEntry) -> Option<&[u32]> {
        let has_box = entry.kinds.single() == Some(ObjectKind::Node) && !entry.bbox.is_empty();
        let may_be_nowhere = match entry.flags.has(BlobFlags::SCANNED) {
            true => entry.flags.has(BlobFlags::DELETED),
            false => !self.trusts_boxes,
        };
        if !has_box || may_be_nowhere {
            return None;
        }
        match self.near.get(&entry.offset) {
            None => Some(&[]),
            Some(around) => around.as_deref(),
        }
    }

    fn nodes_in_regions(
        &self,
        hold: bool,
        entry: &BlobEntry,
        block: &ParsedBlock<'_>,
    ) -> Result<Found, FormatError> {
        let mut found = Vec::new();
        if let Some(around) = self.regions_around(entry) {
            let set = self.sets.of(around.iter().copied());
            block.for_each_id(|_, id| found.push((id, set)))?;
            return Ok(found);
        }
        let mut located = Located::new(self.areas, &self.sets);
        let mut places = Vec::new();
        let mut place = 0u32;
        block.for_each_location(|id, location| {
            if let Some((lat_e7, lon_e7)) = location {
                let set = located.regions_at(lat_e7, lon_e7);
                if set != EMPTY_SET {
                    found.push((id, set));
                    places.push(place);
                }
            }
            place += 1;
        })?;
        if hold {
            self.held
                .add(entry, block, found.len(), || keep_places(&places, place))?;
        }
        Ok(found)
    }

    fn find_ways(&mut self, with_nodes: bool, source: &mut Source<'_>) -> Result<()> {
        let (mut ways, mut more_nodes) = (IdMap::default(), IdMap::default());
        let mut algebra = SetAlgebra::new(&self.sets);
        source.scan("find ways").run(
            |entry| entry.kinds.contains(ObjectKind::Way),
            |entry, block| self.ways_with_nodes(entry, block, with_nodes),
            |(found, nodes)| {
                add_all(&mut ways, &found, &mut algebra);
                add_all(&mut more_nodes, &nodes, &mut algebra);
            },
        )?;
        (self.ways, self.more_nodes) = (ways, more_nodes);
        Ok(())
    }

    /// The ways that have a node in a region, and their nodes outside of it.
    fn ways_with_nodes(
        &self,
        entry: &BlobEntry,
        block: &ParsedBlock<'_>,
        with_nodes: bool,
    ) -> Result<(Found, Found), FormatError> {
        let mut algebra = SetAlgebra::new(&self.sets);
        let (mut refs, mut ways) = (Vec::new(), Vec::new());
        block.collect_refs(&mut refs, &mut ways)?;
        // The nodes of a way mostly come one behind the other.
        let mut nodes = self.nodes.walk();
        let sets: Vec<SetNumber> = refs.iter().map(|id| nodes.get(*id)).collect();
        let (mut found, mut nodes, mut start) = (Vec::new(), Vec::new(), 0);
        let mut places = Vec::new();
        let count = ways.len() as u32;
        for (place, (way, end)) in (0..).zip(ways) {
            let range = start..end;
            start = end;
            let of_nodes = sets.get(range.clone()).unwrap_or_default();
            let union = of_nodes
                .iter()
                .fold(EMPTY_SET, |all, set| algebra.union(all, *set));
            if union == EMPTY_SET {
                continue;
            }
            found.push((way, union));
            places.push(place);
            if with_nodes {
                let refs = refs.get(range).unwrap_or_default();
                for (id, set) in refs.iter().zip(of_nodes) {
                    let missing = algebra.difference(union, *set);
                    if missing != EMPTY_SET {
                        nodes.push((*id, missing));
                    }
                }
            }
        }
        self.held
            .add(entry, block, found.len(), || keep_places(&places, count))?;
        Ok((found, joined(nodes, &mut algebra)))
    }

    fn find_relations(&mut self, strategy: &Strategy, source: &mut Source<'_>) -> Result<()> {
        let mut relations = IdMap::default();
        let mut algebra = SetAlgebra::new(&self.sets);
        let (mut direct, mut parents) = (Vec::new(), FxHashMap::<i64, Vec<i64>>::default());
        let (mut more_ways, mut more_nodes) = (Vec::new(), Vec::new());
        let mut scan = source.scan("find relations");
        if matches!(strategy, Strategy::Smart { .. }) {
            scan = scan.with_strings();
        }
        scan.run(
            |entry| entry.kinds.contains(ObjectKind::Relation),
            |entry, block| self.relations_with_members(entry, block, strategy),
            |found: FoundRelations| {
                add_all(&mut relations, &found.direct, &mut algebra);
                direct.extend(found.direct);
                for (parent, child) in found.nested {
                    parents.entry(child).or_default().push(parent);
                }
                more_ways.extend(found.ways);
                more_nodes.extend(found.nodes);
            },
        )?;
        let mut further = IdSet::default();
        // Upwards, as far as it goes: sets only grow, so that cycles come to an end.
        while let Some((child, _)) = direct.pop() {
            let set = relations.get(child);
            for &parent in parents.get(&child).into_iter().flatten() {
                let before = relations.get(parent);
                let after = algebra.union(before, set);
                if after != before {
                    if before == EMPTY_SET {
                        further.insert(parent);
                    }
                    relations.add(parent, after, |_, after| after);
                    direct.push((parent, after));
                }
            }
        }
        (self.relations, self.parents) = (relations, further);
        for (id, set) in more_nodes {
            let missing = algebra.difference(set, self.nodes.get(id));
            add(&mut self.more_nodes, id, missing, &mut algebra);
        }
        for (id, set) in more_ways {
            let missing = algebra.difference(set, self.ways.get(id));
            add(&mut self.more_ways, id, missing, &mut algebra);
        }
        Ok(())
    }

    fn relations_with_members(
        &self,
        entry: &BlobEntry,
        block: &ParsedBlock<'_>,
        strategy: &Strategy,
    ) -> Result<FoundRelations, FormatError> {
        let mut found = FoundRelations::default();
        let mut algebra = SetAlgebra::new(&self.sets);
        let types = Types::new(strategy, block);
        let (mut places, mut place) = (Vec::new(), 0u32);
        block.for_each_object(|object| {
            place += 1;
            if object.kind != ObjectKind::Relation {
                return Ok(());
            }
            let (id, mut direct, mut members) = (object.id()?, EMPTY_SET, 0u64);
            object.any_member(|kind, member| {
                members += 1;
                match kind {
                    ObjectKind::Relation if *strategy != Strategy::Simple => {
                        found.nested.push((id, member));
                    }
                    _ => direct = algebra.union(direct, self.set_of_member(kind, member)),
                }
                false
            })?;
            if direct == EMPTY_SET {
                return Ok(());
            }
            found.direct.push((id, direct));
            places.push(place - 1);
            let completed = match strategy {
                Strategy::Smart { least_percent, .. } => match types.has(&object)? {
                    true => direct,
                    false => self.mostly_kept(&object, direct, members, *least_percent)?,
                },
                Strategy::Simple | Strategy::CompleteWays { .. } => EMPTY_SET,
            };
            if completed != EMPTY_SET {
                object.any_member(|kind, member| {
                    match kind {
                        ObjectKind::Node => found.nodes.push((member, completed)),
                        ObjectKind::Way => found.ways.push((member, completed)),
                        ObjectKind::Relation => {}
                    }
                    false
                })?;
            }
            Ok(())
        })?;
        self.held
            .add(entry, block, places.len(), || keep_places(&places, place))?;
        Ok(found)
    }

    fn set_of_member(&self, kind: ObjectKind, id: i64) -> SetNumber {
        match kind {
            ObjectKind::Node => self.nodes.get(id),
            ObjectKind::Way => self.ways.get(id),
            ObjectKind::Relation => EMPTY_SET,
        }
    }

    /// Of the regions that keep a relation those in which enough of its members are kept.
    fn mostly_kept(
        &self,
        relation: &ObjectView<'_>,
        direct: SetNumber,
        members: u64,
        least_percent: Option<u32>,
    ) -> Result<SetNumber, FormatError> {
        let Some(least_percent) = least_percent else {
            return Ok(EMPTY_SET);
        };
        let mut counts: FxHashMap<SetNumber, u64> = FxHashMap::default();
        relation.any_member(|kind, id| {
            *counts.entry(self.set_of_member(kind, id)).or_default() += 1;
            false
        })?;
        let kept_in = |region: u32| {
            let counts = counts.iter();
            let holding = counts.filter(|(set, _)| self.sets.contains(**set, region));
            holding.map(|(_, count)| count).sum::<u64>()
        };
        let is_enough = |region: &u32| kept_in(*region) * 100 >= members * u64::from(least_percent);
        Ok(self
            .sets
            .of(self.sets.members(direct).into_iter().filter(is_enough)))
    }

    /// Looks at ways again: at those that came along for the sake of a relation, and, where a way comes in
    /// several versions, at all that are kept, since every version is.
    fn complete_ways(&mut self, each_once: bool, source: &mut Source<'_>) -> Result<()> {
        if self.more_ways.is_empty() && each_once {
            return Ok(());
        }
        let meets = |ways: &IdMap, entry: &BlobEntry| match entry.kinds.single() {
            Some(_) => ways.may_meet(entry.min_id, entry.max_id),
            None => !ways.is_empty(),
        };
        let set_of_way = |algebra: &mut SetAlgebra<'_>, id: i64| {
            let again = if each_once {
                EMPTY_SET
            } else {
                self.ways.get(id)
            };
            algebra.union(self.more_ways.get(id), again)
        };
        let mut more_nodes = std::mem::take(&mut self.more_nodes);
        let mut algebra = SetAlgebra::new(&self.sets);
        source.scan("complete ways").run(
            |entry| {
                entry.kinds.contains(ObjectKind::Way)
                    && (meets(&self.more_ways, entry) || (!each_once && meets(&self.ways, entry)))
            },
            |_, block| {
                let mut algebra = SetAlgebra::new(&self.sets);
                let (mut refs, mut ways) = (Vec::new(), Vec::new());
                let is_met = |id: i64| {
                    self.more_ways.get(id) != EMPTY_SET
                        || (!each_once && self.ways.get(id) != EMPTY_SET)
                };
                block.collect_refs_of(is_met, &mut refs, &mut ways)?;
                let (mut nodes, mut start) = (Vec::new(), 0);
                for (way, end) in ways {
                    let set = set_of_way(&mut algebra, way);
                    for id in refs.get(start..end).unwrap_or_default() {
                        let missing = algebra.difference(set, self.nodes.get(*id));
                        if missing != EMPTY_SET {
                            nodes.push((*id, missing));
                        }
                    }
                    start = end;
                }
                Ok(joined(nodes, &mut algebra))
            },
            |found| add_all(&mut more_nodes, &found, &mut algebra),
        )?;
        self.more_nodes = more_nodes;
        Ok(())
    }

    /// What becomes of a blob in each region.
    pub(super) fn fates(&self, entry: &BlobEntry) -> Fates {
        let meets = |map: &IdMap| match entry.kinds.single() {
            Some(_) => map.may_meet(entry.min_id, entry.max_id),
            None => !map.is_empty(),
        };
        let has = |kind| entry.kinds.contains(kind);
        let more_nodes = has(ObjectKind::Node) && meets(&self.more_nodes);
        if let Some(around) = self.regions_around(entry) {
            return Fates {
                copies: around.to_vec(),
                look: more_nodes,
            };
        }
        let nodes = has(ObjectKind::Node) && meets(&self.nodes);
        let ways = has(ObjectKind::Way) && meets(&self.ways);
        let relations = has(ObjectKind::Relation) && meets(&self.relations);
        Fates {
            copies: Vec::new(),
            look: nodes || ways || relations,
        }
    }

    /// Marks the objects of a block for the regions that keep them.
    pub(super) fn mark(
        &self,
        block: &ParsedBlock<'_>,
        marks: &mut Marks,
    ) -> Result<(), FormatError> {
        let mut classes = Vec::<(SetNumber, Class)>::new();
        let mut last = None;
        let (mut nodes, mut ways) = (self.nodes.walk(), self.ways.walk());
        block.for_each_id(|kind, id| {
            let set = match kind {
                ObjectKind::Node => nodes.get(id),
                ObjectKind::Way => ways.get(id),
                ObjectKind::Relation => self.relations.get(id),
            };
            let class = match last {
                Some((last, class)) if last == set => class,
                _ => match classes.iter().find(|(known, _)| *known == set) {
                    Some((_, class)) => *class,
                    None => {
                        let class = marks.add_class(self.sets.members(set));
                        classes.push((set, class));
                        class
                    }
                },
            };
            last = Some((set, class));
            marks.push_class(class);
        })
    }

    /// How many objects each of so many regions keeps, where no object comes twice.
    pub(super) fn kept(&self, regions: usize) -> Option<Vec<u64>> {
        if !self.each_once {
            return None;
        }
        let mut kept = vec![0; regions];
        for map in [&self.nodes, &self.ways, &self.relations] {
            for (set, count) in map.counts() {
                for region in self.sets.members(set) {
                    if let Some(kept) = kept.get_mut(region as usize) {
                        *kept += count;
                    }
                }
            }
        }
        Some(kept)
    }

    /// What is kept of some blobs.
    pub(super) const fn held(&self) -> &Held {
        &self.held
    }
}

/// What was found in a block of relations.
#[derive(Default)]
struct FoundRelations {
    /// Relations with a member that is kept.
    direct: Found,
    /// Relations and those among their members.
    nested: Vec<(i64, i64)>,
    /// Ways and nodes of relations that are completed.
    ways: Found,
    nodes: Found,
}

/// Relations that are completed by what they are, in one block.
struct Types<'b> {
    types: Option<&'b RelationTypes>,
    block: &'b ParsedBlock<'b>,
}

impl<'b> Types<'b> {
    fn new(strategy: &'b Strategy, block: &'b ParsedBlock<'b>) -> Self {
        let types = match strategy {
            Strategy::Smart { types, .. } => Some(types),
            Strategy::Simple | Strategy::CompleteWays { .. } => None,
        };
        Self { types, block }
    }

    fn has(&self, relation: &ObjectView<'_>) -> Result<bool, FormatError> {
        let wanted = match self.types {
            None => return Ok(false),
            Some(RelationTypes::Any) => return Ok(true),
            Some(RelationTypes::Of(wanted)) => wanted,
        };
        let text = |index| self.block.strings.get(index).unwrap_or_default();
        relation.any_tag(|key, value| {
            text(key) == "type" && wanted.iter().any(|wanted| wanted == text(value))
        })
    }
}

/// Finds the regions at places, one near the other.
struct Located<'s> {
    sets: &'s SetTable,
    areas: &'s AreaIndex,
    locator: crate::region::Locator<'s>,
    partial: Vec<u32>,
    /// What was found last: the set of the place's surroundings, the regions that reach into these, and the
    /// set of all.
    last: (u32, Vec<u32>, SetNumber),
}

impl<'s> Located<'s> {
    fn new(areas: &'s AreaIndex, sets: &'s SetTable) -> Self {
        Self {
            sets,
            areas,
            locator: areas.locator(),
            partial: Vec::new(),
            last: (0, Vec::new(), EMPTY_SET),
        }
    }

    #[inline]
    fn regions_at(&mut self, lat_e7: i32, lon_e7: i32) -> SetNumber {
        if self.locator.stays_at(lat_e7, lon_e7) {
            return self.last.2;
        }
        let around = self.locator.at(lat_e7, lon_e7, &mut self.partial);
        // To compare nothing with nothing by way of memcmp takes longer than all else here.
        let both_empty = self.partial.is_empty() && self.last.1.is_empty();
        if around != self.last.0 || !(both_empty || self.partial == self.last.1) {
            let whole = self.areas.sets().get(around as usize);
            let regions = whole.into_iter().flatten().chain(&self.partial);
            self.last.2 = self.sets.of(regions.copied());
            self.last.0 = around;
            self.last.1.clone_from(&self.partial);
        }
        self.last.2
    }
}

/// Counts, of the blobs at some offsets, the nodes in each region.
pub(super) fn count_nodes(
    areas: &AreaIndex,
    offsets: &[u64],
    file: &PbfFile,
    plan: &mut BlobPlan,
    ctx: &Context,
    mut take: impl FnMut(u32, u64),
) -> Result<()> {
    let sets = SetTable::default();
    Scan::bare("estimate", file, plan, ctx).run(
        |entry| offsets.binary_search(&entry.offset).is_ok(),
        |_, block| {
            let mut located = Located::new(areas, &sets);
            let mut counts: FxHashMap<SetNumber, u64> = FxHashMap::default();
            block.for_each_location(|_, location| {
                if let Some((lat_e7, lon_e7)) = location {
                    *counts
                        .entry(located.regions_at(lat_e7, lon_e7))
                        .or_default() += 1;
                }
            })?;
            Ok(counts)
        },
        |counts| {
            for (set, count) in counts {
                let regions = sets.members(set).into_iter();
                regions.for_each(|region| take(region, count));
            }
        },
    )
}

/// Keeps the objects at some places of a block, ascending.
fn keep_places(places: &[u32], count: u32) -> EditScript {
    let (mut script, mut places) = (EditScript::default(), places.iter().peekable());
    for place in 0..count {
        match places.next_if_eq(&&place) {
            Some(_) => script.keep(),
            None => script.remove(),
        }
    }
    script
}

fn add(map: &mut IdMap, id: i64, set: SetNumber, algebra: &mut SetAlgebra<'_>) {
    if set != EMPTY_SET {
        map.add(id, set, |one, two| algebra.union(one, two));
    }
}

fn add_all(map: &mut IdMap, found: &[(i64, SetNumber)], algebra: &mut SetAlgebra<'_>) {
    for (id, set) in found {
        add(map, *id, *set, algebra);
    }
}

/// Each id once, ascending, with all its regions.
fn joined(mut found: Found, algebra: &mut SetAlgebra<'_>) -> Found {
    found.sort_unstable();
    found.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = algebra.union(kept.1, next.1);
        }
        same
    });
    found
}
