//! The rows of the layers of a coast: lines, polygons, and problems.

#[cfg(feature = "parquet")]
use super::put_wkb;
use super::{Feature, OwnedGeometry};
#[cfg(feature = "parquet")]
use crate::formats::table::{ColumnGetter, RowType, TableColumn};
use crate::osm::ObjectKind;
use crate::pbf::Info;

/// A row of one of the layers that `coastline` writes: polygons, lines, or problems.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoastRow {
    /// The column and the row of the grid cell in which a polygon lies.
    pub cell: Option<[i32; 2]>,
    /// The ids of ways, with commas between them; empty for polygons.
    pub ways: String,
    /// The kind of a problem, the id of its node, and its description.
    pub problem: Option<(&'static str, Option<i64>, String)>,
    pub geometry: OwnedGeometry,
}

/// The columns of a layer, besides the geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoastColumns {
    /// The layer has whole polygons and no further columns.
    Polygons,
    /// The layer has polygons that are divided by grid cells, with the columns `x` and `y`.
    Cells,
    /// The layer has lines, with the column `ways`.
    Lines,
    /// The layer has problems, with the columns `kind`, `ways`, `node` and `description`.
    Problems,
}

impl CoastRow {
    /// Calls `put` with the row as a feature.
    pub(crate) fn with_feature(&self, put: impl FnOnce(&Feature<'_>)) {
        let mut properties: Vec<(&str, String)> = Vec::new();
        if let Some([x, y]) = self.cell {
            properties.extend([("x", x.to_string()), ("y", y.to_string())]);
        }
        if let Some((kind, node, description)) = &self.problem {
            properties.push(("kind", (*kind).to_owned()));
            properties.extend(node.map(|node| ("node", node.to_string())));
            properties.push(("description", description.clone()));
        }
        if !self.ways.is_empty() {
            properties.push(("ways", self.ways.clone()));
        }
        let tags: Vec<(&str, &str)> = properties
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        let object = (ObjectKind::Way, 0);
        put(&Feature::new(
            object,
            Info::default(),
            &tags,
            self.geometry.view(),
        ));
    }
}

/// The rows of a layer.
#[cfg(feature = "parquet")]
#[derive(Clone, Copy)]
pub(crate) struct CoastRows;

#[cfg(feature = "parquet")]
impl RowType for CoastRows {
    type Row<'r> = &'r CoastRow;
}

/// A column of a layer.
#[cfg(feature = "parquet")]
pub(crate) type CoastColumn = TableColumn<CoastRows>;

#[cfg(feature = "parquet")]
impl CoastColumns {
    /// Returns the columns of the table. The last two columns are the box and the geometry.
    pub(crate) fn table_columns(self) -> Vec<CoastColumn> {
        use ColumnGetter::{Bbox, Geometry, Int32, Int64, Text};
        let ways = CoastColumn::required("ways", Text(|row| Some(row.ways.as_str())));
        let mut columns = match self {
            Self::Polygons => Vec::new(),
            Self::Cells => vec![
                CoastColumn::required("x", Int32(|row| Some(row.cell?[0]))),
                CoastColumn::required("y", Int32(|row| Some(row.cell?[1]))),
            ],
            Self::Lines => vec![ways],
            Self::Problems => vec![
                CoastColumn::required("kind", Text(|row| Some(row.problem.as_ref()?.0))),
                ways,
                CoastColumn::optional("node", Int64(|row| row.problem.as_ref()?.1)),
                CoastColumn::required(
                    "description",
                    Text(|row| Some(row.problem.as_ref()?.2.as_str())),
                ),
            ],
        };
        let bbox: ColumnGetter<CoastRows> = Bbox(|row| Some(row.geometry.view().extent()?.edges()));
        let geometry: ColumnGetter<CoastRows> = Geometry(|row, out| {
            put_wkb(out, &row.geometry.view(), None);
            true
        });
        columns.push(CoastColumn::required("bbox", bbox));
        columns.push(CoastColumn::required("geometry", geometry));
        columns
    }
}
