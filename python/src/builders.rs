//! Arrays of Arrow for the columns of tables.

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder,
    StringBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use pbfhogg::Location;
use pbfhogg::model::UniqueTags;
use pbfhogg::unstable::formats::{ColumnGetter, RowType, TableColumn};
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the field of a column in a schema.
pub fn field<T: RowType>(column: &TableColumn<T>) -> Field {
    let empty = ColumnBuilder::of(&column.getter).finish();
    let field = Field::new(column.name, empty.data_type().clone(), column.is_nullable);
    match column.getter {
        ColumnGetter::Geometry(_) => field.with_metadata(geometry_metadata()),
        _ => field,
    }
}

/// Returns the metadata of a column of geometries: WKB in longitude and latitude.
fn geometry_metadata() -> HashMap<String, String> {
    let crs = r#"{"crs":"OGC:CRS84","crs_type":"authority_code"}"#;
    let metadata = [
        ("ARROW:extension:name", "geoarrow.wkb"),
        ("ARROW:extension:metadata", crs),
    ];
    HashMap::from(metadata.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

fn entries() -> Field {
    Field::new("entries", DataType::Struct(tag_fields()), false)
}

fn fields<const N: usize>(names: [&str; N], data_type: &DataType, is_nullable: bool) -> Fields {
    let fields = names.map(|name| Field::new(name, data_type.clone(), is_nullable));
    fields.to_vec().into()
}

fn tag_fields() -> Fields {
    fields(["key", "value"], &DataType::Utf8, false)
}

fn place_fields() -> Fields {
    fields(["lat", "lon"], &DataType::Float64, true)
}

fn bbox_fields() -> Fields {
    fields(["xmin", "ymin", "xmax", "ymax"], &DataType::Float64, false)
}

fn member_fields() -> Fields {
    vec![
        Field::new("type", DataType::Utf8, false),
        Field::new("ref", DataType::Int64, false),
        Field::new("role", DataType::Utf8, false),
    ]
    .into()
}

/// The end of each list in the values, and whether the row has such a list.
pub struct Ends {
    offsets: Vec<i32>,
    is_there: NullBufferBuilder,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            is_there: NullBufferBuilder::new(0),
        }
    }
}

impl Ends {
    /// Adds the end of a list. `is_there` is `false` for a row that has no such list.
    fn push(&mut self, end: usize, is_there: bool) {
        self.offsets.push(end as i32);
        self.is_there.append(is_there);
    }

    /// Returns a column of lists.
    fn lists(&mut self, values: ArrayRef) -> ArrayRef {
        let mut ends = std::mem::take(self);
        let offsets = OffsetBuffer::new(ends.offsets.into());
        let item = Arc::new(Field::new("item", values.data_type().clone(), false));
        Arc::new(ListArray::new(
            item,
            offsets,
            values,
            ends.is_there.finish(),
        ))
    }

    /// Returns a column of maps.
    fn maps(&mut self, tags: StructArray) -> ArrayRef {
        let mut ends = std::mem::take(self);
        let offsets = OffsetBuffer::new(ends.offsets.into());
        let entries = Arc::new(entries());
        Arc::new(MapArray::new(
            entries,
            offsets,
            tags,
            ends.is_there.finish(),
            false,
        ))
    }
}

/// The values of a column.
pub enum ColumnBuilder {
    Text(StringBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Time(TimestampMillisecondBuilder),
    Double(Float64Builder),
    Bool(BooleanBuilder),
    Tags(Ends, [StringBuilder; 2]),
    Refs(Ends, Vec<i64>),
    /// Latitudes and longitudes, and the locations of the current row.
    Locations(Ends, [Float64Builder; 2], Vec<Option<Location>>),
    /// Kinds, ids and roles.
    Members(Ends, StringBuilder, Int64Builder, StringBuilder),
    Bbox([Float64Builder; 4], NullBufferBuilder),
    /// Geometries, and the bytes of the current one.
    Geometry(BinaryBuilder, Vec<u8>),
}

impl ColumnBuilder {
    pub fn of<T: RowType>(getter: &ColumnGetter<T>) -> Self {
        match getter {
            ColumnGetter::Name(_) | ColumnGetter::Text(_) => Self::Text(StringBuilder::new()),
            ColumnGetter::Int32(_) => Self::Int32(Int32Builder::new()),
            ColumnGetter::Int64(_) => Self::Int64(Int64Builder::new()),
            ColumnGetter::Time(_) => {
                Self::Time(TimestampMillisecondBuilder::new().with_timezone("UTC"))
            }
            ColumnGetter::Double(_) | ColumnGetter::Degrees(_) => {
                Self::Double(Float64Builder::new())
            }
            ColumnGetter::Bool(_) => Self::Bool(BooleanBuilder::new()),
            ColumnGetter::Tags(_) => Self::Tags(Ends::default(), Default::default()),
            ColumnGetter::Refs(_) => Self::Refs(Ends::default(), Vec::new()),
            ColumnGetter::Locations(_) => {
                Self::Locations(Ends::default(), Default::default(), Vec::new())
            }
            ColumnGetter::Members(_) => Self::Members(
                Ends::default(),
                StringBuilder::new(),
                Int64Builder::new(),
                StringBuilder::new(),
            ),
            ColumnGetter::Bbox(_) => Self::Bbox(Default::default(), NullBufferBuilder::new(0)),
            ColumnGetter::Geometry(_) => Self::Geometry(BinaryBuilder::new(), Vec::new()),
        }
    }

