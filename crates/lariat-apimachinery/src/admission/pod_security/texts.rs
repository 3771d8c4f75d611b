//! Lists of names in sentences.

use super::pod::Pod;

/// Puts names between quotation marks, which nothing inside of them escapes.
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\"{}\"", names.join("\", \""))
}

/// Returns the word for one thing, or for another number of them.
pub(super) fn plural(one: &'static str, many: &'static str, count: usize) -> &'static str {
    if count == 1 { one } else { many }
}

/// Names containers: `container "a"`.
pub(super) fn containers(names: &[&str]) -> String {
    let word = plural("container", "containers", names.len());
    format!("{word} {}", quoted(names.iter().copied()))
}

/// Names who sets something: the Pod, containers, or both; `None` if no one does.
pub(super) fn setters(by_pod: bool, names: &[&str]) -> Option<String> {
    match (by_pod, names) {
        (false, []) => None,
        (true, []) => Some("pod".to_owned()),
        (false, names) => Some(containers(names)),
        (true, names) => Some(format!("pod and {}", containers(names))),
    }
}

/// Names who has something wrong in the security context, where it may be set for the Pod and for each container.
pub(super) fn wrong_setters(
    pod: Pod<'_>,
    is_wrong: impl Fn(&serde_json::Value) -> bool,
) -> Option<String> {
    let names = pod.named(|container| is_wrong(container.security()));
    setters(is_wrong(pod.security()), &names)
}
