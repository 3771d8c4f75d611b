//! Fences: where they are asked on the way of a write, and where not.

use std::error::Error;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use kube::client::Body;
use lariat_cache::{
    ClientIdentity, GateDecision, PendingWrite, SharedClientFactory, WriteGate, WriteReceipt,
    WriteResult,
};
use lariat_core::Fence;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, advance, sleep, sleep_until};
use tower::BoxError;

const SECOND: Duration = Duration::from_secs(1);

/// A fence that closes at a time.
#[derive(Clone, Copy)]
struct Until(Instant);

impl Fence for Until {
    fn is_open(&self) -> bool {
        Instant::now() < self.0
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(sleep_until(self.0))
    }

    fn error(&self, write: &dyn Display, was_sent: bool) -> Box<dyn Error + Send + Sync> {
        format!("fenced: {write}, sent: {was_sent}").into()
    }
}

/// A gate that admits every write, with a fence, and records the ends of writes.
struct Fenced<F> {
    fence: F,
    ends: Arc<Mutex<Vec<String>>>,
}

struct End(Arc<Mutex<Vec<String>>>);

impl<F: Fence + Clone + 'static> WriteGate for Fenced<F> {
    fn admit(&self, _: &PendingWrite<'_>) -> GateDecision {
        GateDecision::Send(Box::new(End(Arc::clone(&self.ends))))
    }

    fn fence(&self) -> Option<Box<dyn Fence>> {
        Some(Box::new(self.fence.clone()))
    }
}

impl WriteReceipt for End {
    fn ended(self: Box<Self>, end: &WriteResult<'_>) {
        self.0.lock().push(format!("{end:?}"));
    }
}

/// A server in the process: what it does with each request, one after the other.
#[derive(Clone, Copy)]
enum Act {
    /// Waits, as for credentials or a connection, and answers then.
    Waits(Duration),
    /// Refuses with a delay in seconds.
    Busy(u64),
    /// Reads the request and never answers.
    Silent,
}

