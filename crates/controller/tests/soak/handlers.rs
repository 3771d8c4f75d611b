//! Handlers that are registered and deregistered at random, and misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use lariat_cache::{Metadata, View};
use lariat_controller::{
    Context, HandlerError, HandlerOptions, HandlerResult, KindsRegistration, Outcome, Registration,
    Relation, Resync, SharedControllerFactory,
};
use lariat_core::{Labels, ObjectKey};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::world::{BUILT_IN, DEFINED, Values, World, gvk};

/// The registered handlers.
pub(crate) struct Crew {
    factory: SharedControllerFactory,
    members: Vec<Member>,
    everywhere: Option<KindsRegistration>,
    shared: Arc<CallGauge>,
    counter: u64,
}

/// The state that all handlers share.
struct CallGauge {
    good: AtomicBool,
    calls: AtomicU64,
    _witness: Arc<()>,
}

struct Member {
    kind: &'static str,
    registration: Option<Registration>,
    scope: CancellationToken,
    seen: Arc<Mutex<Values>>,
}

impl Crew {
    pub(crate) fn new(factory: &SharedControllerFactory, witness: Arc<()>) -> Self {
        let config_maps = factory.for_kind(gvk("ConfigMap"));
        config_maps.watch_related(
            &factory.for_kind(gvk("Secret")),
            Relation::map(|secret: &Metadata| vec![secret.key().clone()]),
        );
        Self {
            factory: factory.clone(),
            members: Vec::new(),
            everywhere: None,
            shared: Arc::new(CallGauge {
                good: AtomicBool::new(false),
                calls: AtomicU64::new(0),
                _witness: witness,
            }),
            counter: 0,
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn registered(&self) -> u64 {
        self.counter
    }

    /// Ends all misbehaviour of handlers.
    pub(crate) fn be_good(&self) {
        self.shared.good.store(true, Ordering::Relaxed);
    }

    /// Registers or deregisters a handler.
    pub(crate) async fn step(&mut self, random: &mut fastrand::Rng) {
        match random.u8(..100) {
            0..6 if self.members.len() < 12 => self.hire(random),
            6..10 if self.members.len() > 2 => self.dismiss(random).await,
            10 => match self.everywhere.take() {
                Some(registration) => registration.deregister().await,
                None => self.everywhere = Some(self.hire_everywhere()),
            },
            _ => {}
        }
    }

    fn hire(&mut self, random: &mut fastrand::Rng) {
        self.counter += 1;
        let kinds = [BUILT_IN, DEFINED].concat();
        let kind = kinds[random.usize(..kinds.len())];
        let name = format!("h{}", self.counter);
        let scope = CancellationToken::new();
        let mut options = HandlerOptions::default().timeout(Duration::from_secs(20));
        if random.bool() {
            options = options.concurrency(1);
        }
        if random.u8(..4) == 0 {
            options = options.resync(Resync::Every(Duration::from_secs(600)));
        }
        if random.u8(..3) == 0 {
            options = options.until(scope.clone());
        }
        let controller = self.factory.for_kind(gvk(kind));
        let seen = Arc::default();
        let registration = if random.bool() {
            let controller = controller.view::<Metadata>();
            controller.register_handler(&name, options.handler(self.handler(kind, &seen)))
        } else {
            controller.register_handler(&name, options.handler(self.handler(kind, &seen)))
        };
        self.members.push(Member {
            kind,
            registration: Some(registration.expect("its name is new")),
            scope,
            seen,
        });
    }

    fn hire_everywhere(&self) -> KindsRegistration {
        let calls = Arc::clone(&self.shared);
        let all = self.factory.for_all_kinds(|_| true).view::<Metadata>();
        let handler = move |_: Context<Metadata>| {
            calls.calls.fetch_add(1, Ordering::Relaxed);
            async { Ok(Outcome::done()) }
        };
        all.register_handler("everywhere", handler)
            .expect("it has a name")
    }

    async fn dismiss(&mut self, random: &mut fastrand::Rng) {
        let mut member = self.members.swap_remove(random.usize(..self.members.len()));
        // A handler with a token is cancelled, another is deregistered.
        member.scope.cancel();
        if let Some(registration) = member.registration.take() {
            registration.deregister().await;
        }
        let before = member.seen.lock().clone();
        time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            *member.seen.lock(),
            before,
            "no handler is called once it is dismissed"
        );
    }

    fn handler<K: Labelled>(
        &self,
        kind: &'static str,
        seen: &Arc<Mutex<Values>>,
    ) -> impl lariat_controller::Handler<K> + use<K> {
        let (seen, shared) = (Arc::clone(seen), Arc::clone(&self.shared));
        move |cx: Context<K>| {
            let (seen, shared) = (Arc::clone(&seen), Arc::clone(&shared));
            async move { shared.handle(&cx, kind, &seen).await }
        }
    }

    /// Compares the state that each handler saw last with the expected state.
    pub(crate) fn compare_with(&self, world: &World) {
        assert!(!self.members.is_empty());
        for member in &self.members {
            let seen = member.seen.lock();
            let of_kind = world
                .truth
                .iter()
                .filter(|((kind, _), _)| kind == member.kind);
            for (known, value) in of_kind {
                match seen.get(known) {
                    Some(last) => assert_eq!(last, value, "{known:?}"),
                    // Objects that were deleted before it was registered need no call.
                    None => assert_eq!(value, &None, "{known:?} was never seen"),
                }
            }
        }
    }

    /// Deregisters all handlers.
    pub(crate) async fn leave(&mut self) {
        for member in self.members.drain(..) {
            if let Some(registration) = member.registration {
                registration.deregister().await;
            }
        }
        if let Some(everywhere) = self.everywhere.take() {
            everywhere.deregister().await;
        }
        self.shared = Arc::new(CallGauge {
            good: AtomicBool::new(true),
            calls: AtomicU64::new(0),
            _witness: Arc::new(()),
        });
    }
}

impl CallGauge {
    async fn handle<K: Labelled>(
        &self,
        cx: &Context<K>,
        kind: &str,
        seen: &Mutex<Values>,
    ) -> HandlerResult {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let value = cx.object()?.map(|object| object.value());
        if !self.good.load(Ordering::Relaxed) {
            self.misbehave(cx.key(), cx.run(), kind, cx.client())
                .await?;
        }
        let known = (kind.to_owned(), cx.key().name().to_owned());
        seen.lock().insert(known, value);
        match cx.run() % 50 {
            2 => Err(HandlerError::ignore("who cares")),
            0 => Ok(Outcome::requeue_after(Duration::from_secs(30))),
            1 => {
                cx.enqueue_after(cx.key(), Duration::from_secs(90));
                Ok(Outcome::done())
            }
            _ => Ok(Outcome::done()),
        }
    }

