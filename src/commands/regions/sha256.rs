//! SHA-256 checksums, with which clients check the files that they have fetched.

use crate::error::{Error, Result};
use crate::runtime::Context;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Returns the SHA-256 of a file in hexadecimal digits.
pub(super) fn of_file(path: &Path, ctx: &Context) -> Result<String> {
    let failed = |error| Error::io(path, "cannot read", error);
    let mut file = File::open(path).map_err(failed)?;
    let (mut sum, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        ctx.cancellation.check()?;
        match file.read(&mut buffer).map_err(failed)? {
            0 => break,
            len => sum.update(&buffer[..len]),
        }
    }
    let mut text = String::new();
    for byte in sum.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
