//! The rule that decides how long nodes stay in a file after they change. It applies to files without the nodes that
//! only ways need.
//!
//! A node can come with one change file, and its way with a later one. Whether the node of a change stays depends only
//! on the node and on the header of the output. A node of the base is removed when it has become too old since the time
//! in the header of the base. Each node becomes too old in exactly one run, so the result does not depend on how the
//! changes are divided into runs. A node that was already too old at the time in the header of the base is there for
//! another reason, and stays. For example, it can be a member of a relation that an extract lacks.

use crate::pbf::BlobEntry;

/// The default of [`Options::keep_days`](super::Options::keep_days).
pub const KEEP_DAYS: u32 = 30;

const DAY: i64 = 86_400;

/// The rule for nodes that have no tags and are members of no relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecentNodes {
    stay: Stay,
    /// The earliest timestamp of the nodes that have become too old since the time in the header of the base, in
    /// seconds since 1970; `None` if no node has become too old.
    swept_since: Option<i64>,
}

/// The nodes that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// No node stays.
    Never,
    /// All nodes stay, because their age is not known.
    Always,
    /// Nodes with this timestamp, in seconds since 1970, or a later one stay. Nodes without a timestamp stay, too.
    Since(i64),
}

impl RecentNodes {
    /// Creates the rule. A node stays if its timestamp is at most `days` days before the day of `output`. `output` is
    /// the replication timestamp in the header of the output. If it is missing, or if the output is written without
    /// timestamps of objects, nodes do not age. `base` is the replication timestamp of the base. If it is missing, all
    /// nodes of the base stay. If `days` is less than the default, the rule also removes nodes of the base that earlier
    /// runs with the default kept.
    pub(super) fn new(
        days: u32,
        base: Option<i64>,
        output: Option<i64>,
        writes_timestamps: bool,
    ) -> Self {
        let day_of = |time: i64| time.div_euclid(DAY);
        let limit = |time: i64, days: u32| {
            let day = day_of(time).saturating_sub(days.into());
            day.saturating_mul(DAY)
        };
        let stay = match (days, output) {
            (0, _) => Stay::Never,
            (_, Some(time)) if writes_timestamps => Stay::Since(limit(time, days)),
            _ => Stay::Always,
        };
        let is_new_day = |base: &i64| output.is_some_and(|output| day_of(*base) < day_of(output));
        let since = base.filter(is_new_day);
        Self {
            stay,
            swept_since: since.map(|base| limit(base, days.max(KEEP_DAYS))),
        }
    }

    /// Returns the same rule, except that no node of the base becomes too old.
    pub(super) fn without_aging_base_nodes(self) -> Self {
        Self {
            swept_since: None,
            ..self
        }
    }

    /// Whether a node with this timestamp stays.
    pub(super) fn is_recent(self, timestamp: Option<i64>) -> bool {
        match self.stay {
            Stay::Never => false,
            Stay::Always => true,
            Stay::Since(first) => timestamp.is_none_or(|time| time >= first),
        }
    }

    /// Whether a node of the base that has this timestamp has become too old since the time in the header of the base.
    pub(super) fn has_become_old(self, timestamp: Option<i64>) -> bool {
        let is_swept = |(time, since)| time >= since && !self.is_recent(Some(time));
        timestamp.zip(self.swept_since).is_some_and(is_swept)
    }

    /// Whether nodes of the base may have become too old.
    pub(super) fn may_have_aged_base_nodes(self) -> bool {
        self.swept_since.is_some() && self.stay != Stay::Always
    }

