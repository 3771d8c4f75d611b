//! What the checks of a value found.

use std::collections::HashSet;

use super::fault::{Fault, FaultKind};

/// What a check found.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    faults: Vec<Fault>,
    /// The texts of the faults, once there are too many of them to be searched.
    texts: HashSet<String>,
    /// How many checks ran, by which the best of several alternatives is chosen.
    pub(super) checks: usize,
}

/// Fewer faults are searched from the front.
const FEW: usize = 16;

impl Outcome {
    pub(super) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Forgets the faults, but not how many checks ran.
    // The count stays, because it ranks the alternatives of `anyOf` and `oneOf`.
    pub(super) fn forget_faults(&mut self) {
        self.faults.clear();
        self.texts.clear();
    }

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds a fault, unless the same was said already.
    pub(super) fn add(&mut self, fault: Fault) {
        let is_new = if self.faults.len() < FEW {
            // `Result.AddErrors` compares texts alone; these contain the path, so the same fault at two places stays
            // two.
            self.faults.iter().all(|known| known.text != fault.text)
        } else {
            if self.texts.is_empty() {
                self.texts = self.faults.iter().map(|known| known.text.clone()).collect();
            }
            self.texts.insert(fault.text.clone())
        };
        if is_new {
            self.faults.push(fault);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.checks += other.checks;
        // Outcomes are merged level by level; the first of each level is taken over as it is.
        if self.faults.is_empty() {
            (self.faults, self.texts) = (other.faults, other.texts);
            return;
        }
        for fault in other.faults {
            self.add(fault);
        }
    }

    /// Adds a fault of one field; the text goes on after `<field> in body`.
    pub(super) fn fail(&mut self, field: &str, kind: FaultKind, rest: &str) {
        self.add(Fault {
            field: Some(field.to_owned()),
            kind,
            text: format!("{field} in body {rest}"),
        });
    }

    /// Adds a fault of a field, with its whole text.
    pub(super) fn fail_with(&mut self, field: &str, kind: FaultKind, text: String) {
        self.add(Fault {
            field: Some(field.to_owned()),
            kind,
            text,
        });
    }

    /// Adds a fault that is not about one field.
    pub(super) fn fail_as_a_whole(&mut self, text: String) {
        self.add(Fault {
            field: None,
            // Go has no value here, and an empty text is what it then shows.
            kind: FaultKind::Invalid("".into()),
            text,
        });
    }
}
