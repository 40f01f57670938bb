//! `sort` and `merge`: write objects in canonical order. Blobs that are in order already are copied.

use crate::engine::OutputOptions;
use crate::engine::input;
use crate::engine::input_content::refuse_data_beside_changes;
pub use crate::engine::sort::{Dedupe, EqualVersions, LastChange, Summary};
use crate::engine::sort::{SortJob, sort_files};
use crate::error::Result;
use crate::file::PbfFile;
use crate::runtime::Context;
use std::path::PathBuf;

options! {
    /// The options of `sort` and `merge`.
    pub struct Options {
        /// The input files; `-` is standard input. Objects of the same kind, id and version keep the order of the
        /// inputs.
        pub inputs: Vec<PathBuf>,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// Duplicates are kept.
    new(inputs: Vec<PathBuf>, output: OutputOptions);
    setters {
        /// The handling of objects of the same kind and id.
        dedupe: Dedupe = Dedupe::KeepAll,
        /// Whether the changesets in text inputs are written after the objects, ordered by id. Only an output in a text
        /// format other than OsmChange can contain changesets. For other outputs, a warning gives the number of
        /// changesets that are left out.
        changesets: bool = true,
        /// Whether the inputs may be a mixture of change files and files with data. A mixture becomes a history.
        accepts_mixture: bool,
        /// Whether locations in ways stay unchanged if all objects are kept. In all other cases, a node has the same
        /// location in all ways of the output.
        keeps_locations: bool,
    }
}

/// Merges the inputs into one file in canonical order.
///
/// Reads one file or several, sorted or unsorted. They may be history files: the versions of an object are ordered by
/// version. A single file is copied in one pass as long as the pass finds it in order. Otherwise a blob is copied if it
/// is in order and its id range overlaps no other blob. All blobs that are not copied are merged. Writes one file. If
/// blobs overlap widely, sorted runs are first written to a temporary file in the directory of the output. If all
/// objects are kept, and no input is a history or a change file, a warning gives the number of objects that repeat the
/// kind and id of an earlier object.
///
/// # Memory
///
/// The [base memory](crate::commands#memory) without the blobs in flight; instead, about 256 MB for payloads that are
/// being merged, and the frames that are encoded from these payloads. Also the changesets of text inputs.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - There is no input.
/// - Some inputs have data and others changes, and [`Options::accepts_mixture`] is not set.
///
/// # Examples
///
/// ```
/// use pbfhogg::commands::sort::{self, Dedupe};
/// use pbfhogg::{Context, OutputOptions};
/// # use pbfhogg::commands::synth;
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// # let world = at("world.osm.pbf");
/// # let ctx = Context::default();
/// # synth::run(&synth::Options::new(20_000, OutputOptions::file(&world)), &ctx)?;
/// // Two files become one, in order; objects that are in both are written once.
/// let options = sort::Options::new(vec![world.clone(), world], OutputOptions::file(at("one.osm.pbf")));
/// sort::run(&options.dedupe(Dedupe::HighestVersion), &ctx)?;
/// # Ok::<(), pbfhogg::Error>(())
/// ```
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let job = SortJob {
        output: options.output.clone(),
        dedupe: options.dedupe,
        changesets: options.changesets,
        // Change files, and mixtures of data and changes, have several versions of an object, so repeats are normal.
        tells_repeats: !options.accepts_mixture,
        keeps_locations: options.keeps_locations,
    };
    let write = options.output.encoding();
    let inputs = options.inputs.iter();
    let files: Vec<PbfFile> = inputs
        .map(|path| {
            if job.changesets {
                input::open_with_changesets(path, &options.output, ctx)
            } else {
                input::open_to_copy(path, &write, ctx)
            }
        })
        .collect::<Result<_>>()?;
    if !options.accepts_mixture {
        refuse_data_beside_changes(&files, ctx)?;
    }
    sort_files(files, &job, ctx)
}
