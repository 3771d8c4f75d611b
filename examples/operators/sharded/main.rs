//! Divides orders among three replicas, kills one, stops one, and starts a new one.
//!
//! Run: `cargo run -p lariat-operators --example sharded -- --lease-s 3` (on the embedded cluster), or with
//! `KUBECONFIG=…` on your own cluster. Each replica is a process: this program with `--replica NAME`. With `-- --watch`
//! nothing is killed.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::api::ListParams;
use lariat_operators::sharded::{APP, HANDLED_BY, RING, lease, replica};
use lariat_operators::{
    ATTACHED, About, Flag, NAMESPACE, Options, Paint, REPLICA, Replicas, Stage, TextTable, paint,
    perform_with_replicas, say, until_printed,
};
use serde_json::json;
use tokio::time::Instant;

const ABOUT: About = About {
    name: "sharded",
    what: "three replicas of a program, each with its share of the orders; what moves when one is killed, stopped or added",
    flags: &[
        Flag {
            name: "lease-s",
            default: "15",
            help: "the lease duration in seconds; others wait that long for a killed replica",
        },
        Flag {
            name: "orders",
            default: "12",
            help: "the number of orders",
        },
        REPLICA,
        NAMESPACE,
        ATTACHED,
    ],
    check,
};

static REPLICAS: Replicas = Replicas::new(&["lease-s"]);

/// Which replica has each order.
type Holders = BTreeMap<String, String>;

fn check(options: &Options) -> Result<()> {
    let orders: u32 = options.value("orders")?;
    ensure!((1..1000).contains(&orders), "--orders is not 1 to 999");
    Ok(lease("default", "red", options.seconds("lease-s")?).validate()?)
}

#[tokio::main]
async fn main() -> ExitCode {
    perform_with_replicas(ABOUT, replica::run, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    for number in 1..=stage.options.value("orders")? {
        let name = format!("order-{number:03}");
        let order = json!({"metadata": {"name": name, "labels": {APP: RING}}});
        let order = serde_json::from_value::<ConfigMap>(order)?;
        lariat_operators::ensure(&stage.api(), &order).await?;
    }
    stage.step("three replicas start, and divide the orders among them");
    stage.suggest("k annotate configmap order-001 --overwrite changed=\"$(date)\"");
    stage.suggest(format_args!(
        "k get configmaps --label-columns {HANDLED_BY}"
    ));
    for name in ["red", "green", "blue"] {
        REPLICAS.start(stage, name, colour)?;
    }
    divided(stage, &["red", "green", "blue"], &Holders::new()).await?;
    Ok(())
}

fn colour(line: &str) -> Paint {
    if line.starts_with("handles") {
        Paint::Yellow
    } else {
        Paint::Dim
    }
}

async fn story(stage: &Stage) -> Result<()> {
    let mut members = vec!["red", "green", "blue"];
    let holders = signed(stage).await?;
    print_table(&members, &holders, &Holders::new());

    let killed = busiest(&members, &holders);
    stage.step(format_args!(
        "{killed} is killed: the others wait until its lease has expired"
    ));
    members.retain(|name| *name != killed);
    let holders = leave(stage, killed, "KILL", &members, &holders).await?;

    let stopped = busiest(&members, &holders);
    stage.step(format_args!(
        "{stopped} is stopped: it releases its lease when its calls have ended"
    ));
    members.retain(|name| *name != stopped);
    let holders = leave(stage, stopped, "TERM", &members, &holders).await?;

    stage.step("white is added: it handles its orders when the other has released them");
    let began = Instant::now();
    REPLICAS.start(stage, "white", colour)?;
    members.push("white");
    moved(stage, &members, &holders, began).await?;
    Ok(())
}

/// Sends a replica a signal, and returns the holders of its orders afterwards.
async fn leave(
    stage: &Stage,
    name: &str,
    signal: &str,
    members: &[&str],
    before: &Holders,
) -> Result<Holders> {
    let began = Instant::now();
    REPLICAS.signal(name, signal).await?;
    let holders = moved(stage, members, before, began).await?;
    stage.until_printed(&[name, "ended"]).await?;
    Ok(holders)
}

/// Waits until orders have moved to these members, and prints how long that took.
async fn moved(
    stage: &Stage,
    members: &[&str],
    before: &Holders,
    began: Instant,
) -> Result<Holders> {
    let count = divided(stage, members, before).await?;
    let took = format!("{count} orders moved within {:.1?}", began.elapsed());
    say(format_args!("  {}", paint(Paint::Bold, took, 0)));
    let holders = signed(stage).await?;
    print_table(members, &holders, before);
    Ok(holders)
}

/// Waits until each of these members has a share, and has handled its new orders; returns their number.
async fn divided(stage: &Stage, members: &[&str], before: &Holders) -> Result<usize> {
    let is_one = format!("is one of {}, and has:", members.len());
    let mut count = 0;
    for name in members {
        let line = until_printed(1, &[&format!("replica {name} "), &is_one]).await?;
        let (_, orders) = line.split_once(&is_one).context("it says so")?;
        for order in orders.split_whitespace() {
            if before.get(order).map(String::as_str) != Some(*name) {
                stage
                    .until_printed(&[&format!("{name} handles {order}")])
                    .await?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Returns the replica that handled each order last, from its label.
async fn signed(stage: &Stage) -> Result<Holders> {
    let orders = ListParams::default().labels(&format!("{APP}={RING}"));
    let listed = stage.api::<ConfigMap>().list(&orders).await?;
    let signed = listed.items.into_iter().filter_map(|order| {
        let by = order.metadata.labels?.remove(HANDLED_BY)?;
        Some((order.metadata.name?, by))
    });
    Ok(signed.collect())
}

/// Returns the replica with most orders.
fn busiest<'a>(members: &[&'a str], holders: &Holders) -> &'a str {
    let count = |name: &&&str| holders.values().filter(|by| by == name).count();
    members.iter().max_by_key(count).copied().unwrap_or("red")
}

fn print_table(members: &[&str], holders: &Holders, before: &Holders) {
    let mut table = TextTable::new(&["replica", "orders", "new"]);
    for name in members {
        let ours = holders.iter().filter(|(_, by)| by == name);
        let (mut orders, mut new) = (0, 0);
        for (order, by) in ours {
            orders += 1;
            new += usize::from(before.get(order) != Some(by));
        }
        let row = [(*name).to_owned(), orders.to_string(), new.to_string()];
        table.row(row);
    }
    table.print();
}
