//! Answers to `/reverse` as XML.

use super::reverse::ReverseOptions;
use super::subject::{AddressFields, LICENCE, Subject};
use crate::geocode::Answer;
use crate::pbf::is_forbidden_in_xml;
use jiff::Timestamp;
use std::fmt::Write;

/// Returns the body of the response to a request with the parameters `query`.
pub(super) fn response(answer: &Answer<'_>, options: ReverseOptions, query: &str) -> String {
    let time = Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S +0000");
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <reversegeocode timestamp=\"{time}\" attribution=\"{}\" querystring=\"{}\">",
        escape(LICENCE),
        escape(query),
    );
    match Subject::of(answer, options.zoom) {
        Some(subject) => put_place(&mut out, &subject, answer, options.has_address),
        None => out += "<error>Unable to geocode</error>",
    }
    out += "</reversegeocode>\n";
    out
}

/// Escapes a text. Characters that XML 1.0 forbids become U+FFFD.
fn escape(text: &str) -> String {
    let text = text.replace(is_forbidden_in_xml, "\u{fffd}");
    quick_xml::escape::escape(text).into_owned()
}

fn put_place(out: &mut String, subject: &Subject<'_>, answer: &Answer<'_>, has_address: bool) {
    let parts = AddressFields::of(answer, subject.rank);
    let ([lat, lon], rank) = (subject.middle(), subject.rank);
    let edges = subject.bounds_texts();
    let reference = subject
        .reference
        .map(|text| format!(" ref=\"{}\"", escape(text)));
    let _ = write!(
        out,
        "<result place_id=\"{}\" osm_type=\"{}\" osm_id=\"{}\"{} place_rank=\"{rank}\" \
         address_rank=\"{rank}\" lat=\"{lat}\" lon=\"{lon}\" boundingbox=\"{}\">{}</result>",
        subject.place_id(),
        subject.kind.name(),
        subject.id,
        reference.unwrap_or_default(),
        edges.join(","),
        escape(&parts.display_name()),
    );
    if has_address {
        *out += "<addressparts>";
        for (key, text) in parts.iter() {
            let _ = write!(out, "<{key}>{}</{key}>", escape(text));
        }
        *out += "</addressparts>";
    }
}
