//! Values of a trial that the simulation carries and shows.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A value that the simulation carries without knowing its type.
///
/// Two are equal if their texts are.
#[derive(Clone)]
pub struct Opaque {
    value: Arc<dyn Any + Send + Sync>,
    text: Arc<str>,
}

impl Opaque {
    /// Wraps a value, with the text that stands for it in the trace.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(value: T, text: &str) -> Self {
        Self {
            value: Arc::new(value),
            text: Arc::from(text),
        }
    }

    /// Returns the value; `None` if it has another type.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opaque").field(&self.text).finish()
    }
}
