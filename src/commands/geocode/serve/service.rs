//! The index of the service, and its answers to requests.

use super::answer_body::AnswerBody;
use super::client_io::SendState;
use super::map_text::MapText;
use super::refusal::Refusal;
use super::reverse::{
    AnswerFormat, Parameters, ReverseOptions, answer_of, place_of, query_options_of,
};
use super::subject::degrees;
use super::{geocode_json, place_json, place_xml};
use crate::error::{Error, Result};
use crate::geocode::{GeocodeIndex, Manifest};
use crate::runtime::human_bytes;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The HTML page with a map, on which a click asks for the address of a place.
const PAGE: &str = include_str!("page.html");
/// The content type of most answers.
const JSON: &str = "application/json; charset=utf-8";

/// The message about an invalid origin.
const EXPECTED_ORIGIN: &str = "expected *, null or an origin such as https://maps.example.com";

/// Parses an origin in the form that browsers send, such as `https://example.com:8080`. The origin must not have a
/// path. Also accepts `*` for all origins, and `null` for local files.
pub fn parse_origin(text: &str) -> Option<&str> {
    let has_host = |(scheme, host): (&str, &str)| {
        let is_scheme =
            |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.');
        let is_host = |char: char| char.is_ascii_graphic() && !"/?#@,*\"\\".contains(char);
        !scheme.is_empty()
            && scheme.chars().all(is_scheme)
            && !host.is_empty()
            && host.chars().all(is_host)
    };
    let is_origin = matches!(text, "*" | "null") || text.split_once("://").is_some_and(has_host);
    is_origin.then_some(text)
}

/// The service, with an index that may be replaced.
pub(super) struct Service {
    directory: PathBuf,
    index: RwLock<Arc<GeocodeIndex>>,
    /// The origin of the web pages that may read the answers in a browser; `*` for all origins, `None` if only the
    /// service's own page may read the answers.
    cors: Option<HeaderValue>,
}

impl Service {
    pub(super) fn open(directory: &Path, cors: Option<&str>) -> Result<Self> {
        let origin = |origin: &str| {
            let valid = parse_origin(origin).and_then(|origin| HeaderValue::try_from(origin).ok());
            valid.ok_or_else(|| Error::Usage(format!("{origin}: {EXPECTED_ORIGIN}")))
        };
        Ok(Self {
            cors: cors.map(origin).transpose()?,
            directory: directory.to_owned(),
            index: RwLock::new(Arc::new(GeocodeIndex::open(directory)?)),
        })
    }

    /// Returns the current index.
    fn index(&self) -> Arc<GeocodeIndex> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.clone()
    }

    /// Describes the index in one line.
    pub(super) fn description(&self) -> String {
        let index = self.index();
        let manifest = index.manifest();
        let size = human_bytes(manifest.bytes);
        format!("the index is of {}, {size}", manifest.input)
    }

    /// Opens the index again if it was rebuilt.
    pub(super) fn reload_index_if_rebuilt(&self, log: &(dyn Fn(&str) + Sync)) {
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
            // The index is being rebuilt or was removed. The old index stays usable, because its files are mapped into
            // memory.
            Err(_) => {}
        }
    }

    /// Answers a request. A long answer is generated in pieces. A piece is generated only after all earlier pieces have
    /// been sent.
    pub(super) fn answer(
        &self,
        request: &Request<Incoming>,
        sent: &Arc<SendState>,
    ) -> Response<AnswerBody> {
        let known = match request.method() {
            &Method::GET | &Method::HEAD => self.route(request, sent),
            &Method::OPTIONS if self.cors.is_some() => return self.answer_preflight(),
            _ => Err(Refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("the methods are {}", self.methods()),
            )),
        };
        match known {
            Ok((body, content)) => self.response(StatusCode::OK, body, content),
            Err(Refusal(status, message)) => self.refusal(status, &message),
        }
    }

    /// Creates the answer to a request that is refused.
    pub(super) fn refusal(&self, status: StatusCode, message: &str) -> Response<AnswerBody> {
        let error = json!({"error": {"code": status.as_u16(), "message": message}});
        let mut response = self.response(status, error.to_string().into(), JSON);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            let methods = HeaderValue::from_static(self.methods());
            response.headers_mut().insert(header::ALLOW, methods);
        }
        response
    }

    /// Returns the accepted HTTP methods.
    const fn methods(&self) -> &'static str {
        match self.cors {
            Some(_) => "GET, HEAD, OPTIONS",
            None => "GET, HEAD",
        }
    }

    /// Answers a CORS preflight request, in which a browser asks whether a page of another origin may send a request.
    fn answer_preflight(&self) -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
        put(header::ACCESS_CONTROL_ALLOW_METHODS, self.methods());
        put(header::ACCESS_CONTROL_ALLOW_HEADERS, "*");
        put(header::ACCESS_CONTROL_MAX_AGE, "86400");
        self.add_allow_origin_header(&mut response);
        response
    }

    fn add_allow_origin_header(&self, response: &mut Response<AnswerBody>) {
        if let Some(origin) = &self.cors {
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }

    fn response(
        &self,
        status: StatusCode,
        body: AnswerBody,
        content: &'static str,
    ) -> Response<AnswerBody> {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
        put(header::CONTENT_TYPE, content);
        put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        put(
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
             connect-src 'self'; img-src data:",
        );
        self.add_allow_origin_header(&mut response);
        response
    }

    /// Returns the body and the content type of the answer to a request.
    fn route(
        &self,
        request: &Request<Incoming>,
        sent: &Arc<SendState>,
    ) -> Result<(AnswerBody, &'static str), Refusal> {
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
                    AnswerBody::from_bytes(Bytes::from_static(PAGE.as_bytes())),
                    "text/html; charset=utf-8",
                ));
            }
            "/reverse" | "/reverse.php" => {
                let options = ReverseOptions::of(&parameters)?;
                let languages = query_options_of(&parameters, language);
                let answer = answer_of(&index, place_of(&parameters)?, languages, options.zoom)?;
                match options.format {
                    AnswerFormat::Xml => {
                        let text = place_xml::response(&answer, options, query);
                        return Ok((text.into(), "text/xml; charset=utf-8"));
                    }
                    AnswerFormat::GeocodeJson => geocode_json::response(&answer, options),
                    _ => place_json::response(&answer, options)?,
                }
            }
            "/geocode" => {
                let languages = query_options_of(&parameters, language);
                let answer = index.reverse(place_of(&parameters)?, &languages)?;
                answer.json()
            }
            "/map" => {
                let text = MapText::new(index.clone(), &parameters)?;
                return Ok((AnswerBody::from_map_text(text, sent.clone())?, JSON));
            }
            "/health" => health_report(&index)?.to_string(),
            "/status" => {
                let body = AnswerBody::from_bytes(Bytes::from_static(b"OK"));
                return Ok((body, "text/plain; charset=utf-8"));
            }
            path => {
                let cause = format!("there is nothing at {path}; try /reverse?lat=…&lon=…");
                return Err(Refusal(StatusCode::NOT_FOUND, cause));
            }
        };
        Ok((answer.into(), JSON))
    }
}

/// Returns the answer to `/health`, which describes the index.
fn health_report(index: &GeocodeIndex) -> Result<Value> {
    let (manifest, bbox) = (index.manifest(), index.bbox()?);
    let edges = (!bbox.is_empty()).then(|| bbox.edges_e7().map(degrees).into_array());
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
