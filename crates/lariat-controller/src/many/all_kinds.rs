//! The public handles of many kinds.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use lariat_cache::View;
use lariat_core::Gvk;

use super::follower::{Follower, Follows, Wanted};
use crate::controller::{NewHandler, Registration, check_options};
use crate::error::RegisterError;
use crate::handler::{Context, Handler, HandlerOptions, HandlerResult};

/// All listable and watchable kinds that a predicate selects, read as `K`.
///
/// CRDs and APIServices are watched. Half a second after one changes, and every five minutes, discovery is asked for
/// the served kinds. A kind is handled in its group's preferred version, by the one controller that all handles of the
/// kind share. Kinds that cannot be read do not delay others, and no start waits for them. If a group's server does not
/// answer, its kinds are kept. A kind that is not served any more keeps its handler until its objects are deleted, at
/// most a minute.
///
/// ```no_run
/// use lariat_cache::Metadata;
/// use lariat_controller::{Context, HandlerResult, Outcome, SharedControllerFactory};
///
/// async fn audit(cx: Context<Metadata>) -> HandlerResult {
///     println!("{} {} because {}", cx.gvk(), cx.key(), cx.causes());
///     Ok(Outcome::done())
/// }
///
/// # fn example(factory: &SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let ours = factory.for_all_kinds(|kind| kind.gvk().group().ends_with("example.com"));
/// ours.view::<Metadata>().register_handler("audit", audit)?;
/// # Ok(()) }
/// ```
pub struct AllKinds<K> {
    factory: Weak<dyn Follows>,
    wanted: Arc<Wanted>,
    view: PhantomData<fn() -> K>,
}

/// A handler of many kinds. Dropping this handle leaves the handler registered.
pub struct KindsRegistration {
    follower: Arc<Follower>,
}

impl<K: View> AllKinds<K> {
    pub(crate) fn new(factory: Weak<dyn Follows>, wanted: Arc<Wanted>) -> Self {
        Self {
            factory,
            wanted,
            view: PhantomData,
        }
    }

    /// Returns the same kinds with objects read as another type.
    ///
    /// With [`Metadata`](lariat_cache::Metadata) only metadata is watched and cached.
    #[must_use]
    pub fn view<V: View>(&self) -> AllKinds<V> {
        AllKinds::new(Weak::clone(&self.factory), Arc::clone(&self.wanted))
    }

    /// Registers a handler for every kind, under the same name.
    ///
    /// In each kind it is as if [registered](crate::SharedController::register_handler) there, but no start waits for
    /// it.
    ///
    /// # Errors
    ///
    /// The name is empty, or an option is invalid. A kind in which the name is taken is skipped; this is logged, and
    /// [`KindsRegistration::refused`] returns it.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime while the factory runs.
    pub fn register_handler(
        &self,
        name: &str,
        handler: impl Handler<K>,
    ) -> Result<KindsRegistration, RegisterError> {
        if let Some(factory) = self.factory.upgrade() {
            let every_kind = Gvk::new("", "every", "kind");
            check_options(&every_kind, name, &handler.options(), factory.caches())?;
        }
        let (name, handler) = (name.to_owned(), Arc::new(handler));
        let make = move || NewHandler {
            is_optional: true,
            ..NewHandler::new::<K>(&name, OfMany(Arc::clone(&handler)))
        };
        let follower = Arc::new(Follower::new(
            Weak::clone(&self.factory),
            Arc::clone(&self.wanted),
            Box::new(make),
            Registration::begin::<K>,
        ));
        if let Some(factory) = self.factory.upgrade() {
            factory.follow(&follower);
        }
        Ok(KindsRegistration { follower })
    }
}

/// A handler that is registered for many kinds.
struct OfMany<H>(Arc<H>);

impl<K: View, H: Handler<K>> Handler<K> for OfMany<H> {
    async fn handle(&self, cx: Context<K>) -> HandlerResult {
        self.0.handle(cx).await
    }

    fn options(&self) -> HandlerOptions {
        self.0.options()
    }
}

impl KindsRegistration {
    /// Returns the kinds the handler is registered for now.
    ///
    /// It is empty until discovery has answered after the start.
    ///
    /// ```no_run
    /// use lariat_controller::KindsRegistration;
    ///
    /// # async fn example(audit: KindsRegistration) {
    /// println!("{} kinds are audited", audit.kinds().len());
    /// audit.deregister().await;
    /// # }
    /// ```
    #[must_use]
    pub fn kinds(&self) -> Vec<Gvk> {
        self.follower.kinds()
    }

    /// Returns the selected kinds whose registration failed, with the errors.
    #[must_use]
    pub fn refused(&self) -> Vec<(Gvk, RegisterError)> {
        self.follower.refused()
    }

    /// Deregisters the handler from every kind, and waits for its running calls.
    ///
    /// Once this returns it is not running and is never called again.
    ///
    /// Called from the handler itself it would wait for itself, forever: spawn it instead.
    ///
    /// # Cancel safety
    ///
    /// From the first poll on no further call begins. Dropping the future only gives up waiting for calls that are
    /// running.
    pub async fn deregister(self) {
        self.follower.end().await;
    }
}

impl<K> Clone for AllKinds<K> {
    fn clone(&self) -> Self {
        Self {
            factory: Weak::clone(&self.factory),
            wanted: Arc::clone(&self.wanted),
            view: PhantomData,
        }
    }
}

impl<K> fmt::Debug for AllKinds<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AllKinds")
    }
}

impl fmt::Debug for KindsRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindsRegistration")
            .field("kinds", &self.kinds())
            .finish_non_exhaustive()
    }
}
