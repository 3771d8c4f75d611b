//! Ratcheting: how strictly an update is checked, given the old spec.

use super::options::Options;
use super::{affinity, security};
use crate::validation::field::Field;
use crate::validation::labels::{SelectorOptions, has_odd_values};
use crate::validation::volumes;
use crate::validation::{formats, paths, resources};

/// Returns the options for a spec that may replace an old one.
pub(super) fn options(is_pod: bool, old: Option<&Field<'_>>) -> Options {
    // `GetValidationOptionsFromPodSpecAndMeta`: each option is on if the old spec needs it, so a change cannot make it
    // worse than it was.
    let options = old.map_or_else(Options::default, of_old);
    Options {
        volumes: volumes::Options {
            is_pod,
            ..options.volumes
        },
        ..options
    }
}

fn of_old(old: &Field<'_>) -> Options {
    let affinity = old.get("affinity");
    let terms = ["podAffinity", "podAntiAffinity"]
        .iter()
        .flat_map(|kind| affinity::terms(&affinity.get(kind)).collect::<Vec<_>>());
    let selectors =
        terms.flat_map(|term| [term.get("labelSelector"), term.get("namespaceSelector")]);
    let any_values = selectors
        .into_iter()
        .any(|selector| has_odd_values(&selector));
    let mut spread = old.get("topologySpreadConstraints").items();
    let network = old.get("securityContext").get("sysctls").items();
    Options {
        is_static: false,
        volumes: volumes::Options {
            is_pod: false,
            any_token_path: has_odd_token_path(old),
        },
        affinity: SelectorOptions { any_values },
        any_spread_selector: spread.any(|each| has_odd_values(&each.get("labelSelector"))),
        any_node_values: has_odd_node_values(old),
        any_huge_pages: has_odd_huge_pages(old),
        any_sysctls: network
            .map(|sysctl| sysctl.text_of("name"))
            .any(|name| security::host_conflict(old, name).is_some()),
        any_selinux_policy: old.get("securityContext").has("seLinuxChangePolicy"),
        any_resize_policy: old.get("initContainers").items().any(|container| {
            let policies = container.get("resizePolicy");
            container.text_of("restartPolicy") != "Always"
                && policies
                    .items()
                    .any(|each| each.text_of("restartPolicy") == "RestartContainer")
        }),
    }
}

fn has_odd_token_path(old: &Field<'_>) -> bool {
    let volumes = old.get("volumes");
    volumes.items().any(|volume| {
        let sources = volume.get("projected").get("sources");
        sources.items().any(|source| {
            let path = source.get("serviceAccountToken");
            let path = path.text_of("path");
            path.starts_with('/') || path.starts_with("..") || paths::has_backsteps(path)
        })
    })
}

fn has_odd_node_values(old: &Field<'_>) -> bool {
    let affinity = old.get("affinity").get("nodeAffinity");
    let terms = affinity
        .get("requiredDuringSchedulingIgnoredDuringExecution")
        .get("nodeSelectorTerms");
    let odd = |value: Field<'_>| !formats::label_value(value.text()).is_empty();
    terms.items().any(|term| {
        let expressions = term.get("matchExpressions");
        expressions
            .items()
            .any(|each| each.get("values").items().any(odd))
    })
}

fn has_odd_huge_pages(old: &Field<'_>) -> bool {
    ["containers", "initContainers"].iter().any(|list| {
        old.get(list).items().any(|container| {
            let of = |kind| container.get("resources").get(kind);
            let amounts = [of("limits"), of("requests")];
            amounts.iter().flat_map(Field::entries).any(|(name, at)| {
                resources::is_huge_page(name)
                    && !resources::is_whole_pages(name, resources::amount(&at))
            })
        })
    })
}
