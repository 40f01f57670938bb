//! Objects that can be read, but that other programs refuse or misunderstand.

/// Objects of a block that can be read, but that other programs refuse or misunderstand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Oddities {
    /// Whether a tag has no key.
    pub has_empty_keys: bool,
    /// The number of ways with fewer than two nodes.
    pub short_ways: u64,
    /// Whether a string has characters that XML 1.0 does not allow.
    pub has_inexpressible: bool,
    /// Whether a node is beyond the earth.
    pub has_outside: bool,
}

/// Whether `string` is one of `ids`, which are ascending.
pub(in crate::pbf) fn is_among(string: u64, ids: &[u32]) -> bool {
    u32::try_from(string).is_ok_and(|string| ids.binary_search(&string).is_ok())
}
