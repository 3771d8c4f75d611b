//! Handlers of one incarnation of the trial's program, and what the plan asks of it.

use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use lariat_cache::{Metadata, Selection, Subscription};
use lariat_controller::{
    Context, HandlerOptions, Outcome, Registration, Resync, SharedController,
    SharedControllerFactory,
};
use lariat_core::{LabelSelector, ObjectKey};
use lariat_sim::Process;
use lariat_sim::internals::{ActivityKind, ProcessExt};
use tokio::task::JoinSet;
use tokio::time;

use super::behaviour::Behaviour;
use super::dice::{Dice, gvk};
use super::kinds::kinds;
use super::loads;
use super::own::{Reader, Target};
use super::setup::Setup;
use crate::plan::{Command, NAMES, OwnWrite, Verb};

/// The longest delay of a write that a plan asks for, in milliseconds.
const LATEST: u32 = 2_000;

pub(super) struct TrialHandlers {
    process: Process,
    factory: SharedControllerFactory,
    registrations: Vec<Registration>,
    subscriptions: Vec<Subscription>,
    behaviour: Arc<Behaviour>,
    dice: Arc<Dice>,
    /// Writes and reads outside of handlers.
    tasks: JoinSet<()>,
    registered: u32,
}

impl TrialHandlers {
    pub(super) fn new(process: &Process, factory: &SharedControllerFactory, setup: Setup) -> Self {
        let mut random = fastrand::Rng::with_seed(setup.seed ^ u64::from(process.incarnation()));
        let dice = Arc::new(Dice::new(random.fork()));
        let mut handlers = Self {
            process: process.clone(),
            factory: factory.clone(),
            registrations: Vec::new(),
            subscriptions: Vec::new(),
            behaviour: Arc::new(Behaviour::new(process, random)),
            dice,
            tasks: JoinSet::new(),
            registered: 0,
        };
        // The handlers of each incarnation are the same, as they are in a program that is restarted.
        let mut random = fastrand::Rng::with_seed(setup.seed);
        for _ in 0..setup.handlers {
            let kind = random.usize(..kinds().len());
            handlers.register(kind, random.u32(..));
        }
        if setup.is_crowded {
            handlers.register_slow();
        }
        handlers
    }

    fn controller(&self, kind: usize) -> SharedController<DynamicObject> {
        self.factory.for_kind(gvk(kind))
    }

    pub(super) async fn command(&mut self, command: Command) {
        let Command { verb, kind, number } = command;
        let key = ObjectKey::namespaced("default", &command.name());
        match verb {
            Verb::Register if self.registrations.len() < 8 => self.register(kind, number),
            Verb::Leave if self.registrations.len() > 1 => {
                let at = number as usize % self.registrations.len();
                let registration = self.registrations.swap_remove(at);
                self.deregister(registration).await;
            }
            Verb::Enqueue => {
                self.enqueued(kind, &key, Duration::ZERO);
                self.controller(kind).enqueue(&key);
            }
            Verb::EnqueueLater => {
                let delay = command.delay();
                self.enqueued(kind, &key, delay);
                self.controller(kind).enqueue_after(&key, delay);
            }
            Verb::Select => self.select(command),
            Verb::Dismiss => self.dismiss(kind).await,
            Verb::Retire if self.registrations.len() > 1 => self.retire(number),
            Verb::Pause => self.pause(number),
            Verb::Relist => {
                if let Some(informer) = self.factory.caches().existing(&gvk(kind)) {
                    loads::relist(&self.process, &informer);
                }
            }
            Verb::Load => self.load(kind, Some(key)),
            Verb::LoadAll => self.load(kind, None),
            Verb::Write(own) => self.write(own, kind, key, number / NAMES % LATEST),
            Verb::Read => {
                let reader = Reader::filled(&self.process, &self.factory, gvk(kind));
                self.tasks.spawn(async move {
                    if let Some(reader) = reader {
                        reader.read_for_a_while(&key).await;
                    }
                });
            }
            Verb::Need => {
                if let Some(informer) = self.factory.caches().existing(&gvk(kind)) {
                    informer.need::<DynamicObject>();
                }
            }
            Verb::Subscribe if self.subscriptions.len() < 4 => {
                if let Some(informer) = self.factory.caches().existing(&gvk(kind)) {
                    self.subscriptions.push(self.process.subscribe(&informer));
                }
            }
            Verb::Unsubscribe if !self.subscriptions.is_empty() => {
                let at = number as usize % self.subscriptions.len();
                drop(self.subscriptions.swap_remove(at));
            }
            Verb::Misbehave => self.behaviour.misbehave(number),
            _ => {}
        }
    }

    async fn deregister(&self, registration: Registration) {
        // It waits until the handler's calls have ended, so commands are not taken meanwhile.
        deregister(&self.process, registration).await;
    }

    /// Deregisters a handler, whose running calls go on while other commands are taken.
    fn retire(&mut self, number: u32) {
        let at = number as usize % self.registrations.len();
        let registration = self.registrations.swap_remove(at);
        let process = self.process.clone();
        self.tasks
            .spawn(async move { deregister(&process, registration).await });
    }

    /// Pauses a handler for up to twenty seconds.
    fn pause(&mut self, number: u32) {
        let Some(at) = (number as usize).checked_rem(self.registrations.len()) else {
            return;
        };
        let registration = &self.registrations[at];
        let controller = self.factory.for_kind(registration.gvk().clone());
        let name = registration.name().to_owned();
        if !matches!(controller.pause(&name), Ok(true)) {
            return;
        }
        let lasts = Duration::from_millis(u64::from(number / 8 % 20_000));
        self.tasks.spawn(async move {
            time::sleep(lasts).await;
            // One that was deregistered meanwhile is not known any more.
            drop(controller.resume(&name));
        });
    }

