//! The elements of a block as the block stores them, for merging and patching.

use super::delta::Delta;
use super::dense::{RawNode, RawNodes};
use super::messages::{
    NodeMessage, ObjectOutline, RawInfo, RelationMessage, VersionInfo, WayMessage, object_id,
};
use super::outline::{BlockUnits, exact_quotient};
use super::parsed::{Block, BlockMessage, Messages};
use crate::error::FormatResult;
use crate::osm::{Location, ObjectKind, TypeThenId, id_rank, is_exact_e7};

/// One object of a block, in the units and with the string ids of the block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawElement<'a> {
    /// The sort key in canonical order.
    pub key: TypeThenId,
    /// The version; 0 if the object has none.
    pub version: i64,
    pub(in crate::pbf) form: RawForm<'a>,
    pub(in crate::pbf) tagged: bool,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::pbf) enum RawForm<'a> {
    Dense(RawNode<'a>),
    Message(&'a [u8]),
}

impl<'a> RawElement<'a> {
    fn from_dense_node(node: RawNode<'a>) -> Self {
        Self {
            key: (ObjectKind::Node, id_rank(node.id)),
            version: node.info.version,
            form: RawForm::Dense(node),
            tagged: true,
        }
    }

    /// Returns the object of a Node, Way or Relation message.
    pub(super) fn from_message(kind: ObjectKind, message: &'a [u8]) -> FormatResult<Self> {
        let version = RawInfo::parse_version(ObjectOutline::parse(message)?.info)?;
        Ok(Self {
            key: (kind, id_rank(object_id(message, kind)?)),
            version,
            form: RawForm::Message(message),
            tagged: true,
        })
    }

    /// Whether the object is a node with a message of its own.
    pub(crate) fn is_node_message(&self) -> bool {
        self.key.0 == ObjectKind::Node && matches!(self.form, RawForm::Message(_))
    }

    /// Converts a dense node from `units`, the units of its block, to the default units, if these can express the node
    /// exactly. Does not change other objects. Returns the object and the units that apply to it.
    pub(crate) fn into_default_units(
        mut self,
        units: &BlockUnits,
    ) -> FormatResult<(Self, BlockUnits)> {
        let default = BlockUnits::default();
        let rescaled = match &mut self.form {
            RawForm::Dense(node) => try_convert_to_default_units(node, units),
            RawForm::Message(message) => {
                let scaled = self.key.0 == ObjectKind::Node
                    || units.date_granularity != default.date_granularity
                    || ObjectOutline::parse(message)?.has_locations;
                !scaled
            }
        };
        Ok((self, if rescaled { default } else { *units }))
    }

    /// Returns the metadata, in the block's units.
    pub(crate) fn info(&self) -> FormatResult<RawInfo> {
        match &self.form {
            RawForm::Dense(node) => Ok(node.info),
            RawForm::Message(message) => RawInfo::of_object(message),
        }
    }

    /// Returns the version, the time in the block's units, and whether the object is a deleted version.
    pub(crate) fn version_info(&self) -> FormatResult<VersionInfo> {
        Ok(self.info()?.version_info())
    }

    /// Returns the latitude and longitude of a node in the block's units; `None` for ways and relations.
    pub(crate) fn location(&self) -> FormatResult<Option<(i64, i64)>> {
        match (&self.form, self.key.0) {
            (RawForm::Dense(node), _) => Ok(Some((node.lat, node.lon))),
            (RawForm::Message(message), ObjectKind::Node) => {
                let node = NodeMessage::parse(message)?;
                Ok(Some((node.lat, node.lon)))
            }
            (RawForm::Message(_), _) => Ok(None),
        }
    }

    /// Returns the latitude and longitude of a node in nanodegrees; `None` for ways and relations.
    pub(crate) fn nano_location(&self, units: &BlockUnits) -> FormatResult<Option<(i64, i64)>> {
        let location = self.location()?;
        Ok(location.map(|(lat, lon)| (units.nano_lat(lat), units.nano_lon(lon))))
    }

    /// Whether a [`Location`](crate::osm::Location) can express the coordinates of this element exactly. True for ways
    /// and relations; locations in ways are not checked.
    pub(crate) fn has_exact_location(&self, units: &BlockUnits) -> FormatResult<bool> {
        let location = self.nano_location(units)?;
        Ok(location.is_none_or(|(lat, lon)| is_exact_e7(lat) && is_exact_e7(lon)))
    }

    /// Whether two elements are stored identically. The ids of dense nodes are not compared. The result is meaningful
    /// only if the blocks [share a string table](super::parsed::Block::shares_strings_and_units). Even then, `false`
    /// does not mean that the objects differ.
    pub(crate) fn is_stored_alike(&self, other: &Self) -> bool {
        match (&self.form, &other.form) {
            (RawForm::Dense(one), RawForm::Dense(two)) => {
                one.info == two.info
                    && (one.lat, one.lon) == (two.lat, two.lon)
                    && one.keys_vals == two.keys_vals
            }
            (RawForm::Message(one), RawForm::Message(two)) => one == two,
            _ => false,
        }
    }

    /// Whether this is a node of a DenseNodes message.
    pub(crate) const fn is_dense(&self) -> bool {
        matches!(self.form, RawForm::Dense(_))
    }

    /// Returns the number of refs of a way, and the number of refs for which the way stores a location on the earth.
    /// Both are 0 for nodes and relations. `units` are the units of the block.
    pub(crate) fn count_refs_and_locations(
        &self,
        units: &BlockUnits,
    ) -> FormatResult<(usize, usize)> {
        match (&self.form, self.key.0) {
            (RawForm::Message(message), ObjectKind::Way) => {
                let way = WayMessage::parse(message)?;
                way.check_refs()?;
                let (mut lats, mut lons) = (Delta::new(&way.lats), Delta::new(&way.lons));
                let mut located = 0;
                while !lats.is_done() {
                    let location = units.location(lats.read()?, lons.read()?);
                    located += usize::from(location.is_some_and(Location::is_on_earth));
                }
                Ok((way.refs.count(), located))
            }
            _ => Ok((0, 0)),
        }
    }

    /// Calls `visit` with the kind and the id of each member of a relation. Does nothing for nodes and ways.
    pub(crate) fn for_each_member(
        &self,
        mut visit: impl FnMut(ObjectKind, i64),
    ) -> FormatResult<()> {
        let visit_all = |kind, id| {
            visit(kind, id);
            false
        };
        self.any_member(visit_all).map(drop)
    }

    /// Whether `test` returns `true` for the kind and the id of any member of a relation. Returns `false` for nodes and
    /// ways.
    pub(crate) fn any_member(
        &self,
        test: impl FnMut(ObjectKind, i64) -> bool,
    ) -> FormatResult<bool> {
        match (&self.form, self.key.0) {
            (RawForm::Message(message), ObjectKind::Relation) => {
                RelationMessage::parse(message)?.any_member(test)
            }
            _ => Ok(false),
        }
    }

    /// Returns the object with its tags marked as absent, so that encoders omit them.
    pub(crate) fn without_tags(self) -> Self {
        Self {
            tagged: false,
            ..self
        }
    }
}

impl Default for RawElement<'_> {
    /// Returns the node with the id 0, at the location 0, 0.
    fn default() -> Self {
        Self::from_dense_node(RawNode::default())
    }
}

