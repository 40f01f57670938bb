//! Chooses between objects of the same kind and id.

use super::{EqualVersions, LastChange, ResolvedDedupe};
use crate::engine::shards::EqualBlobs;
use crate::error::FormatResult;
use crate::osm::Age;
use crate::pbf::{BlockUnits, RawElement, VersionInfo};

/// The choice between two objects that are adjacent in canonical order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DuplicateChoice {
    Both,
    First,
    Second,
}

/// An object, and the units of its block.
pub(super) type Candidate<'c, 'a> = (&'c RawElement<'a>, &'c BlockUnits);

impl ResolvedDedupe {
    /// Chooses between `object` and `before`, the last object that was kept. In canonical order, `object` follows
    /// `before`. Objects with different keys are both kept. Objects with the same key and version must come in the
    /// order of the inputs.
    pub(super) fn choose(
        self,
        before: Candidate<'_, '_>,
        object: Candidate<'_, '_>,
    ) -> FormatResult<DuplicateChoice> {
        let (one, two) = (before.0, object.0);
        if self == Self::All || one.key != two.key {
            return Ok(DuplicateChoice::Both);
        }
        let second_if = |is_second| {
            if is_second {
                DuplicateChoice::Second
            } else {
                DuplicateChoice::First
            }
        };
        Ok(match self {
            Self::All => DuplicateChoice::Both,
            Self::HighestVersion => second_if(one.version < two.version),
            Self::EachVersion(_) if one.version != two.version => DuplicateChoice::Both,
            Self::EachVersion(EqualVersions::First) => DuplicateChoice::First,
            Self::EachVersion(EqualVersions::Last) => DuplicateChoice::Second,
            Self::EachVersion(EqualVersions::FirstOrDeletion) => {
                second_if(!one.version_info()?.is_deleted && two.version_info()?.is_deleted)
            }
            Self::LastChange(rules) => second_if(rules.supersedes(object, before)?),
        })
    }

    /// Returns which of several equal blobs is kept.
    pub(super) const fn equal_blobs(self) -> EqualBlobs {
        match self {
            Self::LastChange(_) | Self::EachVersion(EqualVersions::Last) => EqualBlobs::KeepLast,
            Self::All | Self::EachVersion(_) | Self::HighestVersion => EqualBlobs::KeepFirst,
        }
    }
}

impl LastChange {
    /// Whether `object` is the later change and replaces `before`. In canonical order, `object` follows `before`.
    fn supersedes(
        self,
        object: Candidate<'_, '_>,
        before: Candidate<'_, '_>,
    ) -> FormatResult<bool> {
        let infos = [object.0.version_info()?, before.0.version_info()?];
        let [age, age_before] = [age_of(infos[0], object.1), age_of(infos[1], before.1)];
        if !self.of_extracts {
            return Ok(age.supersedes(age_before, self.unversioned));
        }
        let rank = |age: Age| Age {
            timestamp: Some(age.timestamp.unwrap_or(i64::MAX)),
            ..age
        };
        let [age, age_before] = [rank(age), rank(age_before)];
        let is_tie = age == age_before;
        let [is_gone, was_gone] = infos.map(|info| info.is_deleted);
        Ok(if is_tie && is_gone != was_gone {
            was_gone
        } else {
            age.supersedes(age_before, self.unversioned)
        })
    }
}

fn age_of(info: VersionInfo, units: &BlockUnits) -> Age {
    Age {
        version: info.version_number(),
        timestamp: (info.timestamp != 0).then(|| units.seconds(info.timestamp)),
    }
}
