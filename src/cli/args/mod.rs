//! Groups of arguments that several commands share. Methods convert each group to options of the library.

mod format;
mod objects;
mod output;
mod run;
mod values;

pub use format::{FormatSpec, names_changes};
pub use objects::{ExpressionArgs, IdArgs, KindArgs};
pub use output::{OutputArgs, WriteArgs, text_target};
pub use run::{RunArgs, Stdout};
pub use values::{Attribute, parse_size};
