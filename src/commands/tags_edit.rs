//! `tags-edit`: changes the tags of objects by rules.

pub mod changes;
mod untagged;
mod within;

pub use crate::engine::{RuleCount, TagTable};
pub use crate::osm::{KeyPatterns, TagAction, TagRule};

use crate::engine::changesets::{self, Placement};
use crate::engine::filter::BlobDecision;
use crate::engine::repeats::Counting;
use crate::engine::rewrite::{Rewrite, Rewritten};
use crate::engine::scan::PlanningScan;
use crate::engine::sink::{Sink, WriteSummary};
use crate::engine::tag_editor::{EditCounts, EditStep, TagEditor};
use crate::engine::{OutputOptions, copy_size_hint, input};
use crate::error::{FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, PlannedFile};
use crate::geometry::Shape;
use crate::io::SizeHint;
use crate::pbf::{BlobEntry, FrameEncoder, MAX_PAYLOAD_LEN, Segmented, StringTable};
use crate::runtime::Context;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The changes of tags. The tags of regions are set first. Then the rules are applied in order, and finally the table.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TagEdits {
    /// The tags that the objects in regions get.
    pub regions: Vec<RegionTag>,
    /// The rules.
    pub rules: Vec<TagRule>,
    /// The tags of single objects.
    pub table: Option<TagTable>,
}

impl TagEdits {
    /// Creates edits that consist of rules alone.
    pub const fn new(rules: Vec<TagRule>) -> Self {
        Self {
            regions: Vec::new(),
            rules,
            table: None,
        }
    }

    /// Whether nothing is changed.
    pub const fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.rules.is_empty() && self.table.is_none()
    }

    /// Appends the rules and then the table to the steps of an editor.
    fn add_steps_to(&self, mut editor: TagEditor) -> TagEditor {
        for rule in &self.rules {
            editor.push(rule.to_string(), EditStep::Rule(rule.clone()));
        }
        if let Some(table) = &self.table {
            editor.push("the table".into(), EditStep::Table(table.clone()));
        }
        editor
    }
}

/// A tag for the objects in a region: nodes in it, ways with a node in it, and relations with such a node or way as a
/// member.
#[derive(Debug, Clone)]
pub struct RegionTag {
    /// The region.
    pub shape: Shape,
    /// The name of the region in reports.
    pub name: String,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

options! {
    /// The options of `tags-edit`.
    pub struct Options {
        /// The input file; `-` is standard input. [`changes::run`] reads a change file.
        pub input: PathBuf,
        /// The changes of tags.
        pub edits: TagEdits,
        /// The output: where it goes, how it is written, and its header.
        pub output: OutputOptions,
    }
    /// Objects without tags stay.
    new(input: impl Into<PathBuf>, edits: TagEdits, output: OutputOptions);
    setters {
        /// Whether objects without tags are left out, unless objects with tags refer to them, directly or through other
        /// objects.
        drop_untagged: bool,
    }
}

/// The effect of the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Effects {
    /// The number of objects whose tags were changed. In a history, each version counts.
    pub edited: u64,
    /// The effect of each region, each rule and the table, in this order.
    pub rules: Vec<RuleCount>,
}

impl Effects {
    fn of(editor: &TagEditor, counts: &EditCounts) -> Self {
        Self {
            edited: counts.objects,
            rules: editor.rule_counts(counts),
        }
    }
}

/// The result of `tags-edit`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The size of the output, and the numbers of input blobs that were copied, skipped and rewritten.
    #[serde(flatten)]
    pub output: WriteSummary,
    /// The effect of the rules.
    #[serde(flatten)]
    pub effects: Effects,
}

/// Changes the tags of objects.
///
/// Reads one file, which may be unsorted or a history file, and writes one file, in the order of the input. Ids,
/// versions, metadata, locations and members stay. Blobs are copied if their ids or strings show that no rule applies.
/// These blobs need not be read or decompressed completely. In all other blobs, the tags are replaced in their encoded
/// form. Deleted versions without tags stay as they are. An object that occurs twice is changed twice. For each region,
/// the nodes, the ways and the relations are read once more. With [`Options::drop_untagged`], further passes find the
/// objects that objects with tags refer to.
///
/// # Memory
///
/// The [base memory](crate::commands#memory). For each region, the ids of the objects in it. About 150 bytes for each
/// tag of a table. With [`Options::drop_untagged`], the ids that are kept.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, its file system
///   has too little space, or it cannot be written ([details](crate::commands#errors)).
/// - A rule would give an object a key twice, or a value with more than 255 characters. The error names the object.
///
/// # Examples
///
/// ```
/// use pbfhogg::commands::tags_edit::{self, TagEdits, TagRule};
/// use pbfhogg::{Context, OutputOptions};
/// # use pbfhogg::commands::synth;
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// # let world = at("world.osm.pbf");
/// # let ctx = Context::default();
/// # synth::run(&synth::Options::new(20_000, OutputOptions::file(&world)), &ctx)?;
/// let rule = TagRule::parse("w/highway: keep highway,name,ref").expect("a rule");
/// let output = OutputOptions::file(at("slim.osm.pbf"));
/// let options = tags_edit::Options::new(&world, TagEdits::new(vec![rule]), output);
/// let summary = tags_edit::run(&options, &ctx)?;
/// assert_eq!(summary.effects.edited, summary.effects.rules[0].objects);
/// # Ok::<(), pbfhogg::Error>(())
/// ```
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let file = input::open_with_changesets(&options.input, &options.output, ctx)?;
    edit(&file, options, ctx)
}

