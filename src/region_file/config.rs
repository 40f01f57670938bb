//! Reads the config file with the regions and outputs of an extract, in the format of `osmium extract --config`.

use super::area_of_file::{AreaOfFile, read_area};
use super::read::{ShapeFileKind, read_shape_as, read_text};
use super::{geojson, json};
use crate::error::{Error, Result};
use crate::geometry::{BoxRegion, CornerOrder, Shape, bbox_of_degrees, for_message};
use crate::runtime::Context;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The content of a config file, with the regions to extract and their outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractConfig {
    /// The directory to which the names of outputs are relative; `None` if the config file names no directory.
    pub directory: Option<PathBuf>,
    /// The extracts. There is at least one, and no two have the same output.
    pub extracts: Vec<ConfigExtract>,
}

/// One extract of an [`ExtractConfig`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigExtract {
    /// The name of the output file, as in the config file.
    pub output: PathBuf,
    /// The format of the output, if the config file has one.
    pub output_format: Option<String>,
    /// A description for readers of the config file. It has no effect.
    pub description: Option<String>,
    /// The region.
    pub shape: Shape,
    /// A warning if the region is probably a mistake.
    pub warning: Option<String>,
    /// The header options of the output. An option without a value keeps the value in the header of the input, except
    /// `generator`, which becomes the name of this program.
    pub output_header: Vec<(String, Option<String>)>,
}

/// Reads a config file and the region files that it refers to. Paths of region files are relative to the directory of
/// the config file. `corners` is the order of the corners of boxes. If no box crosses the antimeridian, areas and
/// polygons are not cut there either. Ignores unknown fields. Errors name the extract, counted from 1, and the field.
pub fn read_config(path: &Path, corners: CornerOrder) -> Result<ExtractConfig> {
    read_with(path, corners, None)
}

/// Reads a config file as [`read_config`] does. Regions may also be areas of `data`, which is the file to cut.
pub fn read_config_for(
    path: &Path,
    data: &Path,
    corners: CornerOrder,
    ctx: &Context,
) -> Result<ExtractConfig> {
    read_with(path, corners, Some((data, ctx)))
}

fn read_with(
    path: &Path,
    corners: CornerOrder,
    data: Option<(&Path, &Context)>,
) -> Result<ExtractConfig> {
    let config = json::parse(&read_text(path)?);
    let config = config.and_then(|config| {
        let mut reader = MemberParser {
            directory: path.parent().unwrap_or(Path::new("")),
            corners,
            data,
            shapes: FxHashMap::default(),
        };
        reader.config(&config)
    });
    config.map_err(|cause| Error::file(path, cause))
}

type ConfigFields = Map<String, Value>;

struct MemberParser<'a> {
    /// The directory to which paths of region files are relative.
    directory: &'a Path,
    corners: CornerOrder,
    /// The file with the areas that an extract may name.
    data: Option<(&'a Path, &'a Context)>,
    /// The regions of the files that have been read.
    shapes: FxHashMap<(PathBuf, Option<ShapeFileKind>), Shape>,
}

