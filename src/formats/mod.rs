//! Formats other than PBF: OSM XML, OPL, OsmChange, o5m and o5c, changesets, and features.

mod augmented_xml;
mod change_action;
mod change_batches;
mod change_files;
mod change_set;
mod change_state;
mod changesets;
mod checksum;
mod content;
pub(crate) mod csv;
#[cfg(feature = "parquet")]
mod derived_columns;
mod document_header;
mod encoding;
pub(crate) mod features;
mod format;
mod functions;
mod header_facts;
mod numbers;
mod o5m;
#[cfg(feature = "unstable")]
mod object_columns;
mod object_lines;
mod object_text;
mod opl;
mod opl_fields;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod read;
pub(crate) mod row_limit;
pub(crate) mod shapefile;
// The columns of lists, such as `Refs`, are used only by the Python package, which turns on `unstable`.
#[cfg_attr(not(feature = "unstable"), allow(dead_code))]
pub(crate) mod table;
mod text_buffer;
mod text_chunks;
mod text_compression;
mod text_document;
mod text_encoder;
mod text_options;
mod text_output;
mod write_changesets;
mod write_csv;
mod write_debug;
mod write_opl;
mod write_osc;
mod write_xml;
mod xml;
mod xml_attributes;
mod xml_cause;

pub(crate) use augmented_xml::{AugmentedObject, AugmentedXml, Place, PlacedNode, XmlAction};
pub use change_action::ChangeAction;
pub use change_batches::{ChangeMaker, batches as change_batches};
pub(crate) use change_files::{change_source, change_sources};
pub(crate) use change_set::NO_ID;
pub use change_set::{Change, ChangeSet, SameTime};
pub use change_state::ChangeState;
pub(crate) use change_state::DataState;
pub use changesets::{Changeset, Comment, read_changesets};
pub(crate) use changesets::{begins_with_changeset, changeset_header};
pub(crate) use checksum::{add_changeset, add_object};
pub(crate) use content::format_of;
#[cfg(feature = "parquet")]
pub use derived_columns::DerivedColumns;
pub use document_header::{DocumentHeader, Replication};
#[cfg(any(feature = "parquet", feature = "unstable"))]
pub use features::ACTION_COLUMNS;
pub use features::{
    ActionRows, Attribute, Attributes, FeatureFormat, FeatureOptions, GeometryTypes, TagColumn,
    UniqueId,
};
pub(crate) use header_facts::{declares_history, header_options};
#[cfg(feature = "unstable")]
pub use object_columns::{ElementRows, OBJECT_COLUMNS, ObjectView};
pub(crate) use object_text::{ObjectChunk, ObjectText};
#[cfg(feature = "parquet")]
pub use parquet::{
    ColumnType, GeoParquetOptions, GeoParquetVersion, MAX_FILE_LEN, ObjectTableOptions,
    PageCompression, PartitionKey, Theme, ThemeColumn,
};
pub use read::read_texts;
pub(crate) use read::{
    Damage, ObjectSource, read_sources, read_start, salvage_start, salvage_texts,
};
pub use table::{ColumnGetter, MemberItems, OsmRow, RowType, TableColumn, TagPairs};
pub use text_compression::TextCompression;
pub(crate) use text_document::TextDocument;
pub use text_encoder::{EncodedText, TextEncoder};
pub use text_options::{DebugOptions, TextOptions, Visibility, WayLocations};
pub use text_output::TextOutput;
pub(crate) use write_changesets::ChangesetText;
pub use write_osc::{OscText, OscWriter};

use crate::error::Result;
use crate::io::Input;
pub(crate) use crate::osm::FileContent;
pub use crate::osm::TextFormat;
use crate::runtime::Context;
pub(crate) use change_set::KeptVersions;
use change_set::NewestChanges;
use std::path::Path;

/// Reads change files (OsmChange, o5c, OPL or PBF) in the given order. Keeps one change per object: the change with the
/// highest version or, among equal versions, with the latest time. If times are equal or missing, keeps the change that
/// was read last. A missing version counts as the highest.
///
/// In OPL and PBF, an object that is marked as deleted is a deletion. Other objects with version 1 are creations. All
/// remaining objects, with another version or none, are modifications.
pub fn read_change_files<P: AsRef<Path>>(paths: &[P], ctx: &Context) -> Result<ChangeSet> {
    read_changes(paths, SameTime::LastRead, KeptVersions::Newest, ctx)
}

