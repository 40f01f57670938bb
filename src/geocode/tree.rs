//! Trees of boxes over leaves.
//!
//! The leaves of a tree are in the order of a Hilbert curve, and a node of the tree has up to 16 neighbours below it. A
//! tree has two sections: the leaves, and the boxes of all nodes, beginning with those of leaves, each of which is
//! followed by the start of its leaf.

use super::container::{Container, ContainerWriter};
use super::metric::Metric;
use crate::error::Result;
use crate::geometry::Extent;

/// The maximum number of children of a node.
const FANOUT: usize = 16;
/// The number of sections of a tree.
pub(crate) const SECTIONS: usize = 2;

/// A tree that is being written. Its leaves are written when they are added.
#[derive(Default)]
pub(crate) struct TreeBuilder {
    starts: Vec<u64>,
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
        self.starts.push(writer.section_len());
        self.extents.push(extent);
        writer.write(leaf)
    }

    /// Writes the nodes of the tree.
    pub(crate) fn finish(self, writer: &mut ContainerWriter) -> Result<()> {
        writer.begin_section()?;
        let mut bytes = Vec::with_capacity(self.extents.len() * LEAF_LEN as usize);
        for (extent, start) in self.extents.iter().zip(&self.starts) {
            bytes.extend_from_slice(&extent.to_bytes());
            bytes.extend_from_slice(&start.to_le_bytes());
        }
        let mut level = self.extents;
        loop {
            writer.write(&bytes)?;
            if level.len() <= FANOUT {
                return Ok(());
            }
            let nodes = level.chunks(FANOUT).filter_map(|children| {
                let children = children.iter().copied();
                children.reduce(|all, next| all.and(&next))
            });
            level = nodes.collect();
            bytes.clear();
            for extent in &level {
                bytes.extend_from_slice(&extent.to_bytes());
            }
        }
    }
}

/// The number of bytes of the entry of a node that is no leaf: its box.
const NODE_LEN: u64 = Extent::LEN as u64;
/// The number of bytes of the entry of a leaf: its box, and the start of its bytes.
const LEAF_LEN: u64 = NODE_LEN + 8;

/// A level of a tree.
#[derive(Debug)]
struct Level {
    /// The place of its entries in the section.
    start: u64,
    /// The number of its nodes.
    count: u64,
    /// The number of bytes of an entry.
    entry_len: u64,
}

/// A tree of a file.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The number of its first section.
    section: usize,
    /// The levels. The first has the leaves.
    levels: Vec<Level>,
}

/// A place in a tree: a level, counted from the leaves, and a number in the level.
type Node = (usize, u64);

/// The children of a node.
struct Children<'c> {
    level: usize,
    /// The number of the first child in its level.
    first: u64,
    entries: &'c [u8],
}

impl Children<'_> {
    /// The children whose box meets another box: their numbers, from 0, and their boxes.
    #[inline]
    fn meeting(&self, extent: &Extent) -> impl Iterator<Item = (u8, Extent)> {
        let mut extents = [Extent::from_edges([0; 4]); FANOUT];
        let mut met = 0u32;
        let mut look_at = |child: usize, slot: &mut Extent, entry: &[u8]| {
            if let Some(bytes) = entry.first_chunk() {
                *slot = Extent::from_bytes(bytes);
                met |= u32::from(slot.meets(extent)) << child;
            }
        };
        let slots = extents.iter_mut().enumerate();
        // The lengths are known when this is compiled.
        match self.level {
            0 => slots
                .zip(self.entries.chunks_exact(LEAF_LEN as usize))
                .for_each(|((child, slot), entry)| look_at(child, slot, entry)),
            _ => slots
                .zip(self.entries.chunks_exact(NODE_LEN as usize))
                .for_each(|((child, slot), entry)| look_at(child, slot, entry)),
        }
        std::iter::from_fn(move || {
            let child = met.trailing_zeros();
            let extent = extents.get(child as usize).copied()?;
            met &= met - 1;
            Some((child as u8, extent))
        })
    }
}

