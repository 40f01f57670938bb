//! Finds the rings that touch or cross themselves or each other.

use super::path::CoastPath;
use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use crate::area::{
    AreaSegment, Meeting, classify_meeting, compare_west_to_east, first_crossing, intersection,
};
use crate::geometry::Point;
use crate::runtime::{Context, sort_unstable_by};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// The maximum number of pairs of segments that are compared is `PAIRS_OF_SEGMENT * segments + PAIRS`. Coasts in real
/// data have fewer than ten pairs per segment.
const PAIRS_OF_SEGMENT: u64 = 512;
const PAIRS: u64 = 1 << 24;
/// A group of rings with more than `CROSSINGS_OF_SEGMENT * points + CROSSINGS` crossings is left out instead of mended.
const CROSSINGS_OF_SEGMENT: usize = 4;
const CROSSINGS: usize = 1000;
/// The maximum number of crossings that are reported.
const MAX_REPORTED: usize = 100_000;

/// Rings that touch or cross each other, directly or through other rings.
pub(super) struct RingGroup {
    /// The indices of the rings, ascending.
    pub rings: Vec<usize>,
    /// Whether a ring touches or crosses itself or another ring.
    pub has_contacts: bool,
    /// Whether there are too many crossings to be mended.
    pub is_tangled: bool,
}

/// The sets of rings that are known to touch or cross.
struct RingContacts<'c> {
    rings: &'c [CoastPath],
    /// The parent of each ring in a disjoint-set forest.
    parent: Vec<usize>,
    has_contacts: Vec<bool>,
    crossings: Vec<usize>,
    /// Pairs of segments that cross or overlap.
    reported: Vec<([AreaSegment; 2], Meeting)>,
}

/// The approximate number of segments whose southern end lies in a strip.
const STRIP: usize = 1024;
/// The maximum for the average number of strips into which a segment extends. If the average is higher, there is only
/// one strip.
const STRIPS_OF_SEGMENT: usize = 4;

/// The segments in each of several strips of latitudes.
struct LatitudeStrips {
    /// The southern limits of all strips except the first, which has no southern limit.
    starts: Vec<i32>,
    /// For each strip, the segments that extend into it.
    members: Vec<Vec<AreaSegment>>,
}

fn low_lat(segment: &AreaSegment) -> i32 {
    segment.first.lat_e7.min(segment.second.lat_e7)
}

fn high_lat(segment: &AreaSegment) -> i32 {
    segment.first.lat_e7.max(segment.second.lat_e7)
}

impl LatitudeStrips {
    fn of(rings: &[CoastPath]) -> Self {
        let mut lats: Vec<i32> = segments_of(rings)
            .step_by(16)
            .map(|one| low_lat(&one))
            .collect();
        lats.sort_unstable();
        let mut starts: Vec<i32> = lats.into_iter().step_by(STRIP / 16).skip(1).collect();
        starts.dedup();
        Self::divide(rings, starts).unwrap_or_else(|| Self {
            starts: Vec::new(),
            members: vec![segments_of(rings).collect()],
        })
    }

    /// Divides the segments of rings into strips. Returns `None` if the segments extend into too many strips.
    fn divide(rings: &[CoastPath], starts: Vec<i32>) -> Option<Self> {
        let most = STRIPS_OF_SEGMENT * segments_of(rings).count();
        let mut members = vec![Vec::new(); starts.len() + 1];
        let (mut first, mut count) = (0, 0);
        for segment in segments_of(rings) {
            let [low, high] = [low_lat(&segment), high_lat(&segment)];
            // The southern ends of consecutive segments of a ring are mostly in the same strip, so the strip of the
            // previous segment is tried first.
            let is_in = |strip: usize| {
                strip
                    .checked_sub(1)
                    .is_none_or(|before| starts[before] <= low)
                    && starts.get(strip).is_none_or(|next| low < *next)
            };
            if !is_in(first) {
                first = starts.partition_point(|start| *start <= low);
            }
            let more = starts[first..].iter().take_while(|start| **start <= high);
            for strip in &mut members[first..=first + more.count()] {
                strip.push(segment);
                count += 1;
            }
            if count > most {
                return None;
            }
        }
        Some(Self { starts, members })
    }

