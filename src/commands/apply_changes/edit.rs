//! What a worker does with one blob and its changes.

use super::units::Unit;
use crate::Context;
use crate::error::Result;
use crate::osm::{OrderKey, id_from_rank};
use crate::pbf::splice::{EditScript, SpliceOptions, splice_block};
use crate::pbf::{
    BlobEntry, FormatError, Object, ParsedBlock, RawAge, Scale, SourceStrings, TARGET_ELEMENTS,
};
use crate::read::{BlobReader, PbfFile, stale_index};
use crate::text::{Batch, Change, ChangeSet};
use crate::write::{EncodedFrame, FrameEncoder, WriteOptions};

/// What became of a unit.
pub(super) enum Done {
    /// Nothing changes: the blob is copied.
    Copy(BlobEntry),
    /// What the blob holds now; nothing where all its objects are gone.
    Rewritten(Vec<EncodedFrame>),
    /// Blobs that were not there before.
    New(Vec<EncodedFrame>),
}

/// What changes did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
    pub outdated: u64,
    pub absent: u64,
    pub locations_dropped: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.modified += other.modified;
        self.deleted += other.deleted;
        self.outdated += other.outdated;
        self.absent += other.absent;
        self.locations_dropped += other.locations_dropped;
    }
}

/// A worker's scratch.
pub(super) struct Editor<'a> {
    reader: BlobReader<'a>,
    encoder: FrameEncoder,
    changes: &'a ChangeSet,
    drop_locations: bool,
    spliced: Vec<u8>,
}

impl<'a> Editor<'a> {
    pub(super) fn new(
        file: &'a PbfFile,
        changes: &'a ChangeSet,
        options: WriteOptions,
        drop_locations: bool,
        ctx: &Context,
    ) -> Self {
        let mut encoder = FrameEncoder::new(options.compression, options.blob_index);
        // Locations are not kept up to date, so that none are written, not even those of changes.
        encoder.drop_locations();
        let reader = BlobReader::new(&file.input, ctx);
        Self {
            reader,
            encoder,
            changes,
            drop_locations,
            spliced: Vec::new(),
        }
    }

    fn slice(&self, range: &std::ops::Range<usize>) -> &'a [Change] {
        self.changes
            .changes()
            .get(range.clone())
            .unwrap_or_default()
    }

    pub(super) fn work(&mut self, unit: &Unit) -> Result<(Done, Tally)> {
        match unit {
            Unit::Copy(entry) => Ok((Done::Copy(*entry), Tally::default())),
            Unit::Insert(range) => {
                let mut tally = Tally::default();
                let changes = self.slice(range);
                let frames = insert_all(&mut self.encoder, self.changes, changes, &mut tally);
                let bad = |error: FormatError| crate::Error::Internal(error.to_string());
                Ok((Done::New(frames.map_err(bad)?), tally))
            }
            Unit::Edit(entry, range) => {
                let changes = self.slice(range);
                let payload = self.reader.payload(entry)?;
                let mut edit = Edit {
                    entry,
                    encoder: &mut self.encoder,
                    set: self.changes,
                    drop_locations: self.drop_locations,
                    spliced: &mut self.spliced,
                };
                let done = edit.run(payload, changes);
                done.map_err(|error| self.reader.error(entry, error))
            }
        }
    }
}

/// New blobs of changes that fall between blobs.
fn insert_all(
    encoder: &mut FrameEncoder,
    set: &ChangeSet,
    changes: &[Change],
    tally: &mut Tally,
) -> Result<Vec<EncodedFrame>, FormatError> {
    let new = changes.iter().filter(|change| !change.is_deletion());
    let batch = Batch::new(set, new);
    let objects = batch.objects();
    tally.created += objects.len() as u64;
    tally.absent += (changes.len() - objects.len()) as u64;
    for object in &objects {
        encoder.add(object)?;
    }
    encoder.finish()
}

/// One blob being changed.
struct Edit<'e> {
    entry: &'e BlobEntry,
    encoder: &'e mut FrameEncoder,
    set: &'e ChangeSet,
    drop_locations: bool,
    spliced: &'e mut Vec<u8>,
}

/// A script, and the changes that it inserts.
struct Script<'c> {
    edits: EditScript,
    inserted: Vec<&'c Change>,
    tally: Tally,
}

