//! Replication: the change files that a server publishes one after another, and their states.

mod cache;
mod fetch;
mod search;
mod server;
mod state;
mod transport;

pub use cache::Cache;
pub use fetch::Fetcher;
pub use search::state_at;
pub use server::Server;
pub(crate) use state::numbers;
pub use state::{State, path_of};
pub use transport::{Fault, LocalFiles, Part, Transport};
