//! The methods that add objects, which [`Desired`](super::Desired) and [`Step`](super::Step) have in common.

/// Defines them for a type with a list `objects` of `Dependent`, which is in scope.
macro_rules! adding_objects {
    () => {
        /// Adds a typed object.
        pub fn with<K>(self, object: &K) -> Self
        where
            K: ::kube::Resource<DynamicType = ()> + ::serde::Serialize,
        {
            self.with_dependent(Dependent::new(object))
        }

        /// Adds a dynamic object, whose kind is in its [`types`](kube::api::DynamicObject::types).
        pub fn with_dynamic(self, object: &::kube::api::DynamicObject) -> Self {
            self.with_dependent(Dependent::dynamic(object))
        }

        /// Adds an object as JSON, with `apiVersion`, `kind` and a name.
        pub fn with_value(self, object: ::serde_json::Value) -> Self {
            self.with_dependent(Dependent::value(object))
        }

        /// Adds an object with options of its own.
        pub fn with_dependent(mut self, dependent: Dependent) -> Self {
            self.objects.push(dependent);
            self
        }
    };
}

pub(super) use adding_objects;
