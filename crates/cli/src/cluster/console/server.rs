//! Serving the console.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRef, RawQuery, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, StatusCode, header};
use lariat_cluster::faults::Faults;
use lariat_cluster::{Cluster, Inspector};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::access::{Access, guard};
use super::actions;
use super::page::files;
use super::reply::{Refusal, reply};
use super::state::ClusterState;

/// How often the state is sent.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the state is shared by those it is sent to.
// Less than the period, so that every client gets a new state each time.
const SHARED: Duration = Duration::from_millis(500);
/// How long a body may be, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

/// A console that serves.
#[must_use = "it ends with `stop`"]
pub(crate) struct Console {
    address: SocketAddr,
    stopping: CancellationToken,
    serving: JoinSet<()>,
}

/// What requests work on.
#[derive(Clone)]
struct Site {
    cluster: Inspector,
    /// Where the cluster is served.
    url: Arc<str>,
    began: Instant,
    /// The last state that was sent, and when it was made.
    last: Arc<Mutex<Option<(Instant, Bytes)>>>,
    stopping: CancellationToken,
}

impl FromRef<Site> for Faults {
    fn from_ref(site: &Site) -> Self {
        site.cluster.faults()
    }
}

impl Console {
    /// Serves the console of a cluster on an address.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub(crate) async fn start(
        cluster: &Cluster,
        address: SocketAddr,
        token: Option<String>,
    ) -> Result<Self> {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            anyhow!(
                "cannot serve the console on {address}: {error}; give another address with --console, or port 0"
            )
        })?;
        // With port 0 only the listener knows the port.
        let address = listener.local_addr()?;
        let stopping = CancellationToken::new();
        let site = Site {
            cluster: cluster.inspector(),
            url: cluster.url().unwrap_or_default().into(),
            began: Instant::now(),
            last: Arc::default(),
            stopping: stopping.clone(),
        };
        let access = Access {
            token,
            is_local: address.ip().is_loopback(),
        };
        let router = router(site, access);
        let mut serving = JoinSet::new();
        serving.spawn(lariat_http::serve(
            "the console",
            listener,
            router,
            stopping.clone(),
        ));
        Ok(Self {
            address,
            stopping,
            serving,
        })
    }

    /// Returns where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends it, and waits for that.
    pub(crate) async fn stop(mut self) {
        self.stopping.cancel();
        while self.serving.join_next().await.is_some() {}
    }
}

fn router(site: Site, access: Access) -> Router {
    let mut router = Router::new()
        .route("/api/v1/state", get(state))
        .route("/api/v1/faults", post(actions::add).delete(actions::clear))
        .route("/api/v1/faults/isolate", post(actions::isolate))
        .route("/api/v1/faults/{id}", delete(actions::remove))
        .route("/api/v1/watches/cut", post(actions::cut_watches))
        .route("/api/v1/watches/end", post(actions::end_watches))
        .route("/api/v1/history/expire", post(actions::expire_history));
    for file in files() {
        let content_type = HeaderValue::from_static(file.content_type());
        let read = move || async move { ([(header::CONTENT_TYPE, content_type)], file.text()) };
        router = router.route(file.path(), get(read));
    }
    router
        .method_not_allowed_fallback(|| async {
            let message = "this route has no such method";
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message)
        })
        .fallback(|| async { Refusal::new(StatusCode::NOT_FOUND, "there is no such route") })
        // Layers cover the routes and fallbacks above them, so they come last; the guard is the outermost.
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(from_fn_with_state(access, guard))
        .with_state(site)
}

async fn state(State(site): State<Site>, RawQuery(query): RawQuery) -> Result<Response, Refusal> {
    match query.as_deref() {
        None | Some("" | "watch=false") => Ok(reply(StatusCode::OK, &site.state())),
        Some("watch=true") => Ok(watch(site)),
        Some(_) => Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "the only parameter there is is watch, which is true or false",
        )),
    }
}

/// Sends the state until the client goes or the console stops.
fn watch(site: Site) -> Response {
    let mut ticks = interval(PERIOD);
    // A client that reads slowly gets its next state after a period, not all that it has missed.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let events = stream::unfold((site, ticks), |(site, mut ticks)| async move {
        tokio::select! {
            () = site.stopping.cancelled() => return None,
            _ = ticks.tick() => {}
        }
        let event = site.event();
        Some((Ok::<_, std::convert::Infallible>(event), (site, ticks)))
    });
    let content_type = HeaderValue::from_static("text/event-stream");
    (
        [(header::CONTENT_TYPE, content_type)],
        Body::from_stream(events),
    )
        .into_response()
}

impl Site {
    fn state(&self) -> ClusterState {
        ClusterState::of(&self.cluster, &self.url, self.began.elapsed())
    }

    /// Returns the state as an event, which all clients of the moment share.
    fn event(&self) -> Bytes {
        // Held while the state is made, so that clients of the same moment wait for it instead of making their own.
        let mut last = self.last.lock();
        if let Some((made, event)) = &*last
            && made.elapsed() < SHARED
        {
            return event.clone();
        }
        let json = serde_json::to_string(&self.state()).expect("the state is JSON");
        let event = Bytes::from(format!("event: state\ndata: {json}\n\n"));
        *last = Some((Instant::now(), event.clone()));
        event
    }
}
