//! Sequences with the answers of a genuine server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::normal::Normal;
use crate::side::{Answer, Names};
use crate::step::Sequence;

/// A sequence and what a genuine server answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recording {
    /// The class of differences it showed when it was recorded.
    pub class: String,
    /// The requests.
    pub sequence: Sequence,
    /// The answers, without what no two servers have in common.
    pub answers: Vec<Answer>,
}

impl Recording {
    /// Makes a recording of what a genuine server answered.
    #[must_use]
    pub fn new(class: &str, sequence: &Sequence, names: &Names, answers: &[Answer]) -> Self {
        let mut normal = Normal::new(names);
        Self {
            class: class.to_owned(),
            sequence: sequence.clone(),
            answers: sequence
                .steps
                .iter()
                .zip(answers)
                .map(|(step, answer)| normal.answer(step.id, answer))
                .collect(),
        }
    }
}

/// Reads a folder of recordings: a file per kind, a recording per line.
fn read(folder: &Path) -> Result<Vec<Recording>> {
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    // The order of a folder is chance.
    paths.sort();
    let mut recordings = Vec::new();
    for path in paths {
        for line in fs::read_to_string(&path)?.lines() {
            recordings
                .push(serde_json::from_str(line).with_context(|| path.display().to_string())?);
        }
    }
    Ok(recordings)
}

/// Adds recordings to a folder; those of the same class are replaced.
///
/// # Errors
///
/// A file cannot be read or written.
pub fn write(folder: &Path, recordings: Vec<Recording>) -> Result<()> {
    fs::create_dir_all(folder)?;
    // New ones come last, and so replace those of the same class.
    let all = read(folder)?.into_iter().chain(recordings);
    let mut files: BTreeMap<String, BTreeMap<String, Recording>> = BTreeMap::new();
    for recording in all {
        let kind = recording
            .class
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned();
        files
            .entry(kind)
            .or_default()
            .insert(recording.class.clone(), recording);
    }
    for (kind, recordings) in files {
        let lines: Vec<String> = recordings
            .values()
            .map(serde_json::to_string)
            .collect::<Result<_, _>>()?;
        fs::write(
            folder.join(format!("{kind}.jsonl")),
            lines.join("\n") + "\n",
        )?;
    }
    Ok(())
}
