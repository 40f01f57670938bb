//! `cat`: concatenates files. Copies blobs into a file with a table of contents or, for a text format, writes the
//! objects as text.

use super::changesets;
use crate::engine::changesets::{Placement, can_hold_changesets, put, warn_of_left_out_changesets};
use crate::engine::headers::{header_of_part, merged_header};
use crate::engine::input_content::refuse_data_beside_changes;
use crate::engine::repeat_count::{ProvenRepeats, is_versioned};
use crate::engine::rewrite::{Rewrite, Rewritten};
use crate::engine::sink::{BlobOutcome, Sink, WriteSummary};
use crate::engine::sort::AgreedLocations;
use crate::engine::{Format, OutputOptions, copy_size_hint, input};
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile, PbfWriter, PlanNeeds};
use crate::formats::Changeset;
use crate::io::SizeHint;
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::{
    BlobEntry, BlobFlags, Block, FrameEncoder, HeaderBlock, InfoFields, SourceStrings, clean_block,
    feature,
};
use crate::runtime::Context;
use std::ops::RangeInclusive;
use std::path::PathBuf;

options! {
    /// The options of `cat`.
    pub struct Options {
        /// The input files, in order; `-` is standard input.
        pub inputs: Vec<PathBuf>,
        /// The target, the encoding and the header of the output.
        pub output: OutputOptions,
    }
    /// The defaults keep all objects with all metadata.
    new(inputs: Vec<PathBuf>, output: OutputOptions);
    setters {
        /// The kinds of objects to keep.
        kinds: KindSet = KindSet::ALL,
        /// Whether changesets are kept. PBF cannot hold them.
        changesets: bool = true,
        /// The metadata fields to leave out.
        clean: InfoFields = InfoFields::NONE,
        /// The numbers of the data blobs to keep, counted from 1; `None` for all blobs. Only for a single input.
        blobs: Option<RangeInclusive<u64>>,
        /// Whether to ignore the indexes of the inputs and decode every blob to find out its content.
        rescan: bool,
        /// Whether change files and files with data may be inputs together. All their objects then form a history.
        accepts_mixture: bool,
        /// Whether all locations in ways stay unchanged. Otherwise, all ways of the output that store a location for
        /// the same node agree on this location.
        keeps_locations: bool,
    }
}

impl Options {
    /// Whether the data blob with the given index, counted from 0, is kept.
    fn keeps_blob(&self, index: usize) -> bool {
        let mut range = self.blobs.iter();
        range.all(|range| range.contains(&(index as u64 + 1)))
    }
}

/// The result of `cat`. For text output, [`WriteSummary::blobs_rewritten`] is the number of blobs that were converted.
/// If changesets were written, only the size and the number of objects are set.
pub type Summary = WriteSummary;

