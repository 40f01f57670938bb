//! Regions: exact tests by simple, slow code whether they contain a location, and their descriptions in files and
//! arguments.

use std::path::{Path, PathBuf};

/// Longitude and latitude in 1e-7 degree.
pub type Place = (i64, i64);

/// The number of units of a [`Place`] per degree.
pub const DEGREE: i64 = 10_000_000;

/// The box between western, southern, eastern and northern edges in degrees.
pub fn box_of_degrees(west: i64, south: i64, east: i64, north: i64) -> Region {
    let [west, south, east, north] = [west, south, east, north].map(|edge| edge * DEGREE);
    Region::boxed(west, south, east, north)
}

/// A closed line. The first location is not repeated at the end.
pub type Ring = Vec<Place>;

/// The union of some polygons. Locations on an edge are in the region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Polygons: an outer ring, then its holes.
    pub polygons: Vec<Vec<Ring>>,
}

impl Region {
    /// A region of one polygon.
    pub fn of(rings: &[Ring]) -> Region {
        Region {
            polygons: vec![rings.to_vec()],
        }
    }

    /// The box with the given edges in 1e-7 degree. It crosses the antimeridian if `west` is greater than `east`.
    pub fn boxed(west: i64, south: i64, east: i64, north: i64) -> Region {
        const EDGE: i64 = 180 * DEGREE;
        let ring = |west, east| vec![(west, south), (east, south), (east, north), (west, north)];
        let polygons = if west > east {
            vec![vec![ring(west, EDGE)], vec![ring(-EDGE, east)]]
        } else {
            vec![vec![ring(west, east)]]
        };
        Region { polygons }
    }

    /// A star with eight corners, four of which point inwards. No edge is horizontal.
    pub fn star((lon, lat): Place, width: i64, height: i64) -> Ring {
        let corners = [
            (100, 3),
            (35, 41),
            (7, 97),
            (-44, 38),
            (-98, -5),
            (-37, -45),
            (3, -99),
            (41, -36),
        ];
        let corner = |(x, y)| (lon + width * x / 200, lat + height * y / 200);
        corners.map(corner).to_vec()
    }

    /// Whether the region contains a location.
    pub fn holds(&self, place: Place) -> bool {
        self.polygons.iter().any(|rings| {
            let on_edge = rings.iter().any(|ring| is_on_edge(ring, place));
            let mut around = rings.iter().map(|ring| goes_around(ring, place));
            let in_outer = around.next().unwrap_or(false);
            on_edge || (in_outer && !around.any(|in_hole| in_hole))
        })
    }

    /// The western, southern, eastern and northern edge of the bounding box.
    pub fn envelope(&self) -> [i64; 4] {
        let places = || self.polygons.iter().flatten().flatten();
        let (lons, lats) = (
            || places().map(|place| place.0),
            || places().map(|place| place.1),
        );
        [
            lons().min().unwrap(),
            lats().min().unwrap(),
            lons().max().unwrap(),
            lats().max().unwrap(),
        ]
    }

    // As text.

    /// The bounding box as an argument of `-b`: `west,south,east,north`.
    pub fn bbox(&self) -> String {
        self.envelope().map(degrees).join(",")
    }

    /// The coordinates of a GeoJSON MultiPolygon.
    pub fn multipolygon(&self) -> String {
        array(&self.polygons, |rings| polygon_text(rings))
    }

    /// The coordinates of a GeoJSON Polygon. The region must have exactly one polygon.
    pub fn polygon(&self) -> String {
        let [rings] = self.polygons.as_slice() else {
            panic!("{} polygons", self.polygons.len());
        };
        polygon_text(rings)
    }

    /// A GeoJSON Feature.
    pub fn geojson(&self) -> String {
        let (kind, coordinates) = match self.polygons.len() {
            1 => ("Polygon", self.polygon()),
            _ => ("MultiPolygon", self.multipolygon()),
        };
        feature(&format!(
            "{{\"type\":\"{kind}\",\"coordinates\":{coordinates}}}"
        ))
    }

    /// A polygon filter file of Osmosis.
    pub fn poly(&self) -> String {
        let mut text = String::from("region\n");
        for (number, rings) in self.polygons.iter().enumerate() {
            for (hole, ring) in rings.iter().enumerate() {
                let mark = if hole == 0 { "" } else { "!" };
                text += &format!("{mark}{number}-{hole}\n");
                for (lon, lat) in closed(ring) {
                    text += &format!("   {}   {}\n", degrees(lon), degrees(lat));
                }
                text += "END\n";
            }
        }
        text + "END\n"
    }

    // As files.

