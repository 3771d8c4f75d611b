//! What the examples suggest to whoever watches.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lariat_integration::{example, kubectl_path};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

type Lines = tokio::io::Lines<BufReader<ChildStdout>>;

/// The examples with the beginning of the last command each suggests, and what it tells when all were run.
const CASES: [(&str, &[&str], &str, &str); 13] = [
    ("autoscaler", &[], "k patch", "deleted pod"),
    (
        "concurrency",
        &[],
        "k create",
        "handled beside 2 others: added at",
    ),
    ("cpu_autoscaler", &[], "k get", "1 ready, should be 2"),
    ("custom_config", &[], "k run failing", "fails: attempt 2"),
    ("dynamic_audit", &[], "k delete", "is gone"),
    ("kronjob", &[], "k get", ""),
    ("metrics", &["--listen", "127.0.0.1:0"], "curl", ""),
    ("multi_resource", &[], "k scale", "4 of 4 ready"),
    ("pod_logger", &[], "k delete", "deleted      pod-logger-"),
    ("pod_terminator", &[], "k get", "kills 50 %"),
    ("related_kinds", &[], "k patch", "is looked after"),
    ("sample_controller", &[], "k get", "1 changed"),
    (
        "useless_machine",
        &["--delay", "0.1"],
        "k patch",
        "is flipped down",
    ),
];

#[tokio::test]
async fn what_is_suggested_works() {
    for (name, arguments, last, told) in CASES {
        let arguments = [&["--watch"], arguments].concat();
        let mut command = example(name, &arguments);
        let mut child = command.env_remove("KUBECONFIG").spawn().expect("it runs");
        let output = child.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines();
        for command in suggested(&mut lines, last).await {
            assert_eq!(shell(&command).await, "", "{name}: {command}");
        }
        until(&mut lines, told, name).await;
    }
}

/// Reads the commands an example suggests: those that can be run by themselves.
async fn suggested(lines: &mut Lines, last: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut kubectl = String::new();
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line
            .expect("it suggests something")
            .expect("it can be read");
        let line = line.unwrap_or_else(|| panic!("it ended before {last:?}: {commands:?}"));
        let Some(command) = line.strip_prefix("    ") else {
            continue;
        };
        match command.starts_with("k()") {
            true => kubectl = command.to_owned(),
            false if command.starts_with("curl") => {}
            false => commands.push(format!("{kubectl}\n{command}")),
        }
        if command.starts_with(last) {
            return commands;
        }
    }
}

/// Runs a command, again while what it is about may not be there yet; returns why it fails.
async fn shell(command: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let kubectl = kubectl_path().expect("it is installed");
    let mut path = OsString::from(kubectl.parent().expect("it is in a folder"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut why = String::new();
    for _ in 0..50 {
        let mut shell = Command::new("sh");
        shell
            .args(["-euc", command])
            .env("PATH", &path)
            .env_remove("KUBECONFIG");
        shell
            .current_dir(root.expect("it is in a workspace"))
            .stdin(Stdio::null());
        let ended = timeout(PATIENCE, shell.output()).await;
        let ended = ended.expect("it ends").expect("it runs");
        if ended.status.success() {
            return String::new();
        }
        why = String::from_utf8_lossy(&ended.stderr).into_owned();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    why
}

async fn until(lines: &mut Lines, told: &str, name: &str) {
    let mut text = String::new();
    while !text.contains(told) {
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{name} has not told {told:?}:\n{text}"));
        text += &line.expect("it can be read").expect("it goes on");
        text.push('\n');
    }
}
