//! Reads the config file with the regions and outputs of an extract, in the format of `osmium extract --config`.

use super::area_of_file::{AreaOfFile, read_areas};
use super::read::{ShapeFileKind, read_shape_as, read_text};
use super::{geojson, json};
use crate::error::{Error, Result};
use crate::geometry::{
    BoxRegion, CornerOrder, MAX_ZOOM, Point, Polygon, Shape, TileSet, bbox_of_degrees, box_of_tile,
    shorten_for_message,
};
use crate::io::Input;
use crate::runtime::Context;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};
use std::iter;
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
    /// The header options of the output. An option without a value keeps the value in the header of the input. The
    /// exception is `generator`: without a value, it becomes the name of this program.
    pub output_header: Vec<(String, Option<String>)>,
    /// The strategy, if the config file has one.
    pub strategy: Option<ConfigStrategy>,
}

/// The name of a strategy, and its options with their values.
pub type ConfigStrategy = (String, Vec<(String, String)>);

/// Reads a config file and the region files that it refers to. Paths of region files are relative to the directory of
/// the config file. `corners` is the order of the corners of boxes. If it is [`CornerOrder::Southwest`], boxes may
/// cross the antimeridian, and areas and polygons that cross it are cut there. Ignores unknown fields. Errors name the
/// extract, counted from 1, and the field.
pub fn read_config(path: &Path, corners: CornerOrder) -> Result<ExtractConfig> {
    read_config_with(path, corners, None, &|_, cause| Err(cause))
}

/// Reads a config file as [`read_config`] does. Regions may also be areas of `data`, the file from which the extracts
/// are cut.
pub fn read_config_for(
    path: &Path,
    data: &Path,
    corners: CornerOrder,
    ctx: &Context,
) -> Result<ExtractConfig> {
    read_config_with(path, corners, Some((data, ctx)), &|_, cause| Err(cause))
}

/// A function that is called if the area of an output cannot be read. The arguments are the path of the output and the
/// cause of the failure. The function returns a substitute for the shape. If there is none, it returns the cause as the
/// error.
type StandIn<'s> = dyn Fn(&Path, String) -> Result<Shape, String> + 's;

/// Reads a config file as [`read_config_for`] does. If the area of a region is missing or broken in `data`, `stand_in`
/// returns a substitute for its shape. For example, a mapper may have broken a boundary.
#[cfg(feature = "cli")]
pub(crate) fn read_config_with_stand_in(
    path: &Path,
    data: &Path,
    corners: CornerOrder,
    stand_in: &StandIn<'_>,
    ctx: &Context,
) -> Result<ExtractConfig> {
    read_config_with(path, corners, Some((data, ctx)), stand_in)
}

