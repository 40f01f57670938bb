//! Cuts a block of DenseNodes into the parts that are compressed one by one.
//!
//! Columns are compressed one by one because they have little in common. A common Huffman code for ids, coordinates and
//! times suits none of them, and sequences of bytes in one column hardly ever occur in another (`notes/codec.md` has
//! the measurements).

use crate::error::FormatResult;
use crate::pbf::wire::schema::{dense_nodes, info, primitive_block, primitive_group};
use crate::pbf::wire::{Field, Fields};
use std::ops::{ControlFlow, Range};

/// The minimum length of a part in bytes. A shorter part is joined with the next one.
const MIN_PART_LEN: usize = 512;
/// The maximum length in bytes of a part of a column. A longer column is cut into parts of about equal length.
const MAX_COLUMN_LEN: usize = 64 << 10;

/// A part of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PayloadPart {
    pub range: Range<usize>,
    pub values: PartRepetition,
}

/// The kind of repetition in the bytes of a part. It decides how the part is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartRepetition {
    /// A column of ids, versions, `visible` or coordinates. In these columns, sequences of bytes rarely repeat, except
    /// runs of one byte.
    Singular,
    /// Any other column.
    Repeating,
    /// Bytes outside of columns.
    Any,
}

/// Cuts a payload into parts that cover the whole payload. If the payload has no DenseNodes or is damaged, `parts`
/// becomes empty.
pub(super) fn cut_into_parts(payload: &[u8], parts: &mut Vec<PayloadPart>) {
    parts.clear();
    let mut finder = PartFinder {
        parts,
        last_end: 0,
        has_columns: false,
    };
    if finder.find_in_block(payload).is_err() || !finder.has_columns {
        parts.clear();
        return;
    }
    let end = finder.last_end;
    if end < payload.len()
        && let Some(last) = parts.last_mut()
    {
        last.range.end = payload.len();
    }
}

/// A finder of the parts of a payload, in order.
struct PartFinder<'p> {
    parts: &'p mut Vec<PayloadPart>,
    /// The end of the last part.
    last_end: usize,
    has_columns: bool,
}

impl PartFinder<'_> {
    fn find_in_block(&mut self, payload: &[u8]) -> FormatResult<ControlFlow<()>> {
        for_each_field(payload, 0, |field, range| {
            if field.number == primitive_block::PRIMITIVEGROUP {
                let _ = self.find_in_group(field.bytes()?, range.end)?;
            }
            self.end_part(range.end, PartRepetition::Any);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn find_in_group(&mut self, group: &[u8], end: usize) -> FormatResult<ControlFlow<()>> {
        for_each_field(group, end - group.len(), |field, range| {
            // All objects of a group are of one kind, so the first field of a group shows whether it has DenseNodes.
            // Other groups have one field per object and no columns.
            if field.number != primitive_group::DENSE {
                return Ok(ControlFlow::Break(()));
            }
            self.has_columns = true;
            self.find_in_dense_nodes(field.bytes()?, range.end)
        })
    }

    fn find_in_dense_nodes(&mut self, message: &[u8], end: usize) -> FormatResult<ControlFlow<()>> {
        for_each_field(message, end - message.len(), |field, range| {
            match field.number {
                dense_nodes::DENSEINFO => {
                    let info = field.bytes()?;
                    return for_each_field(info, range.end - info.len(), |field, range| {
                        let values = match field.number {
                            info::VERSION | info::VISIBLE => PartRepetition::Singular,
                            _ => PartRepetition::Repeating,
                        };
                        self.end_part(range.end, values);
                        Ok(ControlFlow::Continue(()))
                    });
                }
                dense_nodes::ID | dense_nodes::LAT | dense_nodes::LON => {
                    self.end_part(range.end, PartRepetition::Singular);
                }
                _ => self.end_part(range.end, PartRepetition::Repeating),
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Ends the current part at offset `end` in the payload, if the part is long enough. Cuts a long column into
    /// several parts.
    fn end_part(&mut self, end: usize, values: PartRepetition) {
        let len = end - self.last_end;
        if len < MIN_PART_LEN {
            return;
        }
        let most = match values {
            PartRepetition::Any => len,
            PartRepetition::Singular | PartRepetition::Repeating => {
                len.div_ceil(len.div_ceil(MAX_COLUMN_LEN))
            }
        };
        while self.last_end < end {
            let part_end = end.min(self.last_end + most);
            self.parts.push(PayloadPart {
                range: self.last_end..part_end,
                values,
            });
            self.last_end = part_end;
        }
    }
}

/// Calls `visit` with each field of a message and the range of the field in the payload, until `visit` returns
/// [`ControlFlow::Break`]. `start` is the offset of the message in the payload.
fn for_each_field(
    message: &[u8],
    start: usize,
    mut visit: impl FnMut(&Field<'_>, Range<usize>) -> FormatResult<ControlFlow<()>>,
) -> FormatResult<ControlFlow<()>> {
    let (mut fields, mut at) = (Fields::new(message), start);
    while let Some(field) = fields.next()? {
        let end = at + field.raw.len();
        if visit(&field, at..end)?.is_break() {
            break;
        }
        at = end;
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::wire::put_bytes_field;

    fn message(fields: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, bytes) in fields {
            put_bytes_field(&mut out, *number, bytes);
        }
        out
    }

    fn parts(payload: &[u8]) -> Vec<PayloadPart> {
        let mut parts = Vec::new();
        cut_into_parts(payload, &mut parts);
        parts
    }

    #[test]
    fn columns_are_parts_that_cover_the_payload() {
        let info = message(&[(1, vec![1; 1_000]), (2, vec![2; 3_000]), (3, vec![3; 10])]);
        let dense = message(&[
            (1, vec![0; 2_000]),
            (5, info),
            (8, vec![4; 100_000]),
            (9, vec![5; 600]),
            (10, vec![0; 8]),
        ]);
        let group = message(&[(2, dense)]);
        let strings = message(&[(1, vec![b'a'; 700])]);
        let mut block = message(&[(1, strings), (2, group)]);
        block.extend([17 << 3, 1, 100]);
        let parts = parts(&block);
        let lens: Vec<_> = parts.iter().map(|part| part.range.len()).collect();
        // The field number and the length of a message belong to the part of its first column.
        let expected = [706, 2_003 + 8, 1_003 + 3, 3_003, 50_008, 50_008, 603 + 13];
        assert_eq!(lens, expected);
        let values: Vec<_> = parts.iter().map(|part| part.values).collect();
        use PartRepetition::{Any, Repeating, Singular};
        let expected = [
            Any, Singular, Singular, Repeating, Singular, Singular, Singular,
        ];
        assert_eq!(values, expected);
        let mut end = 0;
        for part in &parts {
            assert_eq!(part.range.start, end);
            end = part.range.end;
        }
        assert_eq!(end, block.len());
        // A truncated payload has no parts.
        assert!(self::parts(&block[..block.len() - 1]).is_empty());
    }

    #[test]
    fn blocks_without_columns_have_no_parts() {
        let way = message(&[(8, vec![1; 2_000])]);
        let dense = message(&[(1, vec![0; 2_000])]);
        let ways = message(&[(3, way)]);
        assert!(parts(&message(&[(1, vec![0; 4_000]), (2, ways.clone())])).is_empty());
        // Ways after nodes are a part of their own.
        let mixed = message(&[(2, message(&[(2, dense)])), (2, ways)]);
        assert_eq!(parts(&mixed).len(), 2);
        assert!(parts(b"").is_empty());
    }
}
