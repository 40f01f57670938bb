//! Blocks of objects: their messages, their strings and units, and objects in the forms in which they are read.

pub(super) mod contents;
pub(super) mod dense;
pub(super) mod dense_iter;
pub(super) mod element;
pub(super) mod element_view;
pub(super) mod keys;
pub(super) mod limits;
pub(super) mod list;
pub(super) mod message_list;
pub(super) mod messages;
pub(super) mod node_locations;
pub(super) mod object;
pub(super) mod outline;
pub(super) mod parsed;
pub(super) mod raw_element;
pub(super) mod string_faults;
