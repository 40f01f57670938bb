//! Walking the objects of a block one by one without interpreting them: for merging and patching.

use super::block::{BlockOutline, BlockUnits, Group, Message, StringTable};
use super::block_encoder::BlockEncoder;
use super::dense::{Delta, DenseNodes, RawNode, RawNodes};
use super::intern::SourceStrings;
use super::keys::KeyCursor;
use super::messages::{
    NodeMessage, ObjectOutline, RawInfo, RelationMessage, WayMessage, WayRefs, object_id,
};
use super::object::exact_quotient;
use super::view::ObjectView;
use crate::error::FormatError;
use crate::osm::{ObjectKind, TypeThenId, id_rank};
use crate::pbf::wire::Packed;

/// A block whose messages were found and whose dense columns were checked.
#[derive(Debug)]
pub(crate) struct ParsedBlock<'a> {
    pub strings: StringTable<'a>,
    pub units: BlockUnits,
    payload: &'a [u8],
    string_table: &'a [u8],
    messages: Vec<ParsedMessage<'a>>,
}

/// One message of a block's groups.
#[derive(Debug)]
pub(super) enum ParsedMessage<'a> {
    Dense(Box<DenseNodes<'a>>),
    Single(ObjectKind, &'a [u8]),
}

impl ParsedMessage<'_> {
    pub(super) const fn kind(&self) -> ObjectKind {
        match self {
            Self::Dense(_) => ObjectKind::Node,
            Self::Single(kind, _) => *kind,
        }
    }
}

impl<'a> ParsedBlock<'a> {
    pub(crate) fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let block = Self::parse_bare(payload)?;
        Ok(Self {
            strings: StringTable::parse(block.string_table)?,
            ..block
        })
    }

    /// A block without its strings, for those who ask for ids and references alone.
    pub(crate) fn parse_bare(payload: &'a [u8]) -> Result<Self, FormatError> {
        let outline = BlockOutline::parse(payload)?;
        let mut messages = Vec::new();
        for group in &outline.groups {
            find_messages(group, &mut messages)?;
        }
        Ok(Self {
            strings: StringTable::default(),
            units: outline.units,
            payload,
            string_table: outline.string_table,
            messages,
        })
    }

    /// Whether an index means the same string in both blocks, and a number the same place and time, as far
    /// as both blocks have it.
    pub(crate) fn shares_string_table(&self, other: &Self) -> bool {
        let (one, two) = (self.string_table, other.string_table);
        self.units == other.units && (one.starts_with(two) || two.starts_with(one))
    }

    /// What the block was read from.
    pub(crate) const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The block with its objects replaced by those of one group, which goes with its strings.
    pub(crate) fn with_group<'b>(&self, group: &'b [u8]) -> Result<ParsedBlock<'b>, FormatError>
    where
        'a: 'b,
    {
        let mut messages = Vec::new();
        find_messages(&Group(group), &mut messages)?;
        Ok(ParsedBlock {
            strings: self.strings.clone(),
            units: self.units,
            payload: self.payload,
            string_table: self.string_table,
            messages,
        })
    }

    /// Appends the node references of all ways to `refs`, and to `ways` the id of each way and where its
    /// references end.
    pub(crate) fn collect_refs(
        &self,
        refs: &mut Vec<i64>,
        ways: &mut Vec<(i64, usize)>,
    ) -> Result<(), FormatError> {
        self.collect_refs_of(|_| true, refs, ways)
    }

    /// As [`collect_refs`](Self::collect_refs), of those ways alone that `is_wanted` picks.
    pub(crate) fn collect_refs_of(
        &self,
        is_wanted: impl Fn(i64) -> bool,
        refs: &mut Vec<i64>,
        ways: &mut Vec<(i64, usize)>,
    ) -> Result<(), FormatError> {
        for message in &self.messages {
            if let ParsedMessage::Single(ObjectKind::Way, bytes) = message {
                let way = WayRefs::parse(bytes)?;
                if !is_wanted(way.id) {
                    continue;
                }
                let mut deltas = Delta::new(&way.refs);
                while !deltas.is_done() {
                    refs.push(deltas.read()?);
                }
                ways.push((way.id, refs.len()));
            }
        }
        Ok(())
    }

    /// Calls `look` with the id of each relation and kind and id of each of its members.
    pub(crate) fn for_each_member(
        &self,
        mut look: impl FnMut(i64, ObjectKind, i64),
    ) -> Result<(), FormatError> {
        for message in &self.messages {
            if let ParsedMessage::Single(ObjectKind::Relation, bytes) = message {
                let relation = RelationMessage::parse(bytes)?;
                relation.check(usize::MAX)?;
                let mut ids = Delta::new(&relation.member_ids);
                let mut kinds = relation.member_kinds.values();
                while !ids.is_done() {
                    let kind = ObjectKind::from_number(kinds.read()?)
                        .ok_or(FormatError::new("a member of unknown kind"))?;
                    look(relation.id, kind, ids.read()?);
                }
            }
        }
        Ok(())
    }

    /// Whether there are nodes.
    pub(crate) fn has_nodes(&self) -> bool {
        let is_nodes = |message: &ParsedMessage<'_>| message.kind() == ObjectKind::Node;
        self.messages.iter().any(is_nodes)
    }

    /// How many ways carry the coordinates of their nodes.
    pub(crate) fn count_located_ways(&self) -> Result<u64, FormatError> {
        let mut count = 0;
        for message in &self.messages {
            if let ParsedMessage::Single(ObjectKind::Way, bytes) = message {
                count += u64::from(ObjectOutline::parse(bytes)?.has_locations);
            }
        }
        Ok(count)
    }

    /// The kind of the objects, where they are of one, and how many there are.
    pub(crate) fn single_kind(&self) -> Option<(ObjectKind, usize)> {
        let kind = self.messages.first()?.kind();
        let counts = self.messages.iter().map(|message| match message {
            ParsedMessage::Dense(dense) => dense.len(),
            ParsedMessage::Single(..) => 1,
        });
        let count = counts.sum();
        let is_single = self.messages.iter().all(|message| message.kind() == kind);
        is_single.then_some((kind, count))
    }

    pub(super) fn messages(&self) -> &[ParsedMessage<'a>] {
        &self.messages
    }

    /// The keys of the objects in file order.
    pub(crate) fn keys(&self) -> KeyCursor<'_> {
        KeyCursor::new(self)
    }

    /// The objects in file order.
    pub(crate) fn cursor(&self) -> BlockCursor<'_> {
        BlockCursor {
            messages: self.messages.iter(),
            dense: None,
        }
    }
}

