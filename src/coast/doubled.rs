//! Finds the ways that have the same nodes as another way.

use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use super::ways::{CoastWay, CoastWays};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// Returns a flag for each way, which is `true` if the way is left out. Of the ways that have the same nodes in the
/// same or in the opposite order, keeps only one. Of two ways in the same order, keeps the first. Of two ways in
/// opposite orders, keeps the one that fits between other ways: it begins where another way ends, and ends where
/// another way begins. If both or neither fit, keeps the first.
pub(super) fn flag_doubled_ways(ways: &CoastWays, problems: &mut Vec<CoastProblem>) -> Vec<bool> {
    let mut is_left_out = vec![false; ways.len()];
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let mut opposite = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        if way.nodes.len() < 2 {
            continue;
        }
        let first = *known.entry(hash_of(way.nodes)).or_insert(index);
        let Some(other) = ways.way(first).filter(|_| first != index) else {
            continue;
        };
        let is_same = other.nodes == way.nodes;
        if !is_same && !other.nodes.iter().eq(way.nodes.iter().rev()) {
            continue;
        }
        let mut report = |kind| {
            let place = ProblemPlace::of_line(way.points().collect());
            problems.push(CoastProblem::of_ways(kind, vec![other.id, way.id], place));
        };
        report(CoastProblemKind::Overlap);
        if is_same {
            is_left_out[index] = true;
        } else {
            report(CoastProblemKind::Direction);
            opposite.push([first, index]);
        }
    }
    flag_opposite_ways(ways, &opposite, &mut is_left_out);
    is_left_out
}

/// Returns a hash of nodes that is the same in both directions.
fn hash_of(nodes: &[i64]) -> u64 {
    let mut hasher = FxHasher::default();
    let is_backward = nodes.iter().rev().lt(nodes.iter());
    if is_backward {
        nodes.iter().rev().for_each(|node| node.hash(&mut hasher));
    } else {
        nodes.iter().for_each(|node| node.hash(&mut hasher));
    }
    hasher.finish()
}

/// Leaves out one way of each pair. The ways of a pair have the same nodes in opposite orders.
fn flag_opposite_ways(ways: &CoastWays, pairs: &[[usize; 2]], is_left_out: &mut [bool]) {
    if pairs.is_empty() {
        return;
    }
    let contested: FxHashSet<usize> = pairs.iter().flatten().copied().collect();
    let (mut firsts, mut lasts) = (FxHashSet::<i64>::default(), FxHashSet::<i64>::default());
    for (index, way) in ways.iter().enumerate() {
        if !contested.contains(&index) && !is_left_out[index] {
            firsts.extend(way.nodes.first());
            lasts.extend(way.nodes.last());
        }
    }
    let fits = |way: &CoastWay<'_>| {
        let (first, last) = (way.nodes.first(), way.nodes.last());
        let follows = first.is_some_and(|node| lasts.contains(node));
        follows && last.is_some_and(|node| firsts.contains(node))
    };
    for [one, other] in pairs {
        let fit = [one, other].map(|way| ways.way(*way).is_some_and(|way| fits(&way)));
        if !is_left_out[*one] && fit == [false, true] {
            is_left_out[*one] = true;
        } else {
            is_left_out[*other] = true;
        }
    }
}
