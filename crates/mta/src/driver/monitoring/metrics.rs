//! The optional Prometheus listener: serves GET /metrics to clients on this machine.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use node::metrics::{Family, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Connections served at the same time; others wait in the kernel.
const AT_ONCE: usize = 8;

/// Longest time for a connection: it serves one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Limits on a request's line and headers, in octets and in headers.
const MAX_REQUEST: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

/// The media type of OpenMetrics text.
const OPENMETRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The channel for the answer to a request for the values.
pub(in crate::driver) type Question = oneshot::Sender<Vec<Family>>;

/// The channel for requests for the values.
pub(in crate::driver) type Questions = mpsc::Sender<Question>;

/// Serves until the driver ends.
pub(in crate::driver) async fn serve(listener: TcpListener, questions: Questions) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let questions = questions.clone();
                tokio::spawn(async move {
                    // A client that closes early or is slow affects nobody else.
                    let _ = tokio::time::timeout(TIMEOUT, converse(stream, questions)).await;
                    drop(turn);
                });
            }
            Err(_) => tokio::time::sleep(crate::driver::transports::ACCEPT_AGAIN).await,
        }
    }
}

async fn converse(stream: TcpStream, questions: Questions) -> hyper::Result<()> {
    let service = service_fn(|request| answer(request, &questions));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).keep_alive(false);
    server.max_buf_size(MAX_REQUEST).max_headers(MAX_HEADERS);
    server.serve_connection(TokioIo::new(stream), service).await
}

async fn answer(
    request: Request<Incoming>,
    questions: &Questions,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let of = |status, kind, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    };
    if request.uri().path() != "/metrics" {
        return Ok(of(StatusCode::NOT_FOUND, TEXT, "only /metrics is here\n".to_owned()));
    }
    if request.method() != Method::GET {
        let mut refusal = of(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned());
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return Ok(refusal);
    }
    let (sender, families) = oneshot::channel();
    // If the driver is gone, this drops the sender, and the receiver returns an error.
    let _ = questions.send(sender).await;
    let text = families.await.ok().and_then(|families| openmetrics(families).ok());
    Ok(match text {
        Some(text) => of(StatusCode::OK, OPENMETRICS, text),
        None => of(StatusCode::SERVICE_UNAVAILABLE, TEXT, "the daemon is ending\n".to_owned()),
    })
}

/// The values of one moment, for one response.
#[derive(Debug)]
struct Snapshot(Vec<Family>);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let Some(first) = family.samples.first() else { continue };
            let kind = match first.value {
                Value::Counter(_) => MetricType::Counter,
                Value::Gauge(_) => MetricType::Gauge,
                Value::Histogram { .. } => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for sample in &family.samples {
                if sample.labels.is_empty() {
                    write_value(&mut metric, &sample.value)?;
                } else {
                    write_value(&mut metric.encode_family(&sample.labels)?, &sample.value)?;
                }
            }
        }
        Ok(())
    }
}

fn write_value(to: &mut MetricEncoder<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Counter(count) => to.encode_counter::<NoLabelSet, _, u64>(count, None),
        Value::Gauge(value) => to.encode_gauge(value),
        Value::Histogram { sum, classes } => {
            let count = classes.iter().map(|(_, count)| count).sum();
            to.encode_histogram::<NoLabelSet>(*sum, count, classes, None)
        }
    }
}

fn openmetrics(families: Vec<Family>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(families)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