fn find_messages<'a>(
    group: &Group<'a>,
    messages: &mut Vec<ParsedMessage<'a>>,
) -> Result<(), FormatError> {
    use ObjectKind::{Node, Relation, Way};
    group.try_for_each(|message| {
        // Messages of nothing take no room in a file, but here.
        messages.push(match message {
            Message::Node([]) | Message::Way([]) | Message::Relation([]) => {
                return Err(FormatError::new("object without id"));
            }
            Message::Dense(bytes) => {
                let dense = DenseNodes::parse(bytes)?;
                if dense.is_empty() {
                    // An error where there are tags all the same.
                    return dense.raw_nodes().next().map(drop);
                }
                ParsedMessage::Dense(Box::new(dense))
            }
            Message::Node(bytes) => ParsedMessage::Single(Node, bytes),
            Message::Way(bytes) => ParsedMessage::Single(Way, bytes),
            Message::Relation(bytes) => ParsedMessage::Single(Relation, bytes),
            Message::Other => return Ok(()),
        });
        Ok(())
    })
}

/// One object of a block, in the block's units and strings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawObject<'a> {
    /// The place in canonical order.
    pub key: TypeThenId,
    /// Version, or 0.
    pub version: i64,
    pub(super) form: RawForm<'a>,
    tagged: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum RawForm<'a> {
    Dense(RawNode<'a>),
    Message(&'a [u8]),
}

impl<'a> RawObject<'a> {
    /// The object in the units of new blocks, where it can be expressed in them exactly, and the
    /// units that it has then. What has no coordinates has no units but that of time.
    pub(crate) fn in_default_units(
        mut self,
        units: &BlockUnits,
    ) -> Result<(Self, BlockUnits), FormatError> {
        let default = BlockUnits::default();
        if units.is_default() {
            return Ok((self, default));
        }
        let rescaled = match &mut self.form {
            RawForm::Dense(node) => rescale(node, units),
            RawForm::Message(message) => {
                let scaled = self.key.0 == ObjectKind::Node
                    || units.date_granularity != default.date_granularity
                    || ObjectOutline::parse(message)?.has_locations;
                !scaled
            }
        };
        Ok((self, if rescaled { default } else { *units }))
    }

    /// The metadata, in the block's units.
    pub(crate) fn info(&self) -> Result<RawInfo, FormatError> {
        match &self.form {
            RawForm::Dense(node) => Ok(node.info),
            RawForm::Message(message) => RawInfo::parse(ObjectOutline::parse(message)?.info),
        }
    }

    /// Latitude and longitude of a node, in the block's units.
    pub(crate) fn location(&self) -> Result<Option<(i64, i64)>, FormatError> {
        match (&self.form, self.key.0) {
            (RawForm::Dense(node), _) => Ok(Some((node.lat, node.lon))),
            (RawForm::Message(message), ObjectKind::Node) => {
                let node = NodeMessage::parse(message)?;
                Ok(Some((node.lat, node.lon)))
            }
            (RawForm::Message(_), _) => Ok(None),
        }
    }

    /// Whether this is a node among others, column by column.
    pub(crate) const fn is_dense(&self) -> bool {
        matches!(self.form, RawForm::Dense(_))
    }

    /// How many refs a way has, and how many of them have a location.
    pub(crate) fn count_refs(&self) -> Result<(usize, usize), FormatError> {
        match (&self.form, self.key.0) {
            (RawForm::Message(message), ObjectKind::Way) => {
                let way = WayMessage::parse(message)?;
                way.check()?;
                Ok((way.refs.count(), way.lats.count()))
            }
            _ => Ok((0, 0)),
        }
    }

    /// The object as questions see it.
    pub(crate) const fn view(&self) -> ObjectView<'a> {
        match self.form {
            RawForm::Dense(node) => ObjectView::dense(node.id, node.keys_vals),
            RawForm::Message(message) => ObjectView::message(self.key.0, message),
        }
    }

    /// The object without its tags.
    pub(crate) fn without_tags(self) -> Self {
        Self {
            tagged: false,
            ..self
        }
    }

    /// Adds the object to a block of the same units.
    pub(crate) fn add_to(
        &self,
        builder: &mut BlockEncoder,
        source: &mut SourceStrings<'_>,
    ) -> Result<(), FormatError> {
        let tagged = self.tagged;
        match (self.form, self.key.0) {
            (RawForm::Dense(mut node), _) => {
                if !tagged {
                    node.keys_vals = &[];
                }
                builder.add_raw_node(&node, source)
            }
            (RawForm::Message(bytes), ObjectKind::Node) => {
                let mut node = NodeMessage::parse(bytes)?;
                drop_unless(tagged, &mut node.keys, &mut node.values);
                builder.add_node_message(&node, source)
            }
            (RawForm::Message(bytes), ObjectKind::Way) => {
                let mut way = WayMessage::parse(bytes)?;
                drop_unless(tagged, &mut way.keys, &mut way.values);
                builder.add_way_message(&way, source)
            }
            (RawForm::Message(bytes), ObjectKind::Relation) => {
                let mut relation = RelationMessage::parse(bytes)?;
                drop_unless(tagged, &mut relation.keys, &mut relation.values);
                builder.add_relation_message(&relation, source)
            }
        }
    }
}

