//! Making blocks of objects.

pub(super) mod builder;
pub(super) mod encoder;
pub(super) mod intern;
