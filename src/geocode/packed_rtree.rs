//! Packed Hilbert R-trees.
//!
//! Leaves (formed by `pack`) are ordered along a Hilbert curve, and every 16 consecutive leaves have one parent. A tree
//! is immutable and has two sections. The first section has the leaves. The second has the number of leaves, and the
//! nodes, level by level from the parents of leaves up to the root.
//!
//! A node stores the boxes of its children column by column (south, west, north, east), for comparison by vector
//! instructions. A parent of leaves also has an offset table. The table stores the start of the first leaf, and the end
//! of each leaf relative to that start.

use super::child_queue::{ChildQueue, QUEUE_LEN};
use super::container::{Container, ContainerWriter};
use super::local_projection::LocalProjection;
use crate::error::{Error, Result};
use crate::geometry::Extent;
use std::ops::Range;

/// The maximum number of children of a node.
const FANOUT: usize = QUEUE_LEN;
/// The number of sections of a tree.
pub(crate) const SECTIONS: usize = 2;
/// The section of the nodes, counted from the first section of the tree.
const NODES: usize = 1;
/// The size in bytes of the field that holds the number of leaves.
const COUNT_LEN: u64 = 8;
/// The size in bytes of the boxes of a node. A node that is not a parent of leaves has nothing else.
const BOXES_LEN: u64 = (4 * FANOUT * EDGE_LEN) as u64;
/// The size in bytes of the offset table of a parent of leaves.
const OFFSETS_LEN: u64 = (START_LEN + FANOUT * END_LEN) as u64;
/// The size in bytes of the first field of an offset table, the start of the first leaf.
const START_LEN: usize = 8;
/// The size in bytes of each further field of an offset table, the end of a leaf.
const END_LEN: usize = 4;
/// The size in bytes of an edge of a box.
const EDGE_LEN: usize = 4;

/// A builder of a tree. It writes each leaf when the leaf is added, and the nodes at the end.
#[derive(Default)]
pub(crate) struct PackedRTreeBuilder {
    ends: Vec<u64>,
    extents: Vec<Extent>,
}

impl PackedRTreeBuilder {
    /// Begins a tree.
    pub(crate) fn begin(writer: &mut ContainerWriter) -> Result<Self> {
        writer.begin_section()?;
        Ok(Self::default())
    }

    /// Adds a leaf.
    pub(crate) fn add(
        &mut self,
        leaf: &[u8],
        extent: Extent,
        writer: &mut ContainerWriter,
    ) -> Result<()> {
        self.extents.push(extent);
        writer.write(leaf)?;
        self.ends.push(writer.section_len());
        Ok(())
    }

    /// Writes the nodes of the tree.
    pub(crate) fn finish(self, writer: &mut ContainerWriter) -> Result<()> {
        writer.begin_section()?;
        writer.write(&(self.ends.len() as u64).to_le_bytes())?;
        let mut start = 0;
        for (children, ends) in self.extents.chunks(FANOUT).zip(self.ends.chunks(FANOUT)) {
            writer.write(&encode_boxes(children))?;
            writer.write(&encode_offset_table(start, ends)?)?;
            start = ends[ends.len() - 1];
        }
        let mut level = self.extents;
        while level.len() > FANOUT {
            let nodes = level.chunks(FANOUT).filter_map(|children| {
                let children = children.iter().copied();
                children.reduce(|all, next| all.and(&next))
            });
            level = nodes.collect();
            for children in level.chunks(FANOUT) {
                writer.write(&encode_boxes(children))?;
            }
        }
        Ok(())
    }
}

/// Returns the encoded boxes of the children of a node.
fn encode_boxes(children: &[Extent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BOXES_LEN as usize);
    for edge in 0..4 {
        let edges = children.iter().map(|child| child.stored_edges()[edge]);
        let edges = edges.chain(std::iter::repeat(0)).take(FANOUT);
        edges.for_each(|edge| bytes.extend_from_slice(&edge.to_le_bytes()));
    }
    bytes
}

