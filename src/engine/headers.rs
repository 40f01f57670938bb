//! Derives the headers of outputs from the headers of the inputs and from the user's options.

use crate::error::{Error, Result};
use crate::file::PbfFile;
use crate::osm::{Bbox, Edges, parse_timestamp};
use crate::pbf::{HeaderBlock, MAX_HEADER_TEXT_LEN, TextFacts, feature};
use crate::replication::{is_same_server, non_negative_number};
use std::collections::HashSet;

/// A user's instruction for one header field: to set it to a value, to remove it, or to keep the value of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderOption {
    /// The time up to which the data contains all changes, in seconds since 1970.
    ReplicationTimestamp(i64),
    /// The sequence number of the last change file that the data contains.
    ReplicationSequence(i64),
    /// The URL of the server that publishes the change files.
    ReplicationUrl(String),
    /// The source of the data, as free text.
    Source(String),
    /// The name of the writing program.
    Generator(String),
    /// The attribute `upload` of OSM XML, `true` or `false`, for the editor JOSM. PBF does not store it.
    JosmUpload(String),
    /// An optional feature, and whether it is declared.
    Feature(String, bool),
    /// Removes the name of the writing program.
    ClearGenerator,
    /// Removes a field, other than the generator.
    Clear(KeptField),
    /// Keeps the name of the program that wrote the input.
    KeepGenerator,
    /// Keeps the value of a field, other than the generator, from the input. Has no effect with
    /// [`InheritedFields::All`], which keeps all fields.
    Keep(KeptField),
}

/// A header field, other than the generator, whose value can be kept from the input, or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptField {
    /// The field that [`HeaderOption::ReplicationTimestamp`] sets.
    ReplicationTimestamp,
    /// The field that [`HeaderOption::ReplicationSequence`] sets.
    ReplicationSequence,
    /// The field that [`HeaderOption::ReplicationUrl`] sets.
    ReplicationUrl,
    /// The field that [`HeaderOption::Source`] sets.
    Source,
    /// The declaration that objects are in canonical order.
    Order,
    /// The field that [`HeaderOption::JosmUpload`] sets.
    JosmUpload,
}

impl KeptField {
    fn parse(key: &str) -> Option<Self> {
        Some(match key {
            "osmosis_replication_timestamp" => Self::ReplicationTimestamp,
            "osmosis_replication_sequence_number" => Self::ReplicationSequence,
            "osmosis_replication_base_url" => Self::ReplicationUrl,
            "source" => Self::Source,
            "sorting" => Self::Order,
            "xml_josm_upload" => Self::JosmUpload,
            _ => return None,
        })
    }

    /// Removes the field from a header. A removed declaration of the order may come back: the writer checks whether the
    /// objects are in order, and declares the order if they are.
    fn clear(self, header: &mut HeaderBlock) {
        match self {
            Self::ReplicationTimestamp => header.replication_timestamp = None,
            Self::ReplicationSequence => header.replication_sequence = None,
            Self::ReplicationUrl => header.replication_url = None,
            Self::Source => header.source = None,
            Self::Order => header.set_optional(feature::SORTED, false),
            Self::JosmUpload => header.text.josm_upload = None,
        }
    }
}

/// The fields that an output inherits from the header of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InheritedFields {
    /// Outputs inherit all fields.
    #[default]
    All,
    /// Outputs inherit the bounding box and all features, required and optional.
    BboxAndRequired,
    /// Outputs inherit only the features, required and optional.
    Needed,
}

