//! Rules: the declared form of permissions.

use std::sync::Arc;

use lariat_cache::{ClientIdentity, KindClient, View};
use lariat_controller::SharedController;
use lariat_core::Gvk;

/// A permission that a program needs: verbs on a resource.
///
/// Declare it with [`Operator::needs`](crate::Operator::needs) or [`Reconciler::needs`](crate::Reconciler::needs). A
/// rule on a kind does not need to know the resource, which is looked up when the permissions are gathered.
///
/// ```
/// use lariat::operator::Rule;
///
/// let rule = Rule::on("batch", "jobs").verbs(["create", "delete"]).because("nightly exports");
/// # let _ = rule;
/// ```
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until an operator or a reconciler declares it"]
pub struct Rule {
    pub(crate) target: Target,
    pub(crate) subresource: String,
    /// The names of the objects; empty for all.
    pub(crate) names: Vec<String>,
    /// The namespaces; empty for all.
    pub(crate) namespaces: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) because: Option<String>,
}

/// The resource of a rule.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Kind(Arc<KindClient>),
    Resource {
        group: String,
        plural: String,
    },
    /// Events, in the API group in which the operator writes them.
    ///
    /// The group is known only when the permissions are gathered.
    Events,
}

impl Rule {
    /// Creates a rule on a kind, without verbs.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Secret;
    /// use lariat::operator::Rule;
    /// use lariat::{Operator, SharedControllerFactory};
    ///
    /// # fn example(factory: SharedControllerFactory, operator: Operator) {
    /// let secrets = factory.for_object::<Secret>();
    /// operator.needs(Rule::of(&secrets).verbs(["create"]).in_namespaces(["shop"]));
    /// # }
    /// ```
    pub fn of<K: View>(kind: &SharedController<K>) -> Self {
        Self::new(Target::Kind(kind.client()))
    }

    /// Creates a rule on a resource, from its group (empty for core) and plural.
    pub fn on(group: &str, plural: &str) -> Self {
        Self::new(Target::Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
        })
    }

    /// Creates the rule for a finalizer on objects of a kind.
    ///
    /// It has `patch`, and `get` for objects that change between the read and the write.
    pub fn finalizer<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).verbs(["get", "patch"])
    }

    /// Creates the rule for the status of objects of a kind, which has `patch`.
    pub fn status<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).subresource("status").verbs(["patch"])
    }

    /// Creates the rule for objects of a kind that are applied and pruned.
    ///
    /// It has `create`, `patch` and `delete`, and `get` and `list` for objects that are not cached.
    ///
    /// The API server lets a program grant only permissions that it has itself. So a program that applies roles or
    /// bindings also needs every permission that they grant, or the verbs `escalate` on roles and `bind` on the bound
    /// roles. These are not derived: granting them to every program that applies roles would be too much.
    /// [`Manifests`](crate::Manifests) print a reminder.
    pub fn apply<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).verbs(["create", "delete", "get", "list", "patch"])
    }

    /// Creates the rule for owners whose deletion waits for their dependents.
    ///
    /// Clusters with the admission plugin OwnerReferencesPermissionEnforcement, such as OpenShift, require `update` on
    /// the finalizers of the owner for references with `blockOwnerDeletion`.
    pub fn owner<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).subresource("finalizers").verbs(["update"])
    }

    /// Creates the rule for Events, which has `create` and `patch`.
    ///
    /// The group is the one in which the operator [writes Events](crate::EventOptions::api) when the permissions are
    /// gathered.
    pub fn events() -> Self {
        Self::new(Target::Events).verbs(["create", "patch"])
    }

    fn new(target: Target) -> Self {
        Self {
            target,
            subresource: String::new(),
            names: Vec::new(),
            namespaces: Vec::new(),
            verbs: Vec::new(),
            because: None,
        }
    }

    /// Adds verbs, such as `get`, `list` or `*`.
    ///
    /// A rule without verbs has no effect.
    pub fn verbs<V: Into<String>>(mut self, verbs: impl IntoIterator<Item = V>) -> Self {
        self.verbs.extend(verbs.into_iter().map(Into::into));
        self
    }

    /// Restricts the rule to a subresource, such as `status` or `scale`.
    pub fn subresource(self, subresource: &str) -> Self {
        let subresource = subresource.to_owned();
        Self {
            subresource,
            ..self
        }
    }

    /// Restricts the rule to objects of some names; an empty list means all.
    ///
    /// Kubernetes cannot restrict creations by name.
    pub fn named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Restricts the rule to some namespaces.
    ///
    /// An empty list means those to which the kind's cache is restricted, or all.
    pub fn in_namespaces<N: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = N>,
    ) -> Self {
        self.namespaces
            .extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// Sets the reason, for the error if the permission is missing.
    ///
    /// The default is the name of the reconciler or operator.
    pub fn because(self, because: impl Into<String>) -> Self {
        let because = Some(because.into());
        Self { because, ..self }
    }

    pub(crate) fn because_of(mut self, because: impl FnOnce() -> String) -> Self {
        // A reason that the program gave is kept.
        self.because.get_or_insert_with(because);
        self
    }

    /// Returns whether the rule allows deleting objects of a kind, in any version.
    pub(super) fn is_of_deletions(&self, gvk: &Gvk) -> bool {
        // RBAC knows groups and resources, but no versions.
        let is_it = |own: &Gvk| own.group() == gvk.group() && own.kind() == gvk.kind();
        let mut verbs = self.verbs.iter();
        self.subresource.is_empty()
            && verbs.any(|verb| matches!(&**verb, "delete" | "*"))
            && self.gvk().is_some_and(is_it)
    }

    /// Returns the kind, if the rule has one.
    pub(crate) fn gvk(&self) -> Option<&Gvk> {
        match &self.target {
            Target::Kind(client) => Some(client.gvk()),
            Target::Resource { .. } | Target::Events => None,
        }
    }
}

/// The prefix of the user names of ServiceAccounts; namespace and name follow.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Returns the rules that impersonating an identity needs.
pub(crate) fn impersonation(identity: &ClientIdentity) -> Vec<Rule> {
    let rule = |plural: &str, names: &[String]| {
        let rule = Rule::on("", plural).named(names.iter().cloned());
        rule.verbs(["impersonate"])
    };
    let mut rules = Vec::new();
    if let Some(user) = identity.impersonated_user() {
        // The API server checks the impersonation of a ServiceAccount on `serviceaccounts`, not on `users`.
        let account = user.strip_prefix(SERVICE_ACCOUNT);
        rules.push(match account.and_then(|account| account.split_once(':')) {
            Some((namespace, name)) => {
                rule("serviceaccounts", &[name.to_owned()]).in_namespaces([namespace])
            }
            None => rule("users", &[user.to_owned()]),
        });
    }
    if !identity.impersonated_groups().is_empty() {
        rules.push(rule("groups", identity.impersonated_groups()));
    }
    rules
}
