//! Custom resource definitions: installed, established and served before anything needs them.

mod compare;
mod ensure;
mod error;
mod json;
mod options;
mod report;
mod requests;
mod versions;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat_core::Gvk;
use parking_lot::Mutex;

pub use ensure::ensure_definitions;
pub use error::{DefinitionError, InstallError};
pub use options::{DefinitionOptions, Install, with_definition_version};
pub use report::{DefinitionChange, DefinitionReport, Skew};

use crate::operator::Operator;

/// What an operator installs.
#[derive(Default)]
pub(crate) struct Definitions(Mutex<State>);

#[derive(Default, Clone)]
struct State {
    definitions: Vec<CustomResourceDefinition>,
    options: DefinitionOptions,
}

impl Definitions {
    /// Returns the group, the mode and the names there are, for the rules they need.
    pub(crate) fn names(&self) -> (Install, Vec<String>) {
        let state = self.0.lock();
        let names = state.definitions.iter();
        let names = names.filter_map(|definition| definition.metadata.name.clone());
        (state.options.install, names.collect())
    }
}

impl Operator {
    /// Has a definition installed by [`start`](Self::start) and [`run`](Self::run), before anything else; can be said
    /// any number of times. What is done is told at [`ensure_definitions`](ensure_definitions()).
    ///
    /// ```no_run
    /// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    /// use lariat_operator::{DefinitionOptions, Install, Operator};
    ///
    /// # fn example(operator: Operator, widgets: CustomResourceDefinition, gadgets: CustomResourceDefinition) {
    /// // `Widget::crd()`, where Widget derives kube's CustomResource.
    /// operator.installs(widgets);
    /// operator.installs(gadgets);
    /// // Where somebody else installs them:
    /// operator.definition_options(DefinitionOptions::default().install(Install::Verify));
    /// # }
    /// ```
    pub fn installs(&self, definition: CustomResourceDefinition) {
        let mut state = self.shared().definitions.0.lock();
        // Modules of one program may both need it.
        if !state.definitions.contains(&definition) {
            state.definitions.push(definition);
        }
    }

    /// Sets how definitions are installed (default: see [`DefinitionOptions`]).
    pub fn definition_options(&self, options: DefinitionOptions) {
        self.shared().definitions.0.lock().options = options;
    }

    /// Makes sure that the definitions this operator [installs](Self::installs) are there, now; a start does so by
    /// itself.
    ///
    /// # Errors
    ///
    /// As for [`ensure_definitions`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// As for [`ensure_definitions`].
    pub async fn ensure_definitions(&self) -> Result<Vec<DefinitionReport>, InstallError> {
        let State {
            definitions,
            options,
        } = self.shared().definitions.0.lock().clone();
        if definitions.is_empty() {
            return Ok(Vec::new());
        }
        let options = options.or_field_manager(self.name());
        let client = self.factory().client();
        let reports = ensure_definitions(&client, &definitions, &options).await?;
        // Somebody may have asked too early, and a start would believe that the kinds are missing.
        let mapper = self.factory().caches().clients().mapper();
        for spec in definitions.iter().map(|definition| &definition.spec) {
            for version in &spec.versions {
                mapper.forget(&Gvk::new(&spec.group, &version.name, "").api_path());
            }
        }
        Ok(reports)
    }
}
