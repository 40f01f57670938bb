//! `changeset-filter`: copies the changesets that match all given criteria.

use super::changesets;
use crate::engine::{OutputOptions, input};
use crate::error::{Error, Result};
use crate::file::Written;
use crate::formats::Changeset;
use crate::osm::Bbox;
use crate::runtime::Context;
use std::path::PathBuf;

options! {
    /// The options of `changeset-filter`.
    pub struct Options {
        /// The file of changesets; `-` is standard input.
        pub input: PathBuf,
        /// The target, the text format and the header of the output.
        pub output: OutputOptions,
    }
    /// Without criteria, all changesets are copied.
    new(input: impl Into<PathBuf>, output: OutputOptions);
    setters {
        /// The criteria by which changesets are selected.
        criteria: Criteria,
    }
}

/// The criteria for changesets. A changeset has to match all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Criteria {
    /// Selects open changesets, and changesets that were closed at this time or later. In seconds since 1970.
    pub after: Option<i64>,
    /// Selects changesets that were opened at this time or earlier. In seconds since 1970.
    pub before: Option<i64>,
    /// Selects changesets with a bounding box that overlaps this box.
    pub bbox: Option<Bbox>,
    /// Selects changesets with changes (`true`) or without (`false`).
    pub has_changes: Option<bool>,
    /// Selects changesets with comments (`true`) or without (`false`).
    pub has_discussion: Option<bool>,
    /// Selects open (`true`) or closed (`false`) changesets.
    pub is_open: Option<bool>,
    /// Selects the changesets of the user with this name.
    pub user: Option<String>,
    /// Selects the changesets of the user with this id.
    pub uid: Option<i64>,
}

impl Criteria {
    /// Whether a changeset matches all criteria.
    pub fn matches(&self, changeset: &Changeset) -> bool {
        let is_open = changeset.closed.is_none();
        let overlaps = |wanted: &Bbox| match &changeset.bbox {
            None => false,
            Some(bbox) => {
                bbox.min_lon_e7 <= wanted.max_lon_e7
                    && bbox.max_lon_e7 >= wanted.min_lon_e7
                    && bbox.min_lat_e7 <= wanted.max_lat_e7
                    && bbox.max_lat_e7 >= wanted.min_lat_e7
            }
        };
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        is(self.has_changes, changeset.changes > 0)
            && is(self.has_discussion, changeset.comments_count > 0)
            && is(self.is_open, is_open)
            && self
                .user
                .as_ref()
                .is_none_or(|user| *user == changeset.user)
            && self.uid.is_none_or(|uid| uid == changeset.uid.unwrap_or(0))
            && self
                .after
                .is_none_or(|after| changeset.closed.is_none_or(|closed| closed >= after))
            && self
                .before
                .is_none_or(|before| changeset.created.unwrap_or(0) <= before)
            && self.bbox.as_ref().is_none_or(overlaps)
    }
}

/// Copies the changesets that match the criteria.
///
/// Reads one file of changesets on one core. The file is OSM XML or OPL, and may be compressed. Writes OSM XML, OPL or
/// debug text.
///
/// # Memory
///
/// About 5 MB for the program, one changeset, and 1 MB of text.
///
/// # Errors
///
/// - The input cannot be opened or read, or is damaged; the output exists and may not be overwritten, or it cannot be
///   written ([details](crate::commands#errors)).
/// - The input has no changesets, or the output is PBF.
pub fn run(options: &Options, ctx: &Context) -> Result<Written> {
    let inputs = [input::open_in_any_format(&options.input, ctx)?];
    let none = || {
        let cause = "there are no changesets in this file: planet files of changesets are named changesets-*.osm.bz2";
        Error::file(&options.input, cause)
    };
    let found = changesets::inputs_with_changesets(&inputs)?.ok_or_else(none)?;
    let keeps = |changeset: &Changeset| options.criteria.matches(changeset);
    changesets::write_changesets(&found, &options.output, keeps, false, ctx)?.ok_or_else(none)
}
