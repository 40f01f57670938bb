//! Files of relations with many members, of relations in relations, and of members that are hard to assemble.

use super::craft::{Message, length_delimited, varint};
use super::hostile_files::{
    HostileFile, TAG, around, block_of, deltas, dense, file, nodes_at, sint, square, tags, way,
    ways_of,
};

/// All files.
pub(super) fn files() -> Vec<HostileFile> {
    let mut files = member_columns();
    files.extend(relations());
    files.extend(nested_relations());
    files.extend(polygons());
    files
}

const ROUTE: [(u8, u8); 2] = [(3, 5), (14, 1)];
const BOUNDARY: [(u8, u8); 4] = [(3, 8), (8, 7), (10, 11), (14, 1)];
const MULTIPOLYGON: [(u8, u8); 2] = [(3, 4), (6, 7)];

/// A relation as a field of a group, with the deltas of its member ids, and one kind and role of all members.
pub(super) fn relation(
    id: u64,
    ids: &[u8],
    count: usize,
    kind: u8,
    role: u8,
    with: &[(u8, u8)],
) -> Vec<u8> {
    let relation = [
        varint(8),
        varint(id),
        tags(with).to_bytes(),
        length_delimited(8, &vec![role; count]),
        length_delimited(9, ids),
        length_delimited(10, &vec![kind; count]),
    ];
    length_delimited(4, &relation.concat())
}

/// The kinds of members.
pub(super) const NODE: u8 = 0;
const WAY: u8 = 1;
const RELATION: u8 = 2;

/// A relation that has one member again and again.
fn with_one_member(count: usize, kind: u8, role: u8, with: &[(u8, u8)]) -> Vec<u8> {
    let ids = [vec![2], vec![0; count - 1]].concat();
    relation(1, &ids, count, kind, role, with)
}

/// A square, a way around it, and a group of relations.
fn with_relations(relations: &[u8]) -> Vec<u8> {
    block_of(&[&square(), &way(1, &around(1), &[]), relations])
}

fn member_columns() -> Vec<HostileFile> {
    vec![
        file("relation-with-one-way.osm.pbf", 2_000_000, |count| {
            with_relations(&with_one_member(count, WAY, 0, &MULTIPOLYGON))
        }),
        file("boundary-with-one-way.osm.pbf", 2_000_000, |count| {
            with_relations(&with_one_member(count, WAY, 9, &BOUNDARY))
        }),
        file("route-with-one-way.osm.pbf", 2_000_000, |count| {
            with_relations(&with_one_member(count, WAY, 0, &ROUTE))
        }),
        file("relation-with-one-node.osm.pbf", 2_000_000, |count| {
            with_relations(&with_one_member(count, NODE, 0, &BOUNDARY))
        }),
        file("relation-with-itself.osm.pbf", 2_000_000, |count| {
            with_relations(&with_one_member(count, RELATION, 0, &ROUTE))
        }),
        file("relation-with-missing-ways.osm.pbf", 2_000_000, |count| {
            with_relations(&relation(1, &vec![2; count], count, WAY, 0, &MULTIPOLYGON))
        }),
        file("relation-with-missing-nodes.osm.pbf", 2_000_000, |count| {
            with_relations(&relation(1, &vec![2; count], count, NODE, 0, &MULTIPOLYGON))
        }),
        file(
            "relation-with-missing-relations.osm.pbf",
            2_000_000,
            |count| with_relations(&relation(1, &vec![2; count], count, RELATION, 0, &ROUTE)),
        ),
        file(
            "relation-with-too-many-members.osm.pbf",
            10_000_000,
            |count| with_relations(&with_one_member(count, WAY, 0, &MULTIPOLYGON)),
        ),
        file("tags-of-a-relation.osm.pbf", 1_900_000, |count| {
            with_relations(&relation(1, &[2], 1, WAY, 0, &TAG.repeat(count)))
        }),
    ]
}

/// Relations from id 1 on, each with the same members.
fn alike(number: usize, ids: &[u8], count: usize, kind: u8, with: &[(u8, u8)]) -> Vec<u8> {
    (1..=number as u64)
        .flat_map(|id| relation(id, ids, count, kind, 0, with))
        .collect()
}

fn relations() -> Vec<HostileFile> {
    vec![
        file("relations-without-fields.osm.pbf", 15_000_000, |count| {
            block_of(&[&b"\x22\0".repeat(count)])
        }),
        file("relations-with-one-id.osm.pbf", 7_000_000, |count| {
            block_of(&[&square(), &b"\x22\x02\x08\x01".repeat(count)])
        }),
        file("relations.osm.pbf", 150_000, |count| {
            with_relations(&alike(count, &[2], 1, NODE, &[]))
        }),
        file("relations-with-many-members.osm.pbf", 2_000_000, |count| {
            let ids = [vec![2], vec![0; count - 1]].concat();
            with_relations(&alike(5, &ids, count, WAY, &MULTIPOLYGON))
        }),
        file("boundaries-of-one-way.osm.pbf", 5000, |count| {
            let ids = [vec![2], vec![0; 1999]].concat();
            with_relations(&alike(count, &ids, 2000, WAY, &BOUNDARY))
        }),
        file("boundaries-of-many-ways.osm.pbf", 5000, |count| {
            let relations = alike(count, &[2; 2000], 2000, WAY, &BOUNDARY);
            block_of(&[&square(), &ways_of(2000, &around(1), &[]), &relations])
        }),
        file("routes-of-many-ways.osm.pbf", 5000, |count| {
            let relations = alike(count, &[2; 2000], 2000, WAY, &ROUTE);
            block_of(&[&square(), &ways_of(2000, &around(1), &[]), &relations])
        }),
        file("routes-of-a-long-way.osm.pbf", 10_000, |count| {
            let relations = alike(count, &[2], 1, WAY, &ROUTE);
            block_of(&[&square(), &way(1, &around(500), &[]), &relations])
        }),
        file("boundaries-of-a-long-way.osm.pbf", 10_000, |count| {
            of_a_long_way(|at| (at, at * at), &alike(count, &[2], 1, WAY, &BOUNDARY))
        }),
        file("routes-of-a-moved-way.osm.pbf", 5000, |count| {
            of_a_long_way(|at| (at, at * at), &alike(count, &[2], 1, WAY, &ROUTE))
        }),
        file("invalid-areas-of-a-long-way.osm.pbf", 20_000, |count| {
            let zigzag = |at: i64| (at * 300 + at % 2 * 60_000, at % 2 * 100_000);
            of_a_long_way(zigzag, &alike(count, &[2], 1, WAY, &MULTIPOLYGON))
        }),
    ]
}

