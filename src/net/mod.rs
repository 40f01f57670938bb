//! Fetching files from servers, whole or in part. Failed attempts are repeated, and broken transfers resume where they
//! broke off.
//!
//! A [`Transport`] opens files. [`WebFiles`] uses HTTP, and [`LocalFiles`] opens files in directories. [`Fetcher`]
//! fetches whole files, and `RemoteFile` only the parts of a file that are read. `Fetcher` and `RemoteFile` repeat
//! failed attempts by the rules of `Attempts`.

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
pub(crate) use body::{Body, ChangeForm, GzipFile};
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
