//! Reads the sorted rows of an index in parts of bounded size.

use super::layout::{Layer, layer_of};
use crate::error::{Error, FormatResult, Result};
use crate::index::{KeyRange, SharedRows, SortedRows};
use crate::runtime::{Context, Pass};

/// The maximum size of a part in bytes. There can be millions of rows with equal keys, and parsed rows take several
/// times the memory of encoded rows.
const PART: usize = 8 << 20;

/// Calls `read` with each part of the rows in `ranges`, on all threads. Calls `take` with the results, in the order of
/// the rows. `name` is the name of the pass.
pub(super) fn for_each_part<T: Send>(
    name: &'static str,
    sorted: &SortedRows,
    ranges: Vec<KeyRange>,
    read: impl Fn(Layer, &SharedRows) -> FormatResult<T> + Sync,
    take: impl FnMut(T) -> Result<()>,
    ctx: &Context,
) -> Result<()> {
    Pass::new(name, ctx)
        .with_budget(ctx.jobs as u64 * 2)
        .run_results(
            ranges.iter().map(|range| range.rows).sum(),
            ranges.into_iter().map(Ok),
            || (),
            |(), range, results| {
                let layer = layer_of(range.keys.start);
                let layer = layer.ok_or_else(|| Error::internal("a key without layer"))?;
                for rows in sorted.portions(range, PART) {
                    let rows = rows?;
                    let result = read(layer, &rows).map_err(Error::internal)?;
                    results.send_sized(result, rows.bytes.len())?;
                }
                Ok(())
            },
            |()| (),
            take,
        )
}
