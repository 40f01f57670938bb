//! Fast, exact and safe tools for OpenStreetMap PBF files.
//!
//! | to | use |
//! |---|---|
//! | read every object, on one core or on all | [`ElementReader`] |
//! | write a file object by object | [`ElementWriter`] |
//! | read blob by blob | [`PbfFile`], [`BlobPlan`], [`BlobDecoder`], [`Block`] |
//! | look up what is at a place | [`geocode::GeocodeIndex`] |
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
//! Coordinates are integers, in nanodegrees (`nano`) or in units of 1e-7 degree (`_e7`, `decimicro`). Lengths are in
//! bytes, and times in seconds since 1970. Functions that read or write return an [`Error`] if they fail. The error
//! names the cause and, where they are known, the file, the blob and the offset of the blob.
//!
//! Writing a file is as short:
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
//! All of these features are on by default. `default-features = false` turns them off, which removes more than half of
//! the dependencies, among them clap, tokio, hyper, ureq and parquet.
//!
//! - `cli`: the program. It turns on the other features of this list.
//! - `pages`: pages of HTML with charts, about a file and about the differences between two files.
//! - `parquet`: [`commands::export`] to GeoParquet and to tables.
//! - `serve`: the HTTP service of the reverse geocoder.
//! - `update`: [`commands::update`] from web servers. Without it, updates come only from local directories.
//!
//! # Environment
//!
//! The library reads `TMPDIR` (the directory of temporary files that have no better place) and, with the feature
//! `update`, `PBFHOGG_HTTP_TIMEOUT` (for an input that is a URL, the number of seconds within which the server has to
//! send data), `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`.

// The modules re-export items that only tests and benchmarks use. Without the feature `unstable`, nothing uses these
// re-exports.
#![cfg_attr(not(feature = "unstable"), allow(unused_imports))]

mod area;
#[cfg(feature = "cli")]
pub mod cli;
mod coast;
pub mod commands;
mod deflate;
mod engine;
mod error;
#[cfg(test)]
mod for_tests {
    pub(crate) mod random;
    pub(crate) mod rounds;
}
mod file;
mod formats;
pub mod geocode;
mod geometry;
mod index;
mod io;
mod net;
mod osm;
mod pbf;
mod region_file;
mod replication;
mod runtime;
mod system;
#[cfg(feature = "unstable")]
pub mod unstable;

pub mod read {
    //! Reading files object by object, on one core or on all; blob by blob; from a stream; or by ids.
    //!
    //! | to | use |
    //! |---|---|
    //! | visit every object in order | [`ElementReader::for_each`], [`try_for_each`](ElementReader::try_for_each) |
    //! | find one object, and stop | [`ElementReader::find_map`] |
    //! | use every core | [`ElementReader::par_fold`], [`par_try_fold`], [`par_map_reduce`] |
    //! | get objects by their ids | [`ElementReader::ids`] |
    //! | also read XML, OPL and o5m | [`open`] |
    //! | read standard input or a socket while data arrives | [`BlobStream`] |
    //! | iterate on threads of your own | [`ElementReader::blobs`], [`DataBlob::decode`], [`DataBlock::objects`] |
    //! | choose blobs by their entries in an index | [`PbfFile`], [`BlobPlan`], [`BlobDecoder`] |
    //! | make batches of selected objects on all cores, for example for tables | [`ElementReader::batches`] |
    //! | divide a file between processes | [`PbfFile::parts`], [`ObjectSelection::part`] |
    //!
    //! [`par_try_fold`]: ElementReader::par_try_fold
    //! [`par_map_reduce`]: ElementReader::par_map_reduce
    //!
    //! An [`Element`] borrows from its block, and its tags and references are decoded on access. An [`Object`] is an
    //! owned copy, which can be changed and written.

    pub use crate::engine::open_any as open;
    pub use crate::engine::{BatchMaker, ObjectSelection};
    pub use crate::file::{BlobStream, DataBlob, DataBlock, FilePart, IndexKind, Parts};
    pub use crate::osm::{
        MetadataCondition, MetadataNumber, ObjectExpression, ObjectFilter, RegexMatcher,
        StringMatcher, TagPattern,
    };
    #[cfg(doc)]
    use crate::{BlobDecoder, BlobPlan, Element, ElementReader, Object, PbfFile};
}

