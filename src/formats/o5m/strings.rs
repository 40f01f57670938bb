//! The string table of o5m: the most recent strings and pairs of strings that were written in full, and not as
//! references.

use super::DatasetError;
use super::varint::DatasetCursor;
use crate::osm::ObjectKind;

/// The number of entries in the table, which is a ring buffer.
const ENTRIES: usize = 15_000;
/// The maximum length of an entry in bytes, without the zero bytes at the ends of its strings.
const LONGEST: usize = 250;

/// The parsed form of an entry. Strings are represented by their ids in a change set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A key and a value.
    Tag((u32, u32)),
    /// The id and the name of a user.
    User((Option<i32>, u32)),
    /// The type and the role of a member.
    Member((ObjectKind, u32)),
}

/// A string, or a pair of strings.
#[derive(Debug, Default)]
struct StringEntry {
    /// The first string, followed by the second one.
    text: Vec<u8>,
    /// The length of the first string.
    first: usize,
    is_pair: bool,
    /// The last parsed form, and the number of the change set to which its string ids belong.
    meaning: Option<(u64, Meaning)>,
}

impl StringEntry {
    /// Returns the last parsed form if its string ids belong to the change set with the given number.
    fn meaning_in_set(&self, set: u64) -> Option<Meaning> {
        self.meaning
            .filter(|(of, _)| *of == set)
            .map(|(_, meaning)| meaning)
    }
}

/// The table of strings.
#[derive(Debug, Default)]
pub(super) struct O5mStrings {
    entries: Vec<StringEntry>,
    /// The index of the entry that is replaced next.
    next: usize,
    /// The number of valid entries.
    count: usize,
    /// The number of the current change set.
    set: u64,
}

impl O5mStrings {
    /// Empties the table.
    pub(super) fn reset(&mut self) {
        self.count = 0;
    }

    /// Begins a new change set. The parsed forms that belong to earlier sets are no longer valid.
    pub(super) fn begin_set(&mut self) {
        self.set += 1;
    }

    /// Reads a string or, with `is_pair`, a pair of strings. The strings are stored inline, or as a reference to an
    /// entry. `understand` parses the two strings, and ignores the second one if `is_pair` is false. `wrap` converts
    /// the parsed result to a [`Meaning`], which the entry caches. `known` converts a cached meaning back to the
    /// result, and returns `None` for a meaning of another kind.
    #[inline]
    pub(super) fn read<T: Copy>(
        &mut self,
        reader: &mut DatasetCursor<'_>,
        is_pair: bool,
        known: impl Fn(Meaning) -> Option<T>,
        wrap: impl Fn(T) -> Meaning,
        understand: impl FnOnce(&[u8], &[u8]) -> Result<T, String>,
    ) -> Result<T, DatasetError> {
        let at = reader.position();
        let error = |cause: String| DatasetError::new(at, cause);
        let number = reader.read_unsigned()?;
        if number == 0 {
            let first = reader.read_string()?;
            let second = if is_pair { reader.read_string()? } else { &[] };
            let parsed = understand(first, second).map_err(error)?;
            self.add(first, is_pair.then_some(second), wrap(parsed));
            return Ok(parsed);
        }
        let set = self.set;
        let entry = self.entry_of_number(number).map_err(error)?;
        if let Some(parsed) = entry.meaning_in_set(set).and_then(known) {
            return Ok(parsed);
        }
        if is_pair && !entry.is_pair {
            return Err(error(format!("string {number} of the table is not a pair")));
        }
        let (first, second) = entry.text.split_at(entry.first);
        let parsed = understand(first, second).map_err(error)?;
        entry.meaning = Some((set, wrap(parsed)));
        Ok(parsed)
    }

    /// Returns the entry with the given number; 1 is the newest.
    fn entry_of_number(&mut self, number: u64) -> Result<&mut StringEntry, String> {
        let missing = || {
            format!(
                "a reference to string {number} of the table, which has {} strings",
                self.count
            )
        };
        let back = usize::try_from(number).ok();
        let back = back.filter(|back| (1..=self.count).contains(back));
        let back = back.ok_or_else(missing)?;
        Ok(&mut self.entries[(self.next + ENTRIES - back) % ENTRIES])
    }

    fn add(&mut self, first: &[u8], second: Option<&[u8]>, meaning: Meaning) {
        let second_len = second.map_or(0, <[u8]>::len);
        if first.len() + second_len > LONGEST {
            return;
        }
        if self.entries.len() <= self.next {
            self.entries
                .resize_with(self.next + 1, StringEntry::default);
        }
        let entry = &mut self.entries[self.next];
        entry.text.clear();
        entry.text.extend_from_slice(first);
        entry.text.extend_from_slice(second.unwrap_or(&[]));
        entry.first = first.len();
        entry.is_pair = second.is_some();
        entry.meaning = Some((self.set, meaning));
        self.next = (self.next + 1) % ENTRIES;
        self.count = (self.count + 1).min(ENTRIES);
    }
}
