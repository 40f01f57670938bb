//! Encodes leaves of the R-tree of a layer.

use super::item::{KEYS, RowItem, put_item_header};
use super::leaf::{HEADER_LEN, OffsetTable, Units};
use super::lines::put_lines;
use crate::geometry::Extent;
use crate::pbf::wire::put_varint;
use rustc_hash::FxHashMap;

/// An encoder of leaves, which reuses its buffers.
#[derive(Debug)]
pub(super) struct LeafEncoder<'r> {
    numbers: FxHashMap<&'r str, u64>,
    texts: Vec<&'r str>,
    parts: LeafParts,
}

/// The parts of a leaf that is being encoded.
#[derive(Debug, Default)]
struct LeafParts {
    boxes: Vec<u8>,
    /// The end of each item in `items`.
    ends: Vec<usize>,
    items: Vec<u8>,
    /// The tags of the current item, as pairs of string numbers.
    tags: Vec<[u64; 2]>,
    /// The string numbers of `tags` as varints.
    encoded_tags: Vec<u8>,
}

impl LeafParts {
    fn clear(&mut self) {
        self.boxes.clear();
        self.ends.clear();
        self.items.clear();
    }
}

impl<'r> LeafEncoder<'r> {
    pub(super) fn new() -> Self {
        Self {
            numbers: (0..).zip(KEYS).map(|(at, key)| (key, at)).collect(),
            texts: Vec::new(),
            parts: LeafParts::default(),
        }
    }

    fn intern_text(&mut self, text: &'r str) -> u64 {
        let next = (KEYS.len() + self.texts.len()) as u64;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }

    /// Encodes up to [`LEAF_ITEMS`](super::leaf::LEAF_ITEMS) items, each with its bounding box. Returns the leaf and
    /// its bounding box; `None` if there are no items.
    pub(super) fn encode(&mut self, items: &[(&RowItem<'r>, Extent)]) -> Option<(Vec<u8>, Extent)> {
        let extents = items.iter().map(|(_, extent)| *extent);
        let extent = extents.reduce(|all, next| all.and(&next))?;
        let units = Units::of(&extent);
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        let LeafParts {
            boxes,
            ends,
            items: body,
            tags,
            encoded_tags,
        } = &mut parts;
        for (row, extent) in items {
            tags.clear();
            let of_tags = row.tags.iter();
            tags.extend(
                of_tags.map(|(key, value)| [self.intern_text(key), self.intern_text(value)]),
            );
            tags.sort_by_key(|[key, _]| (*key).min(KEYS.len() as u64));
            encoded_tags.clear();
            for number in tags.iter().flatten() {
                put_varint(encoded_tags, *number);
            }
            let item = row.item();
            put_item_header(body, item.kind, item.shape, item.id);
            put_varint(body, encoded_tags.len() as u64);
            body.extend_from_slice(encoded_tags);
            put_lines(body, item.lines);
            boxes.extend_from_slice(&units.quantize(extent));
            ends.push(body.len());
        }
        let texts_len: usize = self.texts.iter().map(|text| text.len()).sum();
        let [end_len, text_end_len] = [body.len(), texts_len].map(OffsetTable::offset_width);
        let texts_at = HEADER_LEN + boxes.len() + ends.len() * usize::from(end_len) + body.len();
        let table_len = (self.texts.len() + 1) * usize::from(text_end_len);
        let mut leaf = Vec::with_capacity(texts_at + table_len + texts_len);
        leaf.extend_from_slice(&units.base.lat_e7.to_le_bytes());
        leaf.extend_from_slice(&units.base.lon_e7.to_le_bytes());
        leaf.extend_from_slice(&(texts_at as u32).to_le_bytes());
        leaf.extend_from_slice(&[items.len() as u8, units.shift, end_len, text_end_len]);
        leaf.extend_from_slice(boxes);
        OffsetTable::put(&mut leaf, end_len, ends.iter().copied());
        leaf.extend_from_slice(body);
        self.parts = parts;
        self.put_string_table(text_end_len, &mut leaf);
        Some((leaf, extent))
    }

    /// Appends the string table to the leaf: the number of strings, the end of each string, and the strings. Then
    /// clears the table.
    fn put_string_table(&mut self, end_len: u8, leaf: &mut Vec<u8>) {
        let mut end = 0;
        let ends = self.texts.iter().map(|text| {
            end += text.len();
            end
        });
        OffsetTable::put(leaf, end_len, std::iter::once(self.texts.len()).chain(ends));
        for text in self.texts.drain(..) {
            leaf.extend_from_slice(text.as_bytes());
            self.numbers.remove(text);
        }
    }
}
