//! Selects the actions that are written, by the options of the user.

use super::Selection;
use super::action::Action;
use super::find::Findings;
use super::states::State;
use crate::commands::export::FeatureRules;
use crate::engine::block_matcher::{is_area, selects_object};
use crate::formats::ChangeAction;
use crate::geometry::{Point, Region};
use crate::osm::{ObjectFilter, ObjectKind};

/// The actions that the options select.
pub(super) struct Filter {
    direct_only: bool,
    region: Option<RegionFilter>,
    tags: ObjectFilter,
}

/// A region, and the data that decide whether an area contains it.
struct RegionFilter {
    region: Region,
    /// A point of each polygon of the region.
    points: Vec<Point>,
    rules: FeatureRules,
}

impl Filter {
    pub(super) fn new(selection: &Selection) -> Self {
        let region = selection.region.as_ref();
        Self {
            direct_only: selection.direct_only,
            region: region.map(|shape| RegionFilter {
                points: shape
                    .rings()
                    .filter(|(_, is_hole)| !is_hole)
                    .filter_map(|(ring, _)| ring.points.first().copied())
                    .collect(),
                region: Region::new(shape),
                rules: FeatureRules::default(),
            }),
            tags: ObjectFilter::new(selection.filter.iter().cloned()),
        }
    }

    /// Whether an action is written. The expressions must match one of its states, and the region must meet one of
    /// them.
    pub(super) fn selects(&self, action: &Action<'_>, findings: &Findings<'_>) -> bool {
        if self.direct_only && action.is_indirect {
            return false;
        }
        // The content of a deletion is not reliable: a change file may leave it out.
        let new = (action.kind != ChangeAction::Delete).then_some(&action.new);
        let states = || action.old.iter().chain(new);
        let has_tags = |state: &State<'_>| selects_object(&self.tags, state.object);
        let is_near = |region: &RegionFilter| states().any(|state| region.meets(state, findings));
        states().any(has_tags) && self.region.as_ref().is_none_or(is_near)
    }
}

impl RegionFilter {
    /// Whether the region shares a point with an object or with one of its members.
    fn meets(&self, state: &State<'_>, findings: &Findings<'_>) -> bool {
        let mut meets = false;
        // For each polygon of the region, whether the lines enclose its point.
        let mut is_around = vec![false; self.points.len()];
        state.for_each_line(findings, |points| {
            meets = meets
                || match points {
                    [point] => self.region.has(*point),
                    points => self.region.meets_line(points),
                };
            for pair in points.windows(2) {
                for (is_around, point) in is_around.iter_mut().zip(&self.points) {
                    *is_around ^= is_below(*point, pair[0], pair[1]);
                }
            }
        });
        meets || is_around.contains(&true) && self.is_area(state)
    }

    /// Whether an object with a closed outline is an area, according to its tags.
    fn is_area(&self, state: &State<'_>) -> bool {
        let object = state.object;
        is_area(object)
            && (object.kind() != ObjectKind::Way || self.rules.of_closed_way(&object.tags).1)
    }
}

/// Whether a point is below a segment, so that a vertical ray from the point upwards crosses it.
fn is_below(point: Point, from: Point, to: Point) -> bool {
    let [x, y] = [point.lon_e7, point.lat_e7].map(i64::from);
    let [ax, ay, bx, by] = [from.lon_e7, from.lat_e7, to.lon_e7, to.lat_e7].map(i64::from);
    if (ax > x) == (bx > x) {
        return false;
    }
    let side = (by - ay) * (x - ax) - (y - ay) * (bx - ax);
    (side > 0) == (bx > ax)
}
