//! Compares the land of a coast with the land of an earlier coast.

use super::SUMMARY;
use crate::area::AreaPolygon;
use crate::coast::{Coast, Grid};
use crate::error::{Error, Result};
use crate::formats::shapefile::ShapefileReader;
use crate::geometry::{Extent, Point, doubled_area};
use crate::region_file::read_shape;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The size of the cells that are compared, in degrees.
const CELL: i32 = 10;
const GRID: Grid = Grid {
    cell_e7: CELL as u32 * 10_000_000,
    overlap_e7: 0,
};
/// Twice the area of a square degree, in squared units of 1e-7 degree.
const DOUBLED_DEGREE: f64 = 2e14;
/// The possible paths of the land file within a directory that another program wrote.
const LAND: [&str; 2] = [
    "land-polygons-complete-4326/land_polygons.shp",
    "land_polygons.shp",
];

/// The land of a coast. Later runs compare it with their own land.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LandCensus {
    /// The number of rings of all polygons.
    rings: u64,
    /// The cells that have land.
    cells: Vec<LandCell>,
}

/// The land in a cell of 10 degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct LandCell {
    /// The western edge in degrees.
    lon: i32,
    /// The southern edge in degrees.
    lat: i32,
    /// The area in square degrees.
    land: f64,
    /// The area in square degrees of turned land, whose coastline went the wrong way round and was turned around. It is
    /// not part of `land`.
    #[serde(default)]
    turned: f64,
}

/// A loss of land or of rings in comparison with an earlier coast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CoastLoss {
    /// The western and the southern edge in degrees of the cell of 10 degrees that has lost land; `None` for rings.
    pub cell: Option<[i32; 2]>,
    /// The area of the land in square degrees, or the number of rings, in the earlier coast.
    pub old: f64,
    /// The area of the land in square degrees, or the number of rings, in the new coast.
    pub new: f64,
    /// The area in square degrees of further land in the new coast, whose coastline goes the wrong way round. It is not
    /// certain that this is land.
    pub turned: f64,
}

impl CoastLoss {
    fn lost_percent(&self) -> f64 {
        100.0 * (1.0 - self.new / self.old)
    }
}

impl fmt::Display for CoastLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.lost_percent();
        match self.cell {
            Some([lon, lat]) => {
                write!(
                    f,
                    "the cell from longitude {lon} to {}, latitude {lat} to {} has lost {percent:.1} % of its land",
                    lon + CELL,
                    lat + CELL
                )?;
                if self.turned > 0.0 {
                    f.write_str(" (a coastline goes the wrong way round there)")?;
                }
                Ok(())
            }
            None => write!(
                f,
                "{percent:.1} % of the rings are lost: there were {}, and now there are {}",
                self.old, self.new
            ),
        }
    }
}

/// The land and the rings of a coast that have been counted so far.
#[derive(Default)]
struct LandCollector {
    rings: u64,
    /// For each cell, twice the area of the land that is not turned, and twice the area of the turned land, in squared
    /// units of 1e-7 degree.
    cells: BTreeMap<[i32; 2], [i128; 2]>,
}

impl LandCollector {
    /// Adds the area of a ring to the turned land if `is_turned` is set, and to the other land otherwise. Subtracts the
    /// area if the ring is a hole. The ring may have either direction.
    fn add(&mut self, ring: &[Point], is_hole: bool, is_turned: bool) {
        let area = doubled_area(ring);
        let Some(extent) = Extent::of(ring).filter(|_| area != 0) else {
            return;
        };
        self.rings += 1;
        let sign = if is_hole { -1 } else { 1 };
        let mut outer = ring.to_vec();
        if area < 0 {
            outer.reverse();
        }
        let polygon = AreaPolygon {
            outer,
            holes: Vec::new(),
        };
        for cell in GRID.cells(extent, [&polygon]) {
            let rings = cell.part.rings();
            let area: i128 = rings.iter().map(|ring| doubled_area(ring)).sum();
            let areas = self.cells.entry(cell.number).or_default();
            areas[usize::from(is_turned)] += sign * area;
        }
    }

    fn finish(self) -> LandCensus {
        let cells = self.cells.into_iter();
        let cells = cells.map(|([column, row], areas)| {
            let [land, turned] = areas.map(|area| area.max(0) as f64 / DOUBLED_DEGREE);
            LandCell {
                lon: CELL * column - 180,
                lat: CELL * row - 90,
                land,
                turned,
            }
        });
        let cells = cells.filter(|cell| cell.land + cell.turned > 0.0);
        LandCensus {
            rings: self.rings,
            cells: cells.collect(),
        }
    }
}

impl LandCensus {
    /// Counts the land of a coast.
    pub(super) fn of(coast: &Coast) -> Self {
        Self::of_polygons(coast.land.iter().zip(coast.is_turned.iter().copied()))
    }