    /// Whether `strip` is the southernmost strip into which both segments extend. Both must extend into `strip`. Each
    /// pair of segments is compared only in that strip.
    fn is_first_shared_strip(&self, strip: usize, one: &AreaSegment, other: &AreaSegment) -> bool {
        let low = low_lat(one).max(low_lat(other));
        strip
            .checked_sub(1)
            .is_none_or(|before| self.starts[before] <= low)
    }
}

/// Returns the segments of rings, each with the index of its ring.
fn segments_of(rings: &[CoastPath]) -> impl Iterator<Item = AreaSegment> {
    (0u32..).zip(rings).flat_map(|(ring, path)| {
        let segments = path.points.windows(2);
        segments.map(move |ends| AreaSegment::new(ends[0], ends[1], ring))
    })
}

fn compare_segments(one: &AreaSegment, other: &AreaSegment) -> Ordering {
    compare_west_to_east(one.first, other.first)
        .then_with(|| compare_west_to_east(one.second, other.second))
        .then(one.way.cmp(&other.way))
}

/// Returns the groups of rings, in the order of their first rings. Adds crossings and overlaps to `problems`.
pub(super) fn group_touching_rings(
    rings: &[CoastPath],
    problems: &mut Vec<CoastProblem>,
    ctx: &Context,
) -> Vec<RingGroup> {
    let mut contacts = RingContacts {
        rings,
        parent: (0..rings.len()).collect(),
        has_contacts: rings
            .iter()
            .map(|ring| has_repeated_point(ring, ctx))
            .collect(),
        crossings: vec![0; rings.len()],
        reported: Vec::new(),
    };
    let is_tangled = !contacts.join_touching_rings(ctx);
    contacts.report(problems);
    contacts.into_groups(is_tangled)
}

/// Whether a ring has a point more than once.
fn has_repeated_point(ring: &CoastPath, ctx: &Context) -> bool {
    let mut points: Vec<Point> = ring.points.iter().skip(1).copied().collect();
    sort_unstable_by(&mut points, ctx, Ord::cmp);
    points.windows(2).any(|pair| pair[0] == pair[1])
}

