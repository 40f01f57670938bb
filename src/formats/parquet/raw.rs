//! Tables of objects in the data model of OSM, without geometries.

use super::PageCompression;
use super::columns::{EncodedGroup, GroupEncoder, Values};
use super::schema::{TableForm, group_type, parquet_compression, primitive_type};
use crate::error::Result;
use crate::formats::row_limit::{OversizedObjects, RowLimit};
use crate::osm::{DECIMICRO_PER_DEGREE, ObjectKind, UniqueTags};
use crate::pbf::{Element, Info};
use bytes::Bytes;
use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::ops::Range;

/// The number of values, including those in lists, at which a batch of rows ends. A batch fits into a CPU cache.
const BATCH_VALUES: usize = 16_384;

/// A table of objects.
pub(crate) struct ObjectTable {
    pub(crate) form: TableForm,
}

/// Objects that become a row group.
#[derive(Default)]
pub(crate) struct ObjectRows {
    rows: Vec<ObjectRow>,
    /// All strings of the rows.
    texts: Vec<u8>,
    /// The keys and values of all tags, as ranges of `texts`.
    tags: Vec<(Range<u32>, Range<u32>)>,
    refs: Vec<i64>,
    members: Vec<(ObjectKind, i64, Range<u32>)>,
    /// The number of tags that were left out, because an earlier tag of the same object has the same key.
    pub(crate) repeated_keys: u64,
    /// The objects that were left out because their rows would be too large.
    pub(crate) oversized: OversizedObjects,
    limit: RowLimit,
}

/// An object. Its tags, refs and members are ranges of the lists in [`ObjectRows`].
struct ObjectRow {
    id: i64,
    /// Latitude and longitude in degrees.
    location: Option<(f64, f64)>,
    info: RowInfo,
    tags: Range<usize>,
    refs: Range<usize>,
    members: Range<usize>,
}

struct RowInfo {
    version: Option<i32>,
    timestamp: Option<i64>,
    changeset: Option<i64>,
    uid: Option<i32>,
    user: Option<Range<u32>>,
    visible: bool,
}

impl ObjectTable {
    pub(crate) fn new(pages: PageCompression) -> Result<Self> {
        use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, INT32, INT64};
        let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
        let repeated = Repetition::REPEATED;
        let text = || Some(LogicalType::String);
        let list = |name, fields| {
            let element = group_type("element", required, None, fields)?;
            let list = group_type("list", repeated, None, vec![element])?;
            group_type(name, required, Some(LogicalType::List), vec![list])
        };
        let entries = vec![
            primitive_type("keys", BYTE_ARRAY, required, text())?,
            primitive_type("values", BYTE_ARRAY, required, text())?,
        ];
        let entries = group_type("entries", repeated, None, entries)?;
        let reference = || primitive_type("ref", INT64, required, None);
        let member = vec![
            primitive_type("type", BYTE_ARRAY, required, text())?,
            reference()?,
            primitive_type("role", BYTE_ARRAY, required, text())?,
        ];
        let time = Some(LogicalType::timestamp(true, TimeUnit::MILLIS));
        let fields = vec![
            primitive_type("id", INT64, required, None)?,
            group_type("tags", required, Some(LogicalType::Map), vec![entries])?,
            primitive_type("lat", DOUBLE, optional, None)?,
            primitive_type("lon", DOUBLE, optional, None)?,
            list("nds", vec![reference()?])?,
            list("members", member)?,
            primitive_type("changeset", INT64, optional, None)?,
            primitive_type("timestamp", INT64, optional, time)?,
            primitive_type("uid", INT32, optional, None)?,
            primitive_type("user", BYTE_ARRAY, optional, text())?,
            primitive_type("version", INT32, optional, None)?,
            primitive_type("visible", BOOLEAN, required, None)?,
        ];
        let form = TableForm::new("objects", fields, properties(pages)?)?;
        Ok(Self { form })
    }

    /// Encodes rows as a row group.
    pub(crate) fn encode(&self, rows: ObjectRows) -> Result<EncodedGroup> {
        let lists = Lists {
            texts: rows.texts.into(),
            tags: rows.tags,
            refs: rows.refs,
            members: rows.members,
        };
        self.form.encode(|columns| {
            let mut rest = rows.rows.as_slice();
            while !rest.is_empty() {
                let (next, later) = rest.split_at(next_batch_len(rest));
                lists.put(columns, next)?;
                rest = later;
            }
            Ok(())
        })
    }
}

