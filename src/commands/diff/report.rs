//! The results of comparisons.

/// The result for an object, which is equal, different, or only in the old (left) or new (right) file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Same,
    Different,
    Left,
    Right,
}

impl Report {
    /// Returns the sign at the start of a line about the object.
    pub(super) const fn line_prefix(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Different => '*',
            Self::Left => '-',
            Self::Right => '+',
        }
    }
}