/// Returns the offset table of a parent of leaves. Fails if the leaves have more than 4 GB.
fn encode_offset_table(start: u64, ends: &[u64]) -> Result<Vec<u8>> {
    let mut bytes = start.to_le_bytes().to_vec();
    let too_long = |_| Error::internal("16 leaves of an index have more than 4 GB");
    for end in ends {
        let end = u32::try_from(end - start).map_err(too_long)?;
        bytes.extend_from_slice(&end.to_le_bytes());
    }
    bytes.resize(OFFSETS_LEN as usize, 0);
    Ok(bytes)
}

/// Returns the start and the length of a leaf from the offset table of its parent. `number` is the index of the leaf
/// among the children of its parent.
#[inline]
fn leaf_start_and_len(places: &[u8], number: usize) -> Option<[u64; 2]> {
    let (start, ends) = places.split_first_chunk::<START_LEN>()?;
    let ends = ends.as_chunks::<END_LEN>().0;
    let end = |number: usize| Some(u64::from(u32::from_le_bytes(*ends.get(number)?)));
    let from = match number {
        0 => 0,
        _ => end(number - 1)?,
    };
    let len = end(number)?.checked_sub(from)?;
    Some([u64::from_le_bytes(*start).checked_add(from)?, len])
}

/// A level of a tree.
#[derive(Debug)]
struct TreeLevel {
    /// The offset of the first node of the level in the section of the nodes.
    start: u64,
    /// The size of a node in bytes.
    node_len: u64,
    /// The total number of children of all nodes of the level.
    children: u64,
}

/// A packed Hilbert R-tree in a [`Container`].
#[derive(Debug)]
pub(crate) struct PackedRTree {
    /// The first section of the tree.
    section: usize,
    /// The levels, from the parents of leaves up to the root. Empty if the tree has no leaves.
    levels: Vec<TreeLevel>,
}

/// A node: its level, and its number in the level.
type TreeNode = (usize, u64);

/// The children of one node.
struct Children<'c> {
    level: usize,
    /// The index of the first child among the children of all nodes of the level.
    first: u64,
    count: usize,
    /// The southern, western, northern and eastern edges of the children.
    edges: &'c [EdgeRow; 4],
}

/// One edge of all children, such as the southern edges.
type EdgeRow = [[u8; EDGE_LEN]; FANOUT];

impl<'c> Children<'c> {
    /// Returns a queue of the children, ordered by the distances of their boxes from the query point.
    #[inline]
    fn queue(&self, projection: &LocalProjection) -> ChildQueue {
        let mut edges = [[0.0; QUEUE_LEN]; 4];
        for (edges, row) in edges.iter_mut().zip(self.edges) {
            for (edge, bytes) in edges.iter_mut().zip(row) {
                *edge = f64::from(i32::from_le_bytes(*bytes));
            }
        }
        ChildQueue::of(projection, self.count, &edges)
    }

    /// Returns each child whose box intersects `extent`, as its number in the node and its box.
    #[inline]
    fn intersecting_children(
        &self,
        extent: &Extent,
    ) -> impl Iterator<Item = (u8, Extent)> + use<'c> {
        let [west, south, east, north] = extent.edges().into_array();
        let [souths, wests, norths, easts] = self.edges;
        let mut apart = [0; FANOUT];
        mark_disjoint_children(&mut apart, souths, |edge| edge > north);
        mark_disjoint_children(&mut apart, wests, |edge| edge > east);
        mark_disjoint_children(&mut apart, norths, |edge| edge < south);
        mark_disjoint_children(&mut apart, easts, |edge| edge < west);
        let apart = apart.iter().fold(0, |all, bit| all | bit);
        let mut met = !apart & ((1 << self.count) - 1);
        std::iter::from_fn(move || {
            if met == 0 {
                return None;
            }
            let child = met.trailing_zeros() as usize;
            met &= met - 1;
            let edges = [souths, wests, norths, easts].map(|row| i32::from_le_bytes(row[child]));
            Some((child as u8, Extent::from_stored_edges(edges)))
        })
    }
}

/// Calls `is_apart` with the edge of each child in `row`. If the result is true, sets the bit of the child in `apart`.
/// The loop has no branches, so that it compiles to vector instructions.
#[inline]
fn mark_disjoint_children(
    apart: &mut [u32; FANOUT],
    row: &EdgeRow,
    is_apart: impl Fn(i32) -> bool,
) {
    const BITS: [u32; FANOUT] = {
        let (mut bits, mut child) = ([0; FANOUT], 0);
        while child < FANOUT {
            bits[child] = 1 << child;
            child += 1;
        }
        bits
    };
    for ((apart, bit), edge) in apart.iter_mut().zip(BITS).zip(row) {
        let mask = 0u32.wrapping_sub(u32::from(is_apart(i32::from_le_bytes(*edge))));
        *apart |= bit & mask;
    }
}

