//! The counters of requests: by method and status code, and how long answers took.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, Request, StatusCode, Uri};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The methods that are counted separately; the last one stands for all others.
const METHODS: [&str; 6] = ["DELETE", "GET", "PATCH", "POST", "PUT", "other"];

/// The upper bounds of the buckets in milliseconds; client-go has the same.
const BOUNDS: [u64; 12] = [
    5, 25, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000,
];

/// The requests of a factory up to one moment, as client-go counts them.
///
/// Requests of caches, discovery and leases are counted, and those through the clients of the factory. A request that
/// is refused and sent again counts each time. Requests through the client that the factory was created with are not
/// counted.
///
/// ```
/// use lariat::cache::RequestStatus;
///
/// fn failed(requests: &RequestStatus) -> u64 {
///     let failed = requests.counts.iter().filter(|each| each.code == "<error>");
///     failed.map(|each| each.count).sum()
/// }
/// # let _ = failed;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestStatus {
    /// The host and port of the API server.
    ///
    /// Empty before the first request, and if the client was not created by [`connect`](crate::connect) or a similar
    /// function.
    pub host: String,
    /// The number of requests by method and status code, where not zero.
    pub counts: Vec<RequestCount>,
    /// How long answers took, by method, where there were requests.
    pub times: Vec<RequestTimes>,
}

/// The number of requests with one method and one result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestCount {
    /// The method: `GET`, `POST`, `PUT`, `PATCH`, `DELETE`, or `other`.
    pub method: &'static str,
    /// The status code; `<error>` without an answer.
    pub code: String,
    /// The number of requests.
    pub count: u64,
}

/// How long the answers to requests with one method took.
///
/// The time ends with the head of the answer, or with the failure of a request that was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTimes {
    /// The method, as in [`RequestCount::method`].
    pub method: &'static str,
    /// The sum of all times.
    pub sum: Duration,
    buckets: [u64; BOUNDS.len() + 1],
}

impl RequestTimes {
    /// Iterates over the buckets as (inclusive upper bound, count).
    ///
    /// The last bucket has no bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = BOUNDS.map(|millis| Some(Duration::from_millis(millis)));
        bounds.into_iter().chain([None]).zip(self.buckets)
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// The counters.
#[derive(Debug, Default)]
pub(super) struct Totals {
    host: OnceLock<String>,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    /// By method and status code, `None` for requests without an answer.
    counts: BTreeMap<(&'static str, Option<StatusCode>), u64>,
    times: BTreeMap<&'static str, RequestTimes>,
}

/// Stores the name of the server, as an extension of each counted request.
///
/// The connector sets it, because only the connector knows the server.
#[derive(Clone)]
pub(crate) struct ServerSlot(Arc<Totals>);

impl ServerSlot {
    /// Records the server to which requests are sent; the first one is kept.
    pub(crate) fn note(&self, url: &Uri) {
        self.0.host.get_or_init(|| {
            let mut host = url.host().unwrap_or_default().to_owned();
            if let Some(port) = url.port_u16() {
                let _ = write!(host, ":{port}");
            }
            host
        });
    }
}

/// A request in flight, which is counted when this is dropped.
pub(super) struct Counting {
    totals: Arc<Totals>,
    method: &'static str,
    begun: Instant,
    /// `None` for a request whose future is dropped, too.
    code: Option<StatusCode>,
}

impl Totals {
    /// Begins to count a request.
    pub(super) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Counting {
        request
            .extensions_mut()
            .insert(ServerSlot(Arc::clone(self)));
        Counting {
            totals: Arc::clone(self),
            method: name_of(request.method()),
            begun: Instant::now(),
            code: None,
        }
    }