impl RingContacts<'_> {
    /// Compares the segments that extend into the same strip of latitudes and whose ranges of longitudes overlap.
    /// Returns `false` if there are too many pairs, and some segments cross.
    fn join_touching_rings(&mut self, ctx: &Context) -> bool {
        let mut strips = LatitudeStrips::of(self.rings);
        let most = PAIRS_OF_SEGMENT * segments_of(self.rings).count() as u64 + PAIRS;
        let mut pairs = 0;
        for strip in 0..strips.members.len() {
            let mut members = std::mem::take(&mut strips.members[strip]);
            sort_unstable_by(&mut members, ctx, compare_segments);
            let mut rest = members.as_slice();
            while let Some((one, others)) = rest.split_first()
                && pairs <= most
            {
                rest = others;
                let is_beside = |other: &&AreaSegment| other.first.lon_e7 <= one.second.lon_e7;
                for other in others.iter().take_while(is_beside) {
                    pairs += 1;
                    if strips.is_first_shared_strip(strip, one, other) {
                        self.join_if_touching(one, other);
                    }
                }
            }
        }
        pairs <= most || !self.join_rings_unless_crossing(ctx)
    }

    /// Whether any segments cross. If none do, joins the rings that share a point.
    fn join_rings_unless_crossing(&mut self, ctx: &Context) -> bool {
        let mut segments: Vec<AreaSegment> = segments_of(self.rings).collect();
        sort_unstable_by(&mut segments, ctx, compare_segments);
        let is_crossing = first_crossing(&segments).is_some();
        if !is_crossing {
            self.join_at_points(&segments);
        }
        is_crossing
    }

    /// Joins the rings of two segments if the segments touch or cross, and counts crossings.
    fn join_if_touching(&mut self, one: &AreaSegment, other: &AreaSegment) {
        let is_apart = |a: &AreaSegment, b: &AreaSegment| high_lat(a) < low_lat(b);
        if is_apart(one, other) || is_apart(other, one) {
            return;
        }
        let met = classify_meeting(one, other);
        let (ring, other_ring) = (one.way as usize, other.way as usize);
        if met != Meeting::Allowed {
            self.join(ring, other_ring);
            self.has_contacts[ring] = true;
            self.crossings[ring] += 1;
            if self.reported.len() < MAX_REPORTED {
                self.reported.push(([*one, *other], met));
            }
        } else if ring != other_ring {
            let ends = [other.first, other.second];
            if ends.contains(&one.first) || ends.contains(&one.second) {
                self.join(ring, other_ring);
                self.has_contacts[ring] = true;
            }
        }
    }

    /// Joins the rings that share a point. The segments must not cross.
    fn join_at_points(&mut self, segments: &[AreaSegment]) {
        let mut first_at: FxHashMap<Point, usize> = FxHashMap::default();
        for segment in segments {
            let ring = segment.way as usize;
            for point in [segment.first, segment.second] {
                let other = *first_at.entry(point).or_insert(ring);
                if other != ring {
                    self.join(ring, other);
                    self.has_contacts[ring] = true;
                }
            }
        }
    }

    /// Returns the root of a ring in the disjoint-set forest.
    fn root_of(&mut self, mut ring: usize) -> usize {
        while self.parent[ring] != ring {
            self.parent[ring] = self.parent[self.parent[ring]];
            ring = self.parent[ring];
        }
        ring
    }

    /// Joins the sets of two rings.
    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root_of(one), self.root_of(other));
        // The root is the first ring of the set.
        self.parent[one.max(other)] = one.min(other);
    }

    fn into_groups(mut self, is_tangled: bool) -> Vec<RingGroup> {
        let mut group_of: FxHashMap<usize, usize> = FxHashMap::default();
        let mut groups: Vec<RingGroup> = Vec::new();
        let mut sizes: Vec<[usize; 2]> = Vec::new();
        for ring in 0..self.parent.len() {
            let root = self.root_of(ring);
            let group = *group_of.entry(root).or_insert(groups.len());
            if group == groups.len() {
                groups.push(RingGroup {
                    rings: Vec::new(),
                    has_contacts: false,
                    is_tangled,
                });
                sizes.push([0; 2]);
            }
            groups[group].rings.push(ring);
            groups[group].has_contacts |= self.has_contacts[ring];
            sizes[group][0] += self.rings[ring].points.len();
            sizes[group][1] += self.crossings[ring];
        }
        for (group, [points, crossings]) in groups.iter_mut().zip(sizes) {
            group.is_tangled |= crossings > CROSSINGS_OF_SEGMENT * points + CROSSINGS;
        }
        groups
    }

    /// Adds the crossings and the overlaps of ways to `problems`.
    fn report(&self, problems: &mut Vec<CoastProblem>) {
        let mut ways: FxHashMap<AreaSegment, Vec<i64>> = FxHashMap::default();
        for segment in self.reported.iter().flat_map(|(pair, _)| pair) {
            ways.insert(*segment, Vec::new());
        }
        let mut rings: Vec<u32> = ways.keys().map(|segment| segment.way).collect();
        rings.sort_unstable();
        rings.dedup();
        for ring in rings {
            let path = &self.rings[ring as usize];
            for (index, pair) in path.points.windows(2).enumerate() {
                let segment = AreaSegment::new(pair[0], pair[1], ring);
                if let Some(ways) = ways.get_mut(&segment) {
                    ways.extend(path.way_of(index));
                }
            }
        }
        for (pair, met) in &self.reported {
            let of_pair = pair.each_ref().map(|segment| ways.get(segment));
            let [Some([_, ..]), Some([_, ..])] = of_pair.map(|ways| ways.map(Vec::as_slice)) else {
                continue;
            };
            let mut named: Vec<i64> = of_pair.into_iter().flatten().flatten().copied().collect();
            named.sort_unstable();
            named.dedup();
            let [one, other] = pair;
            let (kind, place) = match met {
                Meeting::Overlap => {
                    let mut ends = [one.first, one.second, other.first, other.second];
                    ends.sort_by(|a, b| compare_west_to_east(*a, *b));
                    let shared = vec![ends[1], ends[2]];
                    (CoastProblemKind::Overlap, ProblemPlace::Line(shared))
                }
                Meeting::Allowed | Meeting::Crossing => {
                    let point = ProblemPlace::Point(intersection(one, other));
                    (CoastProblemKind::Intersection, point)
                }
            };
            problems.push(CoastProblem::of_ways(kind, named, place));
        }
    }
}
