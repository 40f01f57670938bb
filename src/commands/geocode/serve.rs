//! The HTTP service of the reverse geocoder.

use super::reverse::{Parameters, ReverseOptions, languages_of, place_of, response};
use super::service_signals::{ServiceSignals, SignalRequest};
use crate::error::{Error, Result};
use crate::geocode::{GeocodeIndex, Manifest};
use crate::geometry::Point;
use crate::osm::Bbox;
use crate::runtime::human_bytes;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// The page that shows a map, and answers a click.
const PAGE: &str = include_str!("page.html");
/// The type of most answers.
const JSON: &str = "application/json; charset=utf-8";
/// The maximum number of connections at a time. More of them wait.
const MAX_CONNECTIONS: usize = 1024;
/// The maximum number of bytes of a request.
const MAX_REQUEST: usize = 16 << 10;
/// The time in which the head of a request has to arrive.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The time after which a connection is closed when its request is answered.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// The time for the last answer of a connection that is being closed.
const CLOSING_TIME: Duration = Duration::from_secs(5);
/// The time between two looks at the manifest.
const RELOAD_TIME: Duration = Duration::from_secs(2);
/// The number of lines of each sort on a map.
const MAP_BUDGET: usize = 20_000;

/// The options of the service.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The directory of the index.
    pub index: PathBuf,
    /// The address and the port, such as `127.0.0.1:8080`. Port 0 is any free port.
    pub address: String,
    /// The number of threads.
    pub jobs: usize,
}

impl ServeOptions {
    /// Options with the given index and address, and one thread.
    pub fn new(index: impl Into<PathBuf>, address: impl Into<String>) -> Self {
        Self {
            index: index.into(),
            address: address.into(),
            jobs: 1,
        }
    }
}

setters!(ServeOptions { jobs: usize });

/// Answers questions about places over HTTP until the process gets SIGTERM or SIGINT. `log` gets a line for each event,
/// the address among them.
///
/// An index that was built anew is used from then on; SIGHUP makes the service look at once. Connections that send no
/// request, or do not take their answer, are closed.
///
/// # Errors
///
/// The index cannot be opened, or nothing can be bound to the address.
pub fn serve(options: &ServeOptions, log: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let service = Arc::new(Service::open(&options.index)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.jobs.max(1))
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Error::Usage(format!("cannot start threads: {error}")))?;
    runtime.block_on(accept(&options.address, service, log))
}

fn failed(address: &str, action: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Usage(format!("{address}: {action}: {error}"))
}

/// Accepts connections until a signal ends the service.
async fn accept(address: &str, service: Arc<Service>, log: &(dyn Fn(&str) + Sync)) -> Result<()> {
    if !address.contains(':') {
        let cause = "expected an address and a port, such as 127.0.0.1:8080";
        return Err(Error::Usage(format!("{address}: {cause}")));
    }
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(failed(address, "cannot listen"))?;
    let local = listener.local_addr();
    let local: SocketAddr = local.map_err(failed(address, "cannot listen"))?;
    let signals = ServiceSignals::catch();
    let mut signals = signals.map_err(failed(address, "cannot wait for signals"))?;
    let mut tick = tokio::time::interval(RELOAD_TIME);
    let (stop, stopped) = watch::channel(());
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    log(&format!("listening on http://{local}/"));
    log(&service.description());
    loop {
        let accepted = async {
            let permit = free.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        tokio::select! {
            request = signals.next() => match request {
                SignalRequest::End => break,
                SignalRequest::Reload => service.reload(log),
            },
            _ = tick.tick() => service.reload(log),
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (service, stopped) = (service.clone(), stopped.clone());
                    tokio::spawn(async move {
                        connection(stream, service, stopped).await;
                        drop(permit);
                    });
                }
                // Too many open files, or a client that is gone already: others go on.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
        }
    }
    log("stopping");
    drop((listener, stop));
    let all = free.acquire_many(MAX_CONNECTIONS as u32);
    // A connection that is still open then is cut off.
    let _ = tokio::time::timeout(CLOSING_TIME * 2, all).await;
    Ok(())
}

/// Answers the requests of a connection.
async fn connection(stream: TcpStream, service: Arc<Service>, mut stopped: watch::Receiver<()>) {
    // Answers are small and whole: waiting for more to send makes them late.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request: Request<Incoming>| {
        let response = service.answer(&request);
        async { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_REQUEST);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => {}
        () = tokio::time::sleep(CONNECTION_TIME) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(CLOSING_TIME, connection).await;
}

/// An error that a client made: its status, and a sentence.
struct Refusal(StatusCode, String);

