//! Objects as columns.

use crate::arguments::{Texts, columns_of};
use crate::facts::{Fact, FactValues, Row, Rows};
use crate::lists::{Ends, TagColumn, item, list, structs};
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use pbfhogg::changes::ChangeAction;
use pbfhogg::read::BatchMaker;
use pbfhogg::{Element, FormatError, Info, KindSet, Location, Member, ObjectKind};
use pyo3::prelude::*;
use std::sync::Arc;

/// A column of objects or of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The effect of a change.
    Action,
    Fact(Fact),
    Lat,
    Lon,
    Refs,
    Locations,
    Members,
}

impl Column {
    /// Returns all columns of objects, in the order of a table.
    fn all() -> impl Iterator<Item = Self> {
        let own = [
            Self::Lat,
            Self::Lon,
            Self::Refs,
            Self::Locations,
            Self::Members,
        ];
        Fact::ALL.map(Self::Fact).into_iter().chain(own)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Fact(fact) => fact.name(),
            Self::Lat => "lat",
            Self::Lon => "lon",
            Self::Refs => "refs",
            Self::Locations => "locations",
            Self::Members => "members",
        }
    }

    /// Returns all columns of changes, in the order of a table.
    pub fn of_changes() -> impl Iterator<Item = Self> {
        let known = |column: &Self| *column != Self::Fact(Fact::Visible);
        std::iter::once(Self::Action).chain(Self::all().filter(known))
    }

    /// Parses the names of columns of objects.
    pub fn named_of_objects(names: Texts) -> PyResult<Vec<Self>> {
        columns_of(Self::all().collect(), Self::name, names)
    }

    /// Parses the names of columns of changes.
    pub fn named_of_changes(names: Texts) -> PyResult<Vec<Self>> {
        columns_of(Self::of_changes().collect(), Self::name, names)
    }

    /// The columns of a table of some kinds, if none are asked for. The table of a history has deletions.
    pub fn defaults(kinds: KindSet, is_history: bool) -> Vec<Self> {
        let is_default = |column: &Self| match column {
            Self::Fact(Fact::Type) => kinds.single().is_none(),
            Self::Fact(Fact::Visible) => is_history,
            Self::Action | Self::Locations => false,
            Self::Fact(_) => true,
            Self::Lat | Self::Lon => kinds.contains(ObjectKind::Node),
            Self::Refs => kinds.contains(ObjectKind::Way),
            Self::Members => kinds.contains(ObjectKind::Relation),
        };
        Self::all().filter(is_default).collect()
    }

    fn field(self) -> Field {
        let data_type = match self {
            Self::Action => return Field::new(self.name(), DataType::Utf8, false),
            Self::Fact(fact) => return fact.field(self.name()),
            Self::Lat | Self::Lon => DataType::Float64,
            Self::Refs => DataType::List(item(DataType::Int64)),
            Self::Locations => DataType::List(item(DataType::Struct(location_fields()))),
            Self::Members => DataType::List(item(DataType::Struct(member_fields()))),
        };
        Field::new(self.name(), data_type, true)
    }
}

/// A row of a table of objects or of changes.
pub trait ObjectRow: Row {
    /// The effect of a change; `None` for an object.
    fn action(&self) -> Option<ChangeAction> {
        None
    }

    /// The location of a node.
    fn location(&self) -> Option<Location>;

    /// Calls `put` with the ids of the nodes of a way.
    fn for_each_ref(&self, put: impl FnMut(i64));

    /// Calls `put` with the locations of the nodes of a way, if it has them.
    fn for_each_location(&self, put: impl FnMut(Option<Location>));

    /// Calls `put` with the members of a relation.
    fn for_each_member(&self, put: impl FnMut(Member<'_>));
}

impl Row for Element<'_> {
    fn kind(&self) -> ObjectKind {
        self.kind()
    }

    fn id(&self) -> i64 {
        self.id()
    }

    fn info(&self) -> Info<'_> {
        self.info()
    }

    fn put_tags(&self, tags: &mut TagColumn) -> usize {
        tags.push(self.tags())
    }
}

impl ObjectRow for Element<'_> {
    fn location(&self) -> Option<Location> {
        match self {
            Element::Node(node) if node.info().visible => node.location(),
            _ => None,
        }
    }

    fn for_each_ref(&self, put: impl FnMut(i64)) {
        if let Element::Way(way) = self {
            way.refs().for_each(put);
        }
    }

    fn for_each_location(&self, put: impl FnMut(Option<Location>)) {
        if let Element::Way(way) = self {
            way.locations().for_each(put);
        }
    }

    fn for_each_member(&self, put: impl FnMut(Member<'_>)) {
        if let Element::Relation(relation) = self {
            relation.members().for_each(put);
        }
    }
}

fn location_fields() -> Fields {
    vec![
        Field::new("lat", DataType::Float64, true),
        Field::new("lon", DataType::Float64, true),
    ]
    .into()
}

