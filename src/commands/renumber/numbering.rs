//! The map from old to new ids, for one kind of objects.

use crate::error::{Error, FileResult, Result};
use crate::index::{IdSet, RankCursor, RankSet, RankSetBuilder};
use crate::io::StreamOutput;
use crate::osm::id_rank;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// A list of distinct ids that can look up the index of an id.
#[derive(Debug, Default)]
pub(super) struct IdList {
    in_order: Vec<i64>,
    indices: FxHashMap<i64, u64>,
}

impl IdList {
    /// Returns the number of ids.
    pub(super) fn len(&self) -> u64 {
        self.in_order.len() as u64
    }

    /// Returns the index of an id. Appends the id if it is not in the list.
    pub(super) fn index_or_append(&mut self, id: i64) -> u64 {
        let next = self.len();
        let index = *self.indices.entry(id).or_insert(next);
        if index == next {
            self.in_order.push(id);
        }
        index
    }
}

impl Extend<i64> for IdList {
    fn extend<T: IntoIterator<Item = i64>>(&mut self, ids: T) {
        for id in ids {
            self.index_or_append(id);
        }
    }
}

/// Maps old ids to new ids. Each old id has an index, counted from 0. Its new id is the first new id plus the index, or
/// minus the index if the first new id is negative.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// The first new id.
    start: i64,
    /// The old ids with the lowest indices. New ids were assigned to them in canonical order.
    first: RankSet,
    /// The old ids that were added after the ids in `first`, in the order of their indices.
    later: IdList,
    /// Whether `first` contains exactly the ids of the file's objects.
    pub(super) is_fresh: bool,
}

impl Numbering {
    pub(super) fn new(start: i64) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// Returns the first new id.
    pub(super) const fn start(&self) -> i64 {
        self.start
    }

    /// Returns a cursor that looks up many ids, quickly if they are close to each other.
    pub(super) fn walk(&self) -> NumberWalk<'_> {
        NumberWalk {
            numbering: self,
            ranks: self.first.walk(),
        }
    }

    /// Returns the new id for the index `number`.
    pub(super) const fn new_id_at(&self, number: u64) -> i64 {
        if self.start < 0 {
            self.start.wrapping_sub(number as i64)
        } else {
            self.start.wrapping_add(number as i64)
        }
    }

    /// Replaces old ids by their new ids. An id without a new id stays, and `unknown` is called with its index in
    /// `ids`, in ascending order.
    pub(super) fn replace(&self, ids: &mut [i64], mut unknown: impl FnMut(usize)) {
        const AT_A_TIME: usize = 256;
        let mut old = [0; AT_A_TIME];
        for (batch, ids) in ids.chunks_mut(AT_A_TIME).enumerate() {
            let old = &mut old[..ids.len()];
            old.copy_from_slice(ids);
            self.first.for_each_rank(old, |index, rank| {
                match rank.or_else(|| self.index_of_id_added_later(old[index])) {
                    Some(number) => ids[index] = self.new_id_at(number),
                    None => unknown(batch * AT_A_TIME + index),
                }
            });
        }
    }

    /// Returns the index of an old id that was added after the ids in `first`.
    fn index_of_id_added_later(&self, id: i64) -> Option<u64> {
        let index = self.later.indices.get(&id)?;
        Some(self.first.len() + index)
    }

    /// Calls `unknown` with each of `ids` that has no new id, in the order of `ids`.
    pub(super) fn for_each_unknown(&self, ids: &[i64], mut unknown: impl FnMut(i64)) {
        self.first.for_each_rank(ids, |index, rank| {
            if rank.is_none() && !self.later.indices.contains_key(&ids[index]) {
                unknown(ids[index]);
            }
        });
    }

    fn contains(&self, id: i64) -> bool {
        self.first.contains(id) || self.later.indices.contains_key(&id)
    }

    /// Whether `id` is the new id of some old id.
    pub(super) fn is_new_id(&self, id: i64) -> bool {
        let number = if self.start < 0 {
            self.start.checked_sub(id)
        } else {
            id.checked_sub(self.start)
        };
        number.is_some_and(|number| (0..self.len() as i64).contains(&number))
    }

    /// Returns the number of old ids that have a new id.
    pub(super) fn len(&self) -> u64 {
        self.first.len() + self.later.len()
    }

    /// Assigns the next new id to an old id, unless the old id already has one.
    pub(super) fn add(&mut self, id: i64) {
        if !self.contains(id) {
            self.later.index_or_append(id);
        }
    }

    /// Assigns the next new ids to the old ids in the list that have none, in the order of the list.
    pub(super) fn append(&mut self, ids: IdList) {
        match self.later.len() {
            0 => self.later = ids,
            _ => ids.in_order.into_iter().for_each(|id| self.add(id)),
        }
    }

    /// Assigns the first new ids to the ids of the file's objects. The map must be empty.
    pub(super) fn assign_first_ids(&mut self, ids: RankSet) {
        self.first = ids;
        self.is_fresh = true;
    }

    /// Assigns the next new ids, in canonical order, to those of `ids` that have none. `ids` are the ids of the file's
    /// objects.
    pub(super) fn assign_new_ids(&mut self, ids: IdSet) {
        if self.len() == 0 {
            self.assign_first_ids(ids.into());
        } else {
            ids.ids().for_each(|id| self.add(id));
        }
    }

    /// Fails if the first `ids` new ids do not all fit into an `i64`.
    pub(super) fn check_new_ids_fit(&self, ids: u64) -> Result<()> {
        let more = ids.saturating_sub(1);
        let last = if self.start < 0 {
            self.start.checked_sub_unsigned(more)
        } else {
            self.start.checked_add_unsigned(more)
        };
        match last {
            Some(_) => Ok(()),
            None => Err(Error::Usage(format!(
                "counting {ids} ids from {} goes past what an id can be",
                self.start
            ))),
        }
    }

    /// Returns pairs of an old id and its new id, in the order of their indices.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        let old = self.first.ids().chain(self.later.in_order.iter().copied());
        (0..)
            .zip(old)
            .map(|(number, old)| (old, self.new_id_at(number)))
    }

    /// Reads a file that contains the old ids in the order of their indices, each as a little-endian `i64`. Returns an
    /// empty map if the file does not exist. Fails if the file cannot be read, if its size is not a multiple of 8
    /// bytes, or if an id occurs twice.
    pub(super) fn read(path: &Path, start: i64) -> Result<Self> {
        let failed = |error| Error::io(path, "cannot read", error);
        let opened = File::open(path).if_exists();
        let Some(file) = opened.for_path(path, "cannot open")? else {
            return Ok(Self::new(start));
        };
        let len = file.metadata().map_err(failed)?.len();
        if !len.is_multiple_of(8) {
            return Err(Error::file(
                path,
                "this is not an index of ids: its length is no multiple of 8",
            ));
        }
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let (mut first, mut last) = (RankSetBuilder::default(), None);
        let mut numbering = Self::new(start);
        for _ in 0..len / 8 {
            let mut bytes = [0; 8];
            reader.read_exact(&mut bytes).map_err(failed)?;
            let id = i64::from_le_bytes(bytes);
            if numbering.later.len() == 0 && last < Some(id_rank(id)) {
                last = Some(id_rank(id));
                first.push(id);
                continue;
            }
            if numbering.later.len() == 0 {
                numbering.first = std::mem::take(&mut first).finish();
            }
            if numbering.contains(id) {
                return Err(Error::file(
                    path,
                    format!("this is not an index of ids: {id} occurs twice"),
                ));
            }
            numbering.add(id);
        }
        if numbering.later.len() == 0 {
            numbering.first = first.finish();
        }
        Ok(numbering)
    }

    /// Writes the file that [`read`](Self::read) reads.
    pub(super) fn write(&self, output: &mut StreamOutput) -> Result<()> {
        const AT_A_TIME: usize = 1 << 16;
        let mut bytes = Vec::with_capacity(AT_A_TIME);
        for (old, _) in self.pairs() {
            bytes.extend_from_slice(&old.to_le_bytes());
            if bytes.len() >= AT_A_TIME {
                output.write(&bytes)?;
                bytes.clear();
            }
        }
        output.write(&bytes)
    }
}

