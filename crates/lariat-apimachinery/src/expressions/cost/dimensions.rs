//! The sizes of values, as far as a schema limits them.

use std::collections::BTreeMap;

/// How large values of a schema can be.
// `DeclType`, as far as it is about sizes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dimensions {
    /// The most characters, elements or entries; zero for objects and numbers.
    most: u64,
    /// The fewest bytes of JSON for a value.
    least_bytes: i64,
    inside: Inside,
}

#[derive(Debug, Clone, Default)]
enum Inside {
    #[default]
    Nothing,
    /// The elements of a list.
    Elements(Box<Dimensions>),
    /// The values of a map, whose keys count as empty.
    Values(Box<Dimensions>),
    Fields(BTreeMap<String, Dimensions>),
}

/// The keys of maps.
static KEY: Dimensions = Dimensions {
    most: 0,
    least_bytes: 2,
    inside: Inside::Nothing,
};

impl Dimensions {
    /// Creates those of a value without parts.
    pub(crate) fn scalar(most: u64, least_bytes: i64) -> Self {
        Self {
            most,
            least_bytes,
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
        Self {
            inside: Inside::Values(Box::new(value)),
            ..Self::scalar(most, 2)
        }
    }

    pub(crate) fn object(fields: BTreeMap<String, Self>, least_bytes: i64) -> Self {
        Self {
            inside: Inside::Fields(fields),
            ..Self::scalar(0, least_bytes)
        }
    }

    pub(crate) fn least_bytes(&self) -> i64 {
        self.least_bytes
    }

    /// Returns the largest size of what is at a path below the variable.
    // `sizeEstimator.EstimateSize`.
    pub(super) fn most_at(&self, steps: &[&str]) -> Option<u64> {
        let mut at = self;
        for step in steps {
            at = match (*step, &at.inside) {
                ("@items" | "@values", Inside::Elements(part) | Inside::Values(part)) => part,
                ("@keys", Inside::Values(_)) => &KEY,
                (name, Inside::Fields(fields)) => fields.get(name)?,
                _ => return None,
            };
        }
        Some(at.most)
    }
}
