//! The effect of changes on the coordinates in ways.

use crate::error::{Advice, display_path};
use crate::pbf::{Object, ObjectBody};
use crate::runtime::Context;
use serde::Serialize;
use std::path::Path;

/// The effect of changes on the coordinates in ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LocationsSummary {
    /// The number of ways that got new coordinates only because their nodes moved. The changes do not contain these
    /// ways.
    pub ways_moved: u64,
    /// The number of references to nodes without a location. In a changed way, a reference counts if the location of
    /// the node is unknown. In any other way, a reference counts if the node lost its location.
    pub missing_references: u64,
    /// The number of ways with at least one reference that `missing_references` counts.
    pub incomplete_ways: u64,
    /// The number of new or changed nodes that were left out. These nodes have no tags and are members of no relation.
    /// They are left out only if the base lacks such nodes, too.
    pub nodes_left_out: u64,
    /// The number of new or changed nodes that were kept, but have no tags and are members of no relation. They are
    /// recent, or a way needs them.
    pub nodes_kept: u64,
    /// The number of nodes of the base that were removed. A node is removed if it has become too old, or if no relation
    /// or way needs it any more.
    pub nodes_removed: u64,
    /// The number of nodes that became members of relations, but are neither in the base nor in the changes.
    pub members_missing: u64,
}

impl LocationsSummary {
    pub(super) fn add(&mut self, other: &Self) {
        self.ways_moved += other.ways_moved;
        self.missing_references += other.missing_references;
        self.incomplete_ways += other.incomplete_ways;
        self.nodes_left_out += other.nodes_left_out;
        self.nodes_kept += other.nodes_kept;
        self.nodes_removed += other.nodes_removed;
        self.members_missing += other.members_missing;
    }

    /// If an inserted object is a way, counts its references to nodes without a location.
    pub(super) fn count_inserted_object(&mut self, object: &Object<'_>) {
        if let ObjectBody::Way { locations, .. } = &object.body {
            let missing = locations.iter().filter(|location| location.is_none());
            let missing = missing.count() as u64;
            self.missing_references += missing;
            self.incomplete_ways += u64::from(missing > 0);
        }
    }

    /// Warns of nodes that are missing although ways or relations refer to them.
    pub(super) fn warn(&self, base: &Path, ctx: &Context) {
        let base = display_path(base);
        if self.missing_references > 0 {
            ctx.warn_with_advice(
                format!(
                    "{base}: {} of {} get no location, because neither the file nor the changes have the nodes",
                    format_count(self.missing_references, "reference"),
                    format_count(self.incomplete_ways, "way")
                ),
                Advice::UpdateAllNodes,
            );
        }
        if self.members_missing > 0 {
            ctx.warn(format!(
                "{base}: the file lacks {} that relations now refer to, because it was made without them",
                format_count(self.members_missing, "node")
            ));
        }
    }
}

/// Formats a number with a noun.
fn format_count(number: u64, singular: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {singular}{plural}")
}
