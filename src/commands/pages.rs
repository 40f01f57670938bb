//! Pages with charts. A page is one HTML file, which contains its data, style and script, and loads nothing.

use crate::error::{Error, FileResult, Result};
use crate::file::BlobPlan;
use crate::io::{OpenOutput, OutputTarget};
use crate::osm::ObjectKind;
use crate::pbf::sample_indices;
use crate::runtime::Context;
use crate::system;
use serde::Serialize;

/// The parts that all pages share. The templates contain the names of these parts as placeholders.
const PARTS: [(&str, &str); 2] = [
    ("{{STYLE}}", include_str!("pages/style.css")),
    ("{{SCRIPT}}", include_str!("pages/common.js")),
];
const DATA: &str = "{{DATA}}";

/// The maximum number of blobs whose boxes are shown on a map.
const MAX_BOXES: usize = 2_000;

/// The name and the version of the program that makes the page.
pub(crate) const PROGRAM: &str = concat!("pbfhogg ", env!("CARGO_PKG_VERSION"));

/// Writes the page that results from `template` when the shared parts and `data` are inserted. The script of the page
/// reads `data`.
///
/// Fails if the output exists and must not be overwritten, or cannot be written.
pub(crate) fn write(
    template: &str,
    data: &impl Serialize,
    target: OutputTarget,
    ctx: &Context,
) -> Result<()> {
    let path = target.path().to_owned();
    let json = serde_json::to_string(data)
        .map_err(|error| Error::file(&path, format!("the page cannot be made: {error}")))?;
    let mut page = template.to_owned();
    for (name, part) in PARTS {
        page = page.replacen(name, part, 1);
    }
    // `</script>` in a string of the data would end the script element, so each `<` is escaped.
    page = page.replacen(DATA, &json.replace('<', "\\u003c"), 1);
    let OpenOutput { output, file, .. } = OpenOutput::open(target, ctx)?;
    system::write(&file, page.as_bytes()).for_path(&path, "cannot write")?;
    output.commit()
}

/// Adds each count to the sum with the same index.
pub(crate) fn add_counts<const N: usize>(sums: &mut [u64; N], counts: &[u64; N]) {
    sums.iter_mut()
        .zip(counts)
        .for_each(|(sum, count)| *sum += count);
}

/// Returns the boxes of at most 2,000 blobs with nodes, spread evenly over the file. Also returns the number of all
/// blobs with nodes whose box is known.
pub(crate) fn sample_blob_boxes(plan: &BlobPlan) -> (Vec<[i32; 4]>, u64) {
    let of_nodes = plan.entries.iter();
    let of_nodes = of_nodes.filter(|entry| entry.kinds.contains(ObjectKind::Node));
    let all = of_nodes.map(|entry| entry.bbox);
    let all: Vec<_> = all.filter(|bbox| !bbox.is_empty()).collect();
    let sampled = sample_indices(all.len(), MAX_BOXES).map(|index| &all[index]);
    (
        sampled.map(|bbox| bbox.edges_e7().into_array()).collect(),
        all.len() as u64,
    )
}
