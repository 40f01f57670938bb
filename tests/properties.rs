//! Checks the properties of `tests/common/properties.rs` on modified seeds and on random bytes. Counterexamples are
//! shrunk. `fuzz/` searches deeper.

use crate::common::is_long;
use crate::common::properties::{ALL, Property};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// A modification of bytes. Positions are in units of 1/65536 of the length.
#[derive(Debug, Clone)]
enum Change {
    Set(u16, u8),
    Flip(u16, u8),
    Insert(u16, Vec<u8>),
    Remove(u16, u8),
    Repeat(u16, u8),
    Cut(u16),
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<u16>;
    prop_oneof![
        3 => (place(), prop_oneof![Just(0), Just(0x7f), Just(0x80), Just(0xff), any::<u8>()]).prop_map(|(at, byte)| Change::Set(at, byte)),
        3 => (place(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        2 => (place(), proptest::collection::vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (place(), any::<u8>()).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (place(), any::<u8>()).prop_map(|(at, count)| Change::Repeat(at, count)),
        1 => place().prop_map(Change::Cut),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let index = |part: u16| usize::from(part) * bytes.len() / 65536;
        let end = |at: usize, count: u8| (at + usize::from(count)).min(bytes.len());
        match change {
            Change::Set(at, byte) => {
                let at = index(*at);
                bytes
                    .get_mut(at)
                    .into_iter()
                    .for_each(|found| *found = *byte);
            }
            Change::Flip(at, bit) => {
                let at = index(*at);
                bytes
                    .get_mut(at)
                    .into_iter()
                    .for_each(|found| *found ^= 1 << bit);
            }
            Change::Insert(at, more) => {
                let at = index(*at);
                bytes.splice(at..at, more.iter().copied());
            }
            Change::Remove(at, count) => {
                let at = index(*at);
                bytes.drain(at..end(at, *count));
            }
            Change::Repeat(at, count) => {
                let at = index(*at);
                let part = bytes[at..end(at, *count)].to_vec();
                bytes.splice(at..at, part);
            }
            Change::Cut(at) => bytes.truncate(index(*at)),
        }
    }
    bytes
}

/// Checks a property on its seeds and on `cases` inputs, the same in each run: mostly modified seeds, and random bytes.
/// With `PBFHOGG_LONG=1` there are fifty times as many, in short runs half as many.
fn holds(name: &str, cases: u32) {
    let Property { holds, seeds, .. } = ALL
        .into_iter()
        .find(|property| property.name == name)
        .unwrap();
    let seeds = seeds();
    seeds.iter().for_each(|seed| holds(seed));
    let config = Config {
        cases: if is_long() { cases * 50 } else { cases / 2 },
        failure_persistence: None,
        ..Config::default()
    };
    let seed = [7; 32];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let changed = (
        proptest::sample::select(seeds),
        proptest::collection::vec(change(), 0..9),
    )
        .prop_map(|(seed, changes)| changed(seed, &changes));
    let anything = proptest::collection::vec(any::<u8>(), 0..400);
    let bytes = prop_oneof![9 => changed, 1 => anything];
    let tried = runner.run(&bytes, |bytes| {
        let held = std::panic::catch_unwind(|| holds(&bytes));
        held.map_err(|_| TestCaseError::fail(format!("{name} does not hold")))
    });
    tried.unwrap();
}

#[test]
fn of_frames() {
    holds("frame", 20000);
}

#[test]
fn of_headers() {
    holds("header", 20000);
}

#[test]
fn of_blocks() {
    holds("block", 20000);
}

#[test]
fn of_blob_indexes() {
    holds("blob_index", 20000);
}

#[test]
fn of_tables() {
    holds("table", 20000);
}

#[test]
fn of_hosts() {
    holds("hosts", 20000);
}

#[test]
fn of_id_tables() {
    holds("id_table", 20000);
}

#[test]
fn of_codecs() {
    holds("codec", 3000);
}

#[test]
fn of_change_files() {
    holds("change_file", 6000);
}

#[test]
fn of_osm_texts() {
    holds("osm_text", 6000);
}

#[test]
fn of_o5m_files() {
    holds("o5m", 6000);
}

#[test]
fn of_tag_expressions() {
    holds("tag_expression", 20000);
}

#[test]
fn of_region_files() {
    holds("region_file", 6000);
}

#[test]
fn of_extract_configs() {
    holds("extract_config", 6000);
}

#[test]
fn of_objects() {
    holds("objects", 20000);
}

#[test]
fn of_whole_files() {
    holds("whole_file", 6000);
}

#[test]
fn every_property_is_tried() {
    let tried = include_str!("properties.rs");
    for property in ALL {
        assert!(
            tried.contains(&format!("    holds(\"{}\", ", property.name)),
            "{}",
            property.name
        );
    }
}
