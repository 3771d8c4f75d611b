//! Writes what Kubernetes says of its types and fields into a file, for the feature `descriptions`.

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "descriptions")]
    descriptions::write()?;
    Ok(())
}

#[cfg(feature = "descriptions")]
mod descriptions {
    use std::io::{self, Write};
    use std::path::Path;

    use flate2::Compression;
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

    /// Writes the descriptions that the schemas in k8s-openapi have, compressed.
    ///
    /// A type is a line with its name and its description, and a line for each field, which begins with a space. A tab
    /// stands in between, line feeds are escaped.
    pub(super) fn write() -> io::Result<()> {
        let mut generator = SchemaGenerator::default();
        add_kinds(&mut generator);
        add_others(&mut generator);
        let folder = std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
        let file = std::fs::File::create(Path::new(&folder).join("descriptions.gz"))?;
        let mut file = GzEncoder::new(file, Compression::best());
        for (name, schema) in generator.take_definitions(false) {
            line(&mut file, &name, schema["description"].as_str())?;
            let fields = schema["properties"].as_object().into_iter().flatten();
            for (name, schema) in fields {
                line(
                    &mut file,
                    &format!(" {name}"),
                    schema["description"].as_str(),
                )?;
            }
        }
        file.finish()?.flush()
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
}
