//! The rule for how long changed nodes stay in a file that has only the nodes that are needed as nodes.
//!
//! A node can come with one change file, and its way with a later one. Whether a node stays depends on the node and on
//! the header of the output alone, so the result does not depend on how the changes are divided into runs.

const DAY: i64 = 86_400;

/// The rule for nodes that have no tags and are members of no relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecentNodes {
    stay: Stay,
    /// Whether the timestamp in the header enters another day, so that nodes of the base have to go.
    is_new_day: bool,
}

/// The nodes that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// No node stays.
    Never,
    /// All nodes stay, because their age is not known.
    Always,
    /// Nodes from this time on stay, and nodes without a timestamp. In seconds since 1970.
    Since(i64),
}

impl RecentNodes {
    /// Creates the rule by which nodes stay for `days` days before the day of `output`, the replication timestamp in
    /// the header of the output. `base` is the replication timestamp of the base. If one of them is missing, or if the
    /// output is written without timestamps of objects, nodes do not age.
    pub(super) fn new(
        days: u32,
        base: Option<i64>,
        output: Option<i64>,
        writes_timestamps: bool,
    ) -> Self {
        let day_of = |time: i64| time.div_euclid(DAY);
        let stay = match (days, output) {
            (0, _) => Stay::Never,
            (_, Some(time)) if writes_timestamps => {
                Stay::Since(day_of(time).saturating_sub(days.into()).saturating_mul(DAY))
            }
            _ => Stay::Always,
        };
        let is_later = |time| base.is_none_or(|base| day_of(base) < day_of(time));
        Self {
            stay,
            is_new_day: output.is_some_and(is_later),
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

    /// Whether all nodes of the base have to be examined, because some of them may have become too old.
    pub(super) fn examines_base(self) -> bool {
        self.is_new_day && self.stay != Stay::Always
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_counted_from_the_day_of_the_header() {
        let noon = 100 * DAY + DAY / 2;
        let rule = RecentNodes::new(30, Some(noon), Some(noon + 60), true);
        assert!(rule.is_recent(Some(70 * DAY)) && !rule.is_recent(Some(70 * DAY - 1)));
        assert!(rule.is_recent(None) && !rule.examines_base());
        // The minutes of a day have one rule, and the next day has another.
        let late = RecentNodes::new(30, Some(noon), Some(101 * DAY - 1), true);
        assert_eq!(rule, late);
        let next = RecentNodes::new(30, Some(noon), Some(101 * DAY), true);
        assert!(next.examines_base() && !next.is_recent(Some(71 * DAY - 1)));
        // A header that gets its first timestamp.
        assert!(RecentNodes::new(30, None, Some(noon), true).examines_base());
        // A header that goes back or loses its timestamp removes nothing.
        assert!(!RecentNodes::new(30, Some(noon), Some(99 * DAY), true).examines_base());
        for (output, writes_timestamps) in [(None, true), (Some(101 * DAY), false)] {
            let rule = RecentNodes::new(30, Some(noon), output, writes_timestamps);
            assert!(rule.is_recent(Some(0)) && !rule.examines_base());
        }
        let none = RecentNodes::new(0, Some(noon), Some(101 * DAY), true);
        assert!(!none.is_recent(None) && !none.is_recent(Some(101 * DAY)) && none.examines_base());
        // Times that no calendar has.
        for time in [i64::MIN, i64::MAX] {
            assert!(RecentNodes::new(u32::MAX, Some(0), Some(time), true).is_recent(Some(time)));
        }
    }
}
