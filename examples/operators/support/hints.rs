//! Suggestions for users of `--watch`.

use std::fmt;
use std::fs;
use std::path::Path;

use super::{Paint, Stage, paint, say};

/// The placeholder for the example's namespace in a manifest.
const PLACEHOLDER: &str = "NAMESPACE";

impl Stage {
    /// Suggests a command to users of `--watch`; `k` is kubectl in the example's namespace.
    pub fn suggest(&self, command: impl fmt::Display) {
        self.suggestions.lock().push(command.to_string());
    }

    /// Suggests applying a manifest; the path is relative to the folder of the operators.
    pub fn suggest_manifest(&self, path: &str) {
        // The user may be in any folder.
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let is_template = fs::read_to_string(&path).is_ok_and(|text| text.contains(PLACEHOLDER));
        let (namespace, path) = (&self.namespace, quoted(&path.display().to_string()));
        if is_template {
            self.suggest(format_args!(
                "sed s/{PLACEHOLDER}/{namespace}/ {path} | k apply --filename -"
            ))
        } else {
            self.suggest(format_args!("k apply --filename {path}"))
        }
    }

    pub(super) async fn wait_for_the_end(&self) {
        self.step(format_args!(
            "running; namespace {} is yours, Ctrl-C ends; from another shell, for instance",
            self.namespace
        ));
        let hint = |line: &str| say(paint(Paint::Dim, format!("    {line}"), 0));
        let (kubectl, namespace) = (&self.target.kubectl, &self.namespace);
        hint(&format!(
            "k() {{ {kubectl} --namespace {namespace} \"$@\"; }}"
        ));
        self.suggestions.lock().iter().for_each(|line| hint(line));
        std::future::pending().await
    }
}

/// Quotes a word for a shell, if it has to be.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+:@".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_one_word_to_a_shell() {
        for (word, expected) in [
            ("/home/me/web.yaml", "/home/me/web.yaml"),
            ("/my home/$HOME", "'/my home/$HOME'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
