//! A controller with all options set: one worker, five retries, a timeout, a resync every 45 s.
//!
//! Run: `cargo run -p lariat-operators --example custom_config` (on the embedded cluster), or with `KUBECONFIG=…` on
//! your own cluster. With `-- --watch` pods are resynced every 45 s, as in the original; the story does not wait that
//! long.

use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cache::KindOptions;
use lariat::cluster::testing::{eventually, pod};
use lariat::controller::{CallOutcome, HandlerStatus};
use lariat::{FactoryBuilder, Selection};
use lariat_operators::custom_config::{Config, TROUBLE};
use lariat_operators::{About, Flag, Options, Stage, delete, perform_with};

const ABOUT: About = About {
    name: "custom_config",
    what: "options for all kinds, for one kind, and for one handler",
    flags: &[
        Flag {
            name: "retries",
            default: "5",
            help: "how many times a failed call is retried",
        },
        Flag {
            name: "resync-s",
            default: RESYNC,
            help: "the resync period, in seconds",
        },
        Flag {
            name: "timeout-ms",
            default: "200",
            help: "the timeout of a call, in milliseconds",
        },
    ],
    check: |options| config(options).map(drop),
};

/// The resync period of the story, and of the original.
const RESYNC: &str = "2, with --watch 45";

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    perform_with(ABOUT, configure, set_up, story).await
}

fn config(options: &Options) -> Result<Config> {
    let original = Config::default();
    let resync = match (&*options.value::<String>("resync-s")?, options.watch) {
        (RESYNC, true) => original.resync,
        (RESYNC, false) => Duration::from_secs(2),
        _ => Duration::from_secs(options.value::<NonZeroU64>("resync-s")?.get()),
    };
    Ok(Config {
        retries: options.value("retries")?,
        resync,
        // Zero would let a call that hangs run forever.
        timeout: Duration::from_millis(options.value::<NonZeroU64>("timeout-ms")?.get()),
        ..original
    })
}

fn configure(
    options: &Options,
    namespace: &str,
    builder: FactoryBuilder,
) -> Result<FactoryBuilder> {
    let ours = Selection::all().in_namespaces([namespace]);
    let cache = KindOptions::default().selection(ours);
    Ok(config(options)?.configure(builder, cache))
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.suggest("k run fine --image registry.k8s.io/pause:3.10");
    stage.suggest(format_args!(
        "k run failing --image registry.k8s.io/pause:3.10 --annotations {TROUBLE}=fails"
    ));
    config(&stage.options)?.register(&stage.factory)?;
    Ok(())
}

async fn story(stage: &Stage) -> Result<()> {
    let config = config(&stage.options)?;
    stage.step("a healthy pod");
    create(stage, "fine", "none").await?;
    wait(stage, |handler| handler.calls > 0).await?;

    let tries = u64::from(config.retries) + 1;
    stage.step(format_args!(
        "one whose handler fails: {tries} attempts, with growing delays"
    ));
    create(stage, "failing", "fails").await?;
    wait(stage, |handler| handler.exhausted > 0).await?;

    stage.step(format_args!(
        "one whose handler hangs: a call is dropped after {:?}",
        config.timeout
    ));
    create(stage, "hanging", "hangs").await?;
    wait(stage, |handler| {
        handler.ended(CallOutcome::TimedOut) >= tries
    })
    .await?;

    stage.step("both are deleted");
    for name in ["failing", "hanging"] {
        delete(&stage.api::<Pod>(), name).await?;
        stage.until_printed(&[name, "is deleted"]).await?;
    }

    // Skipped if a long period is chosen.
    if config.resync > Duration::from_secs(10) {
        return Ok(());
    }
    stage.step(format_args!(
        "every {:?} all pods are resynced, without a request",
        config.resync
    ));
    stage.until_printed(&["fine", "resync"]).await
}

async fn create(stage: &Stage, name: &str, trouble: &str) -> Result<()> {
    let pod = pod(name)
        .namespace(&stage.namespace)
        .annotation(TROUBLE, trouble);
    let pod = pod.set("/spec/containers/0/image", "registry.k8s.io/pause:3.10");
    pod.create(&stage.client).await?;
    Ok(())
}

/// Waits until the handler's counters satisfy a condition.
async fn wait(stage: &Stage, is_done: impl Fn(&HandlerStatus) -> bool) -> Result<()> {
    let look = async || {
        let status = stage.factory.status();
        let mut handlers = status.iter().flat_map(|kind| &kind.handlers);
        handlers.any(&is_done).then_some(()).ok_or("not yet")
    };
    Ok(eventually(TIMEOUT, look).await?)
}
