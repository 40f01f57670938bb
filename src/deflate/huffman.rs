//! The Huffman codes of deflate (RFC 1951).

/// The symbol that ends a block.
pub(crate) const END_OF_BLOCK: usize = 256;
/// The symbols of the code length alphabet, in the order in which a block stores their code lengths.
pub(crate) const LENGTH_ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];
/// The maximum length of a code that [`Tree`] makes, in bits. Deflate allows 15, but decoders find codes of up to 11
/// bits with a single table lookup.
pub(crate) const MAX_CODE: usize = 11;

/// A code and its length in bits. The low 16 bits hold the code, with its first bit lowest; the length is stored from
/// bit [`CODE_SHIFT`] on.
pub(crate) type Code = u32;
const CODE_SHIFT: u32 = 16;

/// Sets `codes` to the canonical codes with the lengths in `lens`, at the same indices. Codes of length 0 stay
/// unchanged.
pub(crate) fn assign_canonical_codes(lens: &[u8], codes: &mut [Code]) {
    let mut next = 0u32;
    for len in 1..=MAX_CODE as u8 {
        next <<= 1;
        for (code, _) in codes.iter_mut().zip(lens).filter(|(_, of)| **of == len) {
            let reversed = next.reverse_bits() >> (u32::BITS - u32::from(len));
            *code = reversed | u32::from(len) << CODE_SHIFT;
            next += 1;
        }
    }
}

/// Returns the length of a code in bits.
#[inline(always)]
pub(crate) const fn code_len(code: Code) -> u32 {
    code >> CODE_SHIFT
}

/// Huffman's algorithm with a maximum code length. Its buffers are reused.
#[derive(Default)]
pub(crate) struct Tree {
    /// The number of occurrences and the symbol, for each symbol that occurs. The rarest symbol comes first.
    leaves: Vec<(u32, u16)>,
    /// The weights of the inner nodes, in ascending order.
    inner: Vec<u32>,
    /// For each leaf, the index of its parent in `inner`.
    above_leaf: Vec<u16>,
    above_inner: Vec<u16>,
}

impl Tree {
    /// Sets `lens` to the code lengths for symbols that occur `counts` times. No code is longer than `most` bits.
    /// `lens` must be all zeros. `lens` and `counts` must have the same length, which is at least 2.
    pub(crate) fn assign_code_lengths(&mut self, counts: &[u32], most: usize, lens: &mut [u8]) {
        self.leaves.clear();
        let occurring = (0u16..).zip(counts).filter(|(_, count)| **count > 0);
        self.leaves
            .extend(occurring.map(|(symbol, &count)| (count, symbol)));
        self.leaves.sort_unstable();
        if self.leaves.len() < 2 {
            // A code of one symbol would be incomplete, so two symbols get a code: symbol 0, and the symbol that
            // occurs. If no symbol or only symbol 0 occurs, symbols 0 and 1 get a code.
            let only = self.leaves.first().map_or(1, |leaf| usize::from(leaf.1));
            (lens[0], lens[only.max(1)]) = (1, 1);
            return;
        }
        self.build_inner_nodes();
        let mut at_depth = self.count_depths(most);
        // The leaves are sorted by count, so the rarest symbols come first and get the longest codes.
        let mut depth = most;
        for &(_, symbol) in &self.leaves {
            while at_depth[depth] == 0 {
                depth -= 1;
            }
            at_depth[depth] -= 1;
            lens[usize::from(symbol)] = depth as u8;
        }
    }

    /// Builds the inner nodes. Each one joins the two lightest nodes that have no parent yet.
    fn build_inner_nodes(&mut self) {
        self.inner.clear();
        self.above_leaf.clear();
        self.above_inner.clear();
        let mut leaves = self.leaves.iter().map(|leaf| leaf.0).peekable();
        for number in 0..self.leaves.len().saturating_sub(1) {
            let mut weight = 0;
            for _ in 0..2 {
                // `inner` is `None` if every inner node has a parent already. In this case, at least one leaf has no
                // parent yet.
                let inner = self.inner.get(self.above_inner.len());
                if let Some(leaf) = leaves.next_if(|leaf| inner.is_none_or(|inner| leaf <= inner)) {
                    self.above_leaf.push(number as u16);
                    weight += leaf;
                } else {
                    weight += self.inner[self.above_inner.len()];
                    self.above_inner.push(number as u16);
                }
            }
            self.inner.push(weight);
        }
    }

    /// Returns the number of leaves at each depth, limited to depth `most`.
    fn count_depths(&mut self, most: usize) -> [u32; MAX_CODE + 1] {
        let mut at_depth = [0u32; MAX_CODE + 1];
        // The depths overwrite the weights, which are no longer needed.
        let depths = &mut self.inner;
        if let Some(root) = depths.last_mut() {
            *root = 0;
        }
        for number in (0..self.above_inner.len()).rev() {
            depths[number] = depths[usize::from(self.above_inner[number])] + 1;
        }
        for above in &self.above_leaf {
            let depth = depths[usize::from(*above)] as usize + 1;
            at_depth[depth.min(most)] += 1;
        }
        // If leaves were lifted to depth `most`, there are more codes of `most` bits than a prefix code can have. For
        // each excess code, a leaf at a smaller depth becomes an inner node. The children of this node are the leaf
        // itself and a leaf that was at depth `most`.
        let total = |at_depth: &[u32; MAX_CODE + 1]| -> u32 {
            (1..=most)
                .map(|depth| at_depth[depth] << (most - depth))
                .sum()
        };
        for _ in (1 << most)..total(&at_depth) {
            let mut depth = most - 1;
            while at_depth[depth] == 0 {
                depth -= 1;
            }
            at_depth[depth] -= 1;
            at_depth[depth + 1] += 2;
            at_depth[most] -= 1;
        }
        at_depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_tests::random::Random;

    #[test]
    fn codes_are_complete_and_as_short_as_possible() {
        let lengths = |counts: &[u32], most| {
            let mut lens = vec![0; counts.len()];
            Tree::default().assign_code_lengths(counts, most, &mut lens);
            lens
        };
        assert_eq!(lengths(&[5, 0, 1, 1, 3], 11), [1, 0, 3, 3, 2]);
        assert_eq!(lengths(&[1, 1, 1, 1], 11), [2, 2, 2, 2]);
        assert_eq!(lengths(&[0, 7], 11), [1, 1]);
        assert_eq!(lengths(&[7, 0], 11), [1, 1]);
        let mut random = Random(3);
        for most in [7, 11] {
            for symbols in [2, 3, 19, 100] {
                for _ in 0..50 {
                    let counts: Vec<u32> = (0..symbols)
                        .map(|_| {
                            let limit = 1u32 << random.below(30u32);
                            1 + random.below(limit) % 10_000_000
                        })
                        .collect();
                    let lens = lengths(&counts, most);
                    let sum: f64 = lens.iter().map(|len| 0.5f64.powi(i32::from(*len))).sum();
                    assert!((sum - 1.0).abs() < 1e-9, "{counts:?} {lens:?}");
                }
            }
        }
    }
}
