//! Buffers of objects as text.

use super::change_action::ChangeAction;
use super::text_buffer::TextBuffer;
use crate::pbf::Object;

/// A buffer of consecutive objects as text of a format.
pub(super) trait ObjectLines: std::fmt::Debug + Send + Sync {
    /// Appends an object. `has_same_info` tells whether its metadata equals that of the previous object.
    fn put(&mut self, object: &Object<'_>, has_same_info: bool);

    /// Returns the text in the buffer, which the caller may take.
    fn text(&mut self) -> &mut TextBuffer;

    /// Removes and returns the sections of the first and the last object; `None` for a format without sections. The
    /// text lacks the start tag of the first section and the end tag of the last section.
    fn take_sections(&mut self) -> Option<Sections> {
        None
    }

    /// Returns the number of characters in the text that the format cannot express, and resets it to 0.
    fn take_inexpressible(&mut self) -> u64 {
        0
    }
}

/// The sections of the first and the last change in a sequence of consecutive changes of an OsmChange document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sections {
    pub first: ChangeAction,
    pub last: ChangeAction,
}
