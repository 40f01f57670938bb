//! Makes polygons of the land that lies on the left of closed rings.

use super::contacts::{RingGroup, group_touching_rings};
use super::path::CoastPath;
use super::problem::{CoastProblem, CoastProblemKind, ProblemPlace};
use crate::area::{AreaPolygon, AreaSegment, OrderedSweep, compare_west_to_east, polygon_of};
use crate::error::Result;
use crate::geometry::{Extent, Point, Rings, doubled_area, polygons_with_winding_sign};
use crate::runtime::{Context, sort_unstable_by};
use rustc_hash::FxHashMap;

/// The region that is enclosed by one ring, or by several rings that touch or cross each other.
struct Patch {
    /// The indices of the rings.
    rings: Vec<usize>,
    /// Whether the rings wind counter-clockwise around the region, so that they enclose land.
    is_land: bool,
    /// The polygons of the region. If the patch is one ring without contacts, the polygon has the points of this ring.
    polygons: Vec<Rings>,
    /// The westernmost point of the region.
    west: Point,
}

/// The surfaces inside and outside of a patch, as determined by [`Land::add_patch`].
#[derive(Clone, Copy)]
struct Placed {
    /// The land polygon around the patch; `None` if water is around it.
    outside: Option<usize>,
    inside: Inside,
}

/// The surface inside of a patch.
#[derive(Clone, Copy)]
enum Inside {
    /// The land polygons of the patch.
    Land,
    /// Water within land.
    Water,
    /// The surface that surrounds the patch.
    Same,
}

/// Land: valid polygons whose insides are disjoint, in the order of their westernmost corners.
#[derive(Debug, Default)]
pub(super) struct LandPolygons {
    pub polygons: Vec<AreaPolygon>,
    /// For each polygon, whether its outer ring went clockwise and was reversed.
    pub is_turned: Vec<bool>,
}

/// The land polygons that are known so far.
#[derive(Default)]
struct Land {
    polygons: Vec<AreaPolygon>,
    is_turned: Vec<bool>,
    placed: Vec<Option<Placed>>,
    /// For each segment between land and water, the index of the land polygon. Contains only the segments of patches
    /// that may bound several land polygons.
    polygon_at: FxHashMap<(Point, Point), usize>,
    /// For each patch that bounds only one land polygon, the index of this polygon.
    polygon_of: Vec<Option<usize>>,
}

/// Returns the land on the left of closed rings. A clockwise ring in the water is reversed. Where rings cross, a point
/// is on land if more rings go around it counter-clockwise than clockwise.
pub(super) fn land_of(
    mut rings: Vec<CoastPath>,
    problems: &mut Vec<CoastProblem>,
    ctx: &Context,
) -> Result<LandPolygons> {
    ctx.cancellation.check()?;
    let groups = group_touching_rings(&rings, problems, ctx);
    ctx.cancellation.check()?;
    let patches = patches_of(groups, &mut rings, problems);
    let below = segments_below(&patches, ctx);
    ctx.cancellation.check()?;
    let mut land = Land {
        placed: vec![None; patches.len()],
        polygon_of: vec![None; patches.len()],
        ..Land::default()
    };
    let mut patches: Vec<Option<Patch>> = patches.into_iter().map(Some).collect();
    for (number, below) in below {
        if let Some(patch) = patches[number].take() {
            land.add_patch(number, patch, below, &rings, problems);
        }
    }
    Ok(sort_land(land))
}

/// Rotates rings so that their westernmost corners come first, and sorts polygons and holes by these corners.
fn sort_land(land: Land) -> LandPolygons {
    let key = |ring: &Vec<Point>| ring.first().map(|point| (point.lon_e7, point.lat_e7));
    let mut polygons: Vec<_> = land.polygons.into_iter().zip(land.is_turned).collect();
    for (polygon, _) in &mut polygons {
        for ring in std::iter::once(&mut polygon.outer).chain(&mut polygon.holes) {
            let least = (0..ring.len()).min_by(|a, b| compare_west_to_east(ring[*a], ring[*b]));
            ring.rotate_left(least.unwrap_or(0));
        }
        polygon.holes.sort_by_key(key);
    }
    polygons.sort_by_key(|(polygon, _)| key(&polygon.outer));
    let (polygons, is_turned) = polygons.into_iter().unzip();
    LandPolygons {
        polygons,
        is_turned,
    }
}

