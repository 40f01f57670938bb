//! Replication: the change files that a server publishes one after another, and their states.

mod body;
mod cache;
mod complete;
#[cfg(feature = "update")]
mod cookies;
mod fetch;
#[cfg(feature = "update")]
mod http;
mod ladder;
mod search;
mod server;
mod state;
mod transport;

pub use cache::Cache;
#[cfg(feature = "update")]
pub use cookies::CookieJar;
pub use fetch::Fetcher;
#[cfg(feature = "update")]
pub use http::{AnyFiles, Credentials, WebFiles};
pub use ladder::{End, Ladder, Leg};
pub use search::state_at;
pub use server::{ChangeFile, Server, is_same_server};
pub use state::{LAST_SEQUENCE, State, path_of};
pub(crate) use state::{known, numbers};
pub use transport::{BodyRange, Fault, LocalFiles, Transport};
