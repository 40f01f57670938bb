//! HeaderBlock messages (osmformat.proto), with the features, bounding box and replication state that a file declares.

use crate::error::{FormatError, FormatResult};
use crate::osm::{Bbox, Edges, ceil_e7, floor_e7, nano_of_e7};
use crate::pbf::wire::schema::header_block;
use crate::pbf::wire::{Fields, put_bytes_field, put_sint_field, put_varint_field, zigzag_decode};

/// Names of features in `required_features` and `optional_features`.
pub mod feature {
    /// Required by every file.
    pub const SCHEMA: &str = "OsmSchema-V0.6";
    /// Required if nodes are stored as dense nodes.
    pub const DENSE_NODES: &str = "DenseNodes";
    /// Required if the file has deleted objects or several versions of an object.
    pub const HISTORY: &str = "HistoricalInformation";
    /// Optional. Objects are in canonical order.
    pub const SORTED: &str = "Sort.Type_then_ID";
    /// Optional. Ways carry the coordinates of their nodes.
    pub const LOCATIONS: &str = "LocationsOnWays";
    /// Optional. Used only by this program, together with [`LOCATIONS`]. When locations were added to the ways, no
    /// nodes of ways were omitted from the file.
    pub const ALL_NODES: &str = "pbfhogg.AllNodes";
    /// Optional. Used only by this program, together with [`LOCATIONS`]. When locations were added to the ways, nodes
    /// without tags were omitted from the file, except members of relations.
    pub const NEEDED_NODES: &str = "pbfhogg.NeededNodes";
    /// Optional. Used only by this program, together with [`LOCATIONS`]. The file may lack nodes of its ways, but has
    /// some of the nodes that only ways need. Updates of the file omit no nodes.
    pub const SOME_NODES: &str = "pbfhogg.SomeNodes";
    /// The features that declare which nodes of ways a file has. A file declares at most one of them.
    pub const NODES_OF_WAYS: [&str; 3] = [ALL_NODES, NEEDED_NODES, SOME_NODES];
}

/// The required features that this crate can read.
pub const REQUIRED_FEATURES_KNOWN: [&str; 3] =
    [feature::SCHEMA, feature::DENSE_NODES, feature::HISTORY];

/// The maximum total size in bytes of the encoded features of a header. Real headers declare fewer than ten features,
/// which fit into 200 bytes. Without a limit, a compressed header of a few kilobytes can declare millions of features.
const MAX_FEATURES_LEN: usize = 1 << 16;
/// The maximum size in bytes of a text in a header: the writing program, the source or the URL. Real texts have at most
/// some hundred bytes.
pub(crate) const MAX_HEADER_TEXT_LEN: usize = 1 << 16;
/// The maximum total size in bytes of the unknown fields of a header. These fields are kept in memory, and copied to
/// each output.
const MAX_UNKNOWN_LEN: usize = 1 << 20;
/// The maximum number of bounding boxes of a file in a text format. An editor writes one for each area that it has
/// downloaded.
const MAX_BOXES: usize = 10_000;

/// The number of the field with the table of contents (version 1) or with the pointer to it (later versions).
pub(super) const TOC_FIELD: u32 = 1001;
/// The number of the field with the zeros that pad the header to its reserved length.
pub(super) const PADDING_FIELD: u32 = 1002;
/// The number of the field with the summary of the table of contents.
pub(super) const SUMMARY_FIELD: u32 = 1003;

/// The fields of a HeaderBlock about the table of contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TocFields<'a> {
    /// The table of contents itself (version 1), or the pointer to it (later versions).
    pub toc: Option<&'a [u8]>,
    /// The summary of the table of contents.
    pub summary: Option<&'a [u8]>,
}

