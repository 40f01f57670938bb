//! The ids of features in text.

use super::Feature;
use crate::formats::numbers::put_number;
use crate::formats::text_buffer::TextBuffer;
use std::fmt::Write as _;

/// The id of a feature that is being written.
pub(super) enum FeatureId<'a> {
    /// A number that is inserted into the text later, when it is known. The list receives the position of the
    /// insertion.
    Number(&'a mut Vec<usize>),
    /// A letter and a number.
    TypeAndId,
}

impl FeatureId<'_> {
    /// Appends the id of a feature. A letter and a number are enclosed in `quote`. For a number that is not known yet,
    /// only notes the position.
    pub(super) fn put(self, text: &mut TextBuffer, feature: &Feature<'_>, quote: &str) {
        match self {
            Self::Number(positions) => positions.push(text.len()),
            Self::TypeAndId => {
                let (letter, number) = feature.unique_id();
                text.push_str(quote);
                text.push(letter);
                match i64::try_from(number) {
                    Ok(number) => put_number(text, number),
                    Err(_) => {
                        let _ = write!(text, "{number}");
                    }
                }
                text.push_str(quote);
            }
        }
    }
}
