//! The tiles in which changes can be seen.

use super::Summary;
use super::action::{Action, Encoder, SendPart};
use super::actions::{ActionSource, encode_actions};
use super::filter::Filter;
use super::find::Findings;
use super::state_geometries::geometries_of;
use crate::commands::export::ObjectGeometries;
use crate::error::Result;
use crate::formats::TextOutput;
use crate::formats::features::OwnedGeometry;
use crate::geometry::TileSet;
use crate::io::OutputTarget;
use crate::osm::ObjectKind;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::RangeInclusive;

/// Collects the tiles of actions.
struct Tiles {
    geometries: ObjectGeometries,
    set: TileSet,
}

impl Encoder for Tiles {
    /// The tiles as columns and rows, and the number of lines and polygons that were too large.
    type Part = (Vec<[u32; 2]>, u64);

    fn put(
        &mut self,
        action: &Action<'_>,
        findings: &Findings<'_>,
        _: &SendPart<'_, Self::Part>,
    ) -> Result<()> {
        let (old, new) = geometries_of(action, findings, &mut self.geometries);
        // If neither the object itself nor its shape has changed, the object looks the same as before. The lines of a
        // relation are left out, too. If they get another shape, one of its ways gets another shape, or a route in it
        // has changed. These ways and routes have actions of their own.
        let is_line = |geometry: &Option<OwnedGeometry>| {
            let is_area = matches!(geometry, Some(OwnedGeometry::MultiPolygon(_)));
            action.key().0 == ObjectKind::Relation && !is_area
        };
        if action.is_indirect && (old == new || is_line(&old) && is_line(&new)) {
            return Ok(());
        }
        for geometry in old.iter().chain(&new) {
            add_geometry(&mut self.set, geometry);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.set.len() * size_of::<[u32; 2]>()
    }

    fn take(&mut self) -> Result<Self::Part> {
        Ok(self.set.take())
    }
}

/// Adds the tiles that a geometry touches.
fn add_geometry(set: &mut TileSet, geometry: &OwnedGeometry) {
    match geometry {
        OwnedGeometry::Point(point) => set.add_point(*point),
        OwnedGeometry::LineString(points) => set.add_line(points),
        OwnedGeometry::MultiLineString(lines) => {
            lines.iter().for_each(|line| set.add_line(line));
        }
        OwnedGeometry::MultiPolygon(polygons) => {
            for polygon in polygons {
                let holes = polygon.holes.iter().map(Vec::as_slice);
                let rings: Vec<_> = std::iter::once(polygon.outer.as_slice())
                    .chain(holes)
                    .collect();
                set.add_polygon(&rings);
            }
        }
    }
}

/// Writes the tiles of all actions as lines `z/x/y`, in order of zoom level, column and row.
pub(super) fn write(
    source: ActionSource<'_>,
    zooms: &RangeInclusive<u8>,
    target: &OutputTarget,
) -> Result<Summary> {
    let ctx = source.base.source.ctx;
    let mut output = TextOutput::create(target.clone(), ctx)?;
    let new_encoder = || Tiles {
        geometries: ObjectGeometries::new(true),
        set: TileSet::new(*zooms.end()),
    };
    let (mut tiles, mut unfilled) = (BTreeSet::new(), 0);
    let filter = Filter::of_features(source.selection);
    let mut summary = encode_actions(source, &filter, new_encoder, |(more, large)| {
        tiles.extend(more);
        unfilled += large;
        Ok(())
    })?;
    let mut count = 0;
    for zoom in zooms.clone() {
        let above = zooms.end() - zoom;
        let of_zoom: BTreeSet<[u32; 2]> = tiles
            .iter()
            .map(|tile| tile.map(|at| at >> above))
            .collect();
        count += of_zoom.len() as u64;
        let mut text = String::new();
        for [column, row] in of_zoom {
            let _ = writeln!(text, "{zoom}/{column}/{row}");
        }
        output.write(&text)?;
    }
    ctx.stats.bytes_written.add(output.finish()?);
    summary.tiles = Some(count);
    summary.unfilled = unfilled;
    Ok(summary)
}
