//! A wanted object with options of its own.

use std::fmt;
use std::sync::Arc;

use kube::api::{DynamicObject, TypeMeta};
use lariat_core::Gvk;
use serde::Serialize;
use serde_json::{Value, json};

use super::set::Immutable;
use crate::readiness::Readiness;

/// A wanted object of a set, with options that differ from those of the set.
///
/// Added to a set by [`Desired::with_dependent`](crate::Desired::with_dependent), or to a step by
/// [`Step::with_dependent`](crate::Step::with_dependent).
///
/// ```
/// use lariat_operator::{Dependent, Desired};
/// use serde_json::json;
///
/// let password = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
///     "stringData": {"password": "a random one, another in each call"}});
/// let desired = Desired::new().with_dependent(Dependent::value(password).create_only().keep());
/// assert_eq!(desired.len(), 1);
/// ```
#[derive(Clone)]
#[must_use = "an object is not applied before it is added to a set"]
pub struct Dependent {
    pub(super) object: Result<Value, Bad>,
    pub(super) options: ObjectOptions,
}

/// An object that could not be serialized.
#[derive(Debug, Clone)]
pub(super) struct Bad {
    pub(super) gvk: Gvk,
    pub(super) name: String,
    pub(super) reason: String,
}

/// The options of one object; `None` for those of the set.
#[derive(Clone, Default)]
pub(super) struct ObjectOptions {
    /// It is created if there is none, and not changed afterwards.
    pub(super) create_only: bool,
    /// It is never deleted.
    pub(super) kept: bool,
    pub(super) adopts: Option<bool>,
    pub(super) force: Option<bool>,
    pub(super) immutable: Option<Immutable>,
    pub(super) ready: Option<ReadyRule>,
}

/// Returns whether an object is ready.
pub(super) type ReadyRule = Arc<dyn Fn(&Value) -> Readiness + Send + Sync>;

impl Dependent {
    /// Creates a wanted object from a typed one.
    pub fn new<K>(object: &K) -> Self
    where
        K: kube::Resource<DynamicType = ()> + Serialize,
    {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        let value = serde_json::to_value(object).map_err(|error| Bad {
            gvk: gvk.clone(),
            name: object.meta().name.clone().unwrap_or_default(),
            reason: error.to_string(),
        });
        Self::of(value.map(|mut value| {
            if let Some(object) = value.as_object_mut() {
                object.insert("apiVersion".to_owned(), json!(gvk.api_version()));
                object.insert("kind".to_owned(), json!(gvk.kind()));
            }
            value
        }))
    }

    /// Creates a wanted object from a dynamic one, whose kind is in its [`types`](DynamicObject::types).
    pub fn dynamic(object: &DynamicObject) -> Self {
        let TypeMeta { api_version, kind } = object.types.clone().unwrap_or_default();
        Self::of(serde_json::to_value(object).map_err(|error| Bad {
            gvk: gvk_of(&api_version, &kind).unwrap_or_else(|| Gvk::new("", "", &kind)),
            name: object.metadata.name.clone().unwrap_or_default(),
            reason: error.to_string(),
        }))
    }

    /// Creates a wanted object from JSON.
    pub fn value(object: Value) -> Self {
        Self::of(Ok(object))
    }

    fn of(object: Result<Value, Bad>) -> Self {
        Self {
            object,
            options: ObjectOptions::default(),
        }
    }

    /// Creates the object if there is none, and never changes it (default: it is kept as wanted).
    ///
    /// This is for content that differs in each call, such as generated passwords. Labels and owner of an object that
    /// the set adopts are set once.
    pub fn create_only(mut self) -> Self {
        self.options.create_only = true;
        self
    }

    /// Never deletes the object (default: it is deleted once it is not wanted, or its owner is deleted).
    ///
    /// It has a label, `lariat.dev/keep`, and no owner reference, so that neither pruning nor the garbage collector
    /// deletes it, nor a [replacement](Immutable::Replace). Without an owner reference,
    /// [`owns`](crate::Reconciler::owns) does not notice its changes. A set that [adopts](Self::adopts) it takes it over
    /// from a former owner that does not exist any more.
    pub fn keep(mut self) -> Self {
        self.options.kept = true;
        self
    }

    /// Sets whether an existing object without a controller is adopted (default: as [the set](crate::Apply::adopts)).
    pub fn adopts(mut self, adopts: bool) -> Self {
        self.options.adopts = Some(adopts);
        self
    }

    /// Sets whether fields of other managers are taken over (default: as [the set](crate::Apply::force)).
    pub fn force(mut self, force: bool) -> Self {
        self.options.force = Some(force);
        self
    }

    /// Sets what is done if immutable fields differ (default: as [the set](crate::Apply::on_immutable)).
    pub fn on_immutable(mut self, immutable: Immutable) -> Self {
        self.options.immutable = Some(immutable);
        self
    }

    /// Sets a function that decides whether the object is ready (default: [`Readiness::of`]).
    ///
    /// It gets the object as it is on the server, and must be quick.
    pub fn ready_when(
        mut self,
        rule: impl Fn(&Value) -> Readiness + Send + Sync + 'static,
    ) -> Self {
        self.options.ready = Some(Arc::new(rule));
        self
    }

    /// Requires a condition to be true: [`Readiness::of_condition`].
    ///
    /// Use it for kinds whose controllers set conditions. By default an object counts as ready until its controller has
    /// set the condition for the first time.
    pub fn ready_on(self, condition: &str) -> Self {
        let condition = condition.to_owned();
        self.ready_when(move |object| Readiness::of_condition(object, &condition))
    }
}

impl fmt::Debug for Dependent {
    /// Prints the options; contents stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dependent")
            .field("create_only", &self.options.create_only)
            .field("kept", &self.options.kept)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ObjectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectOptions").finish_non_exhaustive()
    }
}

/// Returns the kind; `None` if a part is missing.
pub(super) fn gvk_of(api_version: &str, kind: &str) -> Option<Gvk> {
    format!("{api_version}/{kind}").parse().ok()
}
