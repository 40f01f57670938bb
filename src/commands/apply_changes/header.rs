//! The header of the output: its replication state and its bounding box.

use super::Options;
use super::change_filter::ChangeFilter;
use crate::error::{Advice, display_path};
use crate::formats::{ChangeSet, ChangeState, DataState, Replication};
use crate::osm::{Edges, ObjectKind, nano_of_e7};
use crate::pbf::{HeaderBlock, feature};
use crate::runtime::Context;
use serde::Serialize;

/// The effect of the changes on the bounding box in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HeaderBox {
    /// The box is unchanged, or the header has none.
    #[default]
    Kept,
    /// The box was widened, because nodes of the changes lie outside of it.
    Widened,
    /// The box was removed, because it crosses the 180th meridian and nodes of the changes lie outside of it.
    Dropped,
}

/// Widens the bounding box in the header so that it contains all changed nodes. Otherwise, a program that clips the
/// data to the box would lose nodes. Ignores the nodes for which [`ChangeFilter::widens_box`] returns `false`. If the
/// box crosses the 180th meridian and a changed node lies outside, removes the box.
fn widen_box(
    header: &mut HeaderBlock,
    changes: &ChangeSet,
    filter: Option<&dyn ChangeFilter>,
) -> HeaderBox {
    let Some(stored) = header.bbox_nano else {
        return HeaderBox::Kept;
    };
    let nodes = changes
        .changes()
        .iter()
        .filter(|change| change.key.0 == ObjectKind::Node);
    let locations = nodes
        .filter_map(ChangeSet::location)
        .filter(|location| filter.is_none_or(|filter| filter.widens_box(*location)));
    let locations = locations.map(|at| (nano_of_e7(at.lat_e7()), nano_of_e7(at.lon_e7())));
    let mut wide = stored;
    for (lat, lon) in locations {
        let [west, south, east, north] = wide.into_array();
        if stored.west > stored.east {
            let is_inside = (south..=north).contains(&lat) && (lon >= west || lon <= east);
            if !is_inside {
                header.bbox_nano = None;
                return HeaderBox::Dropped;
            }
        } else {
            wide = Edges {
                west: west.min(lon),
                south: south.min(lat),
                east: east.max(lon),
                north: north.max(lat),
            };
        }
    }
    if header.bbox_nano.replace(wide) == Some(wide) {
        HeaderBox::Kept
    } else {
        HeaderBox::Widened
    }
}

/// Returns the header of the output, and the effect of the changes on its bounding box. Begins with
/// [`Options::header`]. If this option is `None`, begins with the header of the base, and updates its features, its
/// replication state and its bounding box. In both cases, then applies the header options of the user. `nodes` is the
/// feature that declares which nodes of ways the output has. It is `None` if the ways of the output have no locations.
pub(super) fn output_header(
    base: &HeaderBlock,
    nodes: Option<&str>,
    changes: &ChangeSet,
    options: &Options,
    filter: Option<&dyn ChangeFilter>,
    ctx: &Context,
) -> (HeaderBlock, HeaderBox) {
    if let Some(given) = &options.header {
        let mut header = given.clone();
        options.output.header.apply(&mut header);
        return (header, HeaderBox::Kept);
    }
    let mut header = base.clone();
    header.set_optional(feature::SORTED, true);
    header.declare_locations(nodes);
    set_replication_state(&mut header, changes.states(), options, ctx);
    let header_box = widen_box(&mut header, changes, filter);
    options.output.header.apply(&mut header);
    (header, header_box)
}

/// Sets the replication state of a header to the state after `changes`. Changes that do not continue the state leave it
/// unchanged: the data still contains all changes up to the old state. Prints a warning if the state does not include
/// such a change, unless the user sets the state.
pub(super) fn set_replication_state(
    header: &mut HeaderBlock,
    changes: &[ChangeState],
    options: &Options,
    ctx: &Context,
) {
    let mut data = DataState {
        url: header.replication_url.clone(),
        state: Replication {
            sequence: header.replication_sequence,
            timestamp: header.replication_timestamp,
        },
    };
    let left_out = data.advance_by(changes);
    if let Some(change) = left_out.first()
        && !options.output.header.may_change_replication()
    {
        let (kept, cause) = if data.state.is_unknown() {
            (
                "gets no replication state".to_owned(),
                "it has none to which it could belong",
            )
        } else {
            (format!("keeps {}", data.state), "it does not continue it")
        };
        let more = match left_out.len() {
            1 => String::new(),
            count => format!(" (and of {} more)", count - 1),
        };
        let server = change
            .url
            .as_ref()
            .map_or(String::new(), |url| format!(" from {url}"));
        ctx.warn_with_advice(
            format!(
                "{}: the header {kept}, not that of the change file with {change}{server}{more}, because {cause}",
                display_path(&options.base)
            ),
            Advice::SetReplicationState,
        );
    }
    header.replication_url = data.url;
    header.replication_sequence = data.state.sequence;
    header.replication_timestamp = data.state.timestamp;
}
