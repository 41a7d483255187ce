use super::*;
use node::metrics::Sample;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn families() -> Vec<Family> {
    let sample = |peer: &str, value| Sample { labels: vec![("peer", peer.to_owned())], value };
    let classes = vec![(0.5, 2), (1.0, 0), (f64::INFINITY, 1)];
    let histogram = Value::Histogram { sum: 12.5, classes };
    let bare = Sample { labels: vec![], value: Value::Gauge(1.5) };
    vec![
        Family {
            name: "mta_a",
            help: "A counter",
            samples: vec![sample("x\"\\y", Value::Counter(7))],
        },
        Family {
            name: "mta_b_seconds",
            help: "A histogram",
            samples: vec![sample("p", histogram)],
        },
        Family { name: "mta_c", help: "A gauge", samples: vec![bare] },
        Family { name: "mta_none", help: "Of which there is none", samples: vec![] },
    ]
}

const TEXT: &str = "# HELP mta_a A counter
# TYPE mta_a counter
mta_a_total{peer=\"x\\\"\\\\y\"} 7
# HELP mta_b_seconds A histogram
# TYPE mta_b_seconds histogram
mta_b_seconds_sum{peer=\"p\"} 12.5
mta_b_seconds_count{peer=\"p\"} 3
mta_b_seconds_bucket{le=\"0.5\",peer=\"p\"} 2
mta_b_seconds_bucket{le=\"1.0\",peer=\"p\"} 2
mta_b_seconds_bucket{le=\"+Inf\",peer=\"p\"} 3
# HELP mta_c A gauge
# TYPE mta_c gauge
mta_c 1.5
# EOF
";

#[test]
fn the_text_is_openmetrics() {
    assert_eq!(openmetrics(families()).unwrap(), TEXT);
}

/// Sends these octets and returns the whole answer.
async fn exchange(address: std::net::SocketAddr, octets: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(octets).await.unwrap();
    let mut answer = Vec::new();
    // A server that refuses may reset the connection instead of reading on.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn only_get_of_metrics_is_served_and_what_is_too_long_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (questions, mut asked) = mpsc::channel::<oneshot::Sender<_>>(1);
    let server = tokio::spawn(serve(listener, questions));
    let driver = tokio::spawn(async move {
        while let Some(answer) = asked.recv().await {
            let _ = answer.send(families());
        }
    });
    let good = exchange(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let (head, body) = good.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(body, TEXT);

    let many = "X-A: b\r\n".repeat(MAX_HEADERS + 1);
    let long = format!("X-A: {}\r\n", "b".repeat(MAX_REQUEST));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
        ("GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx".to_owned(), "405"),
        (format!("GET /metrics HTTP/1.1\r\n{many}\r\n"), "431"),
        (format!("GET /metrics HTTP/1.1\r\n{long}\r\n"), "431"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = exchange(address, request.as_bytes()).await;
        let as_expected = answer.starts_with(&format!("HTTP/1.1 {status} "));
        assert!(as_expected, "{status}: {answer:?}");
    }
    driver.abort();
    let _ = driver.await;
    let ending = exchange(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(ending.starts_with("HTTP/1.1 503 "), "{ending}");
    server.abort();
}
