//! One webhook: its name, what it is called for, and how.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{MatchCondition, RuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lariat_core::{Gvk, ResourceKind, Scope};

use crate::admission::Operation;

/// What the API server does if a webhook cannot be called, or its call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailurePolicy {
    /// The request fails.
    #[default]
    Fail,
    /// The request goes on without the webhook.
    Ignore,
}

/// Whether a webhook does anything beside answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SideEffects {
    /// It has none.
    #[default]
    None,
    /// It has none for a [dry run](crate::Admission::is_dry_run).
    NoneOnDryRun,
}

/// Whether a webhook is called for other versions of what its rules name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MatchPolicy {
    /// It is: the API server converts the object to the version of the rule.
    #[default]
    Equivalent,
    /// It is not.
    Exact,
}

/// One webhook: its name, what it is called for, and how.
///
/// `K` is the type as which its handler gets objects. The rule follows from it: its kind, in its version, and creations
/// and updates of it.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat_webhook::{FailurePolicy, Hook, Operation};
///
/// let quota = Hook::<Pod>::new("quota")
///     .operations([Operation::Create, Operation::Delete])
///     .failure_policy(FailurePolicy::Ignore)
///     .timeout(Duration::from_secs(3))
///     .match_condition("not-by-nodes", "!('system:nodes' in request.userInfo.groups)");
/// # let _ = quota;
/// ```
#[must_use = "a webhook is called once a handler is registered with it"]
pub struct Hook<K> {
    pub(crate) settings: HookSettings,
    object: PhantomData<fn() -> K>,
}

/// A webhook without the type of its handler.
#[derive(Debug, Clone)]
pub(crate) struct HookSettings {
    pub(crate) name: String,
    pub(crate) kinds: Vec<ResourceKind>,
    pub(crate) subresources: Vec<String>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) rules: Vec<RuleWithOperations>,
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) side_effects: SideEffects,
    pub(crate) match_policy: MatchPolicy,
    pub(crate) timeout: Duration,
    pub(crate) namespaces: Option<LabelSelector>,
    pub(crate) objects: Option<LabelSelector>,
    pub(crate) conditions: Vec<MatchCondition>,
    pub(crate) reinvokes: bool,
}

/// The default timeout of API servers.
const TIMEOUT: Duration = Duration::from_secs(10);

impl<K> Hook<K>
where
    K: kube::Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    /// Creates a webhook of a type's kind, with a name of lower-case letters, digits and dashes.
    ///
    /// The name is the last part of its path, and the first of its full name, `quota.widgets.demo.dev`.
    pub fn new(name: &str) -> Self {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        let is_cluster = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        let scope = if is_cluster {
            Scope::Cluster
        } else {
            Scope::Namespaced
        };
        Self::of(name, [ResourceKind::new(gvk, &K::plural(&()), scope)])
    }
}

impl<K> Hook<K> {
    /// Creates a webhook of some kinds, for types that are of none, such as kube's `DynamicObject`.
    pub fn of(name: &str, kinds: impl IntoIterator<Item = ResourceKind>) -> Self {
        Self {
            settings: HookSettings {
                name: name.to_owned(),
                kinds: kinds.into_iter().collect(),
                subresources: Vec::new(),
                operations: vec![Operation::Create, Operation::Update],
                rules: Vec::new(),
                failure_policy: FailurePolicy::default(),
                side_effects: SideEffects::default(),
                match_policy: MatchPolicy::default(),
                timeout: TIMEOUT,
                namespaces: None,
                objects: None,
                conditions: Vec::new(),
                reinvokes: false,
            },
            object: PhantomData,
        }
    }

    /// Sets the operations (default: creations and updates).
    ///
    /// Mutating handlers are called for creations and updates only.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.settings.operations = operations.into_iter().collect();
        self
    }

    /// Calls the webhook for a sub-resource, such as `status`, instead of for the object itself.
    ///
    /// Can be called several times; the empty name is the object itself.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.settings.subresources.push(subresource.to_owned());
        self
    }

    /// Adds a rule as it is, beside those of the kinds.
    pub fn rule(mut self, rule: RuleWithOperations) -> Self {
        self.settings.rules.push(rule);
        self
    }

    /// Sets what happens if the call fails (default: the request fails).
    pub fn failure_policy(mut self, failure_policy: FailurePolicy) -> Self {
        self.settings.failure_policy = failure_policy;
        self
    }

    /// Declares side effects (default: none).
    pub fn side_effects(mut self, side_effects: SideEffects) -> Self {
        self.settings.side_effects = side_effects;
        self
    }

    /// Sets whether the webhook is called for other versions of its kinds (default: it is).
    pub fn match_policy(mut self, match_policy: MatchPolicy) -> Self {
        self.settings.match_policy = match_policy;
        self
    }

    /// Sets how long the API server waits: 1 to 30 seconds (default 10 s), in whole seconds, rounded up.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Restricts the webhook to objects in namespaces with some labels.
    pub fn namespace_selector(mut self, selector: LabelSelector) -> Self {
        self.settings.namespaces = Some(selector);
        self
    }

    /// Restricts the webhook to objects with some labels, now or before.
    pub fn object_selector(mut self, selector: LabelSelector) -> Self {
        self.settings.objects = Some(selector);
        self
    }

    /// Restricts the webhook to requests for which a CEL expression is true.
    ///
    /// The API server evaluates it, so other requests cost no call. There may be 64 conditions, and all must be true.
    pub fn match_condition(mut self, name: &str, expression: &str) -> Self {
        self.settings.conditions.push(MatchCondition {
            name: name.to_owned(),
            expression: expression.to_owned(),
        });
        self
    }

    /// Calls a mutating webhook again if a later one changes the object (default: it is called once).
    pub fn reinvoke(mut self) -> Self {
        self.settings.reinvokes = true;
        self
    }
}

impl FailurePolicy {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

impl SideEffects {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::NoneOnDryRun => "NoneOnDryRun",
        }
    }
}

impl MatchPolicy {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Equivalent => "Equivalent",
            Self::Exact => "Exact",
        }
    }
}

impl<K> Clone for Hook<K> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            object: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Hook<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.settings).finish()
    }
}
