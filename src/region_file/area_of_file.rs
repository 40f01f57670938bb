//! A region that an object of an OSM file describes: by its id, or by the name of the boundary.

use super::osm_file;
use super::osm_objects::{OsmObjects, for_each_area};
use crate::error::{Error, Result};
use crate::geometry::{Antimeridian, Shape, for_message};
use crate::osm::{ObjectId, ObjectKind};
use crate::runtime::Context;
use std::path::Path;

/// An area of an OSM file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AreaOfFile {
    /// The area of a multipolygon or boundary relation, or of a closed way.
    Id(ObjectId),
    /// The boundary or place with this name. The name is that of the tag `name` or, if no area has it there, another
    /// one, such as that of `name:en`, or the same in another case.
    Name(String),
}

impl AreaOfFile {
    /// Parses the id of a relation or way, such as `r62422`; `None` if the text is no such id.
    pub fn parse_id(text: &str) -> Option<Self> {
        let id = ObjectId::parse(text, ObjectKind::Node).ok()?;
        (id.kind != ObjectKind::Node).then_some(Self::Id(id))
    }

    /// Returns the area whose id is given instead of the path of a file; `None` if there is a file at the path.
    pub fn of_path(path: &Path) -> Option<Self> {
        let area = Self::parse_id(path.to_str()?)?;
        (!path.exists()).then_some(area)
    }
}

/// Reads an area of an OSM file, and checks its shape ([`Shape::check`]). Reads the file several times; only the blobs
/// that may have the objects of the area are read if an index tells which these are.
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
    if path.as_os_str() == "-" {
        let cause = "the region is an area of the input, which is read several times: it cannot be \
                     standard input";
        return Err(Error::Usage(cause.to_owned()));
    }
    let failed = |cause: String| Error::file(path, cause);
    let id = match area {
        AreaOfFile::Id(id) => *id,
        AreaOfFile::Name(name) => {
            let found = NamedBoundaries::read(path, name, ctx)?;
            let id = found.only_id(name).map_err(failed)?;
            let kind = ObjectKind::Relation;
            ObjectId { kind, id }
        }
    };
    let objects = OsmObjects::of_area(path, id, ctx)?;
    if objects.relations.is_empty() && objects.closed_ways.is_empty() {
        let cause = match id.kind {
            ObjectKind::Relation => "there is no multipolygon or boundary with this id",
            ObjectKind::Node | ObjectKind::Way => "there is no closed way with this id",
        };
        return Err(failed(format!("{id}: {cause}")));
    }
    let shape = osm_file::shape_of(&objects, antimeridian);
    shape.and_then(Shape::checked).map_err(failed)
}

/// A boundary or place with a name that is looked for, or a similar one.
struct NamedBoundary {
    id: i64,
    name: String,
    /// The level and the kind, for messages.
    about: String,
}

/// The boundaries and places of a file by how well their names match.
#[derive(Default)]
struct NamedBoundaries {
    /// Boundaries with the name.
    same: Vec<NamedBoundary>,
    /// Boundaries with the name in another language or in another case.
    other: Vec<NamedBoundary>,
    /// Boundaries whose name contains the name that is looked for.
    similar: Vec<NamedBoundary>,
}

/// The maximum number of boundaries that a message lists.
const LISTED: usize = 10;

impl NamedBoundaries {
    fn read(path: &Path, wanted: &str, ctx: &Context) -> Result<Self> {
        let mut found = Self::default();
        let folded = wanted.to_lowercase();
        for_each_area(path, ctx, |id, tags| {
            let value = |key: &str| tags.iter().find(|tag| tag.0 == key).map(|tag| tag.1);
            let Some(class) = value("boundary").or_else(|| value("place")) else {
                return;
            };
            let is_name =
                |key: &str| key == "name" || key.starts_with("name:") || key.ends_with("_name");
            let names = || tags.iter().filter(|(key, _)| is_name(key)).map(|tag| tag.1);
            let list = if value("name") == Some(wanted) {
                &mut found.same
            } else if names().any(|name| name.to_lowercase() == folded) {
                &mut found.other
            } else if names().any(|name| name.to_lowercase().contains(&folded)) {
                &mut found.similar
            } else {
                return;
            };
            let level =
                value("admin_level").map(|level| format!(", admin_level {}", for_message(level)));
            list.push(NamedBoundary {
                id,
                name: for_message(value("name").unwrap_or(wanted)),
                about: for_message(class) + level.as_deref().unwrap_or_default(),
            });
        })?;
        Ok(found)
    }

    /// Returns the id of the boundary with the name.
    fn only_id(&self, wanted: &str) -> Result<i64, String> {
        let found = if self.same.is_empty() {
            &self.other
        } else {
            &self.same
        };
        let wanted = for_message(wanted);
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
