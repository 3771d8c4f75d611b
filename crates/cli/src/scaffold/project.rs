//! The files of a new project: templates with the names filled in.

use std::path::Path;

use super::additions::Names;
use super::options::Options;
use super::own;
use super::source::ResolvedSource;
use crate::quote::shell;

/// Each file of a project, and its template.
macro_rules! templates {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../template/", $path, ".in")))),*]
    };
}

const TEMPLATES: &[(&str, &str)] = templates![
    "Cargo.toml",
    "Containerfile",
    "README.md",
    "deploy/chart/Chart.yaml",
    "deploy/chart/templates/operator.yaml",
    "deploy/chart/templates/rbac.yaml",
    "deploy/chart/values.yaml",
    "deploy/crd.yaml",
    "deploy/kustomization.yaml",
    "deploy/namespace.yaml",
    "deploy/operator.yaml",
    "example.yaml",
    "scripts/image.sh",
    "src/api.rs",
    "src/lib.rs",
    "src/main.rs",
    "src/reconcile.rs",
    "tests/console.rs",
    "tests/manifests.rs",
    "tests/operator.rs",
];

/// Where the permissions are, which are no template: their order depends on the names.
pub(super) const PERMISSIONS: [&str; 2] = ["deploy/rbac.yaml", "deploy/chart/files/rbac.yaml"];

/// Files of a project's folder that git and docker ignore.
const IGNORED: &str = "/target\n/kubeconfig\n";

/// A project before it is written.
pub(super) struct Project {
    names: Names,
}

impl Project {
    pub(super) fn new(options: &Options, lariat: &ResolvedSource) -> Self {
        let (name, kind, group) = (&options.name, options.kind(), &options.group);
        Self {
            names: Names(vec![
                ("{{name}}", name.as_str().to_owned()),
                ("{{crate}}", name.snake()),
                ("{{kind}}", kind.as_str().to_owned()),
                ("{{singular}}", kind.singular()),
                ("{{plural}}", kind.plural()),
                ("{{group}}", group.as_str().to_owned()),
                ("{{dependency}}", lariat.dependency()),
                ("{{install}}", lariat.install()),
                ("{{build_context}}", lariat.build_context()),
                ("{{copy_lariat}}", lariat.copy()),
                ("{{build_folder}}", lariat.folder()),
                ("{{version}}", env!("CARGO_PKG_VERSION").to_owned()),
            ]),
        }
    }

    /// Returns the files, each under its path within the project.
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, String)> {
        let made = TEMPLATES
            .iter()
            .map(|(path, text)| (*path, self.names.fill(text)));
        let ignored = [".dockerignore", ".gitignore"].map(|path| (path, IGNORED.to_owned()));
        made.chain(ignored)
    }

    /// Returns the next steps with the project.
    pub(super) fn next_steps(&self, folder: &Path) -> String {
        let (named, quoted) = (folder.display(), shell(folder));
        let commands = |text: &str| {
            let lines = text.lines().map(|line| format!("  {line}\n"));
            lines.collect::<String>()
        };
        let first = commands(&format!(
            "cd {quoted}\n\
             cargo test          # on a cluster of its own, in memory\n\
             cargo run           # on the cluster of your kubeconfig"
        ));
        let cluster = commands(&format!(
            "{} cluster --simulate-workloads --kubeconfig kubeconfig\n\
             export KUBECONFIG=$PWD/kubeconfig",
            own::command(folder)
        ));
        let about = self
            .names
            .fill("is an operator for {{kind}} ({{group}}/v1alpha1)");
        format!(
            "{named} {about}\n\n{first}\n\
             If you have no cluster, this runs one in memory until Ctrl-C. The last line is for the other shells:\n\n{cluster}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::additions;
    use crate::scaffold::names::Kind;
    use crate::testing::parsed;

    /// Kinds of these names would be something else in the project.
    #[test]
    fn what_the_templates_import_cannot_be_a_kind() {
        let all = TEMPLATES.iter().chain(additions::TEMPLATES);
        for (path, text) in all.filter(|(path, _)| path.ends_with(".rs")) {
            let imports = text.lines().filter(|line| line.starts_with("use "));
            let words = imports.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
            for word in words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())) {
                let is_own = matches!(word, "Spec" | "Status");
                assert!(is_own || Kind::new(word).is_err(), "{path}: {word}");
            }
        }
    }

    #[test]
    fn every_name_is_filled_in() {
        let options: Options = parsed(&["shop-operator"]).unwrap();
        let source = ResolvedSource::Path("../lariat".to_owned());
        let project = Project::new(&options, &source);
        for (path, text) in project.files() {
            // Helm's own have a blank or a dash.
            let mut opened = text.split("{{").skip(1);
            let is_filled = opened.all(|rest| rest.starts_with([' ', '-']));
            assert!(is_filled, "{path}: {text}");
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{path}");
        }
        assert_eq!(project.files().count(), TEMPLATES.len() + 2);
        let next_steps = project.next_steps(Path::new("here"));
        assert!(next_steps.starts_with("here is an operator for Shop (example.com/v1alpha1)\n"));
        let manifest = project.files().find(|(path, _)| *path == "Cargo.toml");
        let dependency = "\nlariat = { path = \"../lariat/crates/lariat\" }\n";
        assert!(manifest.unwrap().1.contains(dependency));
        // Both say how to have a cluster, which writes what is ignored.
        let readme = project.files().find(|(path, _)| *path == "README.md");
        let readme = readme.unwrap().1;
        let install = "cargo install --path ../lariat/crates/cli\nlariat cluster ";
        assert!(readme.contains(install), "{readme}");
        for text in [next_steps, readme] {
            for line in [
                " cluster --simulate-workloads --kubeconfig kubeconfig\n",
                "export KUBECONFIG=$PWD/kubeconfig",
            ] {
                assert!(text.contains(line), "{text}");
            }
        }
        assert!(IGNORED.lines().any(|line| line == "/kubeconfig"));
    }
}
