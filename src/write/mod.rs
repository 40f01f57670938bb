//! From framed chunks to a durable file.
//!
//! [`PbfWriter`] takes frames that workers made and ranges of input files to copy, in order, and
//! builds the output's table of contents from what passes through it. [`Output`] makes the result
//! appear all at once, or not at all.

mod backends;
mod frames;
mod output;
mod parts;
mod pbf_writer;
mod reblock;
mod text_encoder;
mod text_output;
mod unfinished;

pub(crate) use backends::{ALIGNMENT, AlignedBuffer};
pub use frames::{EncodedFrame, FrameEncoder};
pub use output::{OpenOutput, Output, OutputTarget, ScratchFile};
pub(crate) use parts::{Assembler, Part};
pub use pbf_writer::{Expected, PbfWriter, WriteOptions, Written};
pub(crate) use reblock::{Encoders, Reblocker};
pub use text_encoder::{TextChunk, TextCompression, TextEncoder};
pub use text_output::TextOutput;
pub use unfinished::abandon_unfinished;
