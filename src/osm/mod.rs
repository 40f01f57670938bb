//! The data model: kinds and ids of objects, their canonical order, locations, bounding boxes, and times. Also
//! expressions that select objects, rules that change tags, tags without repeated keys, string pools, and formats other
//! than PBF.

mod age;
mod bbox;
mod change_root;
mod edges;
mod kind;
mod language;
mod location;
mod metadata_condition;
mod nano;
mod object_filter;
mod object_id;
mod order;
mod rule_words;
mod string_matcher;
mod strings;
mod tag_pattern;
mod tag_rule;
mod text_format;
mod time;
mod unique_tags;

pub use age::{Age, Unversioned};
pub use bbox::{Bbox, DECIMICRO_PER_DEGREE, Degrees, format_e7, parse_e7, parse_stored_e7};
pub(crate) use change_root::{CHANGE_ROOT, has_change_root};
pub use edges::Edges;
pub use kind::{KindSet, ObjectKind};
pub(crate) use language::is_language_tag;
pub use location::Location;
pub use metadata_condition::{MetadataCondition, MetadataNumber};
pub use nano::NANO_PER_DECIMICRO;
pub(crate) use nano::{ceil_e7, floor_e7, is_exact_e7, nano_of_e7, nearest_e7, truncated_e7};
pub use object_filter::{ObjectExpression, ObjectFilter};
pub use object_id::{ObjectId, parse_object_ids};
pub use order::{TypeThenId, id_from_rank, id_rank};
pub use string_matcher::{RegexMatcher, StringMatcher};
pub use strings::StringPool;
pub use tag_pattern::TagPattern;
pub use tag_rule::{KeyPatterns, MAX_TAG_LEN, TagAction, TagRule};
pub(crate) use text_format::FileContent;
pub use text_format::TextFormat;
pub use time::{format_timestamp, parse_moment, parse_period, parse_timestamp};
pub use unique_tags::UniqueTags;
pub(crate) use unique_tags::{SeenKeys, retain_unique};
