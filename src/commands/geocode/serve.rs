//! The HTTP service of the reverse geocoder. Defines its options, and accepts connections.

mod answer_body;
mod client_io;
mod connection;
mod geocode_json;
mod map_text;
mod place_json;
mod place_xml;
mod refusal;
mod reverse;
mod service;
mod service_signals;
mod subject;

use crate::error::{Error, Result};
use connection::{CLOSING_TIME, answer_requests, reject_connection};
use service::Service;
use service_signals::{ServiceSignals, SignalRequest};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use service::parse_origin;

/// The default of [`ServeOptions::max_connections`].
pub const MAX_CONNECTIONS: u32 = 1024;
/// The default of [`ServeOptions::timeout`].
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of connections beyond the limit that are answered with the status 503 at a time.
const TURNED_AWAY: usize = 64;
/// The number of open files that served connections have to leave free: for connections that are turned away, and for
/// everything else that the process opens.
const OTHER_FILES: u64 = TURNED_AWAY as u64 + 64;
/// The maximum number of connections that wait in the kernel to be accepted.
const BACKLOG: u32 = 1024;
/// The time that a client beyond the maximum number of connections waits before it is turned away.
const WAIT: Duration = Duration::from_secs(1);
/// The size in bytes of the send buffer of a connection. Linux doubles it to have room for its own data.
const SEND_BUFFER: u32 = 32 << 10;
/// The interval at which the manifest is checked for a new index.
const RELOAD_TIME: Duration = Duration::from_secs(2);

options! {
    /// The options of the service.
    pub struct ServeOptions {
        /// The directory of the index.
        pub index: PathBuf,
        /// The address and the port, such as `127.0.0.1:8080`. Port 0 is any free port.
        pub address: String,
    }
    new(index: impl Into<PathBuf>, address: impl Into<String>);
    setters {
        /// The number of threads.
        jobs: usize = 1,
        /// The maximum number of connections at a time.
        max_connections: u32 = MAX_CONNECTIONS,
        /// The time limit for clients. A connection is closed if a request does not arrive within this time, or if the
        /// client accepts no bytes of an answer for this time.
        timeout: Duration = TIMEOUT,
        /// The origin of the web pages that may use the answers in browsers, such as `https://maps.example.com`, or `*`
        /// for all pages.
        cors: Option<String>,
    }
}

/// Serves the index over HTTP until the process gets SIGTERM or SIGINT. Calls `log` with a line for each event. The
/// first line has the address.
///
/// The service checks regularly whether the index was rebuilt, and then uses the new index. SIGHUP makes it check
/// immediately. A connection is closed if its client does not send a request, or does not accept an answer, within
/// [`ServeOptions::timeout`]. A client beyond the maximum number of connections waits for a second, and is answered
/// with the status 503 if no connection was closed by then.
///
/// # Errors
///
/// The index cannot be opened, or the service cannot listen on the address.
pub fn serve(options: &ServeOptions, log: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let service = Arc::new(Service::open(&options.index, options.cors.as_deref())?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.jobs.max(1))
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Error::Usage(format!("cannot start threads: {error}")))?;
    runtime.block_on(accept_connections(options, service, log))
}

/// Returns a function that creates the error for an action that failed at an address.
fn io_error_mapper(address: &str, action: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Usage(format!("{address}: {action}: {error}"))
}

