//! Kubeconfigs and environments, as kubectl and Lariat understand them.
//!
//! Cases are made from a seed. Each is given to `kubectl get --raw` and to a program that uses `lariat::connect`; a
//! server records the credentials of both requests and the proxy they came through. They must be the same, or both
//! programs must refuse the case.

mod case;
mod choose;
mod files;
mod stage;
mod user;

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use futures::StreamExt;
use lariat_integration::kubectl_path;
use tokio::process::Command;

use crate::seeds::with_seeds;
use case::Case;
use stage::{Seen, Stage};

/// How many cases of fixed seeds there are, and how many of a random one.
const FIXED: u64 = 200;
const RANDOM: u64 = 60;

/// How many cases run at once.
const AT_ONCE: usize = 4;

/// The result of a case in one program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    /// The request that the server has seen.
    seen: Option<Seen>,
    /// The words of the program.
    text: String,
}

#[tokio::test]
async fn kubeconfigs_mean_the_same_to_kubectl() -> Result<()> {
    let seeds = 0..FIXED;
    compare(seeds).await
}

#[tokio::test]
async fn kubeconfigs_of_a_random_seed_mean_the_same_to_kubectl() -> Result<()> {
    with_seeds(async |seed| compare(seed..seed + RANDOM).await).await
}

async fn compare(seeds: impl Iterator<Item = u64>) -> Result<()> {
    let stage = Stage::start().await?;
    let cases = seeds.map(|seed| compare_one(&stage, seed));
    let results: Vec<_> = futures::stream::iter(cases)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut used = 0;
    let mut wrong = Vec::new();
    for result in results {
        match result? {
            Ok(is_used) => used += usize::from(is_used),
            Err(text) => wrong.push(text),
        }
    }
    println!("{used} cases reached a server");
    assert!(
        wrong.is_empty(),
        "{} cases differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(used >= 10, "cases are not all refused");
    Ok(())
}

/// Runs a case in both programs. The inner result is whether kubectl used it, or how they differ.
async fn compare_one(stage: &Stage, seed: u64) -> Result<Result<bool, String>> {
    let case = Case::new(stage, seed);
    let folder = stage.folder(seed);
    case.write(&folder)?;
    let kubectl = outcome(stage, &case, &folder, "kubectl").await?;
    let lariat = outcome(stage, &case, &folder, "lariat").await?;
    for secret in ["hunter2", "tok-", "pw-"] {
        if lariat.text.contains(secret) && lariat.seen.is_none() {
            return Ok(Err(format!("seed {seed} shows {secret}: {}", lariat.text)));
        }
    }
    let is_same = match (&kubectl.seen, &lariat.seen) {
        (Some(one), Some(other)) if case.may_lack_tls => {
            one.without_credentials() == other.without_credentials()
        }
        // Credentials that kubectl does not even read.
        (Some(_), None) if case.may_lack_tls => true,
        // kubectl asks its user for a password where a program is anonymous.
        (None, Some(other)) if kubectl.text.contains("enter Username") => {
            *other == other.without_credentials()
        }
        (None, Some(_)) => case.may_be_refused_by_kubectl,
        (one, other) => one == other,
    };
    std::fs::remove_dir_all(&folder)?;
    Ok(if is_same {
        Ok(kubectl.seen.is_some())
    } else {
        let (one, other) = (kubectl, lariat);
        Err(format!(
            "--- seed {seed}\n{case}\nkubectl: {:?}\n{}\nlariat: {:?}\n{}",
            one.seen, one.text, other.seen, other.text
        ))
    })
}

async fn outcome(
    stage: &Stage,
    case: &Case,
    folder: &Path,
    program: &'static str,
) -> Result<Outcome> {
    let path = format!("/{program}/{}", case.seed);
    let mut command = match program {
        "kubectl" => {
            let mut command = Command::new(kubectl_path()?);
            command.args(["get", "--raw", &path]);
            command
        }
        _ => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_raw_get"));
            command.arg(&path);
            command
        }
    };
    let search = std::env::var_os("PATH").context("PATH")?;
    command
        .env_clear()
        .env("PATH", search)
        .env("HOME", folder)
        .envs(case.environment(folder))
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.output().await?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let seen = stage.seen(&path);
    Ok(Outcome { seen, text })
}
