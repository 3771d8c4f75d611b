//! The permissions that an operator needs, as rules, roles and checks.

use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lariat_cache::MapperError;
use lariat_core::ObjectKey;

use super::operator::Operator;
use crate::rbac::{self, AccessError, Gathered, Gathering, Manifests, Permission};

/// Whether a start checks the permissions.
#[derive(Default)]
struct ChecksAtStart(AtomicBool);

impl Operator {
    /// Returns the permissions that the operator needs, each with its reasons.
    ///
    /// They are derived from what is registered:
    ///
    /// | registered | verbs | on |
    /// |---|---|---|
    /// | a cache: reconcilers, handlers, `owns`, `watches`, [`CachedApi`](crate::CachedApi) | list, watch | the kind |
    /// | a cache without content ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand)) | get | the kind |
    /// | caches that are [saved](lariat_cache::CacheFactoryBuilder::warm_restart) between runs | get | the namespace `kube-system` |
    /// | [`Operator::installs`] | create, get, patch, by [`Install`](crate::Install) | CRDs, by name |
    /// | [`Rule::finalizer`](crate::Rule::finalizer) | get, patch | the kind |
    /// | [`Rule::status`](crate::Rule::status) | patch | the status of the kind |
    /// | [`Reconciler::writes_status`](crate::Reconciler::writes_status), [`Reconciler::report_errors`](crate::Reconciler::report_errors) | get, and patch | the kind, and its status |
    /// | [`Rule::apply`](crate::Rule::apply), [`Reconciler::applies`](crate::Reconciler::applies) | create, delete, get, list, patch | the applied kind |
    /// | [`Rule::owner`](crate::Rule::owner), [`Reconciler::applies`](crate::Reconciler::applies) | update | the finalizers of the owner |
    /// | [`Reconciler::applies`](crate::Reconciler::applies) | get, patch | the owner |
    /// | [`Reconciler::prunes`](crate::Reconciler::prunes) | delete, get, list | the kind applied before |
    /// | [`Rule::events`](crate::Rule::events), [`Reconciler::guard`](crate::Reconciler::guard), [`Reconciler::report_errors`](crate::Reconciler::report_errors) | create, patch | Events |
    /// | a reconciler whose [identity](lariat_controller::HandlerOptions::identity) impersonates others | impersonate | users, groups, service accounts, by name |
    /// | [`Reconciler::needs`](crate::Reconciler::needs), [`Operator::needs`] | any | anything |
    ///
    /// `owns` and `watches` declare reads. The code of a reconciler decides what it writes, so writes cannot be
    /// derived: declare them with [`Reconciler::applies`](crate::Reconciler::applies) and
    /// [`Reconciler::needs`](crate::Reconciler::needs). Also declare `get` if single objects are read from the API
    /// server ([`with_fallback`](crate::CachedApi::with_fallback), [`get_live`](crate::CachedApi::get_live)), or if a
    /// kind may exceed its memory budget. To find missing declarations, run a test under the
    /// [manifests](Operator::manifests): the embedded cluster enforces RBAC.
    ///
    /// The permissions of a reconciler that impersonates a user are included, although it is the user who needs them.
    /// The identities of other handlers, and of handles [with one](lariat_controller::SharedController::with_identity),
    /// are ignored.
    ///
    /// If the cache of a kind is restricted to some namespaces, so are all permissions on that kind. If those of all
    /// kinds are, so are the permissions on Events, unless the rule names its namespaces.
    ///
    /// Call it when everything is registered. Handlers that were deregistered are still included. Kinds that are
    /// [selected by a predicate](lariat_controller::SharedControllerFactory::for_all_kinds) are included as far as
    /// discovery has found them.
    ///
    /// ```no_run
    /// # async fn example(operator: lariat::Operator) -> Result<(), Box<dyn std::error::Error>> {
    /// for permission in operator.rules().await? {
    ///     println!("{permission}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// A kind that was given without its resource is not served, or discovery fails.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if the factory runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn rules(&self) -> Result<Vec<Permission>, MapperError> {
        self.gather().await.complete()
    }

    /// Returns a ClusterRole with all [rules](Self::rules), in every namespace.
    ///
    /// The role depends on what is registered only, so it can be compared with a stored one.
    /// [`manifests`](Self::manifests) restricts rules to namespaces where possible, and adds the ServiceAccount and the
    /// bindings.
    ///
    /// # Errors
    ///
    /// As for [`rules`](Self::rules).
    ///
    /// # Panics
    ///
    /// As [`rules`](Self::rules).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn cluster_role(&self, name: &str) -> Result<ClusterRole, MapperError> {
        let permissions = self.rules().await?;
        Ok(ClusterRole {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            rules: Some(rbac::rules(&permissions)),
            ..ClusterRole::default()
        })
    }

    /// Returns a ServiceAccount with its roles and bindings; the `Display` is YAML.
    ///
    /// Permissions that are restricted to namespaces are in a Role in each of them. An account without a namespace is
    /// in `default`.
    ///
    /// ```no_run
    /// # async fn example(operator: lariat::Operator) -> Result<(), Box<dyn std::error::Error>> {
    /// print!("{}", operator.manifests("widgeteer", &"demo/widgeteer".parse()?).await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`rules`](Self::rules).
    ///
    /// # Panics
    ///
    /// As [`rules`](Self::rules).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn manifests(
        &self,
        name: &str,
        account: &ObjectKey,
    ) -> Result<Manifests, MapperError> {
        Ok(Manifests::new(name, account, &self.rules().await?))
    }

    /// Makes a start check the permissions of this program.
    ///
    /// That is, [`start`](Self::start) and [`run`](Self::run) call [`check_access`](Self::check_access). By default
    /// they do not. A missing permission then shows as a cache that does not sync in time, or as an error of the
    /// reconciler that needs it.
    pub fn checks_access(&self) {
        let checks = self.state().feature::<ChecksAtStart>();
        checks.0.store(true, Ordering::Relaxed);
    }

    /// Checks that this program has all [permissions](Self::rules) it needs.
    ///
    /// It sends a SelfSubjectAccessReview for each verb, at most eight at a time. If the program may do everything, one
    /// request is enough. The requests are sent as the factory's client, without the identities of single handlers.
    ///
    /// Requests without an answer, and kinds that are not served, are logged as warnings and skipped: a check that
    /// fails does not prevent a start.
    ///
    /// # Errors
    ///
    /// A permission is missing. The error names all missing ones, with the reasons and the RBAC rules to add.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn check_access(&self) -> Result<(), AccessError> {
        self.check_known_access().await.map(drop)
    }

    /// Checks the permissions if [`checks_access`](Self::checks_access) was called; returns whether all were checked.
    ///
    /// Before CRDs are installed, the resource of a kind may be unknown.
    pub(super) async fn check_access_at_start(&self) -> Result<bool, AccessError> {
        let checks = self.state().feature::<ChecksAtStart>();
        if checks.0.load(Ordering::Relaxed) {
            self.check_known_access().await
        } else {
            Ok(true)
        }
    }

    async fn check_known_access(&self) -> Result<bool, AccessError> {
        let gathered = self.gather().await;
        for error in &gathered.unknown {
            tracing::warn!(
                error = lariat_core::describe(error),
                "the permissions on a kind are not checked"
            );
        }
        let is_complete = gathered.unknown.is_empty();
        rbac::check(&self.factory().client(), gathered.permissions).await?;
        Ok(is_complete)
    }

    /// Gathers the permissions from the factory, the declared rules and the CRDs.
    async fn gather(&self) -> Gathered {
        let mut rules = self.state().needs.rules();
        rules.extend(self.crd_rules());
        let gathering = Gathering {
            factory: self.factory(),
            rules,
            events_group: self.events_group(),
        };
        gathering.permissions().await
    }
}