/// Opens a listening socket. Its connections have a small send buffer.
async fn listen(address: &str) -> std::io::Result<TcpListener> {
    let mut failure = std::io::Error::other("it is the name of no address");
    for address in tokio::net::lookup_host(address).await? {
        let listen = || {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // On Windows, this option would let other programs take the port.
            #[cfg(not(windows))]
            socket.set_reuseaddr(true)?;
            socket.set_send_buffer_size(SEND_BUFFER)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        };
        match listen() {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The permits for connections.
struct Rooms {
    free: Arc<Semaphore>,
    /// The permits for connections that are turned away.
    turned_away: Arc<Semaphore>,
    /// The number of permits for connections.
    count: usize,
    /// The time limit for clients (see [`ServeOptions::timeout`]).
    limit: Duration,
    /// Whether the last client got no permit.
    is_full: bool,
}

impl Rooms {
    fn new(count: usize, limit: Duration) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            count,
            limit,
            is_full: false,
        }
    }

    /// Waits at most [`WAIT`] for a permit. Returns `None` if no permit becomes free. Does not wait if the last client
    /// got no permit.
    async fn wait_for_permit(&self) -> Option<OwnedSemaphorePermit> {
        let free = self.free.clone();
        match free.try_acquire_owned() {
            Ok(room) => Some(room),
            Err(_) if self.is_full => None,
            Err(_) => {
                let room = tokio::time::timeout(WAIT, self.free.clone().acquire_owned());
                room.await.ok()?.ok()
            }
        }
    }

    /// Serves a connection if `room` is a permit, or if a permit is free by now. Otherwise turns the connection away.
    fn admit(
        &mut self,
        stream: TcpStream,
        room: Option<OwnedSemaphorePermit>,
        service: &Arc<Service>,
        stopped: &watch::Receiver<()>,
        log: &(dyn Fn(&str) + Sync),
    ) {
        let room = room.or_else(|| self.free.clone().try_acquire_owned().ok());
        if room.is_none() && !self.is_full {
            let count = self.count;
            log(&format!(
                "{count} connections are open: more are answered with 503"
            ));
        }
        self.is_full = room.is_none();
        let service = service.clone();
        if let Some(room) = room {
            let (limit, stopped) = (self.limit, stopped.clone());
            tokio::spawn(async move {
                answer_requests(stream, service, limit, stopped).await;
                drop(room);
            });
        } else if let Ok(room) = self.turned_away.clone().try_acquire_owned() {
            tokio::spawn(async move {
                reject_connection(stream, service).await;
                drop(room);
            });
        }
    }
}

/// Returns the maximum number of connections: `wanted`, or fewer if the process may not open as many files.
fn allowed_connections(wanted: u32, log: &(dyn Fn(&str) + Sync)) -> usize {
    let files = crate::system::raise_open_file_limit();
    let allowed = files.saturating_sub(OTHER_FILES).max(1);
    if allowed < wanted.into() {
        log(&format!(
            "the process may have {files} files open: at most {allowed} connections"
        ));
    }
    usize::try_from(allowed)
        .unwrap_or(usize::MAX)
        .min(wanted as usize)
        .max(1)
}

/// Accepts connections until a signal ends the service.
async fn accept_connections(
    options: &ServeOptions,
    service: Arc<Service>,
    log: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let address = options.address.as_str();
    if !address.contains(':') {
        let cause = "expected an address and a port, such as 127.0.0.1:8080";
        return Err(Error::Usage(format!("{address}: {cause}")));
    }
    let listener = listen(address).await;
    let listener = listener.map_err(io_error_mapper(address, "cannot listen"))?;
    let local = listener.local_addr();
    let local: SocketAddr = local.map_err(io_error_mapper(address, "cannot listen"))?;
    let signals = ServiceSignals::catch();
    let mut signals = signals.map_err(io_error_mapper(address, "cannot wait for signals"))?;
    let mut tick = tokio::time::interval(RELOAD_TIME);
    let (stop, stopped) = watch::channel(());
    log(&format!("listening on http://{local}/"));
    log(&service.description());
    let count = allowed_connections(options.max_connections, log);
    let mut rooms = Rooms::new(count, options.timeout);
    loop {
        let accepted = async {
            let room = rooms.wait_for_permit().await;
            let accepted = listener.accept().await;
            (room, accepted)
        };
        tokio::select! {
            request = signals.next() => match request {
                SignalRequest::End => break,
                SignalRequest::Reload => service.reload_index_if_rebuilt(log),
            },
            _ = tick.tick() => service.reload_index_if_rebuilt(log),
            (room, accepted) = accepted => match accepted {
                Ok((stream, _)) => rooms.admit(stream, room, &service, &stopped, log),
                // Too many files are open, or the client is gone already. The service waits a moment and continues.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
        }
    }
    log("stopping");
    drop((listener, stop));
    let all = rooms
        .free
        .acquire_many(u32::try_from(count).unwrap_or(u32::MAX));
    // Waits until all connections are closed. Connections that are still open after `CLOSING_TIME` are cut off.
    let _ = tokio::time::timeout(CLOSING_TIME, all).await;
    Ok(())
}
