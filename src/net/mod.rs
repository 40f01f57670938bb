//! Files of servers: requests, attempts, transfers that go on where they broke off, and files of which parts are read.
//!
//! A [`Transport`] gets files: [`WebFiles`] over HTTP, [`LocalFiles`] from directories. [`Fetcher`] gets whole files,
//! and `RemoteFile` the parts of a file that are read. Both repeat failed attempts by the rules of `Attempts`.

mod attempts;
mod body;
#[cfg(feature = "update")]
mod client;
#[cfg(feature = "update")]
mod cookies;
mod fault;
mod fetch;
mod pace;
#[cfg(feature = "update")]
mod remote;
mod transport;
#[cfg(feature = "update")]
mod web_files;

pub(crate) use attempts::Attempts;
pub(crate) use body::{Body, GzipFile};
#[cfg(feature = "update")]
pub use cookies::CookieJar;
pub use fault::Fault;
pub use fetch::Fetcher;
pub(crate) use pace::Pace;
#[cfg(feature = "update")]
pub(crate) use remote::RemoteFile;
pub use transport::{BodyRange, LocalFiles, Transport};
#[cfg(feature = "update")]
pub use web_files::{AnyFiles, Credentials, WebFiles};
