//! Columns of tables: their names, the types of their values, and the value of a row. Parquet, comma-separated values
//! and the tables of the Python package are made from these descriptions, so a new column is a new item of one list.

use crate::osm::{Edges, Location, ObjectKind};
use crate::pbf::{Info, Member, Members, Tags};
use ColumnGetter::{Bool, Int32, Int64, Name, Text, Time};
use std::slice;

/// The type of the rows of a table. Rows may borrow from a block that is gone before the table is complete.
pub trait RowType: Copy + 'static {
    /// A row.
    type Row<'r>;
}

/// A column of a table.
#[derive(Clone, Copy)]
pub struct TableColumn<T: RowType> {
    /// The name.
    pub name: &'static str,
    /// Whether a row may lack a value.
    pub is_nullable: bool,
    /// The type of the values, and the function that gets the value of a row.
    pub getter: ColumnGetter<T>,
}

/// The type of the values of a column, and the function that gets the value of a row. The function returns `None` or
/// `false` if there is no value.
pub enum ColumnGetter<T: RowType> {
    /// A name from a fixed list.
    Name(fn(&T::Row<'_>) -> &'static str),
    /// A text.
    Text(for<'a> fn(&'a T::Row<'_>) -> Option<&'a str>),
    /// A 32-bit number.
    Int32(fn(&T::Row<'_>) -> Option<i32>),
    /// A 64-bit number.
    Int64(fn(&T::Row<'_>) -> Option<i64>),
    /// A time in seconds since 1970.
    Time(fn(&T::Row<'_>) -> Option<i64>),
    /// A floating-point number.
    Double(fn(&T::Row<'_>) -> Option<f64>),
    /// A coordinate in units of 1e-7 degree.
    Degrees(fn(&T::Row<'_>) -> Option<i32>),
    /// A truth value.
    Bool(fn(&T::Row<'_>) -> bool),
    /// Tags.
    Tags(for<'a> fn(&'a T::Row<'_>) -> Option<TagPairs<'a>>),
    /// The ids of the nodes of a way, which the function appends to a list.
    Refs(fn(&T::Row<'_>, &mut Vec<i64>) -> bool),
    /// The locations of the nodes of a way, which the function appends to a list.
    Locations(fn(&T::Row<'_>, &mut Vec<Option<Location>>) -> bool),
    /// The members of a relation.
    Members(for<'a> fn(&'a T::Row<'_>) -> Option<MemberItems<'a>>),
    /// The edges of a box in units of 1e-7 degree.
    Bbox(fn(&T::Row<'_>) -> Option<Edges<i32>>),
    /// A geometry, whose WKB the function appends to a buffer.
    Geometry(fn(&T::Row<'_>, &mut Vec<u8>) -> bool),
}

impl<T: RowType> Clone for ColumnGetter<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: RowType> Copy for ColumnGetter<T> {}

impl<T: RowType> TableColumn<T> {
    /// Creates a column in which each row has a value.
    pub const fn required(name: &'static str, getter: ColumnGetter<T>) -> Self {
        Self {
            name,
            is_nullable: false,
            getter,
        }
    }

    /// Creates a column in which a row may lack a value.
    pub const fn optional(name: &'static str, getter: ColumnGetter<T>) -> Self {
        Self {
            name,
            is_nullable: true,
            getter,
        }
    }

    /// Returns the column under another name.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

/// A row with the data of an object.
pub trait OsmRow {
    /// Returns the kind of the object.
    fn kind(&self) -> ObjectKind;

    /// Returns the id of the object.
    fn id(&self) -> i64;

    /// Returns the metadata of the object.
    fn info(&self) -> Info<'_>;

    /// Returns the tags of the object.
    fn tags(&self) -> TagPairs<'_>;
}

/// The columns that tables of objects, features and changes have in common.
impl<T: RowType> TableColumn<T>
where
    for<'r> T::Row<'r>: OsmRow,
{
    /// The kind of the object.
    pub const TYPE: Self = Self::required("type", Name(|row| row.kind().name()));
    /// The id of the object.
    pub const ID: Self = Self::required("id", Int64(|row| Some(row.id())));
    /// The version of the object.
    pub const VERSION: Self =
        Self::optional("version", Int32(|row| Some(row.info().version? as i32)));
    /// The time of the version.
    pub const TIMESTAMP: Self = Self::optional("timestamp", Time(|row| row.info().timestamp));
    /// The changeset of the version.
    pub const CHANGESET: Self = Self::optional("changeset", Int64(|row| row.info().changeset));
    /// The id of the user.
    pub const UID: Self = Self::optional("uid", Int32(|row| row.info().uid));
    /// The name of the user.
    pub const USER: Self = Self::optional("user", Text(|row| row.info().user));
    /// Whether the object is not deleted in this version.
    pub const VISIBLE: Self = Self::required("visible", Bool(|row| row.info().visible));
    /// The tags of the object.
    pub const TAGS: Self = Self::required("tags", ColumnGetter::Tags(|row| Some(row.tags())));

    /// The columns of the metadata.
    pub const METADATA: [Self; 5] = [
        Self::VERSION,
        Self::TIMESTAMP,
        Self::CHANGESET,
        Self::UID,
        Self::USER,
    ];
}

/// An iterator over tags as pairs of a key and a value.
#[derive(Clone)]
pub enum TagPairs<'a> {
    /// Tags of an object that is read from a block.
    Stored(Tags<'a>),
    /// Tags of an object that borrows its strings.
    Listed(slice::Iter<'a, (&'a str, &'a str)>),
    /// Tags of an object that owns its strings.
    Owned(slice::Iter<'a, (String, String)>),
}

impl<'a> Iterator for TagPairs<'a> {
    type Item = (&'a str, &'a str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Stored(tags) => tags.next(),
            Self::Listed(tags) => tags.next().copied(),
            Self::Owned(tags) => {
                let (key, value) = tags.next()?;
                Some((key, value))
            }
        }
    }
}

/// An iterator over the members of a relation.
#[derive(Clone)]
pub enum MemberItems<'a> {
    /// Members of a relation that is read from a block.
    Stored(Members<'a>),
    /// Members of a relation that borrows its strings.
    Listed(slice::Iter<'a, Member<'a>>),
}

impl<'a> Iterator for MemberItems<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        match self {
            Self::Stored(members) => members.next(),
            Self::Listed(members) => members.next().copied(),
        }
    }
}
