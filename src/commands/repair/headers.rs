//! The header of the repaired file.

use super::report::Report;
use super::survey::Survey;
use crate::file::PbfFile;
use crate::pbf::{HeaderBlock, feature};

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
    }
    header.set_required(feature::SCHEMA, true);
    header.set_required(feature::DENSE_NODES, true);
    if survey.has_deleted {
        header.set_required(feature::HISTORY, true);
    }
    header.set_optional(feature::LOCATIONS, survey.has_locations);
    header.set_optional(feature::SORTED, true);
    if !report.is_complete() {
        match other {
            Some(other) if report.is_taken_from(other) => {
                // The objects of the other file may be older. The changes since then bring all of them up to date.
                let (one, two) = (header.clone(), &other.header);
                header.replication_sequence =
                    older(one.replication_sequence, two.replication_sequence);
                header.replication_timestamp =
                    older(one.replication_timestamp, two.replication_timestamp);
            }
            _ => drop_replication(&mut header),
        }
    }
    report.keeps_replication = header.has_replication();
    report.replication_sequence = header.replication_sequence;
    header
}

fn older(one: Option<i64>, two: Option<i64>) -> Option<i64> {
    Some(one?.min(two?))
}

fn drop_replication(header: &mut HeaderBlock) {
    header.replication_sequence = None;
    header.replication_timestamp = None;
    header.replication_url = None;
}

impl Report {
    /// Whether another file has replication state, and everything that was lost can be taken from it.
    fn is_taken_from(&self, other: &PbfFile) -> bool {
        !self.changes.is_lossy() && other.header.has_replication()
    }
}
