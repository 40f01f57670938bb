//! Replaces the tags of some objects of an encoded block. All other fields are copied without decoding.

use super::edit::splice_tags;
use super::growing_table::{GROWTH, GrowingTable};
use super::metadata::{blank_unused_strings, mark_strings_of_group, mark_users_of_group};
use super::script::EditScript;
use crate::error::FormatResult;
use crate::pbf::block::dense::DenseNodes;
use crate::pbf::block::outline::{BlockOutline, Group};
use crate::pbf::wire::schema::{dense_nodes, object, primitive_block, primitive_group};
use crate::pbf::wire::{Fields, put_bytes_field, put_packed_field, put_varint};

/// New tags of some objects of a block.
pub(crate) struct NewTags<'a> {
    block: BlockOutline<'a>,
    strings: GrowingTable<'a>,
    /// For each object with new tags, its index in the block, and the string ids of its keys and values, which
    /// alternate.
    objects: Vec<(usize, Vec<u32>)>,
}

impl<'a> NewTags<'a> {
    /// Begins the edit of the block in `payload`.
    pub(crate) fn new(payload: &'a [u8]) -> FormatResult<Self> {
        let block = BlockOutline::parse(payload)?;
        Ok(Self {
            strings: GrowingTable::new(block.string_table)?,
            block,
            objects: Vec::new(),
        })
    }

    /// Returns the string id of a key or a value. A new string is appended to the string table of the block.
    pub(crate) fn string_id(&mut self, text: &str) -> u32 {
        self.strings.add(text)
    }

    /// Sets the tags of the object with the given index. `tags` has the string ids of keys and values, which alternate.
    /// Indices must ascend.
    pub(crate) fn push(&mut self, index: usize, tags: Vec<u32>) {
        self.objects.push((index, tags));
    }

    /// Appends the block with the new tags. Replaces unused strings with empty strings, so that removed tags cannot be
    /// read in the file.
    pub(crate) fn put(&self, out: &mut Vec<u8>) -> FormatResult<()> {
        let (mut groups, mut used) = (Vec::with_capacity(self.block.groups.len()), Vec::new());
        let mut pending = PendingTags {
            left: &self.objects,
            index: 0,
        };
        for group in &self.block.groups {
            let mut bytes = Vec::with_capacity(group.0.len() + GROWTH);
            pending.put_group(group, &mut bytes)?;
            mark_strings_of_group(Group(&bytes), &mut used)?;
            mark_users_of_group(Group(&bytes), &mut used)?;
            groups.push(bytes);
        }
        let strings = blank_unused_strings(&self.strings.encoded, &used)?;
        put_bytes_field(out, primitive_block::STRINGTABLE, &strings);
        for group in &groups {
            put_bytes_field(out, primitive_block::PRIMITIVEGROUP, group);
        }
        out.extend_from_slice(&self.block.other_fields);
        Ok(())
    }
}

/// The new tags that were not written yet.
struct PendingTags<'o> {
    left: &'o [(usize, Vec<u32>)],
    /// The index of the next object in the block.
    index: usize,
}

impl<'o> PendingTags<'o> {
    /// Appends a group with the new tags of its objects.
    fn put_group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) -> FormatResult<()> {
        let mut fields = Fields::new(group.0);
        while let Some(field) = fields.next()? {
            match field.number {
                primitive_group::NODES | primitive_group::WAYS | primitive_group::RELATIONS => {
                    match self.take_tags_of_next(1) {
                        [(_, tags)] => {
                            let message = message_with_tags(field.bytes()?, tags)?;
                            put_bytes_field(out, field.number, &message);
                        }
                        _ => out.extend_from_slice(field.raw),
                    }
                }
                primitive_group::DENSE => {
                    let message = field.bytes()?;
                    let (start, dense) = (self.index, DenseNodes::parse(message)?);
                    match self.take_tags_of_next(dense.len()) {
                        [] => out.extend_from_slice(field.raw),
                        objects => {
                            let message = dense_nodes_with_tags(message, &dense, objects, start)?;
                            put_bytes_field(out, field.number, &message);
                        }
                    }
                }
                _ => out.extend_from_slice(field.raw),
            }
        }
        Ok(())
    }

    /// Skips the next `count` objects of the block, and returns their new tags, each with the index of its object.
    fn take_tags_of_next(&mut self, count: usize) -> &'o [(usize, Vec<u32>)] {
        self.index += count;
        let taken = self.left.partition_point(|(index, _)| *index < self.index);
        let (taken, left) = self.left.split_at(taken);
        self.left = left;
        taken
    }
}

/// Returns a Node, Way or Relation message with `tags` in place of its tags.
fn message_with_tags(message: &[u8], tags: &[u32]) -> FormatResult<Vec<u8>> {
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for tag in tags.chunks_exact(2) {
        put_varint(&mut keys, u64::from(tag[0]));
        put_varint(&mut values, u64::from(tag[1]));
    }
    let mut out = Vec::with_capacity(message.len() + 2 * keys.len() + 8);
    let mut put_tags = |out: &mut Vec<u8>| {
        put_packed_field(out, object::KEYS, &std::mem::take(&mut keys));
        put_packed_field(out, object::VALS, &std::mem::take(&mut values));
    };
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        match field.number {
            object::KEYS | object::VALS => continue,
            number if number > object::VALS => put_tags(&mut out),
            _ => {}
        }
        out.extend_from_slice(field.raw);
    }
    put_tags(&mut out);
    Ok(out)
}

/// Returns a DenseNodes message with the new tags in `objects`. `start` is the index of the first node in the block.
fn dense_nodes_with_tags(
    message: &[u8],
    dense: &DenseNodes<'_>,
    objects: &[(usize, Vec<u32>)],
    start: usize,
) -> FormatResult<Vec<u8>> {
    let (mut script, mut done) = (EditScript::default(), start);
    for (number, (index, _)) in objects.iter().enumerate() {
        if *index > done {
            script.keep_many(index - done);
        }
        script.remove();
        script.insert(number);
        done = index + 1;
    }
    if start + dense.len() > done {
        script.keep_many(start + dense.len() - done);
    }
    let (mut column, mut out) = (Vec::new(), Vec::with_capacity(message.len() + GROWTH));
    let tags = |number: usize| objects[number].1.as_slice();
    splice_tags(dense.keys_vals.as_bytes(), &script, tags, &mut column)?;
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        if field.number != dense_nodes::KEYS_VALS {
            out.extend_from_slice(field.raw);
        }
    }
    put_packed_field(&mut out, dense_nodes::KEYS_VALS, &column);
    Ok(out)
}
