//! A plain, slow reverse geocoder: it looks at every object.

use pbfhogg::{Element, ElementReader, ObjectKind};
use std::collections::HashMap;
use std::path::Path;

/// Degrees: latitude and longitude.
pub type Degrees = [f64; 2];

/// An object with a geometry.
#[derive(Debug, Clone)]
pub struct Thing {
    pub kind: ObjectKind,
    pub line: Vec<Degrees>,
    /// Whether the line is the ring of an area.
    pub is_area: bool,
    pub tags: HashMap<String, String>,
}

/// The nodes and ways of a file with their locations. Ways of which a node is missing are left out.
pub fn things(path: &Path) -> Vec<Thing> {
    let mut locations: HashMap<i64, Degrees> = HashMap::new();
    let mut things = Vec::new();
    let tags_of = |element: &Element<'_>| -> HashMap<String, String> {
        let tags = element.tags();
        tags.map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    ElementReader::from_path(path)
        .unwrap()
        .for_each(|element| match &element {
            Element::Node(node) => {
                let Some(location) = node.location() else {
                    return;
                };
                let degrees = [location.lat_e7(), location.lon_e7()].map(|e7| f64::from(e7) / 1e7);
                locations.insert(node.id(), degrees);
                let tags = tags_of(&element);
                if !tags.is_empty() {
                    things.push(Thing {
                        kind: ObjectKind::Node,
                        line: vec![degrees],
                        is_area: false,
                        tags,
                    });
                }
            }
            Element::Way(way) => {
                let line = way.refs().map(|node| locations.get(&node).copied());
                let line: Option<Vec<Degrees>> = line.collect();
                let refs: Vec<i64> = way.refs().collect();
                if let Some(line) = line.filter(|line| line.len() > 1) {
                    things.push(Thing {
                        kind: ObjectKind::Way,
                        is_area: line.len() > 3 && refs.first() == refs.last(),
                        line,
                        tags: tags_of(&element),
                    });
                }
            }
            Element::Relation(_) => {}
        })
        .unwrap();
    things
}

/// The point of the unit sphere at a location.
fn on_sphere([lat, lon]: Degrees) -> [f64; 3] {
    let (lat, lon) = (lat.to_radians(), lon.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

/// The metres to the east and to the north of a place: by the formula of the middle latitude, and near the poles on the
/// plane that touches the earth there.
fn on_plane(place: Degrees, other: Degrees) -> [f64; 2] {
    const RADIUS: f64 = 6_371_008.8;
    if place[0].abs() < 85.0 {
        let middle = f64::midpoint(place[0], other[0]).to_radians();
        let [north, east] = [other[0] - place[0], other[1] - place[1]].map(f64::to_radians);
        return [RADIUS * east * middle.cos(), RADIUS * north];
    }
    let [p, q] = [on_sphere(place), on_sphere(other)];
    let (lat, lon) = (place[0].to_radians(), place[1].to_radians());
    let east = [-lon.sin(), lon.cos(), 0.0];
    let north = [-lat.sin() * lon.cos(), -lat.sin() * lon.sin(), lat.cos()];
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let (x, y) = (dot(q, east), dot(q, north));
    let across = x.hypot(y);
    let angle = across.atan2(dot(p, q));
    let scale = if across > 0.0 { angle / across } else { 0.0 };
    [x * scale * RADIUS, y * scale * RADIUS]
}

/// The distance in metres between a place and a thing; 0 inside of an area.
pub fn distance(place: Degrees, thing: &Thing) -> f64 {
    let corners: Vec<[f64; 2]> = thing.line.iter().map(|at| on_plane(place, *at)).collect();
    let mut nearest = corners
        .iter()
        .map(|[x, y]| x.hypot(*y))
        .fold(f64::INFINITY, f64::min);
    let mut crossings = 0;
    for pair in corners.windows(2) {
        let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
        let (dx, dy) = (bx - ax, by - ay);
        let length = dx * dx + dy * dy;
        if length > 0.0 {
            let along = (-(ax * dx + ay * dy) / length).clamp(0.0, 1.0);
            nearest = nearest.min((ax + along * dx).hypot(ay + along * dy));
        }
        if (ay > 0.0) != (by > 0.0) && ax - ay * dx / dy > 0.0 {
            crossings += 1;
        }
    }
    if thing.is_area && crossings % 2 == 1 {
        return 0.0;
    }
    nearest
}