    pub(super) fn status(&self) -> RequestStatus {
        let counted = self.counted.lock();
        let count = |((method, code), count): (&(&'static str, Option<StatusCode>), &u64)| {
            let code = code.map(|code| code.as_str().to_owned());
            RequestCount {
                method,
                code: code.unwrap_or_else(|| "<error>".to_owned()),
                count: *count,
            }
        };
        RequestStatus {
            host: self.host.get().cloned().unwrap_or_default(),
            counts: counted.counts.iter().map(count).collect(),
            times: counted.times.values().cloned().collect(),
        }
    }

    fn ended(&self, method: &'static str, code: Option<StatusCode>, took: Duration) {
        // A bound belongs to its bucket, as in Prometheus.
        let is_within = |bound: &u64| took <= Duration::from_millis(*bound);
        let bucket = BOUNDS.iter().position(is_within).unwrap_or(BOUNDS.len());
        let mut counted = self.counted.lock();
        *counted.counts.entry((method, code)).or_default() += 1;
        let times = counted.times.entry(method).or_insert(RequestTimes {
            method,
            sum: Duration::ZERO,
            buckets: [0; BOUNDS.len() + 1],
        });
        times.sum += took;
        times.buckets[bucket] += 1;
    }
}

impl Counting {
    /// Ends the count with an answer, whose status `status` returns, or with an error.
    pub(super) fn answered<T>(
        mut self,
        answer: &Result<T, kube::Error>,
        status: impl FnOnce(&T) -> StatusCode,
    ) {
        self.code = match answer {
            Ok(answer) => Some(status(answer)),
            Err(kube::Error::Api(status)) => StatusCode::from_u16(status.code).ok(),
            Err(_) => None,
        };
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        self.totals.ended(self.method, self.code, took);
    }
}

fn name_of(method: &Method) -> &'static str {
    let known = METHODS.iter().find(|known| **known == method.as_str());
    known.unwrap_or(&METHODS[METHODS.len() - 1])
}

#[cfg(test)]
mod tests {
    use tokio::time;

    use super::*;

    fn request(method: Method) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = method;
        request
    }

    fn counts(totals: &Totals) -> Vec<String> {
        let counts = totals.status().counts.into_iter();
        let text = |each: RequestCount| format!("{} {}: {}", each.method, each.code, each.count);
        counts.map(text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_by_its_code_and_time_and_a_dropped_request_as_an_error() {
        let totals = Arc::<Totals>::default();
        let counting = totals.begin(&mut request(Method::GET));
        time::advance(Duration::from_millis(100)).await;
        counting.answered(&Ok(()), |()| StatusCode::OK);
        let counting = totals.begin(&mut request(Method::GET));
        time::advance(Duration::from_secs(61)).await;
        drop(counting);
        assert_eq!(counts(&totals), ["GET <error>: 1", "GET 200: 1"]);
        let [times] = &totals.status().times[..] else {
            panic!("one method occurred");
        };
        let counted = times.buckets().filter(|(_, count)| *count > 0);
        let bounds: Vec<_> = counted.map(|(bound, _)| bound).collect();
        assert_eq!(bounds, [Some(Duration::from_millis(100)), None]);
        assert_eq!(
            (times.sum, times.count()),
            (Duration::from_millis(61_100), 2)
        );
    }

    #[test]
    fn unusual_methods_are_counted_together() {
        let totals = Arc::<Totals>::default();
        for (method, code) in [
            ("PROPFIND", 299),
            ("TRACE", 599),
            ("HEAD", 200),
            ("PUT", 409),
        ] {
            let method = Method::from_bytes(method.as_bytes()).expect("it is a token");
            let counting = totals.begin(&mut request(method));
            let status = StatusCode::from_u16(code).expect("it is a code");
            counting.answered(&Ok(()), |()| status);
        }
        let expected = ["PUT 409: 1", "other 200: 1", "other 299: 1", "other 599: 1"];
        assert_eq!(counts(&totals), expected);
    }

    #[test]
    fn the_host_is_that_of_the_url_without_user_and_path() {
        let totals = Arc::<Totals>::default();
        assert_eq!(totals.status().host, "");
        let slot = ServerSlot(Arc::clone(&totals));
        slot.note(&Uri::from_static("https://user:secret@[::1]:6443/prefix"));
        slot.note(&Uri::from_static("https://other.example"));
        assert_eq!(totals.status().host, "[::1]:6443");
    }
}
