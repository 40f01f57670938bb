//! Trees of boxes over leaves.
//!
//! The leaves of a tree are in the order of a Hilbert curve, and a node of the tree has up to 16 neighbours below it. A
//! tree has three sections: the leaves, the places where they start and end, and the boxes of all nodes, beginning with
//! those of leaves.

use super::container::{Container, ContainerWriter};
use super::metric::Metric;
use crate::error::Result;
use crate::geometry::Extent;

/// The maximum number of children of a node.
const FANOUT: usize = 16;
/// The number of bytes of a box.
const BOX_LEN: u64 = Extent::LEN as u64;
/// The number of sections of a tree.
pub(crate) const SECTIONS: usize = 3;

/// A tree that is being written. Its leaves are written when they are added.
#[derive(Default)]
pub(crate) struct TreeBuilder {
    ends: Vec<u64>,
    extents: Vec<Extent>,
}

impl TreeBuilder {
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
        writer.write(leaf)?;
        self.ends.push(writer.section_len());
        self.extents.push(extent);
        Ok(())
    }

    /// Writes the nodes of the tree.
    pub(crate) fn finish(self, writer: &mut ContainerWriter) -> Result<()> {
        writer.begin_section()?;
        let mut bytes = Vec::with_capacity(self.ends.len() * 8 + 8);
        bytes.extend_from_slice(&0u64.to_le_bytes());
        for end in &self.ends {
            bytes.extend_from_slice(&end.to_le_bytes());
        }
        writer.write(&bytes)?;
        writer.begin_section()?;
        let mut level = self.extents;
        loop {
            bytes.clear();
            for extent in &level {
                bytes.extend_from_slice(&extent.to_bytes());
            }
            writer.write(&bytes)?;
            if level.len() <= FANOUT {
                return Ok(());
            }
            let nodes = level.chunks(FANOUT).filter_map(|children| {
                let children = children.iter().copied();
                children.reduce(|all, next| all.and(&next))
            });
            level = nodes.collect();
        }
    }
}

/// A tree of a file.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The number of its first section.
    section: usize,
    /// The index of the first box of each level, and the number of its boxes. The first level has the leaves.
    levels: Vec<(u64, u64)>,
}

/// A place in a tree: a level, counted from the leaves, and a number in the level.
type Node = (usize, u64);

impl Tree {
    /// The tree whose first section has the given number.
    pub(crate) fn open(container: &Container, section: usize) -> Result<Self> {
        let leaves = (container.section_len(section + 1) / 8).saturating_sub(1);
        let (mut levels, mut start, mut count) = (Vec::new(), 0, leaves);
        while count > 0 {
            levels.push((start, count));
            start += count;
            if count <= FANOUT as u64 {
                break;
            }
            count = count.div_ceil(FANOUT as u64);
        }
        match container.section_len(section + 2) == start * BOX_LEN {
            true => Ok(Self { section, levels }),
            false => Err(container.damaged("a tree")),
        }
    }

