//! Cuts areas at the antimeridian, which is the edge of the map. An area that crosses the antimeridian is first
//! assembled in one piece on a turned map ([`MapTurn`]), and then cut.

use super::{
    AreaNode, AreaPolygon, AreaProblem, AreaWay, Assembly, OpenRings, ProblemKind, Role, assemble,
};
use crate::geometry::{Antimeridian, MapTurn, Point, Rings, goes_around_pole};

/// Assembles the polygons that are bounded by ways, as [`assemble`] does. Cuts them at the antimeridian if
/// `antimeridian` is [`Antimeridian::Cut`].
pub(crate) fn assemble_with_antimeridian(
    ways: &[AreaWay<'_>],
    antimeridian: Antimeridian,
    open_rings: OpenRings,
) -> Assembly {
    match antimeridian {
        Antimeridian::Cut => assemble_cut_at_antimeridian(ways, open_rings),
        Antimeridian::Keep => assemble(ways, open_rings),
    }
}

/// Assembles the polygons that are bounded by ways, as [`assemble`] does, and cuts them at the antimeridian. An area
/// around a pole has a point at every longitude and is not cut.
fn assemble_cut_at_antimeridian(ways: &[AreaWay<'_>], open_rings: OpenRings) -> Assembly {
    let Some(turn) = MapTurn::of(point_paths_of_ways(ways)) else {
        return assemble(ways, open_rings);
    };
    let turned = |node: &AreaNode| AreaNode {
        id: node.id,
        point: turn.apply(node.point),
    };
    let nodes: Vec<Vec<AreaNode>> = ways
        .iter()
        .map(|way| way.nodes.iter().map(turned).collect())
        .collect();
    let turned: Vec<AreaWay<'_>> = ways
        .iter()
        .zip(&nodes)
        .map(|(way, nodes)| AreaWay { nodes, ..*way })
        .collect();
    let mut assembly = assemble(&turned, open_rings);
    for problem in &mut assembly.problems {
        problem.point = problem.point.map(|point| turn.undo(point));
        for ends in problem.segments.iter_mut().flatten() {
            *ends = ends.map(|end| turn.undo(end));
        }
    }
    let rings = |polygon: &AreaPolygon| turn.cut(polygon.rings());
    let parts = assembly.polygons.iter().flat_map(rings);
    let parts: Vec<AreaPolygon> = parts.filter_map(polygon_of).collect();
    if parts.is_empty() && !assembly.polygons.is_empty() {
        let ways = [ways.first().map(|way| way.id), None];
        let problem = AreaProblem::new(ProblemKind::NoArea, None, ways);
        assembly.problems.push(problem);
    }
    assembly.polygons = parts;
    assembly
}

/// Cuts polygons that were assembled without regard to the antimeridian. Returns `None` if no polygon needs a cut, or
/// if the cut leaves no polygon.
pub(crate) fn cut_polygons_at_antimeridian(polygons: &[AreaPolygon]) -> Option<Vec<AreaPolygon>> {
    let closed = |ring: &Vec<Point>| {
        let points = ring.iter().chain(ring.first());
        points
            .map(|point| AreaNode {
                id: 0,
                point: *point,
            })
            .collect()
    };
    let rings: Vec<Vec<AreaNode>> = polygons
        .iter()
        .flat_map(AreaPolygon::rings)
        .map(closed)
        .collect();
    let ways: Vec<AreaWay<'_>> = (0..)
        .zip(&rings)
        .map(|(id, nodes)| AreaWay {
            id,
            role: Role::Other,
            nodes,
        })
        .collect();
    MapTurn::of(point_paths_of_ways(&ways))?;
    let polygons = assemble_cut_at_antimeridian(&ways, OpenRings::Refuse).polygons;
    (!polygons.is_empty()).then_some(polygons)
}

/// Whether the ways bound an area around a pole, which is not cut at the antimeridian.
pub(crate) fn is_around_pole(ways: &[AreaWay<'_>]) -> bool {
    goes_around_pole(point_paths_of_ways(ways))
}

/// Returns the points of each way.
fn point_paths_of_ways(
    ways: &[AreaWay<'_>],
) -> impl Iterator<Item = impl Iterator<Item = Point> + Clone> + Clone {
    ways.iter()
        .map(|way| way.nodes.iter().map(|node| node.point))
}

/// Makes a polygon from rings. The first ring is the outer ring, and all further rings are holes. Returns `None` if
/// there are no rings.
pub(crate) fn polygon_of(rings: Rings) -> Option<AreaPolygon> {
    let mut rings = rings.into_iter();
    let outer = rings.next()?;
    Some(AreaPolygon {
        outer,
        holes: rings.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Extent;

    fn nodes(places: &[(f64, f64)]) -> Vec<AreaNode> {
        let nodes = (1..).zip(places).map(|(id, (lon, lat))| AreaNode {
            id,
            point: Point::new((lat * 1e7) as i32, (lon * 1e7) as i32),
        });
        nodes.collect()
    }

    fn ways(nodes: &[Vec<AreaNode>]) -> Vec<AreaWay<'_>> {
        let ways = (1..).zip(nodes).map(|(id, nodes)| AreaWay {
            id,
            role: Role::Other,
            nodes,
        });
        ways.collect()
    }

    /// Returns the western and the eastern edge of each polygon in degrees, sorted by the western edge.
    fn spans(polygons: &[AreaPolygon]) -> Vec<(f64, f64)> {
        let extents = polygons
            .iter()
            .map(|polygon| Extent::of(&polygon.outer).unwrap());
        let mut spans: Vec<_> = extents
            .map(|extent| (extent.low.lon(), extent.high.lon()))
            .collect();
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        spans
    }

    fn square(west: f64, east: f64, south: f64) -> Vec<(f64, f64)> {
        let north = south + 1.0;
        vec![
            (west, south),
            (east, south),
            (east, north),
            (west, north),
            (west, south),
        ]
    }

    #[test]
    fn an_area_across_the_antimeridian_has_a_part_on_each_side() {
        let halves = [
            nodes(&[(-179.0, 1.0), (179.0, 1.0), (179.0, 0.0)]),
            nodes(&[(179.0, 0.0), (-179.0, 0.0), (-179.0, 1.0)]),
        ];
        let assembly = assemble_cut_at_antimeridian(&ways(&halves), OpenRings::Refuse);
        assert!(assembly.is_valid());
        assert_eq!(
            spans(&assembly.polygons),
            [(-180.0, -179.0), (179.0, 180.0)]
        );
    }

    #[test]
    fn a_part_at_greenwich_does_not_prevent_the_cut_of_another_part() {
        let rings = [
            nodes(&square(179.0, -179.0, -17.0)),
            nodes(&square(-1.0, 1.0, 51.0)),
        ];
        let assembly = assemble_cut_at_antimeridian(&ways(&rings), OpenRings::Refuse);
        assert_eq!(
            spans(&assembly.polygons),
            [(-180.0, -179.0), (-1.0, 1.0), (179.0, 180.0)]
        );
    }

    #[test]
    fn cutting_after_assembly_gives_the_same_polygons() {
        let rings = [nodes(&square(178.0, -178.0, 0.0))];
        let plain = assemble(&ways(&rings), OpenRings::Refuse).polygons;
        assert_eq!(spans(&plain), [(-178.0, 178.0)]);
        let cut = cut_polygons_at_antimeridian(&plain).unwrap();
        assert_eq!(spans(&cut), [(-180.0, -178.0), (178.0, 180.0)]);
        assert_eq!(
            cut,
            assemble_cut_at_antimeridian(&ways(&rings), OpenRings::Refuse).polygons
        );
        let ordinary = assemble(&ways(&[nodes(&square(7.0, 8.0, 0.0))]), OpenRings::Refuse);
        assert_eq!(cut_polygons_at_antimeridian(&ordinary.polygons), None);
    }

    #[test]
    fn an_area_around_a_pole_is_not_cut() {
        let polar = [nodes(&[
            (-120.0, 70.0),
            (0.0, 75.0),
            (120.0, 72.0),
            (-120.0, 70.0),
        ])];
        let ways = ways(&polar);
        assert!(is_around_pole(&ways));
        let plain = assemble(&ways, OpenRings::Refuse);
        assert_eq!(
            assemble_cut_at_antimeridian(&ways, OpenRings::Refuse),
            plain
        );
    }
}
