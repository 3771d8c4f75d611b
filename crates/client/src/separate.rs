//! A client with connections and credentials of its own, to the same server as another client.
//!
//! A client of kube has a task that passes on its requests, and its connections have tasks too. All of them belong to
//! the runtime that they were spawned on. A second client on another runtime needs none of them. kube hides the service
//! inside a client, so the first request asks for it: it goes through the other client, and takes along a slot, into
//! which the connector puts how to make another client.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::{HeaderMap, Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::{self, Instant};
use tower::BoxError;

use crate::credentials::CredentialError;
use crate::requests::CountedClient;

/// How long a request waits for the client to be made; it uses the other client then.
const PATIENCE: Duration = Duration::from_secs(1);

/// How soon a client that could not be made is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Makes further clients of a configuration, whose tasks belong to the current runtime.
#[derive(Clone)]
pub(crate) struct Recipe(Arc<Make>);

type Make = dyn Fn() -> BoxFuture<'static, Result<Client, CredentialError>> + Send + Sync;

/// Receives the recipe of the client that a request is sent through, as an extension of the request.
#[derive(Clone)]
struct RecipeSlot {
    recipe: Arc<OnceLock<Recipe>>,
    /// The headers of the request.
    headers: HeaderMap,
}

/// Returns a client of the same server with its own connections and credentials.
///
/// Its tasks belong to the current runtime. A program on two runtimes needs it: the connections of a client stand still
/// while the runtime is blocked that the client was created on. Its requests are counted with those of the other
/// client. An exec plugin of the configuration is run for it too. Over TLS it speaks HTTP/1.1, unless the other client
/// has [`Http2::PriorKnowledge`](crate::Http2::PriorKnowledge): a request without an answer leaves its connection.
///
/// The first request goes through the other client's connections, and so do later ones while an exec plugin fails or
/// takes more than a second. If the other client was not created by [`connect`](crate::connect) or a similar function,
/// or a service around it adds headers, all requests do.
///
/// # Panics
///
/// Panics outside a tokio runtime.
#[must_use]
pub fn separate(client: &CountedClient) -> Client {
    let namespace = client.uncounted().default_namespace().to_owned();
    let separate = Separate::new(client.clone());
    let send = move |request| {
        let separate = separate.clone();
        async move { separate.send(request).await }
    };
    Client::new(tower::service_fn(send), namespace)
}

/// The service of a client with its own connections.
#[derive(Clone)]
struct Separate {
    /// The client whose configuration is used.
    other: CountedClient,
    recipe: Arc<OnceLock<Recipe>>,
    own: Arc<Mutex<Own>>,
}

/// The client with its own connections.
#[derive(Default)]
struct Own {
    /// Kept, so that it goes on with the next request if one does not wait for its end.
    making: Option<Making>,
    failed_at: Option<Instant>,
}

/// Makes a client; `None` if that fails.
type Making = Shared<BoxFuture<'static, Option<CountedClient>>>;

impl Recipe {
    pub(crate) fn new(
        make: impl Fn() -> BoxFuture<'static, Result<Client, CredentialError>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    /// Gives the recipe to a request that asks for it.
    ///
    /// A service around the client, which the recipe does not contain, may have added headers, such as credentials.
    /// Such a request gets no recipe.
    pub(crate) fn offer(&self, request: &Request<Body>) {
        let slot = request.extensions().get::<RecipeSlot>();
        if let Some(slot) = slot.filter(|slot| slot.headers == *request.headers()) {
            slot.recipe.get_or_init(|| self.clone());
        }
    }
}

impl Separate {
    fn new(other: CountedClient) -> Self {
        Self {
            other,
            recipe: Arc::default(),
            own: Arc::default(),
        }
    }

    async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        if let Some(own) = self.own().await {
            return Ok(own.send(request).await?);
        }
        if self.recipe.get().is_none() {
            // The first requests, or all of them if the other client has a connector that is not Lariat's.
            let slot = RecipeSlot {
                recipe: Arc::clone(&self.recipe),
                headers: request.headers().clone(),
            };
            request.extensions_mut().insert(slot);
        }
        Ok(self.other.send(request).await?)
    }

    /// Returns the client with its own connections.
    ///
    /// `None` if it cannot be made now: an exec plugin fails or takes long. The other client may have a valid
    /// credential.
    async fn own(&self) -> Option<CountedClient> {
        let making = self.making()?;
        let made = time::timeout(PATIENCE, making).await.ok()?;
        if made.is_none() {
            *self.own.lock() = Own {
                making: None,
                failed_at: Some(Instant::now()),
            };
        }
        made
    }

    fn making(&self) -> Option<Making> {
        let recipe = self.recipe.get()?;
        let mut own = self.own.lock();
        let failed_at = own.failed_at;
        if failed_at.is_some_and(|failed_at| failed_at.elapsed() < RETRY_AFTER) {
            return None;
        }
        Some(own.making.get_or_insert_with(|| self.make(recipe)).clone())
    }

    fn make(&self, recipe: &Recipe) -> Making {
        let (made, other) = ((recipe.0)(), self.other.clone());
        let make = async move {
            let made = made.await.inspect_err(|error| {
                let text = "a client with its own connections cannot be made; it shares those of the factory";
                tracing::warn!(%error, "{text}");
            });
            Some(other.counting(made.ok()?))
        };
        make.boxed().shared()
    }
}
