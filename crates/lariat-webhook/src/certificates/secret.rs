//! Certificates in a Secret that all replicas share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use lariat_core::ObjectKey;

use super::error::CertificateError;
use super::pair::Pair;
use super::rotation::{Record, Rotation};

/// The entry with the record. The other entries are for people and other programs.
const RECORD: &str = "rotation.json";

/// How often a write that others were faster with is tried again.
const ATTEMPTS: usize = 8;

/// The Secret with the certificates, and the rules of their rotation.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) key: ObjectKey,
    pub(super) rotation: Rotation,
    pub(super) client: Client,
}

impl Shared {
    /// Reads the certificates, and makes or rotates them if it is time.
    ///
    /// Of several replicas that want to, one writes, and the others take what it wrote. The bundle is the one that was
    /// injected last.
    pub(super) async fn settle(
        &self,
        now: Timestamp,
        bundle: Option<&str>,
    ) -> Result<Record, CertificateError> {
        let namespace = self.key.namespace().unwrap_or("default");
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        for _ in 0..ATTEMPTS {
            let found = api.get_opt(self.key.name()).await;
            let found = found.map_err(|error| self.failed(error))?;
            let record = match &found {
                Some(secret) => self.record(secret)?,
                None => None,
            };
            let stepped = self.rotation.step(record.as_ref(), now, bundle)?;
            let next = match (stepped, record) {
                (Some(next), _) => next,
                (None, Some(record)) => return Ok(record),
                (None, None) => continue,
            };
            let written = self.write(&api, found, &next).await;
            match written {
                Ok(_) => {
                    let expires = next.current.expires;
                    tracing::info!(secret = %self.key, %expires, "certificates of webhooks were written");
                    return Ok(next);
                }
                // Another replica was faster, or the Secret is gone again.
                Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Err(CertificateError::Contended(self.key.to_string()))
    }

    async fn write(
        &self,
        api: &Api<Secret>,
        found: Option<Secret>,
        record: &Record,
    ) -> Result<Secret, Error> {
        let params = PostParams::default();
        let data = data(record).map_err(Error::SerdeError)?;
        match found {
            // With the resource version that was read, so nothing of others is overwritten.
            Some(mut secret) => {
                secret.data.get_or_insert_default().extend(data);
                api.replace(self.key.name(), &params, &secret).await
            }
            None => {
                let secret = Secret {
                    metadata: ObjectMeta {
                        name: Some(self.key.name().to_owned()),
                        ..ObjectMeta::default()
                    },
                    type_: Some("kubernetes.io/tls".to_owned()),
                    data: Some(data),
                    ..Secret::default()
                };
                api.create(&params, &secret).await
            }
        }
    }

    /// Returns the record of a Secret; none if it is empty, or the record is damaged.
    fn record(&self, secret: &Secret) -> Result<Option<Record>, CertificateError> {
        let Some(data) = secret.data.as_ref().filter(|data| !data.is_empty()) else {
            return Ok(None);
        };
        let Some(record) = data.get(RECORD) else {
            // The Secret of `kubectl create secret tls`, or of cert-manager.
            let has_certificate = data.values().any(|value| !value.0.is_empty());
            return if has_certificate {
                Err(CertificateError::Foreign(self.key.to_string()))
            } else {
                Ok(None)
            };
        };
        let record = serde_json::from_slice(&record.0);
        if let Err(error) = &record {
            let line = error.line();
            tracing::warn!(secret = %self.key, line, "the record of certificates is damaged and made anew");
        }
        Ok(record.ok())
    }

    /// Returns what a server shows of a record.
    pub(super) fn pair(&self, record: &Record) -> Result<Pair, CertificateError> {
        let current = &record.current;
        let (certificate, key) = (current.certificate.as_bytes(), current.key.as_bytes());
        let from = format!("the Secret {}", self.key);
        Pair::read(&from, certificate, key, Some(record.bundle()))
    }

    fn failed(&self, error: Error) -> CertificateError {
        CertificateError::api(self.key.as_str(), error)
    }
}

fn data(record: &Record) -> Result<BTreeMap<String, ByteString>, serde_json::Error> {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    Ok(BTreeMap::from([
        ("tls.crt".to_owned(), bytes(&record.current.certificate)),
        ("tls.key".to_owned(), bytes(&record.current.key)),
        ("ca.crt".to_owned(), bytes(&record.bundle())),
        (RECORD.to_owned(), ByteString(serde_json::to_vec(record)?)),
    ]))
}