fn member_fields() -> Fields {
    vec![
        Field::new("type", DataType::Utf8, false),
        Field::new("ref", DataType::Int64, false),
        Field::new("role", DataType::Utf8, false),
    ]
    .into()
}

/// Returns the schema of a table with some columns.
pub fn schema(columns: &[Column]) -> SchemaRef {
    let fields = columns.iter().map(|column| column.field());
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The values of a column.
enum Values {
    Action(StringBuilder),
    Fact(FactValues),
    Double(Float64Builder),
    Refs(Ends, Int64Builder),
    Locations(Ends, Float64Builder, Float64Builder),
    Members(Ends, StringBuilder, Int64Builder, StringBuilder),
}

impl Values {
    fn of(column: Column) -> Self {
        match column {
            Column::Action => Self::Action(StringBuilder::new()),
            Column::Fact(fact) => Self::Fact(FactValues::of(fact)),
            Column::Lat | Column::Lon => Self::Double(Float64Builder::new()),
            Column::Refs => Self::Refs(Ends::default(), Int64Builder::new()),
            Column::Locations => Self::Locations(
                Ends::default(),
                Float64Builder::new(),
                Float64Builder::new(),
            ),
            Column::Members => Self::Members(
                Ends::default(),
                StringBuilder::new(),
                Int64Builder::new(),
                StringBuilder::new(),
            ),
        }
    }

    /// Adds the value of a row. Returns its size in bytes, as far as it has no fixed size.
    fn push(&mut self, column: Column, row: &impl ObjectRow) -> usize {
        match self {
            Self::Action(actions) => {
                actions.append_option(row.action().map(ChangeAction::name));
                0
            }
            Self::Fact(values) => match column {
                Column::Fact(fact) => values.push(fact, row),
                _ => 0,
            },
            Self::Double(values) => {
                values.append_option(row.location().map(|location| match column {
                    Column::Lat => location.lat(),
                    _ => location.lon(),
                }));
                0
            }
            Self::Refs(ends, refs) => {
                let before = refs.values_slice().len();
                row.for_each_ref(|id| refs.append_value(id));
                let end = refs.values_slice().len();
                ends.push(end, row.kind() == ObjectKind::Way);
                (end - before) * size_of::<i64>()
            }
            Self::Locations(ends, lats, lons) => {
                let before = lats.values_slice().len();
                row.for_each_location(|location| {
                    lats.append_option(location.map(Location::lat));
                    lons.append_option(location.map(Location::lon));
                });
                let end = lats.values_slice().len();
                ends.push(end, end > before);
                (end - before) * 2 * size_of::<f64>()
            }
            Self::Members(ends, kinds, ids, roles) => {
                let mut bytes = 0;
                row.for_each_member(|member| {
                    kinds.append_value(member.kind.name());
                    ids.append_value(member.id);
                    roles.append_value(member.role);
                    bytes += size_of::<i64>() + member.kind.name().len() + member.role.len();
                });
                let end = ids.values_slice().len();
                ends.push(end, row.kind() == ObjectKind::Relation);
                bytes
            }
        }
    }

    /// Ends the column, and returns it as an array.
    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Action(actions) => Arc::new(actions.finish()),
            Self::Fact(values) => values.finish(),
            Self::Double(values) => Arc::new(values.finish()),
            Self::Refs(ends, refs) => list(ends, DataType::Int64, Arc::new(refs.finish())),
            Self::Locations(ends, lats, lons) => {
                let columns: Vec<ArrayRef> = vec![Arc::new(lats.finish()), Arc::new(lons.finish())];
                structs(ends, location_fields(), columns)
            }
            Self::Members(ends, kinds, ids, roles) => {
                let columns: Vec<ArrayRef> = vec![
                    Arc::new(kinds.finish()),
                    Arc::new(ids.finish()),
                    Arc::new(roles.finish()),
                ];
                structs(ends, member_fields(), columns)
            }
        }
    }
}

/// Collects objects or changes as record batches.
pub struct ObjectColumns(Rows<(Column, Values)>);

impl ObjectColumns {
    pub fn new(columns: &[Column], schema: SchemaRef) -> Self {
        let columns = columns.iter();
        Self(Rows::new(
            schema,
            columns.map(|column| (*column, Values::of(*column))),
        ))
    }

    /// Adds a row.
    pub fn add(&mut self, row: &impl ObjectRow) {
        self.0.add(|(column, values)| values.push(*column, row));
    }

    /// Ends the batch. Returns `None` if it has no rows.
    pub fn take(&mut self) -> Option<RecordBatch> {
        self.0.take(|(_, values)| values.finish())
    }

    /// Whether the batch should end.
    pub const fn is_full(&self) -> bool {
        self.0.is_full()
    }
}

impl BatchMaker for ObjectColumns {
    type Batch = RecordBatch;

    fn add(&mut self, element: &Element<'_>) -> Result<(), FormatError> {
        self.add(element);
        Ok(())
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.take()
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }
}
