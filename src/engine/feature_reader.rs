//! Reads objects with their geometries: points, lines, and the polygons of closed ways and multipolygons.

use super::geometry_pass::{GeometryPass, LocationsInWays, Visitor, Visits, is_area};
use super::geometry_problem::{Problem, ProblemCounts, warn_of_left_out_objects};
use super::input;
use super::object_geometry::{GeometryMaker, is_closed};
use super::way_locations::{IndexType, LocateOptions};
use crate::area::{AreaPolygon, WayStore};
use crate::error::{FormatError, FormatResult, Result};
use crate::file::PbfFile;
use crate::geometry::Point;
use crate::osm::{Location, ObjectId, ObjectKind};
use crate::pbf::{Block, Element, Info, Relation, Way};
use crate::runtime::Context;
use std::path::Path;
use std::sync::Arc;

/// The number of features and problems that a thread collects before it sends them.
const AT_ONCE: usize = 1000;
/// The number of points at which a thread sends the collected features. A single feature may have millions of points.
const POINTS_AT_ONCE: usize = 1 << 18;

/// The form in which a [`FeatureReader`] returns an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// The object is left out.
    Skip,
    /// A node as a point, a way as a line.
    Line,
    /// A closed way, or a relation with `type=multipolygon` or `type=boundary`, as polygons. Other objects are left
    /// out.
    Area,
}

/// An object with its geometry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Feature {
    /// The kind and the id of the object.
    pub id: ObjectId,
    /// The tags as pairs of a key and a value, in file order.
    pub tags: Vec<(String, String)>,
    /// The geometry.
    pub geometry: Geometry,
}

impl Feature {
    /// Returns the value of the tag with the given key.
    pub fn tag(&self, key: &str) -> Option<&str> {
        let tag = self.tags.iter().find(|(name, _)| name == key);
        tag.map(|(_, value)| value.as_str())
    }
}

/// The geometry of a [`Feature`], in units of 1e-7 degree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Geometry {
    /// The location of a node.
    Point(Point),
    /// The locations of the nodes of a way, two or more. Consecutive nodes with the same location become one point. A
    /// line across the antimeridian is not cut.
    Line(Vec<Point>),
    /// The polygons of an area, one or more. Their rings neither cross each other nor share edges, so the polygons are
    /// valid. An area across the antimeridian is cut there, unless it is around a pole.
    Area(Vec<AreaPolygon>),
}

/// A function that chooses the [`Form`] of an object by its kind and tags.
type Select = dyn Fn(ObjectKind, &[(&str, &str)]) -> Form + Send + Sync;

/// Reads objects with their geometries from a file in any format. If the header declares locations in ways, the stored
/// locations are used, and nodes are looked up only for ways that lack a location. Otherwise all nodes are looked up. A
/// way's stored location is used only if the file lacks the node. Areas are assembled by the even-odd rule.
///
/// The file must hold current data, not a history. Unless all ways store locations, the locations of all nodes are kept
/// in memory, which needs 8 bytes per node if the file is sorted; see [`IndexType`].
///
/// ```
/// use pbfhogg::ObjectKind;
/// use pbfhogg::areas::{FeatureReader, Form, Geometry};
///
/// # use pbfhogg::{Context, OutputOptions, commands::synth};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("world.osm.pbf");
/// # synth::run(&synth::Options::new(20_000, OutputOptions::file(&path)), &Context::default())?;
/// let mut corners = 0;
/// let buildings = FeatureReader::from_path(&path)?.select(|_, tags| {
///     if tags.iter().any(|(key, _)| *key == "building") { Form::Area } else { Form::Skip }
/// });
/// buildings.for_each(|feature| {
///     if let Geometry::Area(polygons) = feature.geometry {
///         corners += polygons.iter().map(|polygon| polygon.outer.len()).sum::<usize>();
///     }
///     Ok(())
/// })?;
/// assert!(corners > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FeatureReader {
    file: PbfFile,
    select: Arc<Select>,
    index_type: IndexType,
    ctx: Context,
}

