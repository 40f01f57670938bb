//! Leaves out objects without tags, unless objects with tags refer to them.

use super::{Effects, Options, Summary};
use crate::engine::filter::{
    BlobDecision, FilterItem, FilterJob, FilterPass, FilteredWriter, Selected, Transformed,
    select_by_id, size_hint,
};
use crate::engine::headers::header_of_part;
use crate::engine::id_search::id_search_for;
use crate::engine::references::referenced_ids;
use crate::engine::repeats::Counting;
use crate::engine::tag_editor::{EditCounts, TagEditor};
use crate::error::{Error, FormatResult, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds, PlannedFile};
use crate::index::{IdBatch, IdSets};
use crate::io::OpenOutput;
use crate::osm::ObjectKind;
use crate::pbf::{BlobEntry, Block};
use crate::runtime::Context;

/// Writes the objects that have tags after the edit. Also writes all objects to which these refer, directly or through
/// other objects.
pub(super) fn write_tagged_objects(
    file: &PbfFile,
    editor: &TagEditor,
    options: &Options,
    ctx: &Context,
) -> Result<Summary> {
    let output = OpenOutput::open(options.output.target.clone(), ctx)?;
    let plan = BlobPlan::open(file, PlanNeeds::Ranges, ctx)?;
    let counting = Counting::begin(file, &plan, ctx);
    let (tagged, counts) = find_tagged_ids(PlannedFile::new(file, &plan, &counting.ctx), editor)?;
    counting.warn_of_repeats();
    let added = referenced_ids(PlannedFile::new(file, &plan, ctx), &tagged, None)?;
    let sets = [&tagged, &added];
    let search = id_search_for(&sets, file, ctx)?;
    let items = plan.entries.iter().map(|entry| {
        let decision = BlobDecision::visit_if(!entry.is_indexed() || search.may_have_wanted(entry));
        FilterItem::new(*entry, decision).with_transform()
    });
    let items: Vec<_> = items.collect();
    let hints = vec![size_hint(&items, 0)];
    let header = header_of_part(file.header.clone(), true);
    let plan = BlobPlan {
        entries: Vec::new(),
    };
    let job = FilterJob::with_output("edit tags", file, plan, output, header, &options.output);
    let mut writer = FilteredWriter::begin(file, job.outputs, job.write, hints, ctx)?;
    let transform = |entry: &BlobEntry, payload: &[u8], out: &mut Vec<u8>| {
        editor.edit_block(entry, payload, out)?;
        Ok(if out.is_empty() {
            Transformed::No
        } else {
            Transformed::Yes
        })
    };
    let pass = FilterPass {
        transform: Some(&transform),
        ..FilterPass::plain("edit tags")
    };
    writer.run_pass(
        pass,
        items,
        |_, block, selection| {
            selection.start_one_output();
            select_by_id(block, selection, |kind, id| {
                Selected::whole_if(tagged.contains(kind, id) || added.contains(kind, id))
            })
        },
        |()| (),
    )?;
    let only = writer.finish()?.into_iter().next();
    Ok(Summary {
        output: only.ok_or_else(|| Error::internal("an edit has no output"))?,
        effects: Effects::of(editor, &counts),
    })
}

/// Returns the ids of the objects that have tags after the edit, and the numbers of changed objects.
fn find_tagged_ids(source: PlannedFile<'_>, editor: &TagEditor) -> Result<(IdSets, EditCounts)> {
    let (mut tagged, mut counts) = (IdSets::default(), EditCounts::default());
    let scan = source.scan("find tags").with_strings();
    scan.run(
        |_| true,
        |_, block| tagged_ids_of_block(block, editor),
        |(ids, more)| {
            for (kind, ids) in ObjectKind::ALL.into_iter().zip(ids) {
                tagged.of_mut(kind).add(&ids);
            }
            counts.merge(more);
        },
    )?;
    Ok((tagged, counts))
}

/// Finds the objects of a block that have tags after the edit. Returns their ids by kind, and the numbers of changed
/// objects.
fn tagged_ids_of_block(
    block: &Block<'_>,
    editor: &TagEditor,
) -> FormatResult<([IdBatch; 3], EditCounts)> {
    let mut ids = [const { Vec::new() }; 3];
    let counts = editor.for_each_object(block, |object, tags| {
        let has_tags = match tags {
            Some(tags) => !tags.is_empty(),
            None => object.tags()?.any(|_, _| Ok(true))?,
        };
        if has_tags {
            ids[object.kind() as usize].push(object.id()?);
        }
        Ok(())
    })?;
    Ok((ids.map(|ids| IdBatch::from(ids.as_slice())), counts))
}
