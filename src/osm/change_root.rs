/// The start of the element that holds the changes of a change file in XML
/// (<https://wiki.openstreetmap.org/wiki/OsmChange>).
pub(crate) const CHANGE_ROOT: &[u8] = b"<osmChange";

/// Whether a text that begins with `start` is a change file in XML.
pub(crate) fn has_change_root(start: &[u8]) -> bool {
    memchr::memmem::find(start, CHANGE_ROOT).is_some()
}
