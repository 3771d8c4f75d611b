//! What is added to a project: files, and the lines that name them.

use anyhow::Result;

use super::changes::Changes;
use super::names::{Group, Kind, Name};

/// Fills the placeholders of a template.
pub(super) struct Names(pub(super) Vec<(&'static str, String)>);

impl Names {
    pub(super) fn fill(&self, template: &str) -> String {
        let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
        self.0.iter().fold(template.to_owned(), fill)
    }
}

/// Reads a template of what is added.
macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../template/add/", $path, ".in"))
    };
}

/// The templates that are compiled, for the tests of names.
#[cfg(test)]
pub(super) const TEMPLATES: &[(&str, &str)] = &[
    ("api.rs", template!("api.rs")),
    ("reconcile.rs", template!("reconcile.rs")),
    ("webhook.rs", template!("webhook.rs")),
    ("webhooks.rs", template!("webhooks.rs")),
    ("tests_webhooks.rs", template!("tests_webhooks.rs")),
];

/// What the program does with `WEBHOOKS`, before it runs and after.
const START: &str = r#"let webhooks = match std::env::var("WEBHOOKS") {
    Ok(address) => {
        let parsed = address.parse();
        let parsed = parsed.with_context(|| {
            format!("WEBHOOKS is not an address such as 127.0.0.1:9443: {address}")
        })?;
        Some({{crate}}::webhooks::serve(&operator, parsed).await?)
    }
    Err(_) => None,
};"#;
const STOP: &str = "if let Some(server) = webhooks {\n    server.shutdown().await;\n}";

const ENVIRONMENT: &str = "\
# API servers call webhooks there, by way of the Service.
- name: WEBHOOKS
  value: 0.0.0.0:9443";
const PORTS: &str = "- name: webhooks\n  containerPort: 9443";
const LIFECYCLE: &str = "\
# API servers notice only after some seconds that a Pod ends.
lifecycle:
  preStop:
    sleep:
      seconds: 5";

/// The readiness of a program without webhooks, and that of one with webhooks.
///
/// It decides whether the Service sends calls to the Pod, so it is that of the server of the webhooks.
const READY: &str = "\
              path: /readyz
              port: metrics
";
const READY_FOR_CALLS: &str = "\
              # API servers call the webhooks of this Pod while it is ready, whatever its caches and handlers do.
              path: /readyz
              port: webhooks
              scheme: HTTPS
";

/// Where the manifests of the program are.
const OPERATORS: [&str; 2] = ["deploy/operator.yaml", CHART_OPERATOR];
const CHART_OPERATOR: &str = "deploy/chart/templates/operator.yaml";

/// A project to which something is added.
pub(super) struct Additions<'a> {
    pub(super) name: &'a Name,
    pub(super) group: &'a Group,
    pub(super) changes: &'a mut Changes,
}

impl Additions<'_> {
    fn names(&self, kind: &Kind) -> Names {
        Names(vec![
            ("{{name}}", self.name.as_str().to_owned()),
            ("{{crate}}", self.name.snake()),
            ("{{group}}", self.group.as_str().to_owned()),
            ("{{kind}}", kind.as_str().to_owned()),
            ("{{plural}}", kind.plural()),
            ("{{hook}}", kind.singular()),
        ])
    }

    fn module(&mut self, module: &str) -> Result<()> {
        let line = format!("pub mod {module};");
        self.changes.insert("src/lib.rs", "modules", &line)
    }

    /// Adds a kind.
    pub(super) fn kind(&mut self, kind: &Kind) -> Result<()> {
        let module = format!("{}_api", kind.snake());
        let path = format!("src/{module}.rs");
        let text = self.names(kind).fill(template!("api.rs"));
        self.changes.create(&path, text)?;
        self.module(&module)?;
        let line = format!("{module}::{}::crd(),", kind.as_str());
        self.changes.insert("src/lib.rs", "kinds", &line)
    }

    /// Adds a reconciler of a kind that is in a module.
    pub(super) fn reconciler(&mut self, name: &Name, kind: &Kind, kind_module: &str) -> Result<()> {
        let module = format!("{}_reconcile", name.snake());
        let path = format!("src/{module}.rs");
        let mut names = self.names(kind);
        names.0.extend([
            ("{{reconciler}}", name.as_str().to_owned()),
            ("{{condition}}", name.condition()),
            ("{{kind_module}}", kind_module.to_owned()),
        ]);
        self.changes
            .create(&path, names.fill(template!("reconcile.rs")))?;
        self.module(&module)?;
        let line = format!("{module}::register(&operator)?;");
        self.changes.insert("src/lib.rs", "reconcilers", &line)
    }

    /// Adds the webhooks of a kind that is in a module.
    pub(super) fn webhook(&mut self, kind: &Kind, kind_module: &str) -> Result<()> {
        if self.changes.text("src/webhooks.rs")?.is_none() {
            self.server(kind, kind_module)?;
        }
        let module = format!("{}_webhook", kind.snake());
        let path = format!("src/{module}.rs");
        let mut names = self.names(kind);
        names.0.push(("{{kind_module}}", kind_module.to_owned()));
        self.changes
            .create(&path, names.fill(template!("webhook.rs")))?;
        self.module(&module)?;
        let line = format!("webhooks = crate::{module}::add(webhooks);");
        self.changes.insert("src/webhooks.rs", "webhooks", &line)
    }

    /// Adds what serves webhooks: code, a Service, a Secret, a port, and a test by the first kind.
    fn server(&mut self, kind: &Kind, kind_module: &str) -> Result<()> {
        let mut names = self.names(kind);
        // That of `src/api.rs` runs an image.
        let spec = if kind_module == "api" {
            r#"{"image": "example"}"#
        } else {
            "{}"
        };
        names.0.push(("{{spec}}", spec.to_owned()));
        let changes = &mut *self.changes;
        for (path, template) in [
            ("src/webhooks.rs", template!("webhooks.rs")),
            ("tests/webhooks.rs", template!("tests_webhooks.rs")),
            ("deploy/webhooks.yaml", template!("deploy/webhooks.yaml")),
        ] {
            changes.create(path, names.fill(template))?;
        }
        changes.insert("Cargo.toml", "features", "\"webhook\",")?;
        changes.insert("src/lib.rs", "reconcilers", "webhooks::declare(&operator);")?;
        changes.insert("src/main.rs", "start", &names.fill(START))?;
        changes.insert("src/main.rs", "stop", STOP)?;
        changes.insert("deploy/kustomization.yaml", "resources", "- webhooks.yaml")?;
        // Whoever does not use Helm may have deleted the chart.
        let has_chart = changes.text(CHART_OPERATOR)?.is_some();
        for path in OPERATORS
            .iter()
            .filter(|path| has_chart || **path != CHART_OPERATOR)
        {
            changes.insert(path, "env", ENVIRONMENT)?;
            changes.insert(path, "ports", PORTS)?;
            changes.insert(path, "lifecycle", LIFECYCLE)?;
            changes.replace(path, READY, READY_FOR_CALLS)?;
        }
        if has_chart {
            let path = "deploy/chart/templates/webhooks.yaml";
            changes.create(
                path,
                names.fill(template!("deploy/chart/templates/webhooks.yaml")),
            )?;
        }
        self.module("webhooks")
    }
}
