//! Fast, exact and safe tools for OpenStreetMap PBF files.
//!
//! | to | use |
//! |---|---|
//! | read every object, on one core or on all | [`ElementReader`] |
//! | write a file object by object | [`ElementWriter`] |
//! | read blob by blob | [`PbfFile`], [`BlobPlan`], [`BlobReader`], [`Block`] |
//! | say what is at a place | [`geocode::GeocodeIndex`] |
//! | run what the `pbfhogg` program does | [`commands`] |
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
//!
//! Coordinates are integers: nanodegrees (`nano`) or units of 1e-7 degree (`_e7`, `decimicro`). Lengths are in bytes,
//! times in seconds since 1970. A function that reads or writes fails with an [`Error`] that names the cause and, where
//! they are known, the file, the blob and the offset of the blob.
//!
//! Writing is as short:
//!
//! ```
//! use pbfhogg::{ElementWriter, Location, Object};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("cafe.osm.pbf");
//! let mut writer = ElementWriter::create(&path)?;
//! writer.write(&Object::node(1, Location::from_degrees(52.5, 13.4), &[("amenity", "cafe")]))?;
//! assert_eq!(writer.finish()?.objects, Some(1));
//! # Ok::<(), pbfhogg::Error>(())
//! ```
//!
//! # Features
//!
//! All are on by default; `default-features = false` leaves them out, and with them more than half of the dependencies.
//!
//! - `cli`: the program. It needs all others.
//! - `parquet`: [`commands::export`] to GeoParquet and to tables.
//! - `serve`: the HTTP service of the reverse geocoder.
//! - `update`: [`commands::update`] from web servers. Without it, servers in directories can be used.

#[doc(hidden)]
pub mod area;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod commands;
mod deflate;
mod engine;
mod error;
#[doc(hidden)]
pub mod file;
#[doc(hidden)]
pub mod formats;
pub mod geocode;
#[doc(hidden)]
pub mod geometry;
#[doc(hidden)]
pub mod index;
#[doc(hidden)]
pub mod io;
#[doc(hidden)]
pub mod net;
#[doc(hidden)]
pub mod osm;
#[doc(hidden)]
pub mod pbf;
#[doc(hidden)]
pub mod region_file;
#[doc(hidden)]
pub mod replication;
#[doc(hidden)]
pub mod runtime;
mod system;

pub use engine::{ElementWriter, Format, HeaderOption, HeaderOptions, OutputOptions};
pub use error::{Error, FormatError, Result};
pub use file::{BlobPlan, BlobReader, ElementReader, PbfFile, PlanNeeds, WriteOptions, Written};
pub use formats::{TextCompression, TextFormat, TextOptions, Visibility, WayLocations};
pub use io::{Input, OutputTarget};
pub use osm::{Bbox, KindSet, Location, ObjectId, ObjectKind};
pub use pbf::{
    BlobEntry, BlobFlags, Block, Compression, Element, HeaderBlock, Info, InfoFields, List, Member,
    Members, Node, Object, ObjectBody, Refs, Relation, StringTable, Tags, Way,
};
pub use runtime::{
    Context, Counter, Disorder, InputFormat, IoMode, NoObserver, Observer, Phase, PhaseTimes,
    Stats, StatsReport,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(doctest)]
#[doc = include_str!("../reference/library.md")]
struct LibraryGuideExamples;
