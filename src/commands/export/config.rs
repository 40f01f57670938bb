//! The configuration file of an export, in the format of `osmium export --config`.

use super::FeatureRules;
use super::rules::TagRule;
use crate::error::{Error, FileResult, Result};
use crate::formats::{Attribute, Attributes};
use crate::osm::TagPattern;
use serde_json::{Map, Value};
use std::path::Path;

/// The content of a configuration file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The attributes that are written.
    pub attributes: Attributes,
    /// The options of the format, as pairs of name and value.
    pub format_options: Vec<(String, String)>,
    /// The rules for closed ways and for tags. If the file has a rule for lines but none for areas, or the reverse, the
    /// missing rule is the negation of the other.
    pub rules: FeatureRules,
    /// The warnings about the file.
    pub warnings: Vec<String>,
}

impl Config {
    /// Creates a configuration with the given rules, without attributes and options.
    pub fn new(rules: FeatureRules) -> Self {
        Self {
            attributes: Attributes::default(),
            format_options: Vec::new(),
            rules,
            warnings: Vec::new(),
        }
    }
}

/// Reads a configuration file. Unknown fields are ignored. `rules` apply if the file has no rules.
pub fn read_config(path: &Path, rules: FeatureRules) -> Result<Config> {
    let text = std::fs::read(path).for_path(path, "cannot read")?;
    let config = serde_json::from_slice(&text).map_err(|error| error.to_string());
    let config = config.and_then(|config| parse_config(&config, rules));
    config.map_err(|cause| Error::file(path, cause))
}

fn parse_config(config: &Value, rules: FeatureRules) -> Result<Config, String> {
    let fields = config
        .as_object()
        .ok_or("a configuration is a JSON object, such as {\"linear_tags\": true}")?;
    let mut config = Config::new(rules);
    for (name, value) in object_field(fields, "attributes")? {
        let Some(attribute) = Attribute::of_name(name) else {
            let known = Attribute::ALL.map(Attribute::name).join(", ");
            let warning = format!("\"attributes\": '{name}' is ignored: known are {known}");
            config.warnings.push(warning);
            continue;
        };
        match value {
            Value::Bool(true) => config.attributes.set(attribute, format!("@{name}")),
            Value::String(column) => config.attributes.set(attribute, column),
            _ => {}
        }
    }
    for (name, value) in object_field(fields, "format_options")? {
        let value = match value {
            Value::String(value) => value.clone(),
            value => value.to_string(),
        };
        config.format_options.push((name.clone(), value));
    }
    set_rules(fields, &mut config)?;
    Ok(config)
}

fn set_rules(fields: &Map<String, Value>, config: &mut Config) -> Result<(), String> {
    let (linear, area) = (
        rule_field(fields, "linear_tags", &mut config.warnings)?,
        rule_field(fields, "area_tags", &mut config.warnings)?,
    );
    if linear.is_some() || area.is_some() {
        (config.rules.linear, config.rules.area) = (linear, area);
    }
    let (exclude, include) = (
        pattern_list(fields, "exclude_tags")?,
        pattern_list(fields, "include_tags")?,
    );
    match (exclude.is_empty(), include.is_empty()) {
        (true, true) => {}
        (false, true) => config.rules.exclude_tags(exclude),
        (true, false) => config.rules.include_tags(include),
        (false, false) => {
            return Err("only one of \"include_tags\" and \"exclude_tags\" may be set".into());
        }
    }
    Ok(())
}

/// Returns the members of a field that is a JSON object; no members if the field is absent.
fn object_field<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, String> {
    match fields.get(name) {
        None => Ok(None.into_iter().flatten()),
        Some(Value::Object(members)) => Ok(Some(members).into_iter().flatten()),
        Some(_) => Err(format!("\"{name}\" is not an object")),
    }
}

fn rule_field(
    fields: &Map<String, Value>,
    name: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<TagRule>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(TagRule::Any)),
        Some(Value::Bool(false)) => Ok(Some(TagRule::None)),
        Some(Value::Array(list)) if list.is_empty() => {
            let warning = format!("\"{name}\": an empty array means all tags: write true instead");
            warnings.push(warning);
            Ok(Some(TagRule::Any))
        }
        Some(Value::Array(_)) => Ok(Some(TagRule::matching(pattern_list(fields, name)?))),
        Some(_) => Err(format!("\"{name}\" is not true, false, null or an array")),
    }
}

/// Returns the tag expressions of a field that is a JSON array; no expressions if the field is absent or null.
fn pattern_list(fields: &Map<String, Value>, name: &str) -> Result<Vec<TagPattern>, String> {
    let list = match fields.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(format!("\"{name}\" is not an array")),
    };
    let pattern = |value: &Value| match value.as_str() {
        Some(text) => TagPattern::parse(text)
            .map_err(|cause| format!("\"{name}\": '{text}' is not an expression: {cause}")),
        None => Err(format!("\"{name}\": {value} is not a string")),
    };
    list.iter().map(pattern).collect()
}

/// Returns the text of a default configuration file with the given list of area tags. If `area_tags` is `None`, closed
/// ways are both lines and areas.
pub fn default_config(area_tags: Option<&[&str]>) -> String {
    let mut attributes = Attribute::ALL;
    if area_tags.is_none() {
        // Without area tags, the attributes have the same order as in the default configuration of osmium.
        attributes.sort_by_key(|attribute| {
            let is_last = *attribute == Attribute::WayNodes;
            let is_user = matches!(attribute, Attribute::Uid | Attribute::User);
            (is_last, is_user)
        });
    }
    let attributes = attributes.map(|attribute| {
        let name = format!("\"{}\":", attribute.name());
        format!("        {name:<13}false")
    });
    let rules = match area_tags {
        None => "    \"linear_tags\":  true,\n    \"area_tags\":    true,".to_owned(),
        Some(tags) => {
            let tags: Vec<String> = tags
                .iter()
                .map(|tag| format!("        \"{tag}\""))
                .collect();
            format!(
                "    \"linear_tags\":  null,\n    \"area_tags\":    [\n{}\n    ],",
                tags.join(",\n")
            )
        }
    };
    format!(
        "{{\n    \"attributes\": {{\n{}\n    }},\n    \"format_options\": {{\n    }},\n{rules}\n    \
         \"exclude_tags\": [],\n    \"include_tags\": []\n}}\n",
        attributes.join(",\n")
    )
}
