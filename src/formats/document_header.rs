//! The header of a text file.

use crate::pbf::{HeaderBlock, TextFacts};

/// A replication state: the number of the last change file in the data, and the time up to which the data is complete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replication {
    /// Sequence number of the last change file that the data contains.
    pub sequence: Option<i64>,
    /// Time up to which the data contains all changes, in seconds since 1970.
    pub timestamp: Option<i64>,
}

/// The header of a text file: the attributes of its root element, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentHeader {
    /// The replication state of the data.
    pub replication: Replication,
    /// For a change file: the replication state before its changes, if the header gives it.
    pub previous: Replication,
    /// The URL from which change files for the data can be downloaded.
    pub replication_url: Option<String>,
    /// The name of the program that wrote the file.
    pub generator: Option<String>,
    /// The facts that the header of a PBF file cannot store.
    pub(crate) text: TextFacts,
}

impl Replication {
    /// Keeps the larger sequence number and the later time of two states.
    pub(super) fn add(&mut self, other: &Self) {
        self.sequence = other.sequence.max(self.sequence);
        self.timestamp = other.timestamp.max(self.timestamp);
    }

    /// Whether neither the sequence number nor the time is known.
    pub(crate) const fn is_unknown(&self) -> bool {
        self.sequence.is_none() && self.timestamp.is_none()
    }
}

impl DocumentHeader {
    /// Converts the header of a PBF file to a document header.
    pub fn of(header: &HeaderBlock) -> Self {
        Self {
            replication: Replication {
                sequence: header.replication_sequence,
                timestamp: header.replication_timestamp,
            },
            previous: Replication::default(),
            replication_url: header.replication_url.clone(),
            generator: header.writing_program.clone(),
            text: if !header.text.boxes.is_empty() {
                header.text.clone()
            } else {
                TextFacts {
                    boxes: header.bbox().into_iter().collect(),
                    ..header.text.clone()
                }
            },
        }
    }

    /// Adds the replication states and the URL of another header of the same file.
    pub(super) fn add_replication(&mut self, other: &Self) {
        self.replication.add(&other.replication);
        self.previous.add(&other.previous);
        if other.replication_url.is_some() {
            self.replication_url.clone_from(&other.replication_url);
        }
    }

    /// Adds the header of another file. The result has the larger sequence number, the later time, and the boxes of
    /// both headers. For every other field, the value of this header takes precedence.
    pub(super) fn add(&mut self, other: Self) {
        self.replication.add(&other.replication);
        self.replication_url = self.replication_url.take().or(other.replication_url);
        self.generator = self.generator.take().or(other.generator);
        for bbox in other.text.boxes {
            self.text.add_box(bbox);
        }
        self.text.josm_upload = self.text.josm_upload.take().or(other.text.josm_upload);
        self.text.version = self.text.version.take().or(other.text.version);
    }
}
