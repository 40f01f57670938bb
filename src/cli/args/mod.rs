//! Groups of arguments that several commands share. Methods convert each group to options of the library.

mod format;
pub mod names;
mod objects;
mod output;
mod region;
mod run;
mod values;

pub use format::{
    FormatKind, FormatSpec, InputKind, data_ending, is_change_file_name, is_history_file_name,
    kind_of_name, read_formats, written_formats,
};
pub use objects::{
    ChangesetKindArgs, ExpressionArgs, IdArgs, KindArgs, read_expressions, read_text,
};
pub use output::{
    OutputArgs, OutputBox, WriteArgs, is_stdout, parse_header, parse_percent, text_target,
};
pub use region::{GivenRegion, RegionArgs, region};
pub use run::{JsonForm, RunArgs, Stdout, set_up_stats};
pub use values::{AttributeArg, parse_duration, parse_size, parse_time};
