//! The warning about objects with several tags of the same key.

use crate::error::Advice;
use crate::runtime::Context;

/// Warns of tags that were left out, because an earlier tag of the object has the same key. Does nothing if there are
/// none.
pub(super) fn warn_of_repeated_keys(count: u64, ctx: &Context) {
    let message = match count {
        0 => return,
        1 => "1 tag was left out, because an earlier tag of its object has the same key".to_owned(),
        _ => format!(
            "{count} tags were left out, because earlier tags of their objects have the same keys"
        ),
    };
    ctx.warn_with_advice(message, Advice::ListRepeatedKeys);
}