impl HeaderOption {
    /// Parses `KEY=VALUE`; `KEY=`, which removes the field; or `KEY!`, which keeps the value of the input.
    ///
    /// # Errors
    ///
    /// The key is unknown or the value is invalid. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((key, value)) = text.split_once('=') else {
            return match text.strip_suffix('!') {
                Some("generator") => Ok(Self::KeepGenerator),
                Some(key) => KeptField::parse(key).map(Self::Keep).ok_or(format!(
                    "'{key}' is not a header field whose value can be kept"
                )),
                None => Err("expected KEY=VALUE, or KEY! for the value of the input".into()),
            };
        };
        match (value, KeptField::parse(key)) {
            ("", Some(KeptField::Order)) => {}
            ("", Some(field)) => return Ok(Self::Clear(field)),
            ("", None) if key == "generator" => return Ok(Self::ClearGenerator),
            _ => {}
        }
        if text.len() > MAX_HEADER_TEXT_LEN {
            return Err("a header field may not be longer than 64 KiB".into());
        }
        match key {
            "osmosis_replication_timestamp" => parse_timestamp(value)
                .map(Self::ReplicationTimestamp)
                .ok_or(format!("'{value}' is not a time like 2026-11-20T00:00:00Z")),
            "osmosis_replication_sequence_number" => value
                .parse()
                .map(Self::ReplicationSequence)
                .map_err(|_| format!("'{value}' is not a sequence number")),
            "osmosis_replication_base_url" => Ok(Self::ReplicationUrl(value.into())),
            "source" => Ok(Self::Source(value.into())),
            "generator" => Ok(Self::Generator(value.into())),
            "xml_josm_upload" => match value {
                "true" | "false" => Ok(Self::JosmUpload(value.into())),
                _ => Err(format!("xml_josm_upload={value}: expected true or false")),
            },
            "sorting" | feature::SORTED => match value {
                // The writer declares canonical order only if the objects are in order, so the option can only keep
                // this declaration.
                "Type_then_ID" | "true" | "yes" => Ok(Self::Keep(KeptField::Order)),
                _ => Ok(Self::Feature(feature::SORTED.into(), false)),
            },
            _ => match value {
                "true" | "yes" => Ok(Self::Feature(key.into(), true)),
                "false" | "no" => Ok(Self::Feature(key.into(), false)),
                _ => Err(format!(
                    "'{key}' is not a header field: know osmosis_replication_timestamp, \
                     osmosis_replication_sequence_number, osmosis_replication_base_url, source, generator, \
                     xml_josm_upload, \
                     and NAME=true or NAME=false for optional features"
                )),
            },
        }
    }

    fn apply(&self, header: &mut HeaderBlock) {
        match self {
            Self::ReplicationTimestamp(seconds) => {
                header.replication_timestamp = non_negative_number(Some(*seconds));
            }
            Self::ReplicationSequence(number) => {
                header.replication_sequence = non_negative_number(Some(*number))
            }
            Self::ReplicationUrl(url) => header.replication_url = Some(url.clone()),
            Self::Source(source) => header.source = Some(source.clone()),
            Self::Generator(name) => header.writing_program = Some(name.clone()),
            Self::JosmUpload(value) => {
                header.text.josm_upload = Some(value.clone());
            }
            Self::ClearGenerator => header.writing_program = None,
            Self::Clear(field) => field.clear(header),
            Self::KeepGenerator | Self::Keep(_) => {}
            Self::Feature(name, declared) => header.set_optional(name, *declared),
        }
    }
}

/// The user's options for the header of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HeaderOptions {
    /// The name of the writing program; `None` for this program's name and version.
    pub generator: Option<String>,
    /// Other fields to set, in this order. If a field is set twice, the last value counts.
    pub set: Vec<HeaderOption>,
    /// The fields that the output inherits from the input.
    pub inherited: InheritedFields,
    /// The bounding box of the output. `Some(None)` stands for no box, and `None` for the box that the command
    /// determines.
    pub bbox: Option<Option<Bbox>>,
}

impl HeaderOptions {
    /// Removes from `header` the fields that are not inherited, then sets the writing program and the user's fields.
    pub fn apply(&self, header: &mut HeaderBlock) {
        self.remove_uninherited_fields(header);
        if !self.set.contains(&HeaderOption::KeepGenerator) {
            header.writing_program = Some(generator(self.generator.as_deref()));
        }
        self.set.iter().for_each(|option| option.apply(header));
        if let Some(bbox) = self.bbox {
            header.set_bbox(bbox);
            header.text.boxes = bbox.into_iter().collect();
        }
    }

    /// Whether the options may change the replication timestamp or sequence number. They may if they set or remove one
    /// of the two, or do not inherit all fields of the input.
    pub(crate) fn may_change_replication(&self) -> bool {
        self.inherited != InheritedFields::All
            || self.set.iter().any(|option| {
                matches!(
                    option,
                    HeaderOption::ReplicationTimestamp(_)
                        | HeaderOption::ReplicationSequence(_)
                        | HeaderOption::Clear(
                            KeptField::ReplicationTimestamp | KeptField::ReplicationSequence
                        )
                )
            })
    }

