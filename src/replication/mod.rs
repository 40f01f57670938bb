//! Fetches change files and their states from replication servers.

mod cache;
mod coding;
mod complete;
mod ladder;
mod missing_states;
mod page;
mod search;
mod server;
mod state;

pub use cache::Cache;
pub use ladder::{End, Ladder, Leg};
pub use search::state_at;
pub use server::{ChangeFile, Server, is_same_server};
pub use state::{LAST_SEQUENCE, State, path_of};
pub(crate) use state::{non_negative_number, parse_sequence_and_time};
