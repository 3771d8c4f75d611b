//! The objects of a Website. All have its name.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, Container, ContainerPort, EnvFromSource, HTTPGetAction,
    PodSpec, PodTemplateSpec, Probe, Secret, SecretEnvSource, Service, ServicePort, ServiceSpec,
    Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lariat::kube::ResourceExt;
use lariat::kube::api::ObjectMeta;
use sha2::{Digest, Sha256};

use super::kind::v1::Website;

/// The annotation of pods with the checksum of the Secret they started with.
pub(super) const CHECKSUM: &str = "website.demo.dev/secret";
/// The label of pods with the name of their Website.
pub(super) const WEBSITE: &str = "website.demo.dev/name";
/// The port that the image listens on.
const PORT: i32 = 80;

/// Returns the pages. Volumes of them are updated while pods run, so no pod is replaced for them.
pub(super) fn pages(site: &Website) -> ConfigMap {
    ConfigMap {
        metadata: metadata(site),
        data: Some(site.spec.pages.clone()),
        ..ConfigMap::default()
    }
}

/// Returns the Deployment, whose pods are replaced when the checksum changes.
pub(super) fn deployment(site: &Website, checksum: Option<&str>) -> Deployment {
    let annotation = |checksum: &str| (CHECKSUM.to_owned(), checksum.to_owned());
    let pod = PodSpec {
        containers: vec![server(site)],
        volumes: Some(vec![Volume {
            name: "pages".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: site.name_any(),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        }]),
        ..PodSpec::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(site)),
            annotations: checksum.map(|checksum| BTreeMap::from([annotation(checksum)])),
            ..ObjectMeta::default()
        }),
        spec: Some(pod),
    };
    Deployment {
        metadata: metadata(site),
        spec: Some(DeploymentSpec {
            replicas: Some(site.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels(site)),
                ..LabelSelector::default()
            },
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn server(site: &Website) -> Container {
    let secret = site.spec.secret_ref.as_ref();
    let environment = secret.map(|secret| {
        let secret_ref = Some(SecretEnvSource {
            name: secret.name.clone(),
            optional: None,
        });
        vec![EnvFromSource {
            secret_ref,
            ..EnvFromSource::default()
        }]
    });
    Container {
        name: "server".to_owned(),
        image: Some(site.spec.image.clone()),
        env_from: environment,
        ports: Some(vec![ContainerPort {
            name: Some("http".to_owned()),
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        readiness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some("/".to_owned()),
                port: IntOrString::String("http".to_owned()),
                ..HTTPGetAction::default()
            }),
            ..Probe::default()
        }),
        volume_mounts: Some(vec![VolumeMount {
            name: "pages".to_owned(),
            mount_path: "/usr/share/nginx/html".to_owned(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// Returns the Service.
pub(super) fn service(site: &Website) -> Service {
    Service {
        metadata: metadata(site),
        spec: Some(ServiceSpec {
            selector: Some(labels(site)),
            ports: Some(vec![ServicePort {
                name: Some("http".to_owned()),
                port: PORT,
                target_port: Some(IntOrString::String("http".to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Returns a checksum of the entries of a Secret: the same in every process, and in every version of this program.
pub(super) fn checksum(secret: &Secret) -> String {
    let mut hash = Sha256::new();
    for (name, value) in secret.data.iter().flatten() {
        for part in [name.as_bytes(), &value.0] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
    }
    let half = &hash.finalize()[..16];
    half.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the metadata of an object. The namespace is the owner's, which applying it adds.
fn metadata(site: &Website) -> ObjectMeta {
    ObjectMeta {
        name: Some(site.name_any()),
        labels: Some(labels(site)),
        ..ObjectMeta::default()
    }
}

fn labels(site: &Website) -> BTreeMap<String, String> {
    BTreeMap::from([(WEBSITE.to_owned(), site.name_any())])
}