impl From<String> for Refusal {
    fn from(cause: String) -> Self {
        Self(StatusCode::BAD_REQUEST, cause)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

/// The service: the index, which may be replaced.
struct Service {
    directory: PathBuf,
    index: RwLock<Arc<GeocodeIndex>>,
}

impl Service {
    fn open(directory: &Path) -> Result<Self> {
        Ok(Self {
            directory: directory.to_owned(),
            index: RwLock::new(Arc::new(GeocodeIndex::open(directory)?)),
        })
    }

    fn index(&self) -> Arc<GeocodeIndex> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.clone()
    }

    /// The index in a line.
    fn description(&self) -> String {
        let index = self.index();
        let manifest = index.manifest();
        let size = human_bytes(manifest.bytes);
        format!("the index is of {}, {size}", manifest.input)
    }

    /// Opens the index again if it was built anew.
    fn reload(&self, log: &(dyn Fn(&str) + Sync)) {
        let is_same = |manifest: &Manifest| manifest == self.index().manifest();
        match Manifest::read(&self.directory) {
            Ok(manifest) if is_same(&manifest) => {}
            Ok(_) => match GeocodeIndex::open(&self.directory) {
                Ok(index) => {
                    let mut current = self.index.write().unwrap_or_else(PoisonError::into_inner);
                    *current = Arc::new(index);
                    drop(current);
                    log(&self.description());
                }
                Err(error) => log(&format!("the old index is used on: {error}")),
            },
            // Somebody builds it, or has taken it away: the mapped one is still there.
            Err(_) => {}
        }
    }

    /// The answer to a request.
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let known = match request.method() {
            &Method::GET | &Method::HEAD => self.route(request),
            _ => Err(Refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                "the methods are GET and HEAD".to_owned(),
            )),
        };
        let (status, (body, content)) = match known {
            Ok(answer) => (StatusCode::OK, answer),
            Err(Refusal(status, message)) => {
                let error = json!({"error": {"code": status.as_u16(), "message": message}});
                (status, (Bytes::from(error.to_string()), JSON))
            }
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
        put(header::CONTENT_TYPE, content);
        put(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        put(
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
             connect-src 'self'; img-src data:",
        );
        if status == StatusCode::METHOD_NOT_ALLOWED {
            put(header::ALLOW, "GET, HEAD");
        }
        response
    }

    fn route(&self, request: &Request<Incoming>) -> Result<(Bytes, &'static str), Refusal> {
        let query = request.uri().query().unwrap_or_default();
        let parameters: Parameters = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let language = request.headers().get(header::ACCEPT_LANGUAGE);
        let language = language.and_then(|language| language.to_str().ok());
        let index = self.index();
        let answer = match request.uri().path() {
            "/" => {
                return Ok((
                    Bytes::from_static(PAGE.as_bytes()),
                    "text/html; charset=utf-8",
                ));
            }
            "/reverse" | "/reverse.php" => {
                let options = ReverseOptions::of(&parameters)?;
                let languages = languages_of(&parameters, language);
                let answer = index.reverse(place_of(&parameters)?, &languages)?;
                response(&answer, options)?
            }
            "/geocode" => {
                let languages = languages_of(&parameters, language);
                let answer = index.reverse(place_of(&parameters)?, &languages)?;
                answer.json()
            }
            "/map" => map(&index, &parameters)?.to_string(),
            "/health" => health(&index)?.to_string(),
            "/status" => return Ok((Bytes::from_static(b"OK"), "text/plain; charset=utf-8")),
            path => {
                let cause = format!("there is nothing at {path}; try /reverse?lat=…&lon=…");
                return Err(Refusal(StatusCode::NOT_FOUND, cause));
            }
        };
        Ok((Bytes::from(answer), JSON))
    }
}

fn degrees(e7: i32) -> f64 {
    f64::from(e7) / 1e7
}

/// Facts about the index.
fn health(index: &GeocodeIndex) -> Result<Value> {
    let (manifest, bbox) = (index.manifest(), index.bbox()?);
    let edges = (!bbox.is_empty()).then(|| bbox.edges_e7().map(degrees));
    Ok(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "input": manifest.input,
        "timestamp": manifest.timestamp,
        "bytes": manifest.bytes,
        "counts": manifest.counts,
        "bbox": edges,
    }))
}

/// Lines for a map of the box in the parameter `bbox`.
fn map(index: &GeocodeIndex, parameters: &Parameters) -> Result<Value, Refusal> {
    let text = parameters
        .get("bbox")
        .map(String::as_str)
        .unwrap_or_default();
    let edges = text.split(',').map(|edge| edge.trim().parse::<f64>());
    let edges = edges.collect::<Result<Vec<f64>, _>>().ok();
    let is_box = |edges: &Vec<f64>| matches!(edges[..], [w, s, e, n] if w <= e && s <= n);
    let edges = edges.filter(is_box);
    let Some([west, south, east, north]) = edges.as_deref() else {
        return Err("parameter 'bbox' must be west,south,east,north in degrees".to_owned())?;
    };
    let e7 = |degrees: &f64| (degrees * 1e7) as i32;
    let bbox = Bbox {
        min_lat_e7: e7(south),
        max_lat_e7: e7(north),
        min_lon_e7: e7(west),
        max_lon_e7: e7(east),
    };
    let map = index.map_lines(&bbox, MAP_BUDGET)?;
    let line = |points: &[Point]| -> Vec<f64> {
        let pairs = points.iter().map(|point| [point.lon_e7, point.lat_e7]);
        pairs.flatten().map(degrees).collect()
    };
    let streets = map.streets.iter();
    let streets = streets.map(|(name, points)| json!([name, line(points)]));
    Ok(json!({
        "streets": streets.collect::<Vec<_>>(),
        "roads": map.roads.iter().map(|points| line(points)).collect::<Vec<_>>(),
        "boundaries": map.boundaries.iter().map(|ends| line(ends)).collect::<Vec<_>>(),
        "is_thinned": map.is_thinned,
    }))
}
