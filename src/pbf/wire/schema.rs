//! The field numbers of `fileformat.proto` and `osmformat.proto`, by message and field name.

/// The field numbers of BlobHeader.
pub(crate) mod blob_header {
    pub(crate) const TYPE: u32 = 1;
    pub(crate) const INDEXDATA: u32 = 2;
    pub(crate) const DATASIZE: u32 = 3;
}

/// The field numbers of Blob.
pub(crate) mod blob {
    pub(crate) const RAW: u32 = 1;
    pub(crate) const RAW_SIZE: u32 = 2;
    pub(crate) const ZLIB_DATA: u32 = 3;
    pub(crate) const LZMA_DATA: u32 = 4;
    pub(crate) const BZIP2_DATA: u32 = 5;
    pub(crate) const LZ4_DATA: u32 = 6;
    pub(crate) const ZSTD_DATA: u32 = 7;
}

/// The field numbers of HeaderBlock.
pub(crate) mod header_block {
    pub(crate) const BBOX: u32 = 1;
    pub(crate) const REQUIRED_FEATURES: u32 = 4;
    pub(crate) const OPTIONAL_FEATURES: u32 = 5;
    pub(crate) const WRITINGPROGRAM: u32 = 16;
    pub(crate) const SOURCE: u32 = 17;
    pub(crate) const REPLICATION_TIMESTAMP: u32 = 32;
    pub(crate) const REPLICATION_SEQUENCE_NUMBER: u32 = 33;
    pub(crate) const REPLICATION_BASE_URL: u32 = 34;
}

/// The field numbers of PrimitiveBlock.
pub(crate) mod primitive_block {
    pub(crate) const STRINGTABLE: u32 = 1;
    pub(crate) const PRIMITIVEGROUP: u32 = 2;
    pub(crate) const GRANULARITY: u32 = 17;
    pub(crate) const DATE_GRANULARITY: u32 = 18;
    pub(crate) const LAT_OFFSET: u32 = 19;
    pub(crate) const LON_OFFSET: u32 = 20;
}

/// The field numbers of StringTable.
pub(crate) mod string_table {
    pub(crate) const S: u32 = 1;
}

/// The field numbers of PrimitiveGroup.
pub(crate) mod primitive_group {
    pub(crate) const NODES: u32 = 1;
    pub(crate) const DENSE: u32 = 2;
    pub(crate) const WAYS: u32 = 3;
    pub(crate) const RELATIONS: u32 = 4;
}

/// The field numbers of Info, which are also those of DenseInfo.
pub(crate) mod info {
    pub(crate) const VERSION: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    pub(crate) const CHANGESET: u32 = 3;
    pub(crate) const UID: u32 = 4;
    pub(crate) const USER_SID: u32 = 5;
    pub(crate) const VISIBLE: u32 = 6;
}

/// The numbers of the fields that Node, Way and Relation have in common.
pub(crate) mod object {
    pub(crate) const ID: u32 = 1;
    pub(crate) const KEYS: u32 = 2;
    pub(crate) const VALS: u32 = 3;
    pub(crate) const INFO: u32 = 4;
}

/// The field numbers of Node, except those in [`object`].
pub(crate) mod node {
    pub(crate) const LAT: u32 = 8;
    pub(crate) const LON: u32 = 9;
}

/// The field numbers of DenseNodes.
pub(crate) mod dense_nodes {
    pub(crate) const ID: u32 = 1;
    pub(crate) const DENSEINFO: u32 = 5;
    pub(crate) const LAT: u32 = 8;
    pub(crate) const LON: u32 = 9;
    pub(crate) const KEYS_VALS: u32 = 10;
}

/// The field numbers of Way, except those in [`object`]. `LAT` and `LON` are an extension, the optional feature
/// `LocationsOnWays`.
pub(crate) mod way {
    pub(crate) const REFS: u32 = 8;
    pub(crate) const LAT: u32 = 9;
    pub(crate) const LON: u32 = 10;
}

/// The field numbers of Relation, except those in [`object`].
pub(crate) mod relation {
    pub(crate) const ROLES_SID: u32 = 8;
    pub(crate) const MEMIDS: u32 = 9;
    pub(crate) const TYPES: u32 = 10;
}
