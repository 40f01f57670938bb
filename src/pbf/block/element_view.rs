//! A view of an object that answers single questions: its id, its tags by string id, its references. Only the fields
//! that an answer needs are decoded.

use super::dense::{Delta, next_tag_run};
use super::message_list::BlockMessage;
use super::messages::{RelationMessage, WayRefs, object_id};
use super::parsed::Block;
use crate::error::FormatError;
use crate::osm::ObjectKind;
use crate::pbf::wire::Fields;
use crate::pbf::wire::schema::object;
use crate::pbf::wire::{Packed, Varints};

/// One object of a block, undecoded except for the id of a dense node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementView<'a> {
    pub kind: ObjectKind,
    form: Form<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Form<'a> {
    Dense { id: i64, keys_vals: &'a [u8] },
    Message(&'a [u8]),
}

impl<'a> Block<'a> {
    /// Calls `visit` with each object in file order, until `visit` fails.
    pub(crate) fn for_each_object(
        &self,
        mut visit: impl FnMut(ElementView<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        for message in self.messages() {
            match message {
                BlockMessage::Single(kind, bytes) => visit(ElementView::message(kind, bytes))?,
                BlockMessage::Dense(dense) => {
                    let (mut ids, mut tags) = (Delta::new(&dense.ids), dense.keys_vals.values());
                    for _ in 0..dense.len() {
                        let (id, keys_vals) = (ids.read()?, next_tag_run(&mut tags)?);
                        visit(ElementView::dense(id, keys_vals))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with the string ids of the key and the value of each tag of the objects of one kind.
    pub(crate) fn for_each_tag(
        &self,
        kind: ObjectKind,
        mut visit: impl FnMut(u64, u64),
    ) -> Result<(), FormatError> {
        for message in self.messages() {
            match message {
                BlockMessage::Single(found, bytes) if found == kind => {
                    ElementView::message(kind, bytes).any_tag(|key, value| {
                        visit(key, value);
                        Ok(false)
                    })?;
                }
                BlockMessage::Dense(dense) if kind == ObjectKind::Node => {
                    let mut ids = dense.keys_vals.values();
                    while !ids.is_done() {
                        match ids.read()? {
                            0 => {}
                            key => visit(key, ids.read()?),
                        }
                    }
                }
                BlockMessage::Single(..) | BlockMessage::Dense(_) => {}
            }
        }
        Ok(())
    }
}

impl<'a> ElementView<'a> {
    /// A dense node. `keys_vals` has the string ids of its tags, keys and values alternating, without the closing 0.
    pub(in crate::pbf) const fn dense(id: i64, keys_vals: &'a [u8]) -> Self {
        Self {
            kind: ObjectKind::Node,
            form: Form::Dense { id, keys_vals },
        }
    }

    /// An object that has a message of its own.
    pub(in crate::pbf) const fn message(kind: ObjectKind, message: &'a [u8]) -> Self {
        Self {
            kind,
            form: Form::Message(message),
        }
    }

    /// The id. Fails if the message has none.
    pub(crate) fn id(&self) -> Result<i64, FormatError> {
        match self.form {
            Form::Dense { id, .. } => Ok(id),
            Form::Message(message) => object_id(message, self.kind),
        }
    }

    /// Whether `test` returns `true` for the string ids of the key and the value of any tag. Tags after such a tag are
    /// not decoded. Fails if `test` does.
    pub(crate) fn any_tag(
        &self,
        mut test: impl FnMut(u64, u64) -> Result<bool, FormatError>,
    ) -> Result<bool, FormatError> {
        match self.form {
            Form::Dense { keys_vals, .. } => {
                let mut run = Varints::new(keys_vals);
                while !run.is_done() {
                    if test(run.read()?, run.read()?)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Form::Message(message) => {
                let (mut keys, mut values) = (Packed::default(), Packed::default());
                let mut fields = Fields::new(message);
                while let Some(field) = fields.next()? {
                    match field.number {
                        object::KEYS => keys.add(&field)?,
                        object::VALS => values.add(&field)?,
                        _ => {}
                    }
                }
                let (mut keys, mut values) = (keys.values(), values.values());
                while !keys.is_done() {
                    if test(keys.read()?, values.read()?)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Whether `test` returns `true` for the id of any node of this way. The object must be a way; for a dense node the
    /// result is `false`.
    pub(crate) fn any_ref(&self, mut test: impl FnMut(i64) -> bool) -> Result<bool, FormatError> {
        let Form::Message(message) = self.form else {
            return Ok(false);
        };
        let way = WayRefs::parse(message)?;
        let mut refs = Delta::new(&way.refs);
        while !refs.is_done() {
            if test(refs.read()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether this way ends at the node where it begins and has at least `least` nodes.
    pub(crate) fn is_closed(&self, least: usize) -> Result<bool, FormatError> {
        let (mut first, mut last, mut count) = (None, None, 0);
        self.any_ref(|id| {
            first.get_or_insert(id);
            last = Some(id);
            count += 1;
            false
        })?;
        Ok(count >= least && first == last)
    }

    /// Whether `test` returns `true` for the kind and the id of any member of this relation. The object must be a
    /// relation; for a dense node the result is `false`.
    pub(crate) fn any_member(
        &self,
        mut test: impl FnMut(ObjectKind, i64) -> bool,
    ) -> Result<bool, FormatError> {
        let Form::Message(message) = self.form else {
            return Ok(false);
        };
        let relation = RelationMessage::parse(message)?;
        relation.check(usize::MAX)?;
        let mut ids = Delta::new(&relation.member_ids);
        let mut kinds = relation.member_kinds.values();
        while !ids.is_done() {
            let id = ids.read()?;
            if ObjectKind::from_number(kinds.read()?).is_some_and(|kind| test(kind, id)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
