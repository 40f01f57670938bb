//! Walking over the kinds and ids of the objects in a block, without decoding the objects.

use super::dense::{Delta, DenseNodes, STRIDE};
use super::message_list::{BlockMessage, Messages};
use super::messages;
use super::messages::{ObjectOutline, RawInfo};
use super::parsed::Block;
use crate::error::FormatError;
use crate::osm::{ObjectKind, TypeThenId, id_rank};
use crate::pbf::wire::Varints;

/// Walks over the kind and the id of each object of a [`Block`], in file order. Metadata is decoded only if
/// [`version_info`](Self::version_info) is called.
pub(crate) struct ElementKeys<'a> {
    messages: Messages<'a>,
    current: Current<'a>,
}

/// The message from which the last key was read.
enum Current<'a> {
    None,
    Dense(DenseKeys<'a>),
    Message(&'a [u8]),
}

/// The ids of dense nodes. The columns of versions, times and visibility are read up to the current id on request.
struct DenseKeys<'a> {
    ids: Delta<'a>,
    /// The number of ids that were not read yet.
    left: usize,
    /// The number of ids read so far.
    read: usize,
    versions: Varints<'a>,
    timestamps: Delta<'a>,
    visible: Varints<'a>,
    /// The number of versions, times and visible flags read so far.
    followed: usize,
}

/// The version and the time of an object as its block stores them, 0 if missing, and whether the object is a deleted
/// version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct VersionInfo {
    pub version: i64,
    pub timestamp: i64,
    pub is_deleted: bool,
}

impl VersionInfo {
    /// The version number; `None` if the object has none.
    pub(crate) fn version_number(self) -> Option<u32> {
        messages::version_number(self.version)
    }
}

impl<'a> ElementKeys<'a> {
    pub(crate) fn new(block: &'a Block<'a>) -> Self {
        Self {
            messages: block.messages(),
            current: Current::None,
        }
    }

    /// The key of the next object; `None` after the last one.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<TypeThenId>, FormatError> {
        loop {
            if let Current::Dense(nodes) = &mut self.current
                && nodes.left > 0
            {
                nodes.left -= 1;
                nodes.read += 1;
                return Ok(Some((ObjectKind::Node, id_rank(nodes.ids.read()?))));
            }
            match self.messages.next() {
                None => return Ok(None),
                Some(BlockMessage::Dense(dense)) => {
                    self.current = Current::Dense(DenseKeys::new(dense));
                }
                Some(BlockMessage::Single(kind, message)) => {
                    self.current = Current::Message(message);
                    let id = messages::object_id(message, kind)?;
                    return Ok(Some((kind, id_rank(id))));
                }
            }
        }
    }

    /// Version and time of the object whose key [`next`](Self::next) returned last. May be called once for each key.
    pub(crate) fn version_info(&mut self) -> Result<VersionInfo, FormatError> {
        match &mut self.current {
            Current::None => Ok(VersionInfo::default()),
            Current::Dense(nodes) => nodes.version_info(),
            Current::Message(message) => {
                let info = RawInfo::parse(ObjectOutline::parse(message)?.info)?;
                Ok(VersionInfo {
                    version: info.version,
                    timestamp: info.timestamp,
                    is_deleted: info.visible == Some(false),
                })
            }
        }
    }
}

impl Block<'_> {
    /// The keys of the objects in file order.
    pub(crate) fn keys(&self) -> ElementKeys<'_> {
        ElementKeys::new(self)
    }

    /// Calls `visit` with the kind and the id of each object, in file order.
    pub(crate) fn for_each_id(
        &self,
        mut visit: impl FnMut(ObjectKind, i64),
    ) -> Result<(), FormatError> {
        for message in self.messages() {
            match message {
                BlockMessage::Single(kind, message) => {
                    visit(kind, messages::object_id(message, kind)?);
                }
                BlockMessage::Dense(dense) => {
                    let mut deltas = Delta::new(&dense.ids);
                    let (mut ids, mut left) = ([0; STRIDE], dense.len());
                    while left > 0 {
                        let ids = &mut ids[..left.min(STRIDE)];
                        deltas.fill(ids)?;
                        ids.iter().for_each(|id| visit(ObjectKind::Node, *id));
                        left -= ids.len();
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'a> DenseKeys<'a> {
    fn new(dense: &'a DenseNodes<'a>) -> Self {
        Self {
            ids: Delta::new(&dense.ids),
            left: dense.len(),
            read: 0,
            versions: dense.info.versions.values(),
            timestamps: Delta::new(&dense.info.timestamps),
            visible: dense.info.visible.values(),
            followed: 0,
        }
    }

    /// Reads versions, times and visible flags up to the id that was read last. A second call for the same id returns
    /// the default.
    fn version_info(&mut self) -> Result<VersionInfo, FormatError> {
        let mut version = VersionInfo::default();
        while self.followed < self.read {
            self.followed += 1;
            if !self.versions.is_done() {
                version.version = i64::from(self.versions.read()? as i32);
            }
            version.timestamp = self.timestamps.read_or_zero()?;
            version.is_deleted = !self.visible.is_done() && self.visible.read()? == 0;
        }
        Ok(version)
    }
}
