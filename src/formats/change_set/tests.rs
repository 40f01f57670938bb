//! Tests of change sets.

use super::*;

fn change(version: Option<u32>, timestamp: Option<i64>, uid: i32) -> Change {
    Change {
        key: (ObjectKind::Node, 1),
        action: ChangeAction::Modify,
        version,
        timestamp,
        file: 0,
        changeset: None,
        uid: Some(uid),
        user: 0,
        location: Location::new(0, 0),
        tags: Span::default(),
        refs: Span::default(),
        details: Span::default(),
    }
}

/// Returns the uid of the change that is kept.
fn winner(changes: &[Change]) -> Option<i32> {
    let mut set = ChangeSet {
        changes: changes.to_vec(),
        ..ChangeSet::default()
    };
    set.sort_and_keep(KeptVersions::Newest, SameTime::LastRead, &Context::new(1));
    set.changes()[0].uid
}

#[test]
fn the_highest_version_wins_then_the_later_time_then_the_later_change() {
    let versions = [
        change(Some(2), None, 1),
        change(Some(3), Some(1), 2),
        change(Some(1), None, 3),
    ];
    assert_eq!(winner(&versions), Some(2));
    let times = [change(Some(2), Some(9), 1), change(Some(2), Some(5), 2)];
    assert_eq!(winner(&times), Some(1));
    let equals = [change(Some(2), Some(9), 1), change(Some(2), Some(9), 2)];
    assert_eq!(winner(&equals), Some(2));
}

#[test]
fn a_change_without_version_is_newest_wherever_it_stands() {
    let bare = change(None, None, 7);
    for others in [[1, 3], [3, 1]] {
        let [a, b] = others.map(|version| change(Some(version), Some(4), 0));
        for changes in [[a, b, bare], [a, bare, b], [bare, a, b]] {
            assert_eq!(winner(&changes), Some(7));
        }
    }
    assert!(bare.replaces(Some(9), Some(9)));
}

#[test]
fn a_change_replaces_a_base_object_without_version() {
    assert!(change(Some(1), None, 0).replaces(None, Some(5)));
    assert!(change(Some(2), Some(5), 0).replaces(Some(2), Some(5)));
    assert!(!change(Some(2), Some(4), 0).replaces(Some(2), Some(5)));
    assert!(!change(Some(1), None, 0).replaces(Some(2), None));
}

#[test]
fn a_range_has_all_changes_between_two_keys() {
    let ids = [1, 1, 2, 4, 4, 4, 4, 4, 9, 10, 11, 12, 13, 13];
    let changes = ids.map(|id| Change {
        key: (ObjectKind::Way, id),
        ..change(None, None, 0)
    });
    let set = ChangeSet {
        changes: changes.to_vec(),
        ..ChangeSet::default()
    };
    let keys: Vec<_> = (0..16).map(|id| (ObjectKind::Way, id)).collect();
    let all = [(ObjectKind::Node, 1), (ObjectKind::Relation, u64::MAX)];
    for first in keys.iter().chain(&all) {
        for last in keys.iter().chain(&all).filter(|last| first <= *last) {
            let range = set.range(*first, *last);
            let inside = |change: &&Change| (*first..=*last).contains(&change.key);
            assert_eq!(range.len(), changes.iter().filter(inside).count());
            assert!(changes[range].iter().all(|change| inside(&change)));
        }
    }
}