/// A HeaderBlock. Fields that this crate does not know are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderBlock {
    /// Field 1: the bounding box in nanodegrees.
    pub bbox_nano: Option<Edges<i64>>,
    /// Field 4: the features that a reader must know to read the file.
    pub required_features: Vec<String>,
    /// Field 5: the features that a reader may use.
    pub optional_features: Vec<String>,
    /// Field 16: the name of the program that wrote the file.
    pub writing_program: Option<String>,
    /// Field 17: the source of the data.
    pub source: Option<String>,
    /// Field 32: the time of the replication state, in seconds since 1970.
    pub replication_timestamp: Option<i64>,
    /// Field 33: the sequence number of the replication state.
    pub replication_sequence: Option<i64>,
    /// Field 34: the base URL of the replication server.
    pub replication_url: Option<String>,
    /// Facts from the header of an input in a text format. Outputs in text formats keep them.
    pub(crate) text: TextFacts,
    /// Whether this is the header of a temporary file to which an input in a text format was converted.
    pub(crate) is_converted: bool,
    /// All other fields, encoded, except the table of contents, its summary and the padding.
    unknown: Vec<u8>,
}

/// Facts from the header of a file in a text format. A PBF file cannot store them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TextFacts {
    /// The bounding boxes. A file in a text format may have several; PBF stores the box around all of them.
    pub boxes: Vec<Bbox>,
    /// The attribute `upload` of the root element, which the editor JOSM reads.
    pub josm_upload: Option<String>,
    /// The attribute `version` of the root element.
    pub version: Option<String>,
    /// Whether the format is only for change files.
    pub is_change: bool,
    /// Whether the format is only for data. OPL is for data and for changes, so neither flag is set for OPL.
    pub is_data: bool,
}

impl TextFacts {
    /// Adds a bounding box. If there are [`MAX_BOXES`] boxes, enlarges the last one instead.
    pub(crate) fn add_box(&mut self, bbox: Bbox) {
        let is_full = self.boxes.len() >= MAX_BOXES;
        match self.boxes.last_mut().filter(|_| is_full) {
            Some(last) => *last = last.union(&bbox),
            None => self.boxes.push(bbox),
        }
    }
}

/// Returns the value of a replication field, or `None` if it is negative. Some writers store -1 for an unknown value.
fn replication_value(value: u64) -> Option<i64> {
    i64::try_from(value).ok()
}

