//! Parsed blocks: their strings, their units, the messages of their groups, and the columns of dense nodes.

use super::delta::Delta;
use super::dense::DenseNodes;
use super::messages::{RelationMessage, WayRefs};
use super::outline::{BlockOutline, BlockUnits, Group, Message, StringTable};
use crate::error::{FormatError, FormatResult};
use crate::osm::ObjectKind;
use crate::pbf::wire::Fields;

/// The maximum payload size in bytes of a block that is processed as a whole. Passes that hold the references of ways
/// in memory process larger blocks in parts. Blocks of real files are smaller.
pub(crate) const PART_LEN: usize = 4 << 20;

/// A parsed PrimitiveBlock. Its messages have been found, and the columns of each DenseNodes message have been checked
/// to have the same length. Objects are decoded on access.
///
/// A block borrows its payload. Parsing it allocates 16 bytes for each string.
#[derive(Debug)]
pub struct Block<'a> {
    pub(crate) strings: StringTable<'a>,
    pub(crate) units: BlockUnits,
    payload: &'a [u8],
    pub(in crate::pbf) string_table: &'a [u8],
    groups: Vec<Group<'a>>,
    /// The DenseNodes messages that have nodes, each with its encoded form.
    dense: Vec<(&'a [u8], DenseNodes<'a>)>,
    /// The numbers of nodes, ways and relations.
    counts: [usize; 3],
}

/// The maximum number of DenseNodes messages with nodes in a block. Each message uses about 300 bytes of memory.
/// Writers create one message per block.
const MAX_DENSE: usize = 1 << 18;

impl<'a> Block<'a> {
    /// Parses a block but leaves its string table empty, for passes that need only ids and references.
    pub(crate) fn parse_without_strings(payload: &'a [u8]) -> FormatResult<Self> {
        let outline = BlockOutline::parse(payload)?;
        let mut block = Self {
            strings: StringTable::default(),
            units: outline.units,
            payload,
            string_table: outline.string_table,
            groups: Vec::new(),
            dense: Vec::new(),
            counts: [0; 3],
        };
        block.set_groups(outline.groups)?;
        Ok(block)
    }

    /// Sets the groups of the block, and finds their messages.
    fn set_groups(&mut self, groups: Vec<Group<'a>>) -> FormatResult<()> {
        for group in &groups {
            group.try_for_each(|message| {
                let (kind, bytes) = match message {
                    Message::Dense(bytes) => return self.add_dense(bytes),
                    Message::Node(bytes) => (ObjectKind::Node, bytes),
                    Message::Way(bytes) => (ObjectKind::Way, bytes),
                    Message::Relation(bytes) => (ObjectKind::Relation, bytes),
                    Message::Other => return Ok(()),
                };
                self.counts[kind as usize] += 1;
                if bytes.is_empty() {
                    return Err(FormatError::new("object without id"));
                }
                Ok(())
            })?;
        }
        self.groups = groups;
        Ok(())
    }

    fn add_dense(&mut self, bytes: &'a [u8]) -> FormatResult<()> {
        let dense = DenseNodes::parse(bytes)?;
        if dense.is_empty() {
            // `next` fails if the message has tags although it has no nodes.
            return dense.raw_nodes().next().map(drop);
        }
        if self.dense.len() == MAX_DENSE {
            return Err(FormatError::new(
                "a block has more than 262,144 DenseNodes messages, which would take too much memory; \
                 write the file anew with another program, such as `osmium cat`",
            ));
        }
        self.counts[ObjectKind::Node as usize] += dense.len();
        self.dense.push((bytes, dense));
        Ok(())
    }