impl MemberParser<'_> {
    fn config(&mut self, config: &Value) -> Result<ExtractConfig, String> {
        let fields = config
            .as_object()
            .ok_or("a config file is a JSON object with \"extracts\"")?;
        let extracts = match fields.get("extracts") {
            Some(Value::Array(extracts)) if extracts.is_empty() => Err("\"extracts\" is empty"),
            Some(Value::Array(extracts)) => Ok(extracts),
            Some(_) => Err("\"extracts\" is not an array"),
            None => Err("\"extracts\" is missing"),
        }?;
        let extracts = (1..).zip(extracts);
        let config = ExtractConfig {
            directory: text(fields, "directory")?.map(PathBuf::from),
            extracts: extracts
                .map(|(number, extract)| self.parse_numbered(number, extract))
                .collect::<Result<_, _>>()?,
        };
        let mut outputs = FxHashSet::default();
        for (number, extract) in (1..).zip(&config.extracts) {
            if !outputs.insert(&extract.output) {
                return Err(format!(
                    "{}: output: an earlier extract writes the same file",
                    extract_name(number, extract.output.to_str())
                ));
            }
        }
        Ok(config)
    }

    fn parse_numbered(&mut self, number: usize, extract: &Value) -> Result<ConfigExtract, String> {
        let output = extract.get("output").and_then(Value::as_str);
        let read = match extract.as_object() {
            Some(fields) => self.parse_extract(fields),
            None => Err("is not an object".to_owned()),
        };
        read.map_err(|cause| format!("{}: {cause}", extract_name(number, output)))
    }

    fn parse_extract(&mut self, fields: &ConfigFields) -> Result<ConfigExtract, String> {
        let output = text(fields, "output")?.filter(|output| !output.is_empty());
        let BoxRegion { shape, warning } = self.region(fields)?;
        Ok(ConfigExtract {
            output: output.ok_or("output: a file name is missing")?.into(),
            output_format: text(fields, "output_format")?,
            description: text(fields, "description")?,
            shape,
            warning,
            output_header: output_header(fields)?,
        })
    }

    /// Reads the region of an extract. Fails unless the extract has exactly one region.
    fn region(&mut self, fields: &ConfigFields) -> Result<BoxRegion, String> {
        let given = ["bbox", "polygon", "multipolygon", "relation", "area"]
            .into_iter()
            .filter_map(|key| fields.get(key).map(|value| (key, value)));
        let given: Vec<_> = given.collect();
        match given.as_slice() {
            [] => Err(
                "the region is missing: bbox, polygon, multipolygon, relation or area".to_owned(),
            ),
            &[(key, value)] => self
                .one_region(key, value)
                .map_err(|cause| format!("{key}: {cause}")),
            &[(first, _), (second, _), ..] => Err(format!(
                "{first} and {second}: give only one region per extract"
            )),
        }
    }

    fn one_region(&mut self, key: &str, value: &Value) -> Result<BoxRegion, String> {
        let shape = match (key, value) {
            ("bbox", value) => return bbox(value, self.corners),
            ("relation", value) => {
                let text = value
                    .as_str()
                    .map_or_else(|| format!("r{value}"), str::to_owned);
                let id = AreaOfFile::parse_id(&text);
                self.area_of_data(id.ok_or("the id of a relation is wanted, such as 62422")?)
            }
            ("area", Value::String(name)) => self.area_of_data(AreaOfFile::Name(name.clone())),
            ("area", _) => Err("the name of a boundary is wanted".to_owned()),
            (_, Value::Object(file)) => self.region_file(file),
            ("polygon", rings) => {
                let polygons = geojson::polygon(rings, "", self.corners.antimeridian())?;
                Shape { polygons }.checked()
            }
            (_, polygons) => {
                let antimeridian = self.corners.antimeridian();
                let polygons = geojson::multipolygon(polygons, "", antimeridian)?;
                Shape { polygons }.checked()
            }
        };
        shape.map(|shape| BoxRegion {
            shape,
            warning: None,
        })
    }

    fn area_of_data(&self, area: AreaOfFile) -> Result<Shape, String> {
        let (data, ctx) = self.data.ok_or("there is no file with areas")?;
        let shape = read_area(data, &area, self.corners.antimeridian(), ctx);
        shape.map_err(|error| error.to_string())
    }

    fn region_file(&mut self, file: &ConfigFields) -> Result<Shape, String> {
        let name = text(file, "file_name")?.filter(|name| !name.is_empty());
        let path = self.directory.join(name.ok_or("\"file_name\" is missing")?);
        let kind = match text(file, "file_type")? {
            Some(kind) => Some(
                kind.parse()
                    .map_err(|cause| format!("file_type '{}' {cause}", for_message(&kind)))?,
            ),
            None => None,
        };
        let key = (path, kind);
        if let Some(shape) = self.shapes.get(&key) {
            return Ok(shape.clone());
        }
        let shape = read_shape_as(&key.0, kind, self.corners.antimeridian());
        let shape = shape.map_err(|error| error.to_string())?;
        self.shapes.insert(key, shape.clone());
        Ok(shape)
    }
}

fn extract_name(number: usize, output: Option<&str>) -> String {
    match output {
        Some(output) => format!("extract {number} ({})", for_message(output)),
        None => format!("extract {number}"),
    }
}

/// Returns the string in a field, or `None` if the field is missing or `null`. Fails if the field has another type.
fn text(fields: &ConfigFields, key: &str) -> Result<Option<String>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{key}: a text is wanted")),
    }
}

/// Reads a box from an array of four numbers, or from an object with `left`, `bottom`, `right` and `top`.
fn bbox(value: &Value, corners: CornerOrder) -> Result<BoxRegion, String> {
    let numbers: Vec<Option<f64>> = match value {
        Value::Array(corners) => corners.iter().map(Value::as_f64).collect(),
        value => {
            let edges = ["left", "bottom", "right", "top"];
            let edge = |key: &str| value.get(key).and_then(Value::as_f64);
            edges.into_iter().map(edge).collect()
        }
    };
    match numbers.as_slice() {
        &[Some(lon1), Some(lat1), Some(lon2), Some(lat2)] => {
            bbox_of_degrees([lon1, lat1, lon2, lat2], corners)
        }
        _ => Err(
            "four numbers are wanted: [lon1, lat1, lon2, lat2], or left, bottom, right and top"
                .to_owned(),
        ),
    }
}

fn output_header(fields: &ConfigFields) -> Result<Vec<(String, Option<String>)>, String> {
    let options = match fields.get("output_header") {
        None => return Ok(Vec::new()),
        Some(value) => value.as_object(),
    };
    let options = options.ok_or("output_header: an object is wanted")?;
    let options = options.iter().map(|(key, value)| match value {
        Value::Null => Ok((key.clone(), None)),
        Value::String(text) => Ok((key.clone(), Some(text.clone()))),
        _ => Err(format!(
            "output_header, {}: a text or null is wanted",
            for_message(key)
        )),
    });
    options.collect()
}

#[cfg(test)]
mod tests;
