//! A map of values by their type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// One value of each type, created on first use.
///
/// Features keep their state in it, so that the common state does not depend on them.
#[derive(Default)]
pub(crate) struct Extensions(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Extensions {
    /// Returns the value of a type, which is its default at first.
    pub(crate) fn get<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.get_or_init(T::default)
    }

    /// Returns the value of a type, creating it on first use.
    ///
    /// A lock is held during `make`, which must not request other values.
    pub(crate) fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = self.0.lock();
        let value = all
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(make()));
        let typed = Arc::clone(value).downcast();
        typed.unwrap_or_else(|_| unreachable!("values are kept under their own type"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_of_each_type() {
        let all = Extensions::default();
        assert_eq!(*all.get_or_init(|| 7_u32), 7);
        assert_eq!(*all.get::<u32>(), 7);
        assert_eq!(*all.get::<u64>(), 0);
        assert!(Arc::ptr_eq(&all.get::<u64>(), &all.get::<u64>()));
    }
}
