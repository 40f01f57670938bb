//! Header options, which are pairs of a name and a value. The names are those of osmium.

use super::document_header::DocumentHeader;
use crate::osm::format_timestamp;
use crate::pbf::{HeaderBlock, feature};

/// Returns the options of a header, sorted by name.
pub(crate) fn header_options(header: &HeaderBlock) -> Vec<(String, String)> {
    let mut options = Vec::new();
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            options.push((name.to_owned(), value));
        }
    };
    let document = DocumentHeader::of(header);
    let state = &document.replication;
    let time = state.timestamp.map(format_timestamp);
    let sequence = state.sequence.map(|number| number.to_string());
    option("generator", document.generator);
    option("osmosis_replication_base_url", document.replication_url);
    option("osmosis_replication_sequence_number", sequence);
    option("osmosis_replication_timestamp", time.clone());
    // If `is_converted` is set, a text input was converted to a temporary PBF file. The features in the header then
    // belong to the temporary file, and not to the input.
    if !header.is_converted {
        let has = |feature, value: &str| header.has(feature).then(|| value.to_owned());
        option("pbf_dense_nodes", has(feature::DENSE_NODES, "true"));
        for (number, name) in header.optional_features.iter().enumerate() {
            let key = format!("pbf_optional_feature_{number}");
            option(&key, Some(name.clone()));
        }
        option("sorting", has(feature::SORTED, "Type_then_ID"));
    }
    option("timestamp", time);
    option("version", document.text.version);
    option("xml_josm_upload", document.text.josm_upload);
    options
}

/// Whether a header declares that objects may have several versions. Among text formats, only change files declare
/// this.
pub(crate) fn declares_history(header: &HeaderBlock) -> bool {
    if header.is_converted {
        header.text.is_change
    } else {
        header.has(feature::HISTORY)
    }
}
