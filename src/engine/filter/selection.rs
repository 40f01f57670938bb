//! What becomes of the objects of a block, in one output or in several.

use std::collections::BTreeMap;

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    /// It goes.
    Drop,
    /// It stays.
    Whole,
    /// It stays without its tags.
    Untagged,
}

impl Selected {
    /// `Whole` or `Drop`.
    pub(crate) const fn whole_if(kept: bool) -> Self {
        if kept { Self::Whole } else { Self::Drop }
    }
}

/// The number of objects that share their decision, in the [`Selection`] of a block.
pub(crate) type GroupId = u32;

/// What becomes of each object of a block, in order. Objects that share their decision are of one group.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// For each group the outputs that keep its objects, and how.
    groups: Vec<Vec<(u32, Selected)>>,
    objects: Vec<GroupId>,
}

impl Selection {
    /// Forgets all, and makes a group for each [`Selected`] in the one output that there is.
    pub(crate) fn start_one_output(&mut self) {
        self.clear();
        let keeps = [Selected::Drop, Selected::Whole, Selected::Untagged];
        self.groups.extend(keeps.map(|keep| vec![(0, keep)]));
    }

    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.objects.clear();
    }

    /// The next object's decision, where there is one output.
    #[inline]
    pub(crate) fn push(&mut self, keep: Selected) {
        self.objects.push(keep as GroupId);
    }

    /// A group of objects that some outputs keep whole. Outputs that are not named keep nothing of it.
    pub(crate) fn add_group(&mut self, outputs: impl IntoIterator<Item = u32>) -> GroupId {
        let outputs = outputs.into_iter().map(|output| (output, Selected::Whole));
        self.groups.push(outputs.collect());
        self.groups.len() as GroupId - 1
    }

    /// The next object's group.
    #[inline]
    pub(crate) fn push_in_group(&mut self, group: GroupId) {
        self.objects.push(group);
    }

    /// The group of each object.
    pub(crate) fn objects(&self) -> &[GroupId] {
        &self.objects
    }

    /// The outputs that keep something, ascending.
    pub(crate) fn outputs(&self) -> Vec<OutputSelection> {
        let mut counts = vec![0; self.groups.len()];
        for group in &self.objects {
            if let Some(count) = counts.get_mut(*group as usize) {
                *count += 1;
            }
        }
        let mut outputs = BTreeMap::<u32, OutputSelection>::new();
        for (group, (keeps, count)) in self.groups.iter().zip(counts).enumerate() {
            for &(output, keep) in keeps {
                if keep == Selected::Drop || count == 0 {
                    continue;
                }
                let selection = outputs.entry(output).or_insert_with(|| OutputSelection {
                    output,
                    groups: vec![Selected::Drop; self.groups.len()],
                    kept: 0,
                    strips_tags: false,
                });
                selection.kept += count;
                selection.strips_tags |= keep == Selected::Untagged;
                if let Some(of_class) = selection.groups.get_mut(group) {
                    *of_class = keep;
                }
            }
        }
        outputs.into_values().collect()
    }

    /// What to do with the groups of a block's objects, where some outputs are looked at alone.
    pub(crate) fn by_group(&self, outputs: &[OutputSelection]) -> Vec<Vec<(usize, Selected)>> {
        let of_class = |group: usize| {
            let keeps = outputs
                .iter()
                .map(|selection| selection.of(group as GroupId));
            let keeps = keeps
                .enumerate()
                .filter(|(_, keep)| *keep != Selected::Drop);
            keeps.collect()
        };
        (0..self.groups.len()).map(of_class).collect()
    }
}

/// What one output keeps of a block: at least one object.
#[derive(Debug)]
pub(crate) struct OutputSelection {
    /// Its number.
    pub output: u32,
    /// How many objects it keeps.
    pub kept: usize,
    /// Whether it takes the tags from any.
    pub strips_tags: bool,
    groups: Vec<Selected>,
}

impl OutputSelection {
    /// What becomes of objects of a group.
    pub(crate) fn of(&self, group: GroupId) -> Selected {
        let keep = self.groups.get(group as usize);
        keep.copied().unwrap_or(Selected::Drop)
    }
}
