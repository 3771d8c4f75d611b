//! The handle of many kinds.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use lariat_cache::View;
use lariat_core::Gvk;

use super::follower::{Follower, Follows, Wanted};
use crate::controller::{NewHandler, Registration, check_options};
use crate::error::RegisterError;
use crate::handler::{Context, Handler, HandlerOptions, HandlerResult, Viewed};

/// All kinds that can be listed and watched and that a function wants, read as `K`: those there are, and those
/// that come.
///
/// CustomResourceDefinitions and API services are watched, and half a second after they change, and every
/// five minutes, the API server is asked what it serves. A kind is handled in the version its group prefers, by
/// its own controller: the same that everybody else gets for it, with one watch. Kinds that cannot be read do not
/// hold up the others, and no start waits for them. A group whose server does not answer keeps its kinds; a
/// kind that vanished keeps its handler until its objects are gone, a minute at most.
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

/// A handler of many kinds. Dropping this changes nothing: the handler stays registered.
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

    /// Returns the same kinds, read as another type. With [`Metadata`](lariat_cache::Metadata) only metadata
    /// is watched and kept.
    #[must_use]
    pub fn view<V: View>(&self) -> AllKinds<V> {
        AllKinds::new(Weak::clone(&self.factory), Arc::clone(&self.wanted))
    }

    /// Registers a handler under a name it has for every kind.
    ///
    /// # Errors
    ///
    /// The name is empty, or an option makes no sense. A kind in which the name is taken is left out, which is
    /// logged and returned by [`KindsRegistration::refused`].
    ///
    /// # Panics
    ///
    /// If the factory runs: outside a tokio runtime.
    pub fn register_handler(
        &self,
        name: &str,
        handler: impl Handler<K>,
    ) -> Result<KindsRegistration, RegisterError> {
        self.register_handler_with(name, HandlerOptions::default(), handler)
    }

    /// Registers a handler with options that it has for every kind.
    ///
    /// # Errors
    ///
    /// As for [`register_handler`](Self::register_handler).
    ///
    /// # Panics
    ///
    /// As [`register_handler`](Self::register_handler).
    pub fn register_handler_with(
        &self,
        name: &str,
        options: HandlerOptions,
        handler: impl Handler<K>,
    ) -> Result<KindsRegistration, RegisterError> {
        if let Some(factory) = self.factory.upgrade() {
            let every_kind = Gvk::new("", "every", "kind");
            check_options(&every_kind, name, &options, factory.caches())?;
        }
        let (name, handler) = (name.to_owned(), Arc::new(handler));
        let make = move || NewHandler {
            name: name.clone(),
            handler: Box::new(Viewed::<K, _>::new(OfMany(Arc::clone(&handler)))),
            options: options.clone(),
            is_optional: true,
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
}

impl KindsRegistration {
    /// Returns the kinds the handler is registered for at the moment: none until the API server has been asked what
    /// it serves, which happens after each start.
    #[must_use]
    pub fn kinds(&self) -> Vec<Gvk> {
        self.follower.kinds()
    }

    /// Returns the kinds that are wanted and that the handler could not be registered for, and why.
    #[must_use]
    pub fn refused(&self) -> Vec<(Gvk, RegisterError)> {
        self.follower.refused()
    }

    /// Takes the handler away from every kind; once this returns it is not running and will never be called
    /// again.
    ///
    /// Called from the handler itself this would wait for itself, for ever: spawn it instead.
    ///
    /// # Cancel safety
    ///
    /// The handler is on its way out from the first poll on. If the future is dropped, calls under way
    /// are not waited for.
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