impl HeaderBlock {
    /// Reads a HeaderBlock, and finds its fields about the table of contents.
    ///
    /// Fails if the header requires a feature that this crate does not know. Also fails if the features, a text or the
    /// unknown fields are longer than in any real header. A required feature that is declared several times is kept
    /// once.
    pub(crate) fn parse(message: &[u8]) -> FormatResult<(Self, TocFields<'_>)> {
        check_message_limits(message).map_err(|error| error.within("HeaderBlock"))?;
        let (mut header, mut about_toc) = (Self::default(), TocFields::default());
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("HeaderBlock"))? {
            match field.number {
                header_block::BBOX => header.bbox_nano = Some(parse_bbox(field.bytes()?)?),
                header_block::REQUIRED_FEATURES => {
                    let name = field.text()?;
                    check_required_feature(name)?;
                    header.set_required(name, true);
                }
                header_block::OPTIONAL_FEATURES => {
                    header.optional_features.push(field.text()?.to_owned())
                }
                header_block::WRITINGPROGRAM => {
                    header.writing_program = Some(field.text()?.to_owned())
                }
                header_block::SOURCE => header.source = Some(field.text()?.to_owned()),
                header_block::REPLICATION_TIMESTAMP => {
                    header.replication_timestamp = replication_value(field.varint()?)
                }
                header_block::REPLICATION_SEQUENCE_NUMBER => {
                    header.replication_sequence = replication_value(field.varint()?)
                }
                header_block::REPLICATION_BASE_URL => {
                    header.replication_url = Some(field.text()?.to_owned())
                }
                TOC_FIELD => about_toc.toc = Some(field.bytes()?),
                SUMMARY_FIELD => about_toc.summary = Some(field.bytes()?),
                PADDING_FIELD => {}
                _ => header.unknown.extend_from_slice(field.raw),
            }
        }
        Ok((header, about_toc))
    }

    /// Fails if [`parse`](Self::parse) would refuse the header because of the length of its features, texts or unknown
    /// fields.
    pub(crate) fn check_limits(&self) -> FormatResult<()> {
        let mut message = Vec::new();
        self.encode(&mut message);
        check_message_limits(&message)
    }

    /// Returns a header for a file with objects. It requires only features that every reader knows.
    pub fn for_objects() -> Self {
        let mut header = Self::default();
        header.set_required(feature::SCHEMA, true);
        header.set_required(feature::DENSE_NODES, true);
        header
    }

    /// Appends the message, without a table of contents, a summary and padding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(edges) = self.bbox_nano {
            let mut bbox = Vec::new();
            let fields = [edges.west, edges.east, edges.north, edges.south];
            for (number, value) in (1..).zip(fields) {
                put_sint_field(&mut bbox, number, value);
            }
            put_bytes_field(out, header_block::BBOX, &bbox);
        }
        let texts = [
            (header_block::REQUIRED_FEATURES, &self.required_features),
            (header_block::OPTIONAL_FEATURES, &self.optional_features),
        ];
        for (number, names) in texts {
            names
                .iter()
                .for_each(|name| put_bytes_field(out, number, name.as_bytes()));
        }
        for (number, text) in [
            (header_block::WRITINGPROGRAM, &self.writing_program),
            (header_block::SOURCE, &self.source),
        ] {
            if let Some(text) = text {
                put_bytes_field(out, number, text.as_bytes());
            }
        }
        for (number, value) in [
            (
                header_block::REPLICATION_TIMESTAMP,
                self.replication_timestamp,
            ),
            (
                header_block::REPLICATION_SEQUENCE_NUMBER,
                self.replication_sequence,
            ),
        ] {
            if let Some(value) = value {
                put_varint_field(out, number, value as u64);
            }
        }
        if let Some(url) = &self.replication_url {
            put_bytes_field(out, header_block::REPLICATION_BASE_URL, url.as_bytes());
        }
        out.extend_from_slice(&self.unknown);
    }

    /// Whether the header has the sequence number or the time of the replication state.
    pub fn has_replication(&self) -> bool {
        self.replication_sequence.is_some() || self.replication_timestamp.is_some()
    }

    /// Whether `name` is declared as an optional or required feature.
    pub fn has(&self, name: &str) -> bool {
        self.required_features
            .iter()
            .chain(&self.optional_features)
            .any(|found| found == name)
    }

    /// Declares the feature [`feature::LOCATIONS`] and, of [`feature::NODES_OF_WAYS`], only the feature `nodes`. If
    /// `nodes` is `None`, declares none of these features.
    pub(crate) fn declare_locations(&mut self, nodes: Option<&str>) {
        self.set_optional(feature::LOCATIONS, nodes.is_some());
        for kind in feature::NODES_OF_WAYS {
            self.set_optional(kind, nodes == Some(kind));
        }
    }

    /// Declares the optional feature `name`, or removes the declaration.
    pub fn set_optional(&mut self, name: &str, declared: bool) {
        set_feature_declared(&mut self.optional_features, name, declared);
    }

    /// Declares the required feature `name`, or removes the declaration.
    pub fn set_required(&mut self, name: &str, declared: bool) {
        set_feature_declared(&mut self.required_features, name, declared);
    }

    /// Returns the bounding box in decimicro degrees (1e-7 degree), rounded outwards; `None` if the header has no
    /// bounding box, or if an edge exceeds 32 bits.
    pub fn bbox(&self) -> Option<Bbox> {
        let edges = self.bbox_nano?;
        let down = |nano| i32::try_from(floor_e7(nano)).ok();
        let up = |nano| i32::try_from(ceil_e7(nano)).ok();
        Some(Bbox {
            min_lat_e7: down(edges.south)?,
            max_lat_e7: up(edges.north)?,
            min_lon_e7: down(edges.west)?,
            max_lon_e7: up(edges.east)?,
        })
    }

    /// Sets the bounding box, or removes it if `bbox` is `None`.
    pub fn set_bbox(&mut self, bbox: Option<Bbox>) {
        self.text.boxes.clear();
        self.bbox_nano = bbox.map(|bbox| bbox.edges_e7().map(nano_of_e7));
    }
}

