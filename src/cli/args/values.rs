//! Types and parsers of argument values that several commands accept.

use crate::osm::parse_moment;
use crate::pbf::InfoFields;
use anyhow::{Context as _, Result};
use clap::ValueEnum;

/// An attribute of the metadata of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AttributeArg {
    Version,
    Timestamp,
    Changeset,
    Uid,
    User,
}

impl AttributeArg {
    /// Returns the set of the given attributes.
    pub fn all_of(attributes: &[Self]) -> InfoFields {
        let fields = attributes.iter().map(|attribute| match attribute {
            Self::Version => InfoFields::VERSION,
            Self::Timestamp => InfoFields::TIMESTAMP,
            Self::Changeset => InfoFields::CHANGESET,
            Self::Uid => InfoFields::UID,
            Self::User => InfoFields::USER,
        });
        InfoFields::all_of(&fields.collect::<Vec<_>>())
    }
}

/// Parses a size in bytes, such as `1048576`, `500M`, `2G` or `1.5GB`. The suffixes are powers of 1000.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is not a size like 500M or 2G");
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.strip_suffix('b').unwrap_or(&lower);
    let end = lower.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let factor = match lower.get(end.len()..) {
        Some("") => 1.0,
        Some("k") => 1e3,
        Some("m") => 1e6,
        Some("g") => 1e9,
        Some("t") => 1e12,
        _ => return Err(bad()),
    };
    match end.trim().parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok((number * factor) as u64),
        _ => Err(bad()),
    }
}

/// Parses a time span, such as `90`, `90s`, `15min`, `2h` or `1d`. Returns the number of seconds.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let end = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = match text[end.len()..].to_ascii_lowercase().as_str() {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    let seconds = end.trim().parse::<u32>().ok();
    let seconds = seconds.zip(unit);
    seconds
        .map(|(count, unit)| u64::from(count) * unit)
        .ok_or_else(|| format!("'{text}' is not a time span like 90s, 15min, 2h or 1d"))
}

/// Parses a moment, such as `2016-01-01T00:00:00Z`, `2016-01` or a number of seconds since 1970. Returns the number of
/// seconds since 1970.
pub fn parse_time(text: &str) -> Result<i64> {
    parse_moment(text).with_context(|| {
        format!("'{text}' is not a time like 2016-01-01T00:00:00Z, 2016-01-01, 2016-01 or 2016")
    })
}
