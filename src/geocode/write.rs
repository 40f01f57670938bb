//! Writing an index from sorted rows.

use super::area::{EncodedArea, encode_area};
use super::container::ContainerWriter;
use super::item::{RowItem, encode_leaf};
use super::layout::{CURVE_BITS, Layer, layer_of};
use super::tree::TreeBuilder;
use crate::error::{Error, FormatError, Result};
use crate::geometry::Extent;
use crate::index::{SharedRows, SortedRows};
use crate::io::StreamOutput;
use crate::runtime::{Context, Pass};

/// The number of items of a leaf.
const LEAF_ITEMS: usize = 16;
/// The approximate number of rows that are encoded together.
const ROWS: u64 = 4096;

/// Encoded rows.
enum Encoded {
    Leaves(Vec<(Vec<u8>, Extent)>),
    Areas(Vec<EncodedArea>),
}

/// Writes an index. Returns the open output, and the number of rows of each layer.
pub(crate) fn write_index(
    sorted: &SortedRows,
    output: StreamOutput,
    ctx: &Context,
) -> Result<(StreamOutput, [u64; Layer::ALL.len()])> {
    let mut writer = IndexWriter::begin(output)?;
    let mut counts = [0; Layer::ALL.len()];
    Pass::new("write", ctx)
        .with_budget(ctx.jobs as u64 * 2)
        .run(
            sorted.ranges(ROWS),
            || (),
            |(), range| {
                let rows = sorted.read(&range.keys)?;
                let layer = layer_of(range.keys.start);
                let layer = layer.ok_or_else(|| Error::Internal("a key without layer".into()))?;
                let encoded = encode(layer, &rows);
                let encoded = encoded.map_err(|error| Error::Internal(error.to_string()))?;
                Ok((layer, range.rows, encoded))
            },
            |(layer, rows, encoded)| {
                if let Some(count) = counts.get_mut(layer as usize) {
                    *count += rows;
                }
                writer.add(layer, encoded)
            },
        )?;
    Ok((writer.finish()?, counts))
}

fn encode(layer: Layer, rows: &SharedRows) -> Result<Encoded, FormatError> {
    let parsed: Result<Vec<RowItem<'_>>, _> =
        rows.rows(0..rows.count()).map(RowItem::parse).collect();
    let parsed = parsed?;
    Ok(match layer {
        Layer::Areas => Encoded::Areas(parsed.iter().map(encode_area).collect()),
        _ => Encoded::Leaves(parsed.chunks(LEAF_ITEMS).filter_map(encode_leaf).collect()),
    })
}

/// The sections of an index, which are written one after another.
struct IndexWriter {
    container: ContainerWriter,
    layer: Layer,
    tree: TreeBuilder,
    /// The box and the start of each part of an area.
    parts: Vec<(Extent, u64)>,
}

impl IndexWriter {
    fn begin(output: StreamOutput) -> Result<Self> {
        let mut container = ContainerWriter::create(output)?;
        Ok(Self {
            tree: TreeBuilder::begin(&mut container)?,
            container,
            layer: Layer::Addresses,
            parts: Vec::new(),
        })
    }

    /// Goes on to a layer.
    fn go_to(&mut self, layer: Layer) -> Result<()> {
        while self.layer < layer {
            std::mem::take(&mut self.tree).finish(&mut self.container)?;
            let next = Layer::ALL.get(self.layer as usize + 1);
            self.layer = next.copied().unwrap_or(layer);
            self.tree = TreeBuilder::begin(&mut self.container)?;
        }
        Ok(())
    }

    fn add(&mut self, layer: Layer, encoded: Encoded) -> Result<()> {
        self.go_to(layer)?;
        match encoded {
            Encoded::Leaves(leaves) => leaves
                .into_iter()
                .try_for_each(|(bytes, extent)| self.tree.add(&bytes, extent, &mut self.container)),
            // The first section of the tree is that of the records. The tree of parts follows it.
            Encoded::Areas(areas) => areas.into_iter().try_for_each(|area| {
                let at = self.container.section_len();
                let parts = area.parts.into_iter();
                self.parts
                    .extend(parts.map(|(extent, start)| (extent, at + start)));
                self.container.write(&area.bytes)
            }),
        }
    }

    fn finish(mut self) -> Result<StreamOutput> {
        self.go_to(Layer::Areas)?;
        self.parts
            .sort_unstable_by_key(|(extent, start)| (extent.curve_position(CURVE_BITS), *start));
        let mut tree = TreeBuilder::begin(&mut self.container)?;
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

/// The number of bytes of the place of a part in a leaf: its box, and its start.
pub(crate) const PART_PLACE_LEN: usize = Extent::LEN + 8;

fn put_part_place(out: &mut Vec<u8>, extent: &Extent, start: u64) {
    out.extend_from_slice(&extent.to_bytes());
    out.extend_from_slice(&start.to_le_bytes());
}
