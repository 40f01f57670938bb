//! Dense nodes as views with strings. Columns are decoded in portions, which is several times as fast as node by node.

use super::dense::{DenseNodes, PORTION, Portion, RawNode};
use super::element::{Info, Node, Tags};
use super::outline::{BlockUnits, StringTable};
use crate::error::FormatError;
use crate::pbf::wire::Varints;

impl DenseNodes<'_> {
    /// Calls `visit` with each node in order, with strings and nanodegrees.
    ///
    /// # Errors
    ///
    /// Returns the first error of `visit`. Fails if a node is damaged; the nodes before it have been visited.
    pub(in crate::pbf) fn try_for_each<'b, E: From<FormatError>>(
        &'b self,
        strings: &'b StringTable<'b>,
        units: BlockUnits,
        mut visit: impl FnMut(Node<'b>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut nodes = self.raw_nodes();
        let mut portion = Portion::default();
        while nodes.len() > 0 {
            let count = nodes.len().min(PORTION);
            if !nodes.fill(count, &mut portion) {
                break;
            }
            for at in 0..count {
                let raw = nodes.next_of(&portion, at)?;
                visit(resolve(&raw, strings, &units)?)?;
            }
        }
        // The rest, if a column is damaged: the nodes before the damage are visited.
        while let Some(raw) = nodes.next()? {
            visit(resolve(&raw, strings, &units)?)?;
        }
        Ok(())
    }
}

// Forced: copying the node out of it takes 12 % of a visit.
#[inline(always)]
fn resolve<'b>(
    raw: &RawNode<'b>,
    strings: &'b StringTable<'b>,
    units: &BlockUnits,
) -> Result<Node<'b>, FormatError> {
    let mut ids = Varints::new(raw.keys_vals);
    while !ids.is_done() {
        strings.check(ids.read()?)?;
    }
    Ok(Node {
        id: raw.id,
        nano_lat: units.nano_lat(raw.lat),
        nano_lon: units.nano_lon(raw.lon),
        tags: Tags::alternating(strings, raw.keys_vals),
        info: Info::resolve(&raw.info, units, strings)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;
    use crate::pbf::wire::{put_packed_field, put_sint, put_varint};

    /// The id, the latitude and the version of a node.
    type Seen = (i64, i64, Option<u32>);

    fn visited(message: &[u8]) -> (Vec<Seen>, Result<(), FormatError>) {
        let dense = DenseNodes::parse(message).unwrap();
        let strings = StringTable::default();
        let mut seen = Vec::new();
        let result = dense.try_for_each(&strings, BlockUnits::default(), |node| {
            seen.push((node.id(), node.nano_lat(), node.info().version));
            Ok(())
        });
        (seen, result)
    }

    #[test]
    fn an_error_ends_the_nodes() {
        // One node, and the tags of two.
        let (seen, result) = visited(b"\x0a\x01\x02\x42\x01\x02\x4a\x01\x02\x52\x02\x00\x00");
        assert_eq!(seen, [(1, 100, None)]);
        assert!(result.is_err());
    }

    /// A message with `count` nodes; the latitude at an index has a delta that overflows.
    fn message(count: usize, overflow: Option<usize>, random: &mut Random) -> Vec<u8> {
        let columns = [1, 8, 9].map(|field| {
            let mut run = Vec::new();
            for at in 0..count {
                let delta = match overflow {
                    Some(bad) if field == 8 && bad == at => i64::MAX,
                    _ => i64::from(random.below(1_000)) + 1,
                };
                put_sint(&mut run, delta);
            }
            (field, run)
        });
        let mut versions = Vec::new();
        for at in 0..count {
            put_varint(&mut versions, at as u64 % 300);
        }
        let mut info = Vec::new();
        put_packed_field(&mut info, 1, &versions);
        let mut message = Vec::new();
        for (field, run) in columns {
            put_packed_field(&mut message, field, &run);
        }
        put_packed_field(&mut message, 5, &info);
        message
    }

    #[test]
    fn portions_give_what_nodes_one_by_one_give() {
        let mut random = Random(5);
        for count in [1, 2, PORTION - 1, PORTION, PORTION + 1, 3 * PORTION + 7] {
            for overflow in [None, Some(0), Some(count / 2), Some(count - 1)] {
                let message = message(count, overflow, &mut random);
                let dense = DenseNodes::parse(&message).unwrap();
                let (mut nodes, mut expected) = (dense.raw_nodes(), Vec::new());
                let failed = loop {
                    match nodes.next() {
                        Ok(Some(node)) => {
                            let version =
                                (node.info.version > 0).then_some(node.info.version as u32);
                            expected.push((
                                node.id,
                                BlockUnits::default().nano_lat(node.lat),
                                version,
                            ));
                        }
                        Ok(None) => break false,
                        Err(_) => break true,
                    }
                };
                let (seen, result) = visited(&message);
                assert!(
                    seen == expected && result.is_err() == failed,
                    "{count} {overflow:?}"
                );
            }
        }
    }
}