/// Concatenates files.
///
/// Reads the inputs in order. Only inputs in OSM XML or OPL can have changesets. Writes one PBF file with a table of
/// contents, or text. Blobs are copied unless metadata are left out or a blob also contains objects of unwanted kinds.
/// Blobs without a complete index are decoded in the same pass that copies them. The order of the objects is not
/// changed. Warns if the entries of the copied blobs prove that an object of current data occurs more than once.
///
/// # Memory
///
/// The [base memory](crate::commands#memory), and up to 100 bytes a blob if there are several inputs or the order of
/// the input is not known.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - There is no input, or there are several and [`Options::blobs`] is set.
/// - Some inputs have data and others changes, and [`Options::accepts_mixture`] is not set.
/// - The inputs contain nothing but changesets, and the output is PBF.
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    if options.blobs.is_some() && options.inputs.len() != 1 {
        let cause = "blobs are chosen by their numbers in one file, and not in several";
        return Err(Error::Usage(cause.into()));
    }
    let inputs = options.inputs.iter();
    let inputs = inputs
        .map(|path| input::open_in_any_format(path, ctx))
        .collect::<Result<Vec<_>>>()?;
    if let Some(inputs) = changesets::changeset_files(&inputs)? {
        let keeps = |_: &Changeset| options.changesets;
        if let Some(written) =
            changesets::write_changesets(&inputs, &options.output, keeps, true, ctx)?
        {
            return Ok(Summary {
                written,
                ..Summary::default()
            });
        }
    }
    let compression = options.output.encoding().compression;
    let files = inputs.into_iter();
    let files = files.map(|(input, format)| input::open_as_pbf(input, format, compression, ctx));
    let files = files.collect::<Result<Vec<_>>>()?;
    if !options.accepts_mixture {
        refuse_data_beside_changes(&files, ctx)?;
    }
    let mut header = header(&files, options)?;
    let locations = if options.keeps_locations {
        AgreedLocations::default()
    } else {
        AgreedLocations::decide(&files, &mut header, ctx)?
    };
    options.output.header.apply(&mut header);
    let size_hint = size_hint_of(&files, options);
    let mut output = options.output.clone().resolve_for_inputs(&files);
    output.write.has_spatial_layout = keeps_spatial_layout(&files, options);
    let mut sink = Sink::create(&output, header, size_hint, ctx)?;
    let mut repeats = ProvenRepeats::new(is_single_ordered_input(&files));
    for file in &files {
        if options.changesets && !can_hold_changesets(&options.output) {
            warn_of_left_out_changesets(file, ctx);
        }
        put_changesets(file, Placement::Before, options, &mut sink, ctx)?;
        if options.clean.is_empty() {
            copy_blobs(file, &locations, options, &mut sink, &mut repeats, ctx)?
        } else {
            write_cleaned_blobs(file, &locations, options, &mut sink, ctx)?
        }
        put_changesets(file, Placement::Behind, options, &mut sink, ctx)?;
    }
    warn_of_repeats(&repeats, &files, options, ctx);
    let mut closed = sink.close()?;
    if let (Some(writer), [file]) = (closed.begin_id_table(), files.as_slice()) {
        copy_id_table(file, writer, ctx)?;
    }
    closed.finish()
}

/// Estimates the size of the output. The size of the objects that are left out is not known in advance.
fn size_hint_of(files: &[PbfFile], options: &Options) -> SizeHint {
    let hints = files.iter().map(copy_size_hint);
    let mut size_hint = hints.fold(SizeHint::default(), SizeHint::and);
    if options.kinds != KindSet::ALL || !options.clean.is_empty() || options.blobs.is_some() {
        size_hint.bytes = 0;
        size_hint.copied = 0;
    }
    size_hint
}

/// Whether there is only one input, and it is known to be in canonical order.
fn is_single_ordered_input(files: &[PbfFile]) -> bool {
    let is_sorted = |file: &PbfFile| file.toc.as_ref().is_some_and(|toc| toc.flags.sorted);
    matches!(files, [file] if is_sorted(file))
}

/// Warns if the entries of the copied blobs prove that an object occurs more than once in the output. Does not warn
/// about histories and changes, which have several versions of an object.
fn warn_of_repeats(repeats: &ProvenRepeats, files: &[PbfFile], options: &Options, ctx: &Context) {
    if options.accepts_mixture || files.iter().any(|file| is_versioned(file, ctx)) {
        return;
    }
    let path = match files {
        [file] => Some(file.input.path()),
        _ => None,
    };
    repeats.proven_repeats().warn_of_repeats(path, ctx);
}

/// Returns the header of the output. The fields that the options set are not applied yet.
fn header(files: &[PbfFile], options: &Options) -> Result<HeaderBlock> {
    let has_nodes = options.kinds.contains(ObjectKind::Node) && options.blobs.is_none();
    let mut header = header_of_part(merged_header(files)?, has_nodes);
    if options.output.target.is_stream() && options.output.format == Format::Pbf {
        // The header of a stream is written first, so it can declare only an order that is already verified.
        let verified = |file: &PbfFile| file.toc.as_ref().is_some_and(|toc| toc.flags.sorted);
        header.set_optional(
            feature::SORTED,
            files.len() == 1 && files.iter().all(verified),
        );
    }
    Ok(header)
}

