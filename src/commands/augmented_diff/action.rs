//! Actions: the effects of changes on objects.

use super::find::Findings;
use super::states::State;
use crate::error::Result;
use crate::formats::ChangeAction;
use crate::formats::row_limit::OversizedObjects;
use crate::osm::TypeThenId;

/// The effect of all changes, or of a group of changes, on an object.
pub(super) struct Action<'a> {
    pub kind: ChangeAction,
    /// Whether the object has no change of its own.
    pub is_indirect: bool,
    /// The group of the changes; `None` for the effect of all changes.
    pub group: Option<i64>,
    /// The object before the changes; `None` for a creation.
    pub old: Option<State<'a>>,
    /// The object after the changes. After a deletion, it has the content that the change file gives.
    pub new: State<'a>,
}

impl Action<'_> {
    /// Returns the key of the object in canonical order.
    pub(super) fn key(&self) -> TypeThenId {
        self.new.object.key()
    }
}

/// A function that sends a part of the encoded actions. The second argument is the size of the part in memory, in
/// bytes. The function waits while too many sent parts have not been processed yet.
pub(super) type SendPart<'s, P> = dyn Fn(P, usize) -> Result<()> + 's;

/// An encoder of the actions that a worker finds.
pub(super) trait Encoder {
    /// The encoded form of a part of the actions.
    type Part: Send;

    /// Encodes an action. May call `send` with parts of the encoded form if it is long. Fails if `send` fails.
    fn put(
        &mut self,
        action: &Action<'_>,
        findings: &Findings<'_>,
        send: &SendPart<'_, Self::Part>,
    ) -> Result<()>;

    /// Notes that a group of changes creates an object and deletes it again.
    fn note_created_and_deleted(&mut self, _group: Option<i64>, _key: TypeThenId) {
        // Most outputs do not mention such objects.
    }

    /// Returns the approximate encoded size in bytes of the actions since the last call of [`take`](Self::take).
    fn len(&self) -> usize;

    /// Removes and returns the encoded form of the actions since the last call.
    fn take(&mut self) -> Result<Self::Part>;

    /// Removes and returns the counts of tags and objects that were left out since the last call.
    fn take_left_out(&mut self) -> LeftOut {
        // The default is for XML, which has all tags, and for tiles, which have none.
        LeftOut::default()
    }
}

/// The tags and objects that an output leaves out.
#[derive(Default)]
pub(super) struct LeftOut {
    /// The number of tags that were left out because an earlier tag of the same object has the same key.
    pub repeated_keys: u64,
    /// The objects whose rows would be too large.
    pub oversized: OversizedObjects,
}
