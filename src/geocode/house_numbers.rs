//! House numbers of the nodes of interpolation ways.
//!
//! The row of an interpolation way has only the ids of its nodes. Addresses are written to the index before
//! interpolation ways. The addresses of the nodes are therefore kept in memory, and are added to the ways when the ways
//! are written.

use super::item::{BROKEN, NUMBERS, RowItem, tag};
use crate::error::FormatError;
use crate::index::IdSet;
use crate::osm::ObjectKind;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The tags of an address.
type Tags = Vec<(String, String)>;

/// The addresses of the nodes of interpolation ways.
#[derive(Debug, Default)]
pub(super) struct HouseNumbers {
    addresses: FxHashMap<i64, Tags>,
}

/// Whether all houses along an interpolation way have the same value for `key`.
fn is_shared(key: &str) -> bool {
    const OF_HOUSE: [&str; 6] = [
        "addr:housenumber",
        "addr:housename",
        "addr:unit",
        "addr:conscriptionnumber",
        "addr:streetnumber",
        "addr:block_number",
    ];
    key.starts_with("addr:") && !OF_HOUSE.contains(&key)
}

/// Returns the id and the address of each node among `rows` whose id is in `wanted`.
pub(super) fn addresses_of(rows: &[RowItem<'_>], wanted: &IdSet) -> Vec<(i64, Tags)> {
    let is_wanted = |row: &&RowItem<'_>| row.kind == ObjectKind::Node && wanted.contains(row.id);
    let found = rows.iter().filter(is_wanted).map(|row| {
        let tags = row.tags.iter();
        let owned = tags.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        (row.id, owned.collect())
    });
    found.collect()
}

/// Formats the node ids of an interpolation way as the value of [`NUMBERS`] in its row.
pub(crate) fn node_list(refs: impl Iterator<Item = i64>) -> String {
    let mut list = String::new();
    for (at, node) in refs.enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(list, "{comma}{node}");
    }
    list
}

/// The character that stands for a comma in an entry of [`NUMBERS`]. No tag in OSM has it.
const COMMA: char = '\u{1f}';

/// Returns a house number as an entry of [`NUMBERS`] has it.
fn encoded(number: &str) -> String {
    number.replace(',', COMMA.encode_utf8(&mut [0; 4]))
}

/// Returns the house number in an entry of [`NUMBERS`].
pub(super) fn decoded(entry: &str) -> String {
    entry.replace(COMMA, ",")
}

impl HouseNumbers {
    /// Adds addresses of nodes.
    pub(super) fn add(&mut self, addresses: Vec<(i64, Tags)>) {
        self.addresses.extend(addresses);
    }

    /// Returns the addresses of the nodes of an interpolation way, with the indices of the nodes in the way. Fails if
    /// the row has no list of nodes.
    fn of(&self, row: &RowItem<'_>) -> Result<Vec<(usize, &Tags)>, FormatError> {
        let nodes = tag(&row.tags, NUMBERS).ok_or(BROKEN)?;
        let mut addresses = Vec::new();
        for (at, node) in nodes.split(',').enumerate() {
            let node: i64 = node.parse().map_err(|_| BROKEN)?;
            addresses.extend(self.addresses.get(&node).map(|address| (at, address)));
        }
        Ok(addresses)
    }

    /// Formats the house numbers of the nodes of an interpolation way as the value of [`NUMBERS`] in an index.
    pub(super) fn numbers(&self, row: &RowItem<'_>) -> Result<String, FormatError> {
        let mut numbers = String::new();
        for (at, address) in self.of(row)? {
            if let Some((_, number)) = address.iter().find(|(key, _)| key == "addr:housenumber") {
                let comma = if numbers.is_empty() { "" } else { "," };
                let _ = write!(numbers, "{comma}{at}:{}", encoded(number));
            }
        }
        Ok(numbers)
    }

    /// Returns the tags of an interpolation way, with `numbers` as the value of [`NUMBERS`]. If the way lacks a tag
    /// that all houses along it share, adds the tag from one of its nodes.
    pub(super) fn tags<'a>(
        &'a self,
        row: &'a RowItem<'_>,
        numbers: &'a str,
    ) -> Result<Vec<(&'a str, &'a str)>, FormatError> {
        let own = row.tags.iter().filter(|(key, _)| *key != NUMBERS);
        let mut tags: Vec<(&str, &str)> = own.copied().collect();
        for (_, address) in self.of(row)? {
            for (key, value) in address {
                if is_shared(key) && tag(&tags, key).is_none() {
                    tags.push((key, value));
                }
            }
        }
        tags.push((NUMBERS, numbers));
        Ok(tags)
    }
}
