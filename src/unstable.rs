//! The internal layers of the crate, for its tests and benchmarks. Available with the feature `unstable`. May change
//! without notice.

/// Assembly of polygons.
pub mod area {
    pub use crate::area::*;
}
/// PBF files, with plans, blobs, passes and writers.
pub mod file {
    pub use crate::file::*;
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
    pub use crate::pbf::*;
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
