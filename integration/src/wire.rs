//! The wire between a client and its cluster: counts what goes out, cuts what comes in.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::anyhow;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower_layer::Layer;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a test knows of the wire, and does to it.
#[derive(Debug, Clone)]
pub struct Wire {
    requests: Arc<Mutex<Vec<String>>>,
    cuts: watch::Sender<usize>,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            requests: Arc::default(),
            cuts: watch::Sender::new(0),
        }
    }
}

impl Wire {
    /// Returns the layer that puts the wire under a client.
    #[must_use]
    pub fn layer(&self) -> WireLayer {
        WireLayer(self.clone())
    }

    /// Breaks every open watch off.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Counts the watches of a resource that were opened; those that were refused do not count.
    #[must_use]
    pub fn watches(&self, plural: &str) -> usize {
        self.count(plural, |query| query.contains("watch=true"))
    }

    /// Counts the lists of a resource that were begun; later pages do not count.
    #[must_use]
    pub fn lists(&self, plural: &str) -> usize {
        let begins = |query: &str| !query.contains("watch=true") && !query.contains("continue=");
        self.count(plural, begins)
    }

    fn count(&self, plural: &str, matches: impl Fn(&str) -> bool) -> usize {
        let requests = self.requests.lock();
        let of_kind = requests.iter().filter_map(|uri| uri.split_once('?'));
        of_kind
            .filter(|(path, query)| path.ends_with(&format!("/{plural}")) && matches(query))
            .count()
    }
}

/// Puts a [`Wire`] under a client.
#[derive(Debug, Clone)]
pub struct WireLayer(Wire);

impl<S> Layer<S> for WireLayer {
    type Service = WireService<S>;

    fn layer(&self, inner: S) -> WireService<S> {
        WireService {
            inner,
            wire: self.0.clone(),
        }
    }
}

/// A client's service with the wire under it.
#[derive(Debug, Clone)]
pub struct WireService<S> {
    inner: S,
    wire: Wire,
}

impl<S, A, B> Service<Request<A>> for WireService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<WireBody>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (uri, requests) = (request.uri().to_string(), Arc::clone(&self.wire.requests));
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let cuts = is_watch.then(|| self.wire.cuts.subscribe());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            if response.status().is_success() {
                requests.lock().push(uri);
            }
            Ok(response.map(|body| WireBody {
                cut: cuts.map(until_cut),
                inner: body.map_err(Into::into).boxed_unsync(),
            }))
        })
    }
}

fn until_cut(mut cuts: watch::Receiver<usize>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        // A wire that is gone is not cut any more.
        if cuts.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// A body that can be cut.
pub struct WireBody {
    cut: Option<BoxFuture<'static, ()>>,
    inner: UnsyncBoxBody<Bytes, BoxError>,
}

impl Body for WireBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(cut) = &mut self.cut
            && cut.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(anyhow!("the test cut the wire").into())));
        }
        Pin::new(&mut self.inner).poll_frame(cx)
    }
}

impl std::fmt::Debug for WireBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WireBody")
    }
}
