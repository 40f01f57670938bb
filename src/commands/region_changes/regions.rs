//! The regions, sets of regions, and the rules of the regions' strategies.

use crate::commands::extract::{CompletedTypes, RegionLookup, Strategy, area_index_of};
use crate::error::FormatError;
use crate::geometry::{Antimeridian, AreaIndex, Shape};
use crate::index::{EMPTY_SET, IdMap, SetAlgebra, SetNumber, SetTable};
use crate::osm::Location;
use crate::pbf::{Block, BlockWalk};

/// The regions whose extracts are updated. A set of regions consists of their indices.
pub(super) struct Regions<'r> {
    areas: AreaIndex,
    pub sets: SetTable,
    /// The distinct smart strategies, each with its regions.
    smart: Vec<(&'r Strategy, SetNumber)>,
    /// The regions that keep all nodes of their ways.
    pub completing: SetNumber,
    /// The regions that keep relations.
    pub with_relations: SetNumber,
    /// The regions that keep the parents of relations.
    pub with_parents: SetNumber,
    /// The regions that complete relations.
    pub completing_relations: SetNumber,
}

/// The maximum number of distinct smart strategies: the number of bits of a field of [`CompletionRules`].
pub(super) const MAX_STRATEGIES: usize = 64;

/// The smart strategies that complete a relation, as bits, in the order of [`Regions::smart`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CompletionRules {
    /// The strategies that list the type of the relation, and complete it in each region with a node or a way of the
    /// relation.
    of_type: u64,
    /// The strategies that do not list the type of the relation, and complete it only in regions with enough of its
    /// members.
    in_part: u64,
}

impl CompletionRules {
    /// Whether a strategy may complete the relation.
    pub(super) const fn is_possible(self) -> bool {
        self.of_type | self.in_part != 0
    }
}

impl<'r> Regions<'r> {
    pub(super) fn new(regions: &[(&'r Shape, &'r Strategy)], antimeridian: Antimeridian) -> Self {
        let sets = SetTable::default();
        let set_where = |test: &dyn Fn(&Strategy) -> bool| {
            let numbered = (0..).zip(regions);
            let found = numbered.filter(|(_, (_, strategy))| test(strategy));
            sets.of(found.map(|(number, _)| number))
        };
        let is_smart = |strategy: &Strategy| matches!(strategy, Strategy::Smart { .. });
        let mut smart: Vec<(&Strategy, SetNumber)> = Vec::new();
        for (_, strategy) in regions.iter().filter(|(_, strategy)| is_smart(strategy)) {
            if smart.iter().all(|(known, _)| known != strategy) {
                smart.push((*strategy, set_where(&|other| other == *strategy)));
            }
        }
        Self {
            areas: area_index_of(regions.iter().map(|(shape, _)| *shape), antimeridian),
            smart,
            completing: set_where(&Strategy::completes_ways),
            with_relations: set_where(&Strategy::keeps_relations),
            with_parents: set_where(&|one| one.keeps_relations() && one.completes_ways()),
            completing_relations: set_where(&is_smart),
            sets,
        }
    }

    /// Returns the regions that contain the whole bounding box of `shape`. If `shape` is itself a region, it may be
    /// among them.
    pub(super) fn regions_around(&self, shape: &Shape) -> Vec<u32> {
        self.areas.cover(&shape.envelope()).inside
    }

    /// Returns the number of distinct smart strategies.
    pub(super) const fn strategy_count(&self) -> usize {
        self.smart.len()
    }

    /// Returns a look-up of the regions that contain locations.
    pub(super) fn new_lookup(&self) -> RegionLookup<'_> {
        RegionLookup::new(&self.areas, &self.sets)
    }

    /// Returns the regions that contain a location.
    pub(super) fn at(lookup: &mut RegionLookup<'_>, location: Option<Location>) -> SetNumber {
        location.map_or(EMPTY_SET, |location| lookup.regions_at(location))
    }

    /// Whether a region completes relations.
    pub(super) const fn completes_relations(&self) -> bool {
        self.completing_relations != EMPTY_SET
    }

    /// Returns the smart strategies whose bits are set in `bits`, each with its regions.
    fn strategies(&self, bits: u64) -> impl Iterator<Item = (&'r Strategy, SetNumber)> {
        let numbered = self.smart.iter().enumerate();
        let selected = numbered.filter(move |(number, _)| bits >> number & 1 != 0);
        selected.map(|(_, strategy)| *strategy)
    }

    /// Returns the regions that complete a relation. `direct` has the regions with a node or a way of the relation.
    /// `enough` returns those of the given regions that have at least the given percentage of the relation's members.
    pub(super) fn regions_that_complete(
        &self,
        completion: CompletionRules,
        direct: SetNumber,
        algebra: &mut SetAlgebra<'_>,
        enough: impl Fn(SetNumber, u32) -> SetNumber,
    ) -> SetNumber {
        let mut all = EMPTY_SET;
        for (_, regions) in self.strategies(completion.of_type) {
            let regions = intersection(algebra, direct, regions);
            all = algebra.union(all, regions);
        }
        for (strategy, regions) in self.strategies(completion.in_part) {
            let Strategy::Smart {
                min_percent: Some(percent),
                ..
            } = strategy
            else {
                continue;
            };
            let regions = intersection(algebra, direct, regions);
            if regions != EMPTY_SET {
                all = algebra.union(all, enough(regions, *percent));
            }
        }
        all
    }

    /// Returns the tests for the relations of a block.
    pub(super) fn completion_tests<'b>(&'b self, block: &'b Block<'b>) -> CompletionTests<'b> {
        let tests = self.smart.iter();
        CompletionTests(
            tests
                .map(|(strategy, _)| (*strategy, CompletedTypes::new(strategy, block)))
                .collect(),
        )
    }
}

/// The tests that tell which strategies complete a relation of a block.
pub(super) struct CompletionTests<'b>(Vec<(&'b Strategy, CompletedTypes<'b>)>);

impl CompletionTests<'_> {
    /// Returns the strategies that complete the current object, which must be a relation.
    pub(super) fn completion_of(
        &self,
        relation: &mut BlockWalk<'_>,
    ) -> Result<CompletionRules, FormatError> {
        let mut completion = CompletionRules::default();
        if self.0.is_empty() {
            return Ok(completion);
        }
        let found = relation.tags()?;
        for (number, (strategy, types)) in self.0.iter().enumerate() {
            let Strategy::Smart {
                min_percent, tags, ..
            } = strategy
            else {
                continue;
            };
            if !types.matches_any_of(tags, found)? {
                continue;
            }
            if types.has_completed_type(found)? {
                completion.of_type |= 1 << number;
            } else if min_percent.is_some() {
                completion.in_part |= 1 << number;
            }
        }
        Ok(completion)
    }
}

/// Returns the regions that are in both sets.
pub(super) fn intersection(
    algebra: &mut SetAlgebra<'_>,
    one: SetNumber,
    other: SetNumber,
) -> SetNumber {
    let rest = algebra.difference(one, other);
    algebra.difference(one, rest)
}

/// Adds regions to the regions of an object.
pub(super) fn add_regions(map: &mut IdMap, id: i64, set: SetNumber, algebra: &mut SetAlgebra<'_>) {
    if set != EMPTY_SET {
        map.add(id, set, |one, two| algebra.union(one, two));
    }
}
