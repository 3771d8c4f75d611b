//! The subresources of a resource.

use lariat_apimachinery::kinds::Resource;

/// A subresource as discovery lists it.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Subresource {
    pub(in crate::api) name: &'static str,
    /// The kind, if it is not that of the resource.
    pub(in crate::api) kind: Option<&'static str>,
    /// The group and version of that kind, if not those of the resource.
    pub(in crate::api) group_version: Option<(&'static str, &'static str)>,
    pub(in crate::api) verbs: &'static [&'static str],
}

const WRITES: &[&str] = &["get", "patch", "update"];
const PROXIES: &[&str] = &["create", "delete", "get", "patch", "update"];
const STREAMS: &[&str] = &["create", "get"];

const fn same(name: &'static str, verbs: &'static [&'static str]) -> Subresource {
    Subresource {
        name,
        kind: None,
        group_version: None,
        verbs,
    }
}

const fn of(name: &'static str, kind: &'static str, verbs: &'static [&'static str]) -> Subresource {
    Subresource {
        kind: Some(kind),
        ..same(name, verbs)
    }
}

const SCALE: Subresource = Subresource {
    group_version: Some(("autoscaling", "v1")),
    ..of("scale", "Scale", WRITES)
};

const POD: &[Subresource] = &[
    of("attach", "PodAttachOptions", STREAMS),
    of("binding", "Binding", &["create"]),
    same("ephemeralcontainers", WRITES),
    Subresource {
        group_version: Some(("policy", "v1")),
        ..of("eviction", "Eviction", &["create"])
    },
    of("exec", "PodExecOptions", STREAMS),
    same("log", &["get"]),
    of("portforward", "PodPortForwardOptions", STREAMS),
    of("proxy", "PodProxyOptions", PROXIES),
    same("resize", WRITES),
];

const TOKEN: Subresource = Subresource {
    group_version: Some(("authentication.k8s.io", "v1")),
    ..of("token", "TokenRequest", &["create"])
};

/// Returns the subresources of a resource: by name, but those of custom resources begin with the status.
pub(in crate::api) fn subresources(resource: &Resource) -> Vec<Subresource> {
    let mut all = match (&*resource.group, &*resource.plural) {
        _ if resource.rules.custom => match resource.rules.scale {
            Some(_) => vec![SCALE],
            None => Vec::new(),
        },
        ("", "pods") => POD.to_vec(),
        ("", "services") => vec![of("proxy", "ServiceProxyOptions", PROXIES)],
        ("", "nodes") => vec![of("proxy", "NodeProxyOptions", PROXIES)],
        ("", "namespaces") => vec![same("finalize", &["update"])],
        ("", "serviceaccounts") => vec![TOKEN],
        ("", "replicationcontrollers") => vec![SCALE],
        ("apps", "deployments" | "replicasets" | "statefulsets") => vec![SCALE],
        ("certificates.k8s.io", "certificatesigningrequests") => vec![same("approval", WRITES)],
        _ => Vec::new(),
    };
    if resource.rules.status {
        all.push(same("status", WRITES));
    }
    if resource.rules.custom {
        all.reverse();
    } else {
        all.sort_by_key(|subresource| subresource.name);
    }
    all
}
