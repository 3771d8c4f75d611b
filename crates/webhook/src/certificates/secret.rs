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
use super::generate::Generated;
use super::pair::Pair;
use super::rotation::{Record, Rotation};
use super::shown::Served;

/// The entry with the record; other entries are for other programs and people.
const RECORD: &str = "rotation.json";

/// The number of attempts to write while other clients change the Secret.
const ATTEMPTS: usize = 8;

/// The Secret with the certificates, and the rules of their rotation.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) key: ObjectKey,
    pub(super) rotation: Rotation,
    pub(super) client: Client,
}

impl Shared {
    /// Reads the certificates, and generates or rotates them if it is time.
    ///
    /// If several replicas try, one of them writes, and the others use what it wrote. `bundle` is the bundle that was
    /// injected last, and `last` is the record that this replica uses. If the Secret was deleted or damaged, that record
    /// is restored, since API servers trust its authorities only; its certificate is replaced in order.
    pub(super) async fn settle(
        &self,
        now: Timestamp,
        bundle: Option<&str>,
        last: Option<&Record>,
    ) -> Result<Record, CertificateError> {
        let namespace = self.key.namespace().unwrap_or("default");
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        // Optimistic concurrency: read, decide, write with the resource version, and start again after a conflict.
        for _ in 0..ATTEMPTS {
            let found = api.get_opt(self.key.name()).await;
            let found = found.map_err(|error| self.failed(error))?;
            let record = match &found {
                Some(secret) => self.record(secret)?,
                None => None,
            };
            // The decision is made on what was just read, so that replicas which read the same record decide alike.
            let stepped = match (&record, last) {
                (None, Some(last)) => Some(self.rotation.restore(last, now)?),
                _ => self.rotation.step(record.as_ref(), now, bundle)?,
            };
            let next = match (stepped, record) {
                (Some(next), _) => next,
                (None, Some(record)) => return Ok(record),
                (None, None) => continue,
            };
            let written = self.write(&api, found, &next).await;
            match written {
                Ok(_) => {
                    let expires = next.current.expires;
                    tracing::info!(secret = %self.key, %expires, "wrote the certificates of the webhooks");
                    return Ok(next);
                }
                // Another replica was faster, or the Secret was deleted meanwhile: read it again.
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
            // The object has the resource version that was read, so the API server refuses the write if anything has
            // changed.
            Some(mut secret) => {
                // Other entries of the Secret are kept.
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

    /// Returns the record of a Secret; `None` if it is missing or damaged.
    fn record(&self, secret: &Secret) -> Result<Option<Record>, CertificateError> {
        let Some(data) = secret.data.as_ref().filter(|data| !data.is_empty()) else {
            return Ok(None);
        };
        let Some(record) = data.get(RECORD) else {
            // A Secret of `kubectl create secret tls`, or of cert-manager.
            let has_certificate = data.values().any(|value| !value.0.is_empty());
            return if has_certificate {
                Err(CertificateError::Foreign(self.key.to_string()))
            } else {
                Ok(None)
            };
        };
        let record: Option<Record> = serde_json::from_slice(&record.0).ok();
        // Also if it is a record whose certificates cannot be used.
        let record = record.filter(|record| self.served(record).is_ok());
        if record.is_none() {
            tracing::warn!(secret = %self.key, "the record of the certificates is damaged and is replaced");
        }
        Ok(record)
    }

    /// Returns the certificates and the authorities of a record.
    pub(super) fn served(&self, record: &Record) -> Result<Served, CertificateError> {
        let from = format!("the Secret {}", self.key);
        let read = |generated: &Generated| {
            let (certificate, key) = (generated.certificate.as_bytes(), generated.key.as_bytes());
            Pair::read(&from, certificate, key)
        };
        let others: Result<_, _> = record.next.iter().map(read).collect();
        Ok(Served {
            first: read(&record.current)?,
            others: others?,
            authority: Some(record.bundle()),
        })
    }

    fn failed(&self, error: Error) -> CertificateError {
        CertificateError::api(self.key.as_str(), error)
    }
}

/// Returns the entries of the Secret.
fn data(record: &Record) -> Result<BTreeMap<String, ByteString>, serde_json::Error> {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    Ok(BTreeMap::from([
        ("tls.crt".to_owned(), bytes(&record.current.certificate)),
        ("tls.key".to_owned(), bytes(&record.current.key)),
        ("ca.crt".to_owned(), bytes(&record.bundle())),
        (RECORD.to_owned(), ByteString(serde_json::to_vec(record)?)),
    ]))
}
