//! The PBF format over byte slices: `frame` (blobs), `block` (objects as they are read), `encode` (new blocks),
//! `rewrite` (edits of encoded blocks), `segments` (compression in parts), `table` (indexes) and `wire` (protobuf).
//!
//! No function of this module opens a file or starts a thread, so each can be tested and fuzzed on plain bytes. The
//! format is defined by `fileformat.proto` and `osmformat.proto` and described on the OSM wiki page "PBF Format";
//! `reference/format.md` describes what this crate adds to it.

mod block;
mod encode;
mod frame;
mod rewrite;
mod segments;
mod table;
pub mod wire;

pub use block::dense::DenseNodes;
pub use block::dense_iter::DenseNodesIter;
pub use block::element::{Element, Info, Member, Members, Node, Refs, Relation, Tags, Way};
pub(crate) use block::limits::MAX_PARTS;
pub(crate) use block::messages::{TagIds, VersionInfo, WayRefs};
pub(crate) use block::node_locations::{NodeVisit, VisitedFields};
pub(crate) use block::node_versions::{NodeVersions, VersionedNodes};
pub use block::outline::{BlockUnits, Group, Message, StringTable};
pub use block::parsed::Block;
pub(crate) use block::parsed::PART_LEN;
pub(crate) use block::prefix::{bytes_needed_for_first_kind, first_kind};
pub(crate) use block::raw_element::{RawElement, RawElements};
pub(crate) use block::row_info::{RowInfo, put_row_info};
pub(crate) use block::stored_ways::{KeptWay, LocatedWay, StoredWay};
pub(crate) use block::walk::BlockWalk;
pub(crate) use encode::builder::{BlockBuilder, EncodedBlock};
pub use encode::encoder::{BlockEncoder, TARGET_ELEMENTS, TARGET_PAYLOAD};
pub use encode::intern::{Interner, SourceStrings};
pub(crate) use frame::blob::encode_blob_header;
pub use frame::blob::{
    Blob, BlobHeader, BlobKind, Encoding, FRAME_PREFIX_LEN, MAX_BLOB_HEADER_LEN, MAX_BLOB_LEN,
    MAX_PAYLOAD_LEN, encode_frame, plain_header_len,
};
pub use frame::codec::{Compression, Compressor, Decompressor};
pub use frame::encoder::{EncodedFrame, FrameEncoder};
pub use frame::header::{HeaderBlock, REQUIRED_FEATURES_KNOWN, TocFields, feature};
pub(crate) use frame::header::{MAX_HEADER_TEXT_LEN, TextFacts};
pub use frame::header_frame::{header_frame, reserved_header_len, stream_header_frame};
pub use table::blob_index::{BLOB_INDEX_LEN, decode_blob_index, encode_blob_index};
pub use table::entry::{BlobEntry, BlobFlags};
pub(crate) use table::id_host::{IdParts, encode_id_host};
pub use table::id_table::{
    ID_TABLE_TAIL_LEN, IdDirectory, IdRange, IdSection, IdSectionBytes, IdTableBuilder,
    MAX_TABLE_FRAME_LEN, id_fingerprint, max_table_len,
};
pub(crate) use table::verify::{has_exactly_nodes, scan_ids, stale_index_error, verify_entry};

pub(crate) use block::contents::ContentFacts;
pub use block::list::List;
pub use block::object::{Object, ObjectBody};
pub(crate) use block::salvage::salvage;
pub use block::salvage::{InvalidUtf8, Salvage};
#[cfg(feature = "serve")]
pub(crate) use block::string_faults::is_forbidden_in_xml;
pub(crate) use block::string_faults::{ContentFault, check_strings, report_content_faults};
pub(crate) use rewrite::{
    BlockWayIds, EditOp, EditScript, MovedWays, NewIds, NewTags, SpliceOptions, WayNodeLocations,
    WayNodes, locate_ways, patch_ids, put_kept_block, put_kept_messages, splice_block,
};
pub use rewrite::{InfoFields, clean_block};
pub(crate) use segments::{BlobSegments, Segmented, may_have_segments};
pub(crate) use table::scan::scan_counts;
pub(crate) use table::scan::scan_for_oddities;
pub use table::scan::{scan_order, scan_payload, scan_places};
pub(crate) use table::statistics::ObjectCounts;
pub use table::statistics::ObjectStatistics;
pub use table::strings_blob::{FRAME_PROBE_LEN, is_table_blob, may_be_table_blob};
pub use table::table_host::TableHost;
pub use table::toc::{Toc, TocFlags, encode_toc};
pub(crate) use table::toc_blob::put_host_objects;
pub use table::toc_blob::{
    MAX_HOST_LEN, TOC_TAIL_LEN, TableBlob, TocPointer, TocReader, encode_toc_frames, find_toc,
    is_inner_part, is_lone_part, may_be_toc_blob, toc_parts,
};
pub use table::toc_summary::TocSummary;
pub(crate) use table::toc_summary::{KindTotals, SAMPLE_BLOBS, sample_indices};
