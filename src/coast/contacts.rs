//! Finds the rings that touch or cross themselves or each other.

use super::path::CoastPath;
use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use crate::area::{
    AreaSegment, Meeting, compare_west_to_east, first_crossing, intersection, meeting,
};
use crate::geometry::Point;
use crate::runtime::{Context, sort_unstable_by};
use rustc_hash::FxHashMap;

/// The maximum number of pairs of segments that are compared is `PAIRS_OF_SEGMENT * segments + PAIRS`. A coast has
/// fewer than ten pairs for each segment.
const PAIRS_OF_SEGMENT: u64 = 512;
const PAIRS: u64 = 1 << 24;
/// The maximum number of crossings that are mended in a group of rings is `CROSSINGS_OF_SEGMENT * points + CROSSINGS`.
const CROSSINGS_OF_SEGMENT: usize = 4;
const CROSSINGS: usize = 1000;
/// The maximum number of crossings that are reported.
const MAX_REPORTED: usize = 100_000;

/// Rings that touch or cross each other, directly or through others.
pub(super) struct RingGroup {
    /// The indices of the rings, ascending.
    pub rings: Vec<usize>,
    /// Whether a ring touches or crosses itself or another ring.
    pub has_contacts: bool,
    /// Whether there are too many crossings to be mended.
    pub is_tangled: bool,
}

/// The segments of rings, and the sets of rings that are known to meet.
struct RingContacts<'c> {
    rings: &'c [CoastPath],
    segments: Vec<AreaSegment>,
    /// The parent of each ring in a disjoint-set forest.
    parent: Vec<usize>,
    has_contacts: Vec<bool>,
    crossings: Vec<usize>,
    /// Pairs of segments that cross or overlap.
    reported: Vec<([AreaSegment; 2], Meeting)>,
}

/// The number of segments of a strip.
const STRIP: usize = 1024;
/// The maximum average number of strips that a segment meets. If the average is higher, there is only one strip.
const STRIPS_OF_SEGMENT: usize = 4;

/// The segments in each of several strips of latitudes.
struct LatitudeStrips {
    /// The latitudes at which strips begin, except the first strip.
    starts: Vec<i32>,
    /// For each strip, the indices of the segments that meet it, ascending.
    members: Vec<Vec<u32>>,
}

fn low_lat(segment: &AreaSegment) -> i32 {
    segment.first.lat_e7.min(segment.second.lat_e7)
}

fn high_lat(segment: &AreaSegment) -> i32 {
    segment.first.lat_e7.max(segment.second.lat_e7)
}

impl LatitudeStrips {
    fn of(segments: &[AreaSegment]) -> Self {
        let mut lats: Vec<i32> = segments.iter().step_by(16).map(low_lat).collect();
        lats.sort_unstable();
        let mut starts: Vec<i32> = lats.into_iter().step_by(STRIP / 16).skip(1).collect();
        starts.dedup();
        let mut strips = Self {
            starts,
            members: Vec::new(),
        };
        let count: usize = segments.iter().map(|one| strips.range(one).count()).sum();
        if count > STRIPS_OF_SEGMENT * segments.len() {
            strips.starts.clear();
        }
        let mut members = vec![Vec::new(); strips.starts.len() + 1];
        for (index, segment) in (0u32..).zip(segments) {
            for strip in strips.range(segment) {
                members[strip].push(index);
            }
        }
        strips.members = members;
        strips
    }

    fn strip_of(&self, lat_e7: i32) -> usize {
        self.starts.partition_point(|start| *start <= lat_e7)
    }

    /// Returns the strips that a segment meets.
    fn range(&self, segment: &AreaSegment) -> std::ops::RangeInclusive<usize> {
        self.strip_of(low_lat(segment))..=self.strip_of(high_lat(segment))
    }

    /// Returns the first strip in which two segments may meet.
    fn first_of(&self, one: &AreaSegment, other: &AreaSegment) -> usize {
        self.strip_of(low_lat(one).max(low_lat(other)))
    }
}

/// Returns the groups of rings, in the order of their first rings. Adds crossings and overlaps to `problems`.
pub(super) fn groups_of(
    rings: &[CoastPath],
    problems: &mut Vec<CoastProblem>,
    ctx: &Context,
) -> Vec<RingGroup> {
    let mut contacts = RingContacts {
        rings,
        segments: Vec::with_capacity(rings.iter().map(|ring| ring.points.len()).sum()),
        parent: (0..rings.len()).collect(),
        has_contacts: rings.iter().map(has_repeated_point).collect(),
        crossings: vec![0; rings.len()],
        reported: Vec::new(),
    };
    for (ring, path) in (0..).zip(rings) {
        let segments = path.points.windows(2);
        let segments = segments.map(|pair| AreaSegment::new(pair[0], pair[1], ring));
        contacts.segments.extend(segments);
    }
    sort_unstable_by(&mut contacts.segments, ctx, |one, other| {
        compare_west_to_east(one.first, other.first)
            .then_with(|| compare_west_to_east(one.second, other.second))
            .then(one.way.cmp(&other.way))
    });
    let is_tangled = !contacts.compare_all();
    contacts.report(problems);
    contacts.into_groups(is_tangled)
}

/// Whether a ring has a point more than once.
fn has_repeated_point(ring: &CoastPath) -> bool {
    let mut points: Vec<Point> = ring.points.iter().skip(1).copied().collect();
    points.sort_unstable();
    points.windows(2).any(|pair| pair[0] == pair[1])
}

impl RingContacts<'_> {
    /// Compares the segments that share a range of longitudes and a strip of latitudes. Returns `false` if there are
    /// too many pairs, and some segments cross.
    fn compare_all(&mut self) -> bool {
        let segments = std::mem::take(&mut self.segments);
        let strips = LatitudeStrips::of(&segments);
        let most = PAIRS_OF_SEGMENT * segments.len() as u64 + PAIRS;
        let mut pairs = 0;
        for (strip, members) in strips.members.iter().enumerate() {
            let mut rest = members.as_slice();
            while let Some((one, others)) = rest.split_first()
                && pairs <= most
            {
                rest = others;
                let one = &segments[*one as usize];
                let others = others.iter().map(|other| &segments[*other as usize]);
                for other in others.take_while(|other| other.first.lon_e7 <= one.second.lon_e7) {
                    pairs += 1;
                    if strips.first_of(one, other) == strip {
                        self.compare(one, other);
                    }
                }
            }
        }
        let is_done = pairs <= most || first_crossing(&segments).is_none();
        if pairs > most && is_done {
            self.join_at_points(&segments);
        }
        self.segments = segments;
        is_done
    }

    /// Joins the rings of two segments that meet, and counts crossings.
    fn compare(&mut self, one: &AreaSegment, other: &AreaSegment) {
        let is_apart = |a: &AreaSegment, b: &AreaSegment| high_lat(a) < low_lat(b);
        if is_apart(one, other) || is_apart(other, one) {
            return;
        }
        let met = meeting(one, other);
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
