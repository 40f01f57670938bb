//! Lists the blobs of a file and the longest string of each: `cargo run --example list_blobs -- FILE`

use pbfhogg::{BlobDecoder, BlobPlan, Block, Context, Error, PbfFile, PlanNeeds};
use std::path::PathBuf;

fn main() -> pbfhogg::Result<()> {
    let path = std::env::args_os().nth(1).map(PathBuf::from);
    let path = path.ok_or_else(|| Error::Usage("give a FILE".into()))?;
    let ctx = Context::default();
    let file = PbfFile::open(&path, &ctx)?;
    // The plan comes from the table of contents where the file has one, else from decoding every blob.
    let plan = BlobPlan::open(&file, PlanNeeds::Order, &ctx)?;
    let mut reader = BlobDecoder::new(&file.input, &ctx);
    for entry in &plan.entries {
        let payload = reader.payload(entry)?;
        let block = Block::parse(payload);
        let block = block.map_err(|error| {
            file.input
                .blob_error(entry.number.into(), entry.offset, error)
        })?;
        let longest = block.strings().max_by_key(|text| text.len());
        println!(
            "blob {} at byte {}: {} objects ({}), longest string {:?}",
            entry.number,
            entry.offset,
            entry.count,
            entry.kinds,
            longest.unwrap_or_default()
        );
    }
    Ok(())
}
