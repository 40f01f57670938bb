//! Interns the strings of a new block.

use crate::error::FormatError;
use crate::osm::StringPool;
use crate::pbf::block::outline::StringTable;
use crate::pbf::wire::put_bytes_field;
use crate::pbf::wire::schema::string_table;

/// A collection of the distinct strings of a block, with the number of uses of each.
///
/// The ids that [`Interner::add`] returns are provisional. [`Interner::finish`] orders the table by use, so that the
/// most frequent strings get the shortest ids, and returns the final id for each provisional one.
#[derive(Debug, Default)]
pub struct Interner {
    pool: StringPool,
    uses: Vec<u32>,
    /// The number of finished tables, by which [`SourceStrings`] recognizes ids of earlier tables.
    epoch: u32,
}

impl Interner {
    /// Returns the provisional id of a string, which is 1 or larger. Counts one use of the string.
    pub fn add(&mut self, text: &str) -> u32 {
        let id = self.pool.add(text);
        if self.uses.len() < self.pool.len() {
            self.uses.push(0);
        }
        self.count_use(id);
        id + 1
    }

    /// Returns the provisional id of a role or the name of a user; 0 for an empty string. Counts one use of any other
    /// string.
    pub fn add_or_empty(&mut self, text: &str) -> u32 {
        if text.is_empty() { 0 } else { self.add(text) }
    }

    fn count_use(&mut self, id: u32) {
        self.uses[id as usize] += 1;
    }

    /// Returns the total length of the distinct strings so far, in bytes.
    pub fn text_len(&self) -> usize {
        self.pool.text_len()
    }

    /// Appends the StringTable message and begins a new table. The message has the empty string, then the strings in
    /// `title`, which no object uses, and then the added strings, ordered by use. Returns the final string id for each
    /// provisional id.
    pub fn finish(&mut self, title: &[&str], out: &mut Vec<u8>) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.pool.len() as u32).collect();
        // The sort is stable, so strings with the same number of uses stay in the order of first appearance.
        order.sort_by_key(|id| std::cmp::Reverse(self.uses[*id as usize]));
        let mut final_ids = vec![0; self.pool.len() + 1];
        put_bytes_field(out, string_table::S, b"");
        for text in title {
            put_bytes_field(out, string_table::S, text.as_bytes());
        }
        for (final_id, &id) in (title.len() as u32 + 1..).zip(&order) {
            put_bytes_field(out, string_table::S, self.pool.get(id).as_bytes());
            final_ids[id as usize + 1] = final_id;
        }
        self.pool.clear();
        self.uses.clear();
        self.epoch = self.epoch.wrapping_add(1);
        final_ids
    }
}

/// The strings of a source block and their provisional ids in an [`Interner`]. A string is hashed only at its first
/// use in each table that the interner makes.
#[derive(Debug)]
pub struct SourceStrings<'a> {
    strings: &'a StringTable<'a>,
    /// For each string, the epoch of its last use plus one, and the provisional id in that epoch. Both are 0 if the
    /// string is empty, or has no id yet.
    known: Vec<(u32, u32)>,
}

impl<'a> SourceStrings<'a> {
    /// Returns the strings of a source block, which have no provisional ids yet.
    pub fn new(strings: &'a StringTable<'a>) -> Self {
        Self {
            known: vec![(0, 0); strings.len()],
            strings,
        }
    }

    /// Returns the provisional id of the string at `index`. Counts one use of the string. Fails if the index is out of
    /// range.
    #[inline]
    pub fn id(&mut self, index: u64, interner: &mut Interner) -> Result<u32, FormatError> {
        match self.known_id(index, interner) {
            Some(id) => Ok(id),
            None => self.new_id(index, interner),
        }
    }

    /// Returns the id of the string at `index`, and counts one use of the string. Returns `None` if the string is
    /// empty, or has no id yet.
    #[inline]
    fn known_id(&self, index: u64, interner: &mut Interner) -> Option<u32> {
        let (epoch, id) = *self.known.get(usize::try_from(index).ok()?)?;
        let is_known = epoch == interner.epoch.wrapping_add(1);
        is_known.then(|| {
            interner.count_use(id - 1);
            id
        })
    }

    /// Does the same as [`id`](Self::id) for a string that is empty or has no id yet.
    #[inline(never)]
    fn new_id(&mut self, index: u64, interner: &mut Interner) -> Result<u32, FormatError> {
        let text = self.strings.get(index)?;
        let id = interner.add(text);
        if !text.is_empty() {
            self.known[index as usize] = (interner.epoch.wrapping_add(1), id);
        }
        Ok(id)
    }

    /// Returns the provisional id of a role or the name of a user, as [`id`](Self::id) does, but 0 for an empty string.
    #[inline]
    pub fn id_or_empty(&mut self, index: u64, interner: &mut Interner) -> Result<u32, FormatError> {
        if let Some(id) = self.known_id(index, interner) {
            return Ok(id);
        }
        match self.strings.get(index) {
            Ok("") => Ok(0),
            Ok(_) => self.new_id(index, interner),
            // Index 0 means "no role" or "no user" even in a block without strings.
            Err(_) if index == 0 => Ok(0),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_sorted_by_use_and_ids_follow_their_order() {
        let mut interner = Interner::default();
        let (rare, often) = (interner.add("rare"), interner.add("often"));
        assert_eq!(interner.add("often"), often);
        assert_eq!(interner.add_or_empty(""), 0);
        let mut table = Vec::new();
        let ids = interner.finish(&[], &mut table);
        assert_eq!((ids[often as usize], ids[rare as usize]), (1, 2));
        let table = StringTable::parse(&table).unwrap();
        assert_eq!(table.iter().collect::<Vec<_>>(), ["", "often", "rare"]);
    }

    #[test]
    fn a_source_remembers_ids_only_within_one_table() {
        let mut message = Vec::new();
        ["", "a", "b"]
            .iter()
            .for_each(|text| put_bytes_field(&mut message, 1, text.as_bytes()));
        let strings = StringTable::parse(&message).unwrap();
        let mut source = SourceStrings::new(&strings);
        let mut interner = Interner::default();
        assert_eq!(source.id(2, &mut interner), Ok(1));
        assert_eq!(source.id(1, &mut interner), Ok(2));
        assert_eq!(source.id(2, &mut interner), Ok(1));
        interner.finish(&[], &mut Vec::new());
        assert_eq!(source.id(1, &mut interner), Ok(1));
        assert!(source.id(3, &mut interner).is_err());
    }
    #[test]
    fn an_empty_string_is_a_value_but_no_user() {
        let mut message = Vec::new();
        ["", ""]
            .iter()
            .for_each(|text| put_bytes_field(&mut message, 1, text.as_bytes()));
        let strings = StringTable::parse(&message).unwrap();
        let (mut source, mut interner) = (SourceStrings::new(&strings), Interner::default());
        for _ in 0..2 {
            assert_eq!(source.id(1, &mut interner), Ok(1));
            assert_eq!(source.id_or_empty(1, &mut interner), Ok(0));
        }
    }
}
