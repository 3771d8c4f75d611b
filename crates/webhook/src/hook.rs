//! One webhook: its name, the requests for which it is called, and its options.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{MatchCondition, RuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lariat_core::{Gvk, ResourceKind, Scope};

use crate::admission::Operation;

/// The reaction of the API server if a webhook cannot be called, or its call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailurePolicy {
    /// The request fails.
    #[default]
    Fail,
    /// The request continues without the webhook.
    Ignore,
}

/// Whether a webhook has effects other than its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SideEffects {
    /// It has none.
    #[default]
    None,
    /// It has none for a [dry run](crate::Admission::is_dry_run).
    NoneOnDryRun,
}

/// Whether a webhook is called for other versions of the kinds in its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MatchPolicy {
    /// Yes: the API server converts the object to the version of the rule.
    #[default]
    Equivalent,
    /// No: only requests in the version of the rule are sent.
    Exact,
}

/// One webhook: its name, the requests for which it is called, and its options.
///
/// `K` is the type of the objects that its handler gets. The rule is derived from it: creations and updates of its
/// kind, in its version.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::webhook::{FailurePolicy, Hook, Operation};
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

/// A webhook with the type of its handler erased.
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
    /// Creates a webhook for a type's kind.
    ///
    /// The name has lower-case letters, digits and dashes. It is the last part of the path, `/validate/quota`, and the
    /// first part of the full name, `quota.widgets.demo.dev`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::webhook::Hook;
    ///
    /// // Creations and updates of Pods.
    /// let quota = Hook::<Pod>::new("quota");
    /// # let _ = quota;
    /// ```
    pub fn new(name: &str) -> Self {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        // kube has the scope as a type only, so types are compared.
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
    /// Creates a webhook for several kinds.
    ///
    /// Use it with a handler type that has no kind of its own, such as kube's `DynamicObject`.
    ///
    /// ```
    /// use kube::api::DynamicObject;
    /// use lariat::core::{ResourceKind, Scope};
    /// use lariat::webhook::Hook;
    /// use lariat::Gvk;
    ///
    /// let kinds = ["ConfigMap", "Secret"].map(|kind| {
    ///     let plural = format!("{}s", kind.to_lowercase());
    ///     ResourceKind::new(Gvk::new("", "v1", kind), &plural, Scope::Namespaced)
    /// });
    /// let hook = Hook::<DynamicObject>::of("data", kinds);
    /// # let _ = hook;
    /// ```
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
    /// Mutating handlers are called for creations and updates only, whatever is set here.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.settings.operations = operations.into_iter().collect();
        self
    }

    /// Calls the webhook for a subresource, such as `status`, not for the object.
    ///
    /// It can be called several times. The empty name stands for the object itself.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat::webhook::Hook;
    ///
    /// let scaling = Hook::<Deployment>::new("scaling").subresource("scale");
    /// # let _ = scaling;
    /// ```
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.settings.subresources.push(subresource.to_owned());
        self
    }

    /// Adds a rule as it is, beside those of the kinds.
    pub fn rule(mut self, rule: RuleWithOperations) -> Self {
        self.settings.rules.push(rule);
        self
    }

    /// Sets the reaction to a failed call (default: the request fails).
    pub fn failure_policy(mut self, failure_policy: FailurePolicy) -> Self {
        self.settings.failure_policy = failure_policy;
        self
    }

    /// Declares the side effects of the handler (default: none).
    pub fn side_effects(mut self, side_effects: SideEffects) -> Self {
        self.settings.side_effects = side_effects;
        self
    }

    /// Sets whether the webhook is called for other versions of its kinds.
    ///
    /// The default is yes ([`MatchPolicy::Equivalent`]).
    pub fn match_policy(mut self, match_policy: MatchPolicy) -> Self {
        self.settings.match_policy = match_policy;
        self
    }

    /// Sets how long the API server waits for the answer (default 10 s).
    ///
    /// The range is 1 to 30 seconds. Fractions of a second are rounded up.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Restricts the webhook to objects in namespaces with these labels.
    pub fn namespace_selector(mut self, selector: LabelSelector) -> Self {
        self.settings.namespaces = Some(selector);
        self
    }

    /// Restricts the webhook to objects with these labels, before or after the request.
    pub fn object_selector(mut self, selector: LabelSelector) -> Self {
        self.settings.objects = Some(selector);
        self
    }

    /// Restricts the webhook to requests for which a CEL expression is true.
    ///
    /// The API server evaluates the expression, so other requests cost no call. All conditions must be true, of which
    /// there may be 64.
    pub fn match_condition(mut self, name: &str, expression: &str) -> Self {
        self.settings.conditions.push(MatchCondition {
            name: name.to_owned(),
            expression: expression.to_owned(),
        });
        self
    }

    /// Calls a mutating webhook again if a later one changes the object.
    ///
    /// By default it is called once.
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
