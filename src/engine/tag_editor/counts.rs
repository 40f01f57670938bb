//! Counts of the objects that rules change.

use crate::osm::ObjectId;
use serde::Serialize;

/// The effect of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleCount {
    /// The rule.
    pub rule: String,
    /// The number of objects that the rule changed. In a history, each version counts.
    pub objects: u64,
    /// The first of these objects, three at most.
    pub examples: Vec<String>,
}

/// The number of examples for each rule.
const EXAMPLES: usize = 3;

/// The numbers of objects that were changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct EditCounts {
    /// The number of objects whose tags were changed.
    pub objects: u64,
    /// For each step, the number of objects that it changed, and the first few of these objects. Steps at the end that
    /// changed nothing are left out.
    steps: Vec<(u64, Vec<ObjectId>)>,
}

impl EditCounts {
    /// Adds an object that the step with index `step` changed.
    pub(super) fn add(&mut self, step: usize, object: ObjectId) {
        if self.steps.len() <= step {
            self.steps.resize(step + 1, (0, Vec::new()));
        }
        let (count, examples) = &mut self.steps[step];
        *count += 1;
        if examples.len() < EXAMPLES && !examples.contains(&object) {
            examples.push(object);
        }
    }

    /// Adds the counts of objects that follow in the file.
    pub(crate) fn merge(&mut self, later: Self) {
        self.objects += later.objects;
        if self.steps.len() < later.steps.len() {
            self.steps.resize(later.steps.len(), (0, Vec::new()));
        }
        for ((count, examples), (more, others)) in self.steps.iter_mut().zip(later.steps) {
            *count += more;
            for object in others {
                if examples.len() < EXAMPLES && !examples.contains(&object) {
                    examples.push(object);
                }
            }
        }
    }

    /// Returns the name and the effect of each step. `names` are the names of all steps, in order.
    pub(crate) fn rule_counts<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<RuleCount> {
        let counts = self.steps.iter().map(Some).chain(std::iter::repeat(None));
        let rules = names.zip(counts).map(|(name, count)| RuleCount {
            rule: name.to_owned(),
            objects: count.map_or(0, |(objects, _)| *objects),
            examples: count.map_or_else(Vec::new, |(_, examples)| {
                examples.iter().map(ToString::to_string).collect()
            }),
        });
        rules.collect()
    }
}