impl std::fmt::Debug for FeatureReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeatureReader")
            .field("file", &self.file.input.path())
            .finish_non_exhaustive()
    }
}

impl FeatureReader {
    /// Opens a file in any format.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or is not OSM data.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self> {
        Self::with_context(path, Context::default())
    }

    /// Opens a file in any format. `ctx` defines the number of threads, and the observer of progress and warnings.
    ///
    /// # Errors
    ///
    /// As [`from_path`](Self::from_path).
    pub fn with_context(path: impl AsRef<Path>, ctx: Context) -> Result<Self> {
        Ok(Self {
            file: input::open(path.as_ref(), &ctx)?,
            select: Arc::new(|_, _| Form::Line),
            index_type: IndexType::default(),
            ctx,
        })
    }

    /// Sets the function that chooses the [`Form`] of each object by its kind and tags. By default, nodes with tags are
    /// points and ways are lines.
    #[must_use]
    pub fn select(
        self,
        select: impl Fn(ObjectKind, &[(&str, &str)]) -> Form + Send + Sync + 'static,
    ) -> Self {
        Self {
            select: Arc::new(select),
            ..self
        }
    }

    /// Sets the index for looking up the locations of nodes.
    #[must_use]
    pub fn index_type(self, index_type: IndexType) -> Self {
        Self { index_type, ..self }
    }

    /// Calls `visit` with each selected object that has a geometry, on the calling thread. Nodes come first, then ways,
    /// then relations, each in file order. Other threads build the geometries. Omits nodes without tags.
    ///
    /// Objects with an error are left out: those that lack the location of a node, invalid areas, and areas that lack a
    /// member. A warning gives their number.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is damaged, or is a history file. Also returns the first error of `visit`.
    pub fn for_each(&self, visit: impl FnMut(Feature) -> Result<()>) -> Result<()> {
        let mut counts = ProblemCounts::default();
        self.visit(visit, false, |problem| {
            counts.add(problem);
            Ok(())
        })?;
        warn_of_left_out_objects(&counts.errors, counts.incomplete, &self.ctx);
        Ok(())
    }

    /// Visits objects as [`for_each`](Self::for_each) does. Instead of a warning, calls `report` with each problem of a
    /// selected object, in file order. An object may have problems and a geometry.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each), and the first error of `report`.
    pub fn for_each_with_problems(
        &self,
        visit: impl FnMut(Feature) -> Result<()>,
        report: impl FnMut(&Problem) -> Result<()>,
    ) -> Result<()> {
        self.visit(visit, true, report)
    }

    /// Visits objects. If `names_nodes` is set, problems have the ids of the nodes of member ways.
    fn visit(
        &self,
        mut visit: impl FnMut(Feature) -> Result<()>,
        names_nodes: bool,
        mut report: impl FnMut(&Problem) -> Result<()>,
    ) -> Result<()> {
        let locate = LocateOptions::new(self.index_type, std::env::temp_dir(), None);
        let visits = Visits {
            member_node_ids: names_nodes,
            ..Visits::TAGGED
        };
        let stored = LocationsInWays::AsDeclared;
        let pass = GeometryPass::open(&self.file, visits, stored, locate, &self.ctx)?;
        let init = || Worker {
            select: &*self.select,
            geometry: GeometryMaker::default(),
            found: FoundFeatures::default(),
            points: 0,
        };
        let of_block = |block: &Block<'_>| area_flags(&*self.select, block);
        pass.run(of_block, init, |found| {
            found.problems.iter().try_for_each(&mut report)?;
            found.features.into_iter().try_for_each(&mut visit)
        })?;
        Ok(())
    }
}

/// Returns, for each object of a block, whether it is a relation that is selected as an area.
fn area_flags(select: &Select, block: &Block<'_>) -> FormatResult<Vec<bool>> {
    let mut wanted = Vec::new();
    block.try_for_each(|element| {
        wanted.push(match &element {
            Element::Relation(relation) => is_wanted_area(select, relation),
            Element::Node(_) | Element::Way(_) => false,
        });
        Ok::<_, FormatError>(())
    })?;
    Ok(wanted)
}