    fn remove_uninherited_fields(&self, header: &mut HeaderBlock) {
        if self.inherited == InheritedFields::All {
            return;
        }
        let keeps = |field| self.set.contains(&HeaderOption::Keep(field));
        if self.inherited == InheritedFields::Needed {
            header.bbox_nano = None;
            header.text.boxes.clear();
        }
        header.text.version = None;
        [
            KeptField::JosmUpload,
            KeptField::Source,
            KeptField::ReplicationTimestamp,
            KeptField::ReplicationSequence,
            KeptField::ReplicationUrl,
        ]
        .into_iter()
        .filter(|field| !keeps(*field))
        .for_each(|field| field.clear(header));
    }
}

/// Returns the name of the writing program: `given`, or this program's name and version.
pub(crate) fn generator(given: Option<&str>) -> String {
    given
        .unwrap_or(concat!("pbfhogg/", env!("CARGO_PKG_VERSION")))
        .to_owned()
}

/// Returns the header for an output with the objects of several inputs. The output requires each feature that at least
/// one input requires. Optional features and the source are kept if all inputs agree. Canonical order is declared only
/// if there is a single input and its header declares it. If every input has a bounding box, the output has the box
/// around these boxes. The replication state is the oldest state of the inputs, because the output may lack later
/// changes. A field of the replication state is left out if any input lacks it. If the inputs come from several
/// servers, the URL and the sequence number are left out. Fails if there is no input.
pub(crate) fn merged_header(files: &[PbfFile]) -> Result<HeaderBlock> {
    let (first, rest) = files
        .split_first()
        .ok_or_else(|| Error::Usage("no input file was given".into()))?;
    let mut merged = first.header.clone();
    if !rest.is_empty() {
        merged.text = TextFacts::default();
    }
    for file in rest {
        let other = &file.header;
        for name in &other.required_features {
            merged.set_required(name, true);
        }
        let of_other: HashSet<&String> = other.optional_features.iter().collect();
        merged
            .optional_features
            .retain(|name| of_other.contains(name));
        // A concatenation of sorted files need not be sorted. The writer checks the order of the output, and declares
        // canonical order if it holds.
        merged.set_optional(feature::SORTED, false);
        merged.bbox_nano = match (merged.bbox_nano, other.bbox_nano) {
            (Some(one), Some(other)) => Some(Edges {
                west: one.west.min(other.west),
                south: one.south.min(other.south),
                east: one.east.max(other.east),
                north: one.north.max(other.north),
            }),
            _ => None,
        };
        clear_if_different(&mut merged.source, &other.source);
        keep_older_state(&mut merged, other);
    }
    Ok(merged)
}

/// Returns the header for an output with some of the objects of a file. `header` is the header of the file. `has_nodes`
/// tells whether the output has all nodes of its ways. If it does not, the declaration [`feature::ALL_NODES`] is
/// removed.
pub(crate) fn header_of_part(mut header: HeaderBlock, has_nodes: bool) -> HeaderBlock {
    if !has_nodes {
        header.set_optional(feature::ALL_NODES, false);
    }
    header
}

/// Sets the replication state of `merged` to the older of its own state and that of `other`.
fn keep_older_state(merged: &mut HeaderBlock, other: &HeaderBlock) {
    let older = |one: Option<i64>, other: Option<i64>| Some(one?.min(other?));
    let is_same = match (&merged.replication_url, &other.replication_url) {
        (Some(one), Some(other)) => is_same_server(one, other),
        // If neither header has a URL, equal sequence numbers are assumed to come from the same server.
        (None, None) => merged.replication_sequence == other.replication_sequence,
        _ => false,
    };
    merged.replication_sequence =
        older(merged.replication_sequence, other.replication_sequence).filter(|_| is_same);
    merged.replication_timestamp = older(merged.replication_timestamp, other.replication_timestamp);
    if !is_same {
        merged.replication_url = None;
    }
}

fn clear_if_different<T: PartialEq>(kept: &mut Option<T>, other: &Option<T>) {
    if kept != other {
        *kept = None;
    }
}
