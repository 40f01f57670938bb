//! Reads a region that an object of an OSM file describes. The object is selected by its id, or by the name of a
//! boundary or place.

use super::osm_file;
use super::osm_objects::{OsmObjects, for_each_area};
use crate::error::{Error, Result};
use crate::geometry::{Antimeridian, Shape, shorten_for_message};
use crate::osm::{ObjectId, ObjectKind};
use crate::runtime::Context;
use rustc_hash::FxHashMap;
use std::path::Path;

/// An area of an OSM file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AreaOfFile {
    /// The area of a multipolygon or boundary relation, or of a closed way.
    Id(ObjectId),
    /// The boundary or place whose tag `name` has this value. If there is none, other tags with names, such as
    /// `name:en`, are searched, too, and upper and lower case are not distinguished.
    Name(String),
}

impl AreaOfFile {
    /// Parses the id of a relation or way, such as `r62422`; `None` if the text is no such id.
    pub fn parse_id(text: &str) -> Option<Self> {
        let id = ObjectId::parse(text, ObjectKind::Node).ok()?;
        (id.kind != ObjectKind::Node).then_some(Self::Id(id))
    }

    /// Returns the area if `path` is the id of a relation or way, and not the path of an existing file. Otherwise,
    /// returns `None`.
    pub fn of_path(path: &Path) -> Option<Self> {
        let area = Self::parse_id(path.to_str()?)?;
        (!path.exists()).then_some(area)
    }
}

/// Reads an area of an OSM file, and checks its shape ([`Shape::check`]). Reads the file several times. If the file has
/// an index, reads only the blobs that may have objects of the area.
///
/// # Errors
///
/// - The file is standard input, cannot be read, or is damaged.
/// - The file does not have the area, or not all of its ways and nodes, or its rings do not close.
/// - Several areas have the name. The error lists them with their ids and levels.
pub fn read_area(
    path: &Path,
    area: &AreaOfFile,
    antimeridian: Antimeridian,
    ctx: &Context,
) -> Result<Shape> {
    let mut shapes = read_areas(path, std::slice::from_ref(area), antimeridian, ctx)?;
    let shape = shapes
        .pop()
        .unwrap_or_else(|| Err("there is no area".to_owned()));
    shape.map_err(|cause| Error::file(path, cause))
}

/// Reads several areas of an OSM file as [`read_area`] does, in as many passes over the file as for one area. Returns
/// the shape of each area, or the reason why the area has none.
pub(super) fn read_areas(
    path: &Path,
    areas: &[AreaOfFile],
    antimeridian: Antimeridian,
    ctx: &Context,
) -> Result<Vec<Result<Shape, String>>> {
    if path.as_os_str() == "-" {
        let cause = "the region is an area of the input, which is read several times: it cannot be \
                     standard input";
        return Err(Error::Usage(cause.to_owned()));
    }
    let mut named = NamedBoundaries::empty_by_name(areas);
    if !named.is_empty() {
        for_each_area(path, ctx, |id, tags| {
            named
                .iter_mut()
                .for_each(|(name, found)| found.add(name, id, tags));
        })?;
    }
    let id_of = |area: &AreaOfFile| match area {
        AreaOfFile::Id(id) => Ok(*id),
        AreaOfFile::Name(name) => {
            let found = named.get(name.as_str());
            let id = found.map_or(Err("the name was not looked for".to_owned()), |found| {
                found.id_of_only_match(name)
            })?;
            let kind = ObjectKind::Relation;
            Ok(ObjectId { kind, id })
        }
    };
    let ids: Vec<Result<ObjectId, String>> = areas.iter().map(id_of).collect();
    let wanted: Vec<ObjectId> = ids.iter().flatten().copied().collect();
    let mut objects = OsmObjects::read_for_areas(path, &wanted, ctx)?;
    let mut others = Vec::new();
    let shapes = ids.into_iter().map(|id| {
        let id = id?;
        if !objects.isolate_area(id, &mut others) {
            let cause = match id.kind {
                ObjectKind::Relation => "there is no multipolygon or boundary with this id",
                ObjectKind::Node | ObjectKind::Way => "there is no closed way with this id",
            };
            return Err(format!("{id}: {cause}"));
        }
        osm_file::shape_of(&objects, antimeridian).and_then(Shape::checked)
    });
    Ok(shapes.collect())
}

