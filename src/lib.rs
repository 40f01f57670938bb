//! Fast, exact and safe tools for OpenStreetMap PBF files.
//!
//! [`ElementReader`] reads every object of a file, on one core or on all. [`commands`] holds the commands of the
//! `pbfhogg` program as functions.
//!
//! ```no_run
//! use pbfhogg::{Element, ElementReader};
//!
//! let reader = ElementReader::from_path("berlin.osm.pbf")?;
//! let node_references = reader.par_map_reduce(
//!     |element| match element {
//!         Element::Way(way) => way.refs().count() as u64,
//!         _ => 0,
//!     },
//!     || 0,
//!     |a, b| a + b,
//! )?;
//! # let _ = node_references;
//! # Ok::<(), pbfhogg::Error>(())
//! ```

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod commands;
mod engine;
mod error;
pub mod file;
pub mod formats;
pub mod geometry;
pub mod index;
pub mod io;
pub mod osm;
pub mod pbf;
pub mod region_file;
pub mod runtime;

pub use error::{Error, FormatError, Result};
pub use file::ElementReader;
pub use pbf::Element;
pub use runtime::{
    Context, Counter, InputFormat, IoMode, NoObserver, Observer, Phase, PhaseTimes, Stats,
    StatsReport, human_bytes,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
