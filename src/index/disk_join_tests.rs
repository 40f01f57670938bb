//! Tests of joins on disk.

use super::super::location_store::StoreForm;
use super::super::node_batch::NodeBatch;
use super::*;
use crate::for_tests::rounds::rounds;

#[test]
fn disk_space_is_freed_up_to_the_first_unread_list() {
    let mut read = ReadLists::default();
    let ends = [3, 1, 0, 5, 2, 4].map(|list| read.record_read(list));
    assert_eq!(ends, [0, 0, 2, 2, 4, 6]);
}

#[test]
fn every_list_gets_its_locations_with_any_number_of_ranges() {
    let ctx = Context::new(2);
    let location = |id: i64| match id % 7 {
        0 => None,
        _ => Location::new(id as i32, (id >> 3) as i32),
    };
    let known: Vec<i64> = (-50..200_000)
        .chain([1 << 40, i64::MIN, i64::MAX])
        .collect();
    let count = rounds(300) as i64;
    let mut lists: Vec<Vec<i64>> = (0..count)
        .map(|list: i64| {
            (0..list * 5)
                .map(|at| (list * 7919 + at * at) % 210_000)
                .collect()
        })
        .collect();
    lists[3] = vec![-1, -50, -51, 0, i64::MIN, i64::MAX, 1 << 40, i64::MIN + 1];
    let folder = tempfile::tempdir().unwrap();
    for cuts in [
        vec![],
        vec![1],
        vec![0, 1, 70_000, 70_001, 199_000, 1 << 41],
    ] {
        let starts: Vec<u64> = std::iter::once(0)
            .chain(cuts.into_iter().map(id_rank))
            .collect();
        let mut starts = starts;
        starts.dedup();
        let mut join = DiskJoin::new(starts.clone(), folder.path()).unwrap();
        for list in &lists {
            let splitter = join.splitter();
            let mut split = splitter.begin();
            let (one, two) = list.split_at(list.len() / 3);
            split.add(one);
            split.add(two);
            let split = split.finish();
            join.push(&split).unwrap();
        }
        for (at, start) in starts.iter().enumerate() {
            let end = starts.get(at + 1);
            let in_range = |id: &&i64| {
                let rank = id_rank(**id);
                rank >= *start && end.is_none_or(|end| rank < *end)
            };
            let (mut store, mut nodes) = (
                LocationStore::new(StoreForm::Sparse, 0),
                NodeBatch::default(),
            );
            known
                .iter()
                .filter(in_range)
                .for_each(|id| nodes.push(*id, location(*id)));
            store.add(&nodes);
            store.close();
            join.resolve_next_range(&store, &ctx).unwrap();
        }
        for (number, list) in lists.iter().enumerate() {
            let mut found = Vec::new();
            let mut read = join.read(number).unwrap();
            let (one, two) = list.split_at(list.len() / 2);
            read.read_next(one, &mut found).unwrap();
            read.read_next(two, &mut found).unwrap();
            read.end().unwrap();
            let expected = |id: &i64| {
                if known.contains(id) {
                    location(*id)
                } else {
                    None
                }
            };
            if number < 30 {
                assert_eq!(found, list.iter().map(expected).collect::<Vec<_>>());
            }
        }
        let mut other = lists[8].clone();
        other.pop();
        let mut read = join.read(8).unwrap();
        let known = read.read_next(&other, &mut Vec::new());
        assert!(known.and_then(|()| read.end()).is_err());
        assert!(join.peak_bytes > 0);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_long_list_is_read_in_pieces() {
    let location = |id: i64| {
        let (lat, lon) = (id * 7_919_993, id * 104_729_993);
        Location::new((lat % 900_000_000) as i32, (lon % 1_800_000_000) as i32)
    };
    let (mut store, mut nodes) = (
        LocationStore::new(StoreForm::Sparse, 0),
        NodeBatch::default(),
    );
    (0..1000).for_each(|id| nodes.push(id, location(id)));
    store.add(&nodes);
    store.close();
    let folder = tempfile::tempdir().unwrap();
    let mut join = DiskJoin::new(vec![0], folder.path()).unwrap();
    let long = (0..IDS_AT_ONCE as i64 + 100_000).map(|at| at * 617 % 1000);
    let lists = [vec![1, 2], long.collect(), vec![3], vec![]];
    for list in &lists {
        let splitter = join.splitter();
        let mut split = splitter.begin();
        split.add(list);
        join.push(&split.finish()).unwrap();
    }
    join.resolve_next_range(&store, &Context::new(2)).unwrap();
    assert!(join.locations[0].byte_len_of_lists(&(1..2)) > SENT_LEN as u64);
    for number in [3, 1, 0, 2] {
        let (mut read, mut found) = (join.read(number).unwrap(), Vec::new());
        for ids in lists[number].chunks(70_001) {
            found.clear();
            read.read_next(ids, &mut found).unwrap();
            assert!(ids.iter().map(|id| location(*id)).eq(found.iter().copied()));
            assert!(read.parts[0].bytes.len() <= READ_LEN as usize + LOCATION_LEN);
        }
        read.end().unwrap();
    }
}