    /// Fails, hangs or panics, depending on the number of the run.
    async fn misbehave(
        &self,
        key: &ObjectKey,
        run: u64,
        kind: &str,
        client: kube::Client,
    ) -> Result<(), HandlerError> {
        match run % 41 {
            0 | 1 => Err("not today".into()),
            2 => panic!("a bad day"),
            3 => std::future::pending().await,
            4 | 5 => {
                time::sleep(Duration::from_secs(run % 15)).await;
                Ok(())
            }
            6 => {
                let gvk = gvk(kind);
                let gvk = GroupVersionKind::gvk(gvk.group(), gvk.version(), kind);
                let resource = ApiResource::from_gvk(&gvk);
                let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
                let note = json!({"metadata": {"annotations": {"run": run.to_string()}}});
                api.patch(key.name(), &PatchParams::default(), &Patch::Merge(note))
                    .await?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A view of the label that the test changes.
pub(crate) trait Labelled: View {
    fn value(&self) -> String;
}

fn of(labels: Option<&str>) -> String {
    labels.unwrap_or_default().to_owned()
}

impl Labelled for Metadata {
    fn value(&self) -> String {
        let labels: &Labels = self.labels();
        of(labels.get("value"))
    }
}

impl Labelled for DynamicObject {
    fn value(&self) -> String {
        let labels = self.metadata.labels.as_ref();
        of(labels
            .and_then(|labels| labels.get("value"))
            .map(String::as_str))
    }
}
