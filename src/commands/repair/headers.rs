//! The header of the repaired file.

use super::report::{Loss, Report};
use super::survey::Survey;
use crate::file::PbfFile;
use crate::pbf::{HeaderBlock, feature};
use crate::replication::is_same_server;

/// Returns the header of the output.
pub(super) fn header(survey: &Survey, report: &mut Report, other: Option<&PbfFile>) -> HeaderBlock {
    let mut header = survey.headers.first().cloned().unwrap_or_default();
    for more in survey.headers.iter().skip(1) {
        for name in &more.required_features {
            header.set_required(name, true);
        }
        if more.bbox_nano != header.bbox_nano {
            header.bbox_nano = None;
        }
        if (more.replication_sequence, more.replication_timestamp)
            != (header.replication_sequence, header.replication_timestamp)
        {
            drop_replication(&mut header);
        }
        let differs = |nodes: &str| more.has(nodes) != header.has(nodes);
        if feature::NODES_OF_WAYS.into_iter().any(differs) {
            remove_node_features(&mut header);
        }
    }
    header.set_required(feature::SCHEMA, true);
    header.set_required(feature::DENSE_NODES, true);
    if survey.has_deleted {
        header.set_required(feature::HISTORY, true);
    }
    // Other programs expect locations in all ways if the header declares this feature.
    if survey.has_locations && !survey.has_bare_ways {
        header.set_optional(feature::LOCATIONS, true);
    } else {
        header.declare_locations(None);
    }
    header.set_optional(feature::SORTED, true);
    if !report.is_complete() {
        remove_node_features(&mut header);
        match other {
            // The objects of the other file may be older. The output therefore gets the older replication state of the
            // two files, so that an update brings all objects up to date.
            Some(other)
                if report.can_restore_losses_from(other)
                    && have_same_server(&header, &other.header) =>
            {
                header.replication_sequence = min_if_both_some(
                    header.replication_sequence,
                    other.header.replication_sequence,
                );
                header.replication_timestamp = min_if_both_some(
                    header.replication_timestamp,
                    other.header.replication_timestamp,
                );
            }
            _ => drop_replication(&mut header),
        }
    }
    report.keeps_replication = header.has_replication();
    report.replication_sequence = header.replication_sequence;
    header
}

/// Returns the smaller of two numbers; `None` if one is missing.
fn min_if_both_some(one: Option<i64>, two: Option<i64>) -> Option<i64> {
    Some(one?.min(two?))
}

/// Removes the features that declare which nodes the file has.
fn remove_node_features(header: &mut HeaderBlock) {
    for nodes in feature::NODES_OF_WAYS {
        header.set_optional(nodes, false);
    }
}

/// Whether two headers have replication states of the same server. If neither header has a URL, this is assumed.
fn have_same_server(header: &HeaderBlock, other: &HeaderBlock) -> bool {
    match (&header.replication_url, &other.replication_url) {
        (Some(one), Some(two)) => is_same_server(one, two),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Removes the replication state.
fn drop_replication(header: &mut HeaderBlock) {
    header.replication_sequence = None;
    header.replication_timestamp = None;
    header.replication_url = None;
}

impl Report {
    /// Whether another file has a replication state, and everything that was lost can be taken from that file.
    fn can_restore_losses_from(&self, other: &PbfFile) -> bool {
        let has_ids = |loss: &Loss| loss.is_without_objects() || !loss.ids.is_empty();
        other.header.has_replication()
            && self.headers > 0
            && !self.changes.is_lossy()
            && self.lost.iter().all(has_ids)
    }
}