/// Does the same as [`run`], with an input that is open already. Ignores [`Options::input`].
pub(crate) fn edit(file: &PbfFile, options: &Options, ctx: &Context) -> Result<Summary> {
    let regions = options.edits.regions.len();
    let passes = if options.drop_untagged { 4 } else { 1 };
    ctx.expect_phases(passes + 3 * regions as u64);
    options.output.target.check()?;
    let editor = build_tag_editor(file, &options.edits, ctx)?;
    if options.drop_untagged {
        untagged::write_tagged_objects(file, &editor, options, ctx)
    } else {
        write(file, &editor, options, ctx)
    }
}

/// Returns the editor for a file. Finds the objects in the regions.
fn build_tag_editor(file: &PbfFile, edits: &TagEdits, ctx: &Context) -> Result<TagEditor> {
    let mut editor = TagEditor::default();
    if !edits.regions.is_empty() {
        let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
        for region in &edits.regions {
            let step = EditStep::Set {
                objects: within::objects(PlannedFile::new(file, &plan, ctx), &region.shape)?,
                key: region.key.clone(),
                value: region.value.clone(),
            };
            let name = format!("{}: set {}={}", region.name, region.key, region.value);
            editor.push(name, step);
        }
    }
    Ok(edits.add_steps_to(editor))
}

/// Writes all objects with their new tags.
fn write(file: &PbfFile, editor: &TagEditor, options: &Options, ctx: &Context) -> Result<Summary> {
    let plan = BlobPlan::open(file, PlanNeeds::Frames, ctx)?;
    let mut header = file.header.clone();
    options.output.header.apply(&mut header);
    // The number of bytes that are copied is not known before the end.
    let size_hint = SizeHint {
        copied: 0,
        ..copy_size_hint(file)
    };
    let mut sink = Sink::create(&options.output, header, size_hint, ctx)?;
    changesets::put(file, Placement::Before, &options.output, &mut sink, ctx)?;
    let counting = Counting::begin(file, &plan, ctx);
    let stays =
        |entry: &BlobEntry, strings: Option<&StringTable<'_>>| !editor.may_change(entry, strings);
    let rewrite = Rewrite {
        name: "edit tags",
        file,
        entries: plan.entries,
        stays: Some(&stays),
        write: options.output.encoding(),
    };
    let mut counts = EditCounts::default();
    rewrite.run(
        &mut sink,
        &counting.ctx,
        Vec::new,
        |edited: &mut Vec<u8>, blob, encoder| {
            edited.clear();
            let counts = editor.edit_block(blob.entry, blob.payload, edited)?;
            if edited.is_empty() {
                return Ok((Rewritten::No, counts));
            }
            add_edited_block(edited, blob.segments, encoder)?;
            Ok((Rewritten::Yes, counts))
        },
        |more| counts.merge(more),
    )?;
    counting.warn_of_repeats();
    changesets::put(file, Placement::Behind, &options.output, &mut sink, ctx)?;
    Ok(Summary {
        output: sink.finish()?,
        effects: Effects::of(editor, &counts),
    })
}

/// Adds an edited block to an encoder. A block that is too long for one blob is split.
fn add_edited_block(
    payload: &[u8],
    segments: Option<Segmented<'_>>,
    encoder: &mut FrameEncoder,
) -> FormatResult<()> {
    if payload.len() > MAX_PAYLOAD_LEN as usize {
        encoder.add_objects(payload, 0..usize::MAX)
    } else {
        encoder.add_edited_payload(payload, segments)
    }
}

/// Counts the objects whose tags the edits would change, and writes nothing.
///
/// # Errors
///
/// As [`run`], except for errors of the output.
pub fn preview(input: impl AsRef<Path>, edits: &TagEdits, ctx: &Context) -> Result<Effects> {
    preview_of(&input::open(input.as_ref(), ctx)?, edits, ctx)
}

/// Does the same as [`preview`], with an input that is open already.
pub(crate) fn preview_of(file: &PbfFile, edits: &TagEdits, ctx: &Context) -> Result<Effects> {
    let editor = build_tag_editor(file, edits, ctx)?;
    let prefilter =
        |strings: &StringTable<'_>| BlobDecision::visit_if(editor.may_change_objects_with(strings));
    let scan = PlanningScan {
        name: "find tags",
        file,
        prefilter: &prefilter,
        ctx,
    };
    let mut counts = EditCounts::default();
    scan.run(
        |entry| editor.may_change(entry, None),
        |_, block| editor.for_each_object(block, |_, _| Ok(())),
        |more| counts.merge(more),
    )?;
    Ok(Effects::of(&editor, &counts))
}
