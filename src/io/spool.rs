//! Bytes that are held in memory up to a limit, and in a temporary file beyond that limit.

use super::output_target::ScratchFile;
use crate::error::{Error, FileResult, Result};
use crate::system;
use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A store of byte strings, which are called pieces. Each piece is read by its number. Pieces do not change.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    limit: usize,
    in_memory: usize,
    pieces: Vec<StoredPiece>,
    /// The temporary file and its length; `None` if all pieces are in memory.
    file: Option<(File, u64)>,
    directory: PathBuf,
}

#[derive(Debug)]
enum StoredPiece {
    Memory(Box<[u8]>),
    File { offset: u64 },
}

impl Spool {
    /// Creates a spool without pieces, which holds up to `limit` bytes in memory. If there are more, a temporary file
    /// is created in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> Self {
        Self {
            limit,
            directory: directory.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a piece, and returns its number.
    pub(crate) fn add(&mut self, bytes: Vec<u8>) -> Result<usize> {
        let place = if self.in_memory + bytes.len() <= self.limit {
            self.in_memory += bytes.len();
            StoredPiece::Memory(bytes.into_boxed_slice())
        } else {
            self.write(&bytes)?
        };
        self.pieces.push(place);
        Ok(self.pieces.len() - 1)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<StoredPiece> {
        let (file, end) = match &mut self.file {
            Some(file) => file,
            None => {
                let file = ScratchFile::create(&self.directory)?.open()?;
                self.file.insert((file, 0))
            }
        };
        let offset = *end;
        system::write_at(file, bytes, offset)
            .for_path(&self.directory, "cannot write a temporary file")?;
        *end += bytes.len() as u64;
        Ok(StoredPiece::File { offset })
    }

    /// Reads a range of a piece.
    pub(crate) fn read(&self, piece: usize, range: Range<usize>) -> Result<Cow<'_, [u8]>> {
        match (&self.pieces[piece], &self.file) {
            (StoredPiece::Memory(bytes), _) => Ok(bytes[range].into()),
            (StoredPiece::File { offset }, Some((file, _))) => {
                let mut bytes = vec![0; range.len()];
                system::read_exact_at(file, &mut bytes, offset + range.start as u64)
                    .for_path(&self.directory, "cannot read a temporary file")?;
                Ok(bytes.into())
            }
            (StoredPiece::File { .. }, None) => Err(Error::internal("no temporary file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_round_trip_in_memory_and_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(250, directory.path());
        let pieces: Vec<Vec<u8>> = (0..10).map(|number| vec![number; 100]).collect();
        for (number, piece) in pieces.iter().enumerate() {
            assert_eq!(spool.add(piece.clone()).unwrap(), number);
        }
        assert!(spool.file.as_ref().is_some_and(|(_, len)| *len == 800));
        for (number, piece) in pieces.iter().enumerate() {
            assert_eq!(*spool.read(number, 30..70).unwrap(), piece[30..70]);
        }
    }
}