    /// Fetches an object, or without a key all objects of a kind.
    fn load(&mut self, kind: usize, key: Option<ObjectKey>) {
        let Some(informer) = self.factory.caches().existing(&gvk(kind)) else {
            return;
        };
        self.process.acts(ActivityKind::Loads(gvk(kind)));
        match key {
            Some(key) => self.tasks.spawn(loads::load(informer, key)),
            None => self.tasks.spawn(loads::load_all(informer)),
        };
    }

    /// Deregisters all handlers of a kind; its cache is kept for a while.
    async fn dismiss(&mut self, kind: usize) {
        let all = std::mem::take(&mut self.registrations);
        for registration in all {
            if *registration.gvk() == gvk(kind) {
                self.deregister(registration).await;
            } else {
                self.registrations.push(registration);
            }
        }
    }

    /// Writes after some milliseconds, without waiting for the answer.
    fn write(&mut self, own: OwnWrite, kind: usize, key: ObjectKey, later: u32) {
        let (process, factory) = (self.process.clone(), self.factory.clone());
        let dice = Arc::clone(&self.dice);
        // Otherwise the set would keep the results of all tasks that have ended.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            time::sleep(Duration::from_millis(later.into())).await;
            let target = Target {
                process: &process,
                // Also on standby.
                client: factory.unfenced_client(),
                dice: &dice,
                kind,
                key,
            };
            let reader = Reader::begun(&process, &factory, gvk(kind));
            if let (Ok(true), Some(reader)) = (target.write(own).await, reader) {
                reader.read_for_a_while(&target.key).await;
            }
        });
    }

    fn enqueued(&self, kind: usize, key: &ObjectKey, after: Duration) {
        let (kind, key) = (gvk(kind), key.clone());
        self.process
            .acts(ActivityKind::Enqueued { kind, key, after });
    }

    fn select(&self, command: Command) {
        let Some(informer) = self.factory.caches().existing(&gvk(command.kind)) else {
            return;
        };
        let labels: LabelSelector = command.labels().parse().unwrap_or_default();
        let mut selection = Selection::all().with_labels(labels);
        if command.number & 0x100 != 0 {
            selection = selection.in_namespaces(["default"]);
        }
        selection = selection.with_fields(command.fields().parse().unwrap_or_default());
        self.process.select(&informer, selection);
    }

    fn register(&mut self, kind: usize, number: u32) {
        self.registered += 1;
        let name = format!("h{}", self.registered);
        let mut options = HandlerOptions::default();
        // The bits of the number choose the options; the constants of plan sequences rely on them.
        let limit = (number & 3 == 0).then_some(1);
        if let Some(limit) = limit {
            options = options.concurrency(limit);
        }
        if number & 0x30 == 0 {
            options = options.resync(Resync::Every(Duration::from_secs(70)));
        }
        let controller = self.controller(kind);
        let behaviour = Arc::clone(&self.behaviour);
        let registered = if number & 4 == 0 {
            let controller = controller.view::<Metadata>();
            controller.register_handler(
                &name,
                options.handler(move |cx: Context<Metadata>| {
                    let behaviour = Arc::clone(&behaviour);
                    async move { behaviour.handle(&cx, kind).await }
                }),
            )
        } else {
            controller.register_handler(
                &name,
                options.handler(move |cx: Context<DynamicObject>| {
                    let behaviour = Arc::clone(&behaviour);
                    async move { behaviour.handle(&cx, kind).await }
                }),
            )
        };
        match registered {
            Ok(registration) => {
                let (kind, name) = (gvk(kind), name.into());
                self.process
                    .acts(ActivityKind::Registered { kind, name, limit });
                self.registrations.push(registration);
            }
            Err(error) => self
                .process
                .note(format!("{name} is not registered: {error}")),
        }
    }

    /// Registers a handler at whose limit a line forms, and subscribes to its kind: what is published shows since when
    /// a change waits.
    fn register_slow(&mut self) {
        let (kind, limit) = (gvk(0), Some(1));
        let process = self.process.clone();
        let handler = move |_: Context<Metadata>| {
            let process = process.clone();
            async move {
                if !process.faults_ended() {
                    time::sleep(Duration::from_secs(1)).await;
                }
                Ok(Outcome::done())
            }
        };
        let options = HandlerOptions::default().concurrency(1);
        let controller = self.controller(0).view::<Metadata>();
        if let Ok(registration) = controller.register_handler("slow", options.handler(handler)) {
            let name = Arc::from("slow");
            self.process
                .acts(ActivityKind::Registered { kind, name, limit });
            self.registrations.push(registration);
        }
        if let Some(informer) = self.factory.caches().existing(&gvk(0)) {
            self.subscriptions.push(self.process.subscribe(&informer));
        }
    }

    /// Aborts delayed writes and reads, and drops all handlers and subscriptions.
    pub(super) fn leave(&mut self) {
        // Delayed writes and reads must not come after the stop that follows.
        self.tasks.abort_all();
        self.registrations.clear();
        self.subscriptions.clear();
    }
}

async fn deregister(process: &Process, registration: Registration) {
    let (kind, name) = (registration.gvk().clone(), registration.name().into());
    registration.deregister().await;
    process.acts(ActivityKind::Deregistered { kind, name });
}
