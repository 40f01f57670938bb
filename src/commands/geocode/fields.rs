//! The fields of a row of a table.

/// The byte order mark, with which a text may begin.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The positions of the fields of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowFields {
    /// The start of each field, in bytes.
    starts: Vec<usize>,
    /// Whether the last field begins with a quote and does not end with one.
    pub is_open: bool,
}

impl RowFields {
    /// Finds the fields of a row without its line break.
    pub(super) fn of(row: &[u8], separator: u8) -> Self {
        let mut fields = Self {
            starts: vec![0],
            is_open: false,
        };
        let mut at = if row.starts_with(BOM) { BOM.len() } else { 0 };
        let mut is_start = true;
        while let Some(byte) = row.get(at) {
            match *byte {
                b'"' if fields.is_open => {
                    // Two consecutive quotes stand for one quote in the field, and do not end the field.
                    if row.get(at + 1) == Some(&b'"') {
                        at += 1;
                    } else {
                        fields.is_open = false;
                    }
                }
                _ if fields.is_open => {}
                b'"' => fields.is_open = is_start,
                byte if byte == separator => fields.starts.push(at + 1),
                _ => {}
            }
            is_start = !fields.is_open && row.get(at) == Some(&separator);
            at += 1;
        }
        fields
    }

    pub(super) const fn count(&self) -> usize {
        self.starts.len()
    }

    /// Splits a row after its first `width` fields. The second part begins after a separator. It is `None` if there are
    /// no more fields.
    pub(super) fn split<'r>(&self, row: &'r [u8], width: usize) -> (&'r [u8], Option<&'r [u8]>) {
        let start = self.starts.get(width).copied();
        let parts =
            start.and_then(|start| Some((row.get(..start.checked_sub(1)?)?, row.get(start..)?)));
        parts.map_or((row, None), |(first, more)| (first, Some(more)))
    }

    /// Returns the part of a row that begins with the field at index `field`.
    pub(super) fn rest_from_field<'r>(&self, row: &'r [u8], field: usize) -> &'r [u8] {
        let start = self.starts.get(field).copied();
        start.and_then(|start| row.get(start..)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_at_separators_outside_of_quotes() {
        for (row, starts, is_open) in [
            ("", &[0][..], false),
            ("a,b", &[0, 2], false),
            (",,", &[0, 1, 2], false),
            ("\"a,b\",c", &[0, 6], false),
            ("\"a\"\",\",c", &[0, 7], false),
            ("\"\",\"\"\"\"", &[0, 3], false),
            ("5\" pipe,\"a\"b\",c", &[0, 8, 14], false),
            ("a,\"b,c", &[0, 2], true),
            ("\u{feff}\"a,b\",c", &[0, 9], false),
            ("a,\"b\nc,\",d", &[0, 2, 9], false),
        ] {
            let fields = RowFields::of(row.as_bytes(), b',');
            assert_eq!(
                (fields.starts.as_slice(), fields.is_open),
                (starts, is_open),
                "{row}"
            );
        }
    }
}
