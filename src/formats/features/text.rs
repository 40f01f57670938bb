//! A buffer of features as text, in any format.

use super::feature_id::FeatureId;
use super::options::{FeatureFormat, FeatureOptions, UniqueId};
use super::{Feature, csv, geojson, postgres, wkt};
use crate::error::{Error, Result};
use crate::formats::csv::CsvText;
use crate::formats::numbers::TimeFormatter;
use crate::formats::text_buffer::TextBuffer;
use crate::formats::{EncodedText, TextEncoder};
use std::io;
use std::ops::Range;

/// A buffer of consecutive features as text. Each worker has its own.
pub(crate) struct FeatureText {
    options: FeatureOptions,
    text: TextBuffer,
    times: TimeFormatter,
    /// The row of a feature, in the format CSV.
    csv: CsvText,
    encoder: TextEncoder,
    /// The positions at which the numbers of features are inserted into the text later.
    numbers: Vec<usize>,
    features: u64,
    /// Text that was taken from the buffer, and is handed out in pieces because it is long.
    long: Option<LongText>,
}

/// Consecutive features as text, or a piece of a long text. A GeoJSON feature collection needs a separator between two
/// chunks, unless the second one continues the first one.
pub(crate) struct FeatureChunk {
    pub(super) text: ChunkText,
    /// The number of features that are attributed to this chunk: 0 for most pieces of a long text.
    pub(crate) features: u64,
    /// Whether the chunk continues the text of the previous chunk.
    pub(super) is_continued: bool,
}

/// The text of a chunk.
pub(super) enum ChunkText {
    /// Text that is encoded for the output.
    Encoded(EncodedText),
    /// Text without the numbers of its features, and the positions at which the numbers are inserted later.
    Numbered(String, Vec<usize>),
}

/// The size in bytes of the pieces of a long text. The last piece may be nearly twice as long.
const PIECE: usize = 1 << 20;

/// The text of long features. It is handed out in pieces to limit the memory: many chunks may wait to be written, and a
/// single feature may have 100 MB.
struct LongText {
    text: String,
    /// The positions at which the numbers of features are inserted.
    numbers: Vec<usize>,
    /// The number of features that are not attributed to a piece yet.
    features: u64,
    /// The number of bytes that were handed out.
    taken: usize,
}

impl LongText {
    /// Takes the next piece, and returns its range in the text.
    fn next_piece(&mut self) -> Range<usize> {
        let start = self.taken;
        let mut end = self.text.len();
        if end - start >= 2 * PIECE {
            end = start + PIECE;
            while !self.text.is_char_boundary(end) {
                end += 1;
            }
        }
        self.taken = end;
        start..end
    }

    /// Returns the positions of numbers in a piece.
    fn number_positions(&self, range: &Range<usize>) -> Vec<usize> {
        let numbers = self.numbers.iter().filter(|at| range.contains(at));
        numbers.map(|at| at - range.start).collect()
    }
}

impl FeatureText {
    pub(crate) fn new(options: &FeatureOptions) -> Self {
        Self {
            options: options.clone(),
            text: TextBuffer::new(),
            times: TimeFormatter::new(),
            csv: CsvText::new(),
            encoder: TextEncoder::new(options.compression),
            numbers: Vec::new(),
            features: 0,
            long: None,
        }
    }

    /// Counts the next feature, and separates it from the one before.
    fn begin_feature(&mut self) {
        self.features += 1;
        if self.features > 1 {
            let [_, separator, _] = self.options.format.prologue_separator_epilogue();
            self.text.push_str(separator);
        }
    }

    /// Appends a feature.
    pub(crate) fn put(&mut self, feature: &Feature<'_>) {
        self.begin_feature();
        let (text, attributes) = (&mut self.text, &self.options.attributes);
        let id = match self.options.unique_id {
            UniqueId::None => None,
            UniqueId::Counter => Some(FeatureId::Number(&mut self.numbers)),
            UniqueId::TypeAndId => Some(FeatureId::TypeAndId),
        };
        match self.options.format {
            FeatureFormat::GeoJson => geojson::put_feature(text, feature, attributes, id),
            FeatureFormat::GeoJsonSeq {
                has_record_separator,
            } => {
                if has_record_separator {
                    text.push('\u{1e}');
                }
                geojson::put_feature(text, feature, attributes, id);
                text.push('\n');
            }
            FeatureFormat::Text => wkt::put_line(text, feature, attributes, id),
            FeatureFormat::Postgres { tags } => {
                postgres::put_row(text, &mut self.times, feature, attributes, tags, id);
            }
            FeatureFormat::Csv { .. } => {
                csv::put_row(text, &mut self.csv, feature, &self.options, id);
            }
        }
    }

    /// Appends a feature to `out`, as a row for [`add_row`](Self::add_row). `self` must be empty before the call, and
    /// is empty after it.
    pub(crate) fn encode_row(&mut self, out: &mut Vec<u8>, feature: &Feature<'_>) {
        self.put(feature);
        // The number of a feature is inserted near the start of its text, so the position fits in 32 bits. `u32::MAX`
        // means that no number is inserted.
        let number = self.numbers.pop().map_or(u32::MAX, |at| at as u32);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(self.text.bytes());
        self.text.truncate(0);
        self.features = 0;
    }

