//! Actions for callers that make batches of them, such as tables in memory.

use super::action::{Action, Encoder, LeftOut, SendPart};
use super::actions::for_each;
use super::feed::Rows;
use super::filter::Filter;
use super::find::Findings;
use super::{Selection, find, with_changes};
use crate::error::Result;
use crate::formats::features::{ActionRow, OwnedGeometry, OwnedTags, put_wkb};
use crate::formats::{ChangeAction, KeptVersions};
use crate::osm::{Edges, ObjectKind};
use crate::pbf::Info;
use crate::runtime::{Batches, Context};
use std::path::PathBuf;

/// The effect of changes on an object, with the geometries that an [`export`](crate::commands::export) of a table
/// writes by default.
#[derive(Debug, Clone, Copy)]
pub struct ActionView<'a>(&'a ActionRow);

impl<'a> ActionView<'a> {
    /// The kind of the effect.
    pub const fn action(&self) -> ChangeAction {
        self.0.action
    }

    /// Whether the object has no change of its own: a node or a member of it has changed.
    pub const fn is_indirect(&self) -> bool {
        self.0.is_indirect
    }

    /// The kind of the object.
    pub const fn kind(&self) -> ObjectKind {
        self.0.kind
    }

    /// The id of the object.
    pub const fn id(&self) -> i64 {
        self.0.id
    }

    /// The metadata of the new version. After a deletion, it is that of the deletion.
    pub fn info(&self) -> Info<'a> {
        Info {
            version: self.0.new_version,
            timestamp: self.0.timestamp,
            changeset: self.0.changeset,
            uid: self.0.uid,
            user: self.0.user.as_deref(),
            visible: self.0.action != ChangeAction::Delete,
        }
    }

    /// The version before the changes; `None` for a creation, or if it is unknown.
    pub const fn old_version(&self) -> Option<u32> {
        self.0.old_version
    }

    /// The tags before the changes as pairs of a key and a value; `None` for a creation.
    pub fn old_tags(&self) -> Option<impl Iterator<Item = (&'a str, &'a str)> + use<'a>> {
        self.0.old_tags.as_ref().map(tag_pairs)
    }

    /// The tags after the changes as pairs of a key and a value; `None` for a deletion.
    pub fn new_tags(&self) -> Option<impl Iterator<Item = (&'a str, &'a str)> + use<'a>> {
        self.0.new_tags.as_ref().map(tag_pairs)
    }

    /// Appends the geometry before the changes as WKB (OGC 06-103r4), with longitude before latitude in degrees.
    /// Returns `false` if the object was no feature.
    pub fn put_old_wkb(&self, out: &mut Vec<u8>) -> bool {
        put_geometry(self.0.old_geometry.as_ref(), out)
    }

    /// Appends the geometry after the changes as WKB, as [`put_old_wkb`](Self::put_old_wkb) does. Returns `false` if
    /// the object is no feature or was deleted.
    pub fn put_new_wkb(&self, out: &mut Vec<u8>) -> bool {
        put_geometry(self.0.new_geometry.as_ref(), out)
    }

    /// The box around both geometries, in units of 1e-7 degree; `None` if there is no geometry.
    pub fn edges(&self) -> Option<Edges<i32>> {
        self.0.extent().map(|extent| extent.edges())
    }
}

fn tag_pairs(tags: &OwnedTags) -> impl Iterator<Item = (&str, &str)> {
    tags.iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

fn put_geometry(geometry: Option<&OwnedGeometry>, out: &mut Vec<u8>) -> bool {
    geometry
        .inspect(|geometry| put_wkb(out, &geometry.view(), None))
        .is_some()
}

/// Makes batches of actions. Each thread has its own maker.
pub trait ActionMaker: Send {
    /// A batch of actions.
    type Batch: Send + 'static;

    /// Adds an action to the current batch.
    fn add(&mut self, action: &ActionView<'_>);

    /// Ends the current batch and returns it. Returns `None` if it has no actions.
    fn take(&mut self) -> Option<Self::Batch>;

    /// Whether the current batch should end.
    fn is_full(&self) -> bool;
}

/// Makes batches of what change files do to a file of current data, in the order nodes, ways and relations, each by id.
/// `base` and `changes` are as in [`Options`](super::Options).
///
/// Threads make batches ahead: up to two for each thread, and those of the actions in work. The threads end when the
/// iterator is dropped. The memory is that of [`run`](super::run), and that of the batches. Temporary files are in the
/// directory for temporary files of the system. Errors are those of [`run`](super::run), and items of the iterator.
pub fn batches<M: ActionMaker>(
    base: impl Into<PathBuf>,
    changes: Vec<PathBuf>,
    selection: Selection,
    maker: impl Fn() -> M + Send + Sync + 'static,
    ctx: &Context,
) -> Batches<M::Batch> {
    let path = base.into();
    Batches::start(2 * ctx.jobs, ctx, move |ctx, take| {
        let (scratch, newest) = (std::env::temp_dir(), KeptVersions::Newest);
        with_changes((&path, &changes), newest, &scratch, ctx, |base, changes| {
            let findings = find(base, changes, &selection, &scratch)?;
            let encoder = || Maker {
                rows: Rows::new(selection.whole_objects),
                maker: maker(),
            };
            let filter = Filter::of_features(&selection);
            for_each(base, &findings, &filter, encoder, |batches| {
                batches.into_iter().try_for_each(&mut *take)
            })?;
            Ok(())
        })
    })
}

/// Makes the batches of a thread.
struct Maker<M> {
    rows: Rows,
    maker: M,
}

impl<M: ActionMaker> Encoder for Maker<M> {
    type Part = Vec<M::Batch>;

    fn put(
        &mut self,
        action: &Action<'_>,
        findings: &Findings<'_>,
        _: &SendPart<'_, Self::Part>,
    ) -> Result<()> {
        self.rows.add(action, findings);
        Ok(())
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn take(&mut self) -> Result<Vec<M::Batch>> {
        let mut batches = Vec::new();
        for row in &self.rows.take()? {
            self.maker.add(&ActionView(row));
            if self.maker.is_full() {
                batches.extend(self.maker.take());
            }
        }
        batches.extend(self.maker.take());
        Ok(batches)
    }

    fn take_left_out(&mut self) -> LeftOut {
        self.rows.take_left_out()
    }
}
