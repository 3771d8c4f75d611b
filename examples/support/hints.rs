//! What a user of `--watch` can try.

use std::fmt;

use super::{Paint, Stage, paint, say};

impl Stage {
    /// Suggests a command for whoever watches; `k` is kubectl in the example's namespace.
    pub fn suggest(&self, command: impl fmt::Display) {
        self.suggestions.lock().push(command.to_string());
    }

    /// Suggests to apply a manifest that names the example's namespace.
    pub fn suggest_manifest(&self, path: &str) {
        let namespace = &self.namespace;
        self.suggest(format_args!(
            "sed s/NAMESPACE/{namespace}/ {path} | k apply --filename -"
        ));
    }

    pub(super) async fn wait_for_the_end(&self) {
        self.step(format_args!(
            "running; namespace {} is yours, Ctrl-C ends; from another shell, for instance",
            self.namespace
        ));
        let hint = |line: &str| say(paint(Paint::Dim, format!("    {line}"), 0));
        let (kubectl, namespace) = (&self.place.kubectl, &self.namespace);
        hint(&format!(
            "k() {{ {kubectl} --namespace {namespace} \"$@\"; }}"
        ));
        self.suggestions.lock().iter().for_each(|line| hint(line));
        std::future::pending().await
    }
}
