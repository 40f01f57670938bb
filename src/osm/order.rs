use super::kind::ObjectKind;

/// The sort key of an object in the canonical order "Sort.Type_then_ID". It consists of the kind of the object and the
/// rank of its id.
pub type TypeThenId = (ObjectKind, u64);

const SIGN: u64 = 1 << 63;

/// Returns the rank of an id among all ids of its kind in canonical order: 0 first, then negative ids by ascending
/// absolute value, then positive ids in ascending order. No two ids have the same rank.
#[inline]
pub const fn id_rank(id: i64) -> u64 {
    if id > 0 {
        SIGN + id as u64
    } else {
        id.unsigned_abs()
    }
}

/// Returns the id with the given rank. This is the inverse of [`id_rank`].
#[inline]
pub const fn id_from_rank(rank: u64) -> i64 {
    if rank > SIGN {
        (rank - SIGN) as i64
    } else {
        (rank as i64).wrapping_neg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_canonical_order_and_are_reversible() {
        let ids = [
            0,
            -1,
            -2,
            -70_000_000_000,
            i64::MIN + 1,
            i64::MIN,
            1,
            2,
            1 << 40,
            i64::MAX,
        ];
        assert!(ids.is_sorted_by_key(|&id| id_rank(id)));
        for id in ids {
            assert_eq!(id_from_rank(id_rank(id)), id);
        }
    }
}
