//! A client with connections and credentials of its own, to the same server as another client.
//!
//! A client of kube has a task that passes on its requests, and its connections have tasks too. All of them belong to the
//! runtime that they were spawned on. A second client on another runtime needs none of them. kube hides the service
//! inside a client, so the first request asks for it: it goes through the other client, and takes along a slot, into
//! which the connector puts how to make another client.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::OnceCell;
use tower::{BoxError, Service};

use super::credentials::CredentialError;
use crate::requests::CountedClient;

/// Makes further clients of a configuration, whose tasks belong to the current runtime.
#[derive(Clone)]
pub(super) struct Recipe(Arc<Make>);

type Make = dyn Fn() -> BoxFuture<'static, Result<Client, CredentialError>> + Send + Sync;

/// Receives the recipe of the client that a request is sent through, as an extension of the request.
#[derive(Clone, Default)]
pub(super) struct RecipeSlot(Arc<OnceLock<Recipe>>);

/// The service of a client with its own connections.
#[derive(Clone)]
pub(super) struct Separate {
    /// The client whose configuration is used.
    other: CountedClient,
    slot: RecipeSlot,
    own: Arc<OnceCell<CountedClient>>,
}

impl Recipe {
    pub(super) fn new(
        make: impl Fn() -> BoxFuture<'static, Result<Client, CredentialError>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }
}

impl RecipeSlot {
    pub(super) fn fill(&self, recipe: &Recipe) {
        self.0.get_or_init(|| recipe.clone());
    }
}

impl Separate {
    pub(super) fn new(other: CountedClient) -> Self {
        Self {
            other,
            slot: RecipeSlot::default(),
            own: Arc::default(),
        }
    }

    async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let Some(recipe) = self.slot.0.get() else {
            // The first requests, or all of them if the other client has a connector that is not Lariat's.
            request.extensions_mut().insert(self.slot.clone());
            return Ok(self.other.send(request).await?);
        };
        let make = || async { Ok(self.other.counting((recipe.0)().await?)) };
        let own = self.own.get_or_try_init(make).await;
        let own = own.map_err(|error: CredentialError| BoxError::from(error))?;
        Ok(own.send(request).await?)
    }
}

impl Service<Request<Body>> for Separate {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.send(request).await })
    }
}