    /// Returns the block with its strings replaced by `strings`.
    pub(super) fn with_strings<'b>(self, strings: StringTable<'b>) -> Block<'b>
    where
        'a: 'b,
    {
        Block { strings, ..self }
    }

    /// Returns the strings of the block. Index 0 is an empty string.
    pub fn strings(&self) -> impl ExactSizeIterator<Item = &'a str> + '_ {
        self.strings.iter()
    }

    /// Whether both blocks have the same units, and the string table of one block begins with the string table of the
    /// other. If so, a string index that is valid in both blocks means the same string in both.
    pub(crate) fn shares_strings_and_units(&self, other: &Self) -> bool {
        let (one, two) = (self.string_table, other.string_table);
        self.units == other.units && (one.starts_with(two) || two.starts_with(one))
    }

    /// Returns the uncompressed payload that the block was parsed from. A block from [`with_group`](Self::with_group)
    /// has the payload of its source.
    pub(crate) const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the block with its objects replaced by those of `group`, the content of a PrimitiveGroup that uses the
    /// strings and units of this block.
    pub(crate) fn with_group<'b>(&self, group: &'b [u8]) -> FormatResult<Block<'b>>
    where
        'a: 'b,
    {
        self.with_groups(vec![Group(group)])
    }

    fn with_groups<'b>(&self, groups: Vec<Group<'b>>) -> FormatResult<Block<'b>>
    where
        'a: 'b,
    {
        let mut block = Block {
            strings: self.strings.clone(),
            units: self.units,
            payload: self.payload,
            string_table: self.string_table,
            groups: Vec::new(),
            dense: Vec::new(),
            counts: [0; 3],
        };
        block.set_groups(groups)?;
        Ok(block)
    }

    /// Calls `visit` once with the block if its payload has at most [`PART_LEN`] bytes. Otherwise calls `visit` with
    /// consecutive parts of the block, so that the data derived from a part uses bounded memory. An object is never
    /// split.
    pub(crate) fn visit_in_parts(
        &self,
        mut visit: impl FnMut(&Block<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        if self.payload.len() <= PART_LEN {
            return visit(self);
        }
        let (mut part, mut len) = (Vec::new(), 0);
        for group in self.groups.iter().flat_map(|group| group.parts(PART_LEN)) {
            let group = group?;
            if len + group.0.len() > PART_LEN && len > 0 {
                visit(&self.with_groups(std::mem::take(&mut part))?)?;
                len = 0;
            }
            len += group.0.len();
            part.push(group);
        }
        visit(&self.with_groups(part)?)
    }

    /// Appends to `refs` the node references of the ways that both `is_looked_at` and `is_wanted` accept. For each of
    /// these ways, appends to `ways` the id of the way and the end of its references in `refs` (exclusive).
    /// `is_looked_at` is called for each way, before the way is read.
    pub(crate) fn collect_refs(
        &self,
        mut is_looked_at: impl FnMut() -> bool,
        mut is_wanted: impl FnMut(&WayRefs<'_>) -> bool,
        refs: &mut Vec<i64>,
        ways: &mut Vec<(i64, usize)>,
    ) -> FormatResult<()> {
        self.for_each_object_message(ObjectKind::Way, |bytes| {
            if !is_looked_at() {
                return Ok(());
            }
            let way = WayRefs::parse(bytes)?;
            if is_wanted(&way) {
                way.check_size()?;
                Delta::new(&way.refs).append_all_to(refs)?;
                ways.push((way.id, refs.len()));
            }
            Ok(())
        })
    }

    /// Calls `visit` with the node references of all ways, in batches of about `most` references. The first argument of
    /// `visit` has the references of a batch. The second argument lists the ways of the batch, each with its id and the
    /// end of its references in the first argument (exclusive). A long way may be split between batches.
    pub(crate) fn for_each_ref_batch(
        &self,
        most: usize,
        mut visit: impl FnMut(&[i64], &[(i64, usize)]),
    ) -> FormatResult<()> {
        let (mut refs, mut ways) = (Vec::new(), Vec::new());
        self.for_each_object_message(ObjectKind::Way, |bytes| {
            let way = WayRefs::parse(bytes)?;
            let mut values = Delta::new(&way.refs);
            while !values.is_done() {
                values.append_some_to(most.saturating_sub(refs.len()).max(1), &mut refs)?;
                ways.push((way.id, refs.len()));
                if refs.len() >= most {
                    visit(&refs, &ways);
                    refs.clear();
                    ways.clear();
                }
            }
            Ok(())
        })?;
        visit(&refs, &ways);
        Ok(())
    }

    /// Calls `visit` for each member of each relation, with the id of the relation, and the kind and the id of the
    /// member.
    pub(crate) fn for_each_member(
        &self,
        mut visit: impl FnMut(i64, ObjectKind, i64),
    ) -> FormatResult<()> {
        self.for_each_object_message(ObjectKind::Relation, |bytes| {
            let relation = RelationMessage::parse(bytes)?;
            let visited = relation.any_member(|kind, id| {
                visit(relation.id, kind, id);
                false
            });
            visited.map(drop)
        })
    }

    /// Fails if a relation has more than [`MAX_PARTS`](super::limits::MAX_PARTS) members or tags.
    pub(crate) fn check_relation_sizes(&self) -> FormatResult<()> {
        self.for_each_object_message(ObjectKind::Relation, |bytes| {
            RelationMessage::parse(bytes)?.check_size()
        })
    }

    /// Fails if a way has more than [`MAX_PARTS`](super::limits::MAX_PARTS) nodes. Tags are not counted.
    pub(crate) fn check_way_sizes(&self) -> FormatResult<()> {
        self.for_each_object_message(ObjectKind::Way, |bytes| WayRefs::parse(bytes)?.check_size())
    }

    /// Whether the block has objects of a kind.
    pub(crate) fn has(&self, kind: ObjectKind) -> bool {
        self.counts[kind as usize] > 0
    }

    /// Returns the kind and the number of the objects; `None` if the block has no objects or objects of several kinds.
    pub(crate) fn single_kind_and_count(&self) -> Option<(ObjectKind, usize)> {
        let mut kinds = ObjectKind::ALL.into_iter().filter(|kind| self.has(*kind));
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Some((kind, self.counts[kind as usize])),
            _ => None,
        }
    }

    /// Calls `visit` with the message of each object of a kind, in file order. Nodes in DenseNodes messages are left
    /// out.
    #[inline]
    pub(super) fn for_each_object_message<'b>(
        &'b self,
        kind: ObjectKind,
        mut visit: impl FnMut(&'b [u8]) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            if let BlockMessage::Single(found, bytes) = message
                && found == kind
            {
                visit(bytes)?;
            }
        }
        Ok(())
    }

    pub(in crate::pbf) fn messages(&self) -> Messages<'_> {
        Messages {
            groups: self.groups.iter(),
            fields: Fields::new(&[]),
            dense: &self.dense,
        }
    }
}