impl Edit<'_> {
    fn run(&mut self, payload: &[u8], changes: &[Change]) -> Result<(Done, Tally), FormatError> {
        let block = ParsedBlock::parse(payload)?;
        let mut script = self.script(&block, changes)?;
        let strip = self.drop_locations && self.entry.kinds.contains(crate::osm::ObjectKind::Way);
        if strip {
            script.tally.locations_dropped = block.count_located_ways()?;
        }
        if script.edits.is_unchanged() && script.tally.locations_dropped == 0 {
            return Ok((Done::Copy(*self.entry), script.tally));
        }
        let count = script.edits.count_after();
        if count == 0 {
            return Ok((Done::Rewritten(Vec::new()), script.tally));
        }
        let batch = Batch::new(self.set, script.inserted.iter().copied());
        let objects = batch.objects();
        let grown = count > 2 * TARGET_ELEMENTS && count > self.entry.count as usize;
        self.spliced.clear();
        let options = SpliceOptions {
            drop_locations: strip,
        };
        if !grown && splice_block(payload, &script.edits, &objects, options, self.spliced)? {
            self.encoder.add_payload(self.spliced)?;
        } else {
            self.rebuild(&block, &script.edits, &objects)?;
        }
        Ok((Done::Rewritten(self.encoder.finish()?), script.tally))
    }

    /// Walks the objects and the changes side by side.
    fn script<'c>(
        &self,
        block: &ParsedBlock<'_>,
        changes: &'c [Change],
    ) -> Result<Script<'c>, FormatError> {
        let mut script = Script {
            edits: EditScript::default(),
            inserted: Vec::new(),
            tally: Tally::default(),
        };
        let mut changes = changes.iter().peekable();
        let mut keys = block.keys();
        let (mut last, mut count): (Option<OrderKey>, u32) = (None, 0);
        while let Some(key) = keys.next()? {
            check_order(last, key)?;
            self.check_range(key)?;
            last = Some(key);
            count += 1;
            while let Some(change) = changes.next_if(|change| change.key < key) {
                script.absent(change);
            }
            match changes.next_if(|change| change.key == key) {
                None => script.edits.keep(),
                Some(change) => script.present(change, keys.age()?, &block.scale),
            }
        }
        changes.for_each(|change| script.absent(change));
        if count != self.entry.count {
            return Err(stale_index("the number of objects differs"));
        }
        Ok(script)
    }

    /// Changes were assigned by the range that the index claims: an object outside of it might be
    /// one whose change went elsewhere.
    fn check_range(&self, key: OrderKey) -> Result<(), FormatError> {
        let (first, last) = (self.entry.first_key(), self.entry.last_key());
        if Some(key) < first || Some(key) > last {
            return Err(stale_index("an id lies outside of the range"));
        }
        Ok(())
    }

    /// Builds the block anew, or several where it grew.
    fn rebuild(
        &mut self,
        block: &ParsedBlock<'_>,
        edits: &EditScript,
        new: &[Object<'_>],
    ) -> Result<(), FormatError> {
        use crate::pbf::splice::Edit as Step;
        let mut strings = SourceStrings::new(&block.strings);
        let mut objects = block.cursor();
        for step in edits.steps() {
            match *step {
                Step::Insert(index) => {
                    if let Some(object) = new.get(index) {
                        self.encoder.add(object)?;
                    }
                }
                Step::Keep(count) => {
                    for _ in 0..count {
                        if let Some(object) = objects.next()? {
                            self.encoder.add_raw(&object, &block.scale, &mut strings)?;
                        }
                    }
                }
                Step::Drop(count) => {
                    for _ in 0..count {
                        objects.next()?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn check_order(last: Option<OrderKey>, key: OrderKey) -> Result<(), FormatError> {
    match last {
        Some(last) if last >= key => {
            let (kind, id) = (key.0, id_from_rank(key.1));
            Err(FormatError::with(if last == key {
                format!("{kind} {id} comes twice: changes can be applied to current data only")
            } else {
                format!(
                    "{kind} {id} is not in order, though the file says so; run `pbfhogg sort` first"
                )
            }))
        }
        _ => Ok(()),
    }
}

impl<'c> Script<'c> {
    fn insert(&mut self, change: &'c Change) {
        self.edits.insert(self.inserted.len());
        self.inserted.push(change);
    }

    /// The base does not have the object.
    fn absent(&mut self, change: &'c Change) {
        if change.is_deletion() {
            self.tally.absent += 1;
        } else {
            self.tally.created += 1;
            self.insert(change);
        }
    }

    /// The base has the object.
    fn present(&mut self, change: &'c Change, age: RawAge, scale: &Scale) {
        let timestamp = (age.timestamp != 0).then(|| scale.seconds(age.timestamp));
        if !change.replaces(age.version_number(), timestamp) {
            self.tally.outdated += 1;
            self.edits.keep();
            return;
        }
        self.edits.remove();
        if change.is_deletion() {
            self.tally.deleted += 1;
        } else {
            self.tally.modified += 1;
            self.insert(change);
        }
    }
}