/// A boundary or place whose name is the wanted one, or similar to it.
struct NamedBoundary {
    id: i64,
    name: String,
    /// The value of `boundary` or `place`, and the value of `admin_level`, for messages.
    about: String,
}

/// The boundaries and places of a file, grouped by how well their names match the wanted name.
#[derive(Default)]
struct NamedBoundaries {
    /// Boundaries with the wanted name.
    same: Vec<NamedBoundary>,
    /// Boundaries that have the wanted name in another language, or in another combination of upper and lower case.
    other: Vec<NamedBoundary>,
    /// Boundaries whose name contains the wanted name.
    similar: Vec<NamedBoundary>,
}

/// The maximum number of boundaries that a message lists.
const LISTED: usize = 10;

impl NamedBoundaries {
    /// Returns an empty [`NamedBoundaries`] for each name in `areas`.
    fn empty_by_name(areas: &[AreaOfFile]) -> FxHashMap<&str, Self> {
        let names = areas.iter().filter_map(|area| match area {
            AreaOfFile::Id(_) => None,
            AreaOfFile::Name(name) => Some((name.as_str(), Self::default())),
        });
        names.collect()
    }

    /// Adds an area if its name is the wanted one, or similar.
    fn add(&mut self, wanted: &str, id: i64, tags: &[(&str, &str)]) {
        let value = |key: &str| tags.iter().find(|tag| tag.0 == key).map(|tag| tag.1);
        let Some(class) = value("boundary").or_else(|| value("place")) else {
            return;
        };
        let folded = wanted.to_lowercase();
        let is_name =
            |key: &str| key == "name" || key.starts_with("name:") || key.ends_with("_name");
        let names = || tags.iter().filter(|(key, _)| is_name(key)).map(|tag| tag.1);
        let list = if value("name") == Some(wanted) {
            &mut self.same
        } else if names().any(|name| name.to_lowercase() == folded) {
            &mut self.other
        } else if names().any(|name| name.to_lowercase().contains(&folded)) {
            &mut self.similar
        } else {
            return;
        };
        let level = value("admin_level")
            .map(|level| format!(", admin_level {}", shorten_for_message(level)));
        list.push(NamedBoundary {
            id,
            name: shorten_for_message(value("name").unwrap_or(wanted)),
            about: shorten_for_message(class) + level.as_deref().unwrap_or_default(),
        });
    }

    /// Returns the id of the only boundary in `same` or, if `same` is empty, of the only boundary in `other`. Fails if
    /// this list does not have exactly one boundary.
    fn id_of_only_match(&self, wanted: &str) -> Result<i64, String> {
        let found = if self.same.is_empty() {
            &self.other
        } else {
            &self.same
        };
        let wanted = shorten_for_message(wanted);
        match found.as_slice() {
            [one] => Ok(one.id),
            [] if self.similar.is_empty() => {
                Err(format!("no boundary of the file has the name '{wanted}'"))
            }
            [] => Err(format!(
                "no boundary of the file has the name '{wanted}'; there are {}",
                format_list(&self.similar)
            )),
            several => Err(format!(
                "{} boundaries have the name '{wanted}': {}: one of these ids says which",
                several.len(),
                format_list(several)
            )),
        }
    }
}

/// Returns boundaries as a list: `r1 Berlin (administrative, admin_level 4)`.
fn format_list(boundaries: &[NamedBoundary]) -> String {
    let shown = boundaries.iter().take(LISTED);
    let shown = shown.map(|one| format!("r{} {} ({})", one.id, one.name, one.about));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match boundaries.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
