//! Reading the attributes of OSM XML elements, including those of the root element.

use super::document_header::DocumentHeader;
use super::xml_cause;
use crate::osm::{parse_stored_e7, parse_timestamp};
use crate::pbf::MAX_HEADER_TEXT_LEN;
use crate::replication::non_negative_number;
use quick_xml::XmlVersion;
use quick_xml::events::BytesStart;
use std::borrow::Cow;

/// Fails unless the root element declares version 0.6 of the format.
pub(super) fn check_version(root: &str, header: &DocumentHeader) -> Result<(), String> {
    match header.text.version.as_deref() {
        Some("0.6") => Ok(()),
        Some(other) => Err(format!(
            "<{root}> has version '{}': only version 0.6 is known",
            other.escape_debug()
        )),
        None => Err(format!(
            "<{root}> has no version: only version 0.6 is known"
        )),
    }
}

/// Calls `visit` with the name and the value of each attribute. Entities and character references are decoded.
pub(super) fn for_each_attribute(
    element: &BytesStart<'_>,
    mut visit: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| xml_cause::attribute_error_message(&error))?;
        let key: &str = attribute.key.as_ref();
        if attribute.value.contains('<') {
            return Err(format!("attribute {key}: there is < in its value"));
        }
        let value: Cow<'_, str> = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| {
                format!(
                    "attribute {key}: {}",
                    xml_cause::markup_error_message(&error)
                )
            })?;
        visit(key, &value)?;
    }
    Ok(())
}

pub(super) fn parse_number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{key}=\"{value}\" is not a number in range"))
}

/// Parses a latitude or a longitude in degrees, and returns it in 1e-7 degree. The value need not be on earth.
pub(super) fn parse_degrees(key: &str, value: &str) -> Result<i32, String> {
    parse_stored_e7(value).map_err(|cause| format!("{key}=\"{value}\" {cause}"))
}

pub(super) fn parse_time(value: &str) -> Result<i64, String> {
    parse_timestamp(value).ok_or_else(|| format!("timestamp=\"{value}\" is not a time"))
}

/// Reads the document header from the attributes of a root element.
pub(super) fn parse_root_attributes(element: &BytesStart<'_>) -> Result<DocumentHeader, String> {
    let mut document_header = DocumentHeader::default();
    for_each_attribute(element, |key, value| {
        match key {
            "sequence" | "sequence_number" | "osmosis_replication_sequence_number" => {
                document_header.replication.sequence = non_negative_number(value.parse().ok());
            }
            "timestamp" | "osmosis_replication_timestamp" => {
                document_header.replication.timestamp = non_negative_number(parse_timestamp(value));
            }
            "osmosis_replication_previous_sequence_number" => {
                document_header.previous.sequence = non_negative_number(value.parse().ok());
            }
            "osmosis_replication_previous_timestamp" => {
                document_header.previous.timestamp = non_negative_number(parse_timestamp(value));
            }
            "osmosis_replication_base_url" => {
                document_header.replication_url = Some(header_text(key, value)?);
            }
            "upload" => document_header.text.josm_upload = Some(header_text(key, value)?),
            "version" => document_header.text.version = Some(header_text(key, value)?),
            "generator" if !value.is_empty() => {
                document_header.generator = Some(header_text(key, value)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(document_header)
}

/// Returns the value of an attribute of the root element. Fails if the header of a PBF file could not hold it.
fn header_text(key: &str, value: &str) -> Result<String, String> {
    if value.len() <= MAX_HEADER_TEXT_LEN {
        Ok(value.to_owned())
    } else {
        Err(format!("the attribute {key} is longer than 64 KiB"))
    }
}
