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
        let says = stderr.lines().any(|line| line.starts_with(&lost));
        assert!(code == Some(1) && says, "{code:?} {stderr}");
        bench.assert_apart(&red, &green).await;
        assert_eq!(bench.count(&red), written);
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
