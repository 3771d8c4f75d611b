//! The list of warnings.

use std::fmt;

use crate::quantity::Quantity;
use crate::validation::field::Field;

/// The warnings about an object, in the order of the API server.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    list: Vec<String>,
}

impl Warnings {
    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }

    pub(super) fn add(&mut self, text: impl Into<String>) {
        self.list.push(text.into());
    }

    /// Adds a warning about a member.
    pub(super) fn add_at(&mut self, at: &Field<'_>, text: impl fmt::Display) {
        self.list.push(format!("{at}: {text}"));
    }

    /// Warns of an amount of bytes that is not whole.
    // A fraction is legal for any quantity, and rounded up; `memory: 100m`, a tenth of a byte, is usually meant as
    // `100M`.
    pub(super) fn check_bytes(&mut self, amounts: &Field<'_>, name: &str) {
        for (key, amount) in amounts.entries().filter(|(key, _)| *key == name) {
            let quantity = Quantity::parse(amount.text());
            if let Some(quantity) = quantity.filter(|quantity| !quantity.has_whole_thousandths()) {
                let at = amounts.key(key);
                let text = quantity.to_string();
                let what = format!("fractional byte value {text:?} is invalid, must be an integer");
                self.add_at(&at, what);
            }
        }
    }

    /// Warns of a null selector, which selects nothing.
    pub(super) fn check_selector(&mut self, selector: &Field<'_>) {
        // An empty selector matches everything, a null one nothing; only the latter gets a warning.
        if !selector.is_set() {
            self.add_at(selector, "a null labelSelector results in matching no pod");
        }
    }
}
