//! Rules: what somebody says they need.

use std::sync::Arc;

use lariat_cache::{ClientIdentity, KindClient, View};
use lariat_controller::SharedController;
use lariat_core::Gvk;

/// Something that needs to be allowed: verbs on a resource.
///
/// A rule of a kind does not need to know the resource: it is looked up when rules are asked for.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until somebody needs it"]
pub struct Rule {
    pub(crate) target: Target,
    pub(crate) subresource: String,
    /// Of objects; none for all.
    pub(crate) names: Vec<String>,
    /// None for all.
    pub(crate) namespaces: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) because: Option<String>,
}

/// What a rule is about.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Kind(Arc<KindClient>),
    Resource {
        group: String,
        plural: String,
    },
    /// Events, in the group in which the operator writes them when rules are asked for.
    Events,
}

impl Rule {
    /// Begins a rule on a kind.
    pub fn of<K: View>(kind: &SharedController<K>) -> Self {
        Self::new(Target::Kind(kind.client()))
    }

    /// Begins a rule on a resource, given its group (empty for core) and plural.
    pub fn on(group: &str, plural: &str) -> Self {
        Self::new(Target::Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
        })
    }

    /// Makes the rule for a finalizer on objects of a kind: they are patched, and read when they changed meanwhile.
    pub fn finalizer<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).verbs(["get", "patch"])
    }

    /// Makes the rule for the status of objects of a kind, which is patched.
    pub fn status<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).subresource("status").verbs(["patch"])
    }

    /// Makes the rule for objects of a kind that are applied and pruned: they are created, patched and deleted, and
    /// looked at before that where the cache does not show them.
    ///
    /// Who applies roles and bindings also needs what those allow, or the verbs `escalate` on roles and `bind` on the
    /// roles that are bound: the API server lets a program give away only what it has. That cannot be seen from here,
    /// and giving it to every program that applies roles would be too much; [`Manifests`](crate::Manifests) remind of
    /// it.
    pub fn apply<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).verbs(["create", "delete", "get", "list", "patch"])
    }

    /// Makes the rule for objects of a kind that own others and keep their deletion waiting for those: clusters that
    /// enforce it (OpenShift; the admission plugin OwnerReferencesPermissionEnforcement) ask for `update` on their
    /// finalizers.
    pub fn owner<K: View>(kind: &SharedController<K>) -> Self {
        Self::of(kind).subresource("finalizers").verbs(["update"])
    }

    /// Makes the rule for Events, which are created, and patched when they repeat; in the group in which the operator
    /// [writes them](crate::EventOptions::api) when rules are asked for.
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

    /// Adds verbs, such as `get`, `list` or `*`; a rule without any is none.
    pub fn verbs<V: Into<String>>(mut self, verbs: impl IntoIterator<Item = V>) -> Self {
        self.verbs.extend(verbs.into_iter().map(Into::into));
        self
    }

    /// Narrows the rule to a subresource, such as `status` or `scale`.
    pub fn subresource(self, subresource: &str) -> Self {
        let subresource = subresource.to_owned();
        Self {
            subresource,
            ..self
        }
    }

    /// Narrows the rule to objects of some names; of none given, it is for all. Creations cannot be narrowed.
    pub fn named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Narrows the rule to some namespaces; of none given, it is for those the kind's cache is restricted to, or all.
    pub fn in_namespaces<N: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = N>,
    ) -> Self {
        self.namespaces
            .extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// Says who needs it, for the error when it is missing (default: the reconciler, or the operator).
    pub fn because(self, because: impl Into<String>) -> Self {
        let because = Some(because.into());
        Self { because, ..self }
    }

    pub(crate) fn because_of(mut self, because: impl FnOnce() -> String) -> Self {
        self.because.get_or_insert_with(because);
        self
    }

    /// Returns whether it is a rule for deleting objects of a kind, in whichever version.
    pub(super) fn is_of_deletions(&self, gvk: &Gvk) -> bool {
        let is_it = |own: &Gvk| own.group() == gvk.group() && own.kind() == gvk.kind();
        let mut verbs = self.verbs.iter();
        self.subresource.is_empty()
            && verbs.any(|verb| matches!(&**verb, "delete" | "*"))
            && self.gvk().is_some_and(is_it)
    }

    /// Returns the kind, if it is a rule on one.
    pub(crate) fn gvk(&self) -> Option<&Gvk> {
        match &self.target {
            Target::Kind(client) => Some(client.gvk()),
            Target::Resource { .. } | Target::Events => None,
        }
    }
}

/// Who is a service account rather than a user, before its namespace and name.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Returns the rules for acting as somebody else.
pub(crate) fn impersonation(identity: &ClientIdentity) -> Vec<Rule> {
    let rule = |plural: &str, names: &[String]| {
        let rule = Rule::on("", plural).named(names.iter().cloned());
        rule.verbs(["impersonate"])
    };
    let mut rules = Vec::new();
    if let Some(user) = identity.impersonated_user() {
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