    /// Counts the land in polygons, each with a flag that is true for turned land.
    fn of_polygons<'p>(polygons: impl IntoIterator<Item = (&'p AreaPolygon, bool)>) -> Self {
        let mut collector = LandCollector::default();
        for (polygon, is_turned) in polygons {
            collector.add(&polygon.outer, false, is_turned);
            let holes = polygon.holes.iter();
            holes.for_each(|hole| collector.add(hole, true, is_turned));
        }
        collector.finish()
    }

    /// Reads the land of an earlier run from its directory, or from a file of whole polygons of land.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let summary = path.join(SUMMARY);
        if let Ok(text) = fs::read(&summary) {
            let stored: serde_json::Result<StoredCensus> = serde_json::from_slice(&text);
            return stored.map(|stored| stored.census).map_err(|error| {
                Error::file(&summary, format!("this is no summary of a coast: {error}"))
            });
        }
        let file = if path.is_dir() {
            let files = LAND.iter().map(|name| path.join(name));
            files
                .into_iter()
                .find(|file| file.is_file())
                .ok_or_else(|| {
                    Error::file(
                        path,
                        format!(
                            "the directory has neither {SUMMARY} nor {}",
                            LAND.join(" or ")
                        ),
                    )
                })?
        } else {
            PathBuf::from(path)
        };
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("shp") => Self::read_shapefile(&file),
            _ => Self::read_region_file(&file),
        }
    }

    fn read_shapefile(path: &Path) -> Result<Self> {
        let mut reader = ShapefileReader::open(path)?;
        let mut collector = LandCollector::default();
        while let Some(rings) = reader.next_rings()? {
            for ring in rings {
                let is_hole = doubled_area(&ring) > 0;
                collector.add(&ring, is_hole, false);
            }
        }
        Ok(collector.finish())
    }

    fn read_region_file(path: &Path) -> Result<Self> {
        let mut collector = LandCollector::default();
        for (ring, is_hole) in read_shape(path, None)?.rings() {
            collector.add(&ring.points, is_hole, false);
        }
        Ok(collector.finish())
    }

    /// Returns the losses of a later coast. Compares the area of the land in each cell, and the number of rings. There
    /// is a loss if `new < old * (1 - max_loss)`. Turned land does not count, because it may be water. The greatest
    /// loss comes first.
    pub(super) fn losses(&self, new: &Self, max_loss: f64) -> Vec<CoastLoss> {
        let key = |cell: &LandCell| [cell.lon, cell.lat];
        let left: BTreeMap<_, _> = new.cells.iter().map(|cell| (key(cell), *cell)).collect();
        let cells = self.cells.iter().map(|cell| {
            let left = left.get(&key(cell));
            CoastLoss {
                cell: Some(key(cell)),
                old: cell.land,
                new: left.map_or(0.0, |left| left.land),
                turned: left.map_or(0.0, |left| left.turned),
            }
        });
        let rings = CoastLoss {
            cell: None,
            old: self.rings as f64,
            new: new.rings as f64,
            turned: 0.0,
        };
        let is_great = |loss: &CoastLoss| loss.new < loss.old * (1.0 - max_loss);
        let mut losses: Vec<_> = cells.chain([rings]).filter(is_great).collect();
        losses.sort_by(|one, other| other.lost_percent().total_cmp(&one.lost_percent()));
        losses
    }
}

/// The part of a stored summary that contains the land.
#[derive(Deserialize)]
struct StoredCensus {
    census: LandCensus,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(lon: i32, lat: i32, side: i32) -> AreaPolygon {
        let at = |lon: i32, lat: i32| Point::new(lat * 10_000_000, lon * 10_000_000);
        AreaPolygon {
            outer: vec![
                at(lon, lat),
                at(lon + side, lat),
                at(lon + side, lat + side),
                at(lon, lat + side),
            ],
            holes: Vec::new(),
        }
    }

    #[test]
    fn lost_land_and_lost_rings_are_named() {
        let census = |squares: &[AreaPolygon]| {
            LandCensus::of_polygons(squares.iter().map(|square| (square, false)))
        };
        let old = census(&[square(-5, 48, 4), square(55, -12, 1)]);
        assert_eq!(old.rings, 2);
        let areas: Vec<_> = old
            .cells
            .iter()
            .map(|cell| (cell.lon, cell.lat, cell.land))
            .collect();
        assert_eq!(areas, [(-10, 40, 8.0), (-10, 50, 8.0), (50, -20, 1.0)]);
        assert_eq!(old.losses(&old, 0.0), []);
        let losses = old.losses(&census(&[square(-5, 48, 4)]), 0.01);
        let shown: Vec<_> = losses.iter().map(CoastLoss::to_string).collect();
        assert_eq!(
            shown,
            [
                "the cell from longitude 50 to 60, latitude -20 to -10 has lost 100.0 % of its land",
                "50.0 % of the rings are lost: there were 2, and now there are 1"
            ]
        );
    }
}
