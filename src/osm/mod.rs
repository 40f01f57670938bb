//! The data model: kinds and ids of objects, their canonical order, locations, bounding boxes, times, tag expressions
//! and string pools.

mod bbox;
mod kind;
mod location;
mod nano;
mod object_id;
mod order;
mod strings;
mod tag_filter;
mod time;

pub use bbox::{Bbox, DECIMICRO_PER_DEGREE, Degrees, format_e7, parse_e7};
pub use kind::{KindSet, ObjectKind};
pub use location::Location;
pub use nano::NANO_PER_DECIMICRO;
pub(crate) use nano::{ceil_e7, floor_e7, is_exact_e7, nano_of_e7, nearest_e7, truncated_e7};
pub use object_id::{ObjectId, parse_object_ids};
pub use order::{TypeThenId, id_from_rank, id_rank};
pub use strings::StringPool;
pub use tag_filter::{StringMatcher, TagExpression, TagFilter};
pub use time::{format_timestamp, parse_moment, parse_timestamp};
