//! Ways that get another shape because their nodes move. The ways themselves do not change.

use crate::index::IdSet;

/// Ways, and the steps in which they get another shape. In such a step, nodes of the way move, and the way itself does
/// not change.
#[derive(Default)]
pub(super) struct Reshaped {
    ids: IdSet,
    /// Pairs of a way and a step, in order.
    steps: Vec<(i64, u32)>,
}

impl Reshaped {
    pub(super) fn new(mut steps: Vec<(i64, u32)>) -> Self {
        steps.sort_unstable();
        steps.dedup();
        Self {
            ids: steps.iter().map(|(way, _)| *way).collect(),
            steps,
        }
    }

    /// Returns the ids of the ways.
    pub(super) fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.ids.ids()
    }

    /// Calls `take` with the steps in which a way gets another shape.
    pub(super) fn for_each_step(&self, way: i64, take: impl FnMut(u32)) {
        if self.ids.contains(way) {
            let start = self.steps.partition_point(|(id, _)| *id < way);
            let of_way = self.steps[start..].iter().take_while(|(id, _)| *id == way);
            of_way.map(|(_, step)| *step).for_each(take);
        }
    }
}
