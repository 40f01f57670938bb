//! Counts objects while they come: `curl -s https://…/malta.osm.pbf | cargo run --example count_stream`

use pbfhogg::ObjectKind;
use pbfhogg::read::BlobStream;

fn main() -> pbfhogg::Result<()> {
    let mut counts = [0_u64; 3];
    for blob in BlobStream::new(std::io::stdin().lock())? {
        for object in blob?.decode()?.objects()? {
            counts[match object.kind() {
                ObjectKind::Node => 0,
                ObjectKind::Way => 1,
                ObjectKind::Relation => 2,
            }] += 1;
        }
        eprint!(
            "\r{} nodes, {} ways, {} relations",
            counts[0], counts[1], counts[2]
        );
    }
    eprintln!();
    Ok(())
}