/// A file of relations, and of a closed way of 2,000 nodes at the places that `place` gives.
fn of_a_long_way(place: impl Fn(i64) -> (i64, i64), relations: &[u8]) -> Vec<u8> {
    let corners: Vec<(i64, i64)> = (0..2000).map(place).collect();
    let refs = [vec![2; 2000], sint(-1999)].concat();
    block_of(&[&nodes_at(&corners), &way(1, &refs, &[]), relations])
}

/// Relations of which each has the next one as a member `times` times, and the last one the way.
fn ladder(number: u64, times: usize) -> Vec<u8> {
    (1..=number)
        .flat_map(|id| {
            let (next, kind) = if id < number {
                (id as i64 + 1, RELATION)
            } else {
                (1, WAY)
            };
            let ids = [sint(next), vec![0; times - 1]].concat();
            relation(id, &ids, times, kind, 0, &ROUTE)
        })
        .collect()
}

fn nested_relations() -> Vec<HostileFile> {
    vec![
        file("ladder.osm.pbf", 1000, |times| {
            with_relations(&ladder(10, times))
        }),
        file("ladder-of-many-steps.osm.pbf", 60, |number| {
            with_relations(&ladder(number.max(40) as u64, 2))
        }),
        file("chain.osm.pbf", 60_000, |number| {
            with_relations(&ladder(number as u64, 1))
        }),
        file("cycle.osm.pbf", 10, |_| {
            let ids = [vec![2], vec![2; 9]].concat();
            with_relations(&alike(10, &ids, 10, RELATION, &ROUTE))
        }),
        file("relation-over-all.osm.pbf", 100_000, |count| {
            let all = relation(
                count as u64 + 1,
                &vec![2; count],
                count,
                RELATION,
                0,
                &ROUTE,
            );
            with_relations(&[alike(count, &[2], 1, NODE, &[]), all].concat())
        }),
    ]
}

/// A file of rings of four nodes, which are members of one multipolygon.
fn rings(rings: &[[(i64, i64); 4]]) -> Vec<u8> {
    let count = rings.len();
    let ways: Vec<u8> = (0..count as i64)
        .flat_map(|at| {
            let first = at * 4 + 1;
            let refs = deltas([first, first + 1, first + 2, first + 3, first]);
            way(at as u64 + 1, &refs, &[])
        })
        .collect();
    let all = relation(1, &vec![2; count], count, WAY, 0, &MULTIPOLYGON);
    block_of(&[&nodes_at(rings.as_flattened()), &ways, &all])
}

/// A file of ways with the references that `refs` gives, which are members of one multipolygon.
fn multipolygon(nodes: &[u8], count: usize, refs: impl Fn(i64) -> Vec<i64>) -> Vec<u8> {
    let ways: Vec<u8> = (1..=count as i64)
        .flat_map(|id| way(id as u64, &deltas(refs(id)), &[]))
        .collect();
    let all = relation(1, &vec![2; count], count, WAY, 0, &MULTIPOLYGON);
    block_of(&[nodes, &ways, &all])
}

fn polygons() -> Vec<HostileFile> {
    vec![
        file("equal-rings.osm.pbf", 100_000, |count| {
            multipolygon(&square(), count, |_| vec![1, 2, 3, 4, 1])
        }),
        file("star.osm.pbf", 100_000, |count| {
            let nodes = dense(count + 1, 2, 2, &Message::new());
            multipolygon(&nodes, count, |id| vec![1, id + 1])
        }),
        file("parallel-ways.osm.pbf", 100_000, |count| {
            multipolygon(&square(), count, |_| vec![1, 2])
        }),
        file("fan.osm.pbf", 50_000, |count| {
            let nodes = dense(count + 2, 2, 2, &Message::new());
            multipolygon(&nodes, count, |id| vec![1, id + 1, id + 2, 1])
        }),
        file("nested-rings.osm.pbf", 10_000, |count| {
            let ring = |at: i64| {
                let edge = 10_000 + at * 10;
                [(-edge, -edge), (-edge, edge), (edge, edge), (edge, -edge)]
            };
            rings(&(0..count as i64).map(ring).collect::<Vec<_>>())
        }),
        file("crossing-rings.osm.pbf", 20_000, |count| {
            let end = count as i64 * 10;
            let ring = |at: i64| {
                let (near, far) = (at * 10, at * 10 + 5);
                let corners = [(near, 0), (far, 0), (far, end), (near, end)];
                if at % 2 == 0 {
                    corners
                } else {
                    corners.map(|(lat, lon)| (lon, lat))
                }
            };
            rings(&(0..count as i64).map(ring).collect::<Vec<_>>())
        }),
    ]
}