    /// Appends the feature in a row from [`encode_row`](Self::encode_row).
    pub(crate) fn add_row(&mut self, row: &[u8]) -> Result<()> {
        let broken = || Error::internal("the row of a feature is broken");
        let (number, text) = row.split_first_chunk().ok_or_else(broken)?;
        let text = std::str::from_utf8(text).map_err(|_| broken())?;
        self.begin_feature();
        let number = u32::from_le_bytes(*number);
        if number != u32::MAX {
            self.numbers.push(self.text.len() + number as usize);
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Returns the length in bytes of the text that [`take`](Self::take) has not returned yet.
    pub(crate) fn len(&self) -> usize {
        let left = |long: &LongText| long.text.len() - long.taken;
        self.text.len() + self.long.as_ref().map_or(0, left)
    }

    /// Encodes the text in the buffer, and empties the buffer. A long text is returned by several calls. Returns `None`
    /// if no feature is left.
    pub(crate) fn take(&mut self) -> io::Result<Option<FeatureChunk>> {
        if let Some(piece) = self.encode_next_piece()? {
            return Ok(Some(piece));
        }
        if self.text.len() >= 2 * PIECE {
            self.long = Some(LongText {
                text: self.text.take(),
                numbers: std::mem::take(&mut self.numbers),
                features: std::mem::take(&mut self.features),
                taken: 0,
            });
            return self.encode_next_piece();
        }
        let features = std::mem::take(&mut self.features);
        if features == 0 {
            return Ok(None);
        }
        // The next chunk will probably be about as long as this one, so its buffer gets slightly more capacity than
        // this one needs.
        let space = TextBuffer::with_capacity(self.text.len() + self.text.len() / 8);
        let mut text = std::mem::replace(&mut self.text, space);
        let text = match self.options.unique_id {
            UniqueId::Counter => {
                ChunkText::Numbered(text.take(), std::mem::take(&mut self.numbers))
            }
            UniqueId::None | UniqueId::TypeAndId => ChunkText::Encoded(self.encoder.encode(text)?),
        };
        Ok(Some(FeatureChunk {
            text,
            features,
            is_continued: false,
        }))
    }

    /// Encodes the next piece of a long text. Returns `None` if there is no long text.
    fn encode_next_piece(&mut self) -> io::Result<Option<FeatureChunk>> {
        let Some(long) = &mut self.long else {
            return Ok(None);
        };
        let range = long.next_piece();
        let piece = &long.text[range.clone()];
        let (text, features) = match self.options.unique_id {
            // A feature is counted in the piece that contains the position of its number.
            UniqueId::Counter => {
                let numbers = long.number_positions(&range);
                let features = numbers.len() as u64;
                (ChunkText::Numbered(piece.to_owned(), numbers), features)
            }
            UniqueId::None | UniqueId::TypeAndId => {
                let encoded = self.encoder.encode(piece)?;
                let features = std::mem::take(&mut long.features);
                (ChunkText::Encoded(encoded), features)
            }
        };
        if long.taken == long.text.len() {
            self.long = None;
        }
        Ok(Some(FeatureChunk {
            text,
            features,
            is_continued: range.start > 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::features::Geometry;
    use crate::geometry::Point;
    use crate::osm::ObjectKind;
    use crate::pbf::Info;

    fn point(at: i32) -> Point {
        Point::new(at, -at)
    }

    /// Returns the sizes of all chunks of three features, and the text of all chunks together. The second feature has
    /// `len` points.
    fn chunk_sizes_and_text(options: &FeatureOptions, len: i32) -> (Vec<usize>, String) {
        let (mut buffer, mut sizes, mut all) =
            (FeatureText::new(options), Vec::new(), String::new());
        let line: Vec<Point> = (0..len).map(point).collect();
        for (id, geometry) in [
            (1, Geometry::Point(point(1))),
            (2, Geometry::LineString(&line)),
            (3, Geometry::Point(point(3))),
        ] {
            buffer.put(&Feature {
                kind: ObjectKind::Node,
                id,
                info: Info::default(),
                tags: &[("name", "ä")],
                way_nodes: None,
                geometry,
            });
        }
        let mut features = 0;
        while let Some(chunk) = buffer.take().unwrap() {
            assert_eq!(chunk.is_continued, !sizes.is_empty());
            match chunk.text {
                ChunkText::Encoded(text) => {
                    sizes.push(text.bytes.len());
                    all.push_str(std::str::from_utf8(&text.bytes).unwrap());
                }
                ChunkText::Numbered(text, positions) => {
                    sizes.push(text.len());
                    let mut start = 0;
                    for (number, at) in (features + 1..).zip(&positions) {
                        all.push_str(&format!("{}{number}", &text[start..*at]));
                        start = *at;
                    }
                    all.push_str(&text[start..]);
                }
            }
            features += chunk.features;
        }
        assert_eq!((features, buffer.len()), (3, 0));
        (sizes, all)
    }

    #[test]
    fn a_long_feature_is_handed_out_in_pieces() {
        for unique_id in [UniqueId::None, UniqueId::Counter] {
            let options = FeatureOptions {
                unique_id,
                ..FeatureOptions::new(FeatureFormat::GeoJson)
            };
            let (few, short) = chunk_sizes_and_text(&options, 10);
            assert_eq!(few.len(), 1);
            let (many, long) = chunk_sizes_and_text(&options, 300_000);
            assert!(many.len() > 3 && many.iter().all(|size| *size < 2 * PIECE));
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
            let (short, long) = (lines(&short), lines(&long));
            assert_eq!((short.len(), long.len()), (3, 3));
            assert_eq!((&short[0], &short[2]), (&long[0], &long[2]));
            let parsed: serde_json::Value =
                serde_json::from_str(long[1].trim_end_matches(',')).unwrap();
            let points = &parsed["geometry"]["coordinates"];
            assert_eq!(points.as_array().unwrap().len(), 300_000);
        }
    }
}
