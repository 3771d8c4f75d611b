//! What is written about differences.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::compare::{Comparison, Difference, Refusals};
use crate::step::{Body, How, Sequence, Step};

/// Differences by class.
#[derive(Debug, Default)]
pub struct Report {
    /// Requests on each server.
    pub requests: usize,
    /// Requests that the genuine server refused.
    pub refused: Refusals,
    /// Sequences whose difference was not met a second time.
    pub unsteady: usize,
    /// The classes.
    pub classes: BTreeMap<String, Class>,
}

/// A class of differences.
#[derive(Debug, Clone)]
pub struct Class {
    /// How often it was met.
    pub count: usize,
    /// One of the sequences that show it.
    pub sequence: Sequence,
    /// The difference there.
    pub difference: Difference,
}

impl Report {
    /// Adds what a sequence showed.
    pub fn add(&mut self, sequence: &Sequence, found: Comparison) {
        self.requests += sequence.steps.len();
        self.refused.genuine += found.refused.genuine;
        self.refused.same += found.refused.same;
        for difference in found.differences {
            let class = self
                .classes
                .entry(difference.class.clone())
                .or_insert_with(|| Class {
                    count: 0,
                    sequence: sequence.clone(),
                    difference: difference.clone(),
                });
            class.count += 1;
            // Sequences end in any order, and the report is to be the same for the same seed.
            let is_earlier = sequence.number < class.sequence.number;
            if is_earlier {
                class.sequence = sequence.clone();
                class.difference = difference;
            }
        }
    }

    /// Returns the classes, the most frequent first.
    #[must_use]
    pub fn by_count(&self) -> Vec<(&String, &Class)> {
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_by_key(|(name, class)| (std::cmp::Reverse(class.count), *name));
        classes
    }
}

/// Writes a class with its example.
#[must_use]
pub fn example(class: &Class) -> String {
    let difference = &class.difference;
    let mut written = format!(
        "## {} × {}\n\nsequence {}",
        class.count, difference.class, class.sequence.number
    );
    let _ = writeln!(written, ", step {}\n", difference.step);
    let is_live = |step: &Step| step.how == How::Live;
    let steps = &class.sequence.steps;
    // What a watch sees depends on all that follows it.
    let of_watch = steps
        .iter()
        .any(|step| step.id == difference.step && is_live(step));
    for step in steps {
        if step.id <= difference.step || of_watch || is_live(step) {
            let _ = writeln!(written, "    {}", request(step));
        }
    }
    let _ = writeln!(written, "\n    genuine: {}", short(&difference.genuine));
    let _ = writeln!(written, "    lariat:  {}\n", short(&difference.lariat));
    written
}

fn short(text: &str) -> String {
    text.chars().take(1200).collect()
}

/// Writes a request as the arguments of curl, after the address.
fn request(step: &Step) -> String {
    let query: Vec<String> = step
        .query
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let query = if query.is_empty() {
        String::new()
    } else {
        format!("?{}", query.join("&"))
    };
    let mut written = format!(
        "[{}] curl -X{} '$URL{}{query}'",
        step.id, step.method, step.path
    );
    for (name, value) in &step.headers {
        if value != "application/json" {
            let _ = write!(written, " -H '{name}: {value}'");
        }
    }
    match &step.body {
        Body::None => {}
        Body::Json(value) => drop(write!(written, " -d '{value}'")),
        Body::Text(text) => drop(write!(written, " -d '{text}'")),
        Body::Edited { of, edits } => {
            let edits = serde_json::to_string(edits).unwrap_or_default();
            let _ = write!(written, " -d 'the answer of [{of}] with {edits}'");
        }
    }
    written
}
