//! Blocks for tests.

use crate::osm::Location;
use crate::pbf::encode::builder::BlockBuilder;
use crate::pbf::{Info, Object};
use std::ops::Range;

/// Returns the payload of a block of nodes with metadata. Of every three nodes, one has no tags, one has a tag, and one
/// has two tags. With `is_plain`, each node has a message of its own. The ids are three times the given numbers.
pub(super) fn block_of_nodes(numbers: Range<i64>, is_plain: bool) -> Vec<u8> {
    let mut builder = BlockBuilder::default();
    if is_plain {
        builder.write_plain_nodes();
    }
    let tags = [("highway", "bus_stop"), ("name", "Zoo")];
    for number in numbers {
        let info = Info {
            version: Some(number as u32 % 5 + 1),
            timestamp: Some(1_700_000_000 + number * number),
            changeset: Some(number * 100),
            uid: Some(number as i32 % 3 + 1),
            user: Some(["Ann", "Ben", "Cem"][number as usize % 3]),
            visible: number % 7 != 0,
        };
        let place = Location::new(number as i32 * 1000, number as i32 * -70);
        let node = Object::node(number * 3, place, tags[..number as usize % 3].to_vec());
        builder.add(&node.with_info(info)).unwrap();
    }
    builder.end_block();
    builder.take_blocks().remove(0).payload
}
