//! The PBF format over byte slices.
//!
//! Nothing in here opens a file or starts a thread, so every function can be tested and fuzzed on
//! plain bytes. The format is defined by `fileformat.proto` and `osmformat.proto` and described on
//! the OSM wiki page "PBF Format"; `reference/format.md` describes what this crate adds to it.

mod blob_index;
mod block;
mod block_builder;
mod block_encoder;
mod codec;
mod columns;
mod contents;
mod deflate_end;
mod dense;
mod dense_iter;
mod element;
mod element_view;
mod entry;
mod frame;
mod frame_encoder;
mod header;
mod header_frame;
mod huffman;
mod id_facts;
mod id_table;
mod intern;
mod keys;
mod limits;
mod list;
mod literal_block;
mod message_list;
mod messages;
mod node_locations;
mod object;
mod outline;
mod raw_element;
mod rewrite;
mod scan;
mod schema;
mod segments;
mod statistics;
mod string_faults;
mod strings_blob;
mod toc;
mod toc_blob;
mod toc_summary;
mod verify;
pub mod wire;
mod zlib_stored;

pub use blob_index::{BLOB_INDEX_LEN, decode_blob_index, encode_blob_index};
pub use block::Block;
pub(crate) use block::PART_LEN;
pub(crate) use block_builder::{BlockBuilder, EncodedBlock};
pub use block_encoder::{BlockEncoder, TARGET_ELEMENTS, TARGET_PAYLOAD};
pub use codec::{Compression, Compressor, Decompressor};
pub(crate) use dense::Delta;
pub use dense::DenseNodes;
pub use dense_iter::DenseNodesIter;
pub use element::{Element, Info, Member, Members, Node, Refs, Relation, Tags, Way};
pub use entry::{BlobEntry, BlobFlags};
pub(crate) use frame::encode_blob_header;
pub use frame::{
    Blob, BlobHeader, BlobKind, Encoding, FRAME_PREFIX_LEN, MAX_BLOB_HEADER_LEN, MAX_BLOB_LEN,
    MAX_PAYLOAD_LEN, encode_frame, plain_header_len,
};
pub use frame_encoder::{EncodedFrame, FrameEncoder};
pub(crate) use header::TextFacts;
pub use header::{HeaderBlock, REQUIRED_FEATURES_KNOWN, TocFields, feature};
pub use header_frame::{header_frame, reserved_header_len, stream_header_frame};
pub use id_table::{
    ID_TABLE_TAIL_LEN, IdDirectory, IdRange, IdSection, IdTableBuilder, MAX_TABLE_FRAME_LEN,
    id_fingerprint,
};
pub use intern::{Interner, SourceStrings};
pub(crate) use keys::{ElementKeys, VersionInfo};
pub use outline::{BlockUnits, Group, Message, StringTable};
pub(crate) use raw_element::{RawElement, RawElements};
pub(crate) use verify::{stale_index, verify_entry};

pub(crate) use contents::ContentFacts;
pub(crate) use element_view::ElementView;
pub use list::List;
pub use object::{Object, ObjectBody};
pub(crate) use rewrite::{
    EditOp, EditScript, NewIds, Relocated, SpliceOptions, WayNodes, locate_ways, patch_ids,
    put_kept_block, put_kept_messages, relocate_ways, splice_block,
};
pub use rewrite::{InfoFields, clean_block};
pub(crate) use scan::scan_counts;
pub use scan::scan_payload;
pub(crate) use segments::{BlobSegments, Segmented, ends_as_segments};
pub(crate) use statistics::ObjectCounts;
pub use statistics::ObjectStatistics;
pub(crate) use string_faults::{ContentFault, check_strings, content_faults};
pub use strings_blob::{is_table_blob, may_be_table_blob};
pub use toc::{Toc, TocFlags, encode_toc};
pub use toc_blob::{TOC_TAIL_LEN, TocPointer, TocReader, encode_toc_frames, find_toc, is_toc_blob};
pub use toc_summary::TocSummary;
pub(crate) use toc_summary::{KindTotals, SAMPLE_BLOBS, sample_indices};
