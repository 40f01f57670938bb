//! Recognizes the files of tables that this program has written.

use crate::system::{read_at, read_exact_at};
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

/// The bytes at both ends of a Parquet file.
const MAGIC: &[u8] = b"PAR1";
/// The start of `created_by` in the footer of a file that this program has written.
const AUTHOR: &[u8] = b"pbfhogg version ";
/// The number of bytes at the end of a file that are searched for `created_by`. In the footer, only the column orders
/// follow `created_by`.
const TAIL_LEN: u64 = 1 << 16;

/// Whether an open file is a part of a table that this program has written. Checks the footer, and `path`, which is
/// relative to the directory of the table. Returns `false` if the file cannot be read.
pub(crate) fn is_part(path: &Path, file: &File) -> bool {
    is_part_path(path) && is_own_parquet_file(file).unwrap_or(false)
}

/// The partition keys in the names of directories that this program writes, and `geometry`, which earlier versions
/// wrote.
const KEYS: [&str; 6] = [
    "geometry_type",
    "theme",
    "quadkey",
    "h3",
    "type",
    "geometry",
];

/// Whether a path names a part of a table, such as `geometry_type=point/part-0000.parquet`.
fn is_part_path(path: &Path) -> bool {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let Some((name, directories)) = names.split_last() else {
        return false;
    };
    let has_key = |directory: &Cow<'_, str>| {
        let key = directory.split_once('=').map(|(key, _)| key);
        key.is_some_and(|key| KEYS.contains(&key))
    };
    let number = name
        .strip_prefix("part-")
        .and_then(|name| name.strip_suffix(".parquet"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    directories.iter().all(has_key) && number.is_some_and(is_number)
}

/// Whether an open file is an augmented diff that this program has written. Decides this by the column names in the
/// metadata of the footer. Returns `false` if the file cannot be read.
pub(crate) fn is_action_table(file: &File) -> bool {
    read_own_tail(file)
        .is_ok_and(|tail| tail.is_some_and(|tail| contains_text(&tail, b"\"old_geometry\"")))
}

/// Whether a file is a Parquet file that this program has written.
fn is_own_parquet_file(file: &File) -> std::io::Result<bool> {
    Ok(read_own_tail(file)?.is_some())
}

fn contains_text(bytes: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(bytes, text).is_some()
}

/// Returns the end of a file; `None` if it is not a Parquet file that this program has written.
fn read_own_tail(file: &File) -> std::io::Result<Option<Vec<u8>>> {
    let mut start = [0; MAGIC.len()];
    read_exact_at(file, &mut start, 0)?;
    let len = file.metadata()?.len();
    let from = len.saturating_sub(TAIL_LEN);
    let mut tail = vec![0; (len - from) as usize];
    let read = read_at(file, &mut tail, from)?;
    tail.truncate(read);
    let is_own = start == MAGIC && tail.ends_with(MAGIC) && contains_text(&tail, AUTHOR);
    Ok(is_own.then_some(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_by_its_name_and_its_footer() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("part");
        let is = |name: &str, bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            is_part(Path::new(name), &File::open(&path).unwrap())
        };
        let good = b"PAR1...pbfhogg version 1.2PAR1";
        assert!(is("geometry_type=point/part-0000.parquet", good));
        assert!(is("geometry=point/part-0000.parquet", good));
        assert!(is("type=node/part-10000.parquet", good));
        assert!(is("part-0000.parquet", good));
        assert!(is("theme=roads/quadkey=0231/part-0000.parquet", good));
        for name in [
            "geometry=point/part-.parquet",
            "geometry=point/part-0000.parquet.crc",
            "notes/part-0000.parquet",
            "geometry=point/a/part-0000.parquet",
        ] {
            assert!(!is(name, good), "{name}");
        }
        for bytes in [
            &b"PAR1...another version 1.2PAR1"[..],
            b"PAR1...pbfhogg version 1.2",
            b"...pbfhogg version 1.2PAR1",
            b"PA",
            b"",
        ] {
            assert!(!is("type=way/part-0000.parquet", bytes));
        }
    }
}