fn drop_unless(tagged: bool, keys: &mut Packed<'_>, values: &mut Packed<'_>) {
    if !tagged {
        (*keys, *values) = (Packed::default(), Packed::default());
    }
}

/// Brings a node into the units of new blocks. `false`, and nothing done, where that is not exact.
fn rescale(node: &mut RawNode<'_>, units: &BlockUnits) -> bool {
    let default = BlockUnits::default();
    let lat = exact_quotient(units.nano_lat(node.lat), default.granularity);
    let lon = exact_quotient(units.nano_lon(node.lon), default.granularity);
    let time = node.info.timestamp.checked_mul(units.date_granularity);
    let time = time.and_then(|millis| exact_quotient(millis, default.date_granularity));
    match (lat, lon, time) {
        (Some(lat), Some(lon), Some(time)) => {
            (node.lat, node.lon, node.info.timestamp) = (lat, lon, time);
            true
        }
        _ => false,
    }
}

/// Walks the objects of a [`ParsedBlock`].
#[derive(Debug)]
pub(crate) struct BlockCursor<'a> {
    messages: std::slice::Iter<'a, ParsedMessage<'a>>,
    dense: Option<RawNodes<'a>>,
}

impl<'a> BlockCursor<'a> {
    /// The next object in file order.
    pub(crate) fn next(&mut self) -> Result<Option<RawObject<'a>>, FormatError> {
        loop {
            if let Some(nodes) = &mut self.dense {
                if let Some(node) = nodes.next()? {
                    return Ok(Some(RawObject {
                        key: (ObjectKind::Node, id_rank(node.id)),
                        version: node.info.version,
                        form: RawForm::Dense(node),
                        tagged: true,
                    }));
                }
                self.dense = None;
            }
            match self.messages.next() {
                None => return Ok(None),
                Some(ParsedMessage::Dense(dense)) => self.dense = Some(dense.raw_nodes()),
                Some(ParsedMessage::Single(kind, message)) => {
                    return single(*kind, message).map(Some);
                }
            }
        }
    }
}

fn single(kind: ObjectKind, message: &[u8]) -> Result<RawObject<'_>, FormatError> {
    let version = RawInfo::version_in(ObjectOutline::parse(message)?.info)?;
    Ok(RawObject {
        key: (kind, id_rank(object_id(message, kind)?)),
        version,
        form: RawForm::Message(message),
        tagged: true,
    })
}