/// Returns the number of rows of the next batch.
fn next_batch_len(rows: &[ObjectRow]) -> usize {
    let mut parts = 0;
    let is_before_end = |row: &&ObjectRow| {
        let before = parts;
        parts += 1 + row.tags.len() + row.refs.len() + row.members.len();
        before < BATCH_VALUES
    };
    rows.iter().take_while(is_before_end).count()
}

/// The strings, tags, refs and members of all rows.
struct Lists {
    texts: Bytes,
    tags: Vec<(Range<u32>, Range<u32>)>,
    refs: Vec<i64>,
    members: Vec<(ObjectKind, i64, Range<u32>)>,
}

impl Lists {
    fn text(&self, range: &Range<u32>) -> ByteArray {
        let range = range.start as usize..range.end as usize;
        ByteArray::from(self.texts.slice(range))
    }

    /// Encodes the values of some rows.
    fn put(&self, columns: &mut GroupEncoder<'_>, rows: &[ObjectRow]) -> Result<()> {
        columns.encode_int64(&Values::from_rows(rows, |row, values| {
            values.values.push(row.id)
        }))?;
        let tags_of = |row: &ObjectRow| &self.tags[row.tags.clone()];
        columns.encode_bytes(&Values::from_rows(rows, |row, values| {
            values.push_list(tags_of(row).iter().map(|(key, _)| self.text(key)));
        }))?;
        columns.encode_bytes(&Values::from_rows(rows, |row, values| {
            values.push_list(tags_of(row).iter().map(|(_, value)| self.text(value)));
        }))?;
        columns.encode_double(&Values::from_rows(rows, |row, values| {
            values.push_optional(row.location.map(|(lat, _)| lat));
        }))?;
        columns.encode_double(&Values::from_rows(rows, |row, values| {
            values.push_optional(row.location.map(|(_, lon)| lon));
        }))?;
        columns.encode_int64(&Values::from_rows(rows, |row, values| {
            let refs = &self.refs[row.refs.clone()];
            values.push_list(refs.iter().copied());
        }))?;
        let members_of = |row: &ObjectRow| &self.members[row.members.clone()];
        let kind = |kind: ObjectKind| ByteArray::from(Bytes::from_static(kind.name().as_bytes()));
        columns.encode_bytes(&Values::from_rows(rows, |row, values| {
            values.push_list(members_of(row).iter().map(|member| kind(member.0)));
        }))?;
        columns.encode_int64(&Values::from_rows(rows, |row, values| {
            values.push_list(members_of(row).iter().map(|member| member.1));
        }))?;
        columns.encode_bytes(&Values::from_rows(rows, |row, values| {
            values.push_list(members_of(row).iter().map(|member| self.text(&member.2)));
        }))?;
        self.put_info(columns, rows)
    }

    /// Encodes the metadata of some rows.
    fn put_info(&self, columns: &mut GroupEncoder<'_>, rows: &[ObjectRow]) -> Result<()> {
        columns.encode_int64(&Values::from_rows(rows, |row, values| {
            values.push_optional(row.info.changeset)
        }))?;
        columns.encode_int64(&Values::from_rows(rows, |row, values| {
            let seconds = row.info.timestamp;
            values.push_optional(seconds.map(|seconds| seconds.saturating_mul(1000)));
        }))?;
        columns.encode_int32(&Values::from_rows(rows, |row, values| {
            values.push_optional(row.info.uid)
        }))?;
        columns.encode_bytes(&Values::from_rows(rows, |row, values| {
            values.push_optional(row.info.user.as_ref().map(|user| self.text(user)));
        }))?;
        columns.encode_int32(&Values::from_rows(rows, |row, values| {
            values.push_optional(row.info.version)
        }))?;
        columns.encode_bool(&Values::from_rows(rows, |row, values| {
            values.values.push(row.info.visible)
        }))
    }
}

