//! The warnings of each kind.

use super::collected::Warnings;
use super::{addresses, certificates, definitions, finalizers, labels, pods, services, storage};
use crate::kinds::Resource;
use crate::object::{Object, metadata_text};
use crate::validation::context::Part;
use crate::validation::field::Field;
use crate::validation::formats;

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// The suffix of names that are reserved for static manifests.
const STATIC: &str = ".static.k8s.io";

/// The completions and parallelism above which failed indexes may not fit.
// `completionsSoftLimit` and `parallelismSoftLimitForUnlimitedCompletions` in `WarningsForJobSpec`.
const COMPLETIONS: i64 = 100_000;
const PARALLELISM: i64 = 10_000;

// `deleteOptionWarnings` of the registry of Jobs: the API orphans Pods by default there, kubectl deletes them in the
// background.
const JOB_DELETION: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
    to remove them or set propagationPolicy=Orphan to suppress this warning";

/// Returns the warnings about a valid object.
///
/// `old` is the one that it replaces, of which `part` is written; at a creation there is none, and the part is
/// [`Part::Main`].
///
/// ```
/// use lariat_apimachinery::kinds::{Kinds, TableId};
/// use lariat_apimachinery::validation::{Part, warnings};
/// use serde_json::json;
///
/// let catalog = Kinds::new(|_| TableId(0)).catalog();
/// let services = catalog.resource("", "v1", "services").expect("it is built in");
/// let service = json!({"spec": {"externalIPs": ["010.0.0.1"]}});
/// let warnings = warnings(services, service.as_object().expect("an object"), None, Part::Main);
/// assert!(warnings.iter().any(|warning| warning.starts_with("spec.externalIPs[0]")));
/// ```
#[must_use]
pub fn warnings(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Vec<String> {
    let mut warnings = Warnings::default();
    match part {
        Part::Main => warn_of_main(resource, object, old, &mut warnings),
        Part::Status if !resource.rules.custom => warn_of_status(resource, object, &mut warnings),
        Part::Status => warn_of_rules(resource, object, old, &mut warnings),
        _ => {}
    }
    warnings.into_list()
}

/// Warns of addresses in a status.
fn warn_of_status(resource: &Resource, object: &Object, warnings: &mut Warnings) {
    let status = Field::of(object, "status");
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            for list in ["podIPs", "hostIPs"] {
                for address in status.get(list).items() {
                    addresses::check_ip(&address.get("ip"), warnings);
                }
            }
        }
        ("", "Service") | ("networking.k8s.io", "Ingress") => {
            for point in status.get("loadBalancer").get("ingress").items() {
                // The path ends in the index.
                addresses::check_ip(&point.with(point.member("ip")), warnings);
            }
        }
        _ => {}
    }
}

