//! `merge-changes`: merges several change files into one.
//!
//! Without `simplify`, all changes are written in the order of the inputs, and the memory use does not depend on the
//! number of changes. With `simplify`, only the last change of each object is written, in canonical order.

use crate::engine::headers::generator;
use crate::error::{Error, FormatResult, Result};
use crate::formats::{
    Change, ChangeAction, ChangeSet, ChangeState, DocumentHeader, EncodedText, KeptVersions,
    OscText, SameTime, TextCompression, TextEncoder, TextOutput, change_sources, change_states,
    read_changes, read_sources,
};
use crate::io::{Input, OutputTarget};
use crate::runtime::{Context, parallel_single_result_phase};
use serde::Serialize;
use std::path::{Path, PathBuf};

options! {
    /// The options of `merge-changes`.
    pub struct Options {
        /// The change files, the oldest first; `-` is standard input.
        pub inputs: Vec<PathBuf>,
        /// The destination of the change file.
        pub output: OutputTarget,
    }
    /// All changes are kept, and the output is not compressed.
    new(inputs: Vec<PathBuf>, output: OutputTarget);
    setters {
        /// The compression of the output.
        compression: TextCompression = TextCompression::None,
        /// Whether only the last change of each object is written. The last change of an object is the one with the
        /// highest version. Of several changes with that version, it is the one with the latest timestamp.
        simplify: bool,
        /// With `simplify`, whether the change files belong to several extracts and cover the same period. In this case
        /// the order of the files has no meaning. An object that left one extract and entered another still exists. So
        /// among changes with the same version and time, a modification is preferred to a creation, and a creation to a
        /// deletion.
        of_extracts: bool,
        /// The attribute `generator` of the output. If `None`, the name and version of this program.
        generator: Option<String>,
    }
}

/// The result of `merge-changes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of creations in the output.
    pub created: u64,
    /// The number of modifications in the output.
    pub modified: u64,
    /// The number of deletions in the output.
    pub deleted: u64,
    /// The size of the output in bytes.
    pub bytes: u64,
}

impl Summary {
    const fn count(&mut self, action: ChangeAction) {
        match action {
            ChangeAction::Create => self.created += 1,
            ChangeAction::Modify => self.modified += 1,
            ChangeAction::Delete => self.deleted += 1,
        }
    }

    const fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.modified += other.modified;
        self.deleted += other.deleted;
    }
}

/// Merges change files.
///
/// Reads change files: OsmChange, o5c, OPL or PBF, with any compression, and the state files beside them
/// (`123.state.txt` beside `123.osc.gz`). Writes one change file with the replication states before and after all its
/// changes. If the inputs do not follow each other, warns and leaves these states out.
///
/// # Memory
///
/// Without [`Options::simplify`], about 5 MB for the program and 24 MB for text and changes in flight. With
/// [`Options::simplify`], 112 bytes per change, 8 per tag and 16 per reference, the distinct strings, and for each job
/// the text of four chunks of 4096 changes.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - An input is not a change file. With [`Options::simplify`], all inputs together have more than 4 GB of distinct
///   strings, or more tags or references than 32 bits can count.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    // The output is created before the inputs are read, so that a wrong path fails at once.
    let merged = MergedOutput::create(options, ctx)?;
    if options.simplify {
        simplify(options, merged, ctx)
    } else {
        write_all_changes(options, merged, ctx)
    }
}

/// The output, and the number of changes written to it so far, by action.
struct MergedOutput {
    output: TextOutput,
    summary: Summary,
}

impl MergedOutput {
    fn create(options: &Options, ctx: &Context) -> Result<Self> {
        Ok(Self {
            output: TextOutput::compressed(options.output.clone(), options.compression, ctx)?,
            summary: Summary::default(),
        })
    }

    /// Writes all changes of a set.
    fn write(&mut self, options: &Options, changes: &ChangeSet, ctx: &Context) -> Result<()> {
        /// The number of changes per chunk of text.
        const CHANGES_PER_CHUNK: usize = 4096;
        let _phase = ctx.phase("write changes", 0);
        parallel_single_result_phase(
            ctx.limits(ctx.jobs as u64 * 4),
            changes.changes().chunks(CHANGES_PER_CHUNK).map(Ok),
            |_| 1,
            || TextEncoder::new(options.compression),
            |encoder, some| encode_changes(encoder, changes, some),
            |encode_changes| self.add(encode_changes),
        )
    }