impl ObjectRows {
    /// Creates an empty list. Objects are left out if their rows would exceed `limit`.
    pub(crate) fn new(limit: RowLimit) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the rows use at most about `most` bytes of memory after `element` is added. Always true if there are no
    /// rows yet. The strings of `element` are not counted, so the memory may exceed `most` by their size.
    pub(crate) fn has_room(&self, element: &Element<'_>, most: usize) -> bool {
        let parts = element.part_count_bounds();
        let memory = parts.tags * 16 + parts.refs * 8 + parts.members * 24;
        self.rows.is_empty() || self.memory() + memory <= most
    }

    /// Reserves exactly the memory that a large object needs. Lists that grow by doubling would waste up to half of
    /// their memory.
    fn reserve(&mut self, element: &Element<'_>) {
        const LONG: usize = 100_000;
        let parts = element.part_count_bounds();
        if parts.tags.max(parts.refs).max(parts.members) > LONG {
            self.tags.reserve_exact(parts.tags);
            self.refs.reserve_exact(parts.refs);
            self.members.reserve_exact(parts.members);
        }
    }

    /// Returns the approximate memory of the rows in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.rows.len() * size_of::<ObjectRow>()
            + self.texts.len()
            + self.tags.len() * 16
            + self.refs.len() * 8
            + self.members.len() * 24
    }

    /// Appends a string to `texts`, and returns its range.
    fn push_text(&mut self, text: &str) -> Range<u32> {
        let start = self.texts.len() as u32;
        self.texts.extend_from_slice(text.as_bytes());
        start..self.texts.len() as u32
    }

    /// Adds an object, or leaves it out if its row would be too large. `payload_len` is the size in bytes of the block
    /// that holds the object.
    pub(crate) fn push(&mut self, element: &Element<'_>, payload_len: usize) {
        if !self.limit.allows_object(element, payload_len) {
            return self.oversized.add(element.kind(), element.id());
        }
        self.reserve(element);
        let starts = (self.tags.len(), self.refs.len(), self.members.len());
        let mut tags = UniqueTags::new(element.tags());
        for (key, value) in tags.by_ref() {
            let tag = (self.push_text(key), self.push_text(value));
            self.tags.push(tag);
        }
        self.repeated_keys += tags.repeated();
        let mut location = None;
        match element {
            Element::Node(node) => location = node.location().filter(|_| node.info().visible),
            Element::Way(way) => self.refs.extend(way.refs()),
            Element::Relation(relation) => {
                for member in relation.members() {
                    let role = self.push_text(member.role);
                    self.members.push((member.kind, member.id, role));
                }
            }
        }
        let degrees = |e7: i32| f64::from(e7) / DECIMICRO_PER_DEGREE as f64;
        let location = location.map(|known| (degrees(known.lat_e7()), degrees(known.lon_e7())));
        self.push_row(element, starts, location);
    }

    fn push_row(
        &mut self,
        element: &Element<'_>,
        (tags, refs, members): (usize, usize, usize),
        location: Option<(f64, f64)>,
    ) {
        let Info {
            version,
            timestamp,
            changeset,
            uid,
            user,
            visible,
        } = element.info();
        let info = RowInfo {
            version: version.map(|version| version as i32),
            timestamp,
            changeset,
            uid,
            user: user.map(|user| self.push_text(user)),
            visible,
        };
        self.rows.push(ObjectRow {
            id: element.id(),
            location,
            info,
            tags: tags..self.tags.len(),
            refs: refs..self.refs.len(),
            members: members..self.members.len(),
        });
    }
}

fn properties(pages: PageCompression) -> Result<WriterPropertiesBuilder> {
    let mut properties = WriterProperties::builder().set_compression(parquet_compression(pages)?);
    let path = |names: &[&str]| ColumnPath::new(names.iter().map(ToString::to_string).collect());
    for names in [
        &["id"][..],
        &["lat"],
        &["lon"],
        &["nds", "list", "element", "ref"],
        &["members", "list", "element", "ref"],
    ] {
        properties = properties.set_column_dictionary_enabled(path(names), false);
    }
    // Ids are in order, so their differences are small and need few bits.
    Ok(properties.set_column_encoding(path(&["id"]), Encoding::DELTA_BINARY_PACKED))
}