/// Returns a ring without its last point, which repeats the first.
fn ring_without_repeated_point(path: &CoastPath) -> Vec<Point> {
    let points = path.points.split_last();
    points
        .map(|(_, points)| points.to_vec())
        .unwrap_or_default()
}

/// Returns the patches of groups. Leaves out and reports groups that are tangled or have no area.
fn patches_of(
    groups: Vec<RingGroup>,
    rings: &mut [CoastPath],
    problems: &mut Vec<CoastProblem>,
) -> Vec<Patch> {
    let mut patches = Vec::with_capacity(groups.len());
    for group in groups {
        let named = group.rings.first().copied();
        if group.is_tangled {
            let named = named.and_then(|ring| rings.get(ring));
            problems.extend(named.and_then(|ring| problem_of(CoastProblemKind::Invalid, ring)));
            continue;
        }
        let (is_land, polygons) = if group.has_contacts {
            region_of_intersecting_rings(&group, rings, problems)
        } else {
            region_of_simple_ring(named.and_then(|ring| rings.get_mut(ring)))
        };
        let outer = polygons.iter().filter_map(|rings| rings.first()).flatten();
        match outer.copied().min_by(|a, b| compare_west_to_east(*a, *b)) {
            Some(west) => patches.push(Patch {
                rings: group.rings,
                is_land,
                polygons,
                west,
            }),
            None => {
                let named = named.and_then(|ring| rings.get(ring));
                let found = named.and_then(|ring| problem_of(CoastProblemKind::NotARing, ring));
                problems.extend(found);
            }
        }
    }
    patches
}

/// Returns whether a ring encloses land, and the region inside it. The ring must not touch or cross itself or other
/// rings. If the ring has no area, the region is empty. Otherwise, the points are moved out of the ring.
fn region_of_simple_ring(ring: Option<&mut CoastPath>) -> (bool, Vec<Rings>) {
    let area = ring.as_ref().map_or(0, |ring| doubled_area(&ring.points));
    let Some(ring) = ring.filter(|_| area != 0) else {
        return (true, Vec::new());
    };
    let mut points = std::mem::take(&mut ring.points);
    points.pop();
    if area < 0 {
        points.reverse();
    }
    (area > 0, vec![vec![points]])
}

/// Returns the region of rings that touch or cross, and whether it is land. The rings wind counter-clockwise around
/// land and clockwise around water. If the rings wind around both land and water, the larger of these two regions is
/// returned.
fn region_of_intersecting_rings(
    group: &RingGroup,
    rings: &[CoastPath],
    problems: &mut Vec<CoastProblem>,
) -> (bool, Vec<Rings>) {
    let members = || group.rings.iter().filter_map(|ring| rings.get(*ring));
    let contours: Vec<Vec<Point>> = members().map(ring_without_repeated_point).collect();
    let land = polygons_with_winding_sign(contours.iter(), false);
    let water = polygons_with_winding_sign(contours.iter(), true);
    let area =
        |region: &[Rings]| -> i128 { region.iter().flatten().map(|ring| doubled_area(ring)).sum() };
    let is_land = area(&land) >= area(&water);
    if !land.is_empty() && !water.is_empty() {
        // Some of the rings have the wrong direction.
        let against = members().zip(&contours);
        let against = against.filter(|(_, ring)| (doubled_area(ring) > 0) != is_land);
        let found = against.filter_map(|(path, _)| problem_of(CoastProblemKind::Direction, path));
        problems.extend(found);
    }
    (is_land, if is_land { land } else { water })
}

