//! The look-up of the locations of nodes.

use crate::engine::IndexType;
use crate::engine::geometry_pass::LocationsInWays;
use crate::engine::way_locations::LocateOptions;
use std::path::PathBuf;

options! {
    /// The options for looking up the locations of the nodes of ways.
    #[derive(Debug, Clone, Default)]
    #[non_exhaustive]
    pub struct LookupOptions {
    }
    setters {
        /// The use of the locations that ways store.
        locations_in_ways: LocationsInWays,
        /// The method used to look up node locations. It has no effect if all ways of the input have locations.
        index_type: IndexType,
        /// The directory for temporary files. `None` means the directory of the output, or the system's temporary
        /// directory if there is no output or the output is a stream.
        temp_dir: Option<PathBuf>,
        /// The maximum memory in bytes for locations; `None` for four fifths of the available memory, at most 7
        /// GiB. The maximum size of a feature or a row is 64 MB for each GB of this memory; with `None`, it is 64 MB.
        max_memory: Option<u64>,
    }
}

impl LookupOptions {
    /// Returns the use of the locations in ways, and the options for looking up other locations. `temp_dir` is the
    /// directory for temporary files if the options name none.
    pub(super) fn locate_options(
        &self,
        temp_dir: impl FnOnce() -> PathBuf,
    ) -> (LocationsInWays, LocateOptions) {
        let temp_dir = self.temp_dir.clone().unwrap_or_else(temp_dir);
        let locate = LocateOptions::new(self.index_type, temp_dir, self.max_memory);
        (self.locations_in_ways, locate)
    }
}
