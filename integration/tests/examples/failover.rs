//! Leader election among processes.

use std::time::Duration;

use lariat_integration::{example, run};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::time::timeout;

use super::assert_refused;

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_leader_is_killed_and_the_next_one_is_stopped() {
    let arguments = ["--lease-s", "3", "--period-s", "0.1"];
    let (code, stdout, stderr) = run(example("failover", &arguments)).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let mut leaders = Vec::new();
    let mut ends = Vec::new();
    let mut counts = Vec::new();
    for line in stdout.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["replica", name, "leads"] => leaders.push(name),
            ["replica", name, "ended:", "signal:", "9", ..] => ends.push((name, "killed")),
            ["replica", name, "ended:", "exit", "status:", "0"] => ends.push((name, "stopped")),
            ["replica", name, "counts", "to", count] => {
                counts.push((name, count.parse::<u64>().expect("a number")));
            }
            _ => {}
        }
    }
    let [first, second, third] = leaders[..] else {
        panic!("three lead, one after the other:\n{stdout}");
    };
    assert!(
        first != second && second != third && third != first,
        "{stdout}"
    );
    assert_eq!(ends, [(first, "killed"), (second, "stopped")], "{stdout}");
    for (name, what) in [(first, "is killed"), (second, "is stopped")] {
        let line = format!("{name} leads, and {what}");
        assert!(stdout.contains(&line), "no {line:?} in:\n{stdout}");
    }
    for name in [second, third] {
        let line = format!("{name} took over after ");
        assert!(stdout.contains(&line), "no {line:?} in:\n{stdout}");
    }
    // Each goes on where the one before was.
    let of = |leader: &str| -> Vec<u64> {
        let counts = counts.iter().filter(|(name, _)| *name == leader);
        counts.map(|(_, count)| *count).collect()
    };
    for (before, after) in [(first, second), (second, third)] {
        assert!(of(before).iter().max() < of(after).iter().min(), "{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[tokio::test]
async fn replicas_end_with_an_example_that_is_killed() {
    let mut command = example("failover", &["--watch", "--lease-s", "3"]);
    // What it makes goes with its cluster.
    let mut child = command.env_remove("KUBECONFIG").spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut replicas = 0;
    while replicas < 3 {
        let line = timeout(TIMEOUT, lines.next_line()).await;
        let line = line.expect("it starts replicas").expect("it can be read");
        let line = line.expect("it goes on");
        // One whose caches are not filled yet goes on for as long as a start waits for them.
        replicas += usize::from(line.ends_with("stands by"));
    }
    child.kill().await.expect("it is killed");
    // The replicas have the same standard error, which ends with the last of them.
    let (mut stderr, mut text) = (child.stderr.take().expect("it is piped"), String::new());
    let read = timeout(TIMEOUT, stderr.read_to_string(&mut text)).await;
    read.expect("the replicas end").expect("it can be read");
}

#[tokio::test]
async fn an_invalid_lease_is_refused() {
    let reason = "invalid configuration of the lease counter: the lease duration 0ns is not between a second and 2^31 seconds";
    assert_refused("failover", &["--lease-s", "0"], reason).await;
}
