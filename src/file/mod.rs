//! Opens PBF files, plans passes with an index, reads blobs, and writes new files.
//!
//! [`PbfFile`] opens a file, [`BlobPlan`] lists the contents of each of its blobs, [`BlobDecoder`] reads and
//! decompresses blobs, and [`PbfWriter`] writes blobs and a table of contents.

mod blob_decoder;
mod blob_pass;
mod blob_plan;
mod blob_stream;
mod file_part;
mod file_toc;
mod frame_start;
mod header_prefetch;
mod header_walker;
mod id_table;
mod id_table_parts;
mod kind_search;
mod last_blobs;
mod object_order;
mod pbf_file;
mod pbf_writer;
mod planned_file;
mod write_options;

pub use blob_decoder::BlobDecoder;
pub(crate) use blob_decoder::completed_entry;
pub(crate) use blob_pass::BlobPass;
pub(crate) use blob_plan::PlanItem;
pub use blob_plan::{BlobPlan, IndexKind, PlanNeeds};
pub use blob_stream::{BlobStream, DataBlob, DataBlock};
pub(crate) use file_part::divide_blobs;
pub use file_part::{FilePart, Parts};
pub(crate) use file_toc::read_toc_tail;
pub(crate) use frame_start::{FrameStart, find_frame_in_range, read_blob_message};
pub use header_walker::{FrameHead, HeaderWalker};
pub use pbf_file::PbfFile;
pub(crate) use pbf_file::{
    TextChangesets, TocNeeds, begins_with_header_frame, guess_binary_format, refuse_compressed_pbf,
};
pub use pbf_writer::{PbfWriter, Written};
pub(crate) use planned_file::PlannedFile;
pub use write_options::{BlobHistory, BlobLocations, WriteOptions};
