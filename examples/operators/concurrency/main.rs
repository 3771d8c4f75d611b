//! The same calls with one worker and with several, in a table; then calls that fail and are retried.
//!
//! Run: `cargo run -p lariat-operators --example concurrency` (on the embedded cluster), or with `KUBECONFIG=…` on your
//! own cluster. The options after `--` have defaults: `--concurrency 3 --sleep-ms 25 --interval-s 45 --retries 3
//! --disable-resync`. With `--watch` each call is printed, for pods you create.

use std::num::{NonZeroU64, NonZeroUsize};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use lariat::SharedControllerFactory;
use lariat::cluster::testing::pod;
use lariat_operators::concurrency::Config;
use lariat_operators::{About, Flag, Options, Stage, TextTable, hush, perform_with};
use tokio::time::timeout;

const ABOUT: About = About {
    name: "concurrency",
    what: "what several workers do for slow calls",
    flags: &[
        Flag {
            name: "concurrency",
            default: "3",
            help: "the maximum number of concurrent calls",
        },
        Flag {
            name: "sleep-ms",
            default: "25",
            help: "how long a call takes, in milliseconds",
        },
        Flag {
            name: "interval-s",
            default: "45",
            help: "the resync period, in seconds",
        },
        Flag {
            name: "retries",
            default: "3",
            help: "how many times a failed call is retried",
        },
        Flag {
            name: "disable-resync",
            default: "false",
            help: "handle pods on changes only",
        },
    ],
    check: |options| config(options).map(drop),
};

const PODS: usize = 40;
const TIMEOUT: Duration = Duration::from_secs(120);

#[tokio::main]
async fn main() -> ExitCode {
    let configure = |options: &Options, namespace: &str, builder| {
        Ok(config(options)?.configure(builder, namespace))
    };
    perform_with(ABOUT, configure, set_up, story).await
}

fn config(options: &Options) -> Result<Config> {
    // No resync at all is --disable-resync.
    let interval = Duration::from_secs(options.value::<NonZeroU64>("interval-s")?.get());
    Ok(Config {
        concurrency: options.value::<NonZeroUsize>("concurrency")?.get(),
        sleep: Duration::from_millis(options.value("sleep-ms")?),
        interval: (!options.value::<bool>("disable-resync")?).then_some(interval),
        retries: options.value("retries")?,
        fails: false,
        // The story prints a table instead.
        prints: options.watch,
    })
}

/// The story has a factory for each row of its table; `--watch` uses the stage's.
async fn set_up(stage: &Stage) -> Result<()> {
    let config = config(&stage.options)?;
    if stage.options.watch {
        config.register(&stage.factory)?;
        stage.suggest("k create deployment web --image registry.k8s.io/pause:3.10 --replicas 40");
    }
    Ok(())
}

async fn story(stage: &Stage) -> Result<()> {
    let config = config(&stage.options)?;
    stage.step(format_args!(
        "{PODS} pods are created, which no node ever runs"
    ));
    for number in 0..PODS {
        create(stage, &format!("web-{number}")).await?;
    }
    let alone = Config {
        concurrency: 1,
        ..config
    };
    let failing = Config {
        fails: true,
        ..config
    };
    let mut table = TextTable::new(&["handler", "workers", "pods", "calls", "at once", "time"]);
    let sleep = config.sleep;
    stage.step(format_args!(
        "one worker handles all of them; a call takes {sleep:?}"
    ));
    table.row(row(stage, alone).await?);
    stage.step(format_args!(
        "now with --concurrency {}",
        config.concurrency
    ));
    table.row(row(stage, config).await?);
    stage.step(format_args!(
        "now with a handler that fails, and {} retries (the {PODS} logged errors are left out)",
        config.retries
    ));
    hush(true);
    table.row(row(stage, failing).await?);
    hush(false);
    table.print();
    Ok(())
}

/// A pod that waits for a missing node, so that it does not change.
async fn create(stage: &Stage, name: &str) -> Result<()> {
    let pod = pod(name).namespace(&stage.namespace);
    let pod = pod.set("/spec/schedulerName", "unmatched");
    let pod = pod.set("/spec/containers/0/image", "registry.k8s.io/pause:3.10");
    pod.create(&stage.client).await?;
    Ok(())
}

/// Lets all pods be handled, and returns what it took.
async fn row(stage: &Stage, config: Config) -> Result<[String; 6]> {
    let builder = SharedControllerFactory::builder(stage.client.clone());
    let factory = config.configure(builder, &stage.namespace).build();
    let gauge = config.register(&factory)?;
    factory.start(None).await?;
    let attempts = if config.fails {
        1 + config.retries as usize
    } else {
        1
    };
    let counts = timeout(TIMEOUT, gauge.reaches(PODS * attempts)).await;
    let counts = counts.context("not all pods were handled")?;
    factory.stop().await?;
    Ok([
        if config.fails { "fails" } else { "works" }.to_owned(),
        config.concurrency.to_string(),
        PODS.to_string(),
        counts.calls.to_string(),
        counts.at_once.to_string(),
        format!("{:.2} s", counts.took().as_secs_f64()),
    ])
}