impl PackedRTree {
    /// Opens the tree whose first section is `section`. Reads only the number of leaves.
    pub(crate) fn open(container: &Container, section: usize) -> Result<Self> {
        let damaged = || container.damage_error("a tree");
        let count = container.bytes(section + NODES, 0, COUNT_LEN)?;
        let count = count.first_chunk().ok_or_else(damaged)?;
        let mut children = u64::from_le_bytes(*count);
        if children > container.section_len(section + NODES) {
            return Err(damaged());
        }
        let (mut levels, mut start) = (Vec::new(), COUNT_LEN);
        while children > 0 {
            let node_len = BOXES_LEN + if levels.is_empty() { OFFSETS_LEN } else { 0 };
            levels.push(TreeLevel {
                start,
                node_len,
                children,
            });
            let nodes = children.div_ceil(FANOUT as u64);
            start += nodes * node_len;
            children = if nodes > 1 { nodes } else { 0 };
        }
        if container.section_len(section + NODES) == start {
            Ok(Self { section, levels })
        } else {
            Err(damaged())
        }
    }

    /// Returns the bounding box of all leaves; `None` if there are no leaves.
    pub(crate) fn extent(&self, container: &Container) -> Result<Option<Extent>> {
        let everything = Extent::from_stored_edges([i32::MIN, i32::MIN, i32::MAX, i32::MAX]);
        let Some(children) = self.children(container, None)? else {
            return Ok(None);
        };
        let extents = children
            .intersecting_children(&everything)
            .map(|(_, extent)| extent);
        Ok(extents.reduce(|all, next| all.and(&next)))
    }

