//! Determines the ids of lost objects from the table of contents, from the index of the blob, or from the neighbouring
//! blobs.

use super::frames::Piece;
use super::outcome::Outcome;
use super::report::{Loss, LostIds};
use crate::error::Result;
use crate::file::{read_blob_message, read_toc_tail};
use crate::io::Input;
use crate::osm::{ObjectKind, TypeThenId, id_from_rank};
use crate::pbf::{BlobEntry, TableBlob, Toc, TocReader, find_toc};
use std::collections::HashMap;

/// The keys of the first and the last object, and the number of objects. Blobs with equal values are treated as
/// interchangeable.
type Content = (Option<TypeThenId>, Option<TypeThenId>, u32);

/// Returns the facts by which the entry of a blob is recognised.
fn content_key(entry: &BlobEntry) -> Content {
    (entry.first_sort_key(), entry.last_sort_key(), entry.count)
}

/// Reads the table of contents at the end of a file whose length differs from the length in its header. The offsets in
/// the table are those before the damage. Returns `None` if there is no such table.
pub(super) fn read_toc_at_end(input: &Input, pieces: &[Piece]) -> Result<Option<Vec<BlobEntry>>> {
    let Some(stated_start) = find_toc(&read_toc_tail(input)?) else {
        return Ok(None);
    };
    let mut parts = Vec::new();
    for piece in pieces.iter().rev() {
        let Piece::Frame(frame) = piece else { break };
        let table = TableBlob::of(&read_blob_message(input, &frame.entry)?);
        let is_part = matches!(table, TableBlob::TableOfContents | TableBlob::Host);
        if frame.stream_in.is_some() || !is_part {
            break;
        }
        parts.push(frame.entry);
    }
    let mut reader = TocReader::new(stated_start);
    for part in parts.iter().rev() {
        let mut bytes = vec![0; part.frame_len as usize];
        input.read_all_at(&mut bytes, part.offset)?;
        if reader.add(&bytes).is_err() {
            return Ok(None);
        }
    }
    let table = reader.finish().and_then(|(table, hosts)| {
        let entries = Toc::parse(&table, 0, u64::MAX)?.entries;
        Ok(entries.into_iter().chain(hosts).collect())
    });
    Ok(table.ok())
}

/// Sets the ids of lost objects in the outcomes. `table` has an entry for each blob that the file had before the
/// damage.
pub(super) fn with_lost_ids(outcomes: Vec<Outcome>, table: Option<&[BlobEntry]>) -> Vec<Outcome> {
    let matches = table.and_then(|table| Some((table, Matches::of(&outcomes, table)?)));
    match matches {
        Some((table, matches)) => matches.with_lost_ids(outcomes, table),
        None => with_ids_of_neighbours(outcomes),
    }
}

/// The assignment of outcomes to the entries of a table of contents.
struct Matches {
    /// For each entry of the table, the index of the outcome that has the objects of the entry.
    found: Vec<Option<usize>>,
}

impl Matches {
    /// Assigns outcomes to the entries of a table. Returns `None` if an undamaged blob has no entry. Such a table does
    /// not describe the complete file.
    fn of(outcomes: &[Outcome], table: &[BlobEntry]) -> Option<Self> {
        let mut by_content: HashMap<Content, Vec<usize>> = HashMap::new();
        for (index, entry) in table.iter().enumerate().rev() {
            by_content
                .entry(content_key(entry))
                .or_default()
                .push(index);
        }
        let mut by_first: Vec<usize> = (0..table.len()).collect();
        by_first.sort_by_key(|index| table[*index].first_sort_key());
        let mut found = vec![None; table.len()];
        for (number, outcome) in outcomes.iter().enumerate() {
            let index = match outcome {
                Outcome::Whole { entry, .. } if entry.count > 0 => {
                    Some(by_content.get_mut(&content_key(entry))?.pop()?)
                }
                Outcome::Mended(_) => outcome.keys().and_then(|(first, last)| {
                    let behind = by_first
                        .partition_point(|index| table[*index].first_sort_key() <= Some(first));
                    let index = *by_first[..behind].last()?;
                    (Some(last) <= table[index].last_sort_key()).then_some(index)
                }),
                _ => None,
            };
            if let Some(index) = index {
                found[index] = Some(number);
            }
        }
        Some(Self { found })
    }

