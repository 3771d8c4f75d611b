//! The program of the operator's trial.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::DynamicObject;
use lariat_cache::{Metadata, MissingKind};
use lariat_controller::{ControllerOptions, HandlerOptions, SharedControllerFactory};
use lariat_operator::{
    Budget, EventOptions, Finalizer, Guard, GuardState, Operator, OperatorError, Reconciler,
};
use lariat_sim::Process;
use tokio::time;

use super::foreign_writer::key;
use super::reconciler::ShopReconciler;
use super::setup::Setup;
use crate::operator_action::OperatorAction;
use crate::plan::{Command, Verb};
use crate::shop;
use crate::trial::setup::Failed;

const MINUTE: Duration = Duration::from_secs(60);

pub(super) async fn run(process: Process, setup: Setup) -> Result<(), Failed> {
    let operates = OperatorAction::Operates {
        period: setup.period,
        fetches: setup.budget.is_some() || setup.metadata,
    };
    operates.report(&process);
    let factory = factory(&process, setup);
    let operator = Operator::new(shop::OPERATOR, &factory);
    process.inspect_operator(&operator);
    operator
        .events()
        .configure(EventOptions::default().api(setup.events));
    // Budgets no program that works as it should uses up.
    let guard = Guard::new()
        .writes(Budget::rate(20_000, MINUTE))
        .deletes(Budget::rate(5_000, MINUTE));
    let reconciler = Arc::new(ShopReconciler::new(&process, &operator, setup));
    register(&operator, &guard, &reconciler, setup)?;
    let mut runs = start(&process, &operator, setup).await;
    loop {
        let command = tokio::select! {
            biased;
            () = process.terminated() => break,
            command = Command::next(&process) => command,
            () = time::sleep(Duration::from_secs(5)) => {
                // One that was stopped, or could not be started, starts once everything is in order.
                if !runs && process.faults_ended() {
                    runs = start(&process, &operator, setup).await;
                }
                continue;
            }
        };
        let Some(Command { verb, number, .. }) = command else {
            break;
        };
        match verb {
            Verb::Stop if runs => {
                drop(stop(&process, &operator).await);
                runs = false;
            }
            Verb::Start if !runs => runs = start(&process, &operator, setup).await,
            Verb::Enqueue => factory.for_kind(shop::gvk()).enqueue(&key(number)),
            Verb::EnqueueLater => {
                let delay = Duration::from_millis(u64::from(number % 30_000));
                factory
                    .for_kind(shop::gvk())
                    .enqueue_after(&key(number), delay);
            }
            Verb::Misbehave => reconciler.misbehave(number),
            _ => {}
        }
    }
    // Read before the stop: faults may end while it waits.
    let faults_ended = process.faults_ended();
    match stop(&process, &operator).await {
        // What misbehaves, or waits for a server that is away, may outlast the grace period.
        Err(error) if faults_ended => return Err(error.into()),
        _ => {}
    }
    // The budgets are far above what the operator needs, so only a hot loop trips the guard.
    if let GuardState::Tripped(_) = guard.state() {
        return Err(format!("the guard has tripped: {}", guard.state()).into());
    }
    Ok(())
}

async fn start(process: &Process, operator: &Operator, setup: Setup) -> bool {
    OperatorAction::Starts.report(process);
    operator.start(setup.workers).await.is_ok()
}

async fn stop(process: &Process, operator: &Operator) -> Result<(), OperatorError> {
    OperatorAction::Stops.report(process);
    operator.stop().await
}

fn factory(process: &Process, setup: Setup) -> SharedControllerFactory {
    let handlers = process.observed(HandlerOptions::default().timeout(Duration::from_secs(20)));
    process
        .factory()
        .default_options(ControllerOptions::default().handlers(handlers))
        .missing_kind(MissingKind::Wait)
        .sync_timeout(Duration::from_secs(100))
        .grace_period(Duration::from_secs(30))
        .caches(|caches| match setup.budget {
            Some(bytes) => caches.memory_budget(bytes),
            None => caches,
        })
        .build()
}

fn register(
    operator: &Operator,
    guard: &Guard,
    shopkeeper: &Arc<ShopReconciler>,
    setup: Setup,
) -> Result<(), Failed> {
    let factory = operator.factory();
    let shops = factory.for_kind(shop::gvk());
    let (maps, secrets) = (
        factory.for_object::<ConfigMap>(),
        factory.for_object::<Secret>(),
    );
    let wants = |shop: &DynamicObject| shop::wants_finalizer(&shop.data);
    let finalizer = Finalizer::new(shop::FINALIZER).when(wants);
    let cleaner = Arc::clone(shopkeeper);
    let mut reconciler: Reconciler<DynamicObject> = operator
        .reconciler("shops", &shops)
        .owns(&maps)
        .finalizer(finalizer, move |cx| {
            let shopkeeper = Arc::clone(&cleaner);
            async move { shopkeeper.clean_up(&cx).await }
        })
        .report_errors(shop::READY)
        .requeue_after(setup.period)
        .guard(guard.clone());
    reconciler = if setup.metadata {
        reconciler.owns(&secrets.view::<Metadata>())
    } else {
        reconciler.owns(&secrets)
    };
    if setup.ends {
        let shopkeeper = Arc::clone(shopkeeper);
        reconciler = reconciler.on_deleted(move |cx| {
            let shopkeeper = Arc::clone(&shopkeeper);
            async move { shopkeeper.gone(&cx).await }
        });
    }
    let shopkeeper = Arc::clone(shopkeeper);
    reconciler.register(move |cx| {
        let shopkeeper = Arc::clone(&shopkeeper);
        async move { shopkeeper.reconcile(&cx).await }
    })?;
    Ok(())
}
