//! Indexes of the blobs of a file.
//!
//! - `entry` has `BlobEntry`, the facts about one blob. `statistics` has the statistics of its objects.
//! - `scan` computes an entry from a payload, with `id_facts` for ids and their order. `verify` compares blobs with the
//!   entries of an index.
//! - `toc` encodes the table of contents in columns. `toc_blob` stores the table in the last blobs of a file, as
//!   strings (`strings_blob`) after the strings of the last objects (`table_host`). `toc_summary` has the summary of
//!   the table, which is stored in the header.
//! - `blob_index` has the index of a single blob in its BlobHeader. `id_table` has the table of ids of a file with a
//!   spatial layout, which `id_host` stores after the strings of objects.

pub(super) mod blob_index;
pub(super) mod entry;
pub(super) mod id_facts;
pub(super) mod id_host;
pub(super) mod id_table;
pub(super) mod scan;
pub(super) mod statistics;
pub(super) mod strings_blob;
pub(super) mod table_host;
pub(super) mod toc;
pub(super) mod toc_blob;
pub(super) mod toc_summary;
pub(super) mod verify;
