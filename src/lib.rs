//! Fast, exact and safe tools for OpenStreetMap PBF files.
pub mod commands;
mod context;
mod error;
pub mod osc;
pub mod osm;
pub mod pbf;
pub mod read;
mod stats;
pub mod write;

pub use context::{Context, NoObserver, Observer};
pub use error::{Error, Result};
pub use read::ElementReader;
pub use stats::{Counter, Phase, PhaseTimes, Stats, StatsReport};
