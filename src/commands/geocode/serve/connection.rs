//! Serves a connection from its first request to its end.

use super::answer_body::AnswerBody;
use super::client_io::{ClientIo, SendState};
use super::service::Service;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioTimer;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The maximum size in bytes of a request, and of the part of an answer that waits to be sent.
const MAX_REQUEST: usize = 16 << 10;
/// The maximum age of a connection. An older connection is closed as soon as its current request is answered.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// The time limit for the last answer of a connection that is being closed.
pub(super) const CLOSING_TIME: Duration = Duration::from_secs(3);
/// The time limit for a client to close its end of a connection, after the service has closed its own end.
const FAREWELL_TIME: Duration = Duration::from_secs(2);

/// Answers the requests of a connection in order, each after the previous answer has been sent. `limit` is the time
/// limit for the arrival of a request, and for each wait until the client accepts more bytes of an answer.
pub(super) async fn answer_requests(
    stream: TcpStream,
    service: Arc<Service>,
    limit: Duration,
    mut stopped: watch::Receiver<()>,
) {
    // Each answer, or each piece of a long answer, is written as a whole, so a delay of small packets (Nagle's
    // algorithm) would only add latency.
    let _ = stream.set_nodelay(true);
    let sent = Arc::new(SendState::default());
    let answer = service_fn(|request: Request<Incoming>| {
        let (service, sent) = (&service, &sent);
        Box::pin(async move {
            poll_fn(|context| sent.poll_sent(context)).await;
            sent.set_request_complete();
            let response = service.answer(&request, sent);
            sent.set_unsent();
            Ok::<_, Infallible>(response)
        })
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limit)
        .half_close(true)
        .max_buf_size(MAX_REQUEST);
    let io = ClientIo::new(stream, sent.clone(), limit);
    let mut connection = builder.serve_connection(io, answer);
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        _ = stopped.changed() => None,
        () = sleep(CONNECTION_TIME) => None,
    };
    let ended = match ended {
        Some(ended) => Some(ended),
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            timeout(CLOSING_TIME, &mut connection).await.ok()
        }
    };
    let stream = connection.into_parts().io.into_stream();
    match ended {
        Some(Err(error)) if error.is_timeout() && sent.has_partial_request() => {
            let message = "the request did not arrive in time";
            let refusal = service.refusal(StatusCode::REQUEST_TIMEOUT, message);
            refuse(stream, &refusal).await;
        }
        Some(_) if stopped.has_changed().is_ok() => close_gracefully(stream).await,
        Some(_) => {}
        // The client did not accept its last answer in time. With a linger time of zero, the kernel drops the bytes
        // that it has not sent yet.
        None => drop(stream.set_zero_linger()),
    }
}

/// Answers that there are too many connections, and closes the connection.
pub(super) async fn reject_connection(stream: TcpStream, service: Arc<Service>) {
    // Waits for the request first. A client may lose an answer that arrives before it has sent its request. Most
    // clients send the request immediately.
    let _ = timeout(Duration::from_millis(500), stream.readable()).await;
    let message = "too many connections are open; try again later";
    let refusal = service.refusal(StatusCode::SERVICE_UNAVAILABLE, message);
    refuse(stream, &refusal).await;
}

/// Sends an answer without hyper, and closes the connection.
async fn refuse(stream: TcpStream, refusal: &Response<AnswerBody>) {
    let body = refusal.body().next_bytes();
    let mut answer = format!("HTTP/1.1 {}\r\n", refusal.status()).into_bytes();
    for (name, value) in refusal.headers() {
        answer.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    if refusal.status() == StatusCode::SERVICE_UNAVAILABLE {
        answer.extend(b"retry-after: 1\r\n");
    }
    let len = body.len();
    answer.extend(format!("content-length: {len}\r\nconnection: close\r\n\r\n").bytes());
    answer.extend(body);
    // The kernel's send buffer has room for the whole answer, because the buffer holds no other bytes for this client.
    if stream.try_write(&answer).is_ok() {
        close_gracefully(stream).await;
    }
}

/// Closes a connection so that the client can read the last answer. Reads the rest of the request, because otherwise
/// the kernel would reset the connection and drop the answer.
async fn close_gracefully(mut stream: TcpStream) {
    let closed = poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await;
    if closed.is_err() {
        return;
    }
    let rest = async {
        while stream.readable().await.is_ok() {
            let mut bytes = [0; 1 << 10];
            match stream.try_read(&mut bytes) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    let _ = timeout(FAREWELL_TIME, rest).await;
}
