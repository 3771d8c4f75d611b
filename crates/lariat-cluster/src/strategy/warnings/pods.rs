//! Warnings about Pods, and templates of them.

use std::collections::HashMap;

use serde_json::Value;

/// A container and its path.
type Container<'a> = (String, &'a Value);

/// Returns what is doubtful about the spec of Pods at a path.
pub(super) fn warnings(spec: &Value, path: &str) -> Vec<String> {
    let containers: Vec<Container<'_>> = ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| items(spec, list, path))
        .collect();
    let mut warnings = Vec::new();
    for (path, constraint) in items(spec, "topologySpreadConstraints", path) {
        if constraint["labelSelector"].is_null() {
            warnings.push(format!(
                "{path}.labelSelector: a null labelSelector results in matching no pod"
            ));
        }
    }
    warnings.extend(repeated(spec, "hostAliases", "ip", path));
    warnings.extend(repeated(spec, "imagePullSecrets", "name", path));
    for (path, secret) in items(spec, "imagePullSecrets", path) {
        if text(secret, "name").is_empty() {
            warnings.push(format!("{path}.name: invalid empty name \"\""));
        }
    }
    for (path, container) in &containers {
        warnings.extend(hidden_variables(container, path));
    }
    warnings.extend(ports(&containers));
    warnings.extend(port_names(&containers));
    if spec["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds < 0)
    {
        warnings.push(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    warnings
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// Iterates over a list with the path of each element.
fn items<'a>(
    value: &'a Value,
    list: &'a str,
    path: &'a str,
) -> impl Iterator<Item = (String, &'a Value)> {
    let items = value[list].as_array().into_iter().flatten().enumerate();
    items.map(move |(at, item)| (format!("{path}.{list}[{at}]"), item))
}

fn repeated(spec: &Value, list: &str, member: &str, path: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut warnings = Vec::new();
    for (path, item) in items(spec, list, path) {
        let value = text(item, member);
        if seen.contains(&value) {
            warnings.push(format!("{path}.{member}: duplicate {member} {value:?}"));
        } else {
            seen.push(value);
        }
    }
    warnings
}

/// Finds variables that replace others of their name without using them.
fn hidden_variables(container: &Value, path: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut warnings = Vec::new();
    for (path, variable) in items(container, "env", path) {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        if !seen.contains(&name) {
            seen.push(name);
            continue;
        }
        let reference = format!("$({name})");
        let uses_it = value.contains(&reference) && value != reference;
        if !variable["valueFrom"].is_null() || !uses_it {
            warnings.push(format!(
                "{path}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
    warnings
}

fn ports(containers: &[Container<'_>]) -> Vec<String> {
    let mut known: Vec<(String, &Value)> = Vec::new();
    let mut warnings = Vec::new();
    for (path, port) in containers
        .iter()
        .flat_map(|(path, each)| items(each, "ports", path))
    {
        let number = |port: &Value, member: &str| port[member].as_i64().unwrap_or(0);
        let same = |other: &Value| {
            ["containerPort", "protocol"]
                .iter()
                .all(|member| other[*member] == port[*member])
        };
        let [host, address] = [
            number(port, "hostPort").to_string(),
            text(port, "hostIP").to_owned(),
        ];
        for (other_path, other) in known.iter().filter(|(_, other)| same(other)) {
            let (other_host, other_address) =
                (number(other, "hostPort").to_string(), text(other, "hostIP"));
            let what = if address == other_address && host == other_host {
                "duplicate"
            } else if host == "0" || other_host == "0" {
                "overlapping"
            } else if host == other_host && address.is_empty() != other_address.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{path}: {what} port definition with {other_path}"));
        }
        known.push((path, port));
    }
    warnings
}

fn port_names(containers: &[Container<'_>]) -> Vec<String> {
    let mut known: HashMap<&str, String> = HashMap::new();
    let mut warnings = Vec::new();
    for (path, port) in containers
        .iter()
        .flat_map(|(path, each)| items(each, "ports", path))
    {
        let name = text(port, "name");
        if let Some(other) = known.get(name) {
            warnings.push(format!(
                "{path}: duplicate port name {name:?} with {other}, services and probes that select ports by name \
                 will use {other}"
            ));
        } else if !name.is_empty() {
            known.insert(name, path);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: &Value, expected: &[&str]) {
        assert_eq!(warnings(spec, "t.spec"), expected);
    }

    #[test]
    fn doubtful_ports_and_variables_are_named() {
        let port = |host: i64, address: &str| json!({"containerPort": 80, "protocol": "TCP", "hostPort": host, "hostIP": address});
        let pod = |first: Value, second: Value| json!({"containers": [{"ports": [first]}, {"ports": [second]}]});
        let [a, b] = [
            "t.spec.containers[1].ports[0]",
            "t.spec.containers[0].ports[0]",
        ];
        for (first, second, what) in [
            (port(0, ""), port(0, ""), Some("duplicate")),
            (port(0, ""), port(8, ""), Some("overlapping")),
            (
                port(8, ""),
                port(8, "1.1.1.1"),
                Some("dangerously ambiguous"),
            ),
            (port(8, ""), port(9, ""), None),
        ] {
            let expected = what.map(|what| format!("{a}: {what} port definition with {b}"));
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(&pod(first, second), &expected);
        }
        let variable = |value: &str| json!({"name": "A", "value": value});
        let env = |value: &str| json!({"containers": [{"env": [variable("1"), variable(value)]}]});
        check(&env("$(A)2"), &[]);
        check(
            &env("2"),
            &[
                "t.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            ],
        );
        check(
            &json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}], "terminationGracePeriodSeconds": -1}),
            &[
                "t.spec.imagePullSecrets[1].name: duplicate name \"a\"",
                "t.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
            ],
        );
    }
}
