//! Change sets of files that list versions of objects: PBF, and text formats without sections for actions.

use super::limits::check_lens_fit_u32;
use super::{ChangeSet, Draft, Span};
use crate::error::{FormatError, FormatResult};
use crate::formats::change_action::ChangeAction;
use crate::formats::document_header::DocumentHeader;
use crate::osm::ObjectId;
use crate::pbf::{Block, Object, ObjectBody};

/// The memory in bytes at which [`ChangeSet::read_block`] passes the collected changes on as a set, and begins another
/// set.
const MAX_MEMORY: usize = 4 << 20;

impl ChangeSet {
    /// Creates a set with a header and without changes.
    pub(in crate::formats) fn of_header(document_header: DocumentHeader) -> Self {
        Self {
            document_header,
            ..Self::default()
        }
    }

    /// Reads the payload of a blob. Each object becomes the change that led to its version. Calls `take` with the
    /// changes in several sets, in order, because a blob can have more changes than fit into memory. Stops when `take`
    /// returns `false`.
    pub(in crate::formats) fn read_block(
        payload: &[u8],
        mut take: impl FnMut(Self) -> bool,
    ) -> FormatResult<()> {
        let (mut set, mut object) = (Self::default(), Object::default());
        let block = Block::parse(payload)?;
        let mut elements = block.cursor();
        while let Some(element) = elements.next()? {
            object.fill(element, &block)?;
            set.push(ChangeAction::of(&object), &object)?;
            if set.memory() >= MAX_MEMORY && !take(std::mem::take(&mut set)) {
                return Ok(());
            }
        }
        take(set);
        Ok(())
    }

    /// Replaces the action of each object that is not deleted. The new action is a creation for version 1, and a
    /// modification otherwise.
    pub(in crate::formats) fn infer_actions(&mut self) {
        for change in &mut self.changes {
            change.action = ChangeAction::of_version(!change.is_deletion(), change.version);
        }
    }

    /// Replaces the tags of the objects for which `new_tags` returns tags. Fails if `new_tags` does, or if the lists or
    /// strings become longer than 32 bits can address.
    pub(crate) fn edit_tags(
        &mut self,
        mut new_tags: impl FnMut(&Object<'_>) -> FormatResult<Option<Vec<[String; 2]>>>,
    ) -> FormatResult<()> {
        for index in 0..self.changes.len() {
            let Some(tags) = new_tags(&self.object(&self.changes[index]))? else {
                continue;
            };
            let start = self.tags.len();
            for text in tags.iter().flatten() {
                self.tags.push(self.strings.add(text));
            }
            let lens = [self.tags.len(), self.refs.len(), self.locations.len()];
            check_lens_fit_u32(&self.strings, lens).map_err(FormatError::with)?;
            self.changes[index].tags = Span {
                start: start as u32,
                end: self.tags.len() as u32,
            };
        }
        Ok(())
    }

    /// Appends a deletion that gives only the id, the version and the time of the deleted object. Fails if the lists or
    /// strings become longer than 32 bits can address.
    pub(crate) fn push_deletion(
        &mut self,
        object: ObjectId,
        version: Option<u32>,
        timestamp: Option<i64>,
    ) -> FormatResult<()> {
        let mut draft = Draft::new(self, object.kind, ChangeAction::Delete);
        draft.id = object.id;
        (draft.version, draft.timestamp) = (version, timestamp);
        self.append_draft(&draft).map_err(FormatError::with)
    }

    /// Appends a change with its object. Fails if the lists or strings become longer than 32 bits can address.
    pub(crate) fn push(&mut self, action: ChangeAction, object: &Object<'_>) -> FormatResult<()> {
        let mut draft = Draft::new(self, object.kind(), action);
        draft.id = object.id;
        draft.version = object.info.version;
        draft.timestamp = object.info.timestamp;
        draft.changeset = object.info.changeset;
        draft.uid = object.info.uid;
        draft.user = self.strings.add(object.info.user.unwrap_or_default());
        for (key, value) in &object.tags {
            let tag = [self.strings.add(key), self.strings.add(value)];
            self.tags.extend(tag);
        }
        match &object.body {
            ObjectBody::Node { location } => draft.location = *location,
            ObjectBody::Way { refs, locations } => {
                self.refs.extend_from_slice(refs);
                self.locations.extend_from_slice(locations);
            }
            ObjectBody::Relation { members } => {
                for member in members {
                    let role = self.strings.add(member.role);
                    self.refs.push(member.id);
                    self.roles.push((member.kind, role));
                }
            }
        }
        self.append_draft(&draft).map_err(FormatError::with)
    }
}
