//! Edit scripts. A script states which objects of a block are kept or dropped, and where new objects are inserted.

/// One step of an edit script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditOp {
    /// Keeps the given number of objects.
    Keep(usize),
    /// Drops the given number of objects.
    Drop(usize),
    /// Inserts the new object with the given index.
    Insert(usize),
}

/// The steps that edit a block, from its first object to its last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditScript(Vec<EditOp>);

impl EditScript {
    /// Returns the script that keeps each object for which `objects` yields `true`, and drops the others. `objects`
    /// yields one value per object, in block order.
    pub(crate) fn from_kept_flags(objects: impl IntoIterator<Item = bool>) -> Self {
        let mut script = Self::default();
        for stays in objects {
            if stays {
                script.keep()
            } else {
                script.remove()
            }
        }
        script
    }

    /// Keeps the next object.
    pub fn keep(&mut self) {
        self.keep_many(1);
    }

    /// Keeps the given number of objects.
    pub(crate) fn keep_many(&mut self, more: usize) {
        match self.0.last_mut() {
            Some(EditOp::Keep(count)) => *count += more,
            _ => self.0.push(EditOp::Keep(more)),
        }
    }

    /// Drops the next object.
    pub fn remove(&mut self) {
        match self.0.last_mut() {
            Some(EditOp::Drop(count)) => *count += 1,
            _ => self.0.push(EditOp::Drop(1)),
        }
    }

    /// Inserts the new object with the given index before the next object of the block.
    pub fn insert(&mut self, index: usize) {
        self.0.push(EditOp::Insert(index));
    }

    /// Returns the steps in order.
    pub fn steps(&self) -> &[EditOp] {
        &self.0
    }

    /// Whether the script keeps all objects and inserts none.
    pub fn is_unchanged(&self) -> bool {
        self.0.iter().all(|edit| matches!(edit, EditOp::Keep(_)))
    }

    /// Returns the number of objects in the edited block.
    pub fn edited_object_count(&self) -> usize {
        let count = |edit: &EditOp| match edit {
            EditOp::Keep(count) => *count,
            EditOp::Drop(_) => 0,
            EditOp::Insert(_) => 1,
        };
        self.0.iter().map(count).sum()
    }

    /// Returns the steps without a final drop. The objects that a final drop removes need not be read.
    pub(super) fn steps_without_final_drop(&self) -> &[EditOp] {
        match self.steps() {
            [steps @ .., EditOp::Drop(_)] => steps,
            steps => steps,
        }
    }

    /// Whether step `index` is the last.
    pub(super) fn is_last(&self, index: usize) -> bool {
        index + 1 == self.0.len()
    }
}