/// A cursor that looks up ids in a [`Numbering`].
pub(super) struct NumberWalk<'n> {
    numbering: &'n Numbering,
    ranks: RankCursor<'n>,
}

impl NumberWalk<'_> {
    /// Returns the new id of an old id; `None` if no new id is assigned to the old id.
    #[inline]
    pub(super) fn new_id(&mut self, id: i64) -> Option<i64> {
        let numbering = self.numbering;
        let rank = self.ranks.rank(id);
        let number = rank.or_else(|| numbering.index_of_id_added_later(id))?;
        Some(numbering.new_id_at(number))
    }

    /// Replaces the ids of consecutive objects of the file by their new ids. An id without a new id stays.
    pub(super) fn replace_object_ids(&mut self, ids: &mut [i64]) {
        if !self.try_replace_consecutive_ids(ids) {
            for id in ids {
                *id = self.new_id(*id).unwrap_or(*id);
            }
        }
    }

    /// Does the same as [`replace_object_ids`](Self::replace_object_ids), but looks up only the first and the last id.
    /// Requires that [`Numbering::is_fresh`] is set, that `ids` are in canonical order, and that `ids` has every id of
    /// the map between its first and its last id. Otherwise returns `false` and changes nothing.
    fn try_replace_consecutive_ids(&mut self, ids: &mut [i64]) -> bool {
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            return false;
        };
        let (Some(first), Some(last)) = (self.ranks.rank(*first), self.ranks.rank(*last)) else {
            return false;
        };
        let is_all = self.numbering.is_fresh && first + ids.len() as u64 == last + 1;
        if !is_all || !ids.is_sorted_by(|one, two| id_rank(*one) < id_rank(*two)) {
            return false;
        }
        for (number, id) in (first..).zip(ids) {
            *id = self.numbering.new_id_at(number);
        }
        true
    }
}
