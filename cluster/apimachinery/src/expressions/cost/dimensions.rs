//! The sizes of values, as far as a schema limits them.

use std::collections::BTreeMap;

/// How large values of a schema can be.
// `DeclType`, as far as it is about sizes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dimensions {
    /// The most characters, elements or entries; zero for objects and numbers.
    most: u64,
    /// The fewest bytes of JSON for a value.
    min_json_bytes: i64,
    inside: Inside,
}

#[derive(Debug, Clone, Default)]
enum Inside {
    #[default]
    Nothing,
    /// The elements of a list.
    Elements(Box<Dimensions>),
    Entries(Box<Entries>),
    Fields(BTreeMap<String, Dimensions>),
}

/// The entries of a map.
#[derive(Debug, Clone)]
struct Entries {
    value: Dimensions,
    /// The longest key; zero in CRDs, as if all keys were empty.
    longest_key: u64,
    /// Whether an entry can be selected by its name, as a field can.
    has_names: bool,
}

impl Dimensions {
    /// Creates those of a value without parts.
    pub(crate) fn scalar(most: u64, min_json_bytes: i64) -> Self {
        Self {
            most,
            min_json_bytes,
            inside: Inside::Nothing,
        }
    }

    pub(crate) fn list(element: Self, most: u64) -> Self {
        Self {
            inside: Inside::Elements(Box::new(element)),
            ..Self::scalar(most, 2)
        }
    }

    pub(crate) fn map(value: Self, most: u64) -> Self {
        let entries = Entries {
            value,
            longest_key: 0,
            has_names: false,
        };
        Self {
            inside: Inside::Entries(Box::new(entries)),
            ..Self::scalar(most, 2)
        }
    }

    /// Changes the longest key of a map.
    pub(crate) fn with_longest_key(mut self, longest: u64) -> Self {
        if let Inside::Entries(entries) = &mut self.inside {
            entries.longest_key = longest;
        }
        self
    }

    /// Makes the sizes of a map's values known where they are selected by name.
    pub(crate) fn with_names(mut self) -> Self {
        if let Inside::Entries(entries) = &mut self.inside {
            entries.has_names = true;
        }
        self
    }

    pub(crate) fn object(fields: BTreeMap<String, Self>, min_json_bytes: i64) -> Self {
        Self {
            inside: Inside::Fields(fields),
            ..Self::scalar(0, min_json_bytes)
        }
    }

    pub(crate) fn min_json_bytes(&self) -> i64 {
        self.min_json_bytes
    }

    /// Returns the largest size of what is at a path below the variable.
    // `sizeEstimator.EstimateSize`.
    pub(super) fn most_at(&self, steps: &[&str]) -> Option<u64> {
        let mut at = self;
        for (number, step) in steps.iter().enumerate() {
            at = match (*step, &at.inside) {
                ("@items" | "@values", Inside::Elements(element)) => element,
                ("@items" | "@values", Inside::Entries(entries)) => &entries.value,
                ("@keys", Inside::Entries(entries)) => {
                    let is_last = number + 1 == steps.len();
                    return is_last.then_some(entries.longest_key);
                }
                (name, Inside::Fields(fields)) => fields.get(name)?,
                (_, Inside::Entries(entries)) if entries.has_names => &entries.value,
                _ => return None,
            };
        }
        Some(at.most)
    }
}