/// One message of a block's groups.
#[derive(Debug, Clone, Copy)]
pub(in crate::pbf) enum BlockMessage<'a> {
    /// A DenseNodes message with at least one node.
    Dense(&'a DenseNodes<'a>),
    /// The message of a single object, undecoded.
    Single(ObjectKind, &'a [u8]),
}

/// A cursor over the messages of a block.
#[derive(Debug, Clone)]
pub(in crate::pbf) struct Messages<'a> {
    groups: std::slice::Iter<'a, Group<'a>>,
    /// The messages of the current group that were not reached yet.
    fields: Fields<'a>,
    /// The DenseNodes messages that were not reached yet.
    dense: &'a [(&'a [u8], DenseNodes<'a>)],
}

impl<'a> Messages<'a> {
    /// Returns the next message; `None` after the last one. DenseNodes messages without nodes are skipped.
    #[inline]
    pub(in crate::pbf) fn next(&mut self) -> FormatResult<Option<BlockMessage<'a>>> {
        loop {
            let Some(field) = self.fields.next()? else {
                match self.groups.next() {
                    None => return Ok(None),
                    Some(group) => self.fields = Fields::new(group.0),
                }
                continue;
            };
            let (kind, bytes) = match Message::from_field(&field)? {
                Message::Dense(bytes) => match self.dense {
                    [(message, nodes), rest @ ..] if std::ptr::eq(*message, bytes) => {
                        self.dense = rest;
                        return Ok(Some(BlockMessage::Dense(nodes)));
                    }
                    _ => continue,
                },
                Message::Node(bytes) => (ObjectKind::Node, bytes),
                Message::Way(bytes) => (ObjectKind::Way, bytes),
                Message::Relation(bytes) => (ObjectKind::Relation, bytes),
                Message::Other => continue,
            };
            return Ok(Some(BlockMessage::Single(kind, bytes)));
        }
    }
}
