//! The shortest sequence that still shows a difference.

use serde_json::Value;

use crate::bench::Bench;
use crate::compare::Difference;
use crate::edit::{Edit, paths};
use crate::step::{Body, Sequence};

/// How often a sequence is tried while it is made shorter.
const TRIALS: usize = 120;

/// Shrinks a sequence while a class of differences is met.
///
/// Returns it with the difference.
pub async fn shrink(
    bench: &Bench,
    sequence: &Sequence,
    difference: &Difference,
) -> (Sequence, Difference) {
    let mut shrinking = Shrinking {
        bench,
        difference: difference.clone(),
        shortest: sequence.clone(),
        trials: TRIALS,
    };
    // Steps first: fewer requests make every later trial shorter.
    shrinking.steps().await;
    shrinking.bodies().await;
    shrinking.queries().await;
    (shrinking.shortest, shrinking.difference)
}

struct Shrinking<'a> {
    bench: &'a Bench,
    /// What the shortest sequence shows.
    difference: Difference,
    shortest: Sequence,
    trials: usize,
}

impl Shrinking<'_> {
    /// Tries a shorter sequence, and keeps it if it shows the difference.
    async fn keeps(&mut self, shorter: Sequence) -> bool {
        if self.trials == 0 {
            return false;
        }
        self.trials -= 1;
        let found = self.bench.run(&shorter).await.unwrap_or_default();
        let class = &self.difference.class;
        let met = found
            .differences
            .into_iter()
            .find(|difference| difference.class == *class);
        let Some(difference) = met else {
            return false;
        };
        self.difference = difference;
        self.shortest = shorter;
        true
    }

    async fn steps(&mut self) {
        // Halves first, from the end.
        let mut size = self.shortest.steps.len().div_ceil(2);
        while size > 0 {
            let mut end = self.shortest.steps.len();
            while end > 0 {
                let begin = end.saturating_sub(size);
                let mut shorter = self.shortest.clone();
                shorter.steps.drain(begin..end);
                if !shorter.steps.is_empty() {
                    self.keeps(shorter).await;
                }
                end = begin;
            }
            size /= 2;
        }
    }

    async fn bodies(&mut self) {
        for place in 0..self.shortest.steps.len() {
            match self.shortest.steps[place].body.clone() {
                Body::Json(document) => self.members(place, &document).await,
                Body::Edited { edits, .. } => self.edits(place, edits.len()).await,
                Body::None | Body::Text(_) => {}
            }
        }
    }

    async fn members(&mut self, place: usize, document: &Value) {
        let mut gone: Vec<Vec<String>> = Vec::new();
        let mut members = paths(document);
        // Outer members first: with one of them all inner ones are gone.
        members.sort_by_key(Vec::len);
        for path in members {
            let is_index = |name: &String| name.parse::<usize>().is_ok();
            // Items stay, as the paths of those behind a removed one would no longer be right.
            if path.last().is_some_and(is_index)
                || gone.iter().any(|prefix| path.starts_with(prefix))
            {
                continue;
            }
            let mut shorter = self.shortest.clone();
            let Body::Json(document) = &mut shorter.steps[place].body else {
                return;
            };
            Edit {
                path: path.clone(),
                value: None,
            }
            .apply(document);
            if self.keeps(shorter).await {
                gone.push(path);
            }
        }
    }

    async fn edits(&mut self, place: usize, count: usize) {
        // From the end, so that the indexes before it stay right.
        for index in (0..count).rev() {
            let mut shorter = self.shortest.clone();
            if let Body::Edited { edits, .. } = &mut shorter.steps[place].body
                && edits.len() > 1
            {
                edits.remove(index);
                self.keeps(shorter).await;
            }
        }
    }

    async fn queries(&mut self) {
        for place in 0..self.shortest.steps.len() {
            for index in (0..self.shortest.steps[place].query.len()).rev() {
                let mut shorter = self.shortest.clone();
                let step = &mut shorter.steps[place];
                // Without it more would be deleted than the sequence made.
                let is_kept = |name: &str| matches!(name, "dryRun" | "labelSelector");
                if step.method == "DELETE" && is_kept(&step.query[index].0) {
                    continue;
                }
                step.query.remove(index);
                self.keeps(shorter).await;
            }
        }
    }
}
