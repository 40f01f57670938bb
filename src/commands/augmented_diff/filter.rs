//! Selects the actions to write, according to the options of the user.

use super::Selection;
use super::action::Action;
use super::find::Findings;
use super::states::State;
use crate::commands::export::FeatureRules;
use crate::engine::block_matcher::{is_area, selects, selects_object};
use crate::formats::ChangeAction;
use crate::geometry::{Point, Region, cut_line_at_antimeridian, is_edge_across_antimeridian};
use crate::osm::{KindSet, ObjectFilter, ObjectKind, UniqueTags};
use crate::pbf::Object;

/// The rules that select the actions to write.
pub(super) struct Filter {
    direct_only: bool,
    kinds: Option<KindSet>,
    /// Whether a change of a route also counts as a change of the routes that contain it.
    pub follows_routes: bool,
    /// Whether to ignore a tag if an earlier tag of the object has the same key. Outputs of features omit such tags.
    ignores_repeated_keys: bool,
    region: Option<RegionFilter>,
    tags: ObjectFilter,
}

/// A region, and the data needed to decide whether an area contains it.
struct RegionFilter {
    region: Region,
    /// A point of each polygon of the region.
    points: Vec<Point>,
    rules: FeatureRules,
    /// Whether the lines of a route include those of the routes that are nested in it.
    follows_routes: bool,
}

impl Filter {
    /// Creates a filter for outputs of objects: routes have only their direct members.
    pub(super) fn new(selection: &Selection) -> Self {
        Self::create(selection, false)
    }

    /// Creates a filter for outputs of features: routes also have the lines of the routes that are nested in them.
    pub(super) fn of_features(selection: &Selection) -> Self {
        Self::create(selection, true)
    }

    fn create(selection: &Selection, of_features: bool) -> Self {
        let follows_routes = of_features;
        let region = selection.region.as_ref();
        Self {
            direct_only: selection.direct_only,
            kinds: selection.kinds,
            follows_routes,
            ignores_repeated_keys: of_features,
            region: region.map(|shape| RegionFilter {
                points: shape
                    .rings()
                    .filter(|(_, is_hole)| !is_hole)
                    .filter_map(|(ring, _)| ring.points.first().copied())
                    .collect(),
                region: Region::new(shape),
                rules: FeatureRules::default(),
                follows_routes,
            }),
            tags: ObjectFilter::new(selection.filter.iter().cloned()),
        }
    }

    /// Whether an action is written. Its old or its new state must match the expressions, and its old or its new state
    /// must share a point with the region.
    pub(super) fn selects(&self, action: &Action<'_>, findings: &Findings<'_>) -> bool {
        let kind = action.new.object.kind();
        let is_of_kind = self.kinds.is_none_or(|kinds| kinds.contains(kind));
        if !is_of_kind || self.direct_only && action.is_indirect {
            return false;
        }
        // The content of a deletion is not reliable: a change file may omit it.
        let new = (action.kind != ChangeAction::Delete).then_some(&action.new);
        let states = || action.old.iter().chain(new);
        let has_tags = |state: &State<'_>| self.matches_expressions(state.object);
        let is_near = |region: &RegionFilter| states().any(|state| region.meets(state, findings));
        states().any(has_tags) && self.region.as_ref().is_none_or(is_near)
    }

    /// Whether the expressions match an object.
    fn matches_expressions(&self, object: &Object<'_>) -> bool {
        if !selects_object(&self.tags, object) {
            return false;
        }
        if !self.ignores_repeated_keys {
            return true;
        }
        let tags = unique_tags(object);
        let form = (object.object_id(), is_area(object));
        tags.len() == object.tags.len()
            || selects(&self.tags, form, &object.info, tags.iter().copied())
    }
}

impl RegionFilter {
    /// Whether the region shares a point with an object or with one of its members. Lines are compared as they are on
    /// the map: cut at the antimeridian.
    fn meets(&self, state: &State<'_>, findings: &Findings<'_>) -> bool {
        let mut meets = false;
        let mut outlines = Outlines::of(&self.points);
        state.for_each_line(findings, self.follows_routes, |points| {
            let parts = cut_line_at_antimeridian(points);
            meets = meets || self.meets_line(points, parts.as_deref());
            outlines.add(points, parts.as_deref());
        });
        meets || outlines.encloses_any_point() && self.is_area(state)
    }

