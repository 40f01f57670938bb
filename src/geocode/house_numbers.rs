//! House numbers of the nodes of interpolation ways.
//!
//! The row of an interpolation way has only the ids of its nodes. Addresses are written to the index before
//! interpolation ways. The addresses of the nodes are therefore kept in memory, and are added to the ways when the ways
//! are written.

use super::address_tags::SHARED;
use super::item::{BROKEN, ItemTags, NUMBERS, RowItem, tag};
use crate::error::FormatResult;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The maximum length in bytes of a house number that is interpolated. A longer house number is stored as an empty one.
const MAX_NUMBER: usize = 32;

/// The address of a node of an interpolation way.
#[derive(Debug)]
pub(super) struct NodeAddress {
    number: Option<String>,
    /// The tags that all houses along an interpolation way share.
    shared: Vec<(&'static str, String)>,
}

/// The addresses of the nodes of interpolation ways.
#[derive(Debug, Default)]
pub(super) struct HouseNumbers {
    addresses: FxHashMap<i64, NodeAddress>,
}

/// Returns the keys of the tags that all houses along an interpolation way share.
fn shared_keys() -> impl Iterator<Item = &'static str> {
    ["addr:street", "addr:place"].into_iter().chain(SHARED)
}

/// Returns the id and the address of each node among `rows` whose id is in `wanted`.
pub(super) fn addresses_of_nodes(rows: &[RowItem<'_>], wanted: &IdSet) -> Vec<(i64, NodeAddress)> {
    let is_wanted = |row: &&RowItem<'_>| row.kind == ObjectKind::Node && wanted.contains(row.id);
    let found = rows.iter().filter(is_wanted).map(|row| {
        let shared = shared_keys().filter_map(|key| Some((key, tag(&row.tags, key)?.to_owned())));
        let address = NodeAddress {
            number: tag(&row.tags, "addr:housenumber").map(str::to_owned),
            shared: shared.collect(),
        };
        (row.id, address)
    });
    found.collect()
}

/// Formats the node ids of an interpolation way as the value of [`NUMBERS`] in its row.
pub(crate) fn format_node_list(refs: impl Iterator<Item = i64>) -> String {
    let mut list = String::new();
    for (at, node) in refs.enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(list, "{comma}{node}");
    }
    list
}

/// The character that stands for a comma in an entry of [`NUMBERS`]. No tag in OSM contains this character.
const COMMA: char = '\u{1f}';

/// Returns a house number in the form that it has in [`NUMBERS`], with each comma replaced by [`COMMA`].
fn encode_number(number: &str) -> String {
    number.replace(',', COMMA.encode_utf8(&mut [0; 4]))
}

/// Returns the house number in an entry of [`NUMBERS`].
pub(super) fn decode_number(entry: &str) -> String {
    entry.replace(COMMA, ",")
}

impl HouseNumbers {
    /// Adds addresses of nodes.
    pub(super) fn add(&mut self, addresses: Vec<(i64, NodeAddress)>) {
        self.addresses.extend(addresses);
    }

    /// Returns the addresses of the nodes of an interpolation way, with the indices of the nodes in the way. Fails if
    /// the row has no list of nodes.
    fn addresses_along(&self, row: &RowItem<'_>) -> FormatResult<Vec<(usize, &NodeAddress)>> {
        let nodes = tag(&row.tags, NUMBERS).ok_or(BROKEN)?;
        let mut addresses = Vec::new();
        for (at, node) in nodes.split(',').enumerate() {
            let node: i64 = node.parse().map_err(|_| BROKEN)?;
            addresses.extend(self.addresses.get(&node).map(|address| (at, address)));
        }
        Ok(addresses)
    }

    /// Formats the house numbers of the nodes of an interpolation way as the value of [`NUMBERS`] in an index.
    pub(super) fn encode_numbers(&self, row: &RowItem<'_>) -> FormatResult<String> {
        let mut numbers = String::new();
        for (at, address) in self.addresses_along(row)? {
            if let Some(number) = &address.number {
                let comma = if numbers.is_empty() { "" } else { "," };
                let is_long = number.len() > MAX_NUMBER;
                let number = if is_long { "" } else { number.as_str() };
                let _ = write!(numbers, "{comma}{at}:{}", encode_number(number));
            }
        }
        Ok(numbers)
    }

    /// Returns the tags of an interpolation way, with `numbers` as the value of [`NUMBERS`]. If the way lacks a tag
    /// that all houses along it share, adds the tag from one of its nodes.
    pub(super) fn tags_with_numbers<'a>(
        &'a self,
        row: &'a RowItem<'_>,
        numbers: &'a str,
    ) -> FormatResult<ItemTags<'a>> {
        let own = row.tags.iter().filter(|(key, _)| *key != NUMBERS);
        let mut tags: ItemTags<'_> = own.copied().collect();
        let nodes = self.addresses_along(row)?;
        for key in shared_keys().filter(|key| tag(&row.tags, key).is_none()) {
            let mut shared = nodes.iter().flat_map(|&(_, address)| &address.shared);
            if let Some((_, value)) = shared.find(|(of_node, _)| *of_node == key) {
                tags.push((key, value.as_str()));
            }
        }
        tags.push((NUMBERS, numbers));
        Ok(tags)
    }
}
