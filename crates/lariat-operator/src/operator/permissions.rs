//! The permissions an operator needs.

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
    /// Returns the permissions the operator needs, each with the reasons.
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
    /// | [`Reconciler::prunes`](crate::Reconciler::prunes) | delete, get, list | the formerly applied kind |
    /// | [`Rule::events`](crate::Rule::events), [`Reconciler::guard`](crate::Reconciler::guard) | create, patch | Events |
    /// | a reconciler whose [identity](lariat_controller::HandlerOptions::identity) impersonates others | impersonate | users, groups, service accounts, by name |
    /// | [`Reconciler::needs`](crate::Reconciler::needs), [`Operator::needs`] | any | anything |
    ///
    /// `owns` and `watches` declare reads. Writes are made by the reconciler's code and cannot be derived: declare them
    /// with [`Reconciler::applies`](crate::Reconciler::applies) and [`Reconciler::needs`](crate::Reconciler::needs).
    /// Declare `get` too, if single objects are read from the API server
    /// ([`with_fallback`](crate::CachedApi::with_fallback), [`get_live`](crate::CachedApi::get_live)) or a kind may
    /// exceed its memory budget. A missing declaration shows in a test that runs under the
    /// [manifests](Operator::manifests): the embedded cluster evaluates them.
    ///
    /// The permissions of a reconciler that impersonates a user are included, although the user needs them. The
    /// identities of other handlers, and of handles [with one](lariat_controller::SharedController::with_identity), are
    /// ignored.
    ///
    /// If the cache of a kind is restricted to some namespaces, so are all permissions of that kind.
    ///
    /// The result is complete once everything is registered. Handlers that were deregistered are still counted. Kinds
    /// [selected by a predicate](lariat_controller::SharedControllerFactory::for_all_kinds) are counted as far as
    /// discovery has found them.
    ///
    /// # Errors
    ///
    /// A kind that was named without its resource is not served, or discovery fails.
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
    /// The same program always returns the same role. [`manifests`](Self::manifests) restricts rules to namespaces
    /// where possible, and prints YAML.
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

    /// Returns a service account with roles and bindings, which prints as YAML.
    ///
    /// Permissions that are restricted to namespaces are in a Role of each. An account without a namespace is in
    /// `default`.
    ///
    /// ```no_run
    /// # async fn example(operator: lariat_operator::Operator) -> Result<(), Box<dyn std::error::Error>> {
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

    /// Makes [`start`](Self::start) and [`run`](Self::run) call [`check_access`](Self::check_access).
    ///
    /// The default is not to. A missing permission then shows as a cache that does not sync in time, or as an error of
    /// the reconciler that needs it.
    pub fn checks_access(&self) {
        let checks = self.state().feature::<ChecksAtStart>();
        checks.0.store(true, Ordering::Relaxed);
    }

    /// Asks the API server whether this program has the [permissions](Self::rules).
    ///
    /// One request is sent for each verb, at most eight at a time. If the program may do everything, a single request
    /// suffices.
    ///
    /// The requests are sent as the factory's client, without the identities of single handlers. Requests that are not
    /// answered, and kinds that are not served, are logged as warnings and skipped: a check that fails does not prevent
    /// a start.
    ///
    /// # Errors
    ///
    /// A permission is missing. The error has all of them, with the reasons, and the rules to add.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn check_access(&self) -> Result<(), AccessError> {
        let gathered = self.gather().await;
        for error in &gathered.unknown {
            tracing::warn!(
                error = lariat_core::describe(error),
                "what is needed of a kind is not checked"
            );
        }
        rbac::check(&self.factory().client(), gathered.permissions).await
    }

    pub(super) async fn check_access_if_asked(&self) -> Result<(), AccessError> {
        let checks = self.state().feature::<ChecksAtStart>();
        if checks.0.load(Ordering::Relaxed) {
            self.check_access().await
        } else {
            Ok(())
        }
    }

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
