//! The internal layers of the crate, for its tests and benchmarks. Available with the feature `unstable`. May change
//! without notice.

/// Assembly of polygons.
pub mod area {
    pub use crate::area::*;
}
/// System calls that fail on demand.
#[cfg(all(feature = "faults", unix))]
pub mod faults {
    pub use crate::system::Call;
    pub use crate::system::faults::{CallFault, Faults};
}
/// Coastlines, and the land on their left.
pub mod coast {
    pub use crate::coast::*;
}
/// PBF files, with plans, blobs, passes and writers.
pub mod file {
    pub use crate::file::*;
    use crate::pbf::{Toc, TocFlags, TocSummary};

    /// Returns the table of contents of a file; `None` if the file has none, or only one that does not fit the file.
    pub const fn toc_of(file: &PbfFile) -> Option<&Toc> {
        file.toc.as_ref()
    }

    /// Returns the summary of a table of contents with the entries of a plan; `None` if a blob has objects of several
    /// kinds, or facts about a blob are unknown.
    pub fn summary_of(plan: &BlobPlan, flags: TocFlags) -> Option<TocSummary> {
        plan.summary(flags)
    }
}
/// Formats other than PBF.
pub mod formats {
    pub use crate::formats::*;
}
/// Shapes and an index of regions.
pub mod geometry {
    pub use crate::geometry::*;
}
/// Sets and maps of ids, stores of locations, and sorters of rows.
pub mod index {
    pub use crate::index::*;
}
/// Inputs and outputs.
pub mod io {
    pub use crate::io::*;
}
/// Files on web servers.
pub mod net {
    pub use crate::net::*;
}
/// Ids, kinds, locations, times and tag expressions.
pub mod osm {
    pub use crate::osm::*;
}
/// The PBF format over byte slices.
pub mod pbf {
    use crate::error::FormatError;
    pub use crate::pbf::*;

    /// Returns the flags of an entry.
    pub const fn flags_mut(entry: &mut BlobEntry) -> &mut BlobFlags {
        &mut entry.flags
    }

    /// Returns the statistics of an entry; `None` if they are unknown.
    pub const fn statistics_mut(entry: &mut BlobEntry) -> Option<&mut ObjectStatistics> {
        entry.statistics.as_mut()
    }

    /// Reads a HeaderBlock, and finds its fields about the table of contents.
    pub fn parse_header(message: &[u8]) -> Result<(HeaderBlock, TocFields<'_>), FormatError> {
        HeaderBlock::parse(message)
    }
}
/// Readers of region files.
pub mod region_file {
    pub use crate::region_file::*;
}
/// Replication servers, with their states and change files.
pub mod replication {
    pub use crate::replication::*;
}
/// Contexts, progress and parallel phases.
pub mod runtime {
    pub use crate::runtime::*;
}
