//! A parsed block: its strings, its units, and its messages with the columns of dense nodes.

use super::delta::Delta;
use super::message_list::{BlockMessage, MessageList, Messages};
use super::messages::{ObjectOutline, RelationMessage, WayRefs};
use super::outline::{BlockOutline, BlockUnits, Group, StringTable};
use crate::error::FormatError;
use crate::osm::ObjectKind;

/// The payload length in bytes above which a block is processed in parts by passes that hold the references of its
/// ways. Blocks of real files are shorter.
pub(crate) const PART_LEN: usize = 4 << 20;

/// A parsed PrimitiveBlock: its messages are found, and the columns of each DenseNodes message have the same length.
/// Objects are decoded on access.
///
/// A block borrows its payload. Parsing it takes 16 bytes of memory for each string, and eight for each way, relation
/// and plain node.
#[derive(Debug)]
pub struct Block<'a> {
    pub(crate) strings: StringTable<'a>,
    pub(crate) units: BlockUnits,
    payload: &'a [u8],
    pub(in crate::pbf) string_table: &'a [u8],
    messages: MessageList<'a>,
}

impl<'a> Block<'a> {
    /// Finds the messages and leaves the string table empty, for passes that need ids and references only.
    pub(crate) fn parse_bare(payload: &'a [u8]) -> Result<Self, FormatError> {
        let outline = BlockOutline::parse(payload)?;
        let mut messages = MessageList::new(payload)?;
        for group in &outline.groups {
            messages.add(group)?;
        }
        Ok(Self {
            strings: StringTable::default(),
            units: outline.units,
            payload,
            string_table: outline.string_table,
            messages,
        })
    }

