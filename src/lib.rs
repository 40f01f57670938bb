//! Fast, exact and safe tools for OpenStreetMap PBF files.
//!
//! The front door is [`ElementReader`]: every object of a file, on one core or on all. The commands
//! of the `pbfhogg` program are in [`commands`]; what they are built from is in [`read`],
//! [`write`](mod@write), [`pbf`], [`text`] and [`osm`].
//!
//! ```no_run
//! use pbfhogg::ElementReader;
//! use pbfhogg::pbf::Element;
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

pub mod commands;
mod context;
mod error;
pub mod index;
mod observer;
pub mod osm;
pub mod pbf;
pub mod read;
pub mod region;
mod stats;
mod sys;
mod system;
pub mod text;
pub mod write;

pub use context::{Context, InputFormat, IoMode};
pub use error::{Error, Result};
pub use observer::{NoObserver, Observer, human_bytes};
pub use read::ElementReader;
pub use stats::{Counter, Phase, PhaseTimes, Stats, StatsReport};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
