//! The rule for the locations of ways: which locations a file has for the nodes of its ways, and which of these a
//! command uses.
//!
//! If the node of a reference is in the file, or in the changes that are applied to the file, the location of the
//! reference is that of the node. Otherwise it is the location that the way stores. If the way stores none, the
//! location is unknown.

use crate::file::{BlobPlan, PbfFile};
use crate::osm::Location;
use crate::pbf::{BlobFlags, HeaderBlock, feature};

/// The form of a file with regard to the locations of its ways. The form decides what a command can skip, but does not
/// affect its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocationForm {
    /// No way stores locations. All locations are those of nodes.
    Plain,
    /// Ways store locations, and the header declares that no nodes of ways were left out.
    AllNodes,
    /// Ways store locations, and the header declares that the nodes which only ways need were left out.
    NeededNodes,
    /// Some ways store locations, and the file may have only some of the nodes of ways. The header says so, or does not
    /// declare which nodes the file has. Files to which other programs added locations have this form. Files that were
    /// merged from files of several forms have it, too.
    Mixed,
}

impl LocationForm {
    /// Determines the form of a file from its header and from the entries of its blobs.
    pub(crate) fn of(file: &PbfFile, plan: &BlobPlan) -> Self {
        Self::of_header(&file.header, plan.has_entry_with_flag(BlobFlags::LOCATIONS))
    }

    /// Determines the form from a header. `has_locations` tells whether a way is known to store locations. The header
    /// need not declare this.
    pub(crate) fn of_header(header: &HeaderBlock, has_locations: bool) -> Self {
        let declares = |name| header.has(name);
        match (
            declares(feature::ALL_NODES),
            declares(feature::NEEDED_NODES),
        ) {
            _ if !has_locations && !declares(feature::LOCATIONS) => Self::Plain,
            _ if declares(feature::SOME_NODES) => Self::Mixed,
            (true, false) => Self::AllNodes,
            (false, true) => Self::NeededNodes,
            _ => Self::Mixed,
        }
    }

    /// Whether a way may store the location of a node that the file does not have. If not, a command that looks up the
    /// nodes does not have to read the locations in ways.
    pub(crate) const fn may_lack_nodes(self) -> bool {
        matches!(self, Self::NeededNodes | Self::Mixed)
    }

    /// Returns the name of the form, which reports and documents use.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::AllNodes => "located, with all nodes",
            Self::NeededNodes => "located, needed nodes only",
            Self::Mixed => "mixed",
        }
    }

    /// Whether ways store locations.
    pub(crate) const fn has_locations(self) -> bool {
        !matches!(self, Self::Plain)
    }
}

/// Returns the location of a node reference. `node` is the location of the node in the file or in the changes. `stored`
/// is the location that the way stores.
pub(crate) fn location_of_reference(
    node: Option<Location>,
    stored: Option<Location>,
) -> Option<Location> {
    node.or(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(features: &[&str], has_locations: bool) -> LocationForm {
        let mut header = HeaderBlock::default();
        for name in features {
            header.set_optional(name, true);
        }
        LocationForm::of_header(&header, has_locations)
    }

    #[test]
    fn the_header_and_the_entries_tell_the_form() {
        let located = feature::LOCATIONS;
        let [all, needed, some] = feature::NODES_OF_WAYS;
        assert_eq!(form(&[], false), LocationForm::Plain);
        assert_eq!(form(&[all], false), LocationForm::Plain);
        assert_eq!(form(&[], true), LocationForm::Mixed);
        assert_eq!(form(&[located], false), LocationForm::Mixed);
        assert_eq!(form(&[located, all], false), LocationForm::AllNodes);
        assert_eq!(form(&[located, needed], true), LocationForm::NeededNodes);
        assert_eq!(form(&[located, all, needed], true), LocationForm::Mixed);
        assert_eq!(form(&[located, some], true), LocationForm::Mixed);
        assert_eq!(form(&[located, needed, some], true), LocationForm::Mixed);
    }
}
