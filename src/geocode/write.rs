//! Writes an index from sorted rows.

use super::area::{EncodedArea, encode_area, size_m2};
use super::container::ContainerWriter;
use super::house_numbers::{HouseNumbers, NodeAddress, addresses_of_nodes};
use super::interpolation::has_too_many_steps;
use super::item::{BROKEN, ItemTags, NAMESAKE, RowItem, SIZE, tag};
use super::layout::{CURVE_BITS, Layer, layer_of};
use super::leaf::LEAF_ITEMS;
use super::leaf_encoder::LeafEncoder;
use super::namesakes::Namesakes;
use super::pack::groups;
use super::packed_rtree::PackedRTreeBuilder;
use super::row_parts::for_each_part;
use crate::error::{FormatError, FormatResult, Result};
use crate::geometry::Extent;
use crate::index::{IdSet, SharedRows, SortedRows};
use crate::io::StreamOutput;
use crate::runtime::Context;

/// The approximate number of rows that are encoded together.
const ROWS: u64 = 4096;

/// Encoded rows of a layer.
struct Encoded {
    layer: Layer,
    rows: u64,
    leaves: Vec<(Vec<u8>, Extent)>,
    areas: Vec<EncodedArea>,
    /// The ids and addresses of the rows that are nodes of interpolation ways.
    addresses: Vec<(i64, NodeAddress)>,
    /// The ids of the interpolation ways with too many numbers between two nodes.
    not_interpolated: Vec<i64>,
}

/// An index that was written.
pub(crate) struct WrittenIndex {
    /// The output, which is not yet committed.
    pub output: StreamOutput,
    /// The number of rows of each layer.
    pub counts: [u64; Layer::ALL.len()],
    /// The number of interpolation ways with too many numbers between two nodes.
    pub not_interpolated: u64,
}

/// Writes an index. `interpolated` has the ids of the nodes of interpolation ways.
pub(crate) fn write_index(
    sorted: &SortedRows,
    interpolated: &IdSet,
    output: StreamOutput,
    ctx: &Context,
) -> Result<WrittenIndex> {
    let namesakes = Namesakes::find(sorted, ROWS, ctx)?;
    let mut writer = IndexWriter::begin(output)?;
    let mut counts = [0; Layer::ALL.len()];
    let (addresses, rest) = sorted
        .ranges(ROWS)
        .into_iter()
        .partition(|range| layer_of(range.keys.start) == Some(Layer::Addresses));
    let mut numbers = HouseNumbers::default();
    let mut not_interpolated = Vec::new();
    for (name, ranges) in [("addresses", addresses), ("write", rest)] {
        let mut found = Vec::new();
        let encode = |layer, rows: &SharedRows| {
            let parsed = rows
                .iter()
                .map(RowItem::parse)
                .collect::<FormatResult<Vec<_>>>()?;
            Encoded::of(layer, &parsed, interpolated, &numbers, &namesakes)
        };
        let write = |mut encoded: Encoded| {
            counts[encoded.layer as usize] += encoded.rows;
            found.append(&mut encoded.addresses);
            not_interpolated.append(&mut encoded.not_interpolated);
            writer.add(encoded)
        };
        for_each_part(name, sorted, ranges, encode, write, ctx)?;
        numbers.add(found);
    }
    // A way across the antimeridian has two rows, so its id can occur twice.
    not_interpolated.sort_unstable();
    not_interpolated.dedup();
    Ok(WrittenIndex {
        output: writer.finish()?,
        counts,
        not_interpolated: not_interpolated.len() as u64,
    })
}

