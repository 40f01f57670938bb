//! Lists the named ways of a box with their coordinates: `cargo run --example ways_as_csv -- FILE W,S,E,N`

use pbfhogg::areas::{FeatureReader, Form, Geometry};
use pbfhogg::{Bbox, Error, ObjectKind};

fn main() -> pbfhogg::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(edges)) = (arguments.next(), arguments.next()) else {
        return Err(Error::Usage("give a FILE and a box as W,S,E,N".into()));
    };
    let bbox = Bbox::parse_degrees(&edges).map_err(Error::Usage)?;
    let named_ways = FeatureReader::from_path(path)?.select(|kind, tags| {
        let is_named = tags.iter().any(|(key, _)| *key == "name");
        if kind == ObjectKind::Way && is_named {
            Form::Line
        } else {
            Form::Skip
        }
    });
    println!("id,name,line");
    named_ways.for_each(|way| {
        let Geometry::Line(points) = &way.geometry else {
            return Ok(());
        };
        let is_inside = points
            .iter()
            .any(|point| bbox.contains(point.lat_e7, point.lon_e7));
        if is_inside {
            let name = way.tag("name").unwrap_or_default().replace('"', "\"\"");
            let line: Vec<String> = points
                .iter()
                .map(|point| format!("{} {}", point.lon(), point.lat()))
                .collect();
            println!("{},\"{name}\",\"{}\"", way.id.id, line.join(" "));
        }
        Ok(())
    })
}
