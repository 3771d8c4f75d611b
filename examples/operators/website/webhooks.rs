//! The webhooks of Websites: hosts by default, hosts that are taken, pages that cannot be served, both versions.

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lariat::prelude::*;
use lariat::webhook::{Admission, Decision, Hook, Mutation, ReviewResult, Webhooks};

use super::BY_HOST;
use super::kind::v1::Website;
use super::kind::{INDEX, conversion};

/// How much all pages of a Website may have: they are in one ConfigMap, which may have 1 MiB.
const LONGEST: usize = 1_000_000;
/// Spares the calls for changes that are none of the spec. So finalizers can be removed while the webhooks are down.
const SPEC_CHANGED: &str = "oldObject == null || object.spec != oldObject.spec";

/// Returns the webhooks of Websites, which end with a domain name; `namespaces` says for which.
///
/// The reconciler [was registered](super::register) before: they share its caches and index.
pub fn webhooks(
    name: &str,
    factory: &SharedControllerFactory,
    namespaces: Option<&LabelSelector>,
) -> Webhooks {
    let hook = |name: &str| {
        let hook = Hook::<Website>::new(name).match_condition("spec-changed", SPEC_CHANGED);
        match namespaces {
            Some(selector) => hook.namespace_selector(selector.clone()),
            None => hook,
        }
    };
    Webhooks::new(name, factory)
        .mutate(hook("host"), with_host)
        .validate(hook("website"), judged)
        .convert(conversion())
}

/// Sets the host. It follows from the name and the namespace, which a schema cannot know.
async fn with_host(
    request: Admission<Website>,
    mut site: Website,
) -> ReviewResult<Mutation<Website>> {
    if site.spec.host.is_some() {
        return Ok(Mutation::none());
    }
    let (name, namespace) = (request.key().name(), request.key().namespace());
    if name.is_empty() {
        return Ok(Mutation::deny(
            "a Website whose name is to be generated needs a spec.host",
        ));
    }
    site.spec.host = Some(format!("{name}.{}.demo.dev", namespace.unwrap_or_default()));
    Ok(Mutation::to(site))
}

/// Allows or denies a Website, and says what is wrong with each field.
async fn judged(request: Admission<Website>) -> ReviewResult<Decision> {
    let Some(site) = request.object()? else {
        return Ok(Decision::allow());
    };
    let mut decision = Decision::allow();
    for (field, problem) in problems_of(site) {
        decision = decision.cause(field, problem);
    }
    if let Some(other) = rival(&request, site)? {
        decision = decision.cause("spec.host", format!("is the host of {other} already"));
    }
    if let Some(name) = missing_secret(&request, site)? {
        decision = decision.warn(format!(
            "there is no Secret {name} yet, for which the pods will wait"
        ));
    }
    Ok(decision)
}

/// Returns fields, and what is wrong with them.
fn problems_of(site: &Website) -> Vec<(String, String)> {
    let pages = &site.spec.pages;
    let is_of = |char: char| char.is_ascii_alphanumeric() || "-._".contains(char);
    let misnamed = |name: &&String| !name.chars().all(is_of) || name.starts_with("..");
    let mut problems: Vec<_> = pages
        .keys()
        .filter(misnamed)
        .map(|name| {
            let problem = "is no name of a file: letters, digits, dashes, dots and underscores";
            (format!("spec.pages[{name:?}]"), problem.to_owned())
        })
        .collect();
    if !pages.contains_key(INDEX) {
        problems.push(("spec.pages".to_owned(), format!("has no {INDEX}")));
    }
    let length: usize = pages
        .iter()
        .map(|(name, page)| name.len() + page.len())
        .sum();
    if length > LONGEST {
        let problem = format!("has {length} bytes; {LONGEST} are the most");
        problems.push(("spec.pages".to_owned(), problem));
    }
    problems
}

/// Returns the other Website that has the host.
///
/// Two that are created in the same moment may both pass: neither is in the cache then.
fn rival(request: &Admission<Website>, site: &Website) -> Result<Option<ObjectKey>> {
    let Some(host) = &site.spec.host else {
        return Ok(None);
    };
    for other in request.cache::<Website>().by_index(BY_HOST, host)? {
        let key = super::key(&*other?);
        if key != *request.key() {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Returns the name of the Secret, if there is none.
fn missing_secret<'a>(request: &Admission<Website>, site: &'a Website) -> Result<Option<&'a str>> {
    let Some(key) = super::secret_of(site) else {
        return Ok(None);
    };
    let found = request.cache::<Secret>().get(&key)?;
    let name = site.spec.secret_ref.as_ref().map(|secret| &*secret.name);
    Ok(name.filter(|_| found.is_none()))
}
