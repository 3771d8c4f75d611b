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
/// Add it to a set with [`Desired::with_dependent`](crate::Desired::with_dependent), or to a step with
/// [`Step::with_dependent`](crate::Step::with_dependent). Options that are not set are those of the set.
///
/// ```
/// use lariat::operator::Dependent;
/// use lariat::Desired;
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
    /// Whether the object is created if it does not exist, and never changed.
    pub(super) create_only: bool,
    /// Whether the object is never deleted.
    pub(super) kept: bool,
    pub(super) adopts: Option<bool>,
    pub(super) force: Option<bool>,
    pub(super) immutable: Option<Immutable>,
    pub(super) ready: Option<ReadyRule>,
}

/// Decides whether an object is ready, from its state on the server.
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
            // Not every type serializes its `apiVersion` and `kind`.
            if let Some(object) = value.as_object_mut() {
                object.insert("apiVersion".to_owned(), json!(gvk.api_version()));
                object.insert("kind".to_owned(), json!(gvk.kind()));
            }
            value
        }))
    }

    /// Creates a wanted object from a dynamic one.
    ///
    /// Its kind is that of its [`types`](DynamicObject::types).
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

    /// Creates the object if it does not exist, and leaves its content alone then.
    ///
    /// By default an object is changed whenever it differs from the wanted state. Use this for content that differs in
    /// each call, such as generated passwords. The marks of an existing object are written whenever they differ: the
    /// labels of the set, the owner reference, and [`keep`](Self::keep). So are those of an object that the set adopts.
    pub fn create_only(mut self) -> Self {
        self.options.create_only = true;
        self
    }

    /// Keeps the object when it is no longer wanted.
    ///
    /// By default an object is deleted when it is no longer wanted, and when its owner is deleted. A kept object has
    /// the label `lariat.dev/keep` and no owner reference, so neither pruning, nor the garbage collector, nor a
    /// [replacement](Immutable::Replace) deletes it. The label is written in the first call that wants to keep the
    /// object, also if its content is refused. Without an owner reference, [`owns`](crate::Reconciler::owns) does not
    /// notice its changes. If the former owner does not exist any more, a set that [adopts](Self::adopts) objects takes
    /// the object over.
    pub fn keep(mut self) -> Self {
        self.options.kept = true;
        self
    }

    /// Sets whether an existing object without a controller is adopted.
    ///
    /// So is an object that an owner has left which is gone. The default is the option of [the
    /// set](crate::Apply::adopts).
    pub fn adopts(mut self, adopts: bool) -> Self {
        self.options.adopts = Some(adopts);
        self
    }

    /// Sets whether fields that other field managers own are taken over.
    ///
    /// The default is the option of [the set](crate::Apply::force).
    pub fn force(mut self, force: bool) -> Self {
        self.options.force = Some(force);
        self
    }

    /// Sets what is done if immutable fields differ.
    ///
    /// The default is the option of [the set](crate::Apply::on_immutable).
    pub fn on_immutable(mut self, immutable: Immutable) -> Self {
        self.options.immutable = Some(immutable);
        self
    }

    /// Sets a function that decides whether the object is ready.
    ///
    /// The default is [`Readiness::of`]. The function gets the object as it is on the server. It runs on the worker, so
    /// it must not block.
    ///
    /// ```
    /// use lariat::operator::{Dependent, Readiness};
    /// use serde_json::json;
    ///
    /// let queue = json!({"apiVersion": "demo.dev/v1", "kind": "Queue", "metadata": {"name": "jobs"}});
    /// let queue = Dependent::value(queue).ready_when(|queue| {
    ///     match queue["status"]["url"].as_str() {
    ///         Some(_) => Readiness::Ready,
    ///         None => Readiness::in_progress("it has no URL yet"),
    ///     }
    /// });
    /// ```
    pub fn ready_when(
        mut self,
        rule: impl Fn(&Value) -> Readiness + Send + Sync + 'static,
    ) -> Self {
        self.options.ready = Some(Arc::new(rule));
        self
    }

    /// Requires a condition of the object to be true before it counts as ready.
    ///
    /// Use it for kinds whose controllers set conditions; see [`Readiness::of_condition`]. By default an object counts
    /// as ready until its controller has set the condition for the first time.
    pub fn ready_on(self, condition: &str) -> Self {
        let condition = condition.to_owned();
        self.ready_when(move |object| Readiness::of_condition(object, &condition))
    }
}

impl fmt::Debug for Dependent {
    /// Prints the options only: the content may be secret.
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
