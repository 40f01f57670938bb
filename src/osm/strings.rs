use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Distinct strings in one buffer. Ids count from 0, in the order of first appearance. Offsets have 32 bits, so callers
/// must keep the total length of the strings below 4 GiB.
#[derive(Debug, Clone, Default)]
pub struct StringPool {
    text: String,
    /// The start and the end of each string in `text`, by id.
    spans: Vec<(u32, u32)>,
    /// A hash table of the ids. The hash of an id is the hash of its string.
    lookup: HashTable<u32>,
}

/// The maximum number of bytes of memory for text that a pool keeps when it is cleared.
const KEPT_TEXT: usize = 4 << 20;

fn hash_of(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Returns the string with the given id.
fn string_at<'a>(text: &'a str, spans: &[(u32, u32)], id: u32) -> &'a str {
    let (start, end) = spans[id as usize];
    // If the text exceeds 4 GiB, offsets are wrong. Callers report this after all strings are added.
    text.get(start as usize..end as usize).unwrap_or("")
}

impl StringPool {
    /// Returns the id of a string. A string that is not in the pool yet is added.
    pub fn add(&mut self, string: &str) -> u32 {
        let hash = hash_of(string);
        let (text, spans) = (&self.text, &self.spans);
        if let Some(&id) = self
            .lookup
            .find(hash, |&id| string_at(text, spans, id) == string)
        {
            return id;
        }
        let id = self.spans.len() as u32;
        self.lookup
            .insert_unique(hash, id, |&id| hash_of(string_at(text, spans, id)));
        let start = self.text.len() as u32;
        self.text.push_str(string);
        self.spans.push((start, self.text.len() as u32));
        id
    }

    /// The string with the given id, which [`add`](Self::add) has returned.
    ///
    /// # Panics
    ///
    /// No string has the id.
    pub fn get(&self, id: u32) -> &str {
        string_at(&self.text, &self.spans, id)
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the pool contains no string.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The total length of all strings in bytes.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Removes all strings. Keeps the allocated memory, but at most 4 MiB for the text.
    pub fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT_TEXT);
        self.spans.clear();
        self.lookup.clear();
    }
}