impl Tree {
    /// The tree whose first section has the given number.
    pub(crate) fn open(container: &Container, section: usize) -> Result<Self> {
        let len = container.section_len(section + 1);
        // The number of leaves is the largest whose levels are not longer than the section.
        let levels_of = |leaves: u64| {
            let (mut levels, mut start, mut count) = (Vec::new(), 0, leaves);
            while count > 0 {
                let entry_len = if levels.is_empty() {
                    LEAF_LEN
                } else {
                    NODE_LEN
                };
                levels.push(Level {
                    start,
                    count,
                    entry_len,
                });
                start += count * entry_len;
                if count <= FANOUT as u64 {
                    break;
                }
                count = count.div_ceil(FANOUT as u64);
            }
            (levels, start)
        };
        let (mut low, mut high) = (0, len / LEAF_LEN);
        while low < high {
            let middle = (low + high).div_ceil(2);
            match levels_of(middle).1 <= len {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        match levels_of(low) {
            (levels, end) if end == len => Ok(Self { section, levels }),
            _ => Err(container.damaged("a tree")),
        }
    }

    /// The box around all leaves; `None` without leaves.
    pub(crate) fn extent(&self, container: &Container) -> Result<Option<Extent>> {
        let everything = Extent::from_edges([i32::MIN, i32::MIN, i32::MAX, i32::MAX]);
        let Some(children) = self.children(container, None)? else {
            return Ok(None);
        };
        let extents = children.meeting(&everything).map(|(_, extent)| extent);
        Ok(extents.reduce(|all, next| all.and(&next)))
    }

    /// The bytes of a leaf.
    #[inline]
    pub(crate) fn leaf<'c>(&self, container: &'c Container, number: u64) -> Result<&'c [u8]> {
        let start_of = |number: u64| -> Result<u64> {
            if self
                .levels
                .first()
                .is_none_or(|leaves| number >= leaves.count)
            {
                return Ok(container.section_len(self.section));
            }
            let at = number * LEAF_LEN + NODE_LEN;
            let bytes = container.bytes(self.section + 1, at, 8)?;
            Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
        };
        let (start, end) = (start_of(number)?, start_of(number + 1)?);
        let len = end.checked_sub(start);
        let len = len.ok_or_else(|| container.damaged("the place of a leaf"))?;
        container.bytes(self.section, start, len)
    }

    /// The children of a node; of `None`, the nodes of the highest level.
    #[inline]
    fn children<'c>(
        &self,
        container: &'c Container,
        parent: Option<Node>,
    ) -> Result<Option<Children<'c>>> {
        let (level, first) = match parent {
            Some((level, number)) => (level - 1, number * FANOUT as u64),
            None => (self.levels.len().saturating_sub(1), 0),
        };
        let Some(Level {
            start,
            count,
            entry_len,
        }) = self.levels.get(level)
        else {
            return Ok(None);
        };
        let count = (count - first).min(FANOUT as u64);
        let (at, len) = (start + first * entry_len, count * entry_len);
        Ok(Some(Children {
            level,
            first,
            entries: container.bytes(self.section + 1, at, len)?,
        }))
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
        let Some(children) = self.children(container, parent)? else {
            return Ok(());
        };
        let reach = metric.reach(*limit);
        let (mut found, mut count) = ([(0.0, 0); FANOUT], 0);
        for (child, extent) in children.meeting(&reach) {
            let bound = metric.bound(&extent);
            if bound <= *limit {
                // Sorted by insertion: there are few.
                let before = found.iter().take(count);
                let at = before.filter(|(other, _)| *other <= bound).count();
                if let Some(behind) = found.get_mut(at..=count) {
                    behind.rotate_right(1);
                }
                if let Some(slot) = found.get_mut(at) {
                    *slot = (bound, child);
                }
                count += 1;
            }
        }
        for (bound, child) in found.into_iter().take(count) {
            if bound > *limit {
                break;
            }
            match (children.level, children.first + u64::from(child)) {
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
        let Some(children) = self.children(container, parent)? else {
            return Ok(());
        };
        for (child, _) in children.meeting(extent) {
            match (children.level, children.first + u64::from(child)) {
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
