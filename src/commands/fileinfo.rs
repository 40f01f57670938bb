//! `fileinfo`: reports the same facts about a file as osmium, with the same meaning.

mod facts;

use super::changesets;
use crate::engine::input;
use crate::engine::scan::Scan;
use crate::error::Result;
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::formats::{
    DocumentHeader, TextCompression, TextFormat, changeset_header, declares_history,
    header_options, read_changesets,
};
use crate::io::Input;
use crate::osm::{Bbox, KindSet};
use crate::pbf::{HeaderBlock, Object};
use crate::runtime::Context;
pub use facts::{Facts, IdBounds, MetadataFields};
use std::path::PathBuf;

options! {
    /// The options of `fileinfo`.
    pub struct Options {
        /// The input file; `-` is standard input.
        pub input: PathBuf,
    }
    /// By default, only the header is read.
    new(input: impl Into<PathBuf>);
    setters {
        /// Whether all objects are read.
        extended: bool,
        /// Whether to calculate the checksum of all objects. Has an effect only with `extended`.
        checksum: bool,
        /// The kinds of objects to look at. Has an effect only with `extended`.
        kinds: KindSet = KindSet::ALL,
    }
}

/// The result of `fileinfo`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// The format of the file; `None` for PBF.
    pub format: Option<TextFormat>,
    /// The compression of a file in a text format.
    pub compression: TextCompression,
    /// The size in bytes of the file.
    pub bytes: u64,
    /// The bounding boxes in the header.
    pub boxes: Vec<Bbox>,
    /// Whether the header declares that there can be several versions of an object.
    pub with_history: bool,
    /// The options of the header, sorted by name.
    pub options: Vec<(String, String)>,
    /// The facts about the objects; `None` unless [`Options::extended`] is set.
    pub data: Option<Facts>,
}

/// Reads the header of a file and, with [`Options::extended`], all objects.
///
/// Reads one file, which may be unsorted, a history file, a change file, or a file of changesets.
///
/// # Memory
///
/// The [base memory](crate::commands#memory).
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged ([details](crate::commands#errors)).
pub fn run(options: &Options, ctx: &Context) -> Result<Summary> {
    let (input, format) = input::open_in_any_format(&options.input, ctx)?;
    let compression = match format {
        Some(_) => TextCompression::of_content(&input)?,
        None => TextCompression::None,
    };
    let bytes = input.len();
    let inputs = [(input, format)];
    let of_changesets = match changesets::changeset_files(&inputs)?.as_deref() {
        Some(&[(input, format), ..]) => changeset_facts(input, format, options)?,
        _ => None,
    };
    let (header, data) = match of_changesets {
        Some(found) => found,
        None => {
            let [(input, format)] = inputs;
            object_facts(input, format, options, ctx)?
        }
    };
    Ok(Summary {
        format,
        compression,
        bytes,
        boxes: DocumentHeader::of(&header).text.boxes,
        with_history: declares_history(&header),
        options: header_options(&header),
        data,
    })
}

/// Returns the header and the facts of a file of changesets. With [`Options::extended`], returns `None` if the file
/// also contains nodes, ways or relations.
fn changeset_facts(
    input: &Input,
    format: TextFormat,
    options: &Options,
) -> Result<Option<(HeaderBlock, Option<Facts>)>> {
    let document = changeset_header(input, format)?;
    let mut header = HeaderBlock::default();
    header.writing_program = document.generator;
    header.text = document.text;
    header.is_converted = true;
    if !options.extended {
        return Ok(Some((header, None)));
    }
    let mut facts = Facts::new(options.checksum);
    let has_objects = read_changesets(input, format, |changeset| {
        facts.add_changeset(changeset);
        Ok(())
    })?;
    Ok((!has_objects).then_some((header, Some(facts))))
}

fn object_facts(
    input: Input,
    format: Option<TextFormat>,
    options: &Options,
    ctx: &Context,
) -> Result<(HeaderBlock, Option<Facts>)> {
    let file = input::open_as_pbf(input, format, crate::pbf::Compression::Lz4, ctx)?;
    let data = if options.extended {
        Some(collect_facts(&file, options, ctx)?)
    } else {
        None
    };
    let data = match (data, &file.changesets, format) {
        (Some(mut facts), Some(changesets), Some(format)) => {
            read_changesets(&changesets.text, format, |changeset| {
                facts.add_changeset(changeset);
                Ok(())
            })?;
            Some(facts)
        }
        (data, ..) => data,
    };
    Ok((file.header, data))
}

/// Collects the facts about all objects of the requested kinds.
fn collect_facts(file: &PbfFile, options: &Options, ctx: &Context) -> Result<Facts> {
    let needs = if options.kinds == KindSet::ALL {
        PlanNeeds::Frames
    } else {
        PlanNeeds::Ranges
    };
    let plan = BlobPlan::open(file, needs, ctx)?;
    let has = |kinds: KindSet| {
        options.kinds == KindSet::ALL || kinds.intersection(options.kinds) != KindSet::EMPTY
    };
    let mut facts = Facts::new(options.checksum);
    Scan::without_strings("look at objects", file, &plan, ctx)
        .with_strings()
        .run(
            |entry| has(entry.kinds),
            |_, block| {
                let mut facts = Facts::new(options.checksum);
                let (mut cursor, mut object) = (block.cursor(), Object::default());
                while let Some(element) = cursor.next()? {
                    if options.kinds.contains(element.key.0) {
                        object.fill(element, block)?;
                        facts.add(&object);
                    }
                }
                Ok(facts)
            },
            |found| facts.append(&found),
        )?;
    Ok(facts)
}
