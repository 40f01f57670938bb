//! Joins the lines in a box along its edges.

use super::{BoxPart, ChainEnd};
use crate::geometry::Point;

/// A connection along the edges of the box, from the end of a chain to the start of the next chain.
#[derive(Debug, Clone, Copy)]
struct NextChain {
    /// The index of the next chain.
    chain: usize,
    /// The positions, on the edges of the box, at which the connection begins and ends.
    from: i64,
    to: i64,
    /// Whether the connection passes the south-western corner, where positions begin.
    is_past_start: bool,
}

impl BoxPart {
    /// Returns the rings of the area in the box: outer rings counter-clockwise, and the rings of holes clockwise. Rings
    /// may touch themselves.
    pub(crate) fn rings(&self) -> Vec<Vec<Point>> {
        let ends = self.chain_ends();
        let mut rings = self.rings.clone();
        if ends.is_empty() && self.is_edge_inside {
            rings.push(self.corners().map(|(_, corner)| corner).to_vec());
        }
        let next = next_chains(ends, self.is_edge_inside, self.chains.len());
        let mut is_used = vec![false; self.chains.len()];
        for start in 0..self.chains.len() {
            let (mut ring, mut index) = (Vec::new(), start);
            while !is_used[index] {
                is_used[index] = true;
                ring.extend(&self.chains[index]);
                let Some(following) = next[index] else { break };
                self.add_corners(&following, &mut ring);
                index = following.chain;
            }
            ring.dedup();
            if ring.first() == ring.last() {
                ring.pop();
            }
            if ring.len() > 2 {
                rings.push(ring);
            }
        }
        rings
    }

    /// Adds the corners of the box that lie on the connection from a chain to the next chain.
    fn add_corners(&self, next: &NextChain, ring: &mut Vec<Point>) {
        let corners = self.corners();
        let is_after = |position: i64| position > next.from;
        let is_before = |position: i64| position < next.to;
        if next.is_past_start {
            let after = corners.iter().filter(|(position, _)| is_after(*position));
            let before = corners.iter().filter(|(position, _)| is_before(*position));
            ring.extend(after.chain(before).map(|(_, corner)| *corner));
        } else {
            let between = |position| is_after(position) && is_before(position);
            let between = corners.iter().filter(|(position, _)| between(*position));
            ring.extend(between.map(|(_, corner)| *corner));
        }
    }
}

/// Returns, for each chain, the connection to the chain that follows it. `is_inside` tells whether the edges of the box
/// lie in the area. It is used only if the ends do not show this.
fn next_chains(mut ends: Vec<ChainEnd>, is_inside: bool, chains: usize) -> Vec<Option<NextChain>> {
    let mut next = vec![None; chains];
    let mut is_inside = ChainEnd::is_edge_inside_after_ends(&ends).unwrap_or(is_inside);
    // The ends that no start has followed yet, and the starts that no end precedes.
    let (mut open, mut first_starts): (Vec<ChainEnd>, Vec<ChainEnd>) = (Vec::new(), Vec::new());
    for index in 0..ends.len() {
        // Several chains may begin or end at one point. There, the loop visits starts and ends alternately.
        let position = ends[index].position;
        let mut same = ends[index..]
            .iter()
            .take_while(|end| end.position == position);
        let fitting = same.position(|end| end.is_end != is_inside);
        ends[index..=index + fitting.unwrap_or(0)].rotate_right(1);
        let end = ends[index];
        is_inside = end.is_end;
        if end.is_end {
            open.push(end);
        } else if let Some(last) = open.pop() {
            next[last.chain] = Some(next_chain(&last, &end, false));
        } else {
            first_starts.push(end);
        }
    }
    for (last, start) in open.iter().rev().zip(&first_starts) {
        next[last.chain] = Some(next_chain(last, start, true));
    }
    next
}

const fn next_chain(end: &ChainEnd, start: &ChainEnd, is_past_start: bool) -> NextChain {
    NextChain {
        chain: start.chain,
        from: end.position,
        to: start.position,
        is_past_start,
    }
}
