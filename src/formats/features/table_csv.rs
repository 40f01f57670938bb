//! Writes tables as comma-separated values.

use super::geojson::put_tags;
use crate::formats::csv::CsvText;
use crate::formats::table::{ColumnGetter, RowType, TableColumn, TagPairs};

/// Appends the row with the names of columns.
pub(crate) fn put_table_header<T: RowType>(csv: &mut CsvText, columns: &[TableColumn<T>]) {
    let names: Vec<_> = columns.iter().map(|column| column.name).collect();
    csv.put_header(&names);
}

/// Appends a row. Tags are JSON objects. The fields of lists, boxes and geometries are empty.
pub(crate) fn put_table_row<T: RowType>(
    csv: &mut CsvText,
    columns: &[TableColumn<T>],
    row: &T::Row<'_>,
) {
    for column in columns {
        match column.getter {
            ColumnGetter::Name(name) => csv.put_text(Some(name(row))),
            ColumnGetter::Text(text) => csv.put_text(text(row)),
            ColumnGetter::Int32(number) => csv.put_integer(number(row).map(i64::from)),
            ColumnGetter::Int64(number) => csv.put_integer(number(row)),
            ColumnGetter::Time(seconds) => csv.put_time(seconds(row)),
            ColumnGetter::Double(number) => {
                csv.put_text(number(row).map(|number| number.to_string()).as_deref());
            }
            ColumnGetter::Degrees(e7) => csv.put_degrees(e7(row)),
            ColumnGetter::Bool(is_true) => {
                csv.put_text(Some(if is_true(row) { "true" } else { "false" }));
            }
            ColumnGetter::Tags(tags) => csv.put_value(tags(row), |text, tags: TagPairs<'_>| {
                put_tags(text, &tags.collect::<Vec<_>>());
            }),
            _ => csv.put_text(None),
        }
    }
    csv.end_row();
}