    /// Whether the region shares a point with a line. `parts` are the parts of the line if it was cut at the
    /// antimeridian.
    fn meets_line(&self, points: &[Point], parts: Option<&[Vec<Point>]>) -> bool {
        match (points, parts) {
            ([point], _) => self.region.contains(*point),
            (points, None) => self.region.meets_line(points),
            // No part is left if all points of a line have the same location.
            ([point, ..], Some([])) => self.region.contains(*point),
            (_, Some(parts)) => parts.iter().any(|part| self.region.meets_line(part)),
        }
    }

    /// Whether an object with a closed outline is an area, according to its tags.
    fn is_area(&self, state: &State<'_>) -> bool {
        let object = state.object;
        is_area(object)
            && (object.kind() != ObjectKind::Way
                || self.rules.closed_way_forms(&unique_tags(object)).1)
    }
}

/// Returns the tags of an object; of several tags with the same key, only the first one.
fn unique_tags<'o>(object: &'o Object<'_>) -> Vec<(&'o str, &'o str)> {
    UniqueTags::new(object.tags.iter().copied()).collect()
}

/// A test for whether the outlines of an area enclose points. A ray from an enclosed point to the north crosses an odd
/// number of segments of the outlines.
struct Outlines<'p> {
    points: &'p [Point],
    /// For each point, whether the outlines enclose it on the map.
    on_map: Vec<bool>,
    /// For each point, whether the cut at the antimeridian changes the value in `on_map`.
    differs: Vec<bool>,
    /// The number of segments across the antimeridian. It is odd if the area goes around a pole; such an area is not
    /// cut.
    crossings: usize,
}

impl<'p> Outlines<'p> {
    fn of(points: &'p [Point]) -> Self {
        Self {
            points,
            on_map: vec![false; points.len()],
            differs: vec![false; points.len()],
            crossings: 0,
        }
    }

    /// Adds a line of an outline. `parts` are the parts of the line if it was cut at the antimeridian.
    fn add(&mut self, line: &[Point], parts: Option<&[Vec<Point>]>) {
        let Some(parts) = parts else {
            return flip_crossed(&mut self.on_map, self.points, line);
        };
        let across = line
            .windows(2)
            .filter(|pair| is_edge_across_antimeridian(pair[0], pair[1]));
        self.crossings += across.count();
        for part in parts {
            flip_crossed(&mut self.on_map, self.points, part);
            flip_crossed(&mut self.differs, self.points, part);
        }
        flip_crossed(&mut self.differs, self.points, line);
    }

    /// Whether the outlines enclose any of the points.
    fn encloses_any_point(&self) -> bool {
        let is_around_pole = self.crossings % 2 == 1;
        let mut points = self.on_map.iter().zip(&self.differs);
        points.any(|(on_map, differs)| on_map ^ (*differs && is_around_pole))
    }
}

/// For each point, inverts its flag as often as a ray from the point to the north crosses the line.
fn flip_crossed(flags: &mut [bool], points: &[Point], line: &[Point]) {
    for pair in line.windows(2) {
        for (flag, point) in flags.iter_mut().zip(points) {
            *flag ^= is_below(*point, pair[0], pair[1]);
        }
    }
}

/// Whether a point is below a segment, so that a vertical ray from the point upwards crosses it.
fn is_below(point: Point, from: Point, to: Point) -> bool {
    let [x, y] = [point.lon_e7, point.lat_e7].map(i128::from);
    let [ax, ay, bx, by] = [from.lon_e7, from.lat_e7, to.lon_e7, to.lat_e7].map(i128::from);
    if (ax > x) == (bx > x) {
        return false;
    }
    let side = (by - ay) * (x - ax) - (y - ay) * (bx - ax);
    (side > 0) == (bx > ax)
}
