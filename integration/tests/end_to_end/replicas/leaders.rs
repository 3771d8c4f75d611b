//! Leaders that are killed, paused, stopped and cut off.

use lariat_integration::{Proxy, in_namespace};
use tokio::time::Instant;

use super::bench::{Bench, LONG, Program, SHORT};

/// How many objects the leader writes to.
const COUNTERS: usize = 5;

const ONE_LEADS: Program = Program {
    arguments: &[],
    counters: COUNTERS,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_killed() {
    in_namespace("leader-killed", async |env| {
        let bench = Bench::new(env, ONE_LEADS).await?;
        let mut red = bench.replica("red", SHORT).await?;
        bench.writes(&red, 20).await;
        let green = bench.replica("green", SHORT).await?;
        let began = red.signal("KILL").await;
        bench.take_over(&green, "kill -9", began).await;
        bench.assert_apart(&red, &green).await;
        assert_eq!(red.ended().await?, (None, String::new()));
        assert_eq!(bench.transitions().await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_paused_past_its_lease_writes_nothing_when_it_goes_on() {
    in_namespace("leader-paused", async |env| {
        let bench = Bench::new(env, ONE_LEADS).await?;
        let mut red = bench.replica("red", SHORT).await?;
        bench.writes(&red, 20).await;
        let green = bench.replica("green", SHORT).await?;
        let began = red.signal("STOP").await;
        bench.take_over(&green, "SIGSTOP", began).await;
        let written = bench.count(&red);
        red.signal("CONT").await;
        let (code, stderr) = red.ended().await?;
        let lost = format!("error: lost the lease {}/counter: ", env.namespace);
        // Lines before it say which write was refused, if a call was about to send one.
        let error = stderr.lines().find(|line| line.starts_with(&lost));
        let error = error.unwrap_or_else(|| panic!("{code:?} {stderr}"));
        assert_eq!(code, Some(1));
        // The reason is the suspension, and not the call that it met.
        let log = red.whole_log().await;
        let warned = log.iter().find(|line| line.contains("lost the lease"));
        for line in [error, warned.expect("it is logged")] {
            assert!(
                line.contains("the process or its runtime stood still"),
                "{line}"
            );
        }
        let blamed: Vec<_> = log.iter().filter(|line| line.contains("block")).collect();
        assert!(
            blamed.is_empty() && !error.contains("block"),
            "{blamed:?} {error}"
        );
        bench.assert_apart(&red, &green).await;
        assert_eq!(bench.count(&red), written);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_whose_handler_blocks_its_thread_names_the_handler_and_keeps_the_lease() {
    in_namespace("leader-blocked", async |env| {
        let blocks = Program {
            arguments: &["--blocking"],
            counters: 1,
        };
        let bench = Bench::new(env, blocks).await?;
        let mut red = bench.replica("red", SHORT).await?;
        let key = format!("{}/counter-0", env.namespace);
        let names = ["ERROR", "handler blocks its thread", &key, "count"];
        // Twice the lease duration, and the watchdog reports at two, four and eight seconds.
        red.logged(&[&names[..], &["lasts=8s"]].concat()).await;
        assert_eq!(bench.holder().await?.as_deref(), Some("red"));
        let log = red.log();
        let lost = log.iter().find(|line| line.contains("lost the lease"));
        assert_eq!(lost, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_stopped_releases_its_lease() {
    in_namespace("leader-stopped", async |env| {
        let bench = Bench::new(env, ONE_LEADS).await?;
        let mut red = bench.replica("red", LONG).await?;
        bench.writes(&red, 20).await;
        let green = bench.replica("green", LONG).await?;
        let began = red.signal("TERM").await;
        bench.take_over(&green, "SIGTERM", began).await;
        bench.assert_apart(&red, &green).await;
        assert_eq!(red.ended().await?, (Some(0), String::new()));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_cut_off_ends_before_another_writes() {
    in_namespace("leader-cut-off", async |env| {
        let bench = Bench::new(env, ONE_LEADS).await?;
        let proxy = Proxy::start(env.kubeconfig()?).await?;
        let behind = proxy.kubeconfig(env.kubeconfig()?)?;
        let mut red = bench.replica_with("red", SHORT, &behind).await?;
        bench.writes(&red, 20).await;
        let green = bench.replica("green", SHORT).await?;
        let began = Instant::now();
        proxy.fall_silent();
        bench.take_over(&green, "a network partition", began).await;
        let (code, stderr) = red.ended().await?;
        let reason = "counter: it was not renewed within 2s\n";
        assert!(
            code == Some(1) && stderr.ends_with(reason),
            "{code:?} {stderr}"
        );
        bench.assert_apart(&red, &green).await;
        Ok(())
    })
    .await;
}