/// Fails on a required feature that this crate does not know.
fn check_required_feature(name: &str) -> FormatResult<()> {
    if REQUIRED_FEATURES_KNOWN.contains(&name) {
        Ok(())
    } else {
        Err(FormatError::with(format!(
            "the file requires the feature \"{name}\", which this program does not know"
        )))
    }
}

/// Fails if the features of a HeaderBlock, one of its texts or its unknown fields exceed their limits.
fn check_message_limits(message: &[u8]) -> FormatResult<()> {
    let (mut features, mut unknown) = (0, 0);
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next()? {
        match field.number {
            header_block::REQUIRED_FEATURES | header_block::OPTIONAL_FEATURES => {
                features += field.raw.len();
            }
            header_block::WRITINGPROGRAM
            | header_block::SOURCE
            | header_block::REPLICATION_BASE_URL => check_text_len(field.bytes()?)?,
            header_block::BBOX
            | header_block::REPLICATION_TIMESTAMP
            | header_block::REPLICATION_SEQUENCE_NUMBER
            | TOC_FIELD
            | SUMMARY_FIELD
            | PADDING_FIELD => {}
            _ => unknown += field.raw.len(),
        }
        if features > MAX_FEATURES_LEN {
            return Err(FormatError::new(
                "its features take more than 64 KiB, which no real file needs",
            ));
        }
        if unknown > MAX_UNKNOWN_LEN {
            return Err(FormatError::new(
                "its unknown fields take more than 1 MiB, which no real file needs",
            ));
        }
    }
    Ok(())
}

fn check_text_len(text: &[u8]) -> FormatResult<()> {
    if text.len() <= MAX_HEADER_TEXT_LEN {
        Ok(())
    } else {
        Err(FormatError::new("a text in it is longer than 64 KiB"))
    }
}

fn set_feature_declared(names: &mut Vec<String>, name: &str, declared: bool) {
    if !declared {
        names.retain(|found| found != name);
    } else if !names.iter().any(|found| found == name) {
        names.push(name.to_owned());
    }
}

