//! The interface of an output of features, and the data that an output needs. Each format has its own output.

use crate::area::WayStore;
use crate::error::{FormatResult, Result};
use crate::formats::features::Feature;
use crate::geometry::Extent;
use crate::pbf::{Block, Relation};

/// Takes the features that a thread makes. Each thread has its own output.
pub(super) trait FeatureOutput {
    /// A part of the output. The thread that runs the export gets the parts in file order.
    type Part: Send;

    /// Takes a feature. `extent` is the box around it, and `relation` the relation from which an area was made. Returns
    /// the themes for which the feature is counted, as a set of bits. Without themes, only bit 0 is set. No bit is set
    /// if features are not counted.
    fn put(
        &mut self,
        feature: &Feature<'_>,
        extent: &Extent,
        relation: Option<&Relation<'_>>,
    ) -> u64;

    /// Returns the next part, or `None` if none is ready. At the end of a blob, `is_end` is true, and all remaining
    /// features are ready.
    fn take(&mut self, _is_end: bool) -> FormatResult<Option<Self::Part>> {
        Ok(None)
    }

    /// Passes on features that are written later, such as rows for a sorter. Called after the parts of a blob were
    /// sent. May block.
    fn flush(&mut self) {}

    /// Fails if features that were passed on earlier could not be stored.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The requirements of an output, in addition to the feature rules.
#[derive(Default)]
pub(super) struct FeatureNeeds<'a> {
    /// Whether features are written with metadata.
    pub info: bool,
    /// Whether lines of ways are written with the ids of their nodes.
    pub way_nodes: bool,
    /// The names of the themes; empty if the output has no themes.
    pub themes: Vec<String>,
    /// The collector of relations. It gets the relations that it selects, whether or not they become features. `None`
    /// if the output collects no relations.
    pub relations: Option<&'a dyn RelationCollector>,
}

/// Collects facts about relations from all threads.
pub(super) trait RelationCollector: Sync {
    /// Sets the values of the collected relations in `selected` to true. `selected` has a value for each object of a
    /// block, in file order.
    fn select(&self, block: &Block<'_>, selected: &mut [bool]) -> FormatResult<()>;

    /// Adds a relation, if it is collected. `ways` has its member ways.
    fn add(&self, relation: &Relation<'_>, ways: &WayStore);
}
