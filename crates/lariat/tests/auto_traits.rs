//! What users hand to other threads stays `Send` and `Sync`. This test runs in the compiler.

use std::future::Future;

use k8s_openapi::api::core::v1::Pod;
use lariat::cache::{Changes, Informer, SharedCacheFactory, Snapshot, Store, Subscription};
use lariat::controller::StopError;
use lariat::queue::{QueueCore, Work, WorkQueue};
use lariat::{
    Cache, Context, HandlerError, Metadata, ObjectKey, Outcome, Registration, SharedController,
    SharedControllerFactory,
};

const fn is_send<T: Send>() {}
const fn is_send_and_sync<T: Send + Sync>() {}

const _: () = {
    is_send_and_sync::<SharedControllerFactory>();
    is_send_and_sync::<SharedController<Pod>>();
    is_send_and_sync::<Registration>();
    is_send_and_sync::<Cache<Metadata>>();
    is_send_and_sync::<SharedCacheFactory>();
    is_send_and_sync::<Informer>();
    is_send_and_sync::<Subscription>();
    is_send_and_sync::<Changes>();
    is_send_and_sync::<Snapshot>();
    is_send_and_sync::<Store>();
    is_send_and_sync::<lariat::KindOptions>();
    is_send_and_sync::<lariat::cache::LoadError>();
    is_send_and_sync::<HandlerError>();
    is_send_and_sync::<StopError>();
    is_send_and_sync::<WorkQueue<String>>();
    is_send_and_sync::<QueueCore<String, ()>>();
    #[cfg(feature = "cluster")]
    is_send_and_sync::<lariat::cluster::Cluster>();
    #[cfg(feature = "console")]
    is_send_and_sync::<(lariat::console::Console, lariat::console::ConsoleServer)>();
    #[cfg(feature = "metrics")]
    is_send_and_sync::<lariat::metrics::Collector>();
    is_send::<Context<Pod>>();
    is_send::<Outcome>();
    is_send::<Work<String>>();
};

/// Futures that users await in spawned tasks.
const _: fn(&Informer, &ObjectKey, &mut Changes) = |informer, key, changes| {
    fn sent(_: impl Future + Send) {}
    sent(informer.load(key));
    sent(informer.synced());
    sent(changes.next());
};

/// The same for controllers and queues.
const _: fn(&SharedControllerFactory, &WorkQueue<String>, Registration) =
    |factory, queue, registration| {
        fn sent(_: impl Future + Send) {}
        sent(factory.start(1));
        sent(factory.stop());
        sent(factory.run(1, lariat::termination()));
        sent(factory.for_resource("", "v1", "pods"));
        sent(queue.get());
        sent(registration.deregister());
        sent(lariat::connect());
    };
