//! What becomes of the objects of a block, in one output or in several.

use std::collections::BTreeMap;

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It goes.
    Drop,
    /// It stays.
    Whole,
    /// It stays without its tags.
    Untagged,
}

impl Keep {
    /// `Whole` or `Drop`.
    pub(crate) const fn whole_if(kept: bool) -> Self {
        if kept { Self::Whole } else { Self::Drop }
    }
}

/// The number of objects that share their fate, in the [`Marks`] of a block.
pub(crate) type Class = u32;

/// What becomes of each object of a block, in order. Objects that share their fate are of one class.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// For each class the outputs that keep its objects, and how.
    classes: Vec<Vec<(u32, Keep)>>,
    objects: Vec<Class>,
}

impl Marks {
    /// Forgets all, and makes a class for each [`Keep`] in the one output that there is.
    pub(crate) fn start_one_output(&mut self) {
        self.clear();
        let keeps = [Keep::Drop, Keep::Whole, Keep::Untagged];
        self.classes.extend(keeps.map(|keep| vec![(0, keep)]));
    }

    pub(crate) fn clear(&mut self) {
        self.classes.clear();
        self.objects.clear();
    }

    /// The next object's fate, where there is one output.
    #[inline]
    pub(crate) fn push(&mut self, keep: Keep) {
        self.objects.push(keep as Class);
    }

    /// A class of objects that some outputs keep whole. Outputs that are not named keep nothing of it.
    pub(crate) fn add_class(&mut self, outputs: impl IntoIterator<Item = u32>) -> Class {
        let outputs = outputs.into_iter().map(|output| (output, Keep::Whole));
        self.classes.push(outputs.collect());
        self.classes.len() as Class - 1
    }

    /// The next object's class.
    #[inline]
    pub(crate) fn push_class(&mut self, class: Class) {
        self.objects.push(class);
    }

    /// The class of each object.
    pub(crate) fn objects(&self) -> &[Class] {
        &self.objects
    }

    /// The outputs that keep something, ascending.
    pub(crate) fn outputs(&self) -> Vec<OutputMarks> {
        let mut counts = vec![0; self.classes.len()];
        for class in &self.objects {
            if let Some(count) = counts.get_mut(*class as usize) {
                *count += 1;
            }
        }
        let mut outputs = BTreeMap::<u32, OutputMarks>::new();
        for (class, (keeps, count)) in self.classes.iter().zip(counts).enumerate() {
            for &(output, keep) in keeps {
                if keep == Keep::Drop || count == 0 {
                    continue;
                }
                let marks = outputs.entry(output).or_insert_with(|| OutputMarks {
                    output,
                    classes: vec![Keep::Drop; self.classes.len()],
                    kept: 0,
                    strips_tags: false,
                });
                marks.kept += count;
                marks.strips_tags |= keep == Keep::Untagged;
                if let Some(of_class) = marks.classes.get_mut(class) {
                    *of_class = keep;
                }
            }
        }
        outputs.into_values().collect()
    }

    /// What to do with the classes of a block's objects, where some outputs are looked at alone.
    pub(crate) fn by_class(&self, outputs: &[OutputMarks]) -> Vec<Vec<(usize, Keep)>> {
        let of_class = |class: usize| {
            let keeps = outputs.iter().map(|marks| marks.of(class as Class));
            let keeps = keeps.enumerate().filter(|(_, keep)| *keep != Keep::Drop);
            keeps.collect()
        };
        (0..self.classes.len()).map(of_class).collect()
    }
}

/// What one output keeps of a block: at least one object.
#[derive(Debug)]
pub(crate) struct OutputMarks {
    /// Its number.
    pub output: u32,
    /// How many objects it keeps.
    pub kept: usize,
    /// Whether it takes the tags from any.
    pub strips_tags: bool,
    classes: Vec<Keep>,
}

impl OutputMarks {
    /// What becomes of objects of a class.
    pub(crate) fn of(&self, class: Class) -> Keep {
        let keep = self.classes.get(class as usize);
        keep.copied().unwrap_or(Keep::Drop)
    }
}
