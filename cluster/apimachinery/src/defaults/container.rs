//! Containers.

use super::amounts;
use super::members::{each, inner, made, set, text};
use crate::object::Object;

pub(super) fn container(container: &mut Object) {
    // `SetDefaults_Container`, which serves ephemeral containers too.
    let policy = pull_policy(text(container, "image"));
    set(container, "imagePullPolicy", policy);
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    // No pointer in Go, so it is always there.
    set(container, "resources", Object::new());
    amounts::round_resources(container);
    each(container, "ports", |port| set(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        if let Some(from) = inner(variable, "valueFrom") {
            field_reference(from);
        }
    });
    // `SetDefaults_Probe`.
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = inner(container, probe) {
            set(probe, "timeoutSeconds", 1);
            set(probe, "periodSeconds", 10);
            set(probe, "successThreshold", 1);
            set(probe, "failureThreshold", 3);
            action(probe);
        }
    }
    if let Some(lifecycle) = inner(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = inner(lifecycle, hook) {
                action(hook);
            }
        }
    }
}

/// Sets the defaults of the action of a probe or a hook.
fn action(holder: &mut Object) {
    if let Some(get) = inner(holder, "httpGet") {
        set(get, "path", "/");
        set(get, "scheme", "HTTP");
    }
    if let Some(grpc) = inner(holder, "grpc") {
        set(grpc, "service", "");
    }
}

/// Fills in the version of a reference to a field of the Pod.
pub(super) fn field_reference(holder: &mut Object) {
    if let Some(field) = inner(holder, "fieldRef") {
        set(field, "apiVersion", "v1");
    }
}

const LONGEST_IMAGE: usize = 255;

/// Returns whether a text is a valid image name.
///
/// Behind the host it has no upper-case letters, and at most 255 characters.
fn is_image(image: &str) -> bool {
    let is_host = |part: &str| {
        // The rule of the `reference` library of Docker: otherwise the first part is a folder.
        part.contains(['.', ':']) || part == "localhost" || part.to_lowercase() != part
    };
    let path = match image.split_once('/') {
        Some((host, path)) if is_host(host) => path,
        _ => image,
    };
    let name = path.split(':').next().unwrap_or_default();
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/".contains(&byte);
    // An image without a folder is in `library/`.
    let folder = if image.contains('/') {
        0
    } else {
        "library/".len()
    };
    folder + name.len() <= LONGEST_IMAGE
        && name.bytes().all(fits)
        && name.split('/').all(is_path_component)
}

/// Returns whether a path component of an image name is valid.
///
/// Letters and digits are separated by one dot, by one or two underscores, or by dashes.
fn is_path_component(part: &str) -> bool {
    let is_separator =
        |text: &str| matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    let mut separators = part.split(|letter: char| letter.is_ascii_alphanumeric());
    // Between two letters there is an empty text, and so there is on both sides.
    separators.all(is_separator)
        && part.starts_with(|first: char| first.is_ascii_alphanumeric())
        && part.ends_with(|last: char| last.is_ascii_alphanumeric())
}

/// Images that may change under their name are always pulled.
pub(super) fn pull_policy(image: &str) -> &'static str {
    // Go ignores the error of the parser, whose empty tag is not "latest". A digest has no tag either.
    if image.contains('@') || !is_image(image) {
        return "IfNotPresent";
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    match name.split_once(':') {
        // The parser adds "latest" to an image without a tag.
        None | Some((_, "latest" | "")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Sets requests to the limits of resources that are not requested.
pub(super) fn requests(container: &mut Object) {
    let Some(resources) = made(container, "resources") else {
        return;
    };
    // Part of `SetDefaults_Pod`: only Pods get this, while templates keep what was written.
    let Some(limits) = inner(resources, "limits").map(|limits| limits.clone()) else {
        return;
    };
    if let Some(requests) = made(resources, "requests") {
        for (name, limit) in limits {
            set(requests, &name, limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_an_image_decides_whether_it_is_always_pulled() {
        for (image, policy) in [
            ("i", "Always"),
            ("i:latest", "Always"),
            ("i:1", "IfNotPresent"),
            ("r:5000/i", "Always"),
            ("r:5000/i:1", "IfNotPresent"),
            ("i@sha256:00", "IfNotPresent"),
            ("Host/i", "Always"),
            ("NoImage", "IfNotPresent"),
            ("x..y", "IfNotPresent"),
            ("a._b", "IfNotPresent"),
            ("a__b.c--d", "Always"),
            ("", "IfNotPresent"),
            (&"i".repeat(247), "Always"),
            (&"i".repeat(248), "IfNotPresent"),
            (&format!("r.io/{}", "i".repeat(255)), "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