struct Bench {
    clients: SharedClientFactory,
    /// The requests that were handed to a connection.
    sent: Arc<Mutex<Vec<String>>>,
    ends: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    /// A fence that closes after three seconds.
    fn new(acts: &[Act]) -> Self {
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let acts = Arc::new(Mutex::new(acts.to_vec()));
        let log = Arc::clone(&sent);
        let service = tower::service_fn(move |request: Request<Body>| {
            let mut acts = acts.lock();
            let act = if acts.is_empty() {
                Act::Waits(Duration::ZERO)
            } else {
                acts.remove(0)
            };
            let log = Arc::clone(&log);
            async move {
                if let Act::Waits(wait) = act {
                    sleep(wait).await;
                }
                let line = format!("{} {}", request.method(), request.uri());
                log.lock().push(line);
                if let Act::Silent = act {
                    std::future::pending::<()>().await;
                }
                let answer = Response::builder().header("content-type", "application/json");
                let answer = match act {
                    Act::Busy(seconds) => answer
                        .status(StatusCode::TOO_MANY_REQUESTS)
                        .header("retry-after", seconds)
                        .body(Body::empty()),
                    _ => answer.body(Body::from(br#"{"metadata": {"name": "a"}}"#.to_vec())),
                };
                Ok::<_, BoxError>(answer?)
            }
        });
        let clients = SharedClientFactory::new(Client::new(service, "default"));
        let ends = Arc::default();
        let gate = Fenced {
            fence: Until(Instant::now() + 3 * SECOND),
            ends: Arc::clone(&ends),
        };
        assert!(clients.set_gate(Arc::new(gate)));
        Self {
            clients,
            sent,
            ends,
        }
    }

    async fn create(&self) -> Result<(), String> {
        create(self.clients.client()).await
    }

    fn sent(&self) -> usize {
        self.sent.lock().len()
    }
}

async fn create(client: Client) -> Result<(), String> {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("a ConfigMap");
    let created = api.create(&PostParams::default(), &map).await;
    created
        .map(drop)
        .map_err(|error| lariat_core::describe(&error).to_string())
}

fn refused(was_sent: bool) -> String {
    format!("fenced: create v1 configmaps in default, sent: {was_sent}")
}

/// Checks a write with a fence that closes after three seconds.
async fn check(acts: &[Act], is_suspended: bool, sent: usize, expected: Result<(), String>) {
    let bench = Bench::new(acts);
    let began = Instant::now();
    let writing = bench.create();
    let suspending = async {
        // Until the request is where it waits: in the queues of two clients it takes some turns.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        if is_suspended {
            advance(20 * SECOND).await;
        }
    };
    let (written, ()) = tokio::join!(writing, suspending);
    match &expected {
        Ok(()) => assert_eq!(written, expected),
        Err(part) => {
            let error = written.expect_err("the fence has closed");
            assert!(error.contains(part), "{error}");
        }
    }
    if !is_suspended {
        assert!(
            began.elapsed() <= 3 * SECOND,
            "aborted at the deadline, not later"
        );
    }
    assert_eq!(bench.sent(), sent);
    // A write that was not sent is reported to the gate, one with an unknown result is not.
    let ends = bench.ends.lock().clone();
    match expected {
        Ok(()) => assert_eq!(ends, ["Answered(200)"]),
        Err(error) if error.ends_with("false") => assert_eq!(ends, ["NotSent"]),
        Err(_) => assert!(ends.is_empty(), "{ends:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_429_is_not_sent_once_fence_closes() {
    check(&[Act::Busy(1)], false, 2, Ok(())).await;
    check(&[Act::Busy(1), Act::Busy(5)], false, 2, Err(refused(false))).await;
    check(&[Act::Busy(1)], true, 1, Err(refused(false))).await;
}

#[tokio::test(start_paused = true)]
async fn request_that_waits_is_not_sent_once_fence_closes() {
    check(&[Act::Waits(2 * SECOND)], false, 1, Ok(())).await;
    check(&[Act::Waits(5 * SECOND)], false, 0, Err(refused(true))).await;
    check(&[Act::Waits(2 * SECOND)], true, 0, Err(refused(true))).await;
}

#[tokio::test(start_paused = true)]
async fn request_in_flight_is_aborted_once_fence_closes() {
    check(&[Act::Silent], false, 1, Err(refused(true))).await;
    check(&[Act::Silent], true, 1, Err(refused(true))).await;
}

#[tokio::test(start_paused = true)]
async fn closed_fence_stops_writes_and_calls_into_pods_alone() {
    let bench = Bench::new(&[]);
    sleep(4 * SECOND).await;
    let client = bench.clients.client();
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    api.get("a").await.expect("reads are sent");
    let dry_run = DeleteParams::default().dry_run();
    // The answer is no Status, which does not matter here.
    let _ = api.delete("a", &dry_run).await;
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let _ = reviews
        .create(&PostParams::default(), &SelfSubjectAccessReview::default())
        .await;
    assert_eq!(bench.sent(), 3, "{:?}", bench.sent.lock());
    assert_eq!(
        bench
            .create()
            .await
            .map_err(|error| error.contains(&refused(false))),
        Err(true)
    );
    for (method, path) in [
        (
            Method::GET,
            "/api/v1/namespaces/default/pods/a/exec?command=ls",
        ),
        (
            Method::POST,
            "/api/v1/namespaces/default/services/a/proxy/x?dryRun=All",
        ),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(Body::empty());
        let error = client
            .send(request.expect("a request"))
            .await
            .expect_err("fenced");
        assert!(
            lariat_core::describe(&error)
                .to_string()
                .contains("sent: false")
        );
    }
    assert_eq!(bench.sent(), 3);
    // What every replica may write needs no fence, but asks the gate.
    let unfenced = bench
        .clients
        .unfenced_client_as(ClientIdentity::default())
        .expect("it can be sent");
    create(unfenced).await.expect("sent");
    assert_eq!(
        bench.ends.lock().last().map(String::as_str),
        Some("Answered(200)")
    );
}

#[tokio::test(start_paused = true)]
async fn client_with_gate_of_its_own_asks_that_alone() {
    let bench = Bench::new(&[]);
    sleep(4 * SECOND).await;
    let ends = Arc::default();
    let own = Fenced {
        fence: Until(Instant::now() + SECOND),
        ends: Arc::clone(&ends),
    };
    let client = bench
        .clients
        .client_with_gate(ClientIdentity::default(), Arc::new(own));
    let client = client.expect("it can be sent");
    create(client.clone()).await.expect("its fence is open");
    sleep(SECOND).await;
    create(client).await.expect_err("its fence has closed");
    assert_eq!(*ends.lock(), ["Answered(200)", "NotSent"]);
    assert!(bench.ends.lock().is_empty());
}
