//! The examples as processes: what they print, and that they end well.

mod autoscaler;
mod concurrency;
mod custom_config;
mod dynamic_audit;
mod exhaustive;
#[cfg(unix)]
mod failover;
mod fleet_browser;
mod kronjob;
mod multi_resource;
mod one_file;
mod pod_logger;
mod pod_terminator;
mod related_kinds;
mod sample_controller;
#[cfg(unix)]
mod sharded;
mod simulated;
mod slow;
#[cfg(unix)]
mod suggestions;
mod useless_machine;
mod website;

use lariat_integration::{example, run};

/// Has an example refuse its options: in one line, before anything is started or made.
async fn assert_refused(name: &str, arguments: &[&str], reason: &str) {
    let (code, stdout, stderr) = run(example(name, arguments)).await;
    let expected = (Some(1), String::new(), format!("error: {reason}\n"));
    assert_eq!((code, stdout, stderr), expected, "{name} {arguments:?}");
}