fn warn_of_main(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    warnings: &mut Warnings,
) {
    // Custom resources have no other warnings here; those about deprecated versions are added to every answer
    // elsewhere.
    if resource.rules.custom {
        warn_of_rules(resource, object, old, warnings);
        finalizers::check(object, old, warnings);
        return;
    }
    let spec = Field::of(object, "spec");
    let is_new = old.is_none();
    let all = warnings;
    match (resource.group.as_str(), resource.kind.as_str()) {
        // Updates of Pods get none: they are frequent and rarely made by people (`podStrategy.WarningsOnUpdate`).
        ("", "Pod") if is_new => {
            check_name(object, "this is used in the Pod's hostname", all);
            pods::pod(object, all);
        }
        ("", "PodTemplate") if is_changed(object, old) => {
            pods::template(&Field::of(object, "template"), all);
        }
        // `rcStrategy.WarningsOnUpdate` passes the two templates in the wrong order, and so warns of the old one.
        ("", "ReplicationController") => {
            let spec = old.map_or(spec, |old| Field::of(old, "spec"));
            workload(object, old, &spec.get("template"), all);
        }
        ("apps", "Deployment" | "ReplicaSet") => {
            workload(object, old, &spec.get("template"), all);
        }
        ("batch", "Job") => job(object, old, &spec, all),
        ("batch", "CronJob") => {
            job(object, old, &spec.get("jobTemplate").get("spec"), all);
            check_zone(&spec, is_new, all);
        }
        ("apps", "DaemonSet") if has_new_template(object, old) => {
            pods::template(&spec.get("template"), all);
        }
        ("apps", "StatefulSet") => stateful_set(object, old, all),
        ("", "Service") => services::service(object, all),
        ("", "Endpoints") => services::endpoints(object, all),
        ("discovery.k8s.io", "EndpointSlice") => services::slice(object, is_new, all),
        ("networking.k8s.io", "NetworkPolicy") => services::network_policy(object, all),
        ("networking.k8s.io", "Ingress") if is_new => services::ingress(object, all),
        ("", "Node") => node(&spec, all),
        ("", "Secret") => certificates::check(object, all),
        ("", "ServiceAccount") => service_account(object, old, all),
        // `resourcequotaStrategy.WarningsOnUpdate` returns nothing.
        ("", "ResourceQuota") if is_new => storage::quota(object, all),
        ("", "PersistentVolume") => storage::volume(object, all),
        ("", "PersistentVolumeClaim") => storage::claim(object, all),
        ("storage.k8s.io", "StorageClass") => storage::storage_class(object, all),
        ("storage.k8s.io", "CSIStorageCapacity") => storage::capacity(object, all),
        ("storage.k8s.io", "CSIDriver") => storage::driver(object, old, all),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            definitions::definition(object, old, all)
        }
        ("node.k8s.io", "RuntimeClass") => runtime_class(object, all),
        ("resource.k8s.io", "ResourceSlice") => device_slice(&spec, all),
        // An error instead of a warning with the feature gate `ManifestBasedAdmissionControlConfig`, which is off.
        ("admissionregistration.k8s.io", _) if metadata_text(object, "name").ends_with(STATIC) => {
            all.add(format!(
                "metadata.name: names ending with {STATIC:?} are reserved for static manifest-based configurations and \
                 cannot be managed via the API"
            ));
        }
        _ => {}
    }
}

/// Warns of rules that an unchanged part of a custom resource breaks.
// `validateExpressions`, which makes warnings of what it tolerates.
fn warn_of_rules(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    warnings: &mut Warnings,
) {
    let Some((schema, old)) = resource.schema.as_ref().zip(old) else {
        return;
    };
    for cause in schema.tolerated(object, old) {
        warnings.add(cause.text());
    }
}

/// Warns of a zone in a schedule, which only a CronJob that had one before may have.
fn check_zone(spec: &Field<'_>, is_new: bool, warnings: &mut Warnings) {
    if !is_new && spec.text_of("schedule").contains("TZ") {
        // The path has one `spec` too many.
        warnings.add(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
        );
    }
}

