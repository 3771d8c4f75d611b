//! Which changes of a Pod are checked.

use serde_json::Value;

use super::pod::{Pod, text};

/// Returns whether a change of a Pod could matter: containers are added, or run something else.
///
/// Everything else that a check looks at cannot be changed.
// `isSignificantPodUpdate`.
#[must_use]
pub fn is_significant_update(new: Pod<'_>, old: Pod<'_>) -> bool {
    fn list<'a>(pod: Pod<'a>, name: &str) -> &'a [Value] {
        pod.spec[name].as_array().map_or(&[], Vec::as_slice)
    }
    let differ = |new: &Value, old: &Value| text(&new["image"]) != text(&old["image"]);
    let fixed = ["containers", "initContainers"];
    let fixed = fixed.map(|name| (list(new, name), list(old, name)));
    if fixed.iter().any(|(new, old)| new.len() != old.len()) {
        return true;
    }
    let mut pairs = fixed.iter().flat_map(|(new, old)| new.iter().zip(*old));
    if pairs.any(|(new, old)| differ(new, old)) {
        return true;
    }
    let known = list(old, "ephemeralContainers");
    list(new, "ephemeralContainers").iter().any(|container| {
        let mut known = known.iter();
        let was = known.find(|each| text(&each["name"]) == text(&container["name"]));
        was.is_none_or(|was| differ(container, was))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Pod<'_> {
        Pod {
            metadata: &Value::Null,
            spec,
        }
    }

    #[test]
    fn changes_of_images_and_containers_matter() {
        let old = json!({
            "containers": [{"name": "a", "image": "1"}],
            "ephemeralContainers": [{"name": "e", "image": "1"}],
        });
        for (new, matters) in [
            (old.clone(), false),
            (
                json!({"containers": [{"name": "a", "image": "1", "tty": true}], "hostPID": true}),
                false,
            ),
            (json!({"containers": [{"name": "a", "image": "2"}]}), true),
            (json!({"containers": []}), true),
            (
                json!({"containers": [{"image": "1"}], "initContainers": [{}]}),
                true,
            ),
            (
                json!({"containers": [{"image": "1"}], "ephemeralContainers": [{"name": "f"}]}),
                true,
            ),
            (
                json!({"containers": [{"image": "1"}], "ephemeralContainers": [{"name": "e"}]}),
                true,
            ),
        ] {
            assert_eq!(
                is_significant_update(pod(&new), pod(&old)),
                matters,
                "{new}"
            );
        }
    }
}
