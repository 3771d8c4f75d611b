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
/// CRDs and APIServices are watched. Half a second after one of them changes, and every five minutes, discovery is
/// asked for the served kinds. Each kind is handled in its group's preferred version, by the controller that all
/// handles of the kind share.
///
/// No start waits for these kinds, and a kind that cannot be listed does not delay others. If a group's server does not
/// respond, its kinds are kept. A kind that is no longer served keeps its handler until its cached objects are deleted,
/// or until another version of it has been served for a minute.
///
/// ```no_run
/// use lariat::{Context, HandlerResult, Metadata, Outcome, SharedControllerFactory};
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

/// A registered handler of many kinds.
///
/// Dropping this handle leaves the handler registered; [`deregister`](Self::deregister) ends it.
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

    /// Returns a handle of the same kinds that reads objects as another type.
    ///
    /// With [`Metadata`](lariat_cache::Metadata), only metadata is watched and cached.
    #[must_use]
    pub fn view<V: View>(&self) -> AllKinds<V> {
        AllKinds::new(Weak::clone(&self.factory), Arc::clone(&self.wanted))
    }

    /// Registers a handler for every kind, under the same name.
    ///
    /// In each kind it is [registered](crate::SharedController::register_handler) like any other handler, but no start
    /// waits for the kind.
    ///
    /// # Errors
    ///
    /// The name is empty, or an option is invalid. A kind in which the name is taken is skipped; that is logged, and
    /// [`KindsRegistration::refused`] lists it. The registration there is tried again after each discovery.
    pub fn register_handler(
        &self,
        name: &str,
        handler: impl Handler<K>,
    ) -> Result<KindsRegistration, RegisterError> {
        if let Some(factory) = self.factory.upgrade() {
            // Only for the text of an error: it names the kind as `every kind`.
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
    /// Returns the kinds that the handler is registered for now.
    ///
    /// The list is empty until the first discovery after the start has ended.
    ///
    /// ```no_run
    /// use lariat::controller::KindsRegistration;
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
    /// Once this returns, the handler is not running and is never called again.
    ///
    /// A handler that awaits its own deregistration waits forever. Spawn the call on another task instead.
    ///
    /// # Cancel safety
    ///
    /// The handler is deregistered by the first poll. Dropping the future afterwards only ends the wait for running
    /// calls.
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
