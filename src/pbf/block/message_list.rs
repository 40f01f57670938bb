//! The messages of a block's groups: the position of each in eight bytes.

use super::dense::DenseNodes;
use super::outline::{Group, Message};
use crate::error::FormatError;
use crate::osm::ObjectKind;

/// One message of a block's groups.
#[derive(Debug, Clone, Copy)]
pub(in crate::pbf) enum BlockMessage<'a> {
    /// A DenseNodes message with at least one node.
    Dense(&'a DenseNodes<'a>),
    /// The message of a single object, undecoded.
    Single(ObjectKind, &'a [u8]),
}

impl BlockMessage<'_> {
    pub(in crate::pbf) const fn kind(&self) -> ObjectKind {
        match self {
            Self::Dense(_) => ObjectKind::Node,
            Self::Single(kind, _) => *kind,
        }
    }
}

/// The messages of some groups, in order.
#[derive(Debug, Clone)]
pub(super) struct MessageList<'a> {
    /// The payload or the group that contains all messages.
    bytes: &'a [u8],
    positions: Vec<Position>,
    /// The DenseNodes messages that have nodes.
    dense: Vec<DenseNodes<'a>>,
}

/// The position of a message.
#[derive(Debug, Clone, Copy)]
struct Position {
    /// The index of the first byte in [`MessageList::bytes`], or the index of a DenseNodes message in
    /// [`MessageList::dense`].
    start: u32,
    /// The kind of the object, or [`DENSE`], in the lowest two bits, and the length of the message in the others.
    kind_and_len: u32,
}

impl Position {
    /// The length of the message in bytes; 0 for DenseNodes.
    const fn len(self) -> usize {
        match self.kind_and_len {
            DENSE => 0,
            kind_and_len => (kind_and_len >> 2) as usize,
        }
    }
}

/// The number of a DenseNodes message, where other messages have the number of an [`ObjectKind`].
const DENSE: u32 = 3;
/// The length in bytes that the groups together must not reach, because [`Position`] has 30 bits for a length.
const MAX_LEN: usize = 1 << 30;

/// The maximum number of DenseNodes messages that have nodes. Each takes about 300 bytes of memory. Writers create one
/// per block.
const MAX_DENSE: usize = 1 << 18;

impl<'a> MessageList<'a> {
    /// An empty list for groups that lie within `bytes`. Fails if `bytes` is longer than 1 GiB.
    pub(in crate::pbf) fn new(bytes: &'a [u8]) -> Result<Self, FormatError> {
        if bytes.len() >= MAX_LEN {
            return Err(FormatError::new("a block of more than 1 GiB"));
        }
        Ok(Self {
            bytes,
            positions: Vec::new(),
            dense: Vec::new(),
        })
    }

    /// Appends the messages of a group, which must lie within the bytes of the list. Empty DenseNodes messages are left
    /// out.
    pub(in crate::pbf) fn add(&mut self, group: &Group<'a>) -> Result<(), FormatError> {
        use ObjectKind::{Node, Relation, Way};
        group.try_for_each(|message| {
            let (kind, bytes) = match message {
                Message::Dense(bytes) => return self.add_dense(bytes),
                Message::Node(bytes) => (Node, bytes),
                Message::Way(bytes) => (Way, bytes),
                Message::Relation(bytes) => (Relation, bytes),
                Message::Other => return Ok(()),
            };
            // An empty message takes two bytes in a payload but eight in the list.
            if bytes.is_empty() {
                return Err(FormatError::new("object without id"));
            }
            self.positions.push(Position {
                start: (bytes.as_ptr().addr() - self.bytes.as_ptr().addr()) as u32,
                kind_and_len: (bytes.len() as u32) << 2 | kind as u32,
            });
            Ok(())
        })
    }

    fn add_dense(&mut self, bytes: &'a [u8]) -> Result<(), FormatError> {
        let dense = DenseNodes::parse(bytes)?;
        if dense.is_empty() {
            // Fails if the message has tags although it has no nodes.
            return dense.raw_nodes().next().map(drop);
        }
        if self.dense.len() == MAX_DENSE {
            return Err(FormatError::new(
                "a block has more than 262,144 DenseNodes messages, which would take too much memory; \
                 write the file anew with another program, such as `osmium cat`",
            ));
        }
        self.positions.push(Position {
            start: self.dense.len() as u32,
            kind_and_len: DENSE,
        });
        self.dense.push(dense);
        Ok(())
    }

    /// The list in parts: consecutive messages that have at most `most` bytes together, or a single message.
    pub(in crate::pbf) fn parts(&self, most: usize) -> impl Iterator<Item = Self> {
        let mut rest = self.positions.as_slice();
        std::iter::from_fn(move || {
            let mut bytes = 0;
            let fits = |position: &&Position| {
                bytes += position.len();
                bytes <= most
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (part, others) = rest.split_at_checked(count)?;
            rest = others;
            Some(self.part(part))
        })
    }

    /// The list of the messages at some of its positions.
    fn part(&self, positions: &[Position]) -> Self {
        let mut part = Self {
            bytes: self.bytes,
            positions: positions.to_vec(),
            dense: Vec::new(),
        };
        for position in &mut part.positions {
            if position.kind_and_len == DENSE {
                let dense = &self.dense[position.start as usize];
                position.start = part.dense.len() as u32;
                part.dense.push(dense.clone());
            }
        }
        part
    }

    pub(in crate::pbf) fn iter(&self) -> Messages<'_> {
        Messages {
            bytes: self.bytes,
            positions: self.positions.iter(),
            dense: &self.dense,
        }
    }
}

/// Iterates over the messages of a block.
#[derive(Debug, Clone)]
pub(in crate::pbf) struct Messages<'a> {
    bytes: &'a [u8],
    positions: std::slice::Iter<'a, Position>,
    dense: &'a [DenseNodes<'a>],
}

impl<'a> Iterator for Messages<'a> {
    type Item = BlockMessage<'a>;

    #[inline]
    fn next(&mut self) -> Option<BlockMessage<'a>> {
        let position = self.positions.next()?;
        let start = position.start as usize;
        let kind = match position.kind_and_len & 3 {
            0 => ObjectKind::Node,
            1 => ObjectKind::Way,
            2 => ObjectKind::Relation,
            _ => return Some(BlockMessage::Dense(&self.dense[start])),
        };
        let len = (position.kind_and_len >> 2) as usize;
        Some(BlockMessage::Single(kind, &self.bytes[start..start + len]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_kinds_are_those_of_the_positions() {
        let numbers = ObjectKind::ALL.map(|kind| kind as u32);
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(size_of::<Position>(), 8);
    }
}