/// Converts a node to the default units. Returns `false` and changes nothing if the conversion is not exact.
fn try_convert_to_default_units(node: &mut RawNode<'_>, units: &BlockUnits) -> bool {
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

impl Block<'_> {
    /// Returns a cursor over the objects in file order.
    pub(crate) fn cursor(&self) -> RawElements<'_> {
        RawElements::new(self.messages())
    }

    /// Calls `visit` with each selected node. `select` is called with a list of the ids of consecutive nodes, and must
    /// append the positions of the selected ids in this list to its second argument, in ascending order. The nodes
    /// between the selected ones are skipped without a check.
    pub(crate) fn for_each_selected_node(
        &self,
        mut select: impl FnMut(&[i64], &mut Vec<usize>),
        mut visit: impl FnMut(&RawElement<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let (mut messages, mut selected) = (self.messages(), Vec::new());
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => {
                    dense.for_each_selected(&mut select, &mut selected, |node| {
                        visit(&RawElement::from_dense_node(node))
                    })?;
                }
                BlockMessage::Single(ObjectKind::Node, message) => {
                    selected.clear();
                    select(&[object_id(message, ObjectKind::Node)?], &mut selected);
                    if !selected.is_empty() {
                        visit(&RawElement::from_message(ObjectKind::Node, message)?)?;
                    }
                }
                BlockMessage::Single(..) => {}
            }
        }
        Ok(())
    }
}

/// A cursor over the objects of a [`Block`].
#[derive(Debug)]
pub(crate) struct RawElements<'a> {
    messages: Messages<'a>,
    dense: Option<RawNodes<'a>>,
    /// The object that was read last. It stays here, because moving an object of this size takes as long as reading it.
    current: RawElement<'a>,
}

impl<'a> RawElements<'a> {
    pub(in crate::pbf) fn new(messages: Messages<'a>) -> Self {
        Self {
            messages,
            dense: None,
            current: RawElement::default(),
        }
    }

    /// Returns the object that [`next`](Self::next) returned last; the default object before the first call.
    pub(crate) const fn current(&self) -> &RawElement<'a> {
        &self.current
    }

    /// Returns the next object in file order; `None` after the last one.
    pub(crate) fn next(&mut self) -> FormatResult<Option<&RawElement<'a>>> {
        loop {
            if let Some(nodes) = &mut self.dense {
                if let Some(node) = nodes.next()? {
                    self.current = RawElement::from_dense_node(node);
                    return Ok(Some(&self.current));
                }
                self.dense = None;
            }
            match self.messages.next()? {
                None => return Ok(None),
                Some(BlockMessage::Dense(dense)) => self.dense = Some(dense.raw_nodes()),
                Some(BlockMessage::Single(kind, message)) => {
                    self.current = RawElement::from_message(kind, message)?;
                    return Ok(Some(&self.current));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::block::samples::block_of_nodes;

    #[test]
    fn selected_nodes_equal_those_of_a_cursor() {
        for is_plain in [false, true] {
            let payload = block_of_nodes(1..700, is_plain);
            let block = Block::parse(&payload).unwrap();
            for step in [1, 2, 5, 300, 1000] {
                let mut expected = Vec::new();
                let (mut cursor, mut index) = (block.cursor(), 0);
                while let Some(element) = cursor.next().unwrap() {
                    if index % step == step - 1 {
                        expected.push(format!("{element:?}"));
                    }
                    index += 1;
                }
                let (mut found, mut before) = (Vec::new(), 0);
                let select = |ids: &[i64], selected: &mut Vec<usize>| {
                    let here = before..before + ids.len();
                    let wanted = here.clone().filter(|at| at % step == step - 1);
                    selected.extend(wanted.map(|at| at - here.start));
                    before = here.end;
                };
                let visit = |element: &RawElement<'_>| {
                    found.push(format!("{element:?}"));
                    Ok(())
                };
                block.for_each_selected_node(select, visit).unwrap();
                assert_eq!(found, expected, "{step}");
            }
        }
    }
}