    /// The bytes of a leaf.
    #[inline]
    pub(crate) fn leaf<'c>(&self, container: &'c Container, number: u64) -> Result<&'c [u8]> {
        let places = container.bytes(self.section + 1, number * 8, 16)?;
        let place = |at: usize| {
            let bytes = places
                .get(at..at + 8)
                .and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let (start, end) = (place(0), place(8));
        let len = end.checked_sub(start);
        let len = len.ok_or_else(|| container.damaged("the place of a leaf"))?;
        container.bytes(self.section, start, len)
    }

    /// The children of a node, and their boxes; of `None`, the nodes of the highest level.
    #[inline]
    fn children(
        &self,
        container: &Container,
        parent: Option<Node>,
        mut visit: impl FnMut(Node, &Extent),
    ) -> Result<()> {
        let (level, first) = match parent {
            Some((level, number)) => (level - 1, number * FANOUT as u64),
            None => (self.levels.len().saturating_sub(1), 0),
        };
        let Some((start, count)) = self.levels.get(level) else {
            return Ok(());
        };
        let count = (count - first).min(FANOUT as u64);
        let bytes =
            container.bytes(self.section + 2, (start + first) * BOX_LEN, count * BOX_LEN)?;
        for (number, bytes) in (first..).zip(bytes.chunks_exact(BOX_LEN as usize)) {
            visit((level, number), &Extent::from_bytes(bytes));
        }
        Ok(())
    }

    /// Visits the leaves whose box is nearer to a place than a limit, about in the order of their distances. `visit`
    /// gets the limit, a squared distance in metres, and may lower it.
    pub(crate) fn near(
        &self,
        container: &Container,
        metric: &Metric,
        limit: &mut f64,
        visit: &mut impl FnMut(u64, &mut f64) -> Result<()>,
    ) -> Result<()> {
        self.near_in(container, metric, None, limit, visit)
    }

    fn near_in(
        &self,
        container: &Container,
        metric: &Metric,
        parent: Option<Node>,
        limit: &mut f64,
        visit: &mut impl FnMut(u64, &mut f64) -> Result<()>,
    ) -> Result<()> {
        let mut found = [(0.0, (0, 0)); FANOUT];
        let mut count = 0;
        self.children(container, parent, |node, extent| {
            let bound = metric.bound(extent);
            if bound <= *limit {
                // Sorted by insertion: there are few.
                let before = found.iter().take(count);
                let at = before.filter(|(other, _)| *other <= bound).count();
                if let Some(behind) = found.get_mut(at..=count) {
                    behind.rotate_right(1);
                }
                if let Some(slot) = found.get_mut(at) {
                    *slot = (bound, node);
                }
                count += 1;
            }
        })?;
        for (bound, node) in found.into_iter().take(count) {
            if bound > *limit {
                break;
            }
            match node {
                (0, leaf) => visit(leaf, limit)?,
                node => self.near_in(container, metric, Some(node), limit, visit)?,
            }
        }
        Ok(())
    }

    /// Visits the leaves whose box meets another box.
    pub(crate) fn meeting(
        &self,
        container: &Container,
        extent: &Extent,
        visit: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        self.meeting_in(container, extent, None, visit)
    }

    fn meeting_in(
        &self,
        container: &Container,
        extent: &Extent,
        parent: Option<Node>,
        visit: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let mut found = [(0, 0); FANOUT];
        let mut count = 0;
        self.children(container, parent, |node, other| {
            if other.meets(extent) {
                if let Some(slot) = found.get_mut(count) {
                    *slot = node;
                }
                count += 1;
            }
        })?;
        for node in found.into_iter().take(count) {
            match node {
                (0, leaf) => visit(leaf)?,
                node => self.meeting_in(container, extent, Some(node), visit)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geocode::container::container_of;
    use crate::geometry::Point;

    fn point(lat_e7: i32, lon_e7: i32) -> Point {
        Point { lat_e7, lon_e7 }
    }

    #[test]
    fn a_search_visits_each_leaf_that_it_must() {
        let mut state = 9u64;
        let mut next = |below: i32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 33) % below as u64) as i32
        };
        let directory = tempfile::tempdir().unwrap();
        for leaves in [0, 1, 16, 17, 256, 257, 5000] {
            let path = directory.path().join(leaves.to_string());
            let mut extents = Vec::new();
            let container = container_of(&path, SECTIONS, |writer| {
                let mut tree = TreeBuilder::begin(writer).unwrap();
                for leaf in 0..leaves {
                    let low = point(next(1_000_000), next(1_000_000));
                    let high = point(low.lat_e7 + next(10_000), low.lon_e7 + next(10_000));
                    extents.push(Extent { low, high });
                    let bytes = format!("leaf {leaf}");
                    tree.add(bytes.as_bytes(), Extent { low, high }, writer)
                        .unwrap();
                }
                tree.finish(writer).unwrap();
            });
            let tree = Tree::open(&container, 0).unwrap();
            for _ in 0..100 {
                let place = point(next(1_000_000), next(1_000_000));
                let metric = Metric::around(place);
                let mut limit = f64::from(next(2000)).powi(2);
                let bound = |leaf: u64| metric.bound(&extents[leaf as usize]);
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
                tree.near(&container, &metric, &mut limit, &mut visit)
                    .unwrap();
                let expected = (0..leaves).map(bound).filter(|bound| *bound <= start);
                let expected = expected.fold(f64::INFINITY, f64::min);
                assert!(nearest.0 == expected || expected.is_infinite());
                let around = Extent {
                    low: place,
                    high: point(place.lat_e7 + 5000, place.lon_e7),
                };
                let mut met = Vec::new();
                tree.meeting(&container, &around, &mut |leaf| {
                    met.push(leaf);
                    Ok(())
                })
                .unwrap();
                let expected: Vec<u64> = (0..leaves)
                    .filter(|leaf| extents[*leaf as usize].meets(&around))
                    .collect();
                assert_eq!(met, expected);
            }
        }
    }
}
