//! The commands as library functions.
//!
//! Each command is a module with a struct `Options` and a function `run`, which returns a summary of the run. The
//! submodules [`inspect::show`], [`tags_edit::changes`] and [`tags_filter::changes`] are commands of this form, too.
//! With the feature `pages`, `inspect::page` and `diff::page` write the report of `run` as a page of HTML.
//!
//! The fields of `Options` are what `new` takes. Everything else has a default, and a method that sets it.
//!
//! # Inputs and outputs
//!
//! Unless the documentation of `run` states otherwise, an input is PBF, OSM XML or OPL, the latter two plain or
//! compressed with gzip, bzip2 or zstd. A text input is first converted to a temporary PBF, and a stream is copied to a
//! temporary file, both in the system's temporary directory.
//!
//! A named output appears under its name when it is complete and flushed to disk. If `run` fails, the output does not
//! appear, and an existing file of that name stays as it was. An output that is a stream may have been written in part.
//! If a command writes several files, some may be complete when another one fails.
//!
//! # Memory
//!
//! The base memory of a command is the sum of:
//!
//! - about 5 MB for the program;
//! - 128 bytes per blob of an input for the plan, and as much again if the input has a table of contents;
//! - 128 bytes per blob of an output, and up to 90 more bytes while the output's table of contents is encoded;
//! - 8 MB, and 4 MB per job, for blobs in flight;
//! - up to 12 MB for chunks that wait to be written, if there is an output;
//! - per job one frame, one payload and, if blobs are encoded, one block under construction: together less than 5 MB
//!   for ordinary files;
//! - 24 MB for chunks of text in flight, if an input is text;
//! - per job one uncompressed blob and 5 MB of text, if an output is text.
//!
//! The number of jobs is [`Context::jobs`](crate::Context::jobs). A set of ids needs between 1 bit per id, if the ids
//! are dense, and 2.5 bytes per id. A command that first sorts an unsorted input also needs the memory of [`sort`].
//!
//! # Errors
//!
//! All commands have the following errors; `run` lists its own.
//!
//! - Inputs: the input cannot be opened or read, is a directory, is empty, is truncated, or is not an OSM file. A blob
//!   that has to be decoded is damaged, or differs from its entry in the index. The header requires a feature that this
//!   program does not know. A text input violates its format. Standard input is a terminal.
//! - Outputs: the output is a directory. It exists and may not be overwritten. It cannot be created, written, flushed
//!   to disk or given its name. Its file system has less free space than the blobs to be copied need. With
//!   [`WriteOptions::verify`](crate::WriteOptions::verify), a copied blob is damaged. The reader of standard output
//!   closes the pipe ([`ClosedPipe`](crate::Error::ClosedPipe)).
//! - System: a temporary file cannot be created or written, or not even one thread can be started.
//!
//! A blob that is copied without being decoded is checked only with
//! [`WriteOptions::verify`](crate::WriteOptions::verify).

/// Declares a struct with the options of a command. The fields before `setters` are given when the options are created.
/// Each field in `setters` has a default, and a method of the same name that sets the field. Users can set the field
/// only with this method. Each field in `internal` has a default, but no method. A default that is not written is
/// [`Default::default`]. With `new`, also declares the constructor, and derives `Debug` and `Clone`. The documentation
/// of the constructor says what the defaults mean.
macro_rules! options {
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (
        $(#[$about:meta])*
        pub struct $options:ident { $($given:tt)* }
        $(#[$of_new:meta])*
        new($($parameter:ident: $parameter_type:ty),* $(,)?);
        setters { $($(#[$of_field:meta])* $field:ident: $type:ty $(= $default:expr)?,)* }
        $(internal { $($(#[$of_internal:meta])* $internal:ident: $internal_type:ty,)* })?
    ) => {
        options! {
            $(#[$about])*
            #[derive(Debug, Clone)]
            #[non_exhaustive]
            pub struct $options {
                $($given)*
                $($($(#[$of_internal])* pub(crate) $internal: $internal_type,)*)?
            }
            setters { $($(#[$of_field])* $field: $type,)* }
        }

        impl $options {
            #[doc = "Creates a value with the given fields, and defaults otherwise.\n"]
            $(#[$of_new])*
            pub fn new($($parameter: $parameter_type),*) -> Self {
                Self {
                    $($parameter: $parameter.into(),)*
                    $($field: options!(@default $($default)?),)*
                    $($($internal: Default::default(),)*)?
                }
            }
        }
    };
    (
        $(#[$about:meta])*
        pub struct $options:ident { $($(#[$of_given:meta])* $visibility:vis $given:ident: $given_type:ty,)* }
        setters { $($(#[$of_field:meta])* $field:ident: $type:ty,)* }
    ) => {
        $(#[$about])*
        pub struct $options {
            $($(#[$of_given])* $visibility $given: $given_type,)*
            $($(#[$of_field])* pub(crate) $field: $type,)*
        }

        impl $options {
            $(
                #[doc = concat!("Sets `", stringify!($field), "`:\n")]
                $(#[$of_field])*
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}

pub mod add_locations_to_ways;
pub mod apply_changes;
pub mod augmented_diff;
pub mod build_geocode_index;
pub mod cat;
pub mod changeset_filter;
mod changesets;
pub mod check;
pub mod coastline;
pub mod degrade;
pub mod diff;
mod empty_region;
pub mod export;
pub mod extract;
pub mod fileinfo;
pub mod geocode;
pub mod getid;
pub mod getparents;
mod ids;
pub mod inspect;
pub mod locations_index;
pub mod merge_changes;
mod object_census;
#[cfg(feature = "pages")]
mod pages;
mod planet_step;
mod random;
pub mod region_changes;
pub mod regions;
pub mod renumber;
pub mod repack;
pub mod repair;
mod repeated_keys;
pub mod sort;
pub mod split;
pub mod synth;
pub mod tags_count;
pub mod tags_edit;
pub mod tags_filter;
pub mod time_filter;
pub mod update;

pub use ids::IdSource;
pub use planet_step::PlanetStep;