impl Encoded {
    /// Encodes rows of a layer.
    fn of(
        layer: Layer,
        parsed: &[RowItem<'_>],
        interpolated: &IdSet,
        numbers: &HouseNumbers,
        namesakes: &Namesakes,
    ) -> FormatResult<Self> {
        let mut encoded = Self {
            layer,
            rows: parsed.len() as u64,
            leaves: Vec::new(),
            areas: Vec::new(),
            addresses: Vec::new(),
            not_interpolated: Vec::new(),
        };
        match layer {
            Layer::Areas => {
                let areas = parsed.iter().map(|row| encode_area_row(row, namesakes));
                encoded.areas = areas.collect();
            }
            Layer::Interpolations => {
                let of_rows = parsed.iter().map(|row| numbers.encode_numbers(row));
                let of_rows = of_rows.collect::<Result<Vec<String>, _>>()?;
                let with_too_many = parsed.iter().zip(&of_rows).filter(|(row, of_row)| {
                    let rule = tag(&row.tags, "addr:interpolation");
                    rule.is_some_and(|rule| has_too_many_steps(of_row, rule))
                });
                encoded.not_interpolated = with_too_many.map(|(row, _)| row.id).collect();
                let completed = parsed.iter().zip(&of_rows).map(|(row, of_row)| {
                    Ok(RowItem {
                        lines: row.lines.clone(),
                        tags: numbers.tags_with_numbers(row, of_row)?,
                        ..*row
                    })
                });
                let completed = completed.collect::<Result<Vec<_>, _>>()?;
                encoded.leaves = encode_leaves(&completed)?;
            }
            _ => encoded.leaves = encode_leaves(parsed)?,
        }
        if layer == Layer::Addresses {
            encoded.addresses = addresses_of_nodes(parsed, interpolated);
        }
        Ok(encoded)
    }
}

/// Encodes an area with its size as a tag. An area with the same name as a city within it also gets the tag
/// [`NAMESAKE`].
fn encode_area_row(row: &RowItem<'_>, namesakes: &Namesakes) -> EncodedArea {
    let size = size_m2(row.lines.as_slice()).to_string();
    let mut tags: ItemTags<'_> = row.tags.iter().copied().collect();
    tags.push((SIZE, &size));
    tags.extend(namesakes.namesake_value(row).map(|kind| (NAMESAKE, kind)));
    encode_area(&RowItem {
        lines: row.lines.clone(),
        tags,
        ..*row
    })
}

/// Packs rows into leaves. Returns the encoded leaves and their bounding boxes.
fn encode_leaves(rows: &[RowItem<'_>]) -> FormatResult<Vec<(Vec<u8>, Extent)>> {
    let mut encoder = LeafEncoder::new();
    let extents = rows.iter().map(|row| row.item().extent().ok_or(BROKEN));
    let extents: Vec<Extent> = extents.collect::<Result<_, _>>()?;
    let leaves = groups(&extents).into_iter().filter_map(|group| {
        let items = group
            .iter()
            .map(|number| (&rows[*number], extents[*number]));
        encoder.encode(&items.collect::<Vec<_>>())
    });
    Ok(leaves.collect())
}

/// Writes the sections of an index in order.
struct IndexWriter {
    container: ContainerWriter,
    layer: Layer,
    tree: PackedRTreeBuilder,
    /// The bounding box of each part of an area, and the offset of the part in its section.
    parts: Vec<(Extent, u64)>,
}

impl IndexWriter {
    fn begin(output: StreamOutput) -> Result<Self> {
        let mut container = ContainerWriter::create(output)?;
        Ok(Self {
            tree: PackedRTreeBuilder::begin(&mut container)?,
            container,
            layer: Layer::Addresses,
            parts: Vec::new(),
        })
    }

    /// Finishes layers until `layer` is the current one.
    fn advance_to_layer(&mut self, layer: Layer) -> Result<()> {
        while self.layer < layer {
            std::mem::take(&mut self.tree).finish(&mut self.container)?;
            self.layer = Layer::ALL[self.layer as usize + 1];
            self.tree = PackedRTreeBuilder::begin(&mut self.container)?;
        }
        Ok(())
    }

    /// Writes encoded rows. Their layer must be the current layer or a later one.
    fn add(&mut self, encoded: Encoded) -> Result<()> {
        self.advance_to_layer(encoded.layer)?;
        for (bytes, extent) in encoded.leaves {
            self.tree.add(&bytes, extent, &mut self.container)?;
        }
        // In the layer of areas, the current section gets the encoded areas. `finish` writes the tree over the parts of
        // the areas to the next two sections.
        for area in encoded.areas {
            let at = self.container.section_len();
            let parts = area.parts.into_iter();
            self.parts
                .extend(parts.map(|(extent, start)| (extent, at + start)));
            self.container.write(&area.bytes)?;
        }
        Ok(())
    }

    /// Finishes all layers, and writes the tree over the parts of areas.
    fn finish(mut self) -> Result<StreamOutput> {
        self.advance_to_layer(Layer::Areas)?;
        self.parts
            .sort_unstable_by_key(|(extent, start)| (extent.curve_position(CURVE_BITS), *start));
        let mut tree = PackedRTreeBuilder::begin(&mut self.container)?;
        for parts in self.parts.chunks(LEAF_ITEMS) {
            let (mut leaf, mut all): (Vec<u8>, Option<Extent>) = (Vec::new(), None);
            for (extent, start) in parts {
                put_part_place(&mut leaf, extent, *start);
                all = Some(all.map_or(*extent, |all| all.and(extent)));
            }
            if let Some(extent) = all {
                tree.add(&leaf, extent, &mut self.container)?;
            }
        }
        tree.finish(&mut self.container)?;
        self.container.finish()
    }
}

/// The size in bytes of a leaf entry for a part of an area. The entry has the bounding box and the start of the part.
const PART_PLACE_LEN: usize = Extent::LEN + 8;

/// Returns the bounding box and the start of each part from a leaf of the layer of areas.
pub(super) fn part_places(leaf: &[u8]) -> FormatResult<impl Iterator<Item = (Extent, u64)>> {
    let (parts, rest) = leaf.as_chunks::<PART_PLACE_LEN>();
    if parts.is_empty() || !rest.is_empty() {
        return Err(FormatError::new("a list of parts of areas is broken"));
    }
    Ok(parts.iter().map(|part| {
        let extent = std::array::from_fn(|at| part[at]);
        let start = std::array::from_fn(|at| part[Extent::LEN + at]);
        (Extent::from_bytes(&extent), u64::from_le_bytes(start))
    }))
}

/// Appends the entry of a part to a leaf of the layer of areas.
fn put_part_place(out: &mut Vec<u8>, extent: &Extent, start: u64) {
    out.extend_from_slice(&extent.to_bytes());
    out.extend_from_slice(&start.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_list_of_parts_is_an_error() {
        let extent = Extent::from_stored_edges([1, 2, 3, 4]);
        let mut leaf = Vec::new();
        put_part_place(&mut leaf, &extent, 5);
        put_part_place(&mut leaf, &extent, 6);
        let parts: Vec<_> = part_places(&leaf).unwrap().collect();
        assert_eq!(parts, [(extent, 5), (extent, 6)]);
        for len in [0, 1, PART_PLACE_LEN - 1, PART_PLACE_LEN + 1] {
            assert!(part_places(&leaf[..len]).is_err(), "{len}");
        }
    }
}
