//! Writes a small file: `cargo run --example write_file -- FILE.osm.pbf`

use pbfhogg::{ElementWriter, Error, Location, Member, Object, ObjectKind};

fn main() -> pbfhogg::Result<()> {
    let path = std::env::args().nth(1);
    let path = path.ok_or_else(|| Error::Usage("give the FILE to write".into()))?;
    let mut writer = ElementWriter::create(path)?;
    for (id, lat, lon) in [(1, 52.50, 13.40), (2, 52.51, 13.40), (3, 52.51, 13.41)] {
        writer.write(&Object::node(id, Location::from_degrees(lat, lon), &[]))?;
    }
    writer.write(&Object::way(1, &[1, 2, 3, 1], &[("building", "yes")]))?;
    let outer = Member {
        kind: ObjectKind::Way,
        id: 1,
        role: "outer",
    };
    writer.write(&Object::relation(1, &[outer], &[("type", "multipolygon")]))?;
    let written = writer.finish()?;
    println!("{} bytes, sorted: {}", written.bytes, written.sorted);
    Ok(())
}