    /// Distributes the entries without an outcome to the losses, and sets the ids of each loss. Adds losses for the
    /// entries of blobs that have left no bytes. Removes a lost blob whose objects were found elsewhere.
    fn with_lost_ids(&self, outcomes: Vec<Outcome>, table: &[BlobEntry]) -> Vec<Outcome> {
        let mut known: HashMap<Content, Vec<usize>> = HashMap::new();
        for (number, outcome) in outcomes.iter().enumerate().rev() {
            if let Outcome::Lost(_, Some(entry)) = outcome {
                known.entry(content_key(entry)).or_default().push(number);
            }
        }
        // `missing` maps the number of a lost outcome to the entries of its blobs. `vanished` has the entries of blobs
        // that have left no bytes. Its keys are the numbers of the outcomes that followed these blobs.
        let mut missing: HashMap<usize, Vec<&BlobEntry>> = HashMap::new();
        let mut vanished: HashMap<usize, Vec<&BlobEntry>> = HashMap::new();
        let mut next = 0;
        for (entry, found) in table.iter().zip(&self.found) {
            if let Some(number) = found {
                next = number + 1;
            } else if entry.count > 0 {
                let lost = known.get_mut(&content_key(entry)).and_then(Vec::pop);
                let lost = lost.or_else(|| {
                    let mut behind = (next..).zip(&outcomes[next..]);
                    let (number, outcome) = behind.find(|(_, outcome)| outcome.end().is_some())?;
                    matches!(outcome, Outcome::Lost(_, None)).then_some(number)
                });
                match lost {
                    Some(number) => missing.entry(number).or_default().push(entry),
                    None => vanished.entry(next).or_default().push(entry),
                }
            }
        }
        let mut named = Vec::with_capacity(outcomes.len());
        let mut end = 0;
        let count = outcomes.len();
        for (number, mut outcome) in outcomes.into_iter().enumerate() {
            named.extend(
                vanished
                    .get(&number)
                    .map(|entries| loss_of_missing_blobs(end, entries)),
            );
            if let Outcome::Lost(loss, indexed) = &mut outcome {
                let entries = missing.remove(&number).unwrap_or_default();
                if entries.is_empty() && indexed.is_some() {
                    continue;
                }
                loss.set_entries(&entries);
            }
            end = outcome.end().unwrap_or(end);
            named.push(outcome);
        }
        named.extend(
            vanished
                .get(&count)
                .map(|entries| loss_of_missing_blobs(end, entries)),
        );
        named
    }
}

/// Returns the loss of blobs of which the file has no bytes.
fn loss_of_missing_blobs(offset: u64, entries: &[&BlobEntry]) -> Outcome {
    let cause = "the table of contents lists a blob that is not there".to_owned();
    let mut loss = Loss::new(None, offset, 0, cause);
    loss.set_entries(entries);
    Outcome::Lost(loss, None)
}

impl Loss {
    /// Sets the number and the ids of the lost objects from the entries of the lost blobs.
    fn set_entries(&mut self, entries: &[&BlobEntry]) {
        self.objects = Some(entries.iter().map(|entry| u64::from(entry.count)).sum());
        let ids_of = |entry: &&BlobEntry| {
            let is_exact = entry.kinds.single().is_some();
            id_ranges_between(entry.first_sort_key(), entry.last_sort_key(), is_exact)
        };
        self.ids = entries.iter().flat_map(ids_of).collect();
    }
}

/// Sets the ids of lost objects. They come from the index of the lost blob if the index is known. Otherwise, they come
/// from the objects before and after the blob.
fn with_ids_of_neighbours(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let mut behind: Vec<Option<TypeThenId>> = Vec::with_capacity(outcomes.len());
    let mut first = None;
    for outcome in outcomes.iter().rev() {
        first = outcome.keys().map(|(first, _)| first).or(first);
        behind.push(first);
    }
    let mut before = None;
    for (outcome, behind) in outcomes.iter_mut().zip(behind.into_iter().rev()) {
        before = outcome.keys().map(|(_, last)| last).or(before);
        match outcome {
            Outcome::Lost(loss, Some(entry)) => loss.set_entries(&[&*entry]),
            Outcome::Lost(loss, None) => loss.ids = ids_between(before, behind),
            Outcome::Whole { .. } | Outcome::Mended(_) | Outcome::Empty => {}
        }
    }
    outcomes
}

/// Returns the ids between two objects. `None` is the start or the end of a sorted file.
fn ids_between(before: Option<TypeThenId>, behind: Option<TypeThenId>) -> Vec<LostIds> {
    let first = before.map(|(kind, rank)| (kind, rank.saturating_add(1)));
    let last = behind.map(|(kind, rank)| (kind, rank.saturating_sub(1)));
    match before.zip(behind) {
        // Several sorted files were concatenated. `before` is the last object of a file, `behind` the first object of
        // the next.
        Some((before, behind)) if before > behind => {
            let mut ids = id_ranges_between(first, None, false);
            ids.extend(id_ranges_between(None, last, false));
            ids
        }
        // No id lies between the two objects, but other versions of these objects may be lost.
        Some(_) if first > last => id_ranges_between(before, behind, false),
        _ => id_ranges_between(first, last, false),
    }
}

/// Returns the ids from the first to the last key. `None` means no limit.
fn id_ranges_between(
    first: Option<TypeThenId>,
    last: Option<TypeThenId>,
    is_exact: bool,
) -> Vec<LostIds> {
    let first_kind = first.map_or(ObjectKind::Node, |(kind, _)| kind);
    let last_kind = last.map_or(ObjectKind::Relation, |(kind, _)| kind);
    let id = |key: Option<TypeThenId>, wanted: ObjectKind| {
        let key = key.filter(|(kind, _)| *kind == wanted);
        key.map(|(_, rank)| id_from_rank(rank))
    };
    let kinds = ObjectKind::ALL.into_iter();
    kinds
        .filter(|kind| (first_kind..=last_kind).contains(kind))
        .map(|kind| LostIds {
            kind,
            first: id(first, kind),
            last: id(last, kind),
            is_exact,
        })
        .collect()
}