fn read_config_with(
    path: &Path,
    corners: CornerOrder,
    data: Option<(&Path, &Context)>,
    stand_in: &StandIn<'_>,
) -> Result<ExtractConfig> {
    let config = json::parse(&read_text(&Input::open(path)?)?);
    let config = config.and_then(|config| {
        let mut reader = MemberParser {
            directory: path.parent().unwrap_or(Path::new("")),
            corners,
            data,
            stand_in,
            areas: FxHashMap::default(),
            shapes: FxHashMap::default(),
        };
        reader.read_areas(&config)?;
        reader.parse_config(&config)
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
    stand_in: &'a StandIn<'a>,
    /// The areas of `data` that extracts name: the shape of each area, or the reason why it has none.
    areas: FxHashMap<AreaOfFile, Result<Shape, String>>,
    /// The shapes of the region files that have been read, by path and kind.
    shapes: FxHashMap<(PathBuf, Option<ShapeFileKind>), Shape>,
}

impl MemberParser<'_> {
    /// Reads all areas that extracts and grids name, in the same passes over the data.
    fn read_areas(&mut self, config: &Value) -> Result<(), String> {
        let extracts = config.get("extracts").and_then(Value::as_array);
        let regions = extracts.into_iter().flatten();
        let regions = regions.flat_map(|extract| iter::once(extract).chain(extract.get("grid")));
        let keys = ["relation", "area"];
        let named = regions.flat_map(|region| keys.map(|key| (key, region.get(key))));
        let named = named.filter_map(|(key, value)| parse_area(key, value?).ok());
        let areas: Vec<AreaOfFile> = named.collect::<FxHashSet<_>>().into_iter().collect();
        if let (Some((data, ctx)), false) = (self.data, areas.is_empty()) {
            let shapes = read_areas(data, &areas, self.corners.antimeridian_treatment(), ctx);
            let shapes = shapes.map_err(|error| error.to_string())?;
            self.areas = areas.into_iter().zip(shapes).collect();
        }
        Ok(())
    }

    /// Reads the extracts of a config file.
    fn parse_config(&mut self, config: &Value) -> Result<ExtractConfig, String> {
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
                .map(|(number, extract)| self.parse_entry(number, extract))
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .collect(),
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

    /// Reads an entry of `extracts`, which describes one extract, or a grid of extracts. An error names the entry.
    fn parse_entry(
        &mut self,
        number: usize,
        extract: &Value,
    ) -> Result<Vec<ConfigExtract>, String> {
        let output = extract.get("output").and_then(Value::as_str);
        let read = match extract.as_object() {
            Some(fields) => match fields.get("grid") {
                Some(grid) => self.parse_grid(fields, grid),
                None => self.parse_extract(fields).map(|extract| vec![extract]),
            },
            None => Err("is not an object".to_owned()),
        };
        read.map_err(|cause| format!("{}: {cause}", extract_name(number, output)))
    }

    fn parse_extract(&mut self, fields: &ConfigFields) -> Result<ConfigExtract, String> {
        let output = text(fields, "output")?.filter(|output| !output.is_empty());
        let output = output.ok_or("output: a file name is missing")?;
        let is_area = fields.contains_key("relation") || fields.contains_key("area");
        let region = self.parse_region(fields).or_else(|cause| {
            let shape = if is_area {
                (self.stand_in)(Path::new(&output), cause)
            } else {
                Err(cause)
            };
            let warning = None;
            shape.map(|shape| BoxRegion { shape, warning })
        })?;
        extract_of(fields, output, region)
    }

    /// Returns an extract for each tile that touches the region of a grid. The name of the output must contain
    /// `{tile}`; without a name, it is `{tile}.osm.pbf`.
    fn parse_grid(
        &mut self,
        fields: &ConfigFields,
        grid: &Value,
    ) -> Result<Vec<ConfigExtract>, String> {
        let in_grid = |cause: String| format!("grid: {cause}");
        if let Some(key) = REGIONS.iter().find(|key| fields.contains_key(**key)) {
            return Err(format!("grid and {key}: give only one region per extract"));
        }
        let grid = grid.as_object().ok_or("grid: an object is wanted")?;
        let zoom = grid.get("zoom").and_then(Value::as_u64);
        let zoom = zoom.and_then(|zoom| u8::try_from(zoom).ok());
        let zoom = zoom.filter(|zoom| *zoom <= MAX_ZOOM);
        let zoom = zoom.ok_or(format!("grid: \"zoom\" is wanted, from 0 to {MAX_ZOOM}"))?;
        let BoxRegion { shape, warning } = self.parse_region(grid).map_err(in_grid)?;
        let output = text(fields, "output")?.filter(|output| !output.is_empty());
        let output = output.unwrap_or_else(|| format!("{TILE}.osm.pbf"));
        if !output.contains(TILE) {
            return Err(format!(
                "output: the name of a tile, {TILE}, is missing in it"
            ));
        }
        let tiles = tiles_touching_shape(&shape, zoom).ok_or("grid: there are too many tiles")?;
        let extract_of_tile = |[column, row]: [u32; 2]| {
            let output = output.replace(TILE, &format!("{zoom}-{column}-{row}"));
            let region = BoxRegion {
                shape: Shape::of_bbox(&box_of_tile(zoom, column, row)),
                warning: None,
            };
            extract_of(fields, output, region)
        };
        let extracts: Result<Vec<_>, _> = tiles.into_iter().map(extract_of_tile).collect();
        let mut extracts = extracts?;
        if let Some(first) = extracts.first_mut() {
            first.warning = warning;
        }
        Ok(extracts)
    }

    /// Reads the region of an extract. Fails unless the extract has exactly one region.
    fn parse_region(&mut self, fields: &ConfigFields) -> Result<BoxRegion, String> {
        let given = REGIONS
            .into_iter()
            .filter_map(|key| fields.get(key).map(|value| (key, value)));
        let given: Vec<_> = given.collect();
        match given.as_slice() {
            [] => Err(
                "the region is missing: bbox, polygon, multipolygon, relation, area or grid"
                    .to_owned(),
            ),
            &[(key, value)] => self
                .parse_region_value(key, value)
                .map_err(|cause| format!("{key}: {cause}")),
            &[(first, _), (second, _), ..] => Err(format!(
                "{first} and {second}: give only one region per extract"
            )),
        }
    }

    fn parse_region_value(&mut self, key: &str, value: &Value) -> Result<BoxRegion, String> {
        let shape = match (key, value) {
            ("bbox", value) => return parse_bbox(value, self.corners),
            ("relation" | "area", value) => self.shape_of_area(&parse_area(key, value)?),
            (_, Value::Object(file)) => self.read_region_file(file),
            ("polygon", rings) => {
                let polygons =
                    geojson::parse_polygon(rings, "", self.corners.antimeridian_treatment())?;
                Shape { polygons }.checked()
            }
            (_, polygons) => {
                let antimeridian = self.corners.antimeridian_treatment();
                let polygons = geojson::parse_multipolygon(polygons, "", antimeridian)?;
                Shape { polygons }.checked()
            }
        };
        shape.map(|shape| BoxRegion {
            shape,
            warning: None,
        })
    }

    /// Returns the shape of an area of the data.
    fn shape_of_area(&self, area: &AreaOfFile) -> Result<Shape, String> {
        let (data, _) = self.data.ok_or("there is no file with areas")?;
        let shape = self.areas.get(area).cloned();
        let shape = shape.unwrap_or_else(|| Err("the area was not read".to_owned()));
        shape.map_err(|cause| format!("{}: {cause}", data.display()))
    }

    /// Reads a region file, or returns its region if the file was read before.
    fn read_region_file(&mut self, file: &ConfigFields) -> Result<Shape, String> {
        let name = text(file, "file_name")?.filter(|name| !name.is_empty());
        let path = self.directory.join(name.ok_or("\"file_name\" is missing")?);
        let kind =
            match text(file, "file_type")? {
                Some(kind) => Some(kind.parse().map_err(|cause| {
                    format!("file_type '{}' {cause}", shorten_for_message(&kind))
                })?),
                None => None,
            };
        let key = (path, kind);
        if let Some(shape) = self.shapes.get(&key) {
            return Ok(shape.clone());
        }
        let shape = read_shape_as(&key.0, kind, self.corners.antimeridian_treatment());
        let shape = shape.map_err(|error| error.to_string())?;
        self.shapes.insert(key, shape.clone());
        Ok(shape)
    }
}

/// Returns the area of the data that the value of `relation` or `area` names.
fn parse_area(key: &str, value: &Value) -> Result<AreaOfFile, String> {
    match (key, value) {
        ("area", Value::String(name)) => Ok(AreaOfFile::Name(name.clone())),
        ("area", _) => Err("the name of a boundary is wanted".to_owned()),
        (_, value) => {
            let text = value.as_str();
            let text = text.map_or_else(|| format!("r{value}"), str::to_owned);
            let id = AreaOfFile::parse_id(&text);
            id.ok_or_else(|| "the id of a relation is wanted, such as 62422".to_owned())
        }
    }
}

/// The keys whose values describe the region of an extract or of a grid.
const REGIONS: [&str; 5] = ["bbox", "polygon", "multipolygon", "relation", "area"];
/// The part of the name of an output that stands for a tile of a grid.
const TILE: &str = "{tile}";

/// Returns the extract of a region. `fields` has the other properties of the extract.
fn extract_of(
    fields: &ConfigFields,
    output: String,
    region: BoxRegion,
) -> Result<ConfigExtract, String> {
    let BoxRegion { shape, warning } = region;
    Ok(ConfigExtract {
        output: output.into(),
        output_format: text(fields, "output_format")?,
        description: text(fields, "description")?,
        shape,
        warning,
        output_header: parse_output_header(fields)?,
        strategy: parse_strategy(fields)?,
    })
}

/// Reads the strategy of an extract: its name, or an object with `name` and the options of the strategy.
fn parse_strategy(fields: &ConfigFields) -> Result<Option<ConfigStrategy>, String> {
    const WANTED: &str = "strategy: a name is wanted, or an object with \"name\" and options";
    match fields.get("strategy") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some((name.clone(), Vec::new()))),
        Some(Value::Object(strategy)) => {
            let name = text(strategy, "name")?.ok_or(WANTED)?;
            let options = strategy.iter().filter(|(key, _)| *key != "name");
            let options = options.map(|(key, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                (key.clone(), value)
            });
            Ok(Some((name, options.collect())))
        }
        Some(_) => Err(WANTED.to_owned()),
    }
}

/// Returns the tiles that a shape touches, in order; `None` if they are too many.
fn tiles_touching_shape(shape: &Shape, zoom: u8) -> Option<Vec<[u32; 2]>> {
    let mut tiles = TileSet::new(zoom);
    for Polygon { outer, holes } in &shape.polygons {
        let holes = holes.iter().map(|hole| hole.points.as_slice());
        let rings: Vec<&[Point]> = iter::once(outer.points.as_slice()).chain(holes).collect();
        tiles.add_polygon(&rings);
    }
    let (mut tiles, unfilled) = tiles.take();
    tiles.sort_unstable();
    (unfilled == 0).then_some(tiles)
}

fn extract_name(number: usize, output: Option<&str>) -> String {
    match output {
        Some(output) => format!("extract {number} ({})", shorten_for_message(output)),
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
fn parse_bbox(value: &Value, corners: CornerOrder) -> Result<BoxRegion, String> {
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

fn parse_output_header(fields: &ConfigFields) -> Result<Vec<(String, Option<String>)>, String> {
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
            shorten_for_message(key)
        )),
    });
    options.collect()
}

#[cfg(test)]
mod tests;
