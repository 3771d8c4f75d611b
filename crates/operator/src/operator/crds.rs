//! The CRDs that an operator installs at its start.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat_core::Gvk;
use parking_lot::Mutex;

use super::operator::Operator;
use crate::crd::{CrdOptions, CrdReport, Install, InstallError, ensure_crds};
use crate::needs::Rule;

/// The CRDs to install, and the options.
#[derive(Default, Clone)]
struct Crds {
    definitions: Vec<CustomResourceDefinition>,
    options: CrdOptions,
}

impl Operator {
    /// Adds a CRD that [`start`](Self::start) and [`run`](Self::run) install first.
    ///
    /// It can be called any number of times. See [`ensure_crds`](ensure_crds()) for what is written.
    ///
    /// ```no_run
    /// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    /// use lariat::operator::{CrdOptions, Install};
    /// use lariat::Operator;
    ///
    /// # fn example(operator: Operator, widgets: CustomResourceDefinition, gadgets: CustomResourceDefinition) {
    /// // `Widget::crd()`, where Widget derives kube's CustomResource.
    /// operator.installs(widgets);
    /// operator.installs(gadgets);
    /// // In clusters where they are installed separately:
    /// operator.crd_options(CrdOptions::default().install(Install::Verify));
    /// # }
    /// ```
    pub fn installs(&self, definition: CustomResourceDefinition) {
        let installed = self.crds();
        let mut crds = installed.lock();
        // Several modules of one program may add the same CRD.
        if !crds.definitions.contains(&definition) {
            crds.definitions.push(definition);
        }
    }

    /// Sets the options of the installation (default: see [`CrdOptions`]).
    pub fn crd_options(&self, options: CrdOptions) {
        self.crds().lock().options = options;
    }

    /// Installs the CRDs of this operator now; a start does it by itself.
    ///
    /// Without CRDs it sends no request.
    ///
    /// # Errors
    ///
    /// As for [`ensure_crds`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// As for [`ensure_crds`].
    pub async fn ensure_crds(&self) -> Result<Vec<CrdReport>, InstallError> {
        let Crds {
            definitions,
            options,
        } = self.crds().lock().clone();
        if definitions.is_empty() {
            return Ok(Vec::new());
        }
        let options = options
            .or_field_manager(self.name())
            .planning(self.state().only_plans());
        // Installed before the election: every replica needs the kinds for its caches.
        let client = self.factory().unfenced_client();
        let reports = ensure_crds(&client, &definitions, &options).await?;
        // Discovery may have been cached before the CRDs were served. A start would then find the kinds missing.
        let mapper = self.factory().caches().clients().mapper();
        for spec in definitions.iter().map(|definition| &definition.spec) {
            for version in &spec.versions {
                mapper.forget(&Gvk::new(&spec.group, &version.name, "").api_path());
            }
        }
        Ok(reports)
    }

    /// Installs the CRDs before a start.
    pub(super) async fn install(&self) -> Result<(), InstallError> {
        self.ensure_crds().await.map(drop)
    }

    /// Returns the rules that installing the CRDs needs.
    pub(super) fn crd_rules(&self) -> Vec<Rule> {
        let crds = self.crds().lock().clone();
        let names: Vec<String> = crds
            .definitions
            .into_iter()
            .filter_map(|definition| definition.metadata.name)
            .collect();
        if names.is_empty() {
            return Vec::new();
        }
        let rule = || {
            let rule = Rule::on("apiextensions.k8s.io", "customresourcedefinitions");
            rule.because("the CRDs it installs")
        };
        let (create, named): (bool, &[&str]) = match crds.options.install {
            Install::CreateOrUpdate => (true, &["get", "patch"]),
            Install::CreateOnly => (true, &["get"]),
            Install::Verify => (false, &["get"]),
        };
        let mut rules = vec![rule().named(names).verbs(named.iter().copied())];
        if create {
            // Creations cannot be restricted by name.
            rules.push(rule().verbs(["create"]));
        }
        rules
    }

    /// Returns the CRDs of the operator, which are created on first use.
    fn crds(&self) -> Arc<Mutex<Crds>> {
        self.state().feature()
    }
}