    /// Whether a blob of the base may have a node without tags that has become too old.
    pub(super) fn may_have_old_nodes(self, entry: &BlobEntry) -> bool {
        let may_have = || {
            entry.statistics.is_none_or(|known| {
                let [first, last] = [known.first_timestamp, known.last_timestamp].map(i64::from);
                let has_untagged = known.tagged < entry.count && known.with_timestamp > 0;
                let is_since = self.swept_since.is_some_and(|since| last >= since);
                has_untagged && is_since && !self.is_recent(Some(first))
            })
        };
        self.may_have_aged_base_nodes() && may_have()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pbf::ObjectStatistics;

    const NOON: i64 = 100 * DAY + DAY / 2;

    #[test]
    fn age_is_counted_from_the_day_of_the_header() {
        let rule = RecentNodes::new(30, Some(NOON), Some(NOON + 60), true);
        assert!(rule.is_recent(Some(70 * DAY)) && !rule.is_recent(Some(70 * DAY - 1)));
        assert!(rule.is_recent(None) && !rule.may_have_aged_base_nodes());
        // All times of a day give the same rule, and the next day gives another one.
        let late = RecentNodes::new(30, Some(NOON), Some(101 * DAY - 1), true);
        assert_eq!(rule, late);
        let next = RecentNodes::new(30, Some(NOON), Some(101 * DAY), true);
        assert!(next.may_have_aged_base_nodes() && !next.is_recent(Some(71 * DAY - 1)));
        for (output, writes_timestamps) in [(None, true), (Some(101 * DAY), false)] {
            let rule = RecentNodes::new(30, Some(NOON), output, writes_timestamps);
            assert!(rule.is_recent(Some(0)) && !rule.may_have_aged_base_nodes());
            assert!(!rule.has_become_old(Some(70 * DAY)));
        }
        let none = RecentNodes::new(0, Some(NOON), Some(101 * DAY), true);
        assert!(!none.is_recent(None) && !none.is_recent(Some(101 * DAY)));
        // Extreme times do not overflow.
        for time in [i64::MIN, i64::MAX] {
            assert!(RecentNodes::new(u32::MAX, Some(0), Some(time), true).is_recent(Some(time)));
        }
    }

    #[test]
    fn nodes_of_the_base_go_when_they_become_too_old() {
        let rule = RecentNodes::new(30, Some(NOON), Some(103 * DAY), true);
        let goes = |rule: RecentNodes, day: i64| rule.has_become_old(Some(day * DAY));
        assert_eq!(
            [69, 70, 72, 73].map(|day| goes(rule, day)),
            [false, true, true, false]
        );
        assert!(!rule.has_become_old(None));
        assert!(
            !goes(rule.without_aging_base_nodes(), 70)
                && !rule.without_aging_base_nodes().may_have_aged_base_nodes()
        );
        // A node that a run over three days removes is removed by exactly one of three runs over one day each.
        for day in 60..80 {
            let days = (100..103).map(|day| {
                RecentNodes::new(30, Some(day * DAY + 5), Some((day + 1) * DAY + 7), true)
            });
            let parts = days.filter(|rule| goes(*rule, day)).count();
            assert_eq!(parts, usize::from(goes(rule, day)), "{day}");
        }
        // No node of the base becomes too old if the output has an older timestamp than the base, or if the base has no
        // timestamp.
        assert!(!RecentNodes::new(30, Some(NOON), Some(99 * DAY), true).may_have_aged_base_nodes());
        assert!(!RecentNodes::new(30, None, Some(NOON), true).may_have_aged_base_nodes());
        // With fewer days than the default, nodes that the default has kept are removed, too.
        for (days, first, last) in [(0, 70, 200), (7, 70, 95), (60, 40, 42)] {
            let rule = RecentNodes::new(days, Some(NOON), Some(103 * DAY), true);
            assert!(goes(rule, first) && goes(rule, last), "{days}");
            assert!(!goes(rule, first - 1), "{days}");
            assert!(days == 0 || !goes(rule, last + 1), "{days}");
        }
    }

    #[test]
    fn blobs_without_nodes_that_become_too_old_are_not_examined() {
        let rule = RecentNodes::new(30, Some(NOON), Some(103 * DAY), true);
        let may_have = |first: i64, last: i64, tagged: u32| {
            let statistics = ObjectStatistics {
                first_timestamp: u32::try_from(first * DAY).unwrap(),
                last_timestamp: u32::try_from(last * DAY).unwrap(),
                with_timestamp: 5,
                tagged,
                ..ObjectStatistics::default()
            };
            rule.may_have_old_nodes(&BlobEntry {
                count: 5,
                statistics: Some(statistics),
                ..BlobEntry::default()
            })
        };
        assert!(may_have(10, 70, 0) && may_have(72, 99, 4) && may_have(10, 99, 0));
        assert!(!may_have(10, 69, 0) && !may_have(73, 99, 0) && !may_have(10, 99, 5));
        assert!(rule.may_have_old_nodes(&BlobEntry::default()));
        let same_day = RecentNodes::new(30, Some(NOON), Some(NOON), true);
        assert!(!same_day.may_have_old_nodes(&BlobEntry::default()));
    }
}
