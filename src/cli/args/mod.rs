//! Groups of arguments that several commands share. Methods convert each group to options of the library.

mod objects;
mod output;
mod run;
mod values;

pub use objects::{ExpressionArgs, IdArgs, KindArgs};
pub use output::{OutputArgs, WriteArgs, names_changes, text_target};
pub use run::{RunArgs, Stdout};
pub use values::{Attribute, parse_size};