/// Reads change files (OsmChange, o5c, OPL or PBF) in the given order, as [`read_change_files`] does. Returns the
/// changes in canonical order. `versions` tells which versions of each object are kept. Several versions of an object
/// are in ascending order. Among changes with equal versions, keeps the one with the latest time. If the times are
/// equal or missing, `same_time` decides.
pub(crate) fn read_changes<P: AsRef<Path>>(
    paths: &[P],
    same_time: SameTime,
    versions: KeptVersions,
    ctx: &Context,
) -> Result<ChangeSet> {
    let inputs = paths.iter().map(|path| Input::open_in(path.as_ref(), ctx));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let mut reader = ChangeReader::new(same_time, versions);
    reader.add(&inputs, ctx)?;
    let headers = paths.iter().zip(&reader.headers);
    let states = headers
        .filter_map(|(path, header)| ChangeState::of(header, read::read_state_file(path.as_ref())));
    let states = states.collect();
    Ok(reader.finish(states, ctx))
}

/// Reads a change file that is open already, like [`read_change_files`]. Ignores the state file beside it.
pub(crate) fn read_change_input(input: &Input, ctx: &Context) -> Result<ChangeSet> {
    let mut reader = ChangeReader::new(SameTime::LastRead, KeptVersions::Newest);
    reader.add(std::slice::from_ref(input), ctx)?;
    Ok(reader.finish(Vec::new(), ctx))
}

/// A reader of change files, which are added in groups as they arrive.
#[derive(Debug)]
pub(crate) struct ChangeReader {
    changes: NewestChanges,
    /// The headers of the files, in the order of reading. Only their replication states and URLs are set.
    headers: Vec<DocumentHeader>,
}

impl ChangeReader {
    /// Creates a reader. `same_time` is the rule for changes with equal versions and times.
    pub(crate) fn new(same_time: SameTime, versions: KeptVersions) -> Self {
        Self {
            changes: NewestChanges::new(same_time, versions),
            headers: Vec::new(),
        }
    }

    /// Reads the next change files.
    pub(crate) fn add(&mut self, inputs: &[Input], ctx: &Context) -> Result<()> {
        let (first, changes) = (self.headers.len(), &mut self.changes);
        let sources = change_sources(inputs, ctx)?;
        let headers = read::add_all_objects(&sources, first, changes, ctx)?;
        self.headers.extend(headers);
        Ok(())
    }

    /// Returns the changes as [`read_changes`] does, with the given states of the change files.
    pub(crate) fn finish(self, states: Vec<ChangeState>, ctx: &Context) -> ChangeSet {
        let mut changes = self.changes.finish(ctx);
        changes.set_states(states);
        changes
    }
}

/// Reads the states of change files from their root elements, or from the state files beside them. Files without a
/// state are left out. Reads only the start of each change file.
pub fn read_change_states<P: AsRef<Path>>(
    paths: &[P],
    inputs: &[Input],
) -> Result<Vec<ChangeState>> {
    change_states(paths, &change_sources(inputs, &Context::new(1))?)
}

/// Reads the states of change files that are open already, as [`read_change_states`] does.
pub(crate) fn change_states<P: AsRef<Path>>(
    paths: &[P],
    sources: &[ObjectSource],
) -> Result<Vec<ChangeState>> {
    let states = paths.iter().zip(sources).map(|(path, source)| {
        let sidecar = read::read_state_file(path.as_ref());
        Ok(ChangeState::of(&source.document_header()?, sidecar))
    });
    states.filter_map(Result::transpose).collect()
}

/// Reads an OSM XML (`<osm>`), OPL or o5m file, compressed or not. Each object becomes the change that creates it; an
/// object that a history file marks as deleted (`visible="false"` or `dD`) becomes a deletion. Of several versions of
/// an object, the highest is kept. Objects that the user of an editor deleted (`action="delete"`) are left out.
///
/// Also reads the geometry that servers write on request: a node of a way may have a location without an id, and a
/// relation may list the nodes of its member ways. Fails if the objects take more than 256 MB of memory, which is about
/// three million nodes. A larger file has to be converted to PBF.
pub fn read_osm_file(input: &Input) -> Result<ChangeSet> {
    let format = match TextFormat::of(input)? {
        Some(format) if !format.is_change() => format,
        _ => TextFormat::Osm,
    };
    let ctx = Context::default();
    let objects = NewestChanges::new(SameTime::LastRead, KeptVersions::Newest);
    let mut objects = objects.max_memory(256 << 20);
    let source = ObjectSource::of_text_with_geometry(input, format);
    read::add_all_objects(&[source], 0, &mut objects, &ctx)?;
    Ok(objects.finish(&ctx))
}

#[cfg(test)]
mod tests;
