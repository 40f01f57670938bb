//! The geometries of objects before and after the changes.

use super::action::Action;
use super::find::Findings;
use super::states::State;
use crate::area::{WayBatch, WayStore};
use crate::commands::export::ObjectGeometries;
use crate::engine::geometry_pass::point_on_earth;
use crate::formats::ChangeAction;
use crate::formats::features::OwnedGeometry;
use crate::index::{IdSet, RankSet};
use crate::osm::ObjectKind;
use crate::pbf::ObjectBody;
use std::sync::Arc;

/// The geometries of an object before and after the changes; `None` for a state that becomes no feature.
pub(super) type GeometryPair = (Option<OwnedGeometry>, Option<OwnedGeometry>);

/// Returns the geometries of the old and the new state of an action.
pub(super) fn geometries_of(
    action: &Action<'_>,
    findings: &Findings<'_>,
    geometries: &mut ObjectGeometries,
) -> GeometryPair {
    let old = action.old.as_ref();
    let new = (action.kind != ChangeAction::Delete).then_some(&action.new);
    let mut of = |state: Option<&State<'_>>| {
        let state = state.filter(|state| state.has_member_geometry())?;
        let locations: Vec<_> = state.nodes.iter().map(|node| node.location).collect();
        let ways = member_ways(state, findings);
        geometries.geometry_of(state.object, &locations, &ways)
    };
    (of(old), of(new))
}

/// The size in bytes at which a batch of member ways ends.
const BATCH: usize = 1 << 20;

/// Returns the member ways of a relation and of the routes that are nested in it, with the nodes of these ways.
fn member_ways(state: &State<'_>, findings: &Findings<'_>) -> WayStore {
    let mut ids = IdSet::default();
    if let ObjectBody::Relation { members } = &state.object.body {
        let ways = members
            .iter()
            .filter(|member| member.kind == ObjectKind::Way);
        ids.extend(ways.map(|member| member.id));
    }
    ids.extend(findings.routes.way_ids_at(state.object, state.moment));
    let wanted = Arc::new(RankSet::from(ids));
    let nested = findings.routes.nested(state.moment).clone();
    let mut store = WayStore::new(wanted.clone(), false).with_nested(nested);
    let mut batch = WayBatch::new(false);
    for id in wanted.ids() {
        let mut nodes = Vec::new();
        let is_there = findings.for_each_node_of(id, state.moment, |node, location| {
            nodes.push((node, location.and_then(point_on_earth)));
        });
        if let (true, Some(rank)) = (is_there, wanted.rank(id)) {
            batch.push(rank, nodes.into_iter());
        }
        if batch.memory_size() > BATCH {
            store.add(std::mem::replace(&mut batch, WayBatch::new(false)));
        }
    }
    store.add(batch);
    store
}