    /// Writes the beginning of the document. `states` are the replication states of the inputs that have one.
    fn begin(&mut self, options: &Options, states: &[ChangeState], ctx: &Context) -> Result<()> {
        let joined = ChangeState::join(states);
        if let ([one, .., other], None) = (states, &joined) {
            ctx.warn(format!(
                "{}: the change file gets no replication state, because the inputs do not follow each other, from \
                 {one} to {other}",
                options.output.path().display()
            ));
        }
        let joined = joined.unwrap_or_default();
        self.output.write(&OscText::prologue_of(&DocumentHeader {
            replication: joined.after,
            previous: joined.before,
            replication_url: joined.url,
            generator: Some(generator(options.generator.as_deref())),
            ..DocumentHeader::default()
        }))
    }

    /// Writes encoded changes, and adds their counts.
    fn add(&mut self, (chunk, counts): (EncodedText, Summary)) -> Result<()> {
        self.summary.add(&counts);
        self.output.chunk(chunk)
    }

    fn finish(mut self, ctx: &Context) -> Result<Summary> {
        self.output.write(OscText::EPILOGUE)?;
        self.summary.bytes = self.output.finish()?;
        ctx.stats.bytes_written.add(self.summary.bytes);
        Ok(self.summary)
    }
}

/// Writes all changes in the order of the inputs.
fn write_all_changes(options: &Options, merged: MergedOutput, ctx: &Context) -> Result<Summary> {
    let inputs = options.inputs.iter().map(|path| Input::open_in(path, ctx));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    write_all(options, &inputs, merged, |_| Ok(()), |()| (), ctx)
}

/// Writes all changes of `inputs` in order. `edit` changes each chunk of changes before it is written. Calls `note`
/// with the values that `edit` returns, in the order of the changes.
fn write_all<T: Send>(
    options: &Options,
    inputs: &[Input],
    mut merged: MergedOutput,
    edit: impl Fn(&mut ChangeSet) -> FormatResult<T> + Sync,
    mut note: impl FnMut(T),
    ctx: &Context,
) -> Result<Summary> {
    let sources = change_sources(inputs, ctx)?;
    let paths: Vec<PathBuf> = inputs.iter().map(|input| input.path().to_owned()).collect();
    let states = change_states(&paths, &sources)?;
    merged.begin(options, &states, ctx)?;
    let phase = ctx.phase("merge changes", 0);
    read_sources(
        &sources,
        ctx,
        || TextEncoder::new(options.compression),
        |encoder, number, mut changes| {
            let noted = edit(&mut changes).map_err(|error| {
                let path = inputs.get(number).map_or(Path::new(""), Input::path);
                Error::file(path, error.to_string())
            })?;
            Ok((encode_changes(encoder, &changes, changes.changes())?, noted))
        },
        |(encoded, noted)| {
            note(noted);
            merged.add(encoded)
        },
    )?;
    drop(phase);
    merged.finish(ctx)
}

/// Writes all changes of one open input in order. `edit` changes them before they are written. Ignores
/// [`Options::inputs`]. Calls `note` with the values that `edit` returns.
pub(crate) fn write_with_edits<T: Send>(
    options: &Options,
    input: &Input,
    edit: impl Fn(&mut ChangeSet) -> FormatResult<T> + Sync,
    note: impl FnMut(T),
    ctx: &Context,
) -> Result<Summary> {
    let merged = MergedOutput::create(options, ctx)?;
    write_all(
        options,
        std::slice::from_ref(input),
        merged,
        edit,
        note,
        ctx,
    )
}

/// Writes the last change of each object.
fn simplify(options: &Options, mut merged: MergedOutput, ctx: &Context) -> Result<Summary> {
    let changes = {
        let _phase = ctx.phase("read changes", 0);
        let same_time = if options.of_extracts {
            SameTime::Existing
        } else {
            SameTime::LastRead
        };
        read_changes(&options.inputs, same_time, KeptVersions::Newest, ctx)?
    };
    merged.begin(options, changes.states(), ctx)?;
    merged.write(options, &changes, ctx)?;
    merged.finish(ctx)
}

/// Writes `changes` as one change file. Ignores [`Options::inputs`].
pub(crate) fn write(options: &Options, changes: &ChangeSet, ctx: &Context) -> Result<Summary> {
    let mut merged = MergedOutput::create(options, ctx)?;
    merged.begin(options, changes.states(), ctx)?;
    merged.write(options, changes, ctx)?;
    merged.finish(ctx)
}

/// Encodes changes of `set` as a chunk of text, and counts the changes by action.
fn encode_changes(
    encoder: &mut TextEncoder,
    set: &ChangeSet,
    changes: &[Change],
) -> Result<(EncodedText, Summary)> {
    let (mut text, mut counts) = (OscText::default(), Summary::default());
    for change in changes {
        counts.count(change.action);
        text.put(change.action, &set.object(change));
    }
    let chunk = encoder.encode(text.finish()).map_err(Error::internal)?;
    Ok((chunk, counts))
}
