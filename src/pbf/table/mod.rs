//! Facts about blobs: entries of the index, how they are found in a blob, and the tables that hold them.

pub(super) mod blob_index;
pub(super) mod entry;
pub(super) mod id_facts;
pub(super) mod id_table;
pub(super) mod scan;
pub(super) mod statistics;
pub(super) mod strings_blob;
pub(super) mod toc;
pub(super) mod toc_blob;
pub(super) mod toc_summary;
pub(super) mod verify;
