//! Sequences with the answers of a genuine server.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Names};
use crate::normal::Normal;
use crate::step::Sequence;

/// A sequence and what a genuine server answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recording {
    /// The requests.
    pub sequence: Sequence,
    /// The answers, without what no two servers have in common.
    pub answers: Vec<Answer>,
}

impl Recording {
    /// Makes a recording of what a genuine server answered.
    #[must_use]
    pub fn new(sequence: &Sequence, names: &Names, answers: &[Answer]) -> Self {
        let mut normal = Normal::new(names);
        let answers = sequence.steps.iter().zip(answers);
        Self {
            answers: answers
                .map(|(step, answer)| normal.answer(step.id, answer))
                .collect(),
            sequence: sequence.clone(),
        }
    }
}

/// Reads a file of recordings, one in each line.
///
/// # Errors
///
/// It cannot be read, or a line is not a recording.
pub fn read(path: &Path) -> Result<Vec<Recording>> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| shown.to_string())?;
    let lines = text.lines().enumerate();
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("{shown}:{}", number + 1))
        })
        .collect()
}

/// Writes a file of recordings.
///
/// # Errors
///
/// It cannot be written.
pub fn write(path: &Path, recordings: &[Recording]) -> Result<()> {
    let mut text = String::new();
    for recording in recordings {
        text += &serde_json::to_string(recording)?;
        text.push('\n');
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}
