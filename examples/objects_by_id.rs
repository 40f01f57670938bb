//! Prints objects by their ids, from a file in any format: `cargo run --example objects_by_id -- FILE n1 w23 r4`

use pbfhogg::{Context, Error, ObjectId, ObjectKind, read};

fn main() -> pbfhogg::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let path = path.ok_or_else(|| Error::Usage("give a FILE and ids".into()))?;
    let ids = arguments.map(|text| ObjectId::parse(&text, ObjectKind::Node).map_err(Error::Usage));
    let ids = ids.collect::<pbfhogg::Result<Vec<_>>>()?;
    // Of a sorted file with a table of contents, only the blobs with these ids are read.
    let reader = read::open(path, &Context::default())?.ids(ids);
    reader.for_each(|element| {
        println!("{} {}", element.kind(), element.id());
        for (key, value) in element.tags() {
            println!("    {key} = {value}");
        }
    })
}
