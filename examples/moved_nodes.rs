//! Lists the nodes of a file that a change file moves, in metres: `cargo run --example moved_nodes -- FILE CHANGES`

use pbfhogg::{Context, Element, ElementReader, Error, ObjectId, ObjectKind, changes};
use std::collections::HashMap;

fn main() -> pbfhogg::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(change_file)) = (arguments.next(), arguments.next()) else {
        return Err(Error::Usage("give a FILE and a change file".into()));
    };
    let changes = changes::read(&[change_file], &Context::default())?;
    let nodes = changes
        .changes()
        .iter()
        .filter(|change| change.kind() == ObjectKind::Node);
    let places: HashMap<i64, _> = nodes
        .filter_map(|node| Some((node.id(), node.location()?)))
        .collect();
    let ids = places.keys().map(|&id| ObjectId {
        kind: ObjectKind::Node,
        id,
    });
    ElementReader::from_path(path)?
        .ids(ids)
        .for_each(|element| {
            let Element::Node(node) = element else { return };
            let (Some(old), Some(new)) = (node.location(), places.get(&node.id())) else {
                return;
            };
            if old != *new {
                let north = (new.lat() - old.lat()).to_radians();
                let east = (new.lon() - old.lon()).to_radians() * old.lat().to_radians().cos();
                println!("n{}: {:.1} m", node.id(), north.hypot(east) * 6_371_000.0);
            }
        })
}