    /// Adds the value of a row. Returns its size in bytes, as far as it has no fixed size. The builder must have been
    /// created for the getter.
    pub fn push<T: RowType>(&mut self, getter: &ColumnGetter<T>, row: &T::Row<'_>) -> usize {
        match (self, getter) {
            (builder, ColumnGetter::Name(name)) => return builder.push_text(Some(name(row))),
            (builder, ColumnGetter::Text(text)) => return builder.push_text(text(row)),
            (Self::Int32(values), ColumnGetter::Int32(value)) => values.append_option(value(row)),
            (Self::Int64(values), ColumnGetter::Int64(value)) => values.append_option(value(row)),
            (Self::Time(values), ColumnGetter::Time(seconds)) => {
                values.append_option(seconds(row).map(|seconds| seconds.saturating_mul(1000)));
            }
            (Self::Double(values), ColumnGetter::Double(value)) => values.append_option(value(row)),
            (Self::Double(values), ColumnGetter::Degrees(e7)) => {
                values.append_option(e7(row).map(degrees));
            }
            (Self::Bool(values), ColumnGetter::Bool(value)) => values.append_value(value(row)),
            (Self::Bbox(columns, is_there), ColumnGetter::Bbox(edges)) => {
                let edges = edges(row);
                is_there.append(edges.is_some());
                let edges = edges.unwrap_or_default();
                let edges = [edges.west, edges.south, edges.east, edges.north];
                for (column, edge) in columns.iter_mut().zip(edges) {
                    column.append_value(degrees(edge));
                }
            }
            (Self::Geometry(values, wkb), ColumnGetter::Geometry(put)) => {
                wkb.clear();
                let is_there = put(row, wkb);
                values.append_option(is_there.then_some(wkb.as_slice()));
                return wkb.len();
            }
            (builder, getter) => return builder.push_list(getter, row),
        }
        0
    }

    /// Adds a text. Returns its size in bytes.
    pub fn push_text(&mut self, text: Option<&str>) -> usize {
        if let Self::Text(texts) = self {
            texts.append_option(text);
        }
        text.map_or(0, str::len)
    }

    /// Adds a list. Returns its size in bytes. Of several tags with the same key, it adds the first one, because
    /// programs refuse maps in which a key occurs twice.
    fn push_list<T: RowType>(&mut self, getter: &ColumnGetter<T>, row: &T::Row<'_>) -> usize {
        let mut bytes = 0;
        match (self, getter) {
            (Self::Tags(ends, [keys, values]), ColumnGetter::Tags(tags)) => {
                let tags = tags(row);
                let is_there = tags.is_some();
                if let Some(tags) = tags {
                    for (key, value) in UniqueTags::new(tags) {
                        keys.append_value(key);
                        values.append_value(value);
                        bytes += key.len() + value.len();
                    }
                }
                ends.push(keys.len(), is_there);
            }
            (Self::Refs(ends, refs), ColumnGetter::Refs(put)) => {
                let before = refs.len();
                let is_there = put(row, refs);
                bytes = (refs.len() - before) * size_of::<i64>();
                ends.push(refs.len(), is_there);
            }
            (Self::Locations(ends, [lats, lons], locations), ColumnGetter::Locations(put)) => {
                locations.clear();
                let is_there = put(row, locations);
                for location in locations.iter() {
                    lats.append_option(location.map(Location::lat));
                    lons.append_option(location.map(Location::lon));
                }
                bytes = locations.len() * 2 * size_of::<f64>();
                ends.push(lats.len(), is_there);
            }
            (Self::Members(ends, kinds, ids, roles), ColumnGetter::Members(members)) => {
                let members = members(row);
                let is_there = members.is_some();
                for member in members.into_iter().flatten() {
                    kinds.append_value(member.kind.name());
                    ids.append_value(member.id);
                    roles.append_value(member.role);
                    bytes += size_of::<i64>() + member.kind.name().len() + member.role.len();
                }
                ends.push(ids.len(), is_there);
            }
            _ => {}
        }
        bytes
    }

    /// Ends the column, and returns it as an array.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(values.finish()),
            Self::Int32(values) => Arc::new(values.finish()),
            Self::Int64(values) => Arc::new(values.finish()),
            Self::Time(values) => Arc::new(values.finish()),
            Self::Double(values) => Arc::new(values.finish()),
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Tags(ends, texts) => {
                let texts = texts.each_mut().map(finished);
                ends.maps(StructArray::new(tag_fields(), texts.into(), None))
            }
            Self::Refs(ends, refs) => ends.lists(Arc::new(Int64Array::from(std::mem::take(refs)))),
            Self::Locations(ends, places, _) => {
                let places = places.each_mut().map(finished);
                ends.lists(Arc::new(StructArray::new(
                    place_fields(),
                    places.into(),
                    None,
                )))
            }
            Self::Members(ends, kinds, ids, roles) => {
                let columns = vec![finished(kinds), finished(ids), finished(roles)];
                ends.lists(Arc::new(StructArray::new(member_fields(), columns, None)))
            }
            Self::Bbox(edges, is_there) => {
                let edges = edges.each_mut().map(finished);
                Arc::new(StructArray::new(
                    bbox_fields(),
                    edges.into(),
                    is_there.finish(),
                ))
            }
            Self::Geometry(values, _) => Arc::new(values.finish()),
        }
    }
}

/// Ends a part of a column, and returns it as an array.
fn finished(builder: &mut impl ArrayBuilder) -> ArrayRef {
    builder.finish()
}

/// Converts a coordinate to degrees.
fn degrees(e7: i32) -> f64 {
    f64::from(e7) / 1e7
}
