//! Decides which objects of a block a pass visits, and which further ways it needs, for example as members of
//! relations.

use super::UNDECIDED;
use crate::error::FormatResult;
use std::cell::Cell;

/// The objects of a block that are visited.
pub(super) enum Selected {
    All,
    None,
    /// The objects for which the list has `true`. The list has a value for each object, in file order.
    Listed(Vec<bool>),
}

impl Selected {
    /// Whether the object with the given index in the block is visited.
    pub(super) fn is_visited(&self, index: usize) -> FormatResult<bool> {
        match self {
            Self::All => Ok(true),
            Self::None => Ok(false),
            Self::Listed(list) => list.get(index).copied().ok_or(UNDECIDED),
        }
    }

    /// Whether no object is visited.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::All => false,
            Self::None => true,
            Self::Listed(list) => !list.contains(&true),
        }
    }
}

/// The conditions under which a way of a block is visited or needed.
pub(super) struct WayNeeds<'n> {
    /// The string indices of keys. A way is visited only if it has one of these keys. `None` if ways are visited
    /// regardless of their keys.
    pub keys: Option<&'n [u64]>,
    pub selected: &'n Selected,
    /// Whether the block has only ways, so that a way has the same index among the ways and among the objects.
    pub is_plain: bool,
    /// Whether ways that are not visited may be needed, too: as members of relations, or because locations are looked
    /// up for all ways in order.
    pub needs_others: bool,
}

/// A counter of the objects and the ways of a block. It tells which ways are needed.
pub(super) struct WayCounter<'n> {
    needs: &'n WayNeeds<'n>,
    /// The index of the next object.
    next: Cell<usize>,
    /// The number of ways so far, including the current one.
    ways: Cell<usize>,
}

impl WayCounter<'_> {
    /// Moves to the next way, and returns whether it is needed. If it is not needed, also counts it as an object,
    /// because the caller does not call [`next_index`](Self::next_index) for such a way.
    pub(super) fn advance_to_next_way(&self) -> bool {
        let needs = self.needs;
        let is_needed = needs.needs_others || needs.may_visit(self.next.get());
        if !is_needed {
            self.next_index();
        }
        self.ways.set(self.ways.get() + 1);
        is_needed
    }

    /// Returns the index of the next object, and counts it.
    pub(super) fn next_index(&self) -> usize {
        self.next.replace(self.next.get() + 1)
    }

    /// Returns the index of the current way among the ways of the block.
    pub(super) fn way_index(&self) -> usize {
        self.ways.get().saturating_sub(1)
    }
}

impl WayNeeds<'_> {
    pub(super) fn counter(&self) -> WayCounter<'_> {
        WayCounter {
            needs: self,
            next: Cell::new(0),
            ways: Cell::new(0),
        }
    }

    /// Whether a way may be visited according to its keys. `has_key` gets the wanted keys as string indices, and must
    /// return whether the way has one of these keys.
    pub(super) fn may_visit_by_keys(&self, has_key: impl FnOnce(&[u64]) -> bool) -> bool {
        self.keys.is_none_or(has_key)
    }

    /// Whether a way with one of the wanted keys may be visited. `index` is its index among the objects of the block.
    pub(super) fn may_visit(&self, index: usize) -> bool {
        match self.selected {
            Selected::All => true,
            Selected::None => false,
            Selected::Listed(list) => !self.is_plain || list.get(index) != Some(&false),
        }
    }
}