fn device_slice(spec: &Field<'_>, warnings: &mut Warnings) {
    let driver = spec.text_of("driver");
    // Validation lets capitals pass, like `ValidateCSIDriverName`, which lowers the name before it looks at its form.
    if driver != driver.to_lowercase() {
        warnings.add(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}

/// Returns the warning for a deletion without a propagation policy.
#[must_use]
pub fn deletion_warning(resource: &Resource) -> Option<&'static str> {
    let is_job = (resource.group.as_str(), resource.plural.as_str()) == ("batch", "jobs");
    is_job.then_some(JOB_DELETION)
}

/// Returns whether an object is created, or its generation rises.
fn is_changed(object: &Object, old: Option<&Object>) -> bool {
    // Go evaluates templates only if the generation has changed, so labels and status updates cost nothing.
    let generation = |object| Field::of(object, "metadata").int_of("generation");
    old.is_none_or(|old| generation(old) != generation(object))
}

/// Returns whether a DaemonSet is created, or has another template.
fn has_new_template(object: &Object, old: Option<&Object>) -> bool {
    // Where the internal `spec.templateGeneration` is in `apps/v1`; it is counted before warnings are asked for.
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    let generation = |object| {
        let annotations = Field::of(object, "metadata").get("annotations");
        annotations.text_of(GENERATION)
    };
    old.is_none_or(|old| generation(old) != generation(object))
}

/// Warns of a name that is no DNS label.
fn check_name(object: &Object, used: &str, warnings: &mut Warnings) {
    // A name that is yet to be generated has a suffix that is fine; `maxGeneratedNameLength` cuts what is before it.
    let name = match metadata_text(object, "name") {
        "" => match metadata_text(object, "generateName") {
            "" => String::new(),
            base => format!("{}xxxxx", base.chars().take(58).collect::<String>()),
        },
        name => name.to_owned(),
    };
    let wrong = formats::dns_label(&name);
    // Names of Deployments may be subdomains with dots, of which Pods cannot make hostnames.
    if !wrong.is_empty() && !name.is_empty() {
        let wrong = wrong.join(" ");
        warnings.add(format!(
            "metadata.name: {used}, which can result in surprising behavior; a DNS label is recommended: [{wrong}]"
        ));
    }
}

fn workload(object: &Object, old: Option<&Object>, template: &Field<'_>, warnings: &mut Warnings) {
    if old.is_none() {
        check_name(object, "this is used in Pod names and hostnames", warnings);
    }
    if is_changed(object, old) {
        pods::template(template, warnings);
    }
}

fn job(object: &Object, old: Option<&Object>, spec: &Field<'_>, warnings: &mut Warnings) {
    if old.is_none() {
        check_name(object, "this is used in Pod names and hostnames", warnings);
    }
    if !is_changed(object, old) {
        return;
    }
    let above = |member, most| spec.int_of(member).is_some_and(|count| count > most);
    if spec.text_of("completionMode") == "Indexed"
        && above("completions", COMPLETIONS)
        && above("parallelism", PARALLELISM)
    {
        let what = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
            Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        warnings.add_at(spec, what);
    }
    pods::template(&spec.get("template"), warnings);
}

fn stateful_set(object: &Object, old: Option<&Object>, warnings: &mut Warnings) {
    let spec = Field::of(object, "spec");
    if is_changed(object, old) {
        pods::template(&spec.get("template"), warnings);
    }
    for claim in spec.get("volumeClaimTemplates").items() {
        // The paths are those of `statefulSetStrategy`: when creating they lack `spec`, when updating they have `Spec`
        // with a capital.
        let at = match old {
            None => claim.with(claim.member("spec")),
            Some(_) => claim.get("Spec").with(claim.member("spec")),
        };
        storage::claim_spec(&at, warnings);
    }
    let limit = spec.get("revisionHistoryLimit");
    // Other workloads refuse a negative limit.
    if limit.int().is_some_and(|limit| limit < 0) {
        let what = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.add_at(&limit, what);
    }
}

fn node(spec: &Field<'_>, warnings: &mut Warnings) {
    let source = spec.get("configSource");
    // Dynamic configuration of kubelets was removed; the member is still stored.
    if source.is_set() {
        warnings.add_at(&source, "the feature is removed");
    }
    let id = spec.get("externalID");
    if !id.is_void() {
        let what = "this field is deprecated, and is unused by Kubernetes";
        warnings.add_at(&id, what);
    }
    for range in spec.get("podCIDRs").items() {
        addresses::check_cidr(&range, warnings);
    }
}

fn service_account(object: &Object, old: Option<&Object>, warnings: &mut Warnings) {
    let annotations = |object| Field::of(object, "metadata").get("annotations");
    let had = old.is_some_and(|old| annotations(old).has(MOUNTABLE));
    let annotations = annotations(object);
    if annotations.has(MOUNTABLE) && !had {
        let what =
            "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        warnings.add_at(&annotations.key(MOUNTABLE), what);
    }
}

fn runtime_class(object: &Object, warnings: &mut Warnings) {
    let selector = Field::of(object, "scheduling").get("nodeSelector");
    for (name, _) in selector.entries() {
        if let Some(text) = labels::deprecated(name) {
            // `GetWarningsForRuntimeClass` names the whole selector, not the key.
            warnings.add_at(&selector, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::{Kinds, TableId};

    #[test]
    fn a_schedule_that_kept_its_zone_is_warned_of() {
        let kinds = Kinds::new(|_| TableId(0));
        let catalog = kinds.catalog();
        let mut all = catalog.all();
        let resource = all.find(|each| each.kind == "CronJob").expect("built in");
        let job = json!({"spec": {"schedule": "TZ=UTC * * * * *"}});
        let job = job.as_object().expect("an object");
        assert!(warnings(resource, job, None, Part::Main).is_empty());
        let found = warnings(resource, job, Some(job), Part::Main);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone")
        );
        assert!(warnings(resource, job, Some(job), Part::Status).is_empty());
    }
}