pub mod write {
    //! Writing files object by object, or in blocks from several threads.
    //!
    //! [`ElementWriter`] accepts objects one by one, compresses on every core, and writes PBF with a table of contents
    //! or, with [`OutputOptions::format`], OSM XML, OPL or another format. To make blocks on threads of your own, give
    //! each thread a [`FrameEncoder`], and pass the frames of all threads to one [`PbfWriter`]:
    //!
    //! ```
    //! use pbfhogg::write::{FrameEncoder, PbfWriter};
    //! use pbfhogg::{Compression, Context, HeaderBlock, Location, Object, OutputTarget};
    //!
    //! # let directory = tempfile::tempdir()?;
    //! # let path = directory.path().join("grid.osm.pbf");
    //! let target = OutputTarget::file(&path);
    //! let mut writer = PbfWriter::new(target, HeaderBlock::for_objects(), &Context::default())?;
    //! let blocks: Vec<_> = std::thread::scope(|scope| {
    //!     let threads = (0..4).map(|row: i64| {
    //!         scope.spawn(move || {
    //!             let mut encoder = FrameEncoder::new(Compression::default(), false);
    //!             for column in 0..1000 {
    //!                 let location = Location::from_degrees(row as f64, column as f64 / 100.0);
    //!                 encoder.add(&Object::node(row * 1000 + column, location, &[]))?;
    //!             }
    //!             encoder.finish()
    //!         })
    //!     });
    //!     let threads: Vec<_> = threads.collect();
    //!     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    //! });
    //! for frames in blocks {
    //!     frames?.into_iter().try_for_each(|frame| writer.frame(frame))?;
    //! }
    //! assert_eq!(writer.finish()?.objects, Some(4000));
    //! # Ok::<(), Box<dyn std::error::Error>>(())
    //! ```
    //!
    //! A file gets its name when it is complete and on disk. [`OutputTarget::writer`] creates a target that writes to
    //! any [`Write`](std::io::Write).

    pub use crate::engine::{
        Format, HeaderOption, HeaderOptions, InheritedFields, KeptField, WriteSummary,
    };
    pub use crate::file::{BlobHistory, BlobLocations, PbfWriter};
    pub use crate::formats::{
        DebugOptions, TextCompression, TextFormat, TextOptions, Visibility, WayLocations,
    };
    pub use crate::io::{ScratchFile, SizeHint, WriterTarget, abandon_unfinished};
    pub use crate::pbf::{BlockEncoder, EncodedFrame, FrameEncoder, InfoFields};
    #[cfg(doc)]
    use crate::{ElementWriter, OutputOptions, OutputTarget};
}

pub mod model {
    //! The parts of an [`Element`](crate::Element) and of an [`Object`](crate::Object), ages of versions, and degrees.

    pub use crate::osm::{Age, Degrees, Edges, UniqueTags, Unversioned, parse_object_ids};
    pub use crate::pbf::{List, Members, Node, Refs, Relation, Tags, Way};
}

pub mod areas {
    //! Objects with their geometries, and the assembly of polygons from ways.
    //!
    //! [`FeatureReader`] reads a file and returns points, lines and polygons. [`assemble`] makes polygons from ways
    //! that are in memory. Coordinates are integers in units of 1e-7 degree, and all arithmetic uses integers.

    pub use crate::area::{
        AreaNode, AreaPolygon, AreaProblem, AreaWay, Assembly, OpenRings, ProblemKind, Role,
        assemble,
    };
    pub use crate::engine::{Feature, FeatureReader, Form, Geometry, IndexType};
    pub use crate::geometry::{Antimeridian, Extent, Point, Shape};
}

pub mod changes {
    //! Change files: OsmChange, o5c, OPL and PBF, compressed or not. [`read()`] keeps the newest change of each object,
    //! and [`batches`] makes batches of all changes, for example for tables.
    //!
    //! ```no_run
    //! use pbfhogg::changes;
    //!
    //! let changes = changes::read(&["day.osc.gz"], &pbfhogg::Context::default())?;
    //! for (change, object) in changes.iter() {
    //!     println!("{:?} {} {}", change.action, object.kind(), object.id);
    //! }
    //! # Ok::<(), pbfhogg::Error>(())
    //! ```

    pub use crate::formats::{
        Change, ChangeAction, ChangeMaker, ChangeSet, ChangeState, Changeset, Comment,
        DocumentHeader, Replication, change_batches as batches, read_change_files as read,
        read_change_states as read_states,
    };
}

pub use engine::{ElementReader, ElementWriter, OutputOptions};
pub use error::{Advice, Error, ErrorKind, FormatError, Result};
pub use file::{BlobDecoder, BlobPlan, PbfFile, PlanNeeds, WriteOptions, Written};
pub use io::{Input, OutputTarget};
pub use osm::{Bbox, KindSet, Location, ObjectId, ObjectKind};
pub use pbf::{
    BlobEntry, Block, Compression, Element, HeaderBlock, Info, Member, Object, ObjectBody,
};
pub use runtime::{
    Batches, Context, Counter, Disorder, InputFormat, IoMode, NoObserver, Observer, Phase,
    PhaseTimes, Stats, StatsReport,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(doctest)]
#[doc = include_str!("../reference/library.md")]
struct LibraryGuideExamples;