/// Writes the changesets of a text input, if [`Options::changesets`] is set.
fn put_changesets(
    file: &PbfFile,
    place: Placement,
    options: &Options,
    sink: &mut Sink,
    ctx: &Context,
) -> Result<()> {
    if options.changesets {
        put(file, place, &options.output, sink, ctx)
    } else {
        Ok(())
    }
}

/// Copies the id table of a file if all blobs of the file were copied.
fn copy_id_table(file: &PbfFile, writer: &mut PbfWriter, ctx: &Context) -> Result<()> {
    let table = file.usable_id_table(ctx)?;
    let table = table.filter(|table| table.fingerprint() == writer.id_fingerprint());
    match table {
        Some(table) if table.is_sound(ctx)? => {
            table.for_each_section(ctx, |section| writer.put_id_section(section))?;
            writer.finish_id_table(table.fingerprint())
        }
        _ => Ok(()),
    }
}

/// Whether there is only one input, it has a spatial layout, and all its blobs are copied with their index entries.
fn keeps_spatial_layout(files: &[PbfFile], options: &Options) -> bool {
    let copies = options.kinds == KindSet::ALL
        && options.clean.is_empty()
        && options.blobs.is_none()
        && !options.rescan;
    matches!(files, [file] if file.has_spatial_layout()) && copies
}

/// Copies the blobs of a file as soon as their entries are known. A blob without objects of wanted kinds is skipped. A
/// blob is re-encoded if it has wanted and unwanted kinds, or if `locations` changes the locations in its ways.
fn copy_blobs(
    file: &PbfFile,
    locations: &AgreedLocations,
    options: &Options,
    sink: &mut Sink,
    repeats: &mut ProvenRepeats,
    ctx: &Context,
) -> Result<()> {
    // Without a table of contents in the output, only the kinds and id ranges of blobs are needed. If, in addition, all
    // kinds are kept and no per-blob indexes are written, only the frames are needed.
    let write = options.output.encoding();
    let needs = match (write.toc, options.kinds == KindSet::ALL) {
        _ if options.rescan => PlanNeeds::Rescan,
        (false, true) if !write.blob_index => PlanNeeds::Frames,
        (false, _) => PlanNeeds::Ranges,
        (true, _) => PlanNeeds::Order,
    };
    ctx.expect_phases(1);
    BlobPass::new("copy", &file.input, ctx).run_stream(
        BlobPlan::items(file, needs)
            .enumerate()
            .filter(|(index, _)| options.keeps_blob(*index))
            .map(|(_, item)| item),
        || FrameEncoder::new(write.compression, write.blob_index),
        |reader, encoder, item| {
            let entry = item.resolve(reader)?;
            let wanted = entry.kinds.intersection(options.kinds);
            if wanted == entry.kinds && !locations.may_change(&entry) {
                return Ok((entry, BlobOutcome::Copy(entry)));
            }
            if wanted.is_empty() && !entry.kinds.is_empty() {
                return Ok((entry, BlobOutcome::Drop));
            }
            let frames = reader.decode(&entry, |payload| {
                let relocated = locations.relocate(&entry, payload)?;
                match &relocated {
                    None if wanted == entry.kinds => return Ok(None),
                    Some(payload) if wanted == entry.kinds => encoder.add_payload(payload)?,
                    _ => {
                        let payload = relocated.as_deref().unwrap_or(payload);
                        encode_objects_of_kinds(payload, options.kinds, encoder)?;
                    }
                }
                encoder.finish().map(Some)
            })?;
            Ok((
                entry,
                frames.map_or(BlobOutcome::Copy(entry), BlobOutcome::Frames),
            ))
        },
        |(entry, outcome)| {
            match outcome {
                BlobOutcome::Drop => record_skipped_blob(&entry, sink, ctx),
                BlobOutcome::Copy(_) => repeats.compare_entry(&entry),
                BlobOutcome::Frames(_) | BlobOutcome::Blocks(_) | BlobOutcome::Insert(_) => {}
            }
            sink.add(&file.input, outcome)
        },
    )
}