fn is_wanted_area(select: &Select, relation: &Relation<'_>) -> bool {
    let tags: Vec<_> = relation.tags().collect();
    is_area(relation.tags()) && select(ObjectKind::Relation, &tags) == Form::Area
}

/// Features, and the problems of objects.
#[derive(Default)]
struct FoundFeatures {
    features: Vec<Feature>,
    problems: Vec<Problem>,
}

/// Builds features in one thread.
struct Worker<'r> {
    select: &'r Select,
    geometry: GeometryMaker,
    found: FoundFeatures,
    /// The number of points of the features in `found`.
    points: usize,
}

impl FoundFeatures {
    fn add(&mut self, kind: ObjectKind, id: i64, tags: &[(&str, &str)], geometry: Geometry) {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        self.features.push(Feature {
            id: ObjectId { kind, id },
            tags: tags.iter().map(owned).collect(),
            geometry,
        });
    }

    /// Adds an area, unless there are no polygons. Returns the number of its points.
    fn add_area(
        &mut self,
        (kind, id): (ObjectKind, i64),
        tags: &[(&str, &str)],
        polygons: Vec<AreaPolygon>,
    ) -> usize {
        let rings = polygons.iter().flat_map(AreaPolygon::rings);
        let points = rings.map(Vec::len).sum();
        if !polygons.is_empty() {
            self.add(kind, id, tags, Geometry::Area(polygons));
        }
        points
    }
}

impl Visitor for Worker<'_> {
    type Found = FoundFeatures;

    fn visit_node<'t>(
        &mut self,
        id: i64,
        info: Info<'_>,
        location: Option<Location>,
        tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> FormatResult<()> {
        let (kind, tags) = (ObjectKind::Node, tags.collect::<Vec<_>>());
        if !info.visible || (self.select)(kind, &tags) != Form::Line {
            return Ok(());
        }
        let problems = &mut self.found.problems;
        if let Some(point) =
            GeometryMaker::point(id, location, &mut |problem| problems.push(problem))
        {
            self.points += 1;
            self.found.add(kind, id, &tags, Geometry::Point(point));
        }
        Ok(())
    }

    fn visit_way(&mut self, way: &Way<'_>, locations: &[Option<Location>]) -> FormatResult<()> {
        let (kind, id, refs) = (ObjectKind::Way, way.id(), way.refs());
        let (found, tags) = (&mut self.found, way.tags().collect::<Vec<_>>());
        let problems = &mut found.problems;
        let report = &mut |problem| problems.push(problem);
        match (self.select)(kind, &tags) {
            Form::Line => {
                if let Some(points) = self.geometry.line_of_way(id, refs, locations, report) {
                    self.points += points.len();
                    found.add(kind, id, &tags, Geometry::Line(points.to_vec()));
                }
            }
            Form::Area if is_closed(locations) => {
                let polygons = self.geometry.polygons_of_way(id, refs, locations, report);
                self.points += found.add_area((kind, id), &tags, polygons.into_owned());
            }
            Form::Area | Form::Skip => {}
        }
        Ok(())
    }

    fn visit_relation(&mut self, relation: &Relation<'_>, ways: &WayStore) -> FormatResult<()> {
        if !is_wanted_area(self.select, relation) {
            return Ok(());
        }
        let (id, members, found) = (relation.id(), relation.members(), &mut self.found);
        let report = &mut |problem| found.problems.push(problem);
        let polygons = self
            .geometry
            .polygons_of_relation(id, members, ways, report);
        let tags: Vec<_> = relation.tags().collect();
        self.points += found.add_area((ObjectKind::Relation, id), &tags, polygons);
        Ok(())
    }

    fn take_result(&mut self, is_end: bool) -> FormatResult<Option<Self::Found>> {
        let FoundFeatures { features, problems } = &self.found;
        let count = features.len() + problems.len();
        let is_many = count >= AT_ONCE || self.points >= POINTS_AT_ONCE;
        if !is_many && (!is_end || count == 0) {
            return Ok(None);
        }
        self.points = 0;
        Ok(Some(std::mem::take(&mut self.found)))
    }
}
