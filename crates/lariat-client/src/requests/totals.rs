//! The counters of requests: atomics in tables of fixed size.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, Request, StatusCode, Uri};
use tokio::time::Instant;

/// The methods that are counted separately; the last one stands for all others.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "other"];

/// The status codes that are counted separately; others are rare.
const CODES: [(u16, &str); 27] = [
    (101, "101"),
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (204, "204"),
    (301, "301"),
    (302, "302"),
    (304, "304"),
    (307, "307"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (408, "408"),
    (409, "409"),
    (410, "410"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (429, "429"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
];

/// The index of codes that are not in the table.
const OTHER: usize = CODES.len();
/// The index of requests without an answer.
const ERROR: usize = OTHER + 1;

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
    /// The status code; `other` for an unusual one, `<error>` without an answer.
    pub code: &'static str,
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

/// The counters, which are updated without a lock.
#[derive(Debug, Default)]
pub(super) struct Totals {
    host: OnceLock<String>,
    methods: [OfMethod; METHODS.len()],
}

/// The counters of one method.
#[derive(Debug, Default)]
struct OfMethod {
    codes: [AtomicU64; ERROR + 1],
    buckets: [AtomicU64; BOUNDS.len() + 1],
    /// The sum of all times.
    nanos: AtomicU64,
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
    method: usize,
    begun: Instant,
    code: usize,
}

impl Totals {
    /// Begins to count a request.
    pub(super) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Counting {
        request
            .extensions_mut()
            .insert(ServerSlot(Arc::clone(self)));
        Counting {
            totals: Arc::clone(self),
            method: method_number(request.method()),
            begun: Instant::now(),
            // A request whose future is dropped has no answer.
            code: ERROR,
        }
    }

    pub(super) fn status(&self) -> RequestStatus {
        let methods = || METHODS.into_iter().zip(&self.methods);
        let times = methods().map(|(method, of)| of.times(method));
        RequestStatus {
            host: self.host.get().cloned().unwrap_or_default(),
            counts: methods()
                .flat_map(|(method, of)| of.counts(method))
                .collect(),
            times: times.filter(|times| times.count() > 0).collect(),
        }
    }
}

impl OfMethod {
    fn ended(&self, code: usize, took: Duration) {
        // A bound belongs to its bucket, as in Prometheus.
        let is_within = |bound: &u64| took <= Duration::from_millis(*bound);
        let bucket = BOUNDS.iter().position(is_within).unwrap_or(BOUNDS.len());
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.codes[code].fetch_add(1, Ordering::Relaxed);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn counts(&self, method: &'static str) -> impl Iterator<Item = RequestCount> {
        let codes = CODES.iter().map(|(_, code)| *code);
        let codes = codes.chain(["other", "<error>"]).zip(&self.codes);
        let counts = codes.map(move |(code, count)| RequestCount {
            method,
            code,
            count: count.load(Ordering::Relaxed),
        });
        counts.filter(|each| each.count > 0)
    }

    fn times(&self, method: &'static str) -> RequestTimes {
        RequestTimes {
            method,
            sum: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
            buckets: self
                .buckets
                .each_ref()
                .map(|count| count.load(Ordering::Relaxed)),
        }
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
            Ok(answer) => code_number(status(answer).as_u16()),
            Err(kube::Error::Api(status)) => code_number(status.code),
            Err(_) => ERROR,
        };
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.totals.methods[self.method].ended(self.code, self.begun.elapsed());
    }
}

fn method_number(method: &Method) -> usize {
    let known = METHODS.iter().position(|known| *known == method.as_str());
    known.unwrap_or(METHODS.len() - 1)
}

fn code_number(code: u16) -> usize {
    let known = CODES.iter().position(|(known, _)| *known == code);
    known.unwrap_or(OTHER)
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

    fn counts(totals: &Totals) -> Vec<(&'static str, &'static str, u64)> {
        let counts = totals.status().counts;
        let counts = counts
            .iter()
            .map(|each| (each.method, each.code, each.count));
        counts.collect()
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
        assert_eq!(counts(&totals), [("GET", "200", 1), ("GET", "<error>", 1)]);
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
    fn unusual_codes_and_methods_are_counted_together() {
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
        let expected = [
            ("PUT", "409", 1),
            ("other", "200", 1),
            ("other", "other", 2),
        ];
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
