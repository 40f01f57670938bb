//! Measures the areas with a tag, as polygons of the crate `geo`: `cargo run --example multipolygons -- FILE KEY`

use geo::{GeodesicArea, LineString, MultiPolygon, Polygon};
use pbfhogg::Error;
use pbfhogg::areas::{FeatureReader, Form, Geometry, Point};

/// A ring, which the crate closes.
fn ring(points: &[Point]) -> LineString {
    points
        .iter()
        .map(|point| (point.lon(), point.lat()))
        .collect()
}

fn main() -> pbfhogg::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(wanted)) = (arguments.next(), arguments.next()) else {
        return Err(Error::Usage("give a FILE and a KEY".into()));
    };
    let areas = FeatureReader::from_path(path)?.select(move |_, tags| {
        if tags.iter().any(|(key, _)| *key == wanted) {
            Form::Area
        } else {
            Form::Skip
        }
    });
    areas.for_each(|feature| {
        if let Geometry::Area(polygons) = &feature.geometry {
            let polygons = polygons.iter().map(|polygon| {
                let holes = polygon.holes.iter().map(|hole| ring(hole)).collect();
                Polygon::new(ring(&polygon.outer), holes)
            });
            let area: MultiPolygon = polygons.collect();
            println!("{}: {:.0} m²", feature.id, area.geodesic_area_unsigned());
        }
        Ok(())
    })
}