    /// Writes the region as a GeoJSON file.
    pub fn geojson_file(&self, dir: &Path, name: &str) -> PathBuf {
        written(dir, &format!("{name}.geojson"), &self.geojson())
    }

    /// Writes the region as a polygon filter file of Osmosis.
    pub fn poly_file(&self, dir: &Path, name: &str) -> PathBuf {
        written(dir, &format!("{name}.poly"), &self.poly())
    }
}

/// A GeoJSON Feature with a geometry.
pub fn feature(geometry: &str) -> String {
    format!("{{\"type\":\"Feature\",\"properties\":{{}},\"geometry\":{geometry}}}")
}

/// Writes a text file and returns its path.
pub fn written(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A coordinate in 1e-7 degree as decimal degrees with seven decimal places.
pub fn degrees(value_e7: i64) -> String {
    let sign = if value_e7 < 0 { "-" } else { "" };
    let value = value_e7.abs();
    format!("{sign}{}.{:07}", value / DEGREE, value % DEGREE)
}

// Percentiles of locations: half of the coordinates are at or below `at(50, 50)`.

/// The longitudes and the latitudes of the nodes of a file, sorted independently of each other.
pub struct Spread {
    lons: Vec<i64>,
    lats: Vec<i64>,
}

impl Spread {
    /// The distribution of some locations.
    pub fn of(places: impl Iterator<Item = Place>) -> Spread {
        let (mut lons, mut lats): (Vec<i64>, Vec<i64>) = places.unzip();
        lons.sort_unstable();
        lats.sort_unstable();
        Spread { lons, lats }
    }

    /// The percentiles of longitude and latitude.
    pub fn at(&self, lon_percent: usize, lat_percent: usize) -> Place {
        let at = |sorted: &[i64], percent| sorted[(sorted.len() - 1) * percent / 100];
        (at(&self.lons, lon_percent), at(&self.lats, lat_percent))
    }

    /// The box between percentiles: western, southern, eastern and northern.
    pub fn boxed(&self, [west, south, east, north]: [usize; 4]) -> Region {
        let ((west, south), (east, north)) = (self.at(west, south), self.at(east, north));
        Region::boxed(west, south, east, north)
    }

    /// A star in the centre of the box between percentiles. Its size is `scale` percent of the box.
    pub fn star(&self, [west, south, east, north]: [usize; 4], scale: i64) -> Ring {
        let ((west, south), (east, north)) = (self.at(west, south), self.at(east, north));
        let (width, height) = (
            (east - west) * scale / 100 + 100,
            (north - south) * scale / 100 + 100,
        );
        Region::star(((west + east) / 2, (south + north) / 2), width, height)
    }
}

// Geometry. Products of coordinate differences need more than 64 bits.

/// The side of an edge on which a location is: positive to the left, 0 on the line through the edge.
fn side((from, to): (Place, Place), place: Place) -> i128 {
    let ahead = (i128::from(to.0 - from.0), i128::from(to.1 - from.1));
    let aside = (i128::from(place.0 - from.0), i128::from(place.1 - from.1));
    ahead.0 * aside.1 - ahead.1 * aside.0
}

fn edges(ring: &[Place]) -> impl Iterator<Item = (Place, Place)> + '_ {
    ring.iter()
        .copied()
        .zip(ring.iter().copied().cycle().skip(1))
}

fn is_on_edge(ring: &[Place], place: Place) -> bool {
    let between = |a: i64, b: i64, value: i64| a.min(b) <= value && value <= a.max(b);
    edges(ring).any(|(from, to)| {
        let in_box = between(from.0, to.0, place.0) && between(from.1, to.1, place.1);
        in_box && side((from, to), place) == 0
    })
}

/// Whether a ray from the location to the east crosses the ring an odd number of times.
fn goes_around(ring: &[Place], place: Place) -> bool {
    let crossed = edges(ring).filter(|&(from, to)| {
        let upwards = from.1 <= place.1 && place.1 < to.1;
        let downwards = to.1 <= place.1 && place.1 < from.1;
        let left = side((from, to), place) > 0;
        (upwards && left) || (downwards && !left)
    });
    crossed.count() % 2 == 1
}

// Text.

fn closed(ring: &[Place]) -> impl Iterator<Item = Place> + '_ {
    ring.iter().chain(ring.first()).copied()
}

fn array<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(text).collect();
    format!("[{}]", items.join(","))
}

fn polygon_text(rings: &[Ring]) -> String {
    let place = |&(lon, lat): &Place| format!("[{},{}]", degrees(lon), degrees(lat));
    array(rings, |ring| {
        array(&closed(ring).collect::<Vec<_>>(), place)
    })
}
