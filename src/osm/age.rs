use std::cmp::Ordering;

/// The version and the time of an object or a change. They decide which of two changes to the same object is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Age {
    /// The version.
    pub version: Option<u32>,
    /// The time of the version in seconds since 1970.
    pub timestamp: Option<i64>,
}

/// The rank of an object without a version, compared with objects that have a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unversioned {
    /// The object is newer than any version.
    #[default]
    Newest,
    /// The object is older than any version.
    Oldest,
}

impl Age {
    /// Whether a change with the age `self` replaces a change with the age `before`. Both are changes of the same
    /// object, and the one with the age `before` was read first. A higher version replaces a lower one; `unversioned`
    /// ranks missing versions. If the versions are equal, the result is `false` only if both times are known and
    /// `self.timestamp < before.timestamp`.
    pub fn supersedes(self, before: Self, unversioned: Unversioned) -> bool {
        let absent = match unversioned {
            Unversioned::Newest => i64::MAX,
            Unversioned::Oldest => -1,
        };
        let rank = |age: Self| age.version.map_or(absent, i64::from);
        match rank(self).cmp(&rank(before)) {
            Ordering::Equal => {
                let times = self.timestamp.zip(before.timestamp);
                times.is_none_or(|(time, time_before)| time >= time_before)
            }
            order => order == Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(version: Option<u32>, timestamp: Option<i64>) -> Age {
        Age { version, timestamp }
    }

    #[test]
    fn versions_are_compared_first_and_then_known_times() {
        for (before, later, is_replaced) in [
            (age(Some(2), Some(9)), age(Some(3), Some(1)), true),
            (age(Some(3), None), age(Some(2), None), false),
            (age(Some(3), Some(9)), age(Some(3), Some(8)), false),
            (age(Some(3), Some(9)), age(Some(3), Some(9)), true),
            (age(Some(3), Some(9)), age(Some(3), None), true),
            (age(Some(3), None), age(Some(3), Some(9)), true),
            (age(None, None), age(None, None), true),
        ] {
            for unversioned in [Unversioned::Newest, Unversioned::Oldest] {
                assert_eq!(
                    later.supersedes(before, unversioned),
                    is_replaced,
                    "{before:?}"
                );
            }
        }
    }

    #[test]
    fn an_object_without_version_is_the_newest_or_the_oldest() {
        let (bare, third) = (age(None, None), age(Some(3), Some(9)));
        assert!(bare.supersedes(third, Unversioned::Newest));
        assert!(!third.supersedes(bare, Unversioned::Newest));
        assert!(!bare.supersedes(third, Unversioned::Oldest));
        assert!(third.supersedes(bare, Unversioned::Oldest));
    }
}
