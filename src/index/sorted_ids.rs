//! A sorted list of ids that are looked for among the ids of objects. The ids of objects are mostly sorted, too.

/// A list of ids in ascending order. If the ids of the objects are sorted, too, the listed ids are found among them
/// without a look-up for each object.
#[derive(Debug)]
pub(crate) struct SortedIds(Vec<i64>);

impl FromIterator<i64> for SortedIds {
    fn from_iter<I: IntoIterator<Item = i64>>(ids: I) -> Self {
        let mut ids: Vec<i64> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }
}

impl SortedIds {
    /// Calls `present` with the index in `ids` of each id that is in this list, in ascending order.
    pub(crate) fn for_each_present(&self, ids: &[i64], mut present: impl FnMut(usize)) {
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            return;
        };
        if !ids.is_sorted() {
            let is_present = |id: &i64| self.0.binary_search(id).is_ok();
            return ids
                .iter()
                .enumerate()
                .filter(|(_, id)| is_present(id))
                .for_each(|(at, _)| present(at));
        }
        let start = self.0.partition_point(|id| id < first);
        let mut at = 0;
        for wanted in self.0[start..].iter().take_while(|id| *id <= last) {
            at += ids[at..].partition_point(|id| id < wanted);
            while ids.get(at) == Some(wanted) {
                present(at);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_found_among_objects_in_any_order() {
        let mut random = Random(5);
        for _ in 0..200 {
            let mut draw = |most: i64| -> Vec<i64> {
                let count = random.below(most);
                (0..count).map(|_| random.below(120) - 60).collect()
            };
            let (ids, mut objects) = (draw(40), draw(80));
            let sorted: SortedIds = ids.iter().copied().collect();
            let set: BTreeSet<i64> = ids.into_iter().collect();
            for is_sorted in [false, true] {
                if is_sorted {
                    objects.sort_unstable();
                }
                let expected = objects.iter().enumerate();
                let expected = expected
                    .filter(|(_, id)| set.contains(id))
                    .map(|(at, _)| at);
                let expected: Vec<usize> = expected.collect();
                let mut found = Vec::new();
                sorted.for_each_present(&objects, |at| found.push(at));
                assert_eq!(found, expected);
            }
        }
    }
}
