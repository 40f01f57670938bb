//! A string table to which an edit appends new strings.

use crate::error::FormatResult;
use crate::pbf::block::outline::StringTable;
use crate::pbf::wire::put_bytes_field;
use crate::pbf::wire::schema::string_table;
use rustc_hash::FxHashMap;

/// The number of bytes to reserve, beyond the size of copied data, for the data that an edit adds.
pub(super) const GROWTH: usize = 4096;

/// A string table to which new strings are appended.
pub(super) struct GrowingTable<'a> {
    pub encoded: Vec<u8>,
    strings: StringTable<'a>,
    /// The ids of the strings of the block; empty until the first call of [`add`](Self::add).
    lookup: FxHashMap<&'a str, u32>,
    appended: FxHashMap<String, u32>,
    len: u32,
}

impl<'a> GrowingTable<'a> {
    /// Copies a StringTable message.
    pub(super) fn new(message: &'a [u8]) -> FormatResult<Self> {
        let strings = StringTable::parse(message)?;
        let mut encoded = Vec::with_capacity(message.len() + GROWTH);
        encoded.extend_from_slice(message);
        if strings.is_empty() {
            put_bytes_field(&mut encoded, string_table::S, b"");
        }
        let len = strings.len().max(1) as u32;
        Ok(Self {
            encoded,
            strings,
            lookup: FxHashMap::default(),
            appended: FxHashMap::default(),
            len,
        })
    }

    /// Whether string 0 is empty, so that id 0 can mean "no user".
    pub(super) fn begins_with_empty_string(&self) -> bool {
        self.strings.get(0).is_ok_and(str::is_empty) || self.strings.is_empty()
    }

    /// Returns the id of a string, which is never 0. A new string is appended to the table.
    pub(super) fn add(&mut self, text: &str) -> u32 {
        if self.lookup.is_empty() {
            // Skips string 0, because id 0 ends the tags of each dense node, so no key or value may have it.
            let strings = (0..).zip(self.strings.iter()).skip(1);
            self.lookup = strings.map(|(id, text)| (text, id)).collect();
        }
        if let Some(&id) = self.lookup.get(text).or_else(|| self.appended.get(text)) {
            return id;
        }
        let id = self.len;
        put_bytes_field(&mut self.encoded, string_table::S, text.as_bytes());
        self.appended.insert(text.to_owned(), id);
        self.len += 1;
        id
    }

    /// Returns the id of a string as [`add`](Self::add) does, but 0 for the empty string.
    pub(super) fn add_or_empty(&mut self, text: &str) -> u32 {
        if text.is_empty() { 0 } else { self.add(text) }
    }
}
