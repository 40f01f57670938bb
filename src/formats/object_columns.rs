//! The columns of tables of objects and of changes, with the nodes of ways and the members of relations.

use super::change_set::Change;
use super::table::{ColumnGetter, MemberItems, OsmRow, RowType, TableColumn, TagPairs};
use crate::osm::{Location, ObjectKind};
use crate::pbf::{Element, Info, Object, ObjectBody};

/// A row of a table of objects or of changes.
pub enum ObjectView<'a> {
    /// An object of a block.
    Stored(&'a Element<'a>),
    /// A change and its object.
    Changed(&'a Change, &'a Object<'a>),
}

impl ObjectView<'_> {
    /// Returns the name of the action of a change; an empty string for an object.
    const fn action(&self) -> &'static str {
        match self {
            Self::Stored(_) => "",
            Self::Changed(change, _) => change.action.name(),
        }
    }

    /// Returns the location of a node; `None` for a deleted node of a block, and for other kinds.
    fn location(&self) -> Option<Location> {
        match self {
            Self::Stored(Element::Node(node)) if node.info().visible => node.location(),
            Self::Changed(_, object) => match object.body {
                ObjectBody::Node { location } => location,
                _ => None,
            },
            Self::Stored(_) => None,
        }
    }

    /// Appends the ids of the nodes of a way. Returns whether the object is a way.
    fn put_refs_if_way(&self, out: &mut Vec<i64>) -> bool {
        match self {
            Self::Stored(Element::Way(way)) => out.extend(way.refs()),
            Self::Changed(_, object) => match &object.body {
                ObjectBody::Way { refs, .. } => out.extend_from_slice(refs),
                _ => return false,
            },
            Self::Stored(_) => return false,
        }
        true
    }

    /// Appends the locations of the nodes of a way. Returns whether the way has locations.
    fn put_locations(&self, out: &mut Vec<Option<Location>>) -> bool {
        let before = out.len();
        match self {
            Self::Stored(Element::Way(way)) => out.extend(way.locations()),
            Self::Changed(_, object) => {
                if let ObjectBody::Way { locations, .. } = &object.body {
                    out.extend_from_slice(locations);
                }
            }
            Self::Stored(_) => {}
        }
        out.len() > before
    }

    /// Returns the members of a relation; `None` for other kinds.
    fn members(&self) -> Option<MemberItems<'_>> {
        match self {
            Self::Stored(Element::Relation(relation)) => {
                Some(MemberItems::Stored(relation.members()))
            }
            Self::Changed(_, object) => match &object.body {
                ObjectBody::Relation { members } => Some(MemberItems::Listed(members.iter())),
                _ => None,
            },
            Self::Stored(_) => None,
        }
    }
}

impl OsmRow for ObjectView<'_> {
    fn kind(&self) -> ObjectKind {
        match self {
            Self::Stored(element) => element.kind(),
            Self::Changed(_, object) => object.kind(),
        }
    }

    fn id(&self) -> i64 {
        match self {
            Self::Stored(element) => element.id(),
            Self::Changed(_, object) => object.id,
        }
    }

    fn info(&self) -> Info<'_> {
        match self {
            Self::Stored(element) => element.info(),
            Self::Changed(_, object) => object.info,
        }
    }

    fn tags(&self) -> TagPairs<'_> {
        match self {
            Self::Stored(element) => TagPairs::Stored(element.tags()),
            Self::Changed(_, object) => TagPairs::Listed(object.tags.iter()),
        }
    }
}

/// The rows of a table of objects or of changes.
#[derive(Clone, Copy)]
pub struct ElementRows;

impl RowType for ElementRows {
    type Row<'r> = ObjectView<'r>;
}

type ObjectColumn = TableColumn<ElementRows>;

/// The columns of tables of changes and of objects. A table of objects has no column `action`, and a table of changes
/// has no column `visible`.
pub const OBJECT_COLUMNS: [ObjectColumn; 15] = {
    use ColumnGetter::{Degrees, Locations, Members, Name, Refs};
    [
        ObjectColumn::required("action", Name(|row| row.action())),
        ObjectColumn::TYPE,
        ObjectColumn::ID,
        ObjectColumn::VERSION,
        ObjectColumn::TIMESTAMP,
        ObjectColumn::CHANGESET,
        ObjectColumn::UID,
        ObjectColumn::USER,
        ObjectColumn::VISIBLE,
        ObjectColumn::TAGS,
        ObjectColumn::optional("lat", Degrees(|row| Some(row.location()?.lat_e7()))),
        ObjectColumn::optional("lon", Degrees(|row| Some(row.location()?.lon_e7()))),
        ObjectColumn::optional("refs", Refs(|row, out| row.put_refs_if_way(out))),
        ObjectColumn::optional("locations", Locations(|row, out| row.put_locations(out))),
        ObjectColumn::optional("members", Members(|row| row.members())),
    ]
};
