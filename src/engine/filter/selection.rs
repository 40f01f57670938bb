//! The selection of the objects of a block, for one output or for several.

use std::collections::BTreeMap;

/// The decision about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    /// The object is dropped.
    Drop,
    /// The object is kept.
    Whole,
    /// The object is kept without its tags.
    Untagged,
}

impl Selected {
    /// Returns `Whole` if `kept`, otherwise `Drop`.
    pub(crate) const fn whole_if(kept: bool) -> Self {
        if kept { Self::Whole } else { Self::Drop }
    }
}

/// The index of a group in a [`Selection`]. An output makes the same decision about all objects of a group.
pub(crate) type GroupId = u32;

/// The decisions about the objects of a block. Objects with the same decisions in all outputs form a group.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// For each group, the indices of outputs and their decisions about the objects of the group. Outputs that are not
    /// listed drop these objects.
    groups: Vec<Vec<(u32, Selected)>>,
    /// The group of each object, in file order.
    objects: Vec<GroupId>,
}

impl Selection {
    /// Clears the selection, and adds a group for each variant of [`Selected`], for a single output. The id of a group
    /// is the discriminant of its variant.
    pub(crate) fn start_one_output(&mut self) {
        self.clear();
        let keeps = [Selected::Drop, Selected::Whole, Selected::Untagged];
        self.groups.extend(keeps.map(|keep| vec![(0, keep)]));
    }

    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.objects.clear();
    }

    /// Adds the decision of a single output about the next object. [`start_one_output`](Self::start_one_output) must
    /// have been called before.
    #[inline]
    pub(crate) fn push(&mut self, keep: Selected) {
        self.objects.push(keep as GroupId);
    }

    /// Adds a group whose objects are kept whole by `outputs` and dropped by all other outputs. Returns the id of the
    /// group.
    pub(crate) fn add_group(&mut self, outputs: impl IntoIterator<Item = u32>) -> GroupId {
        let outputs = outputs.into_iter().map(|output| (output, Selected::Whole));
        self.groups.push(outputs.collect());
        self.groups.len() as GroupId - 1
    }

    /// Adds the next object, which belongs to `group`.
    #[inline]
    pub(crate) fn push_in_group(&mut self, group: GroupId) {
        self.objects.push(group);
    }

    /// Returns the group of each object, in file order.
    pub(crate) fn object_groups(&self) -> &[GroupId] {
        &self.objects
    }

    /// Returns the selections of the outputs that keep at least one object, in ascending order of the outputs' indices.
    pub(crate) fn outputs(&self) -> Vec<OutputSelection> {
        let mut counts = vec![0; self.groups.len()];
        for group in &self.objects {
            counts[*group as usize] += 1;
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
                selection.groups[group] = keep;
            }
        }
        outputs.into_values().collect()
    }

    /// Returns, for each group, a list of the selections in `outputs` that keep the objects of the group. Each item of
    /// the list is the index of a selection and its decision about the group.
    pub(crate) fn decisions_by_group(
        &self,
        outputs: &[OutputSelection],
    ) -> Vec<Vec<(usize, Selected)>> {
        let decision = |group: usize| {
            let keeps = outputs
                .iter()
                .map(|selection| selection.decision_for(group as GroupId));
            let keeps = keeps
                .enumerate()
                .filter(|(_, keep)| *keep != Selected::Drop);
            keeps.collect()
        };
        (0..self.groups.len()).map(decision).collect()
    }
}

/// The decisions of one output about the objects of a block. The output keeps at least one object.
#[derive(Debug)]
pub(crate) struct OutputSelection {
    /// The index of the output.
    pub output: u32,
    /// The number of objects that the output keeps.
    pub kept: usize,
    /// Whether the output removes the tags of at least one object that it keeps.
    pub strips_tags: bool,
    /// The decision about the objects of each group.
    groups: Vec<Selected>,
}

impl OutputSelection {
    /// Returns the decision about the objects of a group.
    pub(crate) fn decision_for(&self, group: GroupId) -> Selected {
        self.groups[group as usize]
    }
}