    /// The block with other strings.
    pub(super) fn with_strings<'b>(self, strings: StringTable<'b>) -> Block<'b>
    where
        'a: 'b,
    {
        Block { strings, ..self }
    }

    /// The strings of the block.
    pub const fn strings(&self) -> &StringTable<'a> {
        &self.strings
    }

    /// The units in which the block stores coordinates and times.
    pub const fn units(&self) -> BlockUnits {
        self.units
    }

    /// Whether both blocks have the same units and the string table of one begins with that of the other. A string
    /// index that is valid in both blocks then means the same string.
    pub(crate) fn shares_string_table(&self, other: &Self) -> bool {
        let (one, two) = (self.string_table, other.string_table);
        self.units == other.units && (one.starts_with(two) || two.starts_with(one))
    }

    /// The uncompressed payload that the block was parsed from. A block from [`with_group`](Self::with_group) has the
    /// payload of its source.
    pub(crate) const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The block with its objects replaced by those of `group`, the content of a PrimitiveGroup that uses the strings
    /// and units of this block.
    pub(crate) fn with_group<'b>(&self, group: &'b [u8]) -> Result<Block<'b>, FormatError>
    where
        'a: 'b,
    {
        let mut messages = MessageList::new(group)?;
        messages.add(&Group(group))?;
        Ok(Block {
            strings: self.strings.clone(),
            units: self.units,
            payload: self.payload,
            string_table: self.string_table,
            messages,
        })
    }

    /// Calls `visit` with the block or, if its payload is longer than [`PART_LEN`], with consecutive parts of the
    /// block, so that the data derived from a part takes bounded memory. An object is never split.
    pub(crate) fn in_parts(
        &self,
        mut visit: impl FnMut(&Block<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        if self.payload.len() <= PART_LEN {
            return visit(self);
        }
        self.messages.parts(PART_LEN).try_for_each(|messages| {
            visit(&Block {
                strings: self.strings.clone(),
                units: self.units,
                payload: self.payload,
                string_table: self.string_table,
                messages,
            })
        })
    }

    /// Appends the node references of all ways to `refs`. Appends to `ways` the id of each way and the length of `refs`
    /// after the way.
    pub(crate) fn collect_refs(
        &self,
        refs: &mut Vec<i64>,
        ways: &mut Vec<(i64, usize)>,
    ) -> Result<(), FormatError> {
        self.collect_refs_of(|_| true, refs, ways)
    }

    /// As [`collect_refs`](Self::collect_refs), but only for ways for whose id `is_wanted` returns `true`.
    pub(crate) fn collect_refs_of(
        &self,
        is_wanted: impl Fn(i64) -> bool,
        refs: &mut Vec<i64>,
        ways: &mut Vec<(i64, usize)>,
    ) -> Result<(), FormatError> {
        for message in self.messages() {
            if let BlockMessage::Single(ObjectKind::Way, bytes) = message {
                let way = WayRefs::parse(bytes)?;
                if !is_wanted(way.id) {
                    continue;
                }
                way.check_size()?;
                Delta::new(&way.refs).push_all(refs)?;
                ways.push((way.id, refs.len()));
            }
        }
        Ok(())
    }

    /// Calls `visit` with the references of all ways, about `most` at a time: the node references, and for each way its
    /// id and the number of references up to its last one. The references of a long way may be visited in parts.
    pub(crate) fn for_refs(
        &self,
        most: usize,
        mut visit: impl FnMut(&[i64], &[(i64, usize)]),
    ) -> Result<(), FormatError> {
        let (mut refs, mut ways) = (Vec::new(), Vec::new());
        for message in self.messages() {
            if let BlockMessage::Single(ObjectKind::Way, bytes) = message {
                let way = WayRefs::parse(bytes)?;
                let mut values = Delta::new(&way.refs);
                while !values.is_done() {
                    values.push_some(most.saturating_sub(refs.len()).max(1), &mut refs)?;
                    ways.push((way.id, refs.len()));
                    if refs.len() >= most {
                        visit(&refs, &ways);
                        refs.clear();
                        ways.clear();
                    }
                }
            }
        }
        visit(&refs, &ways);
        Ok(())
    }

    /// Calls `visit` with each member of each relation: the id of the relation, then the kind and the id of the member.
    pub(crate) fn for_each_member(
        &self,
        mut visit: impl FnMut(i64, ObjectKind, i64),
    ) -> Result<(), FormatError> {
        for message in self.messages() {
            if let BlockMessage::Single(ObjectKind::Relation, bytes) = message {
                let relation = RelationMessage::parse(bytes)?;
                relation.any_member(|kind, id| {
                    visit(relation.id, kind, id);
                    false
                })?;
            }
        }
        Ok(())
    }

    /// Fails if a relation has more members or tags than are held in an expanded form.
    pub(crate) fn check_relation_sizes(&self) -> Result<(), FormatError> {
        for message in self.messages() {
            if let BlockMessage::Single(ObjectKind::Relation, bytes) = message {
                RelationMessage::parse(bytes)?.check_size()?;
            }
        }
        Ok(())
    }

    /// Whether the block has objects of a kind.
    pub(crate) fn has(&self, kind: ObjectKind) -> bool {
        self.messages().any(|message| message.kind() == kind)
    }

    /// The number of ways that carry the coordinates of their nodes.
    pub(crate) fn count_located_ways(&self) -> Result<u64, FormatError> {
        let mut count = 0;
        for message in self.messages() {
            if let BlockMessage::Single(ObjectKind::Way, bytes) = message {
                count += u64::from(ObjectOutline::parse(bytes)?.has_locations);
            }
        }
        Ok(count)
    }

    /// The kind and the number of the objects; `None` if the block has no objects or objects of several kinds.
    pub(crate) fn single_kind(&self) -> Option<(ObjectKind, usize)> {
        let kind = self.messages().next()?.kind();
        let counts = self.messages().map(|message| match message {
            BlockMessage::Dense(dense) => dense.len(),
            BlockMessage::Single(..) => 1,
        });
        let count = counts.sum();
        let is_single = self.messages().all(|message| message.kind() == kind);
        is_single.then_some((kind, count))
    }

    pub(in crate::pbf) fn messages(&self) -> Messages<'_> {
        self.messages.iter()
    }
}
