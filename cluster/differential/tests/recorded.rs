//! Random sequences whose answers were recorded from a genuine server.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;
use futures::stream::{self, StreamExt};
use lariat_differential::compare::Difference;
use lariat_differential::known::{KNOWN, Known};
use lariat_differential::recording::{self, Recording};
use lariat_differential::replay::replay;

/// How often a sequence is played before a difference counts: some answers depend on how fast watches are read.
const TRIALS: usize = 3;

/// Returns the unknown differences that are met each time.
async fn differences(recording: &Recording, known: &Known) -> Result<Vec<Difference>> {
    let mut found: Option<Vec<Difference>> = None;
    for _ in 0..TRIALS {
        let comparison = replay(recording).await?;
        let unknown = comparison.differences.into_iter();
        let mut unknown: Vec<_> = unknown
            .filter(|difference| known.name(&difference.class).is_none())
            .collect();
        if let Some(before) = found {
            unknown.retain(|each| before.iter().any(|other| other.class == each.class));
        }
        if unknown.is_empty() {
            return Ok(unknown);
        }
        found = Some(unknown);
    }
    Ok(found.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_sequences_are_answered_as_by_a_genuine_server() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/random");
    let mut recordings = Vec::new();
    for file in fs::read_dir(folder)? {
        recordings.append(&mut recording::read(&file?.path())?);
    }
    assert!(recordings.len() > 100, "recordings are missing");
    let known = Known::read(KNOWN)?;
    let played = stream::iter(&recordings).map(async |recording| {
        let differences = differences(recording, &known).await?;
        anyhow::Ok((recording.sequence.number, differences))
    });
    let found: Vec<_> = played.buffer_unordered(8).collect().await;
    let mut shown = String::new();
    for sequence in found {
        let (number, differences) = sequence?;
        for Difference {
            step,
            class,
            genuine,
            lariat,
        } in differences
        {
            writeln!(
                shown,
                "sequence {number}, step {step}: {class}\n  genuine: {genuine}\n  lariat:  {lariat}"
            )?;
        }
    }
    assert!(shown.is_empty(), "{shown}");
    Ok(())
}
