//! Members of a ring with a kind that waits: what the other kinds gain does not wait for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::Api;
use kube::api::PostParams;
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{
    Context, HandlerError, HandlerOptions, Outcome, RunError, SharedControllerFactory,
};
use lariat_lease::{Lease, Sharding};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, SECOND};
use crate::sharding_bench::client;

/// The number of objects of each kind.
const OBJECTS: usize = 24;

/// The calls of ConfigMaps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    End,
    Hang,
}

/// A replica that handles Secrets and ConfigMaps.
struct Replica {
    factory: SharedControllerFactory,
    /// The names of the Secrets it has handled.
    secrets: Arc<Mutex<BTreeSet<String>>>,
    /// Ends the handler of ConfigMaps.
    until: CancellationToken,
    stop: CancellationToken,
    run: JoinSet<Result<(), RunError>>,
}

async fn handle(calls: Calls) -> Result<Outcome, HandlerError> {
    if calls == Calls::Hang {
        std::future::pending::<()>().await;
    }
    Ok(Outcome::done())
}

impl Replica {
    fn start(bench: &Bench, name: &'static str, calls: Calls) -> Self {
        let ring = Sharding::new(Lease::new("shop").identity(name)).drain_timeout(20 * SECOND);
        let builder = SharedControllerFactory::builder(client(&bench.cluster, name));
        let factory = builder.sharding(ring).build();
        let secrets: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let seen = Arc::clone(&secrets);
        let note = move |cx: Context<Secret>| {
            seen.lock().insert(cx.key().name().to_owned());
            handle(Calls::End)
        };
        let registered = factory
            .for_object::<Secret>()
            .register_handler("note", note);
        registered.expect("registered");
        let until = CancellationToken::new();
        let options = HandlerOptions::default().until(until.clone());
        let registered = factory.for_object::<ConfigMap>().register_handler(
            "maps",
            options.handler(move |_: Context<ConfigMap>| handle(calls)),
        );
        registered.expect("registered");
        let (running, stop) = (factory.clone(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let mut run = JoinSet::new();
        run.spawn(async move { running.run(OBJECTS, stopped).await });
        Self {
            factory,
            secrets,
            until,
            stop,
            run,
        }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        let ended = self.run.join_next().await.expect("it runs");
        ended.expect("it does not panic").expect("stopped");
    }

    fn is_member(&self) -> bool {
        self.factory.leadership().expect("it takes part").leads()
    }
}

/// Starts two members, lets ConfigMaps wait on the first, stops the second, and checks the Secrets.
async fn check(calls: Calls, wait: impl AsyncFnOnce(&Bench, &Replica)) {
    let bench = Bench::new().await;
    let secrets = Api::<Secret>::namespaced(bench.cluster.client(), "default");
    for number in 0..OBJECTS {
        bench.create(&format!("order-{number}")).await;
        let secret = json!({"metadata": {"name": format!("key-{number}")}});
        let secret = serde_json::from_value(secret).expect("it is one");
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.expect("created");
    }
    let one = Replica::start(&bench, "one", calls);
    sleep(5 * SECOND).await;
    let two = Replica::start(&bench, "two", Calls::End);
    // The calls that hang are dropped after the drain timeout, where their keys move.
    sleep(60 * SECOND).await;
    assert!(one.is_member() && two.is_member());
    let of_two = two.secrets.lock().len();
    assert!((1..OBJECTS).contains(&of_two), "two handled {of_two}");
    wait(&bench, &one).await;
    one.secrets.lock().clear();
    two.stop().await;
    sleep(SECOND).await;
    let gained = one.secrets.lock().len();
    assert_eq!(gained, of_two, "one handles what two had");
}

#[tokio::test(start_paused = true)]
async fn kind_whose_calls_hang_delays_no_gain_of_another() {
    check(Calls::Hang, async |_, _| {}).await;
}

#[tokio::test(start_paused = true)]
async fn kind_whose_last_handler_hangs_and_is_replaced_delays_no_gain_of_another() {
    check(Calls::Hang, async |_, one| {
        one.until.cancel();
        sleep(SECOND).await;
        let maps = one.factory.for_object::<ConfigMap>();
        let again = maps.register_handler("again", |_: Context<ConfigMap>| handle(Calls::End));
        again.expect("registered");
        sleep(SECOND).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn kind_whose_cache_is_not_synced_delays_no_gain_of_another() {
    check(Calls::End, async |bench, one| {
        let silent = Rule::new(Action::NoAnswer).resource("services");
        bench.cluster.faults().add(silent);
        let services = one.factory.for_object::<Service>();
        let registered = services.register_handler("late", |_: Context<_>| handle(Calls::End));
        registered.expect("registered");
        sleep(SECOND).await;
        assert!(services.cache().synced().now_or_never().is_none());
    })
    .await;
}
