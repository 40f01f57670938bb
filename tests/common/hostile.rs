//! Groups of objects that hold as much as a block of 32 MiB allows, in some ten kilobytes.

use super::craft::{self, Message};
use std::path::Path;

/// The maximum number of bytes of a payload.
const MOST: usize = 32 << 20;

/// A packed run of `count` values of a byte each.
fn run(byte: u8, count: usize) -> Vec<u8> {
    vec![byte; count]
}

/// Writes a file of blocks, each with some strings and groups.
pub fn write(path: &Path, strings: &[&str], groups: &[Message]) {
    let table = strings.iter().fold(Message::new(), |table, text| {
        table.bytes(1, text.as_bytes())
    });
    let blocks: Vec<Vec<u8>> = groups
        .iter()
        .map(|group| {
            let block = Message::new()
                .message(1, table.clone())
                .message(2, group.clone());
            block.to_bytes()
        })
        .collect();
    assert!(blocks.iter().all(|block| block.len() <= MOST));
    std::fs::write(path, craft::plain_file(&blocks)).unwrap();
}

/// Dense nodes with ids from 1 on, at one place.
pub fn nodes(count: usize) -> Message {
    let dense = Message::new()
        .bytes(1, &run(2, count))
        .bytes(8, &run(0, count))
        .bytes(9, &run(0, count));
    Message::new().message(2, dense)
}

/// Dense nodes, each with the tag of the strings 1 and 2 again and again.
pub fn tagged_nodes(number: usize, count: usize) -> Message {
    let tags = [[1, 2].repeat(count), vec![0]].concat();
    let dense = Message::new()
        .bytes(1, &run(2, number))
        .bytes(8, &run(0, number))
        .bytes(9, &run(0, number))
        .bytes(10, &tags.repeat(number));
    Message::new().message(2, dense)
}

/// A dense node with the tag of the strings 1 and 2 again and again.
pub fn tagged_node(count: usize) -> Message {
    tagged_nodes(1, count)
}

/// Ways, each of which refers to the nodes from 1 on.
pub fn ways(number: usize, count: usize) -> Message {
    (1..=number).fold(Message::new(), |group, id| {
        let way = Message::new().varint(1, id as u64).bytes(8, &run(2, count));
        group.message(3, way)
    })
}

/// Relations, each of which has the nodes from 1 on as members.
pub fn relations(number: usize, count: usize) -> Message {
    (1..=number).fold(Message::new(), |group, id| {
        let relation = Message::new()
            .varint(1, id as u64)
            .bytes(8, &run(0, count))
            .bytes(9, &run(2, count))
            .bytes(10, &run(0, count));
        group.message(4, relation)
    })
}