/// Reads the edges of a HeaderBBox in nanodegrees. Fails if an edge lies outside ±360 degrees.
fn parse_bbox(message: &[u8]) -> FormatResult<Edges<i64>> {
    let mut edges = [0; 4];
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next().map_err(|error| error.within("HeaderBBox"))? {
        if let Some(edge) = edges.get_mut((field.number as usize).wrapping_sub(1)) {
            *edge = zigzag_decode(field.varint()?);
        }
    }
    if edges
        .iter()
        .any(|edge| edge.unsigned_abs() > 360_000_000_000)
    {
        return Err(FormatError::new(
            "HeaderBBox: an edge lies outside ±360 degrees",
        ));
    }
    let [west, east, north, south] = edges;
    Ok(Edges {
        west,
        south,
        east,
        north,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_keeps_unknown_fields_and_features() {
        let mut header = HeaderBlock {
            bbox_nano: Some(Edges {
                west: -1,
                south: -4,
                east: 2,
                north: 3,
            }),
            required_features: vec![feature::SCHEMA.into()],
            optional_features: vec!["Custom".into()],
            writing_program: Some("x".into()),
            replication_sequence: Some(7),
            ..HeaderBlock::default()
        };
        put_bytes_field(&mut header.unknown, 77, b"kept");
        let mut message = Vec::new();
        header.encode(&mut message);
        put_bytes_field(&mut message, TOC_FIELD, b"table");
        put_bytes_field(&mut message, PADDING_FIELD, &[0; 9]);
        put_bytes_field(&mut message, SUMMARY_FIELD, b"sum");
        let about_toc = TocFields {
            toc: Some(b"table"),
            summary: Some(b"sum"),
        };
        assert_eq!(HeaderBlock::parse(&message).unwrap(), (header, about_toc));
    }

    #[test]
    fn negative_replication_values_are_read_as_unknown() {
        let header = HeaderBlock {
            replication_sequence: Some(-1),
            replication_timestamp: Some(-1),
            ..HeaderBlock::default()
        };
        let mut message = Vec::new();
        header.encode(&mut message);
        let (read, _) = HeaderBlock::parse(&message).unwrap();
        assert!(message.len() > 20 && read == HeaderBlock::default());
    }

    #[test]
    fn an_error_names_an_unknown_required_feature() {
        let mut message = Vec::new();
        put_bytes_field(&mut message, 4, b"Teleport-V2");
        assert!(
            HeaderBlock::parse(&message)
                .unwrap_err()
                .to_string()
                .contains("Teleport-V2")
        );
    }

    #[test]
    fn a_header_beyond_its_length_limits_is_refused() {
        let encoded = |number: u32, text: &[u8], times: usize| {
            let mut message = Vec::new();
            for _ in 0..times {
                put_bytes_field(&mut message, number, text);
            }
            message
        };
        let long = vec![b'x'; MAX_HEADER_TEXT_LEN];
        for (number, text, times) in [
            (
                header_block::OPTIONAL_FEATURES,
                &b""[..],
                MAX_FEATURES_LEN / 2,
            ),
            (header_block::SOURCE, &long[..], 3),
            (77, &long[..1000], 1000),
            (
                header_block::REQUIRED_FEATURES,
                feature::SCHEMA.as_bytes(),
                4000,
            ),
        ] {
            let message = encoded(number, text, times);
            let (header, _) = HeaderBlock::parse(&message).unwrap();
            assert!(header.required_features.len() < 2);
            header.check_limits().unwrap();
            let mut longer = encoded(number, text, times * 2);
            longer.extend(encoded(number, &[text, b"y"].concat(), 1));
            let error = HeaderBlock::parse(&longer).unwrap_err().to_string();
            assert!(
                error.contains("64 KiB") || error.contains("1 MiB"),
                "{error}"
            );
        }
        let mut header = HeaderBlock::default();
        header.set_optional(&"x".repeat(MAX_FEATURES_LEN), true);
        header.check_limits().unwrap_err();
    }

    #[test]
    fn further_boxes_enlarge_the_last_one() {
        let mut facts = TextFacts::default();
        for edge in 0..MAX_BOXES as i32 + 5 {
            let mut bbox = Bbox::EMPTY;
            bbox.add(edge, edge);
            facts.add_box(bbox);
        }
        let last = facts.boxes[MAX_BOXES - 1];
        assert_eq!(facts.boxes.len(), MAX_BOXES);
        assert_eq!(
            (last.min_lat_e7, last.max_lat_e7),
            (MAX_BOXES as i32 - 1, MAX_BOXES as i32 + 4)
        );
    }

    #[test]
    fn the_box_in_decimicro_degrees_is_rounded_outwards() {
        let header = HeaderBlock {
            bbox_nano: Some(Edges {
                west: -150,
                south: 50,
                east: 150,
                north: 250,
            }),
            ..Default::default()
        };
        let expected = Bbox {
            min_lat_e7: 0,
            max_lat_e7: 3,
            min_lon_e7: -2,
            max_lon_e7: 2,
        };
        assert_eq!(header.bbox(), Some(expected));
    }
}
