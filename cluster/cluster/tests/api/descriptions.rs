//! The file of descriptions that is part of the crate, beside the schemas in k8s-openapi that it is made from.
//!
//! `LARIAT_WRITE=1 cargo test -p lariat-cluster --all-features --test api descriptions` writes it for another version of
//! k8s-openapi.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::schemars::SchemaGenerator;

/// Adds the schemas of types, and of those they refer to, to a generator.
macro_rules! add {
    ($generator:ident, $($($module:ident)::+: $($name:ident)+;)+) => {
        $({
            use k8s_openapi::$($module)::+ as module;
            $($generator.subschema_for::<module::$name>();)+
        })+
    };
}

#[test]
fn descriptions_are_those_of_k8s_openapi() -> io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/descriptions/descriptions.gz");
    let text = descriptions()?;
    if env::var_os("LARIAT_WRITE").is_some() {
        let mut file = GzEncoder::new(File::create(&path)?, Compression::best());
        file.write_all(&text)?;
        file.finish()?;
    }
    let mut kept = Vec::new();
    GzDecoder::new(&*fs::read(&path)?).read_to_end(&mut kept)?;
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        text.lines().map(str::to_owned).collect()
    };
    let (kept, text) = (lines(&kept), lines(&text));
    let differing = kept.iter().zip(&text).find(|(kept, now)| kept != now);
    assert_eq!(differing, None, "write the file again: LARIAT_WRITE=1");
    assert_eq!(
        kept.len(),
        text.len(),
        "write the file again: LARIAT_WRITE=1"
    );
    Ok(())
}

/// Returns the descriptions that the schemas in k8s-openapi have.
///
/// Each type has a line with its name and its description, and under it one for each field, which begins with a space.
/// A tab separates name and description; line feeds are escaped.
fn descriptions() -> io::Result<Vec<u8>> {
    let mut generator = SchemaGenerator::default();
    add_kinds(&mut generator);
    add_others(&mut generator);
    let mut text = Vec::new();
    for (name, schema) in generator.take_definitions(false) {
        line(&mut text, &name, schema["description"].as_str())?;
        let fields = schema["properties"].as_object().into_iter().flatten();
        for (name, schema) in fields {
            let described = schema["description"].as_str();
            line(&mut text, &format!(" {name}"), described)?;
        }
    }
    Ok(text)
}

fn line(file: &mut impl Write, name: &str, description: Option<&str>) -> io::Result<()> {
    let description = description.unwrap_or_default();
    let description = description.replace('\\', r"\\").replace('\n', r"\n");
    writeln!(file, "{name}\t{description}")
}

/// Adds the built-in kinds, in the versions that the cluster serves.
fn add_kinds(generator: &mut SchemaGenerator) {
    add! { generator,
        api::admissionregistration::v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
            MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration;
        api::apps::v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        api::authentication::v1: SelfSubjectReview TokenRequest TokenReview;
        api::authorization::v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
            SubjectAccessReview;
        api::autoscaling::v1: HorizontalPodAutoscaler Scale;
        api::autoscaling::v2: HorizontalPodAutoscaler;
        api::batch::v1: CronJob Job;
        api::certificates::v1: CertificateSigningRequest;
        api::coordination::v1: Lease;
        api::core::v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
            PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount;
        api::discovery::v1: EndpointSlice;
        api::events::v1: Event;
        api::flowcontrol::v1: FlowSchema PriorityLevelConfiguration;
        api::networking::v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        api::node::v1: RuntimeClass;
        api::policy::v1: Eviction PodDisruptionBudget;
        api::rbac::v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        api::resource::v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        api::scheduling::v1: PriorityClass;
        api::storage::v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass;
        apiextensions_apiserver::pkg::apis::apiextensions::v1: CustomResourceDefinition;
        kube_aggregator::pkg::apis::apiregistration::v1: APIService;
    }
}

/// Adds the types of requests and answers that are about no single kind.
fn add_others(generator: &mut SchemaGenerator) {
    add! { generator,
        apimachinery::pkg::apis::meta::v1: APIGroup APIGroupList APIResourceList APIVersions DeleteOptions ListMeta
            Patch Status;
        apimachinery::pkg::version: Info;
    }
}
