//! The components that commands share. They open inputs, pass over blobs, select objects, follow references, merge
//! sorted files, and write files.

pub(crate) mod block_matcher;
pub(crate) mod block_observer;
pub(crate) mod block_packer;
pub(crate) mod changesets;
pub(crate) mod distinct_list;
pub(crate) mod element_reader;
pub(crate) mod element_writer;
pub(crate) mod feature_reader;
pub(crate) mod filter;
pub(crate) mod geometry_pass;
pub(crate) mod geometry_problem;
pub(crate) mod headers;
pub(crate) mod id_search;
pub(crate) mod input;
pub(crate) mod input_content;
pub(crate) mod location_form;
pub(crate) mod object_batches;
pub(crate) mod object_geometry;
pub(crate) mod object_row;
pub(crate) mod object_selection;
mod output_chunk;
pub(crate) mod output_options;
pub(crate) mod partial_blob_cache;
pub(crate) mod payload_cache;
pub(crate) mod references;
pub(crate) mod repeat_count;
pub(crate) mod repeats;
pub(crate) mod rewrite;
pub(crate) mod scan;
pub(crate) mod shards;
pub(crate) mod sink;
pub(crate) mod sort;
pub(crate) mod stored_locations;
pub(crate) mod tag_editor;
pub(crate) mod text_sink;
mod text_versions;
pub(crate) mod way_locations;
pub(crate) mod way_search;

pub(crate) use block_packer::Encoders;
pub use element_reader::ElementReader;
pub use element_writer::ElementWriter;
pub use feature_reader::{Feature, FeatureReader, Form, Geometry};
pub(crate) use filter::{GroupId, Selected, Selection};
pub use headers::{HeaderOption, HeaderOptions, InheritedFields, KeptField};
pub use object_batches::BatchMaker;
pub use object_selection::ObjectSelection;
pub use output_options::{Format, OutputOptions};
pub use sink::WriteSummary;
pub use tag_editor::{RuleCount, TagTable};
pub use way_locations::IndexType;

use crate::error::Result;
use crate::file::PbfFile;
use crate::io::SizeHint;
use crate::runtime::Context;
use std::path::Path;

/// Opens a file in any format: PBF, OSM XML, OsmChange, OPL, o5m or o5c, compressed or not. A file that is not PBF is
/// first converted to an unnamed temporary PBF file. The deletions of a change file become deleted versions.
///
/// # Errors
///
/// The file cannot be opened, is not OSM data or is damaged, or the temporary file cannot be written.
pub fn open_any(path: impl AsRef<Path>, ctx: &Context) -> Result<ElementReader> {
    let file = input::open(path.as_ref(), ctx)?;
    Ok(ElementReader::of_file(file, ctx.clone()))
}

/// Returns the size hint for a copy of all data blobs of a file.
pub(crate) fn copy_size_hint(file: &PbfFile) -> SizeHint {
    SizeHint::copy_of(file.data_start, file.data_end - file.data_start)
}