/// Returns a problem that concerns a ring; `None` if the ring consists only of the border of the region, and therefore
/// has no ways.
fn problem_of(kind: CoastProblemKind, ring: &CoastPath) -> Option<CoastProblem> {
    let ways = ring.ways();
    let place = || ProblemPlace::Line(ring.points.clone());
    (!ways.is_empty()).then(|| CoastProblem::of_ways(kind, ways, place()))
}

impl Patch {
    /// Returns a problem of one of the rings. If the points of the ring were moved into the patch, the problem gets the
    /// points of the patch.
    fn problem_of(&self, kind: CoastProblemKind, ring: &CoastPath) -> Option<CoastProblem> {
        let mut problem = problem_of(kind, ring)?;
        if ring.points.is_empty() {
            let mut points: Vec<Point> =
                self.polygons.iter().flatten().flatten().copied().collect();
            if !self.is_land {
                points.reverse();
            }
            points.extend(points.first().copied());
            problem.place = ProblemPlace::of_line(points);
        }
        Some(problem)
    }
}

/// A segment of the border of a patch.
#[derive(Clone, Copy)]
struct BorderSegment {
    patch: usize,
    ends: (Point, Point),
    /// Whether the patch is above the segment.
    is_below_patch: bool,
}

/// Returns the indices of the patches, in the order of their westernmost points. Each patch comes with the segment
/// directly below its westernmost point; `None` if there is no such segment, or if the segment belongs to the patch
/// itself.
fn segments_below(patches: &[Patch], ctx: &Context) -> Vec<(usize, Option<BorderSegment>)> {
    let mut segments = Vec::new();
    for (patch, Patch { polygons, .. }) in (0u32..).zip(patches) {
        for ring in polygons.iter().flatten() {
            let ends = ring.iter().zip(ring.iter().cycle().skip(1));
            segments.extend(ends.map(|(from, to)| {
                // The patch is on the left of the segment.
                let is_below = compare_west_to_east(*from, *to).is_lt();
                AreaSegment::new(*from, *to, patch << 1 | u32::from(is_below))
            }));
        }
    }
    sort_unstable_by(&mut segments, ctx, |one, other| {
        compare_west_to_east(one.first, other.first)
            .then_with(|| compare_west_to_east(one.second, other.second))
            .then(one.way.cmp(&other.way))
    });
    let mut order: Vec<usize> = (0..patches.len()).collect();
    order.sort_by(|a, b| compare_west_to_east(patches[*a].west, patches[*b].west).then(a.cmp(b)));
    let mut sweep = OrderedSweep::new(&segments);
    let below = order.into_iter().map(|patch| {
        let index = sweep.segment_below(patches[patch].west);
        let segment = index.and_then(|index| segments.get(index));
        let segment = segment.map(|segment| BorderSegment {
            patch: (segment.way >> 1) as usize,
            ends: segment.ends(),
            is_below_patch: segment.way & 1 == 1,
        });
        (patch, segment.filter(|segment| segment.patch != patch))
    });
    below.collect()
}

impl Land {
    /// Returns the land polygon directly above a segment; `None` if water is above it. The patch of the segment must
    /// have been added.
    fn polygon_above(&self, segment: &BorderSegment) -> Option<usize> {
        let placed = self.placed.get(segment.patch).copied().flatten()?;
        match (placed.inside, segment.is_below_patch) {
            (Inside::Same, _) => placed.outside,
            (Inside::Land, true) | (Inside::Water, false) => {
                let known = self.polygon_at.get(&segment.ends).copied();
                known.or(self.polygon_of.get(segment.patch).copied().flatten())
            }
            (Inside::Land, false) | (Inside::Water, true) => None,
        }
    }

