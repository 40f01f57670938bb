//! A read-only pass over the blobs that a closure selects.

use super::filter::{BlobDecision, StringPrefilter};
use crate::error::{FormatError, Result};
use crate::file::{BlobPass, BlobPlan, PbfFile};
use crate::pbf::{BlobEntry, Block, StringTable};
use crate::runtime::{Context, WorkItem};

/// A pass that parses the blocks of a file, with or without their strings.
pub(crate) struct Scan<'a> {
    name: &'static str,
    file: &'a PbfFile,
    plan: &'a BlobPlan,
    prefilter: Option<StringPrefilter<'a>>,
    with_strings: bool,
    ctx: &'a Context,
}

/// A blob to scan.
struct ScanItem<'e>(&'e BlobEntry);

impl WorkItem for ScanItem<'_> {
    fn input_bytes(&self) -> u64 {
        self.0.input_bytes()
    }

    fn held_bytes(&self) -> u64 {
        // Besides the blob, the results of the closures need up to 16 bytes per object.
        self.0.input_bytes() * 2 + u64::from(self.0.count) * 16
    }
}

impl<'a> Scan<'a> {
    /// Creates a pass that parses ids, locations and references, but no strings.
    pub(crate) fn bare(
        name: &'static str,
        file: &'a PbfFile,
        plan: &'a BlobPlan,
        ctx: &'a Context,
    ) -> Self {
        Self {
            name,
            file,
            plan,
            prefilter: None,
            with_strings: false,
            ctx,
        }
    }

    /// Returns the same pass, changed to also parse the string table of each block.
    pub(crate) fn with_strings(self) -> Self {
        Self {
            with_strings: true,
            ..self
        }
    }

    /// Returns the same pass, changed to also parse the string table of each block, and to skip blobs that `prefilter`
    /// drops.
    pub(crate) fn prefiltered(self, prefilter: StringPrefilter<'a>) -> Self {
        Self {
            prefilter: Some(prefilter),
            ..self.with_strings()
        }
    }

    /// Parses the blobs that `picks` selects, calls `find` with each, and calls `take` with the results in file order.
    pub(crate) fn run<T: Send>(
        self,
        picks: impl Fn(&BlobEntry) -> bool,
        find: impl Fn(&BlobEntry, &Block<'_>) -> Result<T, FormatError> + Sync,
        mut take: impl FnMut(T),
    ) -> Result<()> {
        self.try_run(picks, find, |found| {
            take(found);
            Ok(())
        })
    }

    /// Does the same as [`run`](Self::run), with a `take` that may fail.
    pub(crate) fn try_run<T: Send>(
        self,
        picks: impl Fn(&BlobEntry) -> bool,
        find: impl Fn(&BlobEntry, &Block<'_>) -> Result<T, FormatError> + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let entries = self.plan.entries.iter().filter(|entry| picks(entry));
        let (prefilter, with_strings) = (self.prefilter, self.with_strings);
        BlobPass::new(self.name, &self.file.input, self.ctx).run(
            entries.map(ScanItem).collect(),
            || (),
            |reader, (), ScanItem(entry)| {
                let is_dropped = prefilter.map(|prefilter| {
                    move |strings: &StringTable<'_>| {
                        (prefilter(strings) == BlobDecision::Drop).then_some(None)
                    }
                });
                reader.decode_unless_decided(entry, is_dropped, |payload, _| {
                    let block = if with_strings {
                        Block::parse(payload)?
                    } else {
                        Block::parse_bare(payload)?
                    };
                    find(entry, &block).map(Some)
                })
            },
            |found| found.into_iter().try_for_each(&mut take),
        )
    }
}
