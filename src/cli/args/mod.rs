//! Groups of arguments that several commands share. Each decides about its options once, and commands see the decision.

mod objects;
mod output;
mod run;
mod values;

pub use objects::{ExpressionArgs, IdArgs, KindArgs};
pub use output::{OutputArgs, WriteArgs, names_changes, text_target};
pub use run::{RunArgs, Stdout};
pub use values::{Attribute, parse_size};
