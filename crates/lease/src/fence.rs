//! Clients that write only while their process leads.

use std::error::Error;
use std::fmt;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use lariat_core::{Fence as _, is_dry_run, while_open};

use crate::error::Fenced;
use crate::leadership::Leadership;
use crate::term::Term;

/// The error of the client's service.
type Failure = Box<dyn Error + Send + Sync>;

/// API groups whose objects are questions to the server, which does not store them.
const REVIEWS: [&str; 2] = [
    "/apis/authorization.k8s.io/",
    "/apis/authentication.k8s.io/",
];

impl Leadership {
    /// Checks that this process may send a write now.
    ///
    /// `write` describes the write in the error.
    ///
    /// # Errors
    ///
    /// If this process does not lead.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lariat::lease::{Fenced, Leadership};
    ///
    /// # fn example(leadership: &Leadership) -> Result<(), Fenced> {
    /// leadership.admit("the report of the day")?;
    /// println!("sends the report");
    /// # Ok(()) }
    /// ```
    pub fn admit(&self, write: impl fmt::Display) -> Result<(), Fenced> {
        if self.leads() {
            return Ok(());
        }
        Err(Fenced::new(self.lease(), &write, false))
    }

    /// Creates a client whose writes are sent only while this process leads.
    ///
    /// Reads are always sent, and so are dry runs and reviews of access and tokens, which store nothing.
    ///
    /// A write is checked against the deadline when it is sent, and is aborted at the deadline if it has no answer by
    /// then. So a process that was suspended past its deadline writes nothing when it continues. Between the deadline
    /// and the moment at which another process takes over, requests that are on their way have the difference of lease
    /// duration and renew deadline (5 seconds by default) to arrive. A request that the network delays for longer can
    /// still take effect. Writes that must not mix with those of a successor should carry a resource version too.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, PostParams};
    /// use lariat::lease::Elector;
    ///
    /// # async fn example(client: kube::Client, elector: Elector) -> kube::Result<()> {
    /// let fenced = elector.leadership().fence(client);
    /// let maps: Api<ConfigMap> = Api::default_namespaced(fenced);
    /// maps.create(&PostParams::default(), &ConfigMap::default()).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn fence(&self, client: Client) -> Client {
        let leadership = self.clone();
        fenced(client, move || leadership.term())
    }
}

impl Term {
    /// Creates a client whose writes are sent only in this term.
    ///
    /// It is [`Leadership::fence`] for work that must end with the term: when this process acquires the lease again,
    /// another process may have held it meanwhile, and the client stays closed.
    #[must_use]
    pub fn fence(&self, client: Client) -> Client {
        let term = self.clone();
        fenced(client, move || term.clone())
    }
}

/// Creates a client whose writes need the term that `term` returns for each.
fn fenced(client: Client, term: impl Fn() -> Term + Clone + Send + 'static) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Fence { client, term }, namespace)
}

/// A client service whose writes need a term.
#[derive(Clone)]
struct Fence<F> {
    /// Sends the requests.
    client: Client,
    /// Returns the term that a write needs.
    term: F,
}

impl<F: Fn() -> Term + Clone + Send + 'static> tower_service::Service<Request<Body>> for Fence<F> {
    type Response = Response<Body>;
    type Error = Failure;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // `Client::send` waits until the client is ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        // Reads pass without a term, because a process on standby fills its caches.
        if is_read(&request) {
            return Box::pin(async move { Ok(client.send(request).await?) });
        }
        let term = self.term.clone();
        Box::pin(async move {
            let (request, is_dry_run) = read_deletion(request).await?;
            if is_dry_run {
                return Ok(client.send(request).await?);
            }
            let write = format!("{} {}", request.method(), request.uri().path());
            // Taken when the future is polled, not when it is created: the process may be suspended in between.
            let term = term();
            if !term.leads() {
                return Err(term.error(&write, false));
            }
            // An answer that arrives after the deadline is no proof that this process still leads. Dropping the request
            // closes it, but the server may have received it already.
            match while_open(&term, client.send(request)).await {
                Some(answer) => Ok(answer?),
                None => Err(term.error(&write, true)),
            }
        })
    }
}

/// Returns whether a request stores nothing on the server, as far as its head tells.
fn is_read(request: &Request<Body>) -> bool {
    let (method, path) = (request.method(), request.uri().path());
    // A GET that starts a WebSocket runs a command in a pod.
    let is_safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) && !is_call(path);
    let is_review = REVIEWS.iter().any(|group| path.starts_with(group));
    // A request to a proxy is passed on to a program, which has no dry run.
    let is_dry_run = || !is_proxied(path) && !is_call(path) && is_dry_run_by_query(request);
    is_safe || is_review || (*method != Method::DELETE && is_dry_run())
}

fn is_dry_run_by_query(request: &Request<Body>) -> bool {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    // `All` is the only value that the API server accepts.
    pairs.into_iter().any(|pair| pair == "dryRun=All")
}

/// Returns a request, and whether it is a deletion that is a dry run.
///
/// The options of a deletion are in its body, where kube's `Api::delete` puts them. If it has none, the query counts.
async fn read_deletion(request: Request<Body>) -> Result<(Request<Body>, bool), Failure> {
    if *request.method() != Method::DELETE {
        return Ok((request, false));
    }
    let by_query = is_dry_run_by_query(&request);
    let (head, body) = request.into_parts();
    let options = body.collect_bytes().await?;
    let is_dry_run = match &*options {
        _ if is_proxied(head.uri.path()) => false,
        [] => by_query,
        options => is_dry_run(options),
    };
    Ok((Request::from_parts(head, Body::from(options)), is_dry_run))
}

/// Returns whether a path is a call into a pod: `pods/NAME/exec` and the like.
fn is_call(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').collect();
    segments
        .windows(3)
        .any(|part| matches!(part, ["pods", _, "exec" | "attach" | "portforward"]))
}

/// Returns whether a path is that of a proxy: `pods/NAME/proxy` and the like.
fn is_proxied(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').collect();
    segments
        .windows(3)
        .any(|part| matches!(part, ["nodes" | "pods" | "services", _, "proxy"]))
}