/// Counts a blob that is left out.
fn record_skipped_blob(entry: &BlobEntry, sink: &mut Sink, ctx: &Context) {
    ctx.stats.count_skipped_blob(entry.is_verified());
    sink.count_skipped_blob();
}

/// Re-encodes the blobs of a file without the metadata fields in [`Options::clean`]. Blobs without objects of wanted
/// kinds are skipped.
fn write_cleaned_blobs(
    file: &PbfFile,
    locations: &AgreedLocations,
    options: &Options,
    sink: &mut Sink,
    ctx: &Context,
) -> Result<()> {
    let rewrite = Rewrite {
        name: "clean",
        file,
        entries: wanted_entries(file, options, ctx, |entry| {
            record_skipped_blob(entry, sink, ctx)
        })?,
        stays: None,
        write: options.output.encoding(),
    };
    rewrite.run(
        sink,
        ctx,
        Vec::new,
        |cleaned, blob, encoder| {
            cleaned.clear();
            clean_block(blob.payload, options.clean, cleaned)?;
            let relocated = locations.relocate(blob.entry, cleaned)?;
            // An unsorted blob may become sorted when the version numbers of its objects are removed, so its entry must
            // be recomputed.
            let is_same = relocated.is_none() && blob.entry.flags.has(BlobFlags::SORTED);
            if let Some(relocated) = relocated {
                *cleaned = relocated;
            }
            match options.kinds == KindSet::ALL {
                true if is_same => {
                    let entry = blob.entry.without_attributes(options.clean);
                    encoder.add_edited_payload_with_entry(cleaned, blob.segments, &entry)?;
                }
                true => encoder.add_edited_payload(cleaned, blob.segments)?,
                false => encode_objects_of_kinds(cleaned, options.kinds, encoder)?,
            }
            Ok((Rewritten::Yes, ()))
        },
        |()| (),
    )
}

/// Returns the entries of the chosen blobs that may contain objects of wanted kinds, including all blobs without an
/// index. Calls `skip` with each of the other entries.
fn wanted_entries(
    file: &PbfFile,
    options: &Options,
    ctx: &Context,
    skip: impl FnMut(&BlobEntry),
) -> Result<Vec<BlobEntry>> {
    let plan = BlobPlan::open(file, PlanNeeds::Frames, ctx)?;
    let may_be_wanted = |(index, entry): &(usize, BlobEntry)| {
        let has_kinds = !entry.kinds.intersection(options.kinds).is_empty();
        (!entry.is_indexed() || has_kinds) && options.keeps_blob(*index)
    };
    let entries = plan.entries.into_iter().enumerate();
    let (wanted, rest): (Vec<_>, Vec<_>) = entries.partition(may_be_wanted);
    rest.iter().map(|(_, entry)| entry).for_each(skip);
    Ok(wanted.into_iter().map(|(_, entry)| entry).collect())
}

/// Adds the objects of a block to an encoder if their kind is in `kinds`, and ends the encoder's block.
fn encode_objects_of_kinds(
    payload: &[u8],
    kinds: KindSet,
    encoder: &mut FrameEncoder,
) -> FormatResult<()> {
    let block = Block::parse(payload)?;
    let mut strings = SourceStrings::new(&block.strings);
    let mut objects = block.cursor();
    while let Some(object) = objects.next()? {
        if kinds.contains(object.key.0) {
            encoder.add_raw(object, &block.units, &mut strings)?;
        }
    }
    encoder.end_block()
}