    /// Returns the bytes of a leaf.
    #[inline]
    pub(crate) fn leaf<'c>(&self, container: &'c Container, number: u64) -> Result<&'c [u8]> {
        let child = (number % FANOUT as u64) as usize;
        let level = self.levels.first();
        let place = match level.filter(|level| number < level.children) {
            Some(level) => {
                let at = level.start + number / FANOUT as u64 * level.node_len + BOXES_LEN;
                leaf_start_and_len(
                    container.bytes(self.section + NODES, at, OFFSETS_LEN)?,
                    child,
                )
            }
            None => None,
        };
        let [start, len] = place.ok_or_else(|| container.damage_error("the place of a leaf"))?;
        container.bytes(self.section, start, len)
    }

    /// Returns the children of a node, or of the root if `node` is `None`. Returns `None` if the tree has no leaves.
    #[inline]
    fn children<'c>(
        &self,
        container: &'c Container,
        node: Option<TreeNode>,
    ) -> Result<Option<Children<'c>>> {
        let (level, number) = node.unwrap_or((self.levels.len().saturating_sub(1), 0));
        let Some(TreeLevel {
            start,
            node_len,
            children,
        }) = self.levels.get(level)
        else {
            return Ok(None);
        };
        let first = number * FANOUT as u64;
        let at = start + number * node_len;
        let bytes = container.bytes(self.section + NODES, at, BOXES_LEN)?;
        let edges = bytes.as_chunks().0.as_chunks().0.first_chunk();
        Ok(Some(Children {
            level,
            first,
            count: children.saturating_sub(first).min(FANOUT as u64) as usize,
            edges: edges.ok_or_else(|| container.damage_error("a node"))?,
        }))
    }

    /// Calls `visit` with each leaf whose box may be within the maximum distance from the query point. Visits the
    /// nearest children of each node first (branch and bound). `limit` is the square of the maximum distance in metres,
    /// and `visit` may lower it.
    pub(crate) fn visit_near(
        &self,
        container: &Container,
        projection: &LocalProjection,
        limit: &mut f64,
        visit: &mut impl FnMut(u64, &mut f64) -> Result<()>,
    ) -> Result<()> {
        self.visit_near_below(container, projection, None, limit, visit)
    }

    /// Does the same as [`visit_near`](Self::visit_near) for the leaves below `node`.
    fn visit_near_below(
        &self,
        container: &Container,
        projection: &LocalProjection,
        node: Option<TreeNode>,
        limit: &mut f64,
        visit: &mut impl FnMut(u64, &mut f64) -> Result<()>,
    ) -> Result<()> {
        let Some(children) = self.children(container, node)? else {
            return Ok(());
        };
        let mut queue = children.queue(projection);
        while let Some(child) = queue.next(*limit) {
            match (children.level, children.first + u64::from(child)) {
                (0, leaf) => visit(leaf, limit)?,
                (level, child) => {
                    let child = Some((level - 1, child));
                    self.visit_near_below(container, projection, child, limit, visit)?;
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with each leaf whose box intersects `extent`.
    pub(crate) fn visit_intersecting_leaves(
        &self,
        container: &Container,
        extent: &Extent,
        visit: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        self.visit_intersecting_leaves_below(container, extent, None, visit)
    }

    /// Does the same as [`visit_intersecting_leaves`](Self::visit_intersecting_leaves) for the leaves below `node`.
    fn visit_intersecting_leaves_below(
        &self,
        container: &Container,
        extent: &Extent,
        node: Option<TreeNode>,
        visit: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let Some(children) = self.children(container, node)? else {
            return Ok(());
        };
        for (child, _) in children.intersecting_children(extent) {
            match (children.level, children.first + u64::from(child)) {
                (0, leaf) => visit(leaf)?,
                (level, child) => {
                    self.visit_intersecting_leaves_below(
                        container,
                        extent,
                        Some((level - 1, child)),
                        visit,
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of leaves whose boxes intersect a box.
    pub(crate) fn count_intersecting_leaves(
        &self,
        container: &Container,
        extent: &Extent,
    ) -> Result<u64> {
        self.count_intersecting_leaves_below(container, extent, None)
    }

    /// Does the same as [`count_intersecting_leaves`](Self::count_intersecting_leaves) for the leaves below `node`.
    fn count_intersecting_leaves_below(
        &self,
        container: &Container,
        extent: &Extent,
        node: Option<TreeNode>,
    ) -> Result<u64> {
        let Some(children) = self.children(container, node)? else {
            return Ok(0);
        };
        let mut count = 0;
        for (child, of_child) in children.intersecting_children(extent) {
            let number = children.first + u64::from(child);
            // If the box of a child lies inside `extent`, all leaves below the child intersect `extent`, so they need
            // not be visited.
            let is_inside = extent.and(&of_child) == *extent;
            count += match children.level {
                0 => 1,
                level if is_inside => {
                    let below = self.leaves_below(level, number);
                    below.end - below.start
                }
                level => self.count_intersecting_leaves_below(
                    container,
                    extent,
                    Some((level - 1, number)),
                )?,
            };
        }
        Ok(count)
    }

    /// Returns the numbers of the leaves below a child of a node at `level`. `child` is the index of the child among
    /// the children of all nodes of that level.
    fn leaves_below(&self, level: usize, child: u64) -> Range<u64> {
        let all = self.levels.first().map_or(0, |level| level.children);
        let of_child = (FANOUT as u64).saturating_pow(level as u32);
        let first = child.saturating_mul(of_child).min(all);
        first..first.saturating_add(of_child).min(all)
    }

    /// Starting at leaf `from`, finds the leaves whose boxes intersect `extent`, skips the first `skipped` of them, and
    /// returns the next one.
    pub(crate) fn nth_intersecting_leaf(
        &self,
        container: &Container,
        extent: &Extent,
        from: u64,
        mut skipped: u64,
    ) -> Result<Option<u64>> {
        self.nth_intersecting_leaf_below(container, extent, None, from, &mut skipped)
    }

    /// Does the same as [`nth_intersecting_leaf`](Self::nth_intersecting_leaf) for the leaves below `node`. Decreases
    /// `skipped` by the number of leaves that it skips.
    fn nth_intersecting_leaf_below(
        &self,
        container: &Container,
        extent: &Extent,
        node: Option<TreeNode>,
        from: u64,
        skipped: &mut u64,
    ) -> Result<Option<u64>> {
        let Some(children) = self.children(container, node)? else {
            return Ok(None);
        };
        for (child, of_child) in children.intersecting_children(extent) {
            let number = children.first + u64::from(child);
            let below = self.leaves_below(children.level, number);
            let (first, end) = (below.start.max(from), below.end);
            if first >= end {
                continue;
            }
            let is_inside = children.level == 0 || extent.and(&of_child) == *extent;
            let found = match children.level.checked_sub(1) {
                _ if is_inside && *skipped < end - first => Some(first + *skipped),
                _ if is_inside => {
                    *skipped -= end - first;
                    None
                }
                Some(level) => self.nth_intersecting_leaf_below(
                    container,
                    extent,
                    Some((level, number)),
                    from,
                    skipped,
                )?,
                None => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::geocode::container::write_and_open_container;
    use crate::geometry::Point;

    fn point(lat_e7: i32, lon_e7: i32) -> Point {
        Point { lat_e7, lon_e7 }
    }

    #[test]
    fn searches_find_the_same_leaves_as_a_scan() {
        let mut random = Random(9);
        let directory = tempfile::tempdir().unwrap();
        for leaves in [0, 1, 16, 17, 256, 257, 5000] {
            let path = directory.path().join(leaves.to_string());
            let mut extents = Vec::new();
            let container = write_and_open_container(&path, SECTIONS, |writer| {
                let mut tree = PackedRTreeBuilder::begin(writer).unwrap();
                for leaf in 0..leaves {
                    let low = point(random.below(1_000_000), random.below(1_000_000));
                    let high = point(
                        low.lat_e7 + random.below(10_000),
                        low.lon_e7 + random.below(10_000),
                    );
                    extents.push(Extent { low, high });
                    let bytes = format!("leaf {leaf}");
                    tree.add(bytes.as_bytes(), Extent { low, high }, writer)
                        .unwrap();
                }
                tree.finish(writer).unwrap();
            });
            let tree = PackedRTree::open(&container, 0).unwrap();
            for _ in 0..100 {
                let place = point(random.below(1_000_000), random.below(1_000_000));
                let projection = LocalProjection::around(place);
                let mut limit = f64::from(random.below(2000)).powi(2);
                let bound = |leaf: u64| {
                    projection.squared_distance_bound(extents[leaf as usize].edges().map(f64::from))
                };
                let mut nearest = (f64::INFINITY, 0);
                let mut visit = |leaf, limit: &mut f64| {
                    let bytes = tree.leaf(&container, leaf)?;
                    assert_eq!(bytes, format!("leaf {leaf}").as_bytes());
                    if bound(leaf) < nearest.0 {
                        nearest = (bound(leaf), leaf);
                        *limit = bound(leaf).min(*limit);
                    }
                    Ok(())
                };
                let start = limit;
                tree.visit_near(&container, &projection, &mut limit, &mut visit)
                    .unwrap();
                let expected = (0..leaves).map(bound).filter(|bound| *bound <= start);
                let expected = expected.fold(f64::INFINITY, f64::min);
                assert!(nearest.0 == expected || expected.is_infinite());
                let around = Extent {
                    low: place,
                    high: point(place.lat_e7 + 5000, place.lon_e7),
                };
                let mut met = Vec::new();
                tree.visit_intersecting_leaves(&container, &around, &mut |leaf| {
                    met.push(leaf);
                    Ok(())
                })
                .unwrap();
                let expected: Vec<u64> = (0..leaves)
                    .filter(|leaf| extents[*leaf as usize].meets(&around))
                    .collect();
                assert_eq!(met, expected);
                let wide = Extent {
                    low: place,
                    high: point(place.lat_e7 + 400_000, place.lon_e7 + 400_000),
                };
                let met: Vec<u64> = (0..leaves)
                    .filter(|leaf| extents[*leaf as usize].meets(&wide))
                    .collect();
                let count = tree.count_intersecting_leaves(&container, &wide).unwrap();
                assert_eq!(count, met.len() as u64);
                let (from, skipped) = (random.below(300) as u64, random.below(40) as u64);
                let nth = tree
                    .nth_intersecting_leaf(&container, &wide, from, skipped)
                    .unwrap();
                let mut behind = met.into_iter().filter(|leaf| *leaf >= from);
                assert_eq!(nth, behind.nth(skipped as usize));
            }
        }
    }
}
