//! Objects in the form that the independent decoder returns and the independent encoder takes.

/// The kinds of objects, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A node.
    Node,
    /// A way.
    Way,
    /// A relation.
    Relation,
}

/// An object. Metadata is `None` if it has a value that writers use for "absent": version or changeset 0 or -1,
/// timestamp 0, uid 0 with an empty user name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Object {
    /// The kind of the object.
    pub kind: Kind,
    /// The id of the object.
    pub id: i64,
    /// The version of the object.
    pub version: Option<i64>,
    /// Time of this version in seconds since 1970.
    pub timestamp: Option<i64>,
    /// The changeset of this version.
    pub changeset: Option<i64>,
    /// The user's id. `Some(0)` occurs only with a user name.
    pub uid: Option<i64>,
    /// The user's name, which is never empty.
    pub user: Option<String>,
    /// False for a deleted version.
    pub visible: bool,
    /// Latitude in nanodegrees, as stored, even in a deleted node; 0 in ways and relations.
    pub lat_nano: i64,
    /// Longitude in nanodegrees.
    pub lon_nano: i64,
    /// Pairs of key and value, in file order.
    pub tags: Vec<(String, String)>,
    /// The node ids of a way.
    pub refs: Vec<i64>,
    /// The locations of a way (LocationsOnWays): latitude and longitude in nanodegrees, one per entry of `refs`, or
    /// empty.
    pub locations: Vec<(i64, i64)>,
    /// The members of a relation: kind, id and role.
    pub members: Vec<(Kind, i64, String)>,
}

impl Object {
    /// An object with only a kind and an id.
    pub fn new(kind: Kind, id: i64) -> Object {
        Object {
            kind,
            id,
            version: None,
            timestamp: None,
            changeset: None,
            uid: None,
            user: None,
            visible: true,
            lat_nano: 0,
            lon_nano: 0,
            tags: Vec::new(),
            refs: Vec::new(),
            locations: Vec::new(),
            members: Vec::new(),
        }
    }
}

/// Pairs of key and value.
pub type Tags<'a> = &'a [(&'a str, &'a str)];

/// A node; latitude and longitude in units of 1e-7 degree.
pub fn node(id: i64, lat_e7: i64, lon_e7: i64, tags: Tags) -> Object {
    let mut node = with_tags(Object::new(Kind::Node, id), tags);
    (node.lat_nano, node.lon_nano) = (lat_e7 * 100, lon_e7 * 100);
    node
}

/// A way with the given node ids.
pub fn way(id: i64, refs: &[i64], tags: Tags) -> Object {
    let way = with_tags(Object::new(Kind::Way, id), tags);
    Object {
        refs: refs.to_vec(),
        ..way
    }
}

/// A relation.
pub fn relation(id: i64, members: &[(Kind, i64, &str)], tags: Tags) -> Object {
    let members = members
        .iter()
        .map(|&(kind, id, role)| (kind, id, role.to_owned()));
    let relation = with_tags(Object::new(Kind::Relation, id), tags);
    Object {
        members: members.collect(),
        ..relation
    }
}

fn with_tags(object: Object, tags: Tags) -> Object {
    let tags = tags
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()));
    Object {
        tags: tags.collect(),
        ..object
    }
}

/// The object with all metadata fields set. The changeset is derived from version and uid.
pub fn with_metadata(object: Object, version: i64, timestamp: i64, uid: i64, user: &str) -> Object {
    Object {
        version: Some(version),
        timestamp: Some(timestamp),
        changeset: Some(version * 1000 + uid),
        uid: Some(uid),
        user: Some(user.to_owned()),
        ..object
    }
}

/// Nodes, ways, relations and nodes again, with extreme ids, locations, strings and lists.
pub fn mixed_objects() -> Vec<Object> {
    let members = [
        (Kind::Way, 1, "outer"),
        (Kind::Node, -20, ""),
        (Kind::Relation, 7, "self"),
    ];
    let locations = vec![
        (1_000_000_000, 2_000_000_000),
        (0, 0),
        (-90_000_000_000, 180_000_000_000),
    ];
    vec![
        node(0, 1, -1, &[("id", "zero")]),
        node(-1, -10, 10, &[]),
        node(-20, 0, 0, &[("location", "0,0"), ("empty", "")]),
        node(1, 0, 0, &[]),
        node(
            2,
            -900_000_000,
            1_800_000_000,
            &[("name", "Süd \u{1f427}, = % @ pole"), ("a", "b")],
        ),
        node(3, 900_000_000, -1_800_000_000, &[]),
        node(1 << 62, 525_162_001, 133_776_999, &[("id", "large")]),
        way(-5, &[-1, -20, 0, 1], &[("highway", "path")]),
        way(1, &[1, 2, 3, 1], &[("area", "yes"), ("name", "three")]),
        way(2, &[], &[("refs", "none")]),
        way(3, &[14_000_000_000, 1, 1 << 62], &[]),
        Object {
            locations,
            ..way(1 << 40, &[10, 11, 12], &[("highway", "")])
        },
        relation(-7, &[(Kind::Node, 0, "label")], &[("type", "site")]),
        relation(6, &[], &[("members", "none")]),
        relation(7, &members, &[("type", "multipolygon"), ("name", "ü")]),
        relation(1 << 40, &[(Kind::Relation, 1 << 41, "above")], &[]),
        node(5, 50, 60, &[("again", "nodes")]),
        node(6, 51, 61, &[]),
    ]
}

/// The objects with full metadata, timestamps in whole minutes.
pub fn known(objects: Vec<Object>) -> Vec<Object> {
    let users = [
        (1, "one"),
        (2, "zwölf % , = @"),
        (3, "a b"),
        (2_000_000_000, "large"),
    ];
    let with = |(index, object): (usize, Object)| {
        let (uid, user) = users[index % users.len()];
        let turn = index as i64;
        with_metadata(object, 1 + turn % 3, 1_600_000_020 - turn * 600, uid, user)
    };
    objects.into_iter().enumerate().map(with).collect()
}

/// The sort key for Sort.Type_then_ID: by kind, then id 0, negative ids by absolute value, positive ids ascending.
pub fn canonical_key(kind: Kind, id: i64) -> (Kind, u64) {
    let positives_start = 1_u64 << 63;
    let rank = if id > 0 {
        positives_start + id.unsigned_abs()
    } else {
        id.unsigned_abs()
    };
    (kind, rank)
}

/// Whether objects are in canonical order, with versions of an object ascending. Equal neighbours are in order.
pub fn is_canonical(objects: &[Object]) -> bool {
    objects.is_sorted_by_key(|object| (canonical_key(object.kind, object.id), object.version))
}
