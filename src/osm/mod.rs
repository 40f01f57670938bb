//! The data model: kinds and ids of objects, their canonical order, locations, bounding boxes, times, tag expressions
//! and string pools.

mod bbox;
mod kind;
mod location;
mod object_id;
mod order;
mod strings;
mod tag_filter;
mod time;

pub use bbox::{Bbox, DECIMICRO_PER_DEGREE, Degrees, NANO_PER_DECIMICRO, format_e7, parse_e7};
pub use kind::{KindSet, ObjectKind};
pub use location::Location;
pub use object_id::{ObjectId, parse_object_ids};
pub use order::{TypeThenId, id_from_rank, id_rank};
pub use strings::StringPool;
pub use tag_filter::{StringMatcher, TagExpression, TagFilter};
pub use time::{format_timestamp, parse_moment, parse_timestamp};
