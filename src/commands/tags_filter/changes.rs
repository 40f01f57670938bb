//! `tags-filter` of a change file: keeps the changes of objects with certain tags, and of the objects that these
//! objects refer to.

use super::Options;
use crate::engine::block_matcher::selects_object;
use crate::engine::headers::generator;
use crate::error::{Error, Result};
use crate::formats::{ChangeAction, OscText, TextOutput, read_change_input};
use crate::index::IdSets;
use crate::io::Input;
use crate::osm::{ObjectFilter, ObjectId, ObjectKind};
use crate::pbf::{List, Object, ObjectBody};
use crate::runtime::Context;
use serde::Serialize;

/// The result of `tags-filter` for a change file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct ChangesSummary {
    /// The number of created or modified objects that were kept because of their tags.
    pub matched: u64,
    /// The number of created or modified objects that were kept only because other objects refer to them.
    pub referenced: u64,
    /// The number of deletions. All deletions are kept, since a deletion does not have the tags of the object.
    pub deleted: u64,
    /// The number of changes that were left out.
    pub dropped: u64,
}

/// Keeps the changes of objects with certain tags, and of the objects that these objects refer to. All deletions are
/// kept, since a deletion does not have the tags of the object.
///
/// Reads one change file: OsmChange, o5c, OPL or PBF, with any compression. Only the last change of each object is
/// used. Writes one change file in canonical order. If the output has a text format, the compression is that of the
/// format. Otherwise, the file is compressed if its name ends in `.gz`, `.bz2` or `.zst`.
///
/// # Memory
///
/// About 5 MB for the program, 24 MB for text in flight, the changes (112 bytes per change, 8 per tag, 16 per
/// reference), the distinct strings, and the text of the output.
///
/// # Errors
///
/// - An input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - The input is not a change file, or has more than 4 GB of distinct strings, or more tags or references than 32 bits
///   can count.
pub fn run(options: &Options, ctx: &Context) -> Result<ChangesSummary> {
    filter(&Input::open_in(&options.input, ctx)?, options, ctx)
}

/// Does the same as [`run`], with an input that is open already. Ignores [`Options::input`].
pub(crate) fn filter(input: &Input, options: &Options, ctx: &Context) -> Result<ChangesSummary> {
    let filter = ObjectFilter::new(options.expressions.iter().cloned());
    let set = read_change_input(input, ctx)?;
    let versions = set.changes().iter().filter(|change| !change.is_deletion());
    let objects: Vec<_> = versions.map(|change| set.object(change)).collect();
    let matched: IdSets = objects
        .iter()
        .filter(|object| selects_object(&filter, object) != options.invert)
        .map(Object::object_id)
        .collect();
    let mut kept = matched.clone();
    if !options.omit_referenced {
        add_referenced(&objects, &mut kept);
    }
    let target = options.output.target.clone();
    let mut output = TextOutput::compressed(target, options.output.text_compression(), ctx)?;
    let generator = generator(options.output.header.generator.as_deref());
    output.write(&OscText::prologue(&generator))?;
    let mut summary = ChangesSummary {
        matched: matched.len(),
        ..ChangesSummary::default()
    };
    let mut text = OscText::default();
    let mut objects = objects.iter();
    for change in set.changes() {
        if change.is_deletion() {
            let (kind, id) = (change.key.0, change.id());
            text.put_deletion(ObjectId { kind, id }, change.version, change.timestamp);
            summary.deleted += 1;
            continue;
        }
        let object = objects.next();
        let object = object.ok_or_else(|| Error::internal("a change without object"))?;
        let (kind, id) = (object.kind(), object.id);
        if !kept.contains(kind, id) {
            summary.dropped += 1;
            continue;
        }
        let is_match = matched.contains(kind, id);
        summary.referenced += u64::from(!is_match);
        let action = match object.info.version {
            Some(1) => ChangeAction::Create,
            _ => ChangeAction::Modify,
        };
        let bare = Object {
            tags: List::EMPTY,
            ..object.clone()
        };
        let is_bare = options.remove_tags && !is_match;
        text.put(action, if is_bare { &bare } else { object });
    }
    output.write(&text.finish())?;
    output.write(OscText::EPILOGUE)?;
    let bytes = output.finish()?;
    ctx.stats.bytes_written.add(bytes);
    Ok(summary)
}

/// Adds the ids that the kept objects refer to, directly or through other objects of the change file.
fn add_referenced(objects: &[Object<'_>], kept: &mut IdSets) {
    let mut before = 0;
    while before != kept.of(ObjectKind::Relation).len() {
        before = kept.of(ObjectKind::Relation).len();
        for object in objects {
            if let ObjectBody::Relation { members } = &object.body
                && kept.contains(ObjectKind::Relation, object.id)
            {
                for member in members {
                    kept.insert(member.kind, member.id);
                }
            }
        }
        if before == 0 {
            break;
        }
    }
    for object in objects {
        if let ObjectBody::Way { refs, .. } = &object.body
            && kept.contains(ObjectKind::Way, object.id)
        {
            for id in refs {
                kept.insert(ObjectKind::Node, *id);
            }
        }
    }
}