    /// Adds a patch. All patches that begin west of it must have been added.
    fn add_patch(
        &mut self,
        number: usize,
        patch: Patch,
        below: Option<BorderSegment>,
        rings: &[CoastPath],
        problems: &mut Vec<CoastProblem>,
    ) {
        let outside = below.and_then(|segment| self.polygon_above(&segment));
        let inside = match (outside, patch.is_land) {
            (None, _) => Inside::Land,
            (Some(_), true) => Inside::Same,
            (Some(_), false) => Inside::Water,
        };
        let kind = match inside {
            Inside::Land if patch.is_land => None,
            Inside::Land => Some(CoastProblemKind::Direction),
            Inside::Same | Inside::Water => Some(CoastProblemKind::Questionable),
        };
        if let Some(kind) = kind {
            let members = patch.rings.iter().filter_map(|ring| rings.get(*ring));
            problems.extend(members.filter_map(|ring| patch.problem_of(kind, ring)));
        }
        match (inside, outside) {
            (Inside::Land, _) => {
                let has_one = patch.polygons.len() == 1;
                for polygon in patch.polygons {
                    self.add_polygon(number, polygon, has_one, !patch.is_land);
                }
            }
            (Inside::Water, Some(around)) => self.add_water(number, &patch, around),
            (Inside::Water | Inside::Same, _) => {}
        }
        self.placed[number] = Some(Placed { outside, inside });
    }

    /// Adds a land polygon of a patch. `is_turned` says whether the outer ring of the polygon was reversed.
    fn add_polygon(&mut self, patch: usize, rings: Rings, is_only_one: bool, is_turned: bool) {
        let polygon = self.polygons.len();
        if is_only_one {
            self.polygon_of[patch] = Some(polygon);
        } else {
            self.record_segments_of_polygon(&rings, polygon);
        }
        if let Some(polygon) = polygon_of(rings) {
            self.polygons.push(polygon);
            self.is_turned.push(is_turned);
        }
    }

    /// Adds water within a land polygon.
    fn add_water(&mut self, number: usize, patch: &Patch, around: usize) {
        if let [polygon] = patch.polygons.as_slice()
            && let [ring] = polygon.as_slice()
        {
            let mut hole = ring.clone();
            hole.reverse();
            self.polygons[around].holes.push(hole);
            self.polygon_of[number] = Some(around);
            return;
        }
        // The water is cut out of a frame around it. The polygon that touches the frame is the land around the water.
        // If lakes touch each other, the other polygons are land that the lakes enclose.
        let Some(extent) = Extent::of(patch.polygons.iter().flatten().flatten()) else {
            return;
        };
        let (low, high) = (extent.low, extent.high);
        let corner = |lat_e7: i32, lon_e7: i32| Point { lat_e7, lon_e7 };
        let frame = vec![
            corner(low.lat_e7 - 2, low.lon_e7 - 2),
            corner(low.lat_e7 - 2, high.lon_e7 + 2),
            corner(high.lat_e7 + 2, high.lon_e7 + 2),
            corner(high.lat_e7 + 2, low.lon_e7 - 2),
        ];
        let start = frame.first().copied();
        let mut contours = vec![frame];
        contours.extend(patch.polygons.iter().flatten().map(|ring| {
            let mut ring = ring.clone();
            ring.reverse();
            ring
        }));
        for rings in polygons_with_winding_sign(contours.iter(), false) {
            let is_frame = rings.first().is_some_and(|outer| {
                start.is_some_and(|start| {
                    outer.iter().any(|point| {
                        (point.lat_e7 - start.lat_e7).abs() <= 1
                            && (point.lon_e7 - start.lon_e7).abs() <= 1
                    })
                })
            });
            if is_frame {
                let holes: Rings = rings.into_iter().skip(1).collect();
                self.record_segments_of_polygon(&holes, around);
                self.polygons[around].holes.extend(holes);
            } else {
                let is_turned = self.is_turned[around];
                self.add_polygon(number, rings, false, is_turned);
            }
        }
    }

    /// Records in `polygon_at` that the segments of `rings` bound the land polygon `polygon`.
    fn record_segments_of_polygon(&mut self, rings: &[Vec<Point>], polygon: usize) {
        for ring in rings {
            for (from, to) in ring.iter().zip(ring.iter().cycle().skip(1)) {
                let ends = AreaSegment::new(*from, *to, 0).ends();
                self.polygon_at.insert(ends, polygon);
            }
        }
    }
}
